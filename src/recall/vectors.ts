/**
 * Vectors of chunks in a plain table, and an exact comparison of one vector with all of a scope. Each model has a
 * number; vectors of different models are never compared.
 */
import { type IndexDatabase, SCOPE_SPAN, WHOLE } from './index-database.js';
import type { WaitingChunk } from './index-port.js';
import { createLru } from './lru.js';
import type { ScopeTable } from './scope-table.js';

/** The vectors of one scope and model, in no particular order. */
interface Matrix {
  chunks: number[];
  rows: Float32Array[];
}

const CACHE_BYTES = 256 * 1024 * 1024;
/**
 * A scope is searched by meaning only when nearly all chunks have vectors: otherwise those without would be passed
 * over.
 */
const WHOLE_SHARE = 0.9;
const CLEARED_AT_ONCE = 500;

export type Vectors = ReturnType<typeof createVectors>;

export function createVectors(db: IndexDatabase) {
  const matrices = createLru<string, Matrix>(CACHE_BYTES);
  const numbers = new Map<string, number>();

  /**
   * The newest model has the highest number; vectors of lower numbers are kept until it is complete. A model that comes
   * back counts as new.
   */
  function numberOf(model: string): number {
    const used = numbers.get(model);
    if (used !== undefined) return used;
    const newest = db.row<{ number: number; name: string }>(
      'SELECT number, name FROM model ORDER BY number DESC LIMIT 1',
    );
    let number = newest?.number ?? 0;
    if (newest?.name !== model) {
      db.change('DELETE FROM model WHERE name = ?', model);
      number = Number(db.change('INSERT INTO model (name) VALUES (?)', model).lastInsertRowid);
    }
    numbers.set(model, number);
    return number;
  }

  function matrixOf(scope: number, model: number): Matrix {
    if (db.writtenElsewhere(matrices)) matrices.clear();
    const key = `${scope} ${model}`;
    const known = matrices.get(key);
    if (known !== undefined) return known;
    const matrix: Matrix = { chunks: [], rows: [] };
    const sql = 'SELECT chunk, value FROM vector WHERE chunk >= ? AND chunk < ? AND model = ?';
    let bytes = 0;
    for (const { chunk, value } of db.rows<{ chunk: number; value: Buffer }>(
      sql,
      scope * SCOPE_SPAN,
      (scope + 1) * SCOPE_SPAN,
      model,
    )) {
      const { buffer, byteOffset, byteLength } = value;
      matrix.chunks.push(chunk - scope * SCOPE_SPAN);
      matrix.rows.push(new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength)));
      bytes += byteLength + 64;
    }
    matrices.set(key, matrix, bytes);
    return matrix;
  }

  return {
    waiting(model: string, most: number): WaitingChunk[] {
      type Row = Pick<WaitingChunk, 'text' | 'author'> & {
        id: number;
        number: number;
        chat: string;
        persona: string;
      };
      const sql = `
        SELECT chunk.id, chunk.author, chunk.text, scope.number, scope.chat, scope.persona
        FROM chunk JOIN origin ON origin.number = chunk.origin JOIN scope ON scope.number = origin.scope
        WHERE chunk.embedded < ? AND origin.state = ${WHOLE} LIMIT ?`;
      return db.rows<Row>(sql, numberOf(model), most).map(({ id, author, text, number, chat, persona }) => ({
        chunk: id,
        scope: { chatId: chat, personaId: persona },
        messageId: text === null ? id - number * SCOPE_SPAN : null,
        text,
        author,
      }));
    },

    countWaiting: (model: string) =>
      db.number('SELECT count(*) AS n FROM chunk WHERE embedded < ?', numberOf(model)),

    add(model: string, vectors: { chunk: number; value: Float32Array | null }[]): void {
      db.write(() => {
        const number = numberOf(model);
        for (const { chunk, value } of vectors) {
          const marked = db.change('UPDATE chunk SET embedded = ? WHERE id = ?', number, chunk);
          if (marked.changes === 0 || value === null) continue;
          const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
          const insert = 'INSERT OR REPLACE INTO vector (chunk, model, value) VALUES (?, ?, ?)';
          db.change(insert, chunk, number, bytes);
          const scope = Math.floor(chunk / SCOPE_SPAN);
          const matrix = matrices.get(`${scope} ${number}`);
          matrix?.chunks.push(chunk - scope * SCOPE_SPAN);
          matrix?.rows.push(value);
        }
      });
    },

    /** The cosine similarity of each chunk in the table; null while too few have a vector of this model. */
    similar(scope: number, table: ScopeTable, model: string, vector: Float32Array): Float32Array | null {
      const { chunks, rows } = matrixOf(scope, numberOf(model));
      const similar = new Float32Array(table.size).fill(Number.NaN);
      let known = 0;
      for (let n = 0; n < rows.length; n++) {
        const row = rows[n];
        const index = table.indexOf(chunks[n] ?? -1);
        if (row === undefined || index < 0 || row.length !== vector.length) continue;
        if (Number.isNaN(similar[index])) known++;
        similar[index] = dot(row, vector);
      }
      return known > 0 && known >= table.size * WHOLE_SHARE ? similar : null;
    },

    /** Clears some of the older models' vectors once the newest model's are complete; false when nothing is left. */
    clear(model: string): boolean {
      const number = numberOf(model);
      if (db.row('SELECT 1 FROM chunk WHERE embedded < ? LIMIT 1', number) !== undefined) return false;
      const sql = 'DELETE FROM vector WHERE rowid IN (SELECT rowid FROM vector WHERE model < ? LIMIT ?)';
      return db.change(sql, number, CLEARED_AT_ONCE).changes > 0;
    },
  };
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let n = 0; n < a.length; n++) sum += (a[n] ?? 0) * (b[n] ?? 0);
  return sum;
}
