/**
 * Recall: search in what a persona knows, always within a scope. The index is derived from the store and the files: if
 * it lags or breaks, recall finds less, but never anything of another scope.
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

/** The owner's workspace. No chat can have this id. */
export const WORKSPACE: Scope = { chatId: 'workspace', personaId: 'workspace' };

export function isWorkspace({ chatId }: Scope): boolean {
  return chatId === WORKSPACE.chatId;
}

/** The moment of a search. */
export interface RecallMoment {
  /** The current time, to resolve words like "yesterday". */
  now: number;
  /** Messages that the prompt shows anyway. */
  except?: { room: RoomId; after: Position };
}

export interface RecallQuery extends RecallMoment {
  /** A person's words, verbatim: not a query language. */
  text: string;
  /** The preceding messages, if the text continues them. They help to find hits but need not match. */
  around?: string;
  /** Maximum number of hits, best first. */
  limit: number;
  /** Only hits from `since` (inclusive) to `until` (exclusive), in ms. */
  since?: number;
  until?: number;
}

type Source =
  | { kind: 'message'; room: RoomId; messageId: number; author: string; own: boolean }
  /** `file`: relative to the chat's folder. `line`: from 1. `tier`: null outside MEMORY.md. */
  | { kind: 'file'; file: string; line: number; tier: 1 | 2 | 3 | null }
  | { kind: 'archive'; file: string; author: string };

export interface Recalled {
  text: string;
  /** The matching part of a long text. */
  excerpt?: string;
  /** The message's time, or noon of the log's day; null if unknown. */
  at: number | null;
  source: Source;
  /** From 0 (chance) to 1; roughly comparable within and between queries. */
  relevance: number;
  /** Contains a word of the query that is rare in this scope. */
  rare?: boolean;
  /** Untrusted text, or an answer to untrusted text. */
  outside?: true;
  /** The preceding question, if this may be its answer. */
  answers?: Recalled;
}

export interface RecallResult {
  hits: Recalled[];
  /** `keywords`: vectors are off or unavailable. */
  by: 'keywords' | 'both';
}

interface RecallStatus {
  /** Chunks in the index, and messages and files known to wait for it. */
  indexed: number;
  waiting: number;
  /** `vectors`: off, working, or failing since a time. `vectorsWaiting`: chunks without a vector yet. */
  vectors: { state: 'off' | 'ok' } | { state: 'failing'; since: number; reason: string };
  vectorsWaiting: number;
}

export interface Recall {
  /** Never throws for a broken index: logs the error and returns what it finds. */
  search(scope: Scope, query: RecallQuery, signal?: AbortSignal): Promise<RecallResult>;
  /** Indexes new messages of a room soon, in the background. */
  heard(room: RoomId): void;
  /** Drops everything derived from the chat at once, then rebuilds it. Called after something was erased permanently. */
  forget(chatId: ChatId): Promise<void>;
  status(): RecallStatus;
  /** Starts indexing in the background; resolves at once. */
  start(): void;
  stop(): Promise<void>;
}

/** The store as recall reads it. Only the store decides what a persona may still see. */
export interface HeardFeed {
  /** All views in which anything was heard, in pages ordered by (room, personaId). */
  heardViews(after: { room: RoomId; personaId: PersonaId } | null, most: number): Promise<HeardView[]>;
  /**
   * Messages that a persona heard in a room after a position, oldest first: either its own and those addressed to it,
   * or overheard ones. Excludes what a reset forgot and what a running turn is answering.
   */
  heardSince(ask: {
    room: RoomId;
    personaId: PersonaId;
    addressed: boolean;
    after: Position;
    most: number;
  }): Promise<HeardMessage[]>;
  /** The given messages that the persona heard in that chat and may still see, with their current text. */
  visible(scope: Scope, messageIds: number[]): Promise<HeardMessage[]>;
}

export interface RecallFeed extends HeardFeed {
  originIn: Origins['originIn'];
}

export interface HeardView {
  room: RoomId;
  personaId: PersonaId;
  /** Increases with every reset: data indexed under another number is invalid. */
  resetAt: number;
}

/** The files of a scope as recall reads them. Unreadable files are logged and skipped. */
export interface RecallFiles {
  /** All chats and personas that have a folder, and the workspace. */
  scopes(): Promise<Scope[]>;
  /** The persona's MEMORY.md, the chat's daily logs, and the persona's archives, except reset ones. */
  list(scope: Scope): Promise<RecallFile[]>;
  /** null if the file no longer exists. */
  read(scope: Scope, file: string): Promise<string | null>;
}

export interface RecallFile {
  /** As in `Source`: `luna/MEMORY.md`, `memory/2026-11-22.md`, `archive/…`. */
  file: string;
  /** Changes whenever the file does. */
  stamp: string;
  bytes: number;
}

// Recalled pieces as lines for a model: in prompts and in results of `search_memory`.

/** Whether a piece, or the question it answers, is untrusted text. */
export function isFromOutside({ outside, answers }: Recalled): boolean {
  return outside === true || answers?.outside === true;
}

/** Maximum length of one line, so that it cannot fill the whole answer. */
const MOST_CHARS = 1_000;

/** `- 2026-03-04 10:15, Ann: text`. Always one line, so that no text can pose as another entry. */
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

/** A name without colons. Names that look like the persona's own label are marked as somebody else's. */
function authorIn(name: string): string {
  const line = oneLine(name.replaceAll(':', ' '));
  return looksLike(line, OWN) ? `somebody called “${line}”` : line;
}

function oneLine(text: string): string {
  return text.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim();
}

// The port that turns texts into vectors, served over HTTP or through a Redis queue.

/**
 * Throws Fault `embedding_unavailable` if there is no usable answer in time. A circuit breaker makes calls fail at once
 * for a while after failures.
 */
export interface Embedder {
  /** Identifies the model and how vectors are made. Vectors of different models are never compared. */
  readonly model: string;
  /** Length of the vectors; null until the first answer. */
  dimensions(): number | null;
  /**
   * One unit vector per text, in order; null for a text that the server rejects permanently (too long, malformed).
   * Queries have priority over documents.
   */
  embed(
    texts: string[],
    ask: { purpose: 'query' | 'document'; signal: AbortSignal },
  ): Promise<(Float32Array | null)[]>;
  /**
   * The vector of a question under an earlier `model`; null if the server cannot make it, or not in time. Absent:
   * never.
   */
  embedAsBefore?(model: string, text: string, signal: AbortSignal): Promise<Float32Array | null>;
  state(): { kind: 'ok' } | { kind: 'failing'; since: number; reason: string };
  close(): Promise<void>;
}
