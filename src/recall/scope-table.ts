/** The chunks of recently searched scopes as columns in memory: everything ranking needs, and where terms occur. */
import { LRUCache } from 'lru-cache';
import { type IndexDatabase, type NewChunk, SCOPE_SPAN, WHOLE } from './index-database.js';
import { ASKS, alike, beginningOf, indexTerms, lastSign, PERSONAL, type Term } from './terms.js';

/** A longer silence starts a new session. */
const SESSION_GAP_MS = 3 * 3_600_000;
/** Maximum session, in chunks: busy groups never fall silent, and files have no times. */
const SESSION_CHUNKS = 40;
/** How far to look for a neighbour among chunks of other rooms. */
const NEIGHBOUR_REACH = 12;
const MOST_AUTHORS = 60_000;
const FIRST_CAPACITY = 64;

function newColumns(capacity: number) {
  return {
    /** Chunk ids without the scope: a message's id, or FIRST_LINE plus a line's number. */
    chunks: new Float64Array(capacity),
    origins: new Int32Array(capacity),
    /** NaN if unknown. */
    times: new Float64Array(capacity),
    /** In terms. */
    lengths: new Uint16Array(capacity),
    traits: new Uint8Array(capacity),
    heardAfter: new Float64Array(capacity),
    authors: new Uint16Array(capacity),
    sessions: new Int32Array(capacity),
  };
}

export class ScopeTable {
  size = 0;
  /** Total of all chunks. */
  terms = 0;
  columns = newColumns(FIRST_CAPACITY);
  /** Terms in each session. */
  readonly sessionLengths: number[] = [];
  /** Authors whose name contains a term. */
  readonly authorsByTerm = new Map<string, number[]>();
  private readonly authorNumbers = new Map<string, number>();
  private readonly sessionSizes: number[] = [];

  constructor(readonly scope: number) {}

  get authorCount(): number {
    return this.authorNumbers.size;
  }

  add({ id, origin, at, author, length, traits, heardAfter }: NewChunk): void {
    const chunk = id - this.scope * SCOPE_SPAN;
    const index = this.firstFrom(chunk);
    if (index < this.size && this.columns.chunks[index] === chunk) return;
    if (this.size === this.columns.chunks.length) this.grow();
    const { columns } = this;
    for (const column of Object.values(columns)) column.copyWithin(index + 1, index, this.size);
    this.size++;
    const counted = Math.min(length, 65_535);
    columns.chunks[index] = chunk;
    columns.origins[index] = origin;
    columns.times[index] = at ?? Number.NaN;
    columns.lengths[index] = counted;
    columns.traits[index] = traits;
    columns.heardAfter[index] = heardAfter;
    columns.authors[index] = this.authorNumber(author);
    const session = this.sessionOf(index);
    columns.sessions[index] = session;
    this.sessionLengths[session] = (this.sessionLengths[session] ?? 0) + counted;
    this.sessionSizes[session] = (this.sessionSizes[session] ?? 0) + 1;
    this.terms += counted;
  }

  /** Index in the columns; -1 if absent. */
  indexOf(chunk: number): number {
    const index = this.firstFrom(chunk);
    return index < this.size && this.columns.chunks[index] === chunk ? index : -1;
  }

  /** The neighbouring chunk in its room or file; -1 if there is none. */
  beside(index: number, direction: 1 | -1): number {
    const { origins } = this.columns;
    for (let step = 1; step <= NEIGHBOUR_REACH; step++) {
      const other = index + step * direction;
      if (other < 0 || other >= this.size) return -1;
      if (origins[other] === origins[index]) return other;
    }
    return -1;
  }

  asks(index: number): boolean {
    return ((this.columns.traits[index] ?? 0) & ASKS) !== 0;
  }

  isPersonal(index: number): boolean {
    return ((this.columns.traits[index] ?? 0) & PERSONAL) !== 0;
  }

  within({ from, until }: TimeSpan): number[] {
    const found: number[] = [];
    for (let index = 0; index < this.size; index++) {
      const at = this.columns.times[index] ?? Number.NaN;
      if (at >= from && at < until) found.push(index);
    }
    return found;
  }

  private grow(): void {
    const old = Object.values(this.columns);
    this.columns = newColumns(this.size * 2);
    for (const [n, column] of Object.values(this.columns).entries()) column.set(old[n] ?? []);
  }

  /** Index of the first chunk that is not lower; usually the end, because chunks arrive in order. */
  private firstFrom(chunk: number): number {
    const { chunks } = this.columns;
    let low = 0;
    let high = this.size;
    if (high > 0 && (chunks[high - 1] ?? 0) < chunk) return high;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((chunks[middle] ?? 0) < chunk) low = middle + 1;
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
    const { sessions, times } = this.columns;
    const before = this.beside(index, -1);
    if (before >= 0) {
      const session = sessions[before] ?? 0;
      const silence = (times[index] ?? Number.NaN) - (times[before] ?? Number.NaN);
      if (!(silence > SESSION_GAP_MS) && (this.sessionSizes[session] ?? 0) < SESSION_CHUNKS) return session;
    }
    this.sessionSizes.push(0);
    return this.sessionLengths.push(0) - 1;
  }
}

/** Over all tables; a chunk takes some 50 bytes. */
const MOST_CHUNKS = 2_000_000;
/** Chunks read at once. */
const PAGE = 10_000;
/** A term with more occurrences says little and would exceed the time limit: it is skipped if the question has others. */
const MOST_OCCURRENCES = 20_000;
/** Maximum number of words compared with a word that nobody said. */
const MOST_COMPARED = 2_000;

export class ScopeTables {
  private readonly kept = new LRUCache<number, ScopeTable>({ maxSize: MOST_CHUNKS });

  constructor(private readonly db: IndexDatabase) {}

  of(scope: number): ScopeTable {
    if (this.db.writtenElsewhere(this.kept)) this.kept.clear();
    const known = this.kept.get(scope);
    if (known !== undefined) return known;
    const sql = `SELECT id, origin, at, author, length, traits, heard_after AS heardAfter FROM chunk
                 WHERE id >= ? AND id < ? AND origin IN (SELECT number FROM origin WHERE scope = ? AND state = ${WHOLE})
                 ORDER BY id LIMIT ${PAGE}`;
    const table = new ScopeTable(scope);
    // Not by `iterate`: it makes a native object, whose collection aborts Node 24 (`keepHandle`).
    for (let from = scope * SCOPE_SPAN; ; ) {
      const rows = this.db.prepare(sql).all(from, (scope + 1) * SCOPE_SPAN, scope) as NewChunk[];
      for (const row of rows) table.add(row);
      if (rows.length < PAGE) break;
      from = (rows.at(-1)?.id ?? 0) + 1;
    }
    this.kept.set(scope, table, { size: Math.min(table.size + 1, MOST_CHUNKS) });
    return table;
  }

  added(scope: number, chunks: NewChunk[]): void {
    const table = this.kept.get(scope);
    for (const chunk of chunks) table?.add(chunk);
  }

  /** For any other change: it is read again when it is next searched. */
  forget(scope: number): void {
    this.kept.delete(scope);
  }

  /** In ascending order, one per occurrence; null for a term that is almost everywhere. */
  occurrences(table: ScopeTable, { text, begins }: Term): Int32Array | null {
    const from = `${table.scope}x${text}`;
    const where = begins ? 'term >= ? AND term < ?' : 'term = ?';
    const statement = this.db.prepare(`SELECT doc FROM temp.occurrence WHERE ${where} LIMIT ?`).pluck();
    const bounds = begins ? [from, `${from}\u{10FFFF}`] : [from];
    const ids = statement.all(...bounds, MOST_OCCURRENCES + 1) as number[];
    if (ids.length > MOST_OCCURRENCES) return null;
    if (begins) ids.sort((a, b) => a - b);
    const positions = new Int32Array(ids.length);
    let count = 0;
    let last = -1;
    let position = -1;
    for (const id of ids) {
      if (id !== last) position = table.indexOf(id - table.scope * SCOPE_SPAN);
      last = id;
      if (position >= 0) positions[count++] = position;
    }
    return positions.subarray(0, count);
  }

  /** Occurrences of any of the words; null if almost everywhere. */
  anyOf(table: ScopeTable, words: string[]): Int32Array | null {
    const all: number[] = [];
    for (const text of words) {
      const positions = this.occurrences(table, { text, begins: false });
      if (positions === null || all.length + positions.length > MOST_OCCURRENCES) return null;
      for (const position of positions) all.push(position);
    }
    return Int32Array.from(all).sort();
  }

  /** Occurrences of words that an unsaid word may stand for. */
  alike(table: ScopeTable, { text, begins }: Term): Int32Array | null {
    const sign = begins ? null : lastSign(text);
    if (sign !== null) return this.occurrences(table, { text: sign, begins: true });
    const beginning = begins ? null : beginningOf(text);
    if (beginning === null) return new Int32Array(0);
    const prefix = `${table.scope}x`;
    const sql = 'SELECT DISTINCT term FROM temp.occurrence WHERE term >= ? AND term < ? LIMIT ?';
    const bounds = [prefix + beginning, `${prefix}${beginning}\u{10FFFF}`];
    const terms = this.db.rows<{ term: string }>(sql, ...bounds, MOST_COMPARED);
    const said = terms.map(({ term }) => term.slice(prefix.length));
    return this.anyOf(table, alike(text, said));
  }
}

/** In local time; `until` is exclusive. */
export interface TimeSpan {
  from: number;
  until: number;
  /** For a day: that day and the next, when most is told about it. */
  soon?: TimeSpan;
}
