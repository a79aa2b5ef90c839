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
    /** An event from inside the gateway: a schedule that fired, a digest. */
    | { kind: 'gateway'; about: string };
  text: string;
  sentAt: number;
  /** When it began to wait: its receipt, or its sending if it arrived while the gateway was away. */
  receivedAt: number;
  platformMessageId: string | null;
  mentionsBot: boolean;
  /** Names in `text` that are not the sender's words, as in `InboundMessage`. Absent if none. */
  mentions?: string[];
  /** Personas whose own account or platform name it mentions or was sent to. Absent if none. */
  addresses?: PersonaId[];
  replyTo: StoredReply | null;
  /** True for the new text of a message whose old text is being, or was just, answered. */
  edited: boolean;
  turnId: string | null;
  /** Its files. Absent if none. */
  attachments?: StoredAttachment[];
  /** The sender's own words, if `text` also describes files. Only on request. */
  words?: string;
  /** Heard, but never answered. */
  quiet?: true;
  /** A reaction to a persona's message, or in place of a persona's answer. Interrupts nobody. */
  reaction?: true;
  /** Author of the forwarded words, '' if unknown. Absent: not a forward. */
  forwardedFrom?: string;
  /** Shared by all items of an album. Absent if none. */
  album?: string;
  /** Waits although a turn has already taken other items of its album. */
  late?: true;
  /** Untrusted text (a forward, a file, a stranger), or an answer to it. */
  tainted?: true;
}

const PASTE = /^paste:(\d+):/;

/** Album id for the parts into which a client split a text. `most`: maximum characters per part. */
export function pasteAlbum(most: number, firstId: string): string {
  return `paste:${most}:${firstId}`;
}

/** The maximum characters per part of such an album; null for other albums. */
export function mostInPart(album: string | undefined): number | null {
  const most = PASTE.exec(album ?? '')?.[1];
  return most === undefined ? null : Number(most);
}

export interface StoredReply {
  senderName: string;
  text: string;
  /** Claimed only by the replying message. */
  told?: true;
  ours: boolean;
  /** The persona that wrote the replied-to message; null if not ours or unknown. */
  personaId: PersonaId | null;
}

export function authorName(
  author: StoredMessage['author'],
  nameOf: (personaId: PersonaId) => string = (id) => id,
): string {
  if (author.kind === 'gateway') return author.about;
  return author.kind === 'person' ? author.name : nameOf(author.id);
}

/** The author as shown to people: `Ann`, or `Ann, forwarding Bob`. */
export function wordsBy(
  { author, forwardedFrom }: StoredMessage,
  nameOf?: (personaId: PersonaId) => string,
): string {
  return whoseWords(authorName(author, nameOf), forwardedFrom);
}

/** `forwardedFrom`: as in `StoredMessage`; null for the author's own words. */
export function whoseWords(name: string, forwardedFrom: string | null = null): string {
  return forwardedFrom === null || forwardedFrom === name
    ? name
    : `${name}, forwarding ${forwardedFrom || 'somebody'}`;
}

/** Whether a person wrote it on the platform, so that others can react to it. */
export function isOfPerson({ author, reaction, platformMessageId }: StoredMessage): boolean {
  return author.kind === 'person' && !reaction && platformMessageId !== null;
}

export function haveFiles(messages: readonly StoredMessage[]): boolean {
  return messages.some(({ attachments }) => attachments !== undefined);
}

/** The transcript text of a reaction: a quiet reply to a persona's message. */
export function reactionText(sign: string): string {
  return `(reacts with ${sign})`;
}

/** A turn's steps, in order. A call without a result was interrupted; its outcome is unknown. */
export type Step =
  | { kind: 'answer'; text: string; calls: ToolCall[]; echo?: Echo }
  | { kind: 'call'; callId: string }
  /** `said`: as in `ToolResult`; `outside`: untrusted content. */
  | { kind: 'result'; callId: string; content: string; failed: boolean; said?: string; outside?: true }
  /**
   * The call waits for a result under this key, until this time (ms; null: no limit). `tool`: its `toolHash` when
   * people were asked about the call.
   */
  | { kind: 'waiting'; callId: string; waitsFor: string; until: number | null; tool?: string }
  /** A person approved the waiting call with exactly these arguments; run it. */
  | { kind: 'approved'; callId: string; arguments: string; by: ChatId };

// A view: what one persona heard of a room. Its window moves only past messages that a memory flush has seen or an
// archive contains. Nothing here deletes a message.

/** A position in the order in which a persona heard messages; both fields are message ids. */
export interface Position {
  heardAfter: number;
  messageId: number;
}

export const BEGINNING: Position = { heardAfter: 0, messageId: 0 };
export const END: Position = { heardAfter: Number.MAX_SAFE_INTEGER, messageId: Number.MAX_SAFE_INTEGER };

export function isAfter(a: Position, b: Position): boolean {
  return a.heardAfter === b.heardAfter ? a.messageId > b.messageId : a.heardAfter > b.heardAfter;
}

/** The size of one request in tokens: counted by the server, and our estimate. */
export interface Measured {
  counted: number;
  estimated: number;
}

export interface ViewRecord {
  room: RoomId;
  personaId: PersonaId;
  /** Set by `/reset`: messages up to this one (inclusive) are hidden from the persona. */
  resetAt: number;
  /** The window begins after this position. */
  windowAfter: Position;
  /** A finished flush has seen everything said to the persona up to here. */
  flushedTo: Position;
  /** Summary of the messages before the window. */
  summary: string | null;
  /** Size of the last counted request since the window moved. */
  measured: Measured | null;
  /** The summary includes untrusted text. */
  tainted: boolean;
}

export interface HeardMessage extends StoredMessage {
  position: Position;
  /** False if it was only overheard. */
  addressed: boolean;
}

export interface Span {
  /** By position. */
  messages: HeardMessage[];
  /** Steps of those of their turns that used tools, by turn id. */
  steps: Map<string, Step[]>;
  /** Whether more addressed messages exist than `limit`. */
  more: boolean;
}

export interface ArchivedSpan {
  chatId: ChatId;
  room: RoomId;
  personaId: PersonaId;
  file: string;
  after: Position;
  to: Position;
  /**
   * `writing`: the window has not moved yet, and the file may be incomplete; `unflushed`: its flush is pending;
   * `settled`: done.
   */
  state: 'writing' | 'unflushed' | 'settled';
}

/** A view as read. A verb that finds another one changes nothing and returns false. */
export type SeenView = Pick<ViewRecord, 'room' | 'personaId' | 'resetAt' | 'windowAfter' | 'flushedTo'>;

export interface WindowAsk {
  room: RoomId;
  personaId: PersonaId;
  /** Maximum messages addressed to or by the persona, and maximum overheard ones. */
  limit: number;
  overheard: number;
  except: readonly number[];
  /** Only messages heard after it. */
  after?: Position;
}

/** A persona's view of a room. The cost does not depend on the length of the transcript. */
export interface TranscriptStore {
  /** The newest messages after `windowAfter` and the reset. */
  window(ask: WindowAsk): Promise<Span & { view: ViewRecord }>;
  /** The oldest messages from `after` (exclusive) to `upTo` (inclusive), regardless of the window. */
  span(ask: {
    room: RoomId;
    personaId: PersonaId;
    after: Position;
    upTo: Position;
    limit: number;
    overheard: number;
  }): Promise<Span>;
  hasOtherRooms(room: RoomId): Promise<boolean>;
}

export interface ViewStore {
  /** With the room's revision; copies cached under another one are invalid. */
  view(room: RoomId, personaId: PersonaId): Promise<ViewRecord & { revision: number }>;
  /** The rooms of a chat in which a persona has heard anything. */
  roomsHeard(chatId: ChatId, personaId: PersonaId): Promise<RoomId[]>;
  /** Whether all these personas heard all these messages of a room. */
  allHeard(room: RoomId, personaIds: PersonaId[], messageIds: number[]): Promise<boolean>;
  /** A finished flush has seen everything up to `to`. Adds its usage to the chat. */
  commitFlush(flush: { view: SeenView; to: Position; usage: Usage | null; now: number }): Promise<boolean>;
  /** An archive is about to be written. Moves nothing. */
  beginArchive(span: Omit<ArchivedSpan, 'state'>): Promise<void>;
  /**
   * The only verb that moves a window. `to` must lie within what was flushed or within `archive`, which must begin at
   * the window's start and becomes `unflushed` (or `settled` if flushed); otherwise throws Fault `internal`. The
   * summary is tainted if a message leaving the window, or the previous summary, is.
   */
  moveWindow(move: {
    view: SeenView;
    to: Position;
    summary: string | null;
    archive: string | null;
    usage: Usage | null;
    now: number;
  }): Promise<boolean>;

  /** Unsettled archives of one view, or of all chats in these channels. */
  openArchives(of: { room: RoomId; personaId: PersonaId } | { channels: string[] }): Promise<ArchivedSpan[]>;
  /** The archive's front matter agrees with the store. */
  settleArchive(chatId: ChatId, file: string): Promise<void>;
  /** Removes the row of an archive whose window never moved; the caller removes the file. */
  dropArchive(chatId: ChatId, file: string): Promise<void>;
}

// An exchange follows a human message in a chat with several personas. Everybody it addresses speaks in turn, then
// those they address, in rounds, until nobody is addressed or the caps are reached.

export interface GroupRound {
  /** Messages of the exchange, oldest first, with the speaking persona; null for people. */
  said: { id: number; by: PersonaId | null }[];
  /** Personas still to speak in this round, in order. */
  due: PersonaId[];
  /** Personas addressed in this round, who speak in the next. */
  next: PersonaId[];
  /** From 1. */
  round: number;
  /** Number of replies by personas. */
  replies: number;
  /** Everybody addressed in it: they hear it even if not present. */
  party: PersonaId[];
  /** The person whose words it follows. Absent: nobody. */
  personId?: ChatId;
}
