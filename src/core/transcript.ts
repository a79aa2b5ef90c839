/** What was said in a room, and what a turn did before it answered, as the store keeps them. */
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { StoredAttachment } from './media.js';
import type { ToolCall } from './model.js';

/** One line of a room's transcript. */
export interface StoredMessage {
  id: number;
  room: RoomId;
  author: /** `bot`: a program. */
    | { kind: 'person'; id: ChatId; name: string; administrator: boolean; bot?: true }
    | { kind: 'persona'; id: PersonaId }
    /** Something from inside: a schedule that fired, a digest. */
    | { kind: 'gateway'; about: string };
  text: string;
  sentAt: number;
  /** Since when it waits for us: when it was received, or sent, if it piled up while the gateway was away. */
  receivedAt: number;
  platformMessageId: string | null;
  mentionsBot: boolean;
  /** Personas whose own account or name on the platform it names, or was written to; left out where there is none. */
  addresses?: PersonaId[];
  replyTo: StoredReply | null;
  /** True for the new text of a message whose old text is being, or was just, answered. */
  edited: boolean;
  turnId: string | null;
  /** Files that came with it; left out where there are none. */
  attachments?: StoredAttachment[];
  /** Their sender's own words, where `text` tells of the files, too, and they were asked for. */
  words?: string;
  /** To be heard and never answered; left out where it may be. */
  quiet?: true;
  /** A sign put to what a persona said, not words: it interrupts nobody. Left out where it is none. */
  reaction?: true;
}

export interface StoredReply {
  senderName: string;
  text: string;
  ours: boolean;
  /** Which persona wrote the message replied to, where it is one of ours and known. */
  personaId: PersonaId | null;
}

/** What an author is called, for people. */
export function authorName(
  author: StoredMessage['author'],
  nameOf: (personaId: PersonaId) => string = (id) => id,
): string {
  if (author.kind === 'gateway') return author.about;
  return author.kind === 'person' ? author.name : nameOf(author.id);
}

/** How a reaction stands in the transcript: a quiet message, as a reply to what a persona said. */
export function reactionText(sign: string): string {
  return `(reacts with ${sign})`;
}

/** A turn's progress, in order. A call without a result was interrupted: its outcome is unknown. */
export type Step =
  | { kind: 'answer'; text: string; calls: ToolCall[] }
  | { kind: 'call'; callId: string }
  | { kind: 'result'; callId: string; content: string; failed: boolean }
  /** The call waits for something outside of the turn, by this key, and until then at the latest (null: for ever). */
  | { kind: 'waiting'; callId: string; waitsFor: string; until: number | null };
