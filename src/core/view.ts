/**
 * A view: what one persona heard of a room, as stored. Its window on the transcript only moves past messages that a
 * memory flush has seen or an archive contains. Nothing here deletes a message.
 */
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Usage } from './model.js';
import type { Step, StoredMessage } from './transcript.js';

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

export interface ViewStore {
  /** With the room's revision: cached copies of another one are void. */
  view(room: RoomId, personaId: PersonaId): Promise<ViewRecord & { revision: number }>;
  /** The rooms of a chat in which a persona has heard anything. */
  roomsHeard(chatId: ChatId, personaId: PersonaId): Promise<RoomId[]>;
  /** Whether each of these personas heard each of these messages of a room. */
  allHeard(room: RoomId, personaIds: PersonaId[], messageIds: number[]): Promise<boolean>;
  /** Whether a chat has rooms other than this one. */
  hasOtherRooms(room: RoomId): Promise<boolean>;

  /**
   * Like `RouteStore.window`, but the oldest messages between two positions (`after` exclusive, `upTo` inclusive),
   * regardless of the window.
   */
  span(ask: {
    room: RoomId;
    personaId: PersonaId;
    after: Position;
    upTo: Position;
    limit: number;
    overheard: number;
  }): Promise<Span>;

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
