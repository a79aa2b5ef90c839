/** The index on one database file, inside the indexing thread. A broken file is deleted and rebuilt. */
import { createZone, type Zone } from '../core/dates.js';
import type { ChatId, RoomId } from '../core/ids.js';
import type { Recalled, RecallQuery, Scope } from '../core/recall.js';
import { isAfter } from '../core/transcript.js';
import { Chunks, type FileChunk, fileChunks, type MessagePage } from './chunks.js';
import {
  FIRST_LINE,
  type IndexDatabase,
  isUnusable,
  openIndex,
  removeIndex,
  SCOPE_SPAN,
} from './index-database.js';
import { questionWords } from './question.js';
import { rank, relevanceOf, type Scored } from './rank.js';
import { type ScopeTable, ScopeTables } from './scope-table.js';
import { Vectors } from './vectors.js';

interface OpenIndex {
  db: IndexDatabase;
  chunks: Chunks;
  tables: ScopeTables;
  vectors: Vectors;
}

/** A hit before the store has confirmed that it may be seen. */
export type Ranked =
  /** `before`: the preceding message in its room. */
  | { kind: 'message'; messageId: number; before: number | null; relevance: number; rare: boolean }
  | { kind: 'line'; recalled: Recalled };

/** Chunks of a file written per transaction, which a search may have to wait for. */
const LINES_AT_ONCE = 200;

export class SearchIndex {
  private open: OpenIndex | null = null;
  private closed = false;
  private readonly zone: Zone;
  /** The embedder's, once it is known. */
  private model: string | null = null;

  /** `anew` is called with the reason if the index was lost. `pause` lets waiting searches go first. */
  constructor(
    private readonly file: string,
    zoneName: string,
    private readonly anew: (reason: string) => void,
    private readonly pause: () => Promise<void>,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.zone = createZone(zoneName);
  }

  private opened(): OpenIndex {
    if (this.closed) throw new Error('the index was closed');
    if (this.open !== null && !this.open.db.inPlace()) {
      this.shut();
      this.anew('its file was deleted');
    }
    if (this.open === null) {
      const db = openIndex(this.file, this.anew);
      this.open = {
        db,
        chunks: new Chunks(db),
        tables: new ScopeTables(db),
        vectors: new Vectors(db, this.now),
      };
    }
    return this.open;
  }

  /** If the file is broken, repeats `work` on an empty one. */
  private run<T>(work: (index: OpenIndex) => T): T {
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

  private shut(): void {
    this.open?.db.close();
    this.open = null;
  }

  /** How far each view is indexed; unknown or reset views start at the beginning. */
  views(views: { room: RoomId; scope: Scope; resetAt: number }[]) {
    return this.run(({ chunks, tables }) =>
      views.map(({ scope, room, resetAt }) => {
        const { view, dropped } = chunks.view(scope, room, resetAt);
        if (dropped !== null) tables.forget(dropped.scope);
        return view;
      }),
    );
  }

  /** Drops a view that the store no longer has. */
  dropView(scope: Scope, room: RoomId): void {
    this.run((index) => {
      drop(index, scope, 'room', room);
      // Archives may hold messages that the store has lost. Their copies were skipped, so they are read again.
      for (const origin of index.chunks.origins(scope, 'file')) {
        if (origin.name.startsWith('archive/')) index.chunks.markStale(origin);
      }
    });
  }

  /** Drops views and scopes that are not listed. */
  keepOnly(views: (Scope & { room: RoomId })[], scopes: Scope[]): void {
    const nameOf = ({ chatId, personaId }: Scope, room = '') => JSON.stringify([chatId, personaId, room]);
    const rooms = new Set(views.map((view) => nameOf(view, view.room)));
    const known = new Set([...views, ...scopes].map((scope) => nameOf(scope)));
    this.run((index) => {
      for (const scope of index.chunks.scopes()) {
        if (!known.has(nameOf(scope))) dropScope(index, scope.number);
        else
          for (const { name } of index.chunks.origins(scope, 'room')) {
            if (!rooms.has(nameOf(scope, name))) drop(index, scope, 'room', name);
          }
      }
    });
  }

  /** False if the page was not added, because the index has moved on since it was read. */
  addMessages(page: MessagePage): boolean {
    return this.run(({ chunks, tables }) => {
      const done = chunks.addMessages(page);
      if (done !== null) tables.added(done.scope, done.added);
      return done !== null;
    });
  }

  files(scope: Scope): { file: string; stamp: string }[] {
    return this.run(({ chunks }) =>
      chunks.origins(scope, 'file').map(({ name, version }) => ({ file: name, stamp: version })),
    );
  }

  dropFile(scope: Scope, name: string): void {
    this.run((index) => drop(index, scope, 'file', name));
  }

  /** Resolves when the whole file is indexed; until then its old version is found. */
  async addFile(scope: Scope, name: string, stamp: string, text: string): Promise<void> {
    const origin = this.run(({ chunks }) => chunks.beginFile(scope, name, stamp));
    let lines: FileChunk[] = [];
    for (const line of fileChunks(name, text, this.zone)) {
      lines.push(line);
      if (lines.length < LINES_AT_ONCE) continue;
      const full = lines;
      lines = [];
      this.run(({ chunks }) => chunks.addLines(origin, full));
      await this.pause();
    }
    this.run(({ chunks, tables }) => {
      chunks.addLines(origin, lines);
      if (chunks.finishFile(origin)) tables.forget(origin.scope);
    });
  }

  /** `vectors`: the query's; the first model with nearly all of the scope's chunks is used. */
  search(
    scope: Scope,
    query: RecallQuery,
    most: number,
    vectors: { model: string; value: Float32Array }[],
  ): { ranked: Ranked[]; byVectors: boolean } {
    return this.run((index) => {
      const number = index.chunks.scopeNumber(scope);
      if (number === null) return { ranked: [], byVectors: false };
      const table = index.tables.of(number);
      const wanted = wantedIn(index, table, query);
      const meaning = index.vectors.meaning(table, vectors);
      const words = questionWords(index.tables, table, query, this.zone);
      const scored = rank(table, { ...words, wanted, meaning });
      const ranked = scored.slice(0, most).flatMap((hit) => hitOf(index, table, hit));
      return { ranked, byVectors: meaning !== null };
    });
  }

  forget(chatId: ChatId): void {
    this.run((index) => {
      for (const scope of index.chunks.scopes()) if (scope.chatId === chatId) dropScope(index, scope.number);
    });
  }

  withoutVector(model: string, most: number) {
    this.model = model;
    return this.run(({ vectors }) => vectors.waiting(model, most));
  }

  /** null: the chunk will never have a vector. */
  addVectors(model: string, made: { chunk: number; value: Float32Array | null }[]): void {
    this.run(({ vectors }) => vectors.add(model, made));
  }

  /** `former`: the model used until this one's vectors are complete. */
  counts(model: string | null): { indexed: number; vectorsWaiting: number; former: string | null } {
    return this.run(({ chunks, vectors }) => {
      const vectorsWaiting = model === null ? 0 : vectors.countWaiting(model);
      const former = model === null || vectorsWaiting === 0 ? null : vectors.former(model);
      return { indexed: chunks.count(), vectorsWaiting, former };
    });
  }

  tidy(): boolean {
    const { model } = this;
    return this.run(({ chunks, vectors }) => chunks.clear() || (model !== null && vectors.clear(model)));
  }

  /** Rewrites the file: free pages and the log still contain deleted text. */
  scrub(): void {
    const { raw } = this.opened().db;
    raw.exec('VACUUM');
    raw.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  }

  close(): void {
    this.closed = true;
    this.open?.vectors.noteTrust();
    this.shut();
  }
}

function drop({ chunks, tables }: OpenIndex, scope: Scope, kind: 'room' | 'file', name: string): void {
  const origin = chunks.origin(chunks.scopeNumber(scope), kind, name);
  if (origin === null) return;
  chunks.drop(origin);
  tables.forget(origin.scope);
}

function dropScope({ chunks, tables }: OpenIndex, scope: number): void {
  tables.forget(scope);
  chunks.dropScope(scope);
}

function wantedIn({ chunks }: OpenIndex, table: ScopeTable, { since, until, except }: RecallQuery) {
  const { times, origins, heardAfter, chunks: ids } = table.columns;
  const shownRoom = except && chunks.origin(table.scope, 'room', except.room)?.number;
  return (position: number): boolean => {
    const at = times[position] ?? Number.NaN;
    if (since !== undefined && !(at >= since)) return false;
    if (until !== undefined && !(at < until)) return false;
    if (!except || origins[position] !== shownRoom) return true;
    const here = { heardAfter: heardAfter[position] ?? 0, messageId: ids[position] ?? 0 };
    return !isAfter(here, except.after);
  };
}

function hitOf({ chunks }: OpenIndex, table: ScopeTable, { index, share, rare }: Scored): Ranked[] {
  const chunk = table.columns.chunks[index] ?? 0;
  const relevance = relevanceOf(share);
  if (chunk < FIRST_LINE) {
    const before = table.columns.chunks[table.beside(index, -1)] ?? null;
    return [{ kind: 'message', messageId: chunk, before, relevance, rare }];
  }
  const found = chunks.line(table.scope * SCOPE_SPAN + chunk);
  if (found === null) return [];
  const { text, at, file, author, line, tier } = found;
  const source = file.startsWith('archive/')
    ? { kind: 'archive' as const, file, author }
    : { kind: 'file' as const, file, line, tier };
  return [{ kind: 'line', recalled: { text, at, source, relevance, rare } }];
}
