import type { Channel, OutgoingFile } from './channel.js';
import type { ChatId } from './ids.js';
import type { Attachment } from './message.js';
import type { ModelImage } from './model.js';

/** Absent: not fetched yet. */
export interface StoredAttachment extends Attachment {
  outcome?: AttachmentOutcome;
}

export type AttachmentOutcome =
  /** `file`: relative to the media folder. */
  | { kind: 'kept'; file: string; mimeType: string; read?: string }
  /** For the persona: "larger than 20 MB, not taken". */
  | { kind: 'left'; why: string };

/** In `data/media/<chat id>/`. Names are generated. */
export interface MediaFiles {
  /** Relative to the media folder, with an extension for the type. */
  keep(chatId: ChatId, bytes: Buffer, mimeType: string): Promise<string>;
  read(file: string): Promise<Buffer>;
  remove(file: string): Promise<void>;
  path(file: string): string;
}

/** Throws with the reason. */
export interface Transcriber {
  transcribe(bytes: Buffer, file: { name: string; mimeType: string; signal: AbortSignal }): Promise<string>;
}

export interface Media {
  /** The sender's words, then one line per file. Pure. */
  tell(words: string, attachments: StoredAttachment[]): string;
  /** By an untranscribed voice note; not a quoted one. Pure. */
  mayAddress(attachments: StoredAttachment[]): boolean;
  /** Fetches and reads files without an outcome, in about a minute. null if `signal` aborted. Never throws. */
  take(ask: TakeAsk): Promise<Taken | null>;
  /** Skips unreadable ones; never throws. */
  images(attachments: StoredAttachment[]): Promise<ModelImage[]>;
  /** Throws if a file cannot be deleted. */
  remove(files: string[]): Promise<void>;
}

export interface TakeAsk {
  chatId: ChatId;
  words: string;
  attachments: StoredAttachment[];
  only?: 'voice';
  fetch: Channel['fetch'] | undefined;
  signal: AbortSignal;
}

export interface Taken {
  text: string;
  /** All attachments, or those that `only` selected. */
  attachments: StoredAttachment[];
  /** Sentences for the sender about files that could not be taken. */
  notice: string | null;
}

export interface SpeechRules {
  readonly voice: string;
  /** A longer reply stays text. */
  readonly maxCharacters: number;
  /** If the chat has no setting. */
  readonly whenSpokenTo: boolean;
}

export interface Speech extends SpeechRules {
  /** The same key and text give the same file. Throws with the reason. */
  make(note: VoiceNote): Promise<OutgoingFile>;
  discard(key: string): Promise<void>;
}

interface SpokenText {
  text: string;
  voice: string;
  signal: AbortSignal;
}

export interface VoiceNote extends SpokenText {
  key: string;
}

/** OGG with Opus. Throws with the reason. */
export interface Speaker {
  speak(ask: SpokenText): Promise<Buffer>;
}
