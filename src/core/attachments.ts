/** Looking at files that came with messages, as the route sees it: fetching, reading, and telling of them in words. */
import type { Channel } from './channel.js';
import type { ChatId } from './ids.js';
import type { StoredAttachment } from './media.js';
import type { ModelImage } from './model.js';

export interface Media {
  /** How a message reads, with what is known of its files so far: the words, then a line for each file. Pure. */
  tell(words: string, attachments: StoredAttachment[]): string;
  /** Whether looking may yet show whom a message addresses: somebody spoke, and nobody has listened. Pure. */
  mayAddress(attachments: StoredAttachment[]): boolean;
  /**
   * Fetches and reads what has no outcome yet; with `only` nothing but what was spoken. Never throws, and takes at
   * most about a minute: what cannot be had by then is told in the text. null when `signal` aborted: nothing is decided.
   */
  take(ask: TakeAsk): Promise<Taken | null>;
  /** The pictures among them, for a model. What cannot be read any more is left out and logged; never throws. */
  images(attachments: StoredAttachment[]): Promise<ModelImage[]>;
  /** Of files that are to be forgotten: removes them from the disk. Throws where it cannot. */
  remove(files: string[]): Promise<void>;
}

export interface TakeAsk {
  chatId: ChatId;
  /** The sender's own. */
  words: string;
  attachments: StoredAttachment[];
  only?: 'voice';
  /** The channel's; undefined where it has none. */
  fetch: Channel['fetch'] | undefined;
  signal: AbortSignal;
}

export interface Taken {
  /** How the message reads now. */
  text: string;
  /** With outcomes: all of them, or those of what was asked for. */
  attachments: StoredAttachment[];
  /** A plain sentence or more for the sender, where something was not taken just now. */
  notice: string | null;
}
