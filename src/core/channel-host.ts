/**
 * What the gateway gives a channel when it creates it. A channel knows nothing of the gateway beyond this and
 * `Receive`.
 */
import type { Part } from './channel.js';
import type { Clock } from './clock.js';
import type { Log } from './log.js';
import type { Address } from './message.js';
import type { Outward } from './outward.js';

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
  /** A login was made that no configuration holds (a linked device), for this number: it stands in the audit log. */
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
