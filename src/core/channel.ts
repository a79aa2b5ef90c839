/**
 * The connection to one platform account. A capability is a method that is there: whoever calls asks for it
 * with `channel.setTyping?.(…)`. No base class, no capability flags.
 */
import type { Address, InboundBatch } from './message.js';

/** Resolves when everything in the batch is on disk; only then may the platform hear that we have it. */
export type Receive = (batch: InboundBatch) => Promise<void>;

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
}

/** Marks may nest, never cross; `code` and `pre` hold no others. */
export type Mark = { offset: number; length: number } & (
  | { kind: 'bold' | 'italic' | 'strike' | 'code' | 'quote' }
  | { kind: 'pre'; language: string }
  | { kind: 'link'; url: string }
);

export type SendResult =
  | { kind: 'sent'; platformMessageId: string }
  /** The platform will never take it (blocked, kicked, malformed): do not retry. */
  | { kind: 'refused'; reason: string }
  /**
   * It may work later. `taken` says whether the platform may already have the message: `no` where it answered
   * or was never reached, `unknown` where the connection broke after the request was written.
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

export interface Channel {
  /** Letters only; the first part of every id of this channel. */
  readonly name: string;
  readonly limits: ChannelLimits;

  /**
   * Pure: Markdown to the messages that this platform can show, each within its limits, no character of the
   * visible text lost. Never empty for text that is not blank.
   */
  compose(markdown: string): Part[];

  /**
   * Begins taking in and returns soon. Outages, refused logins and conflicts are states that `status` shows and
   * that the channel gets out of by itself; they never reject. When `signal` aborts, intake ends: what was
   * handed to `receive` is awaited, nothing more is taken. Sending works until `stop`.
   */
  start(receive: Receive, signal: AbortSignal): Promise<void>;

  /**
   * Sends one message. Never throws. `replyTo` is a platform message id in the same chat; `personaName` is who
   * speaks, for channels that show it.
   */
  send(
    to: Recipient,
    part: Part,
    options: { replyTo: string | null; personaName: string; signal: AbortSignal },
  ): Promise<SendResult>;

  /** Ends intake and frees what the channel holds. Never rejects; may be called twice. */
  stop(): Promise<void>;

  status(): ChannelStatus;

  /** Shows that a persona is writing, for some seconds. Best effort: never throws, never retries. */
  setTyping?(to: Recipient): Promise<void>;

  /** Whether a person may manage that group. Throws when the platform cannot be asked. */
  isAdministrator?(chat: Address, sender: Address): Promise<boolean>;

  /** Makes the chat commands known to the platform's own menu. Throws when the platform cannot be reached. */
  announceCommands?(commands: { name: string; description: string }[]): Promise<void>;

  /** For `doctor`: logs in and returns what an operator should know. Throws with the reason when it cannot. */
  check?(): Promise<{ identity: string; warnings: string[] }>;
}
