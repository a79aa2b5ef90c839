/** The index itself: all its verbs on one database file, for the thread that owns it. A broken file is made anew. */
import { createZone } from '../core/dates.js';
import type { RecallQuery, Scope } from '../core/recall.js';
import { isBehind } from '../core/view.js';
import {
  FIRST_LINE,
  type IndexDatabase,
  isUnusable,
  openIndex,
  removeIndex,
  SCOPE_SPAN,
} from './database.js';
import { datesIn } from './dates.js';
import { type FilePiece, filePieces } from './file-pieces.js';
import { createPieces, type Pieces } from './pieces.js';
import { rank, type Scored } from './rank.js';
import { relevanceOf } from './relevance.js';
import type { Shelf } from './shelf.js';
import { createShelves, type Shelves } from './shelves.js';
import { createVectors, type Vectors } from './vectors.js';
import type { Ranked, Verbs } from './verbs.js';
import { queryTerms, type Term } from './words.js';

export interface Engine extends Verbs {
  /** Does a part of what is left to clear away; false when nothing is. */
  tidy(): boolean;
  /** Writes the file anew: in the unused parts of its pages, and in the log, stands what was deleted. */
  scrub(): void;
}

interface Open {
  db: IndexDatabase;
  pieces: Pieces;
  shelves: Shelves;
  vectors: Vectors;
}

/** A question of more terms is a pasted text: its first ones are looked for. */
const MOST_TERMS = 64;
/** Pieces of a file that are written in one go: a search may wait behind them. */
const LINES_AT_ONCE = 200;

/** `anew` is told when what was indexed is gone, with the reason (null: there was nothing yet, or it was deleted). */
export function createEngine(options: {
  file: string;
  zone: string;
  anew: (reason: string) => void;
  /** Lets waiting searches go first. */
  pause: () => Promise<void>;
}): Engine {
  const { file, anew, pause } = options;
  const zone = createZone(options.zone);
  let open: Open | null = null;
  const held: unknown[] = [];
  let closed = false;
  let model: string | null = null;

  function index(): Open {
    if (closed) throw new Error('the index was closed');
    if (open !== null && !open.db.inPlace()) {
      shut();
      anew('its file was deleted');
    }
    if (open === null) {
      const db = openIndex(file, held, anew);
      open = { db, pieces: createPieces(db), shelves: createShelves(db), vectors: createVectors(db) };
    }
    return open;
  }

  function shut(): void {
    open?.db.close();
    open = null;
  }

  /** What a broken file cannot do, an empty one can. */
  function sound<T>(work: (index: Open) => T): T {
    try {
      return work(index());
    } catch (error) {
      if (!isUnusable(error)) throw error;
      shut();
      removeIndex(file);
      anew(error instanceof Error ? error.message : String(error));
      return work(index());
    }
  }

  return {
    views: (views) =>
      sound(({ pieces, shelves }) =>
        views.map(({ scope, room, resetAt }) => {
          const before = pieces.origin(scope, 'room', room);
          const view = pieces.view(scope, room, resetAt);
          if (before !== null && before.version !== String(resetAt)) {
            shelves.changed(before.scope, { out: before.number });
          }
          return view;
        }),
      ),

    dropView: (scope, room) =>
      sound(({ pieces, shelves }) => {
        const origin = pieces.origin(scope, 'room', room);
        if (origin === null) return;
        pieces.drop(origin);
        shelves.changed(origin.scope, { out: origin.number });
        // Archives hold what the store has lost: they are read again without its messages.
        for (const archive of pieces.origins(scope, 'file'))
          if (archive.name.startsWith('archive/')) pieces.stale(archive);
      }),

    keepOnly: (views, scopes) =>
      sound(({ pieces, shelves }) => {
        const rooms = new Set(
          views.map(({ chatId, personaId, room }) => JSON.stringify([chatId, personaId, room])),
        );
        const known = new Set(
          [...views, ...scopes].map(({ chatId, personaId }) => JSON.stringify([chatId, personaId])),
        );
        for (const scope of pieces.scopes()) {
          if (!known.has(JSON.stringify([scope.chatId, scope.personaId]))) {
            shelves.forget(scope.number);
            pieces.dropScope(scope.number);
            continue;
          }
          for (const origin of pieces.origins(scope, 'room')) {
            if (rooms.has(JSON.stringify([scope.chatId, scope.personaId, origin.name]))) continue;
            pieces.drop(origin);
            shelves.changed(scope.number, { out: origin.number });
          }
        }
      }),

    newest: (views) =>
      sound(({ pieces }) =>
        views.map(({ scope, room }) => {
          const origin = pieces.origin(scope, 'room', room);
          return origin === null ? null : pieces.newest(origin);
        }),
      ),

    addMessages: (page) =>
      sound(({ pieces, shelves }) => {
        const added = pieces.addMessages(page);
        if (added !== null) shelves.added(added);
        return added !== null;
      }),

    files: (scope) =>
      sound(({ pieces }) =>
        pieces.origins(scope, 'file').map(({ name, version }) => ({ file: name, stamp: version })),
      ),

    dropFile: (scope, name) =>
      sound(({ pieces, shelves }) => {
        const origin = pieces.origin(scope, 'file', name);
        if (origin === null) return;
        pieces.drop(origin);
        shelves.changed(origin.scope, { out: origin.number });
      }),

    async addFile({ scope, file: name, stamp, text }) {
      const origin = sound(({ pieces }) => pieces.beginFile(scope, name, stamp));
      let batch: FilePiece[] = [];
      for (const piece of filePieces(name, text, zone)) {
        batch.push(piece);
        if (batch.length < LINES_AT_ONCE) continue;
        const full = batch;
        batch = [];
        sound(({ pieces }) => pieces.addLines(origin, full));
        await pause();
      }
      return sound(({ pieces, shelves }) => {
        pieces.addLines(origin, batch);
        const before = pieces.origin(scope, 'file', name);
        if (!pieces.finishFile(origin)) return false;
        shelves.changed(origin.scope, {
          in: origin.number,
          ...(before === null ? {} : { out: before.number }),
        });
        return true;
      });
    },

    search: ({ scope, query, most, vector }) =>
      sound((all) => {
        const number = all.pieces.scopeNumber(scope);
        if (number === null) return { ranked: [], byVectors: false };
        const shelf = all.shelves.of(number);
        const similar =
          vector === null ? null : all.vectors.similar(number, shelf, vector.model, vector.value);
        const scored = rank(shelf, {
          ...wordsOf(all, number, shelf, query),
          ...limitsOf(all, scope, shelf, query),
          similar,
        });
        return {
          ranked: scored.slice(0, most).flatMap((hit) => ranked(all, number, shelf, hit)),
          byVectors: similar !== null,
        };
      }),

    forget: (chatId) =>
      sound(({ pieces, shelves }) => {
        for (const scope of pieces.scopes()) {
          if (scope.chatId !== chatId) continue;
          shelves.forget(scope.number);
          pieces.dropScope(scope.number);
        }
      }),

    withoutVector: (name, most) =>
      sound(({ vectors }) => {
        model = name;
        return vectors.waiting(name, most);
      }),
    addVectors: (name, made) => sound(({ vectors }) => vectors.add(name, made)),

    counts: (name) =>
      sound(({ pieces, vectors }) => ({
        indexed: pieces.count(),
        vectorsWaiting: name === null ? 0 : vectors.countWaiting(name),
      })),

    tidy: () => sound(({ pieces, vectors }) => pieces.clear() || (model !== null && vectors.clear(model))),

    scrub() {
      const { raw } = index().db;
      raw.exec('VACUUM');
      raw.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    },

    close() {
      closed = true;
      shut();
    },
  };

  function wordsOf({ shelves }: Open, scope: number, shelf: Shelf, query: RecallQuery) {
    const all = queryTerms(query.text, MOST_TERMS);
    // A name says who spoke, and stands in every greeting: it is looked for only where nothing else is asked.
    const named = all.filter(({ text }) => shelf.authorsByTerm.has(text));
    const told = all.filter(({ text }) => !shelf.authorsByTerm.has(text));
    const looked = (told.length > 0 ? told : all).map((term) => {
      const places = shelves.occurrences(scope, shelf, term);
      const alike = places?.length === 0 ? wordsLike(term) : null;
      return alike === null ? places : shelves.occurrences(scope, shelf, alike);
    });
    const asked = new Set(named.flatMap(({ text }) => shelf.authorsByTerm.get(text) ?? []));
    return {
      terms: looked.filter((places) => places !== null),
      // Who names everybody names nobody.
      asked: asked.size < shelf.authorCount ? asked : new Set<number>(),
      dates: datesIn(query.text, query.now, zone),
    };
  }

  function limitsOf({ pieces }: Open, scope: Scope, shelf: Shelf, { since, until, except }: RecallQuery) {
    const shown = except && pieces.origin(scope, 'room', except.room)?.number;
    return {
      wanted(place: number): boolean {
        const at = shelf.times[place] ?? Number.NaN;
        if (since !== undefined && !(at >= since)) return false;
        if (until !== undefined && !(at < until)) return false;
        if (!except || shelf.origins[place] !== shown) return true;
        const here = { heardAfter: shelf.heardAfter[place] ?? 0, messageId: shelf.pieces[place] ?? 0 };
        return !isBehind(here, except.after);
      },
    };
  }

  function ranked({ pieces }: Open, scope: number, shelf: Shelf, hit: Scored): Ranked[] {
    const piece = shelf.pieces[hit.index] ?? 0;
    const relevance = relevanceOf(hit.share);
    if (piece < FIRST_LINE) return [{ kind: 'message', messageId: piece, relevance }];
    const line = pieces.line(scope * SCOPE_SPAN + piece);
    if (line === null) return [];
    const { text, at, file: name, author } = line;
    const source = name.startsWith('archive/')
      ? { kind: 'archive' as const, file: name, author }
      : { kind: 'file' as const, file: name, line: line.line, tier: line.tier };
    return [{ kind: 'line', recalled: { text, at, source, relevance } }];
  }
}

/** For a word that nobody said: what begins like it. Endings that no rule knows, and slips at the end, meet in that. */
function wordsLike({ text, begins }: Term): Term | null {
  if (begins || text.length < 6 || !/^\p{L}+$/u.test(text)) return null;
  return { text: text.slice(0, Math.max(5, text.length - 3)), begins: true };
}
