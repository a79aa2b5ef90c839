/** The port for files that came with messages: fetching them, reading them, and describing them in a message's text. */
import type { Channel } from './channel.js';
import type { ChatId } from './ids.js';
import type { StoredAttachment } from './media.js';
import type { ModelImage } from './model.js';

export interface Media {
  /**
   * A message's text as the model sees it: the sender's words, then one line per file with what is known of it. Pure.
   */
  tell(words: string, attachments: StoredAttachment[]): string;
  /** Whether a voice note that is not transcribed yet might name the message's addressee; never one that is replied to. Pure. */
  mayAddress(attachments: StoredAttachment[]): boolean;
  /**
   * Fetches and reads the files that have no outcome yet; with `only: 'voice'`, only its own voice notes. Never throws. Takes
   * about a minute at most; the text says what was not available by then. null when `signal` aborted: nothing is
   * decided then.
   */
  take(ask: TakeAsk): Promise<Taken | null>;
  /** The images among them, for a model. Unreadable ones are left out and logged; never throws. */
  images(attachments: StoredAttachment[]): Promise<ModelImage[]>;
  /** Deletes files from the disk. Throws when it cannot. */
  remove(files: string[]): Promise<void>;
}

export interface TakeAsk {
  chatId: ChatId;
  /** What the sender wrote, without descriptions of files. */
  words: string;
  attachments: StoredAttachment[];
  only?: 'voice';
  /** The channel's `fetch`; undefined if it has none. */
  fetch: Channel['fetch'] | undefined;
  signal: AbortSignal;
}

export interface Taken {
  /** The message's text with what was read. */
  text: string;
  /** With their outcomes: all attachments, or those that `only` asked for. */
  attachments: StoredAttachment[];
  /** One or more plain sentences for the sender about files that could not be taken this time; null for none. */
  notice: string | null;
}
