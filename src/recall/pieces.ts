/**
 * What stands in the index, and the verbs that change it. Everything belongs to an origin (a room or a file) of a
 * scope; what goes is out of sight at once, and cleared away a little at a time.
 */
import type { Scope } from '../core/recall.js';
import { BUILDING, DEAD, FIRST_LINE, type IndexDatabase, SCOPE_SPAN, WHOLE } from './database.js';
import type { FilePiece } from './file-pieces.js';
import type { IndexedView, MessagePage } from './verbs.js';
import { indexTerms } from './words.js';

export interface Origin {
  number: number;
  scope: number;
  kind: 'room' | 'file';
  name: string;
  version: string;
  addressed_after: number;
  addressed_id: number;
  overheard_after: number;
  overheard_id: number;
}

export interface NewPiece {
  id: number;
  scope: number;
  origin: number;
  at: number | null;
  author: string;
  length: number;
  heardAfter: number;
}

export interface Pieces {
  scopeNumber(scope: Scope): number | null;
  origin(scope: Scope, kind: Origin['kind'], name: string): Origin | null;
  origins(scope: Scope, kind: Origin['kind']): Origin[];
  scopes(): (Scope & { number: number })[];
  newest(origin: Origin): { messageId: number; at: number } | null;
  /** A line of a file by its number in the index. */
  line(id: number): (Pick<FilePiece, 'text' | 'line' | 'tier' | 'at' | 'author'> & { file: string }) | null;
  /** How many pieces can be found. */
  count(): number;
  /** Where the view stands; one of another reset is dropped. */
  view(scope: Scope, room: string, resetAt: number): IndexedView;
  addMessages(page: MessagePage): NewPiece[] | null;
  beginFile(scope: Scope, file: string, stamp: string): Origin;
  addLines(origin: Origin, pieces: FilePiece[]): void;
  /** The new text takes the place of the old; false when a newer one has begun. */
  finishFile(origin: Origin): boolean;
  drop(origin: Origin): void;
  /** Its file is read again as if it had changed. */
  stale(origin: Origin): void;
  dropScope(scope: number): void;
  /** Clears a part of what was dropped; false when nothing is left to do. */
  clear(): boolean;
}

/** So much is cleared in one go: a search may wait behind it. */
const CLEARED_AT_ONCE = 500;
/** Pages of the index of words that are merged in one go. */
const MERGED_AT_ONCE = 200;
const PURGE = 'purge';

export function createPieces(db: IndexDatabase): Pieces {
  const row = <T>(sql: string, ...values: unknown[]) => db.prepare(sql).get(...values) as T | undefined;
  const rows = <T>(sql: string, ...values: unknown[]) => db.prepare(sql).all(...values) as T[];
  const change = (sql: string, ...values: unknown[]) => db.prepare(sql).run(...values);

  function scopeNumber(scope: Scope): number | null {
    const sql = 'SELECT number FROM scope WHERE chat = ? AND persona = ? AND dead = 0';
    return row<{ number: number }>(sql, scope.chatId, scope.personaId)?.number ?? null;
  }

  function scopeFor(scope: Scope): number {
    const known = scopeNumber(scope);
    if (known !== null) return known;
    const sql = 'INSERT INTO scope (chat, persona) VALUES (?, ?)';
    return Number(change(sql, scope.chatId, scope.personaId).lastInsertRowid);
  }

  function originBy(scope: number, kind: Origin['kind'], name: string): Origin | null {
    const sql = `SELECT * FROM origin WHERE scope = ? AND kind = ? AND name = ? AND state = ${WHOLE}`;
    return row<Origin>(sql, scope, kind, name) ?? null;
  }

  function newOrigin(
    scope: number,
    kind: Origin['kind'],
    name: string,
    version: string,
    state: number,
  ): Origin {
    const sql = 'INSERT INTO origin (scope, kind, name, version, state) VALUES (?, ?, ?, ?, ?) RETURNING *';
    const made = row<Origin>(sql, scope, kind, name, version, state);
    if (made === undefined) throw new Error('the index returned no row for what was inserted');
    return made;
  }

  function addPiece(piece: NewPiece, terms: string[], file: FilePiece | null): boolean {
    const added = change(
      `INSERT OR IGNORE INTO piece (id, origin, at, author, length, heard_after, text, line, tier, message)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      piece.id,
      piece.origin,
      piece.at,
      piece.author,
      piece.length,
      piece.heardAfter,
      file?.text ?? null,
      file?.line ?? null,
      file?.tier ?? null,
      file?.message ?? null,
    );
    if (added.changes === 0) {
      // What was dropped may not be cleared away yet, and the store may use its number again.
      const sql = `SELECT 1 FROM piece JOIN origin ON origin.number = piece.origin
                   WHERE piece.id = ? AND origin.state = ${DEAD}`;
      if (row(sql, piece.id) === undefined) return false;
      clearPiece(piece.id);
      return addPiece(piece, terms, file);
    }
    // The scope stands in every term: what is read of the index of words is one scope's and nothing else.
    const text = terms.map((term) => `${piece.scope}x${term}`).join(' ');
    change('INSERT INTO words (rowid, terms) VALUES (CAST(? AS INTEGER), ?)', piece.id, text);
    return true;
  }

  function drop(origin: Origin): void {
    change(`UPDATE origin SET state = ${DEAD}, pieces = 0 WHERE number = ?`, origin.number);
  }

  return {
    scopeNumber,
    drop,
    origin(scope, kind, name) {
      const number = scopeNumber(scope);
      return number === null ? null : originBy(number, kind, name);
    },
    origins(scope, kind) {
      const number = scopeNumber(scope);
      const sql = `SELECT * FROM origin WHERE scope = ? AND kind = ? AND state = ${WHOLE}`;
      return number === null ? [] : rows<Origin>(sql, number, kind);
    },

    scopes() {
      type Row = { number: number; chat: string; persona: string };
      return rows<Row>('SELECT number, chat, persona FROM scope WHERE dead = 0').map(
        ({ number, chat, persona }) => ({
          number,
          chatId: chat,
          personaId: persona,
        }),
      );
    },

    newest(origin) {
      const sql = 'SELECT id, at FROM piece WHERE origin = ? ORDER BY id DESC LIMIT 1';
      const found = row<{ id: number; at: number }>(sql, origin.number);
      return found === undefined ? null : { messageId: found.id - origin.scope * SCOPE_SPAN, at: found.at };
    },

    line(id) {
      const sql = `SELECT text, line, tier, at, author, name AS file
                   FROM piece JOIN origin ON origin.number = piece.origin WHERE id = ? AND text IS NOT NULL`;
      return row<FilePiece & { file: string }>(sql, id) ?? null;
    },

    count: () =>
      row<{ n: number }>(`SELECT coalesce(sum(pieces), 0) AS n FROM origin WHERE state = ${WHOLE}`)?.n ?? 0,

    stale: (origin) => void change("UPDATE origin SET version = '' WHERE number = ?", origin.number),

    view(scope, room, resetAt) {
      return db.write(() => {
        const number = scopeFor(scope);
        let origin = originBy(number, 'room', room);
        if (origin !== null && origin.version !== String(resetAt)) {
          drop(origin);
          origin = null;
        }
        origin ??= newOrigin(number, 'room', room, String(resetAt), WHOLE);
        return {
          addressed: { heardAfter: origin.addressed_after, messageId: origin.addressed_id },
          overheard: { heardAfter: origin.overheard_after, messageId: origin.overheard_id },
        };
      });
    },

    addMessages(page) {
      return db.write(() => {
        const scope = scopeNumber(page.scope);
        const origin = scope === null ? null : originBy(scope, 'room', page.room);
        const last = page.messages.at(-1);
        if (scope === null || origin === null || origin.version !== String(page.resetAt)) return null;
        const kind = page.addressed ? 'addressed' : 'overheard';
        const { heardAfter, messageId } = page.after;
        if (origin[`${kind}_after`] !== heardAfter || origin[`${kind}_id`] !== messageId) return null;
        const added: NewPiece[] = [];
        for (const { id, heardAfter, at, author, text } of page.messages) {
          if (id < 1 || id >= FIRST_LINE) continue;
          const terms = indexTerms(text);
          const length = terms.length;
          const piece = {
            id: scope * SCOPE_SPAN + id,
            scope,
            origin: origin.number,
            at,
            author,
            length,
            heardAfter,
          };
          if (addPiece(piece, terms, null)) added.push(piece);
        }
        if (last !== undefined) {
          change(
            `UPDATE origin SET ${kind}_after = ?, ${kind}_id = ?, pieces = pieces + ? WHERE number = ?`,
            last.heardAfter,
            last.id,
            added.length,
            origin.number,
          );
        }
        return added;
      });
    },

    beginFile(scope, file, stamp) {
      return db.write(() => {
        const number = scopeFor(scope);
        const sql = `UPDATE origin SET state = ${DEAD}
                     WHERE scope = ? AND kind = 'file' AND name = ? AND state = ${BUILDING}`;
        change(sql, number, file);
        return newOrigin(number, 'file', file, stamp, BUILDING);
      });
    },

    addLines(origin, pieces) {
      db.write(() => {
        const state = row<{ state: number }>(
          'SELECT state FROM origin WHERE number = ?',
          origin.number,
        )?.state;
        if (state !== BUILDING) return;
        let added = 0;
        for (const file of pieces) {
          if (file.message !== null && heard(origin.scope, file.message, file.at)) continue;
          const line = row<{ lines: number }>(
            'UPDATE scope SET lines = lines + 1 WHERE number = ? RETURNING lines',
            origin.scope,
          )?.lines;
          if (line === undefined || line >= FIRST_LINE) return;
          const terms = indexTerms(file.text);
          const { at, author } = file;
          const id = origin.scope * SCOPE_SPAN + FIRST_LINE + line;
          const piece = {
            id,
            scope: origin.scope,
            origin: origin.number,
            at,
            author,
            length: terms.length,
            heardAfter: 0,
          };
          if (addPiece(piece, terms, file)) added++;
        }
        change('UPDATE origin SET pieces = pieces + ? WHERE number = ?', added, origin.number);
      });
    },

    finishFile(origin) {
      return db.write(() => {
        const { scope, name, number } = origin;
        // A later text of the same file may have begun meanwhile: then this one is nothing any more.
        const state = row<{ state: number }>('SELECT state FROM origin WHERE number = ?', number)?.state;
        if (state !== BUILDING) return false;
        const sql = `UPDATE origin SET state = ${DEAD}, pieces = 0
                     WHERE scope = ? AND kind = 'file' AND name = ? AND state = ${WHOLE}`;
        change(sql, scope, name);
        change(`UPDATE origin SET state = ${WHOLE} WHERE number = ?`, number);
        return true;
      });
    },

    dropScope(scope) {
      db.write(() => {
        change('UPDATE scope SET dead = 1, chat = ?, persona = ? WHERE number = ?', '', '', scope);
        change(`UPDATE origin SET state = ${DEAD}, pieces = 0 WHERE scope = ?`, scope);
      });
    },

    clear() {
      return db.write(() => {
        const dead = row<{ number: number }>(`SELECT number FROM origin WHERE state = ${DEAD} LIMIT 1`);
        if (dead !== undefined) {
          clearOrigin(dead.number);
          return true;
        }
        change('DELETE FROM scope WHERE dead = 1');
        return merge();
      });
    },
  };

  /** Whether the store's message of that id, said in that minute, stands in the index itself. */
  function heard(scope: number, message: number, at: number | null): boolean {
    if (message >= FIRST_LINE) return false;
    const found = row<{ at: number }>('SELECT at FROM piece WHERE id = ?', scope * SCOPE_SPAN + message);
    return found !== undefined && (at === null || Math.abs(found.at - at) < 60_000);
  }

  /** True while there is more. */
  function clearOrigin(origin: number): boolean {
    const sql = 'SELECT id FROM piece WHERE origin = ? LIMIT ?';
    const ids = rows<{ id: number }>(sql, origin, CLEARED_AT_ONCE);
    for (const { id } of ids) clearPiece(id);
    if (ids.length > 0) change('INSERT OR IGNORE INTO chore (what) VALUES (?)', PURGE);
    if (ids.length === CLEARED_AT_ONCE) return true;
    change('DELETE FROM origin WHERE number = ?', origin);
    return false;
  }

  function clearPiece(id: number): void {
    change('DELETE FROM words WHERE rowid = CAST(? AS INTEGER)', id);
    change('DELETE FROM vector WHERE piece = ?', id);
    change('DELETE FROM piece WHERE id = ?', id);
  }

  /** The index of words only marks what is deleted; merged into one, it holds nothing of it any more. */
  function merge(): boolean {
    const pending = row<{ what: string }>('SELECT what FROM chore');
    if (pending === undefined) return false;
    const changes = () => row<{ n: number }>('SELECT total_changes() AS n')?.n ?? 0;
    const before = changes();
    // A negative number begins to merge everything there is; a positive one goes on with it.
    const pages = pending.what === PURGE ? -MERGED_AT_ONCE : MERGED_AT_ONCE;
    change("INSERT INTO words (words, rank) VALUES ('merge', ?)", pages);
    if (pending.what === PURGE) {
      change('DELETE FROM chore');
      change("INSERT INTO chore (what) VALUES ('merging')");
      return true;
    }
    if (changes() - before >= 2) return true;
    change('DELETE FROM chore');
    return false;
  }
}
