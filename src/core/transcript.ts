/** The stored transcript of a room, the steps of its turns, and what each persona heard of it. */
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { StoredAttachment } from './media.js';
import type { Echo, ToolCall, Usage } from './model.js';

export interface StoredMessage {
  id: number;
  room: RoomId;
  author: /** `bot`: written by a bot. */
    | { kind: 'person'; id: ChatId; name: string; administrator: boolean; bot?: true }
    | { kind: 'persona'; id: PersonaId }
    /** A schedule that fired, a digest. */
    | { kind: 'gateway'; about: string };
  text: string;
  sentAt: number;
  /** Its receipt, or its sending if it arrived while the gateway was away. */
  receivedAt: number;
  platformMessageId: string | null;
  mentionsBot: boolean;
  /** As in `InboundMessage`. */
  mentions?: string[];
  /** By their own account or platform name. */
  addresses?: PersonaId[];
  replyTo: StoredReply | null;
  /** The new text of a message whose old text is being, or was just, answered. */
  edited: boolean;
  turnId: string | null;
  attachments?: StoredAttachment[];
  /** Only on request, if `text` also describes files. */
  words?: string;
  quiet?: true;
  /** To a persona's message, or in place of a persona's answer. Interrupts nobody. */
  reaction?: true;
  /** '' if unknown. */
  forwardedFrom?: string;
  album?: string;
  /** Waits although a turn has already taken other items of its album. */
  late?: true;
  /** Untrusted text, or an answer to it. */
  tainted?: true;
}

const PASTE = /^paste:(\d+):/;

/** For the parts into which a client split a text. `most`: characters per part. */
export function pasteAlbum(most: number, firstId: string): string {
  return `paste:${most}:${firstId}`;
}

/** null for other albums. */
export function mostInPart(album: string): number | null {
  const most = PASTE.exec(album)?.[1];
  return most === undefined ? null : Number(most);
}

export interface StoredReply {
  senderName: string;
  text: string;
  /** Claimed only by the replying message. */
  told?: true;
  ours: boolean;
  personaId: PersonaId | null;
}

export function authorName(
  author: StoredMessage['author'],
  nameOf: (personaId: PersonaId) => string = (id) => id,
): string {
  if (author.kind === 'gateway') return author.about;
  return author.kind === 'person' ? author.name : nameOf(author.id);
}

/** `Ann`, or `Ann, forwarding Bob`. */
export function wordsBy(
  { author, forwardedFrom }: StoredMessage,
  nameOf?: (personaId: PersonaId) => string,
): string {
  return whoseWords(authorName(author, nameOf), forwardedFrom);
}

/** null: the author's own words. */
export function whoseWords(name: string, forwardedFrom: string | null = null): string {
  return forwardedFrom === null || forwardedFrom === name
    ? name
    : `${name}, forwarding ${forwardedFrom || 'somebody'}`;
}

/** So that others can react to it. */
export function isOfPerson({ author, reaction, platformMessageId }: StoredMessage): boolean {
  return author.kind === 'person' && !reaction && platformMessageId !== null;
}

export function reactionText(sign: string): string {
  return `(reacts with ${sign})`;
}

/** In order. A call without a result was interrupted; its outcome is unknown. */
export type Step =
  | { kind: 'answer'; text: string; calls: ToolCall[]; echo?: Echo }
  | { kind: 'call'; callId: string }
  /** `said`: as in `ToolResult`; `outside`: untrusted content. */
  | { kind: 'result'; callId: string; content: string; failed: boolean; said?: string; outside?: true }
  /** For a result under this key, until then (ms). `tool`: its `toolHash` when people were asked. */
  | { kind: 'waiting'; callId: string; waitsFor: string; until: number | null; tool?: string }
  /** With exactly these arguments: run it. */
  | { kind: 'approved'; callId: string; arguments: string; by: ChatId };

/** Of one request, in tokens. */
export interface Measured {
  counted: number;
  estimated: number;
}

export interface ViewRecord {
  room: RoomId;
  personaId: PersonaId;
  /** Messages up to this one (inclusive) are hidden from the persona. */
  resetAt: number;
  windowAfter: Position;
  /** A finished flush has seen everything up to here. */
  flushedTo: Position;
  /** Of the messages before the window. */
  summary: string | null;
  /** Of the last counted request since the window moved. */
  measured: Measured | null;
  /** The summary includes untrusted text. */
  tainted: boolean;
}

export interface HeardMessage extends StoredMessage {
  position: Position;
  addressed: boolean;
}

export interface Span {
  messages: HeardMessage[];
  /** Of their turns that used tools, by turn id. */
  steps: Map<string, Step[]>;
  /** More addressed messages exist than `limit`. */
  more: boolean;
}

export interface ArchivedSpan {
  chatId: ChatId;
  room: RoomId;
  personaId: PersonaId;
  file: string;
  after: Position;
  to: Position;
  /** `writing`: the window has not moved yet; `unflushed`: its flush is pending. */
  state: 'writing' | 'unflushed' | 'settled';
}

/** A verb that finds another one changes nothing and returns false. */
export type SeenView = Pick<ViewRecord, 'room' | 'personaId' | 'resetAt' | 'windowAfter' | 'flushedTo'>;

export interface WindowAsk {
  room: RoomId;
  personaId: PersonaId;
  /** Addressed to or by the persona; overheard. */
  limit: number;
  overheard: number;
  except: readonly number[];
  after?: Position;
}

/** The cost does not depend on the length of the transcript. */
export interface TranscriptStore {
  /** After `windowAfter` and the reset. */
  window(ask: WindowAsk): Promise<Span & { view: ViewRecord }>;
  /** The oldest from `after` (exclusive) to `upTo` (inclusive), regardless of the window. */
  span(ask: {
    room: RoomId;
    personaId: PersonaId;
    after: Position;
    upTo: Position;
    limit: number;
    overheard: number;
  }): Promise<Span>;
}

export interface ViewStore {
  /** Copies cached under another revision are invalid. */
  view(room: RoomId, personaId: PersonaId): Promise<ViewRecord & { revision: number }>;
  roomsHeard(chatId: ChatId, personaId: PersonaId): Promise<RoomId[]>;
  allHeard(room: RoomId, personaIds: PersonaId[], messageIds: number[]): Promise<boolean>;
  /** Everything up to `to` was seen. */
  commitFlush(flush: { view: SeenView; to: Position; usage: Usage | null; now: number }): Promise<boolean>;
  /**
   * The only verb that moves a window: within what was flushed, or within `archive`, which begins at its start.
   * Otherwise throws Fault `internal`. The summary is tainted if the previous one or a message leaving the window is.
   */
  moveWindow(move: {
    view: SeenView;
    to: Position;
    summary: string | null;
    archive: string | null;
    usage: Usage | null;
    now: number;
  }): Promise<boolean>;

  openArchives(of: { room: RoomId; personaId: PersonaId } | { channels: string[] }): Promise<ArchivedSpan[]>;
  /**
   * `writing`: before the file exists; moves nothing. `settled`: the front matter agrees with the store. `dropped`: its
   * window never moved; the caller removes the file.
   */
  noteArchive(
    archive:
      | (Omit<ArchivedSpan, 'state'> & { state: 'writing' })
      | { chatId: ChatId; file: string; state: 'settled' | 'dropped' },
  ): Promise<void>;
}

/**
 * An exchange follows a human message among several personas: those addressed speak in turn, in rounds, until nobody is
 * addressed or the caps are reached.
 */
export interface GroupRound {
  /** `by` null: a person. */
  said: { id: number; by: PersonaId | null }[];
  /** In this round, in order. */
  due: PersonaId[];
  /** Addressed in this round; they speak in the next. */
  next: PersonaId[];
  /** From 1. */
  round: number;
  replies: number;
  /** Everybody addressed: they hear it even if not present. */
  party: PersonaId[];
  personId?: ChatId;
}

/** In the order in which a persona heard the messages of a room; both fields are message ids. */
export interface Position {
  heardAfter: number;
  messageId: number;
}

export const BEGINNING: Position = { heardAfter: 0, messageId: 0 };

export const END: Position = { heardAfter: Number.MAX_SAFE_INTEGER, messageId: Number.MAX_SAFE_INTEGER };

export function isAfter(a: Position, b: Position): boolean {
  return a.heardAfter === b.heardAfter ? a.messageId > b.messageId : a.heardAfter > b.heardAfter;
}
