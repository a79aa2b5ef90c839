/** Search in what a persona knows, always within a scope. The index is derived: if it lags, recall finds less. */
import type { Stats } from 'node:fs';
import { inOneLine } from './cut.js';
import type { Zone } from './dates.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import { looksLike } from './likeness.js';
import type { Origins } from './origin.js';
import type { HeardMessage, Position } from './transcript.js';

/** One persona in one chat: its own memory, the chat's daily log, and what it heard there. */
export interface Scope {
  readonly chatId: ChatId;
  readonly personaId: PersonaId;
}

/** No chat can have this id. */
export const WORKSPACE: Scope = { chatId: 'workspace', personaId: 'workspace' };

export function isWorkspace({ chatId }: Scope): boolean {
  return chatId === WORKSPACE.chatId;
}

export interface RecallMoment {
  /** Resolves words like "yesterday". */
  now: number;
  /** Shown by the prompt anyway. */
  except?: { room: RoomId; after: Position };
}

export interface RecallQuery extends RecallMoment {
  /** Verbatim: not a query language. */
  text: string;
  /** The preceding messages, if the text continues them. They need not match. */
  around?: string;
  /** Best first. */
  limit: number;
  /** From `since` (inclusive) to `until` (exclusive), in ms. */
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
  /** Of a long text. */
  excerpt?: string;
  /** Noon of a log's day; null if unknown. */
  at: number | null;
  source: Source;
  /** From 0 (chance) to 1. */
  relevance: number;
  /** Contains a word of the query that is rare in this scope. */
  rare?: boolean;
  /** Untrusted text, or an answer to it. */
  outside?: true;
  /** The preceding question. */
  answers?: Recalled;
}

export interface RecallResult {
  hits: Recalled[];
  /** `keywords`: vectors are off or unavailable. */
  by: 'keywords' | 'both';
}

interface RecallStatus {
  indexed: number;
  waiting: number;
  vectors: { state: 'off' | 'ok' } | { state: 'failing'; since: number; reason: string };
  vectorsWaiting: number;
}

export interface Recall {
  /** Never throws for a broken index: finds less. */
  search(scope: Scope, query: RecallQuery, signal?: AbortSignal): Promise<RecallResult>;
  heard(room: RoomId): void;
  /** At once, then rebuilds it. Called after something was erased permanently. */
  forget(chatId: ChatId): Promise<void>;
  status(): RecallStatus;
  start(): void;
  stop(): Promise<void>;
}

/** Only the store decides what a persona may still see. */
export interface HeardFeed {
  /** In pages ordered by (room, personaId). */
  heardViews(after: { room: RoomId; personaId: PersonaId } | null, most: number): Promise<HeardView[]>;
  /**
   * Oldest first: its own and those addressed to it, or overheard ones. Without what a reset forgot and what a running
   * turn is answering.
   */
  heardSince(ask: {
    room: RoomId;
    personaId: PersonaId;
    addressed: boolean;
    after: Position;
    most: number;
  }): Promise<HeardMessage[]>;
  /** Those that the persona heard there and may still see, with their current text. */
  visible(scope: Scope, messageIds: number[]): Promise<HeardMessage[]>;
}

export interface RecallFeed extends HeardFeed {
  originIn: Origins['originIn'];
}

export interface HeardView {
  room: RoomId;
  personaId: PersonaId;
  /** Data indexed under another number is invalid. */
  resetAt: number;
}

/** Unreadable files are logged and skipped. */
export interface RecallFiles {
  /** With a folder, and the workspace. */
  scopes(): Promise<Scope[]>;
  /** Without reset archives. */
  list(scope: Scope): Promise<RecallFile[]>;
  read(scope: Scope, file: string): Promise<string | null>;
}

export interface RecallFile {
  /** As in `Source`. */
  file: string;
  stamp: string;
  bytes: number;
}

/** null: there is nothing to index. */
export function stampOf(found: Stats | null | undefined) {
  if (!found || found.size === 0) return null;
  return { stamp: `${found.mtimeMs}-${found.size}-${found.ino}`, bytes: found.size };
}

export function isFromOutside({ outside, answers }: Recalled): boolean {
  return outside === true || answers?.outside === true;
}

/** Of one line, so that it cannot fill the whole answer. */
const MOST_CHARS = 1_000;

/** Always one line, so that no text can pose as another entry. */
export function recalledLine({ text, excerpt, at, source }: Recalled, zone: Zone): string {
  const words = inOneLine(excerpt ?? text, MOST_CHARS, ' …');
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

/** Without colons. Names that look like the persona's own label are marked. */
function authorIn(name: string): string {
  const line = inOneLine(name.replaceAll(':', ' '));
  return looksLike(line, OWN) ? `somebody called “${line}”` : line;
}

/** Throws Fault `embedding_unavailable`. After failures a circuit breaker makes calls fail at once for a while. */
export interface Embedder {
  /** Vectors of different models are never compared. */
  readonly model: string;
  /** null until the first answer. */
  dimensions(): number | null;
  /** Unit vectors, in order; null for a text that the server rejects permanently. Queries have priority. */
  embed(
    texts: string[],
    ask: { purpose: 'query' | 'document'; signal: AbortSignal },
  ): Promise<(Float32Array | null)[]>;
  /** Under an earlier `model`; null if the server cannot make it, or not in time. */
  embedAsBefore?(model: string, text: string, signal: AbortSignal): Promise<Float32Array | null>;
  state(): { kind: 'ok' } | { kind: 'failing'; since: number; reason: string };
  /** Of a backend with a queue; null if it cannot be asked. */
  queue?(): Promise<EmbeddingQueue | null>;
  close(): Promise<void>;
}

/** `workers`: those of ours that live; others need not tell. `parked`: jobs that workers died of. */
export interface EmbeddingQueue {
  waiting: number;
  parked: number;
  workers: number;
  /** The worker's model, and when it last answered; null before the first answer. */
  model: string | null;
  answeredAt: number | null;
}
