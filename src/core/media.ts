/** Files that came with messages, and voice notes: where they are stored, and the ports that read and make them. */

import type { Channel, OutgoingFile } from './channel.js';
import type { ChatId } from './ids.js';
import type { Attachment } from './message.js';
import type { ModelImage } from './model.js';

/** An attachment as stored. Without an outcome it has not been fetched yet. */
export interface StoredAttachment extends Attachment {
  outcome?: AttachmentOutcome;
}

export type AttachmentOutcome =
  /** Stored in the media folder; `file` is relative to it. `read` is the text found in it. */
  | { kind: 'kept'; file: string; mimeType: string; read?: string }
  /** Not stored; the reason is for the persona: "larger than 20 MB, not taken". */
  | { kind: 'left'; why: string };

/** The files themselves, in `data/media/<chat id>/`. Names are generated here, never taken from a sender. */
export interface MediaFiles {
  /** Writes atomically. Returns the path relative to the media folder; the extension follows from the type. */
  keep(chatId: ChatId, bytes: Buffer, mimeType: string): Promise<string>;
  /** Throws if it no longer exists. */
  read(file: string): Promise<Buffer>;
  /** Does nothing if it no longer exists. */
  remove(file: string): Promise<void>;
  /** The absolute path. */
  path(file: string): string;
}

/** Turns speech into text. Throws with the reason. */
export interface Transcriber {
  transcribe(bytes: Buffer, file: { name: string; mimeType: string; signal: AbortSignal }): Promise<string>;
}

// The port for files that came with messages: fetching them, reading them, and describing them in a message's text.

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

// Replies that are spoken: the port of whoever makes voice notes, and of the server that speaks.

export interface Speech {
  /** The voice of personas that have none of their own. */
  readonly voice: string;
  /** A reply that has more to be spoken stays text alone. */
  readonly maxCharacters: number;
  /** Whether a reply to a voice note is spoken where the chat says nothing of it. */
  readonly whenSpokenTo: boolean;
  /**
   * A voice note with these words, within a bounded time. Of the same key and words it is the same file.
   * Throws with the reason.
   */
  make(note: VoiceNote): Promise<OutgoingFile>;
  /** The file is not needed any more. Does nothing if there is none. */
  discard(key: string): Promise<void>;
}

export interface VoiceNote {
  /** The same for every attempt at this note, and for no other. */
  key: string;
  text: string;
  voice: string;
  signal: AbortSignal;
}

/** Speaks a text: OGG with Opus. Throws with the reason. */
export interface Speaker {
  speak(ask: Pick<VoiceNote, 'text' | 'voice' | 'signal'>): Promise<Buffer>;
}
