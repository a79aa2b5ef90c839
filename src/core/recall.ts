/**
 * Recall: finding again what a persona knows. Everything here carries a scope; nothing searches without one. The
 * index behind it is derived: it may lag, be deleted or be broken, and then less is found, never something else's.
 */
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { HeardMessage, Position } from './view.js';

/** One persona in one chat: its own memory, the chat's daily log, and what it heard in any room of that chat. */
export interface Scope {
  readonly chatId: ChatId;
  readonly personaId: PersonaId;
}

export interface RecallQuery {
  /** What somebody said or asked, in their words: no query language. */
  text: string;
  /** At most so many, best first. */
  limit: number;
  /** Only what was said or noted from this time on, and before that one; ms. */
  since?: number;
  until?: number;
  /** Who asks and when, for words like "yesterday" and "I". */
  now: number;
  /** Messages that the prompt shows anyway are left out. */
  except?: { room: RoomId; after: Position };
}

export type Source =
  | { kind: 'message'; room: RoomId; messageId: number; author: string; own: boolean }
  /** Below the chat's folder; `line` from 1. `tier` of MEMORY.md, where the line stands in one. */
  | { kind: 'file'; file: string; line: number; tier: 1 | 2 | 3 | null }
  /** A message of which only an archive is left. */
  | { kind: 'archive'; file: string; author: string };

export interface Recalled {
  text: string;
  /** When it was said, or the day of the log (its noon); null where nobody knows. */
  at: number | null;
  source: Source;
  /** From 0 (no better than chance) to 1; comparable within and between queries as far as that goes. */
  relevance: number;
}

export interface RecallResult {
  hits: Recalled[];
  /** `keywords`: vectors are off, or could not be asked just now. */
  by: 'keywords' | 'both';
}

export interface RecallStatus {
  /** Pieces that stand in the index, and messages and files that are known to wait for it. */
  indexed: number;
  waiting: number;
  /** Vectors: off, in order, or failing since a time with the reason; how many pieces wait for theirs. */
  vectors: { state: 'off' | 'ok' } | { state: 'failing'; since: number; reason: string };
  vectorsWaiting: number;
}

export interface Recall {
  /** Never throws for a broken index: what can be found is, the rest is logged. */
  search(scope: Scope, query: RecallQuery, signal?: AbortSignal): Promise<RecallResult>;
  /** Something was heard in a room: to be indexed soon, in the background. */
  heard(room: RoomId): void;
  /** Something of a chat was forgotten for good: what is derived from it goes at once and is made anew. */
  forget(chatId: ChatId): Promise<void>;
  status(): RecallStatus;
  /** Begins indexing in the background; resolves at once. */
  start(): void;
  stop(): Promise<void>;
}

/** The store, as recall reads it. It alone says what a persona may still see. */
export interface RecallFeed {
  /** Every view in which anything was heard, a page at a time in the order of (room, personaId). */
  heardViews(after: { room: RoomId; personaId: PersonaId } | null, most: number): Promise<HeardView[]>;
  /**
   * What a persona heard in a room behind a place, of one kind (said to it and by it, or overheard), oldest first.
   * What a reset forgot and what a running turn answers is left out.
   */
  heardSince(ask: {
    room: RoomId;
    personaId: PersonaId;
    addressed: boolean;
    after: Position;
    most: number;
  }): Promise<HeardMessage[]>;
  /** Of these messages those that the scope's persona heard in that chat and may still see, as they are now. */
  visible(scope: Scope, messageIds: number[]): Promise<HeardMessage[]>;
}

export interface HeardView {
  room: RoomId;
  personaId: PersonaId;
  /** Grows with every reset: an index made under another number is void for this view. */
  resetAt: number;
}

/** The files of a scope, as recall reads them. Unreadable ones are left out and logged. */
export interface RecallFiles {
  /** Every chat and persona that has a folder. */
  scopes(): Promise<Scope[]>;
  /** MEMORY.md of the persona, the chat's daily logs, and the persona's archives that were not reset. */
  list(scope: Scope): Promise<RecallFile[]>;
  /** The text; null when it is gone meanwhile. */
  read(scope: Scope, file: string): Promise<string | null>;
}

export interface RecallFile {
  /** As in `Source`: `luna/MEMORY.md`, `memory/2026-11-22.md`, `archive/…`. */
  file: string;
  /** Changes when the file does. */
  stamp: string;
  bytes: number;
}
