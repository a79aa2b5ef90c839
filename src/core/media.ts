/** Files that came with messages: their outcomes, where they are stored, and the ports of those who read them. */
import type { ChatId } from './ids.js';
import type { Attachment } from './message.js';

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
