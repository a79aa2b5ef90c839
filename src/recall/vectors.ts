/**
 * Vectors of pieces, in a plain table, and the exact comparison of one with all of a scope. A model has a number, and
 * vectors of different ones are never compared.
 */
import { createCache } from './cache.js';
import { type IndexDatabase, SCOPE_SPAN, WHOLE } from './database.js';
import type { Shelf } from './shelf.js';
import type { WaitingPiece } from './verbs.js';

export interface Vectors {
  waiting(model: string, most: number): WaitingPiece[];
  countWaiting(model: string): number;
  add(model: string, vectors: { piece: number; value: Float32Array | null }[]): void;
  /** The cosine of each piece on the shelf; null while too few have a vector of this model. */
  similar(scope: number, shelf: Shelf, model: string, vector: Float32Array): Float32Array | null;
  /** Clears a part of what older models made, once the newest is whole; false when nothing is left to do. */
  clear(model: string): boolean;
}

interface Matrix {
  /** Of the scope, in no order. */
  pieces: number[];
  rows: Float32Array[];
}

const CACHE_BYTES = 256 * 1024 * 1024;
/** A scope is searched by meaning when nearly all of it can be: else what has no vector yet would be passed over. */
const WHOLE_SHARE = 0.9;
const CLEARED_AT_ONCE = 500;

export function createVectors(db: IndexDatabase): Vectors {
  const matrices = createCache<string, Matrix>(CACHE_BYTES);
  const numbers = new Map<string, number>();
  let seenVersion = 0;

  /** The newest has the highest number: what has a lower one waits. One that comes back is new again. */
  function numberOf(model: string): number {
    const used = numbers.get(model);
    if (used !== undefined) return used;
    const newest = db.prepare('SELECT number, name FROM model ORDER BY number DESC LIMIT 1').get() as
      | { number: number; name: string }
      | undefined;
    let number = newest?.number ?? 0;
    if (newest?.name !== model) {
      db.prepare('DELETE FROM model WHERE name = ?').run(model);
      number = Number(db.prepare('INSERT INTO model (name) VALUES (?)').run(model).lastInsertRowid);
    }
    numbers.set(model, number);
    return number;
  }

  function matrixOf(scope: number, model: number): Matrix {
    const { n } = db.prepare('SELECT data_version AS n FROM pragma_data_version').get() as { n: number };
    if (n !== seenVersion) matrices.clear();
    seenVersion = n;
    const key = `${scope} ${model}`;
    const known = matrices.get(key);
    if (known !== undefined) return known;
    const matrix: Matrix = { pieces: [], rows: [] };
    const sql = 'SELECT piece, value FROM vector WHERE piece >= ? AND piece < ? AND model = ?';
    const range = [scope * SCOPE_SPAN, (scope + 1) * SCOPE_SPAN];
    let bytes = 0;
    for (const { piece, value } of db.prepare(sql).all(...range, model) as {
      piece: number;
      value: Buffer;
    }[]) {
      matrix.pieces.push(piece - scope * SCOPE_SPAN);
      matrix.rows.push(
        new Float32Array(value.buffer.slice(value.byteOffset, value.byteOffset + value.byteLength)),
      );
      bytes += value.byteLength + 64;
    }
    matrices.set(key, matrix, bytes);
    return matrix;
  }

  return {
    waiting(model, most) {
      const sql = `
        SELECT piece.id, piece.at, piece.author, piece.text, scope.number, scope.chat, scope.persona
        FROM piece JOIN origin ON origin.number = piece.origin JOIN scope ON scope.number = origin.scope
        WHERE piece.embedded < ? AND origin.state = ${WHOLE} LIMIT ?`;
      type Row = { id: number; at: number | null; author: string; text: string | null; number: number };
      const rows = db.prepare(sql).all(numberOf(model), most) as (Row & { chat: string; persona: string })[];
      return rows.map(({ id, at, author, text, number, chat, persona }) => ({
        piece: id,
        scope: { chatId: chat, personaId: persona },
        messageId: text === null ? id - number * SCOPE_SPAN : null,
        ...{ text, author, at },
      }));
    },

    countWaiting(model) {
      const sql = 'SELECT count(*) AS n FROM piece WHERE embedded < ?';
      return (db.prepare(sql).get(numberOf(model)) as { n: number }).n;
    },

    add(model, vectors) {
      db.write(() => {
        const number = numberOf(model);
        for (const { piece, value } of vectors) {
          const marked = db.prepare('UPDATE piece SET embedded = ? WHERE id = ?').run(number, piece);
          if (marked.changes === 0 || value === null) continue;
          const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
          const insert = 'INSERT OR REPLACE INTO vector (piece, model, value) VALUES (?, ?, ?)';
          db.prepare(insert).run(piece, number, bytes);
          const scope = Math.floor(piece / SCOPE_SPAN);
          const matrix = matrices.get(`${scope} ${number}`);
          matrix?.pieces.push(piece - scope * SCOPE_SPAN);
          matrix?.rows.push(value);
        }
      });
    },

    similar(scope, shelf, model, vector) {
      const { pieces, rows } = matrixOf(scope, numberOf(model));
      const similar = new Float32Array(shelf.size).fill(Number.NaN);
      let known = 0;
      for (let n = 0; n < rows.length; n++) {
        const row = rows[n];
        const index = shelf.indexOf(pieces[n] ?? -1);
        if (row === undefined || index < 0 || row.length !== vector.length) continue;
        if (Number.isNaN(similar[index])) known++;
        similar[index] = dot(row, vector);
      }
      return known > 0 && known >= shelf.size * WHOLE_SHARE ? similar : null;
    },

    clear(model) {
      const number = numberOf(model);
      const behind = db.prepare('SELECT 1 FROM piece WHERE embedded < ? LIMIT 1').get(number);
      if (behind !== undefined) return false;
      const sql = 'DELETE FROM vector WHERE rowid IN (SELECT rowid FROM vector WHERE model < ? LIMIT ?)';
      return db.prepare(sql).run(number, CLEARED_AT_ONCE).changes > 0;
    },
  };
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let n = 0; n < a.length; n++) sum += (a[n] ?? 0) * (b[n] ?? 0);
  return sum;
}
