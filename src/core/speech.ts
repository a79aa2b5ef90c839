/** Replies that are spoken: the port of whoever makes voice notes, and of the server that speaks. */
import type { OutgoingFile } from './channel.js';

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
