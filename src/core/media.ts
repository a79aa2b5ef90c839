/** Files that came with messages, and voice notes: storage, and the ports that read and make them. */

import type { Channel, OutgoingFile } from './channel.js';
import type { ChatId } from './ids.js';
import type { Attachment } from './message.js';
import type { ModelImage } from './model.js';

/** Without an outcome it has not been fetched yet. */
export interface StoredAttachment extends Attachment {
  outcome?: AttachmentOutcome;
}

export type AttachmentOutcome =
  /** Stored; `file` is relative to the media folder. `read`: text found in it. */
  | { kind: 'kept'; file: string; mimeType: string; read?: string }
  /** Not stored; a reason for the persona: "larger than 20 MB, not taken". */
  | { kind: 'left'; why: string };

/** The files in `data/media/<chat id>/`. Names are generated, never taken from a sender. */
export interface MediaFiles {
  /** Writes atomically. Returns the path relative to the media folder, with an extension for the type. */
  keep(chatId: ChatId, bytes: Buffer, mimeType: string): Promise<string>;
  /** Throws if it is missing. */
  read(file: string): Promise<Buffer>;
  /** Does nothing if it is missing. */
  remove(file: string): Promise<void>;
  /** Absolute. */
  path(file: string): string;
}

/** Speech to text. Throws with the reason. */
export interface Transcriber {
  transcribe(bytes: Buffer, file: { name: string; mimeType: string; signal: AbortSignal }): Promise<string>;
}

// The port that fetches and reads the files of messages and describes them in the text.

export interface Media {
  /** A message's text for the model: the sender's words, then one line per file. Pure. */
  tell(words: string, attachments: StoredAttachment[]): string;
  /** Whether an untranscribed voice note might name the message's addressee; false for quoted ones. Pure. */
  mayAddress(attachments: StoredAttachment[]): boolean;
  /**
   * Fetches and reads the files without an outcome; with `only: 'voice'`, only the message's own voice notes. Takes
   * about a minute at most; the text says what was unavailable. null if `signal` aborted: nothing is decided. Never
   * throws.
   */
  take(ask: TakeAsk): Promise<Taken | null>;
  /** The images, for a model. Logs and skips unreadable ones; never throws. */
  images(attachments: StoredAttachment[]): Promise<ModelImage[]>;
  /** Throws if a file cannot be deleted. */
  remove(files: string[]): Promise<void>;
}

export interface TakeAsk {
  chatId: ChatId;
  /** The sender's words, without descriptions of files. */
  words: string;
  attachments: StoredAttachment[];
  only?: 'voice';
  /** The channel's `fetch`, if it has one. */
  fetch: Channel['fetch'] | undefined;
  signal: AbortSignal;
}

export interface Taken {
  /** The message's text with descriptions of its files. */
  text: string;
  /** With outcomes: all attachments, or those that `only` selected. */
  attachments: StoredAttachment[];
  /** Plain sentences for the sender about files that could not be taken; null for none. */
  notice: string | null;
}

// Spoken replies: the port that makes voice notes, and that of the speech server.

export interface SpeechRules {
  /** Default voice of personas. */
  readonly voice: string;
  /** A reply with more characters to speak stays text. */
  readonly maxCharacters: number;
  /** Whether to speak replies to voice notes if the chat has no setting. */
  readonly whenSpokenTo: boolean;
}

export interface Speech extends SpeechRules {
  /** Makes a voice note within a bounded time. The same key and text give the same file. Throws with the reason. */
  make(note: VoiceNote): Promise<OutgoingFile>;
  /** The file is no longer needed. Does nothing if there is none. */
  discard(key: string): Promise<void>;
}

interface SpokenText {
  text: string;
  voice: string;
  signal: AbortSignal;
}

export interface VoiceNote extends SpokenText {
  /** The same for all attempts at this note, and unique to it. */
  key: string;
}

/** Text to speech: OGG with Opus. Throws with the reason. */
export interface Speaker {
  speak(ask: SpokenText): Promise<Buffer>;
}
