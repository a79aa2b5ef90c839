/** The tables of the most recently searched scopes, and where in them the terms of a question occur. */
import { alike, beginningOf, lastSign } from './alike.js';
import type { NewChunk } from './chunks.js';
import { type IndexDatabase, SCOPE_SPAN, WHOLE } from './index-database.js';
import { createLru } from './lru.js';
import { ScopeTable } from './scope-table.js';
import type { Term } from './terms.js';

/** For all tables together; a chunk takes some 50 bytes. */
const MOST_CHUNKS = 2_000_000;
/**
 * A term with more occurrences says little, and reading them would exceed a search's time limit: it is skipped if the
 * question has others.
 */
const MOST_OCCURRENCES = 20_000;

/** Words that begin alike and are compared with one that nobody said. */
const MOST_COMPARED = 2_000;

const COLUMNS = 'id, origin, at, author, length, traits, heard_after AS heardAfter';
type Row = Omit<NewChunk, 'scope'>;

export type ScopeTables = ReturnType<typeof createScopeTables>;

export function createScopeTables(db: IndexDatabase) {
  const kept = createLru<number, ScopeTable>(MOST_CHUNKS);

  function addRow(table: ScopeTable, scope: number, row: Row): void {
    table.add({ ...row, chunk: row.id - scope * SCOPE_SPAN });
  }

  return {
    of(scope: number): ScopeTable {
      if (db.writtenElsewhere(kept)) kept.clear();
      const known = kept.get(scope);
      if (known !== undefined) return known;
      const whole = `SELECT number FROM origin WHERE scope = ? AND state = ${WHOLE}`;
      const sql = `SELECT ${COLUMNS} FROM chunk WHERE id >= ? AND id < ? AND origin IN (${whole}) ORDER BY id`;
      const rows = db.rows<Row>(sql, scope * SCOPE_SPAN, (scope + 1) * SCOPE_SPAN, scope);
      const table = new ScopeTable(rows.length);
      for (const row of rows) addRow(table, scope, row);
      kept.set(scope, table, table.size + 1);
      return table;
    },

    added(chunks: NewChunk[]): void {
      for (const chunk of chunks) {
        const table = kept.get(chunk.scope);
        if (table !== undefined) addRow(table, chunk.scope, chunk);
      }
    },

    /** A room or file was removed. */
    removed(scope: number, origin: number): void {
      kept.get(scope)?.remove(origin);
    },

    /** A file has been completely indexed. */
    addedFile(scope: number, origin: number): void {
      const table = kept.get(scope);
      if (table === undefined) return;
      const rows = db.rows<Row>(`SELECT ${COLUMNS} FROM chunk WHERE origin = ? ORDER BY id`, origin);
      for (const row of rows) addRow(table, scope, row);
    },

    forget: (scope: number) => kept.delete(scope),

    occurrences,

    /** Of the words that a word which nobody used may stand for. */
    alike(scope: number, table: ScopeTable, { text, begins }: Term): Int32Array | null {
      const sign = begins ? null : lastSign(text);
      if (sign !== null) return occurrences(scope, table, { text: sign, begins: true });
      const beginning = begins ? null : beginningOf(text);
      if (beginning === null) return new Int32Array(0);
      const prefix = `${scope}x`;
      const sql = 'SELECT DISTINCT term FROM temp.occurrence WHERE term >= ? AND term < ? LIMIT ?';
      const terms = db
        .prepare(sql)
        .pluck()
        .all(prefix + beginning, `${prefix}${beginning}\u{10FFFF}`, MOST_COMPARED) as string[];
      const words = alike(
        text,
        terms.map((term) => term.slice(prefix.length)),
      );
      return anyOf(scope, table, words);
    },

    anyOf,
  };

  /** Where any of the words occurs; null if that is almost everywhere. */
  function anyOf(scope: number, table: ScopeTable, words: string[]): Int32Array | null {
    const all: number[] = [];
    for (const text of words) {
      const positions = occurrences(scope, table, { text, begins: false });
      if (positions === null || all.length + positions.length > MOST_OCCURRENCES) return null;
      for (const position of positions) all.push(position);
    }
    return Int32Array.from(all).sort();
  }

  /** In ascending order, repeated for each occurrence; null for a term that occurs almost everywhere. */
  function occurrences(scope: number, table: ScopeTable, { text, begins }: Term): Int32Array | null {
    const from = `${scope}x${text}`;
    const where = begins ? 'term >= ? AND term < ?' : 'term = ?';
    const statement = db.prepare(`SELECT doc FROM temp.occurrence WHERE ${where} LIMIT ?`).pluck();
    const bounds = begins ? [from, `${from}\u{10FFFF}`] : [from];
    const ids = statement.all(...bounds, MOST_OCCURRENCES + 1) as number[];
    if (ids.length > MOST_OCCURRENCES) return null;
    if (begins) ids.sort((a, b) => a - b);
    const positions = new Int32Array(ids.length);
    let count = 0;
    let last = -1;
    let position = -1;
    for (const id of ids) {
      if (id !== last) position = table.indexOf(id - scope * SCOPE_SPAN);
      last = id;
      if (position >= 0) positions[count++] = position;
    }
    return positions.subarray(0, count);
  }
}
