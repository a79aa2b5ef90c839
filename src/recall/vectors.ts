/**
 * Vectors of chunks, and exact comparison with a question's. In memory a number takes one byte: each vector is scaled by its
 * largest number, which keeps its direction. Vectors of different models are never compared.
 */
import { LRUCache } from 'lru-cache';
import type { Scope } from '../core/recall.js';
import { type IndexDatabase, SCOPE_SPAN, WHOLE } from './index-database.js';
import { type Agreement, type Meaning, trustAfter } from './rank.js';
import type { ScopeTable } from './scope-table.js';

/** Rows compared between two checks of the time. */
const BLOCK = 2_048;

interface Matrix {
  /** Chunk numbers in the scope, in no particular order. */
  chunks: Float64Array;
  codes: Int8Array;
  /** The norm of each row of codes. */
  norms: Float32Array;
  count: number;
  width: number;
  /** All vectors up to this chunk are read; Infinity: all vectors. */
  readTo: number;
}

function emptyMatrix(): Matrix {
  return {
    chunks: new Float64Array(),
    codes: new Int8Array(),
    norms: new Float32Array(),
    count: 0,
    width: 0,
    readTo: -1,
  };
}

function quantised(vector: Float32Array): Int8Array {
  let largest = 0;
  for (const value of vector) largest = Math.max(largest, Math.abs(value));
  const scale = largest > 0 ? 127 / largest : 0;
  return Int8Array.from(vector, (value) => Math.round(value * scale));
}

function append(matrix: Matrix, chunk: number, codes: Int8Array): void {
  if (matrix.width === 0) matrix.width = codes.length;
  if (codes.length !== matrix.width || codes.length === 0) return;
  if (matrix.count === matrix.chunks.length) grow(matrix, Math.max(64, matrix.count * 2));
  let squares = 0;
  for (const code of codes) squares += code * code;
  matrix.chunks[matrix.count] = chunk;
  matrix.norms[matrix.count] = Math.sqrt(squares) || 1;
  matrix.codes.set(codes, matrix.count * matrix.width);
  matrix.count++;
}

function grow(matrix: Matrix, capacity: number): void {
  const { chunks, codes, norms, width } = matrix;
  if (capacity <= chunks.length) return;
  matrix.chunks = new Float64Array(capacity);
  matrix.chunks.set(chunks);
  matrix.norms = new Float32Array(capacity);
  matrix.norms.set(norms);
  matrix.codes = new Int8Array(capacity * width);
  matrix.codes.set(codes);
}

/** Calls `visit` with each chunk's cosine similarity; false: out of time. */
function compare(
  { chunks, codes, norms, count, width }: Matrix,
  vector: Float32Array,
  isLate: () => boolean,
  visit: (chunk: number, similarity: number) => void,
): boolean {
  if (vector.length !== width) return true;
  // Integers are faster.
  const wanted = quantised(vector);
  let squares = 0;
  for (const code of wanted) squares += code * code;
  const norm = Math.sqrt(squares) || 1;
  for (let row = 0; row < count; row++) {
    if (row % BLOCK === 0 && isLate()) return false;
    const from = row * width;
    let sum = 0;
    for (let n = 0; n < width; n++) sum += (codes[from + n] as number) * (wanted[n] as number);
    visit(chunks[row] ?? -1, sum / (norm * (norms[row] ?? 1)));
  }
  return true;
}

const CACHE_BYTES = 256 * 1024 * 1024;
/** Minimum share of chunks with vectors for a search by meaning: it would miss the others. */
const WHOLE_SHARE = 0.9;
const CLEARED_AT_ONCE = 500;
/** Time limit for reading and comparing; then the search goes by words, and the next one continues with what was read. */
const LONGEST_MS = 600;
const READ_AT_ONCE = 1_000;

export interface WaitingChunk {
  chunk: number;
  scope: Scope;
  /** The id of the message with this text; null if `text` has it. */
  messageId: number | null;
  text: string | null;
  author: string;
}

export class Vectors {
  private readonly matrices = new LRUCache<string, Matrix>({ maxSize: CACHE_BYTES });
  private readonly numbers = new Map<string, number>();
  /** By scope and model. Stored when the index is closed. */
  private readonly agreements = new Map<string, Agreement>();

  /** `now`: in ms, for the time limit. */
  constructor(
    private readonly db: IndexDatabase,
    private readonly now: () => number,
  ) {}

  /** The newest model has the highest number; older vectors are kept until it is complete. A model that returns counts as new. */
  private numberOf(model: string): number {
    const used = this.numbers.get(model);
    if (used !== undefined) return used;
    const newest = this.db.row<{ number: number; name: string }>(
      'SELECT number, name FROM model ORDER BY number DESC LIMIT 1',
    );
    let number = newest?.number ?? 0;
    if (newest?.name !== model) {
      this.db.change('DELETE FROM model WHERE name = ?', model);
      number = Number(this.db.change('INSERT INTO model (name) VALUES (?)', model).lastInsertRowid);
    }
    this.numbers.set(model, number);
    return number;
  }

  /** As far as it could be read in time. */
  private matrixOf(scope: number, model: number, expected: number, isLate: () => boolean): Matrix {
    if (this.db.writtenElsewhere(this.matrices)) this.matrices.clear();
    const key = `${scope} ${model}`;
    const matrix = this.matrices.get(key) ?? emptyMatrix();
    const first = scope * SCOPE_SPAN;
    const sql =
      'SELECT chunk, value FROM vector WHERE chunk > ? AND chunk < ? AND model = ? ORDER BY chunk LIMIT ?';
    while (Number.isFinite(matrix.readTo) && !isLate()) {
      const rows = this.db.rows<{ chunk: number; value: Buffer }>(
        sql,
        first + matrix.readTo,
        first + SCOPE_SPAN,
        model,
        READ_AT_ONCE,
      );
      for (const { chunk, value } of rows) {
        append(matrix, chunk - first, new Int8Array(value.buffer, value.byteOffset, value.byteLength));
        // Allocates for all vectors once their length is known.
        if (matrix.count === 1) grow(matrix, expected);
      }
      matrix.readTo =
        rows.length < READ_AT_ONCE ? Number.POSITIVE_INFINITY : (rows.at(-1)?.chunk ?? first) - first;
    }
    const bytes = 1 + matrix.chunks.length * (matrix.width + 12);
    this.matrices.set(key, matrix, { size: Math.min(bytes, CACHE_BYTES) });
    return matrix;
  }

  /** Cosine similarity of each chunk in the table; null if too few have a vector or time is up. */
  private similar(
    table: ScopeTable,
    model: number,
    vector: Float32Array,
    isLate: () => boolean,
  ): Float32Array | null {
    const matrix = this.matrixOf(table.scope, model, table.size, isLate);
    if (Number.isFinite(matrix.readTo)) return null;
    const values = new Float32Array(table.size).fill(Number.NaN);
    let known = 0;
    const inTime = compare(matrix, vector, isLate, (chunk, similarity) => {
      const index = table.indexOf(chunk);
      if (index < 0) return;
      if (Number.isNaN(values[index])) known++;
      values[index] = similarity;
    });
    return inTime && known > 0 && known >= table.size * WHOLE_SHARE ? values : null;
  }

  /** Learns from each question how far model and words agree. */
  private trust(scope: number, model: number): Meaning['trust'] {
    const key = `${scope} ${model}`;
    const sql = 'SELECT questions, sum FROM agreement WHERE scope = ? AND model = ?';
    return (agreement) => {
      const before = this.agreements.get(key) ?? this.db.row<Agreement>(sql, scope, model);
      const { questions, sum } = before ?? { questions: 0, sum: 0 };
      if (agreement === null) return trustAfter({ questions, sum });
      const after = { questions: questions + 1, sum: sum + agreement };
      this.agreements.set(key, after);
      return trustAfter(after);
    };
  }

  waiting(model: string, most: number): WaitingChunk[] {
    type Row = WaitingChunk & {
      id: number;
      number: number;
      chat: string;
      persona: string;
    };
    const sql = `
      SELECT chunk.id, chunk.author, chunk.text, scope.number, scope.chat, scope.persona
      FROM chunk JOIN origin ON origin.number = chunk.origin JOIN scope ON scope.number = origin.scope
      WHERE chunk.embedded < ? AND origin.state = ${WHOLE} LIMIT ?`;
    return this.db
      .rows<Row>(sql, this.numberOf(model), most)
      .map(({ id, author, text, number, chat, persona }) => ({
        chunk: id,
        scope: { chatId: chat, personaId: persona },
        messageId: text === null ? id - number * SCOPE_SPAN : null,
        text,
        author,
      }));
  }

  countWaiting(model: string): number {
    return this.db.number('SELECT count(*) AS n FROM chunk WHERE embedded < ?', this.numberOf(model));
  }

  /** The previous model, while its vectors are kept. */
  former(model: string): string | null {
    const sql = `SELECT name FROM model WHERE number < ?
                 AND EXISTS (SELECT 1 FROM vector WHERE model = number) ORDER BY number DESC LIMIT 1`;
    return this.db.row<{ name: string }>(sql, this.numberOf(model))?.name ?? null;
  }

  add(model: string, vectors: { chunk: number; value: Float32Array | null }[]): void {
    this.db.write(() => {
      const number = this.numberOf(model);
      for (const { chunk, value } of vectors) {
        const marked = this.db.change('UPDATE chunk SET embedded = ? WHERE id = ?', number, chunk);
        if (marked.changes === 0 || value === null) continue;
        const codes = quantised(value);
        const insert = 'INSERT OR REPLACE INTO vector (chunk, model, value) VALUES (?, ?, ?)';
        this.db.change(insert, chunk, number, Buffer.from(codes.buffer));
        const scope = Math.floor(chunk / SCOPE_SPAN);
        const matrix = this.matrices.get(`${scope} ${number}`);
        const inScope = chunk - scope * SCOPE_SPAN;
        if (matrix !== undefined && inScope <= matrix.readTo) append(matrix, inScope, codes);
      }
    });
  }

  /** Uses the first of the question's vectors whose model has nearly all chunks. */
  meaning(table: ScopeTable, vectors: { model: string; value: Float32Array }[]): Meaning | null {
    const from = this.now();
    const isLate = () => this.now() - from > LONGEST_MS;
    for (const { model, value } of vectors) {
      const found = this.db.row<{ number: number }>('SELECT number FROM model WHERE name = ?', model);
      const similar = found && this.similar(table, found.number, value, isLate);
      if (similar) return { similar, trust: this.trust(table.scope, found.number) };
    }
    return null;
  }

  /** Clears some vectors of older models once the newest is complete; false when nothing is left. */
  clear(model: string): boolean {
    const number = this.numberOf(model);
    if (this.db.row('SELECT 1 FROM chunk WHERE embedded < ? LIMIT 1', number) !== undefined) return false;
    const sql = 'DELETE FROM vector WHERE rowid IN (SELECT rowid FROM vector WHERE model < ? LIMIT ?)';
    return this.db.change(sql, number, CLEARED_AT_ONCE).changes > 0;
  }

  noteTrust(): void {
    if (this.agreements.size === 0) return;
    this.db.write(() => {
      for (const [key, { questions, sum }] of this.agreements) {
        const sql = 'INSERT OR REPLACE INTO agreement (scope, model, questions, sum) VALUES (?, ?, ?, ?)';
        this.db.change(sql, ...key.split(' ').map(Number), questions, sum);
      }
      this.db.change('DELETE FROM agreement WHERE scope NOT IN (SELECT number FROM scope)');
    });
  }
}
