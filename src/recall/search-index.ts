/** The index on one database file, inside the indexing thread. A broken file is deleted and rebuilt. */
import { createZone } from '../core/dates.js';
import { isAfter } from '../core/position.js';
import type { RecallQuery, Scope } from '../core/recall.js';
import { type ChunkOrigin, Chunks, type FileChunk, fileChunks } from './chunks.js';
import {
  FIRST_LINE,
  type IndexDatabase,
  isUnusable,
  openIndex,
  removeIndex,
  SCOPE_SPAN,
} from './index-database.js';
import type { IndexPort, Ranked } from './index-thread.js';
import { questionWords } from './question.js';
import { rank, relevanceOf, type Scored } from './rank.js';
import { createScopeTables, type ScopeTable, type ScopeTables } from './scope-table.js';
import { Vectors } from './vectors.js';

interface SearchIndex extends IndexPort {
  tidy(): boolean;
  /** Rewrites the file: free pages and the log still contain deleted text. */
  scrub(): void;
}

interface OpenIndex {
  db: IndexDatabase;
  chunks: Chunks;
  tables: ScopeTables;
  vectors: Vectors;
}

/** Chunks of a file written per transaction, which a search may have to wait for. */
const LINES_AT_ONCE = 200;

/** The open database; recreated if the file was deleted or is broken. */
class IndexFile {
  private open: OpenIndex | null = null;
  private readonly held: unknown[] = [];
  private closed = false;

  constructor(
    private readonly file: string,
    private readonly anew: (reason: string) => void,
    private readonly now: () => number,
  ) {}

  opened(): OpenIndex {
    if (this.closed) throw new Error('the index was closed');
    if (this.open !== null && !this.open.db.inPlace()) {
      this.shut();
      this.anew('its file was deleted');
    }
    if (this.open === null) {
      const db = openIndex(this.file, this.held, this.anew);
      const vectors = new Vectors(db, this.now);
      this.open = { db, chunks: new Chunks(db), tables: createScopeTables(db), vectors };
    }
    return this.open;
  }

  /** If the file is broken, repeats `work` on an empty one. */
  run<T>(work: (index: OpenIndex) => T): T {
    try {
      return work(this.opened());
    } catch (error) {
      if (!isUnusable(error)) throw error;
      this.shut();
      removeIndex(this.file);
      this.anew(error instanceof Error ? error.message : String(error));
      return work(this.opened());
    }
  }

  close(): void {
    this.closed = true;
    this.open?.vectors.noteTrust();
    this.shut();
  }

  private shut(): void {
    this.open?.db.close();
    this.open = null;
  }
}

function drop({ chunks, tables }: OpenIndex, origin: ChunkOrigin | null): void {
  if (origin === null) return;
  chunks.drop(origin);
  tables.removed(origin.scope, origin.number);
}

function dropScope({ chunks, tables }: OpenIndex, scope: number): void {
  tables.forget(scope);
  chunks.dropScope(scope);
}

/** `anew` is called with the reason if the index was lost. `pause` lets waiting searches go first. */
export function createSearchIndex(
  file: string,
  zoneName: string,
  anew: (reason: string) => void,
  pause: () => Promise<void>,
  now: () => number = () => performance.now(),
): SearchIndex {
  const zone = createZone(zoneName);
  const index = new IndexFile(file, anew, now);
  const run = <T>(work: (open: OpenIndex) => T): T => index.run(work);
  let model: string | null = null;

  return {
    views: (views) =>
      run(({ chunks, tables }) =>
        views.map(({ scope, room, resetAt }) => {
          const { view, dropped } = chunks.view(scope, room, resetAt);
          if (dropped !== null) tables.removed(dropped.scope, dropped.number);
          return view;
        }),
      ),

    dropView: (scope, room) =>
      run((index) => {
        const origin = index.chunks.origin(scope, 'room', room);
        if (origin === null) return;
        drop(index, origin);
        // Archives may hold messages that the store has lost. Their copies were skipped, so they are read again.
        const archives = index.chunks
          .origins(scope, 'file')
          .filter(({ name }) => name.startsWith('archive/'));
        for (const archive of archives) index.chunks.markStale(archive);
      }),

    keepOnly: (views, scopes) =>
      run((index) => {
        const nameOf = ({ chatId, personaId }: Scope, room = '') => JSON.stringify([chatId, personaId, room]);
        const rooms = new Set(views.map((view) => nameOf(view, view.room)));
        const known = new Set([...views, ...scopes].map((scope) => nameOf(scope)));
        for (const scope of index.chunks.scopes()) {
          if (!known.has(nameOf(scope))) dropScope(index, scope.number);
          else
            for (const origin of index.chunks.origins(scope, 'room')) {
              if (!rooms.has(nameOf(scope, origin.name))) drop(index, origin);
            }
        }
      }),

    newest: (views) =>
      run(({ chunks }) =>
        views.map(({ scope, room }) => {
          const origin = chunks.origin(scope, 'room', room);
          return origin === null ? null : chunks.newest(origin);
        }),
      ),

    addMessages: (pages) =>
      pages.map((page) =>
        run(({ chunks, tables }) => {
          const added = chunks.addMessages(page);
          if (added !== null) tables.added(added);
          return added !== null;
        }),
      ),

    files: (scope) =>
      run(({ chunks }) =>
        chunks.origins(scope, 'file').map(({ name, version }) => ({ file: name, stamp: version })),
      ),

    dropFile: (scope, name) => run((index) => drop(index, index.chunks.origin(scope, 'file', name))),

    async addFile({ scope, file: name, stamp, text }) {
      const origin = run(({ chunks }) => chunks.beginFile(scope, name, stamp));
      let lines: FileChunk[] = [];
      for (const line of fileChunks(name, text, zone)) {
        lines.push(line);
        if (lines.length < LINES_AT_ONCE) continue;
        const full = lines;
        lines = [];
        run(({ chunks }) => chunks.addLines(origin, full));
        await pause();
      }
      return run(({ chunks, tables }) => {
        chunks.addLines(origin, lines);
        const before = chunks.origin(scope, 'file', name);
        if (!chunks.finishFile(origin)) return false;
        if (before !== null) tables.removed(before.scope, before.number);
        tables.addedFile(origin.scope, origin.number);
        return true;
      });
    },

    search: ({ scope, query, most, vectors }) =>
      run((index) => {
        const number = index.chunks.scopeNumber(scope);
        if (number === null) return { ranked: [], byVectors: false };
        const table = index.tables.of(number);
        const wanted = wantedIn(index, scope, table, query);
        const meaning = index.vectors.meaning(number, table, vectors);
        const scored = rank(table, {
          ...questionWords(index.tables, number, table, query, zone),
          wanted,
          meaning,
        });
        const ranked = scored.slice(0, most).flatMap((hit) => hitOf(index, number, table, hit));
        return { ranked, byVectors: meaning !== null };
      }),

    forget: (chatId) =>
      run((index) => {
        for (const scope of index.chunks.scopes())
          if (scope.chatId === chatId) dropScope(index, scope.number);
      }),

    withoutVector: (name, most) =>
      run(({ vectors }) => {
        model = name;
        return vectors.waiting(name, most);
      }),

    addVectors: (name, made) => run(({ vectors }) => vectors.add(name, made)),

    counts: (name) =>
      run(({ chunks, vectors }) => ({
        indexed: chunks.count(),
        ...(name === null ? { vectorsWaiting: 0, former: null } : waitingFor(vectors, name)),
      })),

    tidy: () => run(({ chunks, vectors }) => chunks.clear() || (model !== null && vectors.clear(model))),

    scrub() {
      const { raw } = index.opened().db;
      raw.exec('VACUUM');
      raw.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    },

    close() {
      index.close();
    },
  };
}

function waitingFor(vectors: Vectors, model: string) {
  const vectorsWaiting = vectors.countWaiting(model);
  return { vectorsWaiting, former: vectorsWaiting === 0 ? null : vectors.former(model) };
}

function wantedIn(
  { chunks }: OpenIndex,
  scope: Scope,
  table: ScopeTable,
  { since, until, except }: RecallQuery,
) {
  const shownRoom = except && chunks.origin(scope, 'room', except.room)?.number;
  return (position: number): boolean => {
    const at = table.times[position] ?? Number.NaN;
    if (since !== undefined && !(at >= since)) return false;
    if (until !== undefined && !(at < until)) return false;
    if (!except || table.origins[position] !== shownRoom) return true;
    const here = { heardAfter: table.heardAfter[position] ?? 0, messageId: table.chunks[position] ?? 0 };
    return !isAfter(here, except.after);
  };
}

function hitOf({ chunks }: OpenIndex, scope: number, table: ScopeTable, hit: Scored): Ranked[] {
  const chunk = table.chunks[hit.index] ?? 0;
  const relevance = relevanceOf(hit.share);
  if (chunk < FIRST_LINE) {
    const before = table.chunks[table.beside(hit.index, -1)] ?? null;
    return [{ kind: 'message', messageId: chunk, before, relevance, rare: hit.rare }];
  }
  const found = chunks.line(scope * SCOPE_SPAN + chunk);
  if (found === null) return [];
  const { text, at, file, author, line, tier } = found;
  const source = file.startsWith('archive/')
    ? { kind: 'archive' as const, file, author }
    : { kind: 'file' as const, file, line, tier };
  return [{ kind: 'line', recalled: { text, at, source, relevance, rare: hit.rare } }];
}
