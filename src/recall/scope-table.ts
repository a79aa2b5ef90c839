/** The chunks of recently searched scopes as columns in memory: everything ranking needs, and where terms occur. */

import { LRUCache } from 'lru-cache';
import type { NewChunk } from './chunks.js';
import { type IndexDatabase, SCOPE_SPAN, WHOLE } from './index-database.js';
import { ASKS, alike, beginningOf, indexTerms, lastSign, PERSONAL, type Term } from './terms.js';

interface ChunkFacts {
  /** Chunk id without the scope: a message's id, or FIRST_LINE plus a line's number. */
  chunk: number;
  origin: number;
  /** null if unknown. */
  at: number | null;
  author: string;
  /** In terms. */
  length: number;
  /** Bits `ASKS` and `PERSONAL`. */
  traits: number;
  /** For a message: after which message it was heard. */
  heardAfter: number;
}

/** A longer silence starts a new session. */
const SESSION_GAP_MS = 3 * 3_600_000;
/** Maximum session, in chunks: busy groups never fall silent, and files have no times. */
const SESSION_CHUNKS = 40;
/** How far to look for a neighbour among chunks of other rooms. */
const NEIGHBOUR_REACH = 12;
const MOST_AUTHORS = 60_000;

export class ScopeTable {
  size = 0;
  /** Total of all chunks. */
  terms = 0;
  chunks: Float64Array;
  origins: Int32Array;
  /** NaN if unknown. */
  times: Float64Array;
  lengths: Uint16Array;
  traits: Uint8Array;
  heardAfter: Float64Array;
  authors: Uint16Array;
  sessions: Int32Array;
  /** Terms in each session. */
  readonly sessionLengths: number[] = [];
  /** Authors whose name contains a term. */
  readonly authorsByTerm = new Map<string, number[]>();
  private readonly authorNumbers = new Map<string, number>();
  private readonly sessionSizes: number[] = [];

  constructor(expected: number) {
    const capacity = Math.max(64, Math.ceil(expected * 1.1));
    this.chunks = new Float64Array(capacity);
    this.origins = new Int32Array(capacity);
    this.times = new Float64Array(capacity);
    this.lengths = new Uint16Array(capacity);
    this.traits = new Uint8Array(capacity);
    this.heardAfter = new Float64Array(capacity);
    this.authors = new Uint16Array(capacity);
    this.sessions = new Int32Array(capacity);
  }

  get authorCount(): number {
    return this.authorNumbers.size;
  }

  add({ chunk, origin, at, author, length, traits, heardAfter }: ChunkFacts): void {
    const index = this.firstFrom(chunk);
    if (index < this.size && this.chunks[index] === chunk) return;
    if (this.size === this.chunks.length) this.grow();
    for (const column of this.columns()) column.copyWithin(index + 1, index, this.size);
    this.size++;
    const counted = Math.min(length, 65_535);
    this.chunks[index] = chunk;
    this.origins[index] = origin;
    this.times[index] = at ?? Number.NaN;
    this.lengths[index] = counted;
    this.traits[index] = traits;
    this.heardAfter[index] = heardAfter;
    this.authors[index] = this.authorNumber(author);
    const session = this.sessionOf(index);
    this.sessions[index] = session;
    this.sessionLengths[session] = (this.sessionLengths[session] ?? 0) + counted;
    this.sessionSizes[session] = (this.sessionSizes[session] ?? 0) + 1;
    this.terms += counted;
  }

  remove(origin: number): void {
    let kept = 0;
    for (let index = 0; index < this.size; index++) {
      if (this.origins[index] === origin) {
        const session = this.sessions[index] ?? 0;
        const length = this.lengths[index] ?? 0;
        this.sessionLengths[session] = (this.sessionLengths[session] ?? 0) - length;
        this.terms -= length;
        continue;
      }
      if (kept < index) for (const column of this.columns()) column.copyWithin(kept, index, index + 1);
      kept++;
    }
    this.size = kept;
  }

  /** Index in the columns; -1 if absent. */
  indexOf(chunk: number): number {
    const index = this.firstFrom(chunk);
    return index < this.size && this.chunks[index] === chunk ? index : -1;
  }

  /** The neighbouring chunk in its room or file; -1 if there is none. */
  beside(index: number, direction: 1 | -1): number {
    const origin = this.origins[index];
    for (let step = 1; step <= NEIGHBOUR_REACH; step++) {
      const other = index + step * direction;
      if (other < 0 || other >= this.size) return -1;
      if (this.origins[other] === origin) return other;
    }
    return -1;
  }

  asks(index: number): boolean {
    return ((this.traits[index] ?? 0) & ASKS) !== 0;
  }

  isPersonal(index: number): boolean {
    return ((this.traits[index] ?? 0) & PERSONAL) !== 0;
  }

  within({ from, until }: TimeSpan): number[] {
    const found: number[] = [];
    for (let index = 0; index < this.size; index++) {
      const at = this.times[index] ?? Number.NaN;
      if (at >= from && at < until) found.push(index);
    }
    return found;
  }

  private columns() {
    const { chunks, origins, times, lengths, traits, heardAfter, authors, sessions } = this;
    return [chunks, origins, times, lengths, traits, heardAfter, authors, sessions];
  }

  private grow(): void {
    const larger = new ScopeTable(this.chunks.length * 2);
    const columns = this.columns();
    for (const [n, column] of larger.columns().entries()) column.set(columns[n] ?? []);
    const { chunks, origins, times, lengths, traits, heardAfter, authors, sessions } = larger;
    Object.assign(this, { chunks, origins, times, lengths, traits, heardAfter, authors, sessions });
  }

  /** Index of the first chunk that is not lower; usually the end, because chunks arrive in order. */
  private firstFrom(chunk: number): number {
    let low = 0;
    let high = this.size;
    if (high > 0 && (this.chunks[high - 1] ?? 0) < chunk) return high;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.chunks[middle] ?? 0) < chunk) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private authorNumber(name: string): number {
    const known = this.authorNumbers.get(name);
    if (known !== undefined) return known;
    const number = this.authorNumbers.size;
    if (number >= MOST_AUTHORS) return 0;
    this.authorNumbers.set(name, number);
    for (const term of new Set(indexTerms(name))) {
      this.authorsByTerm.set(term, [...(this.authorsByTerm.get(term) ?? []), number]);
    }
    return number;
  }

  /** The previous chunk's session, or a new one after a long silence. */
  private sessionOf(index: number): number {
    const before = this.beside(index, -1);
    if (before >= 0) {
      const session = this.sessions[before] ?? 0;
      const silence = (this.times[index] ?? Number.NaN) - (this.times[before] ?? Number.NaN);
      if (!(silence > SESSION_GAP_MS) && (this.sessionSizes[session] ?? 0) < SESSION_CHUNKS) return session;
    }
    this.sessionSizes.push(0);
    return this.sessionLengths.push(0) - 1;
  }
}

/** Over all tables; a chunk takes some 50 bytes. */
const MOST_CHUNKS = 2_000_000;
/** A term with more occurrences says little and would exceed the time limit: it is skipped if the question has others. */
const MOST_OCCURRENCES = 20_000;

/** Maximum number of words compared with a word that nobody said. */
const MOST_COMPARED = 2_000;

const COLUMNS = 'id, origin, at, author, length, traits, heard_after AS heardAfter';
type Row = Omit<NewChunk, 'scope'>;

export type ScopeTables = ReturnType<typeof createScopeTables>;

export function createScopeTables(db: IndexDatabase) {
  const kept = new LRUCache<number, ScopeTable>({ maxSize: MOST_CHUNKS });

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
      kept.set(scope, table, { size: Math.min(table.size + 1, MOST_CHUNKS) });
      return table;
    },

    added(chunks: NewChunk[]): void {
      for (const chunk of chunks) {
        const table = kept.get(chunk.scope);
        if (table !== undefined) addRow(table, chunk.scope, chunk);
      }
    },

    removed(scope: number, origin: number): void {
      kept.get(scope)?.remove(origin);
    },

    addedFile(scope: number, origin: number): void {
      const table = kept.get(scope);
      if (table === undefined) return;
      const rows = db.rows<Row>(`SELECT ${COLUMNS} FROM chunk WHERE origin = ? ORDER BY id`, origin);
      for (const row of rows) addRow(table, scope, row);
    },

    forget: (scope: number) => void kept.delete(scope),

    occurrences,

    /** Occurrences of words that an unsaid word may stand for. */
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

  /** Occurrences of any of the words; null if almost everywhere. */
  function anyOf(scope: number, table: ScopeTable, words: string[]): Int32Array | null {
    const all: number[] = [];
    for (const text of words) {
      const positions = occurrences(scope, table, { text, begins: false });
      if (positions === null || all.length + positions.length > MOST_OCCURRENCES) return null;
      for (const position of positions) all.push(position);
    }
    return Int32Array.from(all).sort();
  }

  /** In ascending order, one per occurrence; null for a term that is almost everywhere. */
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

/** In local time; `until` is exclusive. */
export interface TimeSpan {
  from: number;
  until: number;
  /** For a day: that day and the next, when most is told about it. */
  soon?: TimeSpan;
}
