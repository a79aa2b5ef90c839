/**
 * The port of a channel: the connection to one platform account. Optional methods are capabilities, called as
 * `channel.setTyping?.(…)`. No base class, no capability flags.
 */

import type { Clock } from './clock.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Log } from './log.js';
import type { Address, Attachment, InboundBatch } from './message.js';
import type { Outward } from './network.js';

/** Resolves when the whole batch is on disk; only then may the channel acknowledge it. */
export type Receive = (batch: InboundBatch) => Promise<Reception>;

export interface Reception {
  /** Messages that were not admitted, by platform id. Nothing of them is stored. */
  rejected: { platformMessageId: string; why: 'unknown sender' | 'unlisted group' | 'closed' }[];
  /** Outcome of each choice, by the id of the press. Absent if there was none. */
  choices?: ReadonlyMap<string, ChoiceOutcome>;
  /** Resolves when everything accepted on this channel is answered and sent. */
  settled(): Promise<void>;
}

/** `over`: already answered, or expired. */
export type ChoiceOutcome = 'taken' | 'over' | 'not yours';

export interface Recipient {
  address: Address;
  threadId: string | null;
  kind: 'direct' | 'group';
}

/** One message of a reply: visible text and its marks. Offsets and lengths in UTF-16 units. */
export interface Part {
  text: string;
  marks: Mark[];
  /** Offset in `text` of the gateway's line about what the answer saved. */
  note?: number;
  /** A file sent with the text as its caption; read when it is sent. */
  file?: OutgoingFile;
  /** Buttons below the text. Channels without `buttons` never get any: their text says what to answer. */
  choices?: Choice[];
  /** A reaction to the message with this platform id, instead of a message. The text is empty. */
  reaction?: { platformMessageId: string; emoji: string };
  /** Words that become a voice note when sent, instead of a message. The text is empty. */
  speech?: { text: string; voice: string };
}

export interface Choice {
  label: string;
  /** Returned by a press (`InboundChoice.value`): at most 60 letters, digits, `-` and `.`. */
  value: string;
}

export interface OutgoingFile {
  /** Chosen by the gateway, never by a sender or a model. */
  path: string;
  /** The file name shown to the receiver. */
  name: string;
  /** Length in seconds of a voice note (OGG with Opus). Absent: not a voice note. */
  voiceSeconds?: number;
}

/** Marks may nest but not partially overlap; `code` and `pre` contain no others. */
export type Mark = { offset: number; length: number } & (
  | { kind: 'bold' | 'italic' | 'strike' | 'code' | 'quote' }
  | { kind: 'pre'; language: string }
  | { kind: 'link'; url: string }
);

/** Name and picture of the speaking persona, shown as far as the platform can. */
export interface Appearance {
  personaId: PersonaId;
  name: string;
  avatar: string | null;
  /** The only persona in the chat: if the platform cannot show name and picture, the text gets no prefix. */
  alone?: true;
}

/** The speaker of a part, as the platform shows it. */
export interface ShownSpeaker {
  /** The speaking persona. Absent for the gateway's own messages. */
  speaker?: PersonaId;
  /**
   * Set in chats with several personas. Platforms that cannot show it get the name in bold before the text of the part
   * that `leads`.
   */
  appearance?: Appearance | undefined;
  leads?: boolean;
}

export interface SendOptions extends ShownSpeaker {
  /** A platform message id in the same chat. */
  replyTo: string | null;
  /** Name of the speaker, for channels that show it. */
  personaName: string;
  /** Idempotency key: the same for all attempts at this message. At most 24 letters, digits and `-`. */
  key: string;
  /** Attempts before this one, one of which may have arrived, and the message's creation time (ms). */
  earlierTries: number;
  createdAt: number;
  signal: AbortSignal;
}

/** Whether a message arrived whose send had an uncertain outcome. */
export type Delivered =
  | { kind: 'found'; platformMessageId: string }
  | { kind: 'absent' }
  /** The platform cannot say. */
  | { kind: 'unknown' }
  /** The platform cannot say now: ask again later. */
  | { kind: 'later'; reason: string; retryAfterMs?: number };

export type FetchResult =
  | { kind: 'fetched'; bytes: Buffer }
  /** Larger than `maxBytes`; the rest was not read. */
  | { kind: 'too large' }
  /** Missing or expired. `reason` is for the operator. */
  | { kind: 'gone'; reason: string }
  /** A temporary failure. */
  | { kind: 'unreachable'; reason: string };

export type SendResult =
  | { kind: 'sent'; platformMessageId: string }
  /** Permanently refused (blocked, kicked, malformed): do not retry. */
  | { kind: 'refused'; reason: string }
  /**
   * A temporary failure. `taken: 'no'`: a retry cannot show the message twice, because it was refused, never sent, or
   * has a key that the platform recognises. `unknown`: the connection broke after the request was written. `notice`:
   * for owners, once per key.
   */
  | {
      kind: 'unreachable';
      reason: string;
      taken: 'no' | 'unknown';
      retryAfterMs?: number;
      notice?: { key: string; text: string };
    }
  /** The chat has a new address: record it and send there. */
  | { kind: 'moved'; address: Address };

export interface ChannelLimits {
  /** Outbound messages per second for the whole account. */
  messagesPerSecond: number;
  /** Messages that may go to one chat at once before its refill rate applies. */
  perChatBurst: number;
  /** Refill rate of a chat's budget, in messages per second. */
  perChatPerSecond: { direct: number; group: number };
  /** Replaces `conversation.debounce_ms` where bursts cannot happen (a pipe). */
  debounceMs?: number;
}

export interface ChannelStatus {
  connected: boolean;
  /** Start of this state, ms. */
  since: number;
  lastError: string | null;
}

/** A chat command as shown in the platform's menu. */
export interface CommandDescription {
  name: string;
  aliases: string[];
  description: string;
  /** First words of its argument. Absent if it takes free text or nothing. */
  verbs?: CommandVerb[];
}

export interface CommandVerb {
  name: string;
  description: string;
  /** The text after the verb. Absent if there is none. */
  rest?: { name: string; description: string; required: boolean; suggest?: 'persona' };
}

/** The platform's calls to us, for the HTTP listener. */
export interface Webhook {
  /** `/telegram/webhook` */
  path: string;
  /** The header with the secret. */
  secretHeader: string;
  /** Whether to read a call with this secret at all. Takes constant time for wrong ones. */
  admits(secret: string | null): boolean;
  /** Handles a call if the secret is right. Resolves to the HTTP status. */
  handle(body: unknown, secret: string | null): Promise<number>;
}

export interface ChannelTraits {
  /** Letters only; the prefix of all ids of this channel. */
  readonly name: string;
  readonly limits: ChannelLimits;
  /** Shows a persona's name and picture even if it is the only one (`Appearance.alone`). */
  readonly facesAlone?: true;
  /** The platform deduplicates resent messages, so a send may be retried more often. */
  readonly recognisesResends?: true;
  /** Shows a file with `voiceSeconds` as a voice note. */
  readonly voiceNotes?: true;
  /** Shows `Part.choices` as buttons. Without it, the text says what to answer. */
  readonly buttons?: true;
  /** The only emoji that `react` takes. Absent: any. */
  readonly reactions?: readonly string[];
  /** Maximum characters per message in people's clients, which split longer texts. Absent: no limit. */
  readonly typedAtMost?: readonly number[];
  /** Absent if the platform does not call us. */
  readonly webhook?: Webhook;
}

export interface Channel extends ChannelTraits {
  /**
   * Starts intake and returns soon. Never rejects for outages, rejected logins or conflicts: `status` shows them and
   * the channel recovers. When `signal` aborts, intake ends and pending `receive` calls are awaited. Sending works
   * until `stop`.
   */
  start(receive: Receive, signal: AbortSignal): Promise<void>;

  /** Ends intake and releases all resources. Never rejects; idempotent. */
  stop(): Promise<void>;

  status(): ChannelStatus;

  /**
   * Splits Markdown into messages within the platform's limits without losing visible text. Never empty for text that
   * is not blank. Leaves `spare` characters free in each (for a name before the text). Pure.
   */
  compose(markdown: string, spare?: number): Part[];

  /** Sends one message. Never throws. */
  send(to: Recipient, part: Part, options: SendOptions): Promise<SendResult>;

  /**
   * Replaces a part sent with the same options. `sent`, with the same id: the platform now shows exactly this part.
   * `refused`: it never will (message gone or too old). Never throws.
   */
  edit?(to: Recipient, platformMessageId: string, part: Part, options: SendOptions): Promise<SendResult>;

  /** Deletes a message sent with the same options. Best effort: never throws, never retries. */
  remove?(to: Recipient, platformMessageId: string, options: SendOptions): Promise<void>;

  /** Sets our reaction to a message. Idempotent; never throws. */
  react?(to: Recipient, platformMessageId: string, emoji: string, options: SendOptions): Promise<SendResult>;

  /** State for `wasDelivered`, taken and stored before a send. Opaque; null: nothing is known. */
  watermark?(to: Recipient): string | null;

  /**
   * Whether a message with an uncertain send has arrived; invisible to the chat. Awaits `beforeAsking` before each
   * request: it returns the ids of all other known messages, or null to end the search. Never throws.
   */
  wasDelivered?(
    to: Recipient,
    part: Part,
    options: SendOptions,
    search: { watermark: string; beforeAsking: () => Promise<ReadonlySet<string> | null> },
  ): Promise<Delivered>;

  /**
   * Shows a preview of text being written: not a message, and gone when the message is sent or nothing follows. False
   * if this chat has no previews; then an edited message can be used. Never throws, never retries.
   */
  preview?(to: Recipient, part: Part, options: SendOptions): Promise<boolean>;

  /** Shows a typing indicator for some seconds. Best effort: never throws, never retries. */
  setTyping?(to: Recipient, personaId?: PersonaId): Promise<void>;

  /** Fetches an attachment. Never throws; returns soon after the signal aborts. */
  fetch?(attachment: Attachment, ask: { maxBytes: number; signal: AbortSignal }): Promise<FetchResult>;

  /**
   * Whether the platform shows that this message (a native command) awaits an answer. The answer is then sent as a
   * reply, even in direct chats.
   */
  awaitsAnswer?(platformMessageId: string): boolean;

  /** Names under which people see our account; empty until known. */
  names?(): string[];

  /** Whether a person may manage that group. Throws if the platform cannot be asked. */
  isAdministrator?(chat: Address, sender: Address): Promise<boolean>;

  /** Registers the chat commands in the platform's menu. Throws if the platform cannot be reached. */
  announceCommands?(commands: CommandDescription[]): Promise<void>;

  /** Handles an uncaught error: true if this platform's library threw it. The channel then reconnects. */
  survives?(error: unknown): boolean;

  /** For `doctor`: logs in and returns the identity and warnings. Throws with the reason on failure. */
  check?(): Promise<{ identity: string; warnings: string[] }>;
}

// Step 7 of the route: outbox entries, and parts of a reply shown before its text is final.

/** An outbox entry. Unique by (origin, persona, part). */
export interface NewDelivery {
  /**
   * `turn:<id>`, `tool:<turn id>:<key>`, `command:<id>`, `pairing:<id>`, `notice:<id>`, `late:<delivery id>`,
   * `greeting:<room>`, `news:<key>:<chat>`, `asked:<call>:<chat>`, `denied:<call>`, `interrupted:<turn id>`.
   */
  origin: string;
  personaId: PersonaId | null;
  /** Name of the speaker, for channels that show one. */
  speaker: string;
  part: number;
  body: Part;
  /** Set if people must see which of several personas speaks. */
  appearance?: Appearance | undefined;
  /** The platform message to reply to, if shown as a reply. */
  replyTo: string | null;
}

export interface Delivery extends NewDelivery {
  id: number;
  chatId: ChatId;
  channel: string;
  address: Address;
  threadId: string | null;
  kind: 'direct' | 'group';
  createdAt: number;
  /** Attempts so far. */
  attempts: number;
  /** Attempts with an unknown outcome: broken connections, and crashes. */
  uncertainCuts: number;
  uncertainCrashes: number;
  /** Earliest time of the next attempt. */
  notBefore: number;
  /** Set if this part was shown with this key before the text was final; its message id, or null if unknown. */
  shown?: { platformMessageId: string | null; key: string };
  /** `Channel.watermark` of the last attempt while its outcome is unknown. Absent if the channel has none. */
  mark?: string;
}

/** A part of a reply shown before its text is final. */
export interface ShownPart {
  body: Part;
  /** As in `NewDelivery`. */
  speaker: string;
  appearance?: Appearance | undefined;
  /** `SendOptions.key` of the message that shows it. */
  key: string;
  /** null while it is being sent, or if unknown. */
  platformMessageId: string | null;
  sentAt: number;
  /** `Channel.watermark` of the first send. Absent if the channel has none. */
  mark?: string;
}

/** A persona's first words in a room, for the transcript; overheard by the others. */
export interface Greeting {
  room: RoomId;
  personaId: PersonaId;
  text: string;
  hearers: PersonaId[];
}

export interface Post {
  chatId: ChatId;
  channel: string;
  address: Address;
  threadId: string | null;
  kind: 'direct' | 'group';
  delivery: NewDelivery;
  precedes?: number;
  /** Its text for the transcript, if any; added only with a new entry. */
  greeting?: Greeting;
  now: number;
}

// Everything a channel gets from the gateway, besides `Receive`.

export interface ChannelHost<Options> {
  /** The channel's section of config.yaml. */
  options: Options;
  state: ChannelState;
  /** The cursor of the last stored batch of an account, or of a bot in it; null before the first. */
  cursor(account: string): Promise<string | null>;
  /** Rooms that people have used, each with its last stored message, to fetch missed ones. */
  newest(): Promise<{ address: Address; threadId: string | null; platformMessageId: string }[]>;
  /** Stored messages of its chats: the last received per room, and the newest sent overall. */
  recorded(): Promise<{ address: Address; platformMessageId: string }[]>;
  /** The part sent with this key, as shown; null if there is none. */
  sentPart(key: string): Promise<Part | null>;
  personaNames(chat: Address): Promise<string[]>;
  /** Records in the audit log that a device was linked to this number. */
  noteLink(number: string): void;
  /** Shows text art (a QR code) in the terminal, or beside the log without one. */
  show(picture: string): void;
  /** Connections to the platform's servers. */
  outward: Outward;
  clock: Clock;
  newId(): string;
  log: Log;
}

/** The channel's own named values in the store. */
export interface ChannelState {
  /** Returns only existing names. */
  get(names: string[]): Promise<Map<string, string>>;
  /** Writes all values or none; null removes one. On disk when it resolves. */
  set(values: ReadonlyMap<string, string | null>): Promise<void>;
  clear(): Promise<void>;
}
