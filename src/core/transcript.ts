/** What was said in a room, and the steps of a turn before its answer, as stored. */
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { StoredAttachment } from './media.js';
import type { Echo, ToolCall } from './model.js';

/** One line of a room's transcript. */
export interface StoredMessage {
  id: number;
  room: RoomId;
  author: /** `bot`: written by a bot. */
    | { kind: 'person'; id: ChatId; name: string; administrator: boolean; bot?: true }
    | { kind: 'persona'; id: PersonaId }
    /** An event from inside the gateway: a schedule that fired, a digest. */
    | { kind: 'gateway'; about: string };
  text: string;
  sentAt: number;
  /** Since when it has been waiting for us: its receipt, or its sending if it piled up while the gateway was away. */
  receivedAt: number;
  platformMessageId: string | null;
  mentionsBot: boolean;
  /** Names in `text` that are not its sender's words, as in `InboundMessage`; left out if there are none. */
  mentions?: string[];
  /** Personas whose own account or platform name it mentions or was written to; left out if there are none. */
  addresses?: PersonaId[];
  replyTo: StoredReply | null;
  /** True for the new text of a message whose old text is being, or was just, answered. */
  edited: boolean;
  turnId: string | null;
  /** Files that came with it; left out if there are none. */
  attachments?: StoredAttachment[];
  /** The sender's own words, in case `text` also describes files; only if they were requested. */
  words?: string;
  /** To be heard but never answered; left out otherwise. */
  quiet?: true;
  /** A reaction, to a persona's message or instead of a persona's answer: it interrupts nobody. Left out otherwise. */
  reaction?: true;
  /** Whose words a forward holds, '' if that is not known; left out if it is none. */
  forwardedFrom?: string;
  /** The same for all items of an album; left out if it is none. */
  album?: string;
  /** Waits although a turn has taken others of its album before; left out otherwise. */
  late?: true;
  /** Words from outside (a forward, a file, a stranger), or an answer to such words; left out otherwise. */
  tainted?: true;
}

const PASTE = /^paste:(\d+):/;

/** The album of the parts into which a client cut a text; `most`: the characters that fit into one. */
export function pasteAlbum(most: number, firstId: string): string {
  return `paste:${most}:${firstId}`;
}

/** How many characters fit into one part, if an album is one of such parts; null for any other. */
export function mostInPart(album: string | undefined): number | null {
  const most = PASTE.exec(album ?? '')?.[1];
  return most === undefined ? null : Number(most);
}

export interface StoredReply {
  senderName: string;
  text: string;
  /** Nothing but the message that replies says so. */
  told?: true;
  ours: boolean;
  /** The persona that wrote the replied-to message, if it is one of ours and known. */
  personaId: PersonaId | null;
}

/** An author's name as shown to people. */
export function authorName(
  author: StoredMessage['author'],
  nameOf: (personaId: PersonaId) => string = (id) => id,
): string {
  if (author.kind === 'gateway') return author.about;
  return author.kind === 'person' ? author.name : nameOf(author.id);
}

/** Whose words a message holds, as shown to people: `Ann`, or `Ann, forwarding Bob`. */
export function wordsBy(
  { author, forwardedFrom }: Pick<StoredMessage, 'author' | 'forwardedFrom'>,
  nameOf?: (personaId: PersonaId) => string,
): string {
  return whoseWords(authorName(author, nameOf), forwardedFrom);
}

/** `forwardedFrom` as in `StoredMessage`; null for words of their own. */
export function whoseWords(name: string, forwardedFrom: string | null = null): string {
  return forwardedFrom === null || forwardedFrom === name
    ? name
    : `${name}, forwarding ${forwardedFrom || 'somebody'}`;
}

/** Whether it is a message that a person wrote on the platform; to it others can react. */
export function isOfPerson({ author, reaction, platformMessageId }: StoredMessage): boolean {
  return author.kind === 'person' && !reaction && platformMessageId !== null;
}

/** Whether files came with one of them. */
export function haveFiles(messages: readonly StoredMessage[]): boolean {
  return messages.some(({ attachments }) => attachments !== undefined);
}

/** The transcript text of a reaction, which is a quiet reply to a persona's message. */
export function reactionText(sign: string): string {
  return `(reacts with ${sign})`;
}

/** A turn's steps, in order. A call without a result was interrupted: its outcome is unknown. */
export type Step =
  | { kind: 'answer'; text: string; calls: ToolCall[]; echo?: Echo }
  | { kind: 'call'; callId: string }
  /** `said` as in `ToolResult`; `outside`: its content is words from outside. */
  | { kind: 'result'; callId: string; content: string; failed: boolean; said?: string; outside?: true }
  /** The call waits for an outside result under this key, until this time at the latest (null: no limit). */
  /** `tool`: what the tool was when people were asked about the call (`printOf`). */
  | { kind: 'waiting'; callId: string; waitsFor: string; until: number | null; tool?: string }
  /** A person allowed the call that waited for it, with exactly these arguments: it is to run. */
  | { kind: 'approved'; callId: string; arguments: string; by: ChatId };
