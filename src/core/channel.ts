/** The port of a channel, the connection to one platform account. Optional methods are capabilities. */

import type { Clock } from './clock.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Log } from './log.js';
import type { Address, Attachment, InboundBatch } from './message.js';
import type { Outward } from './network.js';
import type { Portrait } from './persona.js';

/** Resolves when the batch is on disk; only then may the channel acknowledge it. */
export type Receive = (batch: InboundBatch) => Promise<Reception>;

export interface Reception {
  rejected: { platformMessageId: string; why: 'unknown sender' | 'unlisted group' | 'closed' }[];
  choices?: ReadonlyMap<string, ChoiceOutcome>;
  settled(): Promise<void>;
}

/** `kept`: taken, and the buttons stay until the message is edited. */
export type ChoiceOutcome = 'taken' | 'kept' | 'over' | 'not yours';

export interface Recipient {
  address: Address;
  threadId: string | null;
  kind: 'direct' | 'group';
}

export interface Part {
  text: string;
  marks: Mark[];
  note?: number;
  /** Sent with the text as its caption. */
  file?: OutgoingFile;
  choices?: Choice[];
  /** Instead of a message; the text is empty. */
  reaction?: { platformMessageId: string; emoji: string };
  /** Becomes a voice note when sent; the text is empty. */
  speech?: { text: string; voice: string };
}

export interface Choice {
  label: string;
  value: string;
}

export interface OutgoingFile {
  path: string;
  name: string;
  /** Of a voice note (OGG with Opus). */
  voiceSeconds?: number;
}

/** Marks may nest but not partially overlap; `code` and `pre` contain no others. */
export type Mark = { offset: number; length: number } & (
  | { kind: 'bold' | 'italic' | 'strike' | 'code' | 'quote' }
  | { kind: 'pre'; language: string }
  | { kind: 'link'; url: string }
);

/** Name and picture of a persona, shown as far as the platform can. */
export interface Appearance {
  personaId: PersonaId;
  name: string;
  avatar: string | null;
  /** The only persona in the chat: where the platform cannot show it, the text gets no prefix. */
  alone?: true;
}

export interface ShownSpeaker {
  speaker?: PersonaId;
  /** In chats with several personas. Where it cannot be shown, the part that `leads` begins with the name in bold. */
  appearance?: Appearance | undefined;
  leads?: boolean;
}

export interface SendOptions extends ShownSpeaker {
  replyTo: string | null;
  personaName: string;
  /** The same for all attempts. At most 24 letters, digits and `-`. */
  key: string;
  /** Attempts before this one, one of which may have arrived. */
  earlierTries: number;
  /** Of a message that is shown: when it was first sent. */
  createdAt: number;
  signal: AbortSignal;
}

/** Whether a message arrived whose send had an uncertain outcome; `later`: ask again. */
export type Delivered =
  | { kind: 'found'; platformMessageId: string }
  | { kind: 'absent' }
  | { kind: 'unknown' }
  | { kind: 'later'; reason: string; retryAfterMs?: number | undefined };

export type FetchResult =
  | { kind: 'fetched'; bytes: Buffer }
  | { kind: 'too large' }
  /** `reason`: for the operator. */
  | { kind: 'gone'; reason: string }
  | { kind: 'unreachable'; reason: string };

export type SendResult =
  | { kind: 'sent'; platformMessageId: string }
  /** Permanently: blocked, kicked, malformed. */
  | { kind: 'refused'; reason: string }
  /**
   * `taken: 'no'`: a retry cannot show the message twice. `unknown`: the connection broke after the request was
   * written. `notice`: for owners, once per key.
   */
  | {
      kind: 'unreachable';
      reason: string;
      taken: 'no' | 'unknown';
      retryAfterMs?: number | undefined;
      notice?: { key: string; text: string };
    }
  | { kind: 'moved'; address: Address };

export interface ChannelLimits {
  messagesPerSecond: number;
  perChatBurst: number;
  perChatPerSecond: { direct: number; group: number };
  /** Replaces `conversation.debounce_ms` where bursts cannot happen. */
  debounceMs?: number;
}

export interface ChannelStatus {
  connected: boolean;
  since: number;
  lastError: string | null;
}

export interface CommandDescription {
  name: string;
  aliases: string[];
  description: string;
  verbs?: CommandVerb[];
}

export interface CommandVerb {
  name: string;
  description: string;
  rest?: { name: string; description: string; required: boolean; suggest?: 'persona' };
  /** Describes a file that may come with it, where commands have fields of their own. */
  file?: string;
}

export interface Webhook {
  path: string;
  secretHeader: string;
  /** Takes constant time for wrong secrets. */
  admits(secret: string | null): boolean;
  /** Resolves to the HTTP status. */
  handle(body: unknown, secret: string | null): Promise<number>;
}

/**
 * A further connection by which messages arrive, under a lease of its own at any gateway. Its channel's holder answers and
 * sends. Starts once, and ends with its channel object at the latest.
 */
export interface Connection extends Pick<Channel, 'start' | 'stop' | 'status'> {
  /** The lease is `channel:<name>:<account>`. */
  readonly account: string;
}

interface ChannelTraits {
  /** Letters only; the prefix of all ids of this channel. */
  readonly name: string;
  readonly limits: ChannelLimits;
  readonly facesAlone?: true;
  readonly recognisesResends?: true;
  readonly voiceNotes?: true;
  readonly buttons?: true;
  /** A growing reply is shown anew this often, instead of about once a second. */
  readonly liveEveryMs?: number;
  readonly reactions?: readonly string[];
  /** Clients split longer texts. */
  readonly typedAtMost?: readonly number[];
  readonly webhook?: Webhook;
  /** Whether a persona's picture comes before its first greeting, because nothing else here shows it. */
  introduces?(personaId: PersonaId): boolean;
}

export interface Channel extends ChannelTraits {
  /** Called before the first send: reads what another gateway may have noted in the store since this one was made. */
  prepare?(): Promise<void>;

  /**
   * Returns soon. Never rejects for outages or rejected logins: `status` shows them and the channel recovers. When the
   * signal aborts, intake ends and pending `receive` calls are awaited; sending works until `stop`.
   */
  start(receive: Receive, signal: AbortSignal): Promise<void>;

  /**
   * Takes what arrives at this gateway while another one holds the channel: a webhook's calls, the page's messages. The
   * holder answers. Returns soon; `start` may follow.
   */
  listen?(receive: Receive, signal: AbortSignal): Promise<void>;

  /** Never rejects; idempotent. */
  stop(): Promise<void>;

  status(): ChannelStatus;

  /** Splits Markdown into messages without losing visible text, leaving `spare` characters free in each. Pure. */
  compose(markdown: string, spare?: number): Part[];

  /** Never throws. */
  send(to: Recipient, part: Part, options: SendOptions): Promise<SendResult>;

  /** `sent`, with the same id: the platform now shows exactly this part. `refused`: it never will. Never throws. */
  edit?(to: Recipient, platformMessageId: string, part: Part, options: SendOptions): Promise<SendResult>;

  /** Best effort: never throws, never retries. True: it is gone. */
  remove?(to: Recipient, platformMessageId: string, options: SendOptions): Promise<boolean>;

  /** Idempotent; never throws. */
  react?(to: Recipient, platformMessageId: string, emoji: string, options: SendOptions): Promise<SendResult>;

  /** State for `wasDelivered`, taken before a send. Opaque; null: nothing is known. */
  watermark?(to: Recipient): string | null;

  /**
   * Whether a message with an uncertain send has arrived; invisible to the chat. Awaits `beforeAsking` before each
   * request: the ids of all other known messages, or null to end the search. Never throws.
   */
  wasDelivered?(
    to: Recipient,
    part: Part,
    options: SendOptions,
    search: { watermark: string; beforeAsking: () => Promise<ReadonlySet<string> | null> },
  ): Promise<Delivered>;

  /** Text being written: not a message, gone when it is sent. False: this chat has no previews. Never throws. */
  preview?(to: Recipient, part: Part, options: SendOptions): Promise<boolean>;

  /** Best effort: never throws, never retries. */
  setTyping?(to: Recipient, personaId?: PersonaId): Promise<void>;

  /** Never throws; returns soon after the signal aborts. */
  fetch?(attachment: Attachment, ask: { maxBytes: number; signal: AbortSignal }): Promise<FetchResult>;

  /**
   * Whether this native command awaits an answer, which is then sent as a reply, even in direct chats. Of a group's it may
   * have to be looked up, because it came by another gateway's connection.
   */
  awaitsAnswer?(platformMessageId: string): boolean | Promise<boolean>;

  /**
   * The same at all gateways, and made anew by each call. Cheap; the list may grow, once the platform has told how many
   * there are to be. Only where `ChannelHost.spread` is set: otherwise `start` opens all connections.
   */
  connections?(): Promise<readonly Connection[]>;

  names?(): string[];

  /** Throws if the platform cannot be asked. */
  isAdministrator?(chat: Address, sender: Address): Promise<boolean>;

  /** Throws if the platform cannot be reached. */
  announceCommands?(commands: CommandDescription[]): Promise<void>;

  /** Whether this platform's library threw an uncaught error; the channel then reconnects. */
  survives?(error: unknown): boolean;

  /** For `doctor` and the setup: logs in. Throws with the reason. `invite`: the address that adds the bot somewhere. */
  check?(): Promise<{ identity: string; warnings: string[]; invite?: string }>;

  /** A code to type on the phone with this number, which links the gateway. Throws Fault with the reason. */
  linkCode?(phone: string): Promise<string>;
}

/** Unique by (origin, persona, part). */
export interface NewDelivery {
  /**
   * `turn:<id>`, `tool:<turn id>:<key>`, `command:<id>`, `pairing:<id>`, `notice:<id>`, `late:<delivery id>`,
   * `greeting:<room>`, `face:<chat>`, `news:<key>:<chat>`, `asked:<call>:<chat>`, `denied:<call>`, `interrupted:<turn id>`.
   */
  origin: string;
  personaId: PersonaId | null;
  speaker: string;
  part: number;
  body: Part;
  appearance?: Appearance | undefined;
  replyTo: string | null;
  /** Nothing is added if there was one before, instead of a fault. */
  once?: true;
}

export interface Delivery extends NewDelivery, Recipient {
  id: number;
  chatId: ChatId;
  channel: string;
  createdAt: number;
  attempts: number;
  /** Attempts with an unknown outcome: broken connections, and crashes. */
  uncertainCuts: number;
  uncertainCrashes: number;
  notBefore: number;
  /** When the attempt under way began. */
  begunAt?: number;
  /** Shown with this key before the text was final; the id is null if unknown. */
  shown?: { platformMessageId: string | null; key: string; sentAt: number };
  /** `Channel.watermark` of the last attempt while its outcome is unknown. */
  mark?: string;
}

export interface ShownPart {
  body: Part;
  speaker: string;
  appearance?: Appearance | undefined;
  key: string;
  /** null while it is being sent, or if unknown. */
  platformMessageId: string | null;
  sentAt: number;
  mark?: string;
}

/** A persona's first words in a room; overheard by the others. */
export interface Greeting {
  room: RoomId;
  personaId: PersonaId;
  text: string;
  hearers: PersonaId[];
}

export interface Post extends Recipient {
  chatId: ChatId;
  channel: string;
  delivery: NewDelivery;
  precedes?: number;
  /** Added to the transcript with a new entry. */
  greeting?: Greeting;
  now: number;
}

export interface ChannelHost<Options> {
  options: Options;
  /** Further connections are held one by one, perhaps by other gateways (`Channel.connections`). */
  spread?: true;
  state: ChannelState;
  /** Of an account, or of a bot in it; null before the first. */
  cursor(account: string): Promise<string | null>;
  /** The last stored message of each room, to fetch missed ones. */
  newest(): Promise<{ address: Address; threadId: string | null; platformMessageId: string }[]>;
  /** The last received per room, and the newest sent overall. */
  recorded(): Promise<{ address: Address; platformMessageId: string }[]>;
  sentPart(key: string): Promise<Part | null>;
  personaNames(chat: Address): Promise<string[]>;
  /** null: the persona has no picture of its own there. Without a chat: of the library. Never rejects. */
  portrait(chat: Address | null, personaId: PersonaId): Promise<Portrait | null>;
  /** For the audit log. */
  noteLink(number: string): void;
  /** Text art (a QR code), in the terminal or beside the log. */
  show(picture: string): void;
  /** The code to be scanned, valid until the next; null: linked. */
  linking(code: string | null): void;
  outward: Outward;
  clock: Clock;
  newId(): string;
  log: Log;
}

export interface ChannelState {
  get(names: string[]): Promise<Map<string, string>>;
  /** All or none; null removes one. On disk when it resolves. */
  set(values: ReadonlyMap<string, string | null>): Promise<void>;
  clear(): Promise<void>;
}
