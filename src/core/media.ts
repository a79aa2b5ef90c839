/** Files that came with messages: what became of them, where they lie, and the ports of those who read them. */
import type { ChatId } from './ids.js';
import type { Attachment } from './message.js';

/** An attachment as the store keeps it. Without an outcome nobody has looked at it yet. */
export interface StoredAttachment extends Attachment {
  outcome?: AttachmentOutcome;
}

export type AttachmentOutcome =
  /** It lies in the media folder; `file` is relative to it. `read` are the words that were found in it. */
  | { kind: 'kept'; file: string; mimeType: string; read?: string }
  /** Not taken; the words are for the persona: "larger than 20 MB, not taken". */
  | { kind: 'left'; why: string };

/** The files themselves, in `data/media/<chat id>/`. Names are made here, never by a sender. */
export interface MediaFiles {
  /** Atomic. Returns the path relative to the media folder; the extension follows from the type. */
  keep(chatId: ChatId, bytes: Buffer, mimeType: string): Promise<string>;
  /** Throws where it is not there any more. */
  read(file: string): Promise<Buffer>;
  /** Nothing, where it is not there any more. */
  remove(file: string): Promise<void>;
  /** The absolute path of what lies there. */
  path(file: string): string;
}

/** Words of something spoken. Throws with the reason. */
export interface Transcriber {
  transcribe(bytes: Buffer, file: { name: string; mimeType: string; signal: AbortSignal }): Promise<string>;
}
