/**
 * The connection to one platform account. A capability is a method that is there: whoever calls asks for it
 * with `channel.setTyping?.(…)`. No base class, no capability flags.
 */
import type { PersonaId } from './ids.js';
import type { Address, Attachment, InboundBatch } from './message.js';

/** Resolves when everything in the batch is on disk; only then may the platform hear that we have it. */
export type Receive = (batch: InboundBatch) => Promise<Reception>;

/** What became of a batch, for platforms on which somebody waits to be told. */
export interface Reception {
  /** Messages that were not let in, by platform id, and why: nothing of them is kept. */
  turnedAway: { platformMessageId: string; why: 'unknown sender' | 'unlisted group' | 'closed' }[];
  /** Resolves when everything that was taken in on this channel is answered and sent. */
  settled(): Promise<void>;
}

/** Where something is sent. */
export interface Recipient {
  address: Address;
  threadId: string | null;
  kind: 'direct' | 'group';
}

/** One message of a reply: its visible text and the marks on it. Offsets and lengths in UTF-16 units. */
export interface Part {
  text: string;
  marks: Mark[];
  /** A file to be sent with the text below it, as it is on the disk when it is sent. */
  file?: OutgoingFile;
}

export interface OutgoingFile {
  /** Made by the gateway, never by a sender or a model. */
  path: string;
  /** What the receiver sees. */
  name: string;
}

/** Marks may nest, never cross; `code` and `pre` hold no others. */
export type Mark = { offset: number; length: number } & (
  | { kind: 'bold' | 'italic' | 'strike' | 'code' | 'quote' }
  | { kind: 'pre'; language: string }
  | { kind: 'link'; url: string }
);

/** The name and picture of the persona that speaks, shown as far as the platform can. */
export interface Appearance {
  personaId: PersonaId;
  name: string;
  /** The address of a picture. */
  avatar: string | null;
}

export interface SendOptions {
  /** A platform message id in the same chat. */
  replyTo: string | null;
  /** Who speaks, for channels that show it. */
  personaName: string;
  /** The persona that speaks; left out for the gateway's own words. */
  speaker?: PersonaId;
  /**
   * Given where several personas are in the chat: the platform shows this name and picture if it can, else the name
   * stands in bold before the text of the part that `leads`.
   */
  appearance?: Appearance;
  /** The first part of what is said. */
  leads?: boolean;
  /** The same for every try of this message, and for no other: letters, digits and `-`, at most 24. */
  key: string;
  /** Tries before this one, and when the message was made, ms: an earlier try may have arrived. */
  earlierTries: number;
  createdAt: number;
  signal: AbortSignal;
}

/** What became of fetching a file. */
export type FetchResult =
  | { kind: 'fetched'; bytes: Buffer }
  /** More than was asked for; the rest was not read. */
  | { kind: 'too large' }
  /** Not there, or not any more. `reason` is for the operator. */
  | { kind: 'gone'; reason: string }
  /** It may work later. */
  | { kind: 'unreachable'; reason: string };

export type SendResult =
  | { kind: 'sent'; platformMessageId: string }
  /** The platform will never take it (blocked, kicked, malformed): do not retry. */
  | { kind: 'refused'; reason: string }
  /**
   * It may work later. `taken` says whether sending again may show the message twice: `no` where the platform refused,
   * was never reached, or recognises the message by its key; `unknown` where the connection broke after the request was
   * written.
   */
  | { kind: 'unreachable'; reason: string; taken: 'no' | 'unknown'; retryAfterMs?: number }
  /** The chat lives at another address now: note it and send again there. */
  | { kind: 'moved'; address: Address };

export interface ChannelLimits {
  /** Outbound messages a second for the whole account. */
  messagesPerSecond: number;
  /** How many messages to one chat may go at once, before its refill rate holds. */
  perChatBurst: number;
  /** Refill of one chat's budget, messages a second. */
  perChatPerSecond: { direct: number; group: number };
  /** Replaces `conversation.debounce_ms` where bursts cannot happen (a pipe). */
  debounceMs?: number;
}

export interface ChannelStatus {
  connected: boolean;
  /** Since when it is in this state, ms. */
  since: number;
  lastError: string | null;
}

/** A chat command as a platform's own menu shows it. */
export interface CommandDescription {
  name: string;
  aliases: string[];
  description: string;
  /** The words its argument may begin with; left out where it takes any text or none. */
  verbs?: CommandVerb[];
}

export interface CommandVerb {
  name: string;
  description: string;
  /** What follows the verb; left out where nothing does. */
  rest?: { name: string; description: string; required: boolean; suggest?: 'persona' };
}

/** Where a platform calls us, for the HTTP listener. */
export interface Webhook {
  /** `/telegram/webhook` */
  path: string;
  /** The header in which a call brings its secret. */
  secretHeader: string;
  /** Takes one call when the secret is right. Resolves to the HTTP status to answer with. */
  handle(body: unknown, secret: string | null): Promise<number>;
}

export interface Channel {
  /** Letters only; the first part of every id of this channel. */
  readonly name: string;
  readonly limits: ChannelLimits;

  /** The platform recognises a message that is sent again and never shows it twice: it may be tried more often. */
  readonly recognisesResends?: true;

  /**
   * Pure: Markdown to the messages that this platform can show, each within its limits, no character of the
   * visible text lost. Never empty for text that is not blank. `spare` characters are kept free in each (a name may
   * come before the text).
   */
  compose(markdown: string, spare?: number): Part[];

  /**
   * Begins taking in and returns soon. Outages, refused logins and conflicts are states that `status` shows and
   * that the channel gets out of by itself; they never reject. When `signal` aborts, intake ends: what was
   * handed to `receive` is awaited, nothing more is taken in. Sending works until `stop`.
   */
  start(receive: Receive, signal: AbortSignal): Promise<void>;

  /**
   * Sends one message. Never throws.
   */
  send(to: Recipient, part: Part, options: SendOptions): Promise<SendResult>;

  /** Ends intake and frees what the channel holds. Never rejects; may be called twice. */
  stop(): Promise<void>;

  status(): ChannelStatus;

  /**
   * Puts another part in the place of one that was sent with the same options. `sent`, with the same id, when the
   * platform shows exactly this part now; `refused` when it never will there (it is gone, or too old). Never throws.
   */
  edit?(to: Recipient, platformMessageId: string, part: Part, options: SendOptions): Promise<SendResult>;

  /** Deletes a message that was sent with the same options. Best effort: never throws, never retries. */
  remove?(to: Recipient, platformMessageId: string, options: SendOptions): Promise<void>;

  /**
   * Shows what is being written, as a preview that is no message and disappears by itself when the message comes or
   * nothing follows. False where this chat has no previews: then an edited message may do. Never throws, never retries.
   */
  preview?(to: Recipient, part: Part, options: SendOptions): Promise<boolean>;

  /** Shows that a persona is writing, for some seconds. Best effort: never throws, never retries. */
  setTyping?(to: Recipient, personaId?: PersonaId): Promise<void>;

  /** Fetches a file that came with a message. Never throws; ends soon after the signal aborts. */
  fetch?(attachment: Attachment, ask: { maxBytes: number; signal: AbortSignal }): Promise<FetchResult>;

  /**
   * Whether the platform shows somebody that this message of theirs (a native command) waits for its answer: then
   * the answer is sent as a reply to it also in a direct chat.
   */
  awaitsAnswer?(platformMessageId: string): boolean;

  /** Whether a person may manage that group. Throws when the platform cannot be asked. */
  isAdministrator?(chat: Address, sender: Address): Promise<boolean>;

  /** Makes the chat commands known to the platform's own menu. Throws when the platform cannot be reached. */
  announceCommands?(commands: CommandDescription[]): Promise<void>;

  /**
   * An uncaught error: true if it was thrown inside this platform's library. The channel then makes a new connection, and
   * the process goes on.
   */
  survives?(error: unknown): boolean;

  /** Left out where the platform does not call us. */
  readonly webhook?: Webhook;

  /** For `doctor`: logs in and returns what an operator should know. Throws with the reason when it cannot. */
  check?(): Promise<{ identity: string; warnings: string[] }>;
}
