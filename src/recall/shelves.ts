/** The shelves of the scopes that were searched last, and where on them the terms of a question occur. */
import { createCache } from './cache.js';
import { type IndexDatabase, SCOPE_SPAN, WHOLE } from './database.js';
import type { NewPiece } from './pieces.js';
import { createShelf, type Shelf } from './shelf.js';
import type { Term } from './words.js';

export interface Shelves {
  of(scope: number): Shelf;
  added(pieces: NewPiece[]): void;
  /** A file became whole, or went. */
  changed(scope: number, origin: { in?: number; out?: number }): void;
  forget(scope: number): void;
  /** In ascending order, each as often as the term stands there; null for a term that nearly everything holds. */
  occurrences(scope: number, shelf: Shelf, term: Term): Int32Array | null;
}

/** Of all shelves together; a piece takes some 50 bytes. */
const MOST_PIECES = 2_000_000;
/**
 * A term that stands in more places tells little, and reading them takes longer than a search may: it is passed over
 * where the question has others.
 */
const MOST_PLACES = 20_000;

const COLUMNS = `id, origin, at, author, length, heard_after AS heardAfter`;

export function createShelves(db: IndexDatabase): Shelves {
  const kept = createCache<number, Shelf>(MOST_PIECES);
  let seenVersion = 0;

  /** Another process may have written: then nothing kept is certain. */
  function refresh(): void {
    const sql = 'SELECT data_version AS n FROM pragma_data_version';
    const { n } = db.prepare(sql).get() as { n: number };
    if (n !== seenVersion) kept.clear();
    seenVersion = n;
  }

  function addRows(shelf: Shelf, scope: number, rows: Iterable<Omit<NewPiece, 'scope'>>): void {
    for (const row of rows) shelf.add({ ...row, piece: row.id - scope * SCOPE_SPAN });
  }

  return {
    of(scope) {
      refresh();
      const known = kept.get(scope);
      if (known !== undefined) return known;
      const whole = `SELECT number FROM origin WHERE scope = ? AND state = ${WHOLE}`;
      const range = [scope * SCOPE_SPAN, (scope + 1) * SCOPE_SPAN];
      const sql = `SELECT ${COLUMNS} FROM piece WHERE id >= ? AND id < ? AND origin IN (${whole}) ORDER BY id`;
      const rows = db.prepare(sql).all(...range, scope) as Omit<NewPiece, 'scope'>[];
      const shelf = createShelf(rows.length);
      addRows(shelf, scope, rows);
      kept.set(scope, shelf, shelf.size + 1);
      return shelf;
    },

    added(pieces) {
      for (const piece of pieces) {
        const shelf = kept.get(piece.scope);
        if (shelf !== undefined) addRows(shelf, piece.scope, [piece]);
      }
    },

    changed(scope, origin) {
      const shelf = kept.get(scope);
      if (shelf === undefined) return;
      if (origin.out !== undefined) shelf.remove(origin.out);
      if (origin.in === undefined) return;
      const sql = `SELECT ${COLUMNS} FROM piece WHERE origin = ? ORDER BY id`;
      addRows(shelf, scope, db.prepare(sql).all(origin.in) as Omit<NewPiece, 'scope'>[]);
    },

    forget: (scope) => kept.delete(scope),

    occurrences(scope, shelf, term) {
      const name = `${scope}x${term.text}`;
      const found = term.begins
        ? db
            .prepare('SELECT doc FROM temp.occurrence WHERE term >= ? AND term < ? LIMIT ?')
            .pluck()
            .all(name, `${name}\u{10FFFF}`, MOST_PLACES + 1)
        : db
            .prepare('SELECT doc FROM temp.occurrence WHERE term = ? LIMIT ?')
            .pluck()
            .all(name, MOST_PLACES + 1);
      const documents = found as number[];
      if (documents.length > MOST_PLACES) return null;
      if (term.begins) documents.sort((a, b) => a - b);
      const places = new Int32Array(documents.length);
      let count = 0;
      let last = -1;
      let place = -1;
      for (const document of documents) {
        if (document !== last) place = shelf.indexOf(document - scope * SCOPE_SPAN);
        last = document;
        if (place >= 0) places[count++] = place;
      }
      return places.subarray(0, count);
    },
  };
}
