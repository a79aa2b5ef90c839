/**
 * What one persona has of a room, as the store keeps it: a window on the transcript that only ever moves past
 * messages that a memory flush has seen or an archive holds. Nothing here deletes a message.
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

/** The size of a request in tokens: as the server counted it, and as we had estimated the same request. */
export interface Measured {
  counted: number;
  estimated: number;
}

export interface ViewRecord {
  room: RoomId;
  personaId: PersonaId;
  /** Nothing up to and including this message is shown to the persona again. */
  resetAt: number;
  /** The window begins behind it. */
  windowAfter: Position;
  /** Everything that was said to the persona up to here was seen by a flush that finished. */
  flushedTo: Position;
  /** Of what the window has left behind. */
  summary: string | null;
  /** Of the last request that a server counted since the window moved. */
  measured: Measured | null;
}

export interface HeardMessage extends StoredMessage {
  position: Position;
  /** False for what was only overheard. */
  addressed: boolean;
}

export interface Span {
  /** In the order of their places. */
  messages: HeardMessage[];
  /** Of those of their turns that used tools, by turn id. */
  steps: Map<string, Step[]>;
  /** More was addressed to the persona there than was asked for. */
  more: boolean;
}

/** The stretch of a view that an archive file holds. */
export interface ArchivedSpan {
  chatId: ChatId;
  room: RoomId;
  personaId: PersonaId;
  /** The file's name in the chat's archive folder. */
  file: string;
  after: Position;
  to: Position;
  /**
   * `writing`: the window has not moved past it yet, and the file may be half a story; `unflushed`: a flush of it
   * is still owed; `settled`: nothing is.
   */
  state: 'writing' | 'unflushed' | 'settled';
}

/** A view as it was read; a verb that finds another one changes nothing and answers false. */
export type SeenView = Pick<ViewRecord, 'room' | 'personaId' | 'resetAt' | 'windowAfter' | 'flushedTo'>;

export interface ViewStore {
  view(room: RoomId, personaId: PersonaId): Promise<ViewRecord>;
  /** The rooms of a chat in which a persona has heard anything. */
  roomsHeard(chatId: ChatId, personaId: PersonaId): Promise<RoomId[]>;
  /** Whether a chat has rooms beside this one. */
  hasOtherRooms(room: RoomId): Promise<boolean>;

  /** As `RouteStore.window`, but the oldest between two places (`after` exclusive, `upTo` inclusive), whatever the window is. */
  span(ask: {
    room: RoomId;
    personaId: PersonaId;
    after: Position;
    upTo: Position;
    limit: number;
    overheard: number;
  }): Promise<Span>;

  /** A flush has seen everything up to `to` and finished. Its usage counts for the chat. */
  commitFlush(flush: { view: SeenView; to: Position; usage: Usage | null; now: number }): Promise<boolean>;
  /** Notes that an archive of a span is about to be written; nothing is moved by it. */
  beginArchive(span: Omit<ArchivedSpan, 'state'>): Promise<void>;
  /**
   * The one verb that moves a window. Demands that `to` lies within what was flushed, or within `archive`, which
   * holds everything from where the window began and becomes `unflushed` (`settled` where a flush has seen it all).
   * Throws Fault `internal` otherwise.
   */
  moveWindow(move: {
    view: SeenView;
    to: Position;
    summary: string | null;
    archive: string | null;
    usage: Usage | null;
    now: number;
  }): Promise<boolean>;

  /** Archives that are not settled: of one view, or of these channels' chats. */
  openArchives(of: { room: RoomId; personaId: PersonaId } | { channels: string[] }): Promise<ArchivedSpan[]>;
  /** The file says now what the store does. */
  settleArchive(chatId: ChatId, file: string): Promise<void>;
  /** Of an archive whose window never moved: its row goes, the file is the caller's to remove. */
  dropArchive(chatId: ChatId, file: string): Promise<void>;
}
