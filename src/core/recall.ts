/**
 * Recall: searching what a persona knows. Every search has a scope. The index is derived: it may lag, be deleted or be
 * broken; then less is found, but never anything of another scope.
 */

import { cutAt } from './cut.js';
import type { Zone } from './dates.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import { looksLike } from './likeness.js';
import type { Origins } from './origin.js';
import type { HeardMessage, Position } from './transcript.js';

/** One persona in one chat: its own memory, the chat's daily log, and what it heard in all rooms of that chat. */
export interface Scope {
  readonly chatId: ChatId;
  readonly personaId: PersonaId;
}

/** The notes of the workspace, which are the owner's: no chat has such an id. */
export const WORKSPACE: Scope = { chatId: 'workspace', personaId: 'workspace' };

export function isWorkspace({ chatId }: Scope): boolean {
  return chatId === WORKSPACE.chatId;
}

export interface RecallQuery {
  /** What somebody said or asked, verbatim: not a query language. */
  text: string;
  /** What was said just before, where the text goes on from it: helps to find, and need not be found. */
  around?: string;
  /** The most hits to return, best first. */
  limit: number;
  /** Only what was said or noted from `since` (inclusive) to `until` (exclusive); ms. */
  since?: number;
  until?: number;
  /** The time of asking, to resolve words like "yesterday". */
  now: number;
  /** Excludes messages that the prompt shows anyway. */
  except?: { room: RoomId; after: Position };
}

type Source =
  | { kind: 'message'; room: RoomId; messageId: number; author: string; own: boolean }
  /** Path relative to the chat's folder; `line` counts from 1. `tier`: which one in MEMORY.md, else null. */
  | { kind: 'file'; file: string; line: number; tier: 1 | 2 | 3 | null }
  /** A message that only exists in an archive. */
  | { kind: 'archive'; file: string; author: string };

export interface Recalled {
  text: string;
  /** Of a long text, the part that has to do with the query. */
  excerpt?: string;
  /** When it was said, or noon of the log's day; null if unknown. */
  at: number | null;
  source: Source;
  /** From 0 (no better than chance) to 1; roughly comparable within and between queries. */
  relevance: number;
  /** It has a word that the query is about and that hardly anything else in the scope has. */
  rare?: boolean;
  /** It is words from outside, or an answer to such. */
  outside?: true;
  /** The question just before, if this may be its answer. */
  answers?: Recalled;
}

export interface RecallResult {
  hits: Recalled[];
  /** `keywords`: vectors are off or were unavailable. */
  by: 'keywords' | 'both';
}

interface RecallStatus {
  /** Chunks in the index; messages and files known to wait for indexing. */
  indexed: number;
  waiting: number;
  /** Vectors: off, working, or failing since a time with the reason; and how many chunks wait for theirs. */
  vectors: { state: 'off' | 'ok' } | { state: 'failing'; since: number; reason: string };
  vectorsWaiting: number;
}

export interface Recall {
  /** Never throws for a broken index: returns what it finds and logs the error. */
  search(scope: Scope, query: RecallQuery, signal?: AbortSignal): Promise<RecallResult>;
  /** Something was heard in a room: index it soon, in the background. */
  heard(room: RoomId): void;
  /** Something in a chat was erased for good: drops everything derived from the chat at once and rebuilds it. */
  forget(chatId: ChatId): Promise<void>;
  status(): RecallStatus;
  /** Starts indexing in the background; resolves at once. */
  start(): void;
  stop(): Promise<void>;
}

/** The store as recall reads it. The store alone decides what a persona may still see. */
/** What each persona heard, in that order. */
export interface HeardFeed {
  /** Every view in which anything was heard, in pages ordered by (room, personaId). */
  heardViews(after: { room: RoomId; personaId: PersonaId } | null, most: number): Promise<HeardView[]>;
  /**
   * What a persona heard in a room after a position, oldest first: either messages addressed to it and its own, or
   * overheard ones. Leaves out what was forgotten by a reset and what a running turn is answering.
   */
  heardSince(ask: {
    room: RoomId;
    personaId: PersonaId;
    addressed: boolean;
    after: Position;
    most: number;
  }): Promise<HeardMessage[]>;
  /** Those of the messages that the scope's persona heard in that chat and may still see, with their current text. */
  visible(scope: Scope, messageIds: number[]): Promise<HeardMessage[]>;
}

export interface RecallFeed extends HeardFeed {
  originIn: Origins['originIn'];
}

export interface HeardView {
  room: RoomId;
  personaId: PersonaId;
  /** Grows with every reset: indexed data with another number is void for this view. */
  resetAt: number;
}

/** The files of a scope as recall reads them. Unreadable ones are left out and logged. */
export interface RecallFiles {
  /** Every chat and persona that has a folder, and the workspace. */
  scopes(): Promise<Scope[]>;
  /** The persona's MEMORY.md, the chat's daily logs, and the persona's archives that were not reset. */
  list(scope: Scope): Promise<RecallFile[]>;
  /** The text; null if the file no longer exists. */
  read(scope: Scope, file: string): Promise<string | null>;
}

export interface RecallFile {
  /** As in `Source`: `luna/MEMORY.md`, `memory/2026-11-22.md`, `archive/…`. */
  file: string;
  /** Changes whenever the file does. */
  stamp: string;
  bytes: number;
}

// Formats recalled pieces as lines for a model: in a turn's prompt and in answers of `search_memory`.

/** Whether words from outside are in the line of a piece, or in what it answers. */
export function isFromOutside({ outside, answers }: Recalled): boolean {
  return outside === true || answers?.outside === true;
}

/** Limits one line, so that it cannot fill the whole answer. */
const MOST_CHARS = 1_000;

/** `- 2026-03-04 10:15, Ann: text`. Always a single line, so that no text can pose as another entry. */
export function recalledLine({ text, excerpt, at, source }: Recalled, zone: Zone): string {
  const line = oneLine(excerpt ?? text);
  const words = line.length <= MOST_CHARS ? line : `${cutAt(line, MOST_CHARS)} …`;
  const when = at === null ? '' : `${zone.time(at)}, `;
  switch (source.kind) {
    case 'message':
      return `- ${when}${source.own ? OWN : authorIn(source.author)}: ${words}`;
    case 'archive':
      return `- ${when}${authorIn(source.author)}: ${words} (${source.file})`;
    case 'file':
      return `- ${words} (${source.file}${source.tier === null ? '' : `, tier ${source.tier}`})`;
  }
}

const OWN = 'you';

/** A name ends at the colon; nobody else is called as the persona is here, whatever they call themselves. */
function authorIn(name: string): string {
  const line = oneLine(name.replaceAll(':', ' '));
  return looksLike(line, OWN) ? `somebody called “${line}”` : line;
}

function oneLine(text: string): string {
  return text.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim();
}

// The port that turns texts into vectors, with a server on a GPU machine: called over HTTP or through a queue in Redis.

/**
 * Throws Fault `embedding_unavailable` when there is no usable answer in time. When the server is down, calls must fail
 * at once: a circuit breaker stays open for a while after failures.
 */
export interface Embedder {
  /** Identifies the model and how its vectors are made; vectors of different models are never compared. */
  readonly model: string;
  /** Length of the vectors; null until the first answer. */
  dimensions(): number | null;
  /**
   * One unit vector per text, in order; null for a text that the server rejects for good (too long, malformed).
   * `purpose` sets the priority: somebody waits for a query, so queries go before documents.
   */
  embed(
    texts: string[],
    ask: { purpose: 'query' | 'document'; signal: AbortSignal },
  ): Promise<(Float32Array | null)[]>;
  /**
   * The vector of a question among those that `model`, an earlier name, stands for; null where the server cannot make
   * it any more, or not in time. Absent: never.
   */
  embedAsBefore?(model: string, text: string, signal: AbortSignal): Promise<Float32Array | null>;
  state(): { kind: 'ok' } | { kind: 'failing'; since: number; reason: string };
  close(): Promise<void>;
}
