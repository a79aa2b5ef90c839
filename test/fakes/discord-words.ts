/** What tests and the parts of the fake Discord say to each other. */
import type { BotReaction } from './discord-reactions.js';

export type Payload = Record<string, unknown>;

export interface User {
  id: string;
  username: string;
  /** The name that is shown, where it is another. */
  global_name?: string | null;
  bot?: boolean;
}

interface GuildSetup {
  id: string;
  name: string;
  channels: ChannelSetup[];
  /** Beside @everyone, whose id is the guild's; put one with that id to change what everyone may do. */
  roles?: RoleSetup[];
  /** Who speaks in a guild becomes a member by it. Our bot is one always; name it to give it roles. */
  members?: MemberSetup[];
  ownerId?: string;
}

export interface ChannelSetup {
  id: string;
  name: string;
  /** 0 is a text channel, 2 voice, 4 a category, 5 announcements. */
  type?: number;
  overwrites?: Overwrite[];
}

export interface Overwrite {
  /** Of a role (@everyone has the guild's id) or of a member. */
  id: string;
  allow?: bigint;
  deny?: bigint;
}

export interface RoleSetup {
  id: string;
  name: string;
  permissions: bigint;
  /** The bot that it came with when that was invited, and that holds it. */
  botId?: string;
}

export interface MemberSetup {
  user: User;
  roles?: string[];
  nick?: string;
}

interface ThreadSetup {
  /** Made here if left out; the id of the message it was begun from, where it was. */
  id?: string;
  name?: string;
  owner?: User;
  private?: boolean;
}

/** One message of somebody. What it mentions is found in its content. */
export interface Saying {
  from: User;
  channelId: string;
  content?: string;
  /** The id of a message in the same channel. */
  replyTo?: string;
  /** Whether the reply tells the other one, as it does unless people switch that off. */
  pingsReplied?: boolean;
  attachments?: Attachment[];
  stickers?: string[];
  /** 0 is an ordinary message; 7 somebody joined, 6 a pin, 18 a thread begins. */
  type?: number;
  /** When it was said, ms; now if left out. */
  at?: number;
  /** Anything else, over the rest of the payload. */
  extra?: Payload;
}

/** A file on the CDN, to be put into a saying. `url` is what was signed last. */
export interface Attachment {
  id: string;
  filename: string;
  size: number;
  content_type: string | null;
  readonly url: string;
  [more: string]: unknown;
}

export interface AttachmentOptions {
  /** How the CDN gives it out: never, only half of it before the connection breaks, or not any more. */
  served?: 'whole' | 'never' | 'half' | 'gone' | { sentOnTo: string };
  /** A voice note of that length. */
  voiceSeconds?: number;
  /** What Discord says of its size, where that is not the truth. */
  claimedSize?: number;
  /** Over the rest of the payload. */
  extra?: Payload;
}

/** One message of ours: of our bot, or through a webhook. */
export interface SentMessage {
  id: string;
  channelId: string;
  /** As it stands now. */
  content: string;
  nonce: string | null;
  replyTo: string | null;
  files: { name: string; bytes: Buffer }[];
  /** Of a voice message, as it was given. */
  voiceSeconds: number | null;
  allowedMentions: Payload | null;
  /** Who hears of it: user ids, role ids with `&` before them, `@everyone`, `@here`. */
  pinged: string[];
  /** When it was taken, ms. */
  at: number;
  /** How often it was changed since. */
  edits: number;
  /** What each change made of it, and when, ms. */
  changes: { content: string; at: number }[];
  /** The answer was written to the connection. */
  answered: boolean;
  /** The connection ended between taking it and answering: the sender cannot know that it was taken. */
  cut: boolean;
  /** `edit` filled the place that a deferred answer had kept. */
  via: 'message' | 'callback' | 'edit' | 'followup' | 'webhook';
  interactionId: string | null;
  ephemeral: boolean;
  /** Where it went through a webhook: which, and the name and picture (an address, or the webhook's hash) it is shown with. */
  webhookId: string | null;
  username: string | null;
  avatar: string | null;
}

export interface Call {
  method: string;
  /** Without the version: `/channels/1/messages`. */
  path: string;
  query: Record<string, string>;
  body: unknown;
  authorization: string | null;
  at: number;
}

export interface CommandOption {
  name: string;
  /** 1 a subcommand, 3 a text, 4 a whole number, 5 yes or no, 11 a file by its id. */
  type: number;
  value?: string | number | boolean;
  options?: CommandOption[];
  focused?: boolean;
}

export interface Invocation {
  from: User;
  channelId: string;
  name: string;
  options?: CommandOption[];
  /** Those that options name: `resolved` of the interaction holds them. */
  files?: Attachment[];
}

/** What became of a command or of an autocompletion; changes while one looks. */
export interface Interaction {
  readonly id: string;
  readonly token: string;
  /** When it was made, ms. */
  readonly at: number;
  /** The first answer came, be it only that the real one follows. */
  answered: boolean;
  answeredAt: number | null;
  deferred: boolean;
  /** For autocompletion. */
  choices: { name: string; value: unknown }[] | null;
  /** In order; also in the ledger. */
  messages: SentMessage[];
}

/** Somebody presses a button below a message of ours: the one with this label, or the n-th from 0. */
export interface Pressing {
  from: User;
  messageId: string;
  which: string | number;
}

export interface Match {
  method?: string;
  /** Tried on the path without the version. */
  path?: RegExp;
}

/** What happens to a call instead of its answer. */
export type RestFault =
  /** Discord's own refusal; the call has no effect. */
  | { status: number; body?: Payload; headers?: Record<string, string> }
  /** A proxy's page; the call has no effect. */
  | { html: number }
  /** The connection breaks before or after the call has taken effect. */
  | { drop: 'before' | 'after' }
  /** No answer, before or after the call has taken effect. */
  | { stall: 'before' | 'after' };

export interface RateLimit extends Match {
  /** For all routes at once. */
  global?: boolean;
  /** Seconds. */
  retryAfter: number;
  times?: number;
}

export interface SessionCounts {
  /** Connections that were made, whatever became of them. */
  connections: number;
  /** Sessions begun with an identify. */
  identified: number;
  /** Sessions taken up again. */
  resumed: number;
  /** Identifies and resumes that were turned away. */
  refused: number;
  /** Of those turned away: identifies that came too soon after another of their bucket. */
  tooSoon: number;
  /** Heartbeats that were heard: what they tell as received is forgotten, and not replayed. */
  heartbeats: number;
  /** Connected and ready now. */
  connected: number;
  /** The ids of those, in order. */
  shards: number[];
}

export interface Settings {
  /** How long every answer of the API takes, ms. */
  answerDelayMs: number;
  /** How often clients that connect from now on are to beat, ms. */
  heartbeatMs: number;
  /** How long a nonce is remembered. */
  nonceMemoryMs: number;
  /** How long a session waits for its client to come back. */
  sessionMemoryMs: number;
  /** How many sessions may be begun in a day: with one more, Discord resets the token. */
  identifiesPerDay: number;
  /** How many shards Discord recommends, and how many buckets there are, which may each identify once in this time. */
  shards: number;
  maxConcurrency: number;
  identifyEveryMs: number;
  /** How many guilds one shard may have: 2,500 at Discord. */
  guildsPerShard: number;
  /** How long an interaction waits for its first answer, and how long its token holds after that. */
  interactionAnswerMs: number;
  interactionTokenMs: number;
  /** Whether messages in the history tell their nonce. Not promised by Discord, so no. */
  noncesInHistory: boolean;
  /** Whether the bot's owner ticked the box for the content of messages. */
  messageContentGranted: boolean;
  /** Names that nobody may speak under through a webhook, beside those that Discord says. */
  forbiddenNames: string[];
  /** How large a file Discord takes; null: by the boosts of the server. */
  uploadBytes: number | null;
  /** Addresses of pictures that are refused. One that cannot be loaded is mostly just not shown. */
  refusedAvatars: string[];
  /** How many calls each route (and channel) takes in a window. */
  bucket: { limit: number; windowMs: number };
}

/**
 * A message was taken from us; a session begins or is taken up again; what it missed is replayed; somebody reads a
 * channel's history.
 */
export type FakeDiscordEvent = 'sent' | 'session' | 'replay' | 'history';

export interface FakeDiscord {
  /** For `channels.discord.api_root`: up to and with `/api`. */
  url: string;
  token: string;
  bot: User & { bot: true };
  /** The bot's id. */
  applicationId: string;
  /** Every call of the API. */
  calls: Call[];
  /** How many were answered as Discord counts for its ban (401, 403, our own 429). */
  invalid(): number;
  /** The ledger. */
  sent: SentMessage[];
  /** Those of our bot. */
  reactions: BotReaction[];
  /** As they were put last for all guilds; null before. */
  commands(): Payload[] | null;
  /** Channels in which typing was shown. */
  typing: string[];
  /** May be changed at any time. */
  settings: Settings;

  /** Our bot is in it from now on. */
  guild(setup: GuildSetup): void;
  /** The direct chat with somebody; its channel's id, always the same one. `channelId` only counts the first time. */
  dm(user: User, channelId?: string): string;
  /** A new channel of a guild. */
  channel(guildId: string, setup: ChannelSetup): void;
  /** A thread in a channel of a guild; its id. */
  thread(parentChannelId: string, setup?: ThreadSetup): string;
  /**
   * Somebody begins a post in a forum; its id, which is also that of its first message. That message and the thread are
   * told of separately, in either order (reality.md 4.6).
   */
  post(forumId: string, post: { name: string; from: User; content: string; messageFirst?: boolean }): string;
  /** The bot is kicked. */
  leave(guildId: string): void;
  /** The guild cannot be reached for a while, or can be again. */
  outage(guildId: string, on: boolean): void;
  removeChannel(channelId: string): void;
  /** A thread is put away: a message opens it again, unless it is locked. */
  archive(threadId: string, options?: { locked?: boolean }): void;
  /** A guild is boosted to this tier (1 to 3): its files may be larger. */
  boost(guildId: string, tier: number): void;
  /** What roles and members may do in a channel, from now on. */
  permit(channelId: string, overwrites: Overwrite[]): void;
  setRoles(guildId: string, userId: string, roles: string[]): void;
  /** Messages of ours to a channel are refused with a code (50007: they closed their direct messages). */
  refuseIn(channelId: string, code: number | null): void;

  /**
   * Stored in the channel's history; dispatched to whoever is connected. While nobody is, it is only history, but
   * for a session that may still be resumed.
   */
  say(saying: Saying): { id: string };
  /** The gateway brings a message once more, with the same id. */
  tellAgain(channelId: string, id: string): void;
  edit(channelId: string, id: string, content: string): void;
  /** Addresses that Discord has fetched for previews below our messages, as soon as it had them. */
  links: string[];
  /** Discord puts a preview below a message: an update that is no edit. */
  unfurl(channelId: string, id: string): void;
  remove(channelId: string, ...ids: string[]): void;
  /** A message as the API shows it; null where there is none. */
  message(channelId: string, id: string): Payload | null;
  /** A webhook that somebody else made; its id. `owner` is a person or another bot. */
  webhook(channelId: string, name: string, owner: User): string;
  /** `avatar`: the picture's hash, as messages show it. */
  webhooks(
    channelId: string,
  ): { id: string; name: string; owner: string; avatar: string | null; picture: Buffer | null }[];
  /** An administrator deletes it. */
  removeWebhook(id: string): void;
  /** An administrator renames it, or changes its picture. */
  changeWebhook(id: string, changes: Payload): void;
  /** An administrator moves it to another channel. */
  moveWebhook(id: string, channelId: string): void;
  /** Somebody else says something through a webhook. */
  sayThrough(id: string, content: string): { id: string };
  command(invocation: Invocation): Interaction;
  /** Somebody reacts to a message. */
  react(from: User, channelId: string, messageId: string, emoji: string): void;
  press(pressing: Pressing): Interaction;
  /** The event of an interaction comes once more. */
  again(interaction: Interaction): void;
  /** The option that is `focused` is being typed. */
  autocomplete(invocation: Invocation): Interaction;
  attachment(
    name: string,
    bytes: Buffer,
    contentType?: string | null,
    options?: AttachmentOptions,
  ): Attachment;
  /** Links signed until now lead nowhere; asking for the message gives new ones. */
  expireLinks(): void;
  /** How often a file was asked for. */
  fetched(attachment: Attachment): number;
  /** Any event, to whoever gets such events. */
  dispatch(name: string, data: Payload): void;

  /**
   * Closes every gateway connection, or that of one shard; the sessions may be resumed unless the code says otherwise. 1005 is a close without
   * a code, 1006 a connection that just ends.
   */
  closeAll(code: number, shardId?: number): void;
  /** Op 7; `andClose` ends the connection in the same packet. */
  reconnect(how?: { andClose: boolean }): void;
  /** Whoever connects gets op 9 before anything else. */
  refuseBeforeHello(on: boolean): void;
  /** Op 9; the next session is new unless it is resumable. */
  invalidate(resumable: boolean): void;
  /** Op 9 right after the next RESUMED, in the same packet. */
  invalidateAfterResume(): void;
  /** Op 9 to so many of the next identifies. */
  invalidateIdentifies(times: number): void;
  /** From now on nothing that is begun or resumed is answered. */
  fallSilent(): void;
  /** No acknowledgements of heartbeats. */
  muteHeartbeats(on: boolean): void;
  /** Every identify is answered by closing with this code; null ends it. */
  refuseIdentify(code: number | null): void;
  /** Connections of the gateway break, as by a cable; with `everything` those of the API, too. */
  hangUp(what?: 'gateway' | 'everything'): void;
  sessions(): SessionCounts;

  /** The next `times` (1) calls that match fail. */
  fail(match: Match, fault: RestFault, limits?: { times?: number }): void;
  /** The next `times` (1) calls that match, of any route if global, get a 429. */
  rateLimit(limit: RateLimit): void;
  /** Ends all faults, of the API and of the gateway. */
  heal(): void;
  callsTo(method: string, path: RegExp): Call[];
  onEvent(listener: (event: FakeDiscordEvent) => void): void;

  /** Resolves as soon as the condition holds; it is looked at after everything that happens. */
  until(condition: () => boolean, what?: string, timeoutMs?: number): Promise<void>;
  /** Goes away: connections are refused until `open`. */
  shut(): Promise<void>;
  open(): Promise<void>;
  close(): Promise<void>;
}
