/**
 * What the gateway lends a channel when it is created. A channel takes what it needs of it, and knows no more of the
 * gateway than this and `Receive`.
 */
import type { Part } from './channel.js';
import type { Clock } from './clock.js';
import type { Log } from './log.js';
import type { Address } from './message.js';

export interface ChannelHost<Options> {
  /** The channel's section of config.yaml. */
  options: Options;
  state: ChannelState;
  /** The cursor of the last batch that was stored for an account, or for one bot of it; null before the first. */
  cursor(account: string): Promise<string | null>;
  /** Each room in which people talked, with the last message that was stored of it: to fetch what was missed. */
  newest(): Promise<{ address: Address; threadId: string | null; platformMessageId: string }[]>;
  /** What was sent with this key, as it was shown; null where nothing was. */
  sentPart(key: string): Promise<Part | null>;
  /** The names of the personas in a chat. */
  personaNames(chat: Address): Promise<string[]>;
  /** Shows a picture made of characters to whoever looks at the terminal. */
  show(picture: string): void;
  clock: Clock;
  newId(): string;
  log: Log;
}

/** What a channel keeps in the store, by names of its own. */
export interface ChannelState {
  /** Those of the names that are there. */
  get(names: string[]): Promise<Map<string, string>>;
  /** All of them or none; null removes. On the disk when it resolves. */
  set(values: ReadonlyMap<string, string | null>): Promise<void>;
  clear(): Promise<void>;
}
