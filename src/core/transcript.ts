/** What was said in a room, the steps of a turn before its answer, and what each persona heard of it, as stored. */
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { StoredAttachment } from './media.js';
import type { Echo, ToolCall, Usage } from './model.js';

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

// A view: what one persona heard of a room, as stored. Its window on the transcript only moves past messages that a
// memory flush has seen or an archive contains. Nothing here deletes a message.

/** A position in the order in which a persona heard a room's messages; both numbers are message ids. */
export interface Position {
  heardAfter: number;
  messageId: number;
}

export const BEGINNING: Position = { heardAfter: 0, messageId: 0 };
export const END: Position = { heardAfter: Number.MAX_SAFE_INTEGER, messageId: Number.MAX_SAFE_INTEGER };

export function isAfter(a: Position, b: Position): boolean {
  return a.heardAfter === b.heardAfter ? a.messageId > b.messageId : a.heardAfter > b.heardAfter;
}

/** The size of a request in tokens: as the server counted it, and as we estimated the same request. */
export interface Measured {
  counted: number;
  estimated: number;
}

export interface ViewRecord {
  room: RoomId;
  personaId: PersonaId;
  /** Set by `/reset`: nothing up to and including this message is shown to the persona again. */
  resetAt: number;
  /** The window begins after this position. */
  windowAfter: Position;
  /** A finished flush has seen everything said to the persona up to here. */
  flushedTo: Position;
  /** Summary of what has left the window. */
  summary: string | null;
  /** Size of the last request that a server counted since the window moved. */
  measured: Measured | null;
  /** The summary was made from words from outside, too. */
  tainted: boolean;
}

export interface HeardMessage extends StoredMessage {
  position: Position;
  /** False for a message that was only overheard. */
  addressed: boolean;
}

export interface Span {
  /** In order of position. */
  messages: HeardMessage[];
  /** The steps of those of their turns that used tools, by turn id. */
  steps: Map<string, Step[]>;
  /** Whether there were more addressed messages than `limit`. */
  more: boolean;
}

/** The span of a view that an archive file contains. */
export interface ArchivedSpan {
  chatId: ChatId;
  room: RoomId;
  personaId: PersonaId;
  /** The file's name in the chat's archive folder. */
  file: string;
  after: Position;
  to: Position;
  /**
   * `writing`: the window has not moved past it yet, and the file may be incomplete; `unflushed`: its flush is pending;
   * `settled`: done.
   */
  state: 'writing' | 'unflushed' | 'settled';
}

/** A view as it was read. A verb that finds a different one changes nothing and returns false. */
export type SeenView = Pick<ViewRecord, 'room' | 'personaId' | 'resetAt' | 'windowAfter' | 'flushedTo'>;

export interface WindowAsk {
  room: RoomId;
  personaId: PersonaId;
  /** At most so many messages addressed to the persona or by it, and so many others. */
  limit: number;
  overheard: number;
  /** The messages being answered. */
  except: readonly number[];
  /** Only what was heard after it. */
  after?: Position;
}

/** What a persona heard, as its view of the room leaves it. The cost does not depend on the length of the transcript. */
export interface TranscriptStore {
  /** The newest messages after `windowAfter` and the reset mark. */
  window(ask: WindowAsk): Promise<Span & { view: ViewRecord }>;
  /** The oldest messages between two positions (`after` exclusive, `upTo` inclusive), regardless of the window. */
  span(ask: {
    room: RoomId;
    personaId: PersonaId;
    after: Position;
    upTo: Position;
    limit: number;
    overheard: number;
  }): Promise<Span>;
  /** Whether a chat has rooms other than this one. */
  hasOtherRooms(room: RoomId): Promise<boolean>;
}

export interface ViewStore {
  /** With the room's revision: cached copies of another one are void. */
  view(room: RoomId, personaId: PersonaId): Promise<ViewRecord & { revision: number }>;
  /** The rooms of a chat in which a persona has heard anything. */
  roomsHeard(chatId: ChatId, personaId: PersonaId): Promise<RoomId[]>;
  /** Whether each of these personas heard each of these messages of a room. */
  allHeard(room: RoomId, personaIds: PersonaId[], messageIds: number[]): Promise<boolean>;
  /** Records that a flush has seen everything up to `to` and finished. Its usage is added to the chat's. */
  commitFlush(flush: { view: SeenView; to: Position; usage: Usage | null; now: number }): Promise<boolean>;
  /** Records that an archive of a span is about to be written; moves nothing. */
  beginArchive(span: Omit<ArchivedSpan, 'state'>): Promise<void>;
  /**
   * The only verb that moves a window. Requires `to` to lie within what was flushed or within `archive`, which must
   * begin where the window began and becomes `unflushed` (or `settled` if a flush has seen all of it). Otherwise throws
   * Fault `internal`. A summary is tainted if anything is that leaves the window, or the one before was.
   */
  moveWindow(move: {
    view: SeenView;
    to: Position;
    summary: string | null;
    archive: string | null;
    usage: Usage | null;
    now: number;
  }): Promise<boolean>;

  /** Archives that are not settled: of one view, or of all chats in these channels. */
  openArchives(of: { room: RoomId; personaId: PersonaId } | { channels: string[] }): Promise<ArchivedSpan[]>;
  /** The archive's front matter now agrees with the store. */
  settleArchive(chatId: ChatId, file: string): Promise<void>;
  /** Removes the row of an archive whose window never moved; the caller removes the file. */
  dropArchive(chatId: ChatId, file: string): Promise<void>;
}

// An exchange: what follows a human message in a chat of several personas. Everybody it addresses speaks in turn, then
// those they address, in further rounds, until nobody is addressed or the caps are reached.

export interface GroupRound {
  /** What was said in it, oldest first: message ids and the persona who spoke, null for people. */
  said: { id: number; by: PersonaId | null }[];
  /** Who is still to speak in this round, in order. */
  due: PersonaId[];
  /** Whom personas have addressed in this round; they speak in the next. */
  next: PersonaId[];
  /** Number of this round, from 1. */
  round: number;
  /** How often a persona has spoken. */
  replies: number;
  /** Everybody who was addressed in it: they hear what is said even if they are not present. */
  party: PersonaId[];
  /** The person whose words it follows; left out if there is none. */
  personId?: ChatId;
}
