/**
 * The port of a channel: the connection to one platform account. An optional method is a capability, called as
 * `channel.setTyping?.(…)`. No base class, no capability flags.
 */

import type { Clock } from './clock.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Log } from './log.js';
import type { Address, Attachment, InboundBatch } from './message.js';
import type { Outward } from './network.js';

/** Resolves when the whole batch is on disk; only then may the channel acknowledge it to the platform. */
export type Receive = (batch: InboundBatch) => Promise<Reception>;

/** The result of a batch, for platforms on which somebody waits for it. */
export interface Reception {
  /** Messages that were not admitted, by platform id, with the reason. Nothing of them is stored. */
  rejected: { platformMessageId: string; why: 'unknown sender' | 'unlisted group' | 'closed' }[];
  /** What became of each choice of the batch, by the id of the press; left out if there was none. */
  choices?: ReadonlyMap<string, ChoiceOutcome>;
  /** Resolves when everything accepted on this channel is answered and sent. */
  settled(): Promise<void>;
}

/** `over`: it was answered already, or its time has run out. */
export type ChoiceOutcome = 'taken' | 'over' | 'not yours';

/** Where a message is sent. */
export interface Recipient {
  address: Address;
  threadId: string | null;
  kind: 'direct' | 'group';
}

/** One message of a reply: its visible text and the marks on it. Offsets and lengths in UTF-16 units. */
export interface Part {
  text: string;
  marks: Mark[];
  /** Where in `text` the gateway's own line on what the answer saved begins. */
  note?: number;
  /** A file to send with the text below it. It is read from the disk when it is sent. */
  file?: OutgoingFile;
  /** Buttons below the text. A channel without `buttons` never gets any: there, the text says what to answer. */
  choices?: Choice[];
  /** Instead of a message: a reaction to the message with this platform id. The text is empty. */
  reaction?: { platformMessageId: string; emoji: string };
  /** Instead of a message: words that become a voice note when it is their turn. The text is empty. */
  speech?: { text: string; voice: string };
}

/** A button. */
export interface Choice {
  label: string;
  /** What a press brings back (`InboundChoice.value`): at most 60 letters, digits, `-` and `.`. */
  value: string;
}

export interface OutgoingFile {
  /** Chosen by the gateway, never by a sender or a model. */
  path: string;
  /** The file name that the receiver sees. */
  name: string;
  /** Set for a voice note (OGG with Opus): its length in seconds. */
  voiceSeconds?: number;
}

/** Marks may nest but not overlap partially; `code` and `pre` contain no others. */
export type Mark = { offset: number; length: number } & (
  | { kind: 'bold' | 'italic' | 'strike' | 'code' | 'quote' }
  | { kind: 'pre'; language: string }
  | { kind: 'link'; url: string }
);

/** The name and picture of the speaking persona, shown as far as the platform can. */
export interface Appearance {
  personaId: PersonaId;
  name: string;
  /** The URL of a picture. */
  avatar: string | null;
  /** No other persona takes part: where the platform cannot show name and picture, nothing stands before the text. */
  alone?: true;
}

export interface SendOptions {
  /** A platform message id in the same chat. */
  replyTo: string | null;
  /** The name of the speaker, for channels that show it. */
  personaName: string;
  /** The speaking persona; left out for the gateway's own messages. */
  speaker?: PersonaId;
  /**
   * Set when the chat has several personas: the platform shows this name and picture if it can; otherwise the name
   * stands in bold before the text of the part that `leads`.
   */
  appearance?: Appearance | undefined;
  /** Whether this is the first part of a message. */
  leads?: boolean;
  /**
   * Idempotency key: the same for every attempt at this message, and for no other. Letters, digits and `-`, at most 24.
   */
  key: string;
  /** Attempts before this one, and when the message was created (ms). An earlier attempt may have arrived. */
  earlierTries: number;
  createdAt: number;
  signal: AbortSignal;
}

/** Whether a message whose send had no certain outcome has arrived. */
export type Delivered =
  | { kind: 'found'; platformMessageId: string }
  | { kind: 'absent' }
  /** Nobody can tell. */
  | { kind: 'unknown' }
  /** It cannot be told now: ask again later. */
  | { kind: 'later'; reason: string; retryAfterMs?: number };

/** The result of fetching a file. */
export type FetchResult =
  | { kind: 'fetched'; bytes: Buffer }
  /** Larger than asked for; the rest was not read. */
  | { kind: 'too large' }
  /** The file does not exist or has expired. `reason` is for the operator. */
  | { kind: 'gone'; reason: string }
  /** A temporary failure. */
  | { kind: 'unreachable'; reason: string };

export type SendResult =
  | { kind: 'sent'; platformMessageId: string }
  /** The platform will never accept it (blocked, kicked, malformed): do not retry. */
  | { kind: 'refused'; reason: string }
  /**
   * A temporary failure. `taken` says whether a retry may show the message twice: `no` if the platform refused it, was
   * never reached, or recognises the message by its key; `unknown` if the connection broke after the request was
   * written. `notice` is something that an owner should hear, once for each key.
   */
  | {
      kind: 'unreachable';
      reason: string;
      taken: 'no' | 'unknown';
      retryAfterMs?: number;
      notice?: { key: string; text: string };
    }
  /** The chat has a new address: record it and send again there. */
  | { kind: 'moved'; address: Address };

export interface ChannelLimits {
  /** Outbound messages per second for the whole account. */
  messagesPerSecond: number;
  /** How many messages may go to one chat at once before its refill rate applies. */
  perChatBurst: number;
  /** Refill rate of one chat's budget, in messages per second. */
  perChatPerSecond: { direct: number; group: number };
  /** Replaces `conversation.debounce_ms` on channels where bursts cannot happen (a pipe). */
  debounceMs?: number;
}

export interface ChannelStatus {
  connected: boolean;
  /** When it entered this state, ms. */
  since: number;
  lastError: string | null;
}

/** A chat command as the platform's own menu shows it. */
export interface CommandDescription {
  name: string;
  aliases: string[];
  description: string;
  /** The words its argument may start with; left out if it takes free text or nothing. */
  verbs?: CommandVerb[];
}

export interface CommandVerb {
  name: string;
  description: string;
  /** The text after the verb; left out if there is none. */
  rest?: { name: string; description: string; required: boolean; suggest?: 'persona' };
}

/** Where the platform calls us, for the HTTP listener. */
export interface Webhook {
  /** `/telegram/webhook` */
  path: string;
  /** The header that carries the call's secret. */
  secretHeader: string;
  /** Whether a call with this secret may be read at all. Takes the same time for every wrong one. */
  admits(secret: string | null): boolean;
  /** Handles one call if the secret is right. Resolves to the HTTP status of the response. */
  handle(body: unknown, secret: string | null): Promise<number>;
}

/** What never changes while a channel exists. */
export interface ChannelTraits {
  /** Letters only; the prefix of every id of this channel. */
  readonly name: string;
  readonly limits: ChannelLimits;
  /** Gives a persona its own name and picture also where it is the only one (`Appearance.alone`). */
  readonly facesAlone?: true;
  /** The platform deduplicates messages that are sent again, so sending may be retried more often. */
  readonly recognisesResends?: true;
  /** Shows a file with `voiceSeconds` as a voice note. */
  readonly voiceNotes?: true;
  /** Shows `Part.choices` as buttons. Elsewhere the text says what to answer. */
  readonly buttons?: true;
  /** The only emoji that `react` takes; left out: any. */
  readonly reactions?: readonly string[];
  /** How many characters people's clients send in one message; a longer text they cut into several. Left out: any number. */
  readonly typedAtMost?: readonly number[];
  /** Left out if the platform does not call us. */
  readonly webhook?: Webhook;
}

export interface Channel extends ChannelTraits {
  /**
   * Starts intake and returns soon. Outages, rejected logins and conflicts never reject: `status` shows them and the
   * channel recovers by itself. When `signal` aborts, intake ends: pending `receive` calls are awaited, nothing new is
   * accepted. Sending works until `stop`.
   */
  start(receive: Receive, signal: AbortSignal): Promise<void>;

  /** Ends intake and releases all resources. Never rejects; may be called twice. */
  stop(): Promise<void>;

  status(): ChannelStatus;

  /**
   * Pure: turns Markdown into messages that this platform can show, each within its limits, without losing a character
   * of the visible text. Never empty for text that is not blank. `spare` characters are left free in each (for a name
   * before the text).
   */
  compose(markdown: string, spare?: number): Part[];

  /** Sends one message. Never throws. */
  send(to: Recipient, part: Part, options: SendOptions): Promise<SendResult>;

  /**
   * Replaces a part that was sent with the same options. Returns `sent`, with the same id, when the platform now shows
   * exactly this part; `refused` when it never will (the message is gone or too old). Never throws.
   */
  edit?(to: Recipient, platformMessageId: string, part: Part, options: SendOptions): Promise<SendResult>;

  /** Deletes a message that was sent with the same options. Best effort: never throws, never retries. */
  remove?(to: Recipient, platformMessageId: string, options: SendOptions): Promise<void>;

  /** Sets our reaction to a message; repeating it changes nothing. Never throws. */
  react?(to: Recipient, platformMessageId: string, emoji: string, options: SendOptions): Promise<SendResult>;

  /** What `wasDelivered` needs to know of the moment before a send, with which it is stored. Opaque; null: nothing is known. */
  watermark?(to: Recipient): string | null;

  /**
   * Whether a message has arrived whose send has an unknown outcome. Nobody in the chat notices. `beforeAsking` is awaited
   * before each request to the platform: it returns the ids of all other messages that are known, or null to end the
   * search. Never throws.
   */
  wasDelivered?(
    to: Recipient,
    part: Part,
    options: SendOptions,
    search: { watermark: string; beforeAsking: () => Promise<ReadonlySet<string> | null> },
  ): Promise<Delivered>;

  /**
   * Shows text that is being written as a preview: not a message, and it disappears by itself when the message is sent
   * or nothing follows. False when this chat has no previews; an edited message can be used instead. Never throws,
   * never retries.
   */
  preview?(to: Recipient, part: Part, options: SendOptions): Promise<boolean>;

  /** Shows a typing indicator for some seconds. Best effort: never throws, never retries. */
  setTyping?(to: Recipient, personaId?: PersonaId): Promise<void>;

  /** Fetches a file that came with a message. Never throws; returns soon after the signal aborts. */
  fetch?(attachment: Attachment, ask: { maxBytes: number; signal: AbortSignal }): Promise<FetchResult>;

  /**
   * Whether the platform shows the sender that this message (a native command) awaits an answer. If so, the answer is
   * sent as a reply to it, in direct chats, too.
   */
  awaitsAnswer?(platformMessageId: string): boolean;

  /** The names under which people see our account; empty until they are known. */
  names?(): string[];

  /** Whether a person may manage that group. Throws when the platform cannot be asked. */
  isAdministrator?(chat: Address, sender: Address): Promise<boolean>;

  /** Registers the chat commands in the platform's own menu. Throws when the platform cannot be reached. */
  announceCommands?(commands: CommandDescription[]): Promise<void>;

  /**
   * Handles an uncaught error: true if it was thrown inside this platform's library. The channel then reconnects, and
   * the process continues.
   */
  survives?(error: unknown): boolean;

  /** For `doctor`: logs in and returns what an operator should know. Throws with the reason on failure. */
  check?(): Promise<{ identity: string; warnings: string[] }>;
}

// Step 7 of the route: entries of the outbox, and what of a reply is shown before its text is final.

/** An entry for the outbox. Unique by (origin, persona, part). */
export interface NewDelivery {
  /**
   * `turn:<id>`, `tool:<turn id>:<key>`, `command:<id>`, `pairing:<id>`, `notice:<id>`, `late:<delivery id>`,
   * `greeting:<room>`, `news:<key>:<chat>`, `asked:<call>:<chat>`, `denied:<call>`, `interrupted:<turn id>`.
   */
  origin: string;
  personaId: PersonaId | null;
  /** The name of the speaker, for channels that show one. */
  speaker: string;
  part: number;
  body: Part;
  /** Set when it must be visible which of several personas speaks. */
  appearance?: Appearance | undefined;
  /** The platform message it answers, if it is to be shown as a reply. */
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
  /** Attempts with an unknown outcome: after a broken connection, and after a crash. */
  uncertainCuts: number;
  uncertainCrashes: number;
  /** The time of the next attempt at the earliest. */
  notBefore: number;
  /**
   * Set if part of it was sent with this key before the text was final: the id under which it may still be shown, or
   * null if the id is unknown.
   */
  shown?: { platformMessageId: string | null; key: string };
  /** `Channel.watermark` of the last attempt, while its outcome is unknown; left out if the channel has none. */
  mark?: string;
}

/** A part of a reply that is shown before its text is final. */
export interface ShownPart {
  body: Part;
  /** As in `NewDelivery`. */
  speaker: string;
  appearance?: Appearance | undefined;
  /** `SendOptions.key` of the message that shows it. */
  key: string;
  /** null while it is being sent, and if the id is unknown. */
  platformMessageId: string | null;
  /** The time of the first send. */
  sentAt: number;
  /** `Channel.watermark` of the first send; left out if the channel has none. */
  mark?: string;
}

/** What a persona says when it first appears in a room, for the transcript: its own words, overheard by the others. */
export interface Greeting {
  room: RoomId;
  personaId: PersonaId;
  text: string;
  hearers: PersonaId[];
}

/** An outbox entry that belongs to no turn. */
export interface Post {
  chatId: ChatId;
  channel: string;
  address: Address;
  threadId: string | null;
  kind: 'direct' | 'group';
  delivery: NewDelivery;
  precedes?: number;
  /** Its words, if they belong into the transcript; added only with a new entry. */
  greeting?: Greeting;
  now: number;
}

// What the gateway gives a channel when it creates it. A channel knows nothing of the gateway beyond this and
// `Receive`.

export interface ChannelHost<Options> {
  /** The channel's section of config.yaml. */
  options: Options;
  state: ChannelState;
  /** The cursor of the last stored batch of an account, or of one bot of it; null before the first. */
  cursor(account: string): Promise<string | null>;
  /** The rooms that people have used, each with its last stored message: to fetch what was missed. */
  newest(): Promise<{ address: Address; threadId: string | null; platformMessageId: string }[]>;
  /** Messages that the store has of its chats: the last received of each room, and what was sent last of all. */
  recorded(): Promise<{ address: Address; platformMessageId: string }[]>;
  /** What was sent with this key, as shown; null if nothing was. */
  sentPart(key: string): Promise<Part | null>;
  /** The names of the personas in a chat. */
  personaNames(chat: Address): Promise<string[]>;
  /** Records in the audit log that a device was linked to this number. */
  noteLink(number: string): void;
  /** Prints text art (a QR code) to the terminal, or beside the log where there is none. */
  show(picture: string): void;
  /** The way to the platform's servers. */
  outward: Outward;
  clock: Clock;
  newId(): string;
  log: Log;
}

/** The channel's own values in the store, by name. */
export interface ChannelState {
  /** Returns only the names that exist. */
  get(names: string[]): Promise<Map<string, string>>;
  /** Writes all values or none; null removes one. On the disk when it resolves. */
  set(values: ReadonlyMap<string, string | null>): Promise<void>;
  clear(): Promise<void>;
}
