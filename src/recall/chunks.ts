/**
 * The index's chunks: splits files into them (lines of MEMORY.md and daily logs, messages of archives), and makes all changes. Each
 * belongs to an origin (a room or file) of a scope; removed ones are hidden at once and cleared in small steps.
 */

import type { Zone } from '../core/dates.js';
import { piecesOf } from '../core/lines.js';
import { localMidnight } from '../core/moments.js';
import type { Scope } from '../core/recall.js';
import { BUILDING, DEAD, FIRST_LINE, type IndexDatabase, SCOPE_SPAN, WHOLE } from './index-database.js';
import type { IndexedView, MessagePage } from './index-thread.js';
import { indexTerms, ownTerms, PERSONAL, traitsOf } from './terms.js';

export interface FileChunk {
  text: string;
  line: number;
  tier: 1 | 2 | 3 | null;
  at: number | null;
  /** For an archived message: its author and its id in the store. */
  author: string;
  message: number | null;
}

const NOON_MS = 12 * 3_600_000;
const HEADING = /^## (.*) · (\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d) <!-- m(\d+) -->\s*$/;
/** Conversations of other programs have their time only in the archive's name. */
const BEGUN = /^archive\/(\d{4})-(\d\d)-(\d\d)T(\d\d)-(\d\d)-\d\d/;
const FOREIGN_HEADING = /^## (.*\S)\s*$/;
/** An imported day may exist next to our own. */
const DAY = /(?:^|\/)memory\/(\d{4})-(\d\d)-(\d\d)(?:\.imported(?:-\d+)?)?\.md$/;
const TIER = /^#{1,2}\s+Tier\s+([123])\b/i;

export function fileChunks(file: string, text: string, zone: Zone): Generator<FileChunk> {
  if (file.startsWith('archive/')) {
    return hasOwnHeading(text) ? archiveChunks(text, zone) : foreignChunks(file, text, zone);
  }
  const [, year, month, date] = DAY.exec(file) ?? [];
  const at =
    year === undefined ? null : localMidnight(Number(year), Number(month), Number(date), zone) + NOON_MS;
  return lineChunks(text, Number.isFinite(at) ? at : null, file.endsWith('MEMORY.md'));
}

function* lineChunks(text: string, at: number | null, tiered: boolean): Generator<FileChunk> {
  let tier: FileChunk['tier'] = null;
  for (const { line, number } of lines(text)) {
    if (/^#{1,2}\s/.test(line)) {
      const named = TIER.exec(line)?.[1];
      tier = tiered && named !== undefined ? (Number(named) as 1 | 2 | 3) : null;
    }
    // Headings are only structure; the content is below them.
    const said = line.trim();
    if (!/[\p{L}\p{N}]/u.test(said) || /^#{1,2}\s/.test(said)) continue;
    yield* cut({ text: said, line: number, tier, at, author: '', message: null });
  }
}

function* archiveChunks(text: string, zone: Zone): Generator<FileChunk> {
  let current: FileChunk | null = null;
  for (const { line, number } of lines(text)) {
    const [, author = '', year, month, date, hour, minute, message] = HEADING.exec(line) ?? [];
    if (message !== undefined) {
      if (current !== null) yield* cut(current);
      const midnight = localMidnight(Number(year), Number(month), Number(date), zone);
      const at = midnight + (Number(hour) * 60 + Number(minute)) * 60_000;
      current = { text: '', line: number, tier: null, at, author, message: Number(message) };
    } else if (current !== null) {
      current.text += `${current.text === '' ? '' : '\n'}${line}`;
    }
  }
  if (current !== null) yield* cut(current);
}

function hasOwnHeading(text: string): boolean {
  for (const { line } of lines(text)) if (HEADING.test(line)) return true;
  return false;
}

/** MicroClaw's format: headings with the author, and no times. */
function* foreignChunks(file: string, text: string, zone: Zone): Generator<FileChunk> {
  const [year, month, date, hour, minute] = (BEGUN.exec(file) ?? []).slice(1).map(Number);
  const midnight =
    year === undefined || month === undefined || date === undefined
      ? Number.NaN
      : localMidnight(year, month, date, zone);
  const begun = midnight + ((hour ?? 0) * 60 + (minute ?? 0)) * 60_000;
  const at = Number.isFinite(begun) ? begun : null;
  let current: FileChunk = { text: '', line: 1, tier: null, at, author: '', message: null };
  let fences = text.startsWith('---\n') ? 2 : 0;
  for (const { line, number } of lines(text)) {
    if (fences > 0) {
      if (line === '---') fences--;
      continue;
    }
    const author = FOREIGN_HEADING.exec(line)?.[1];
    if (author !== undefined || line.trim() === '') yield* cut(current);
    if (author !== undefined) current = { ...current, text: '', line: number, author };
    else if (line.trim() === '') current = { ...current, text: '', line: number };
    else current.text += `${current.text === '' ? '' : '\n'}${line}`;
  }
  yield* cut(current);
}

function* lines(text: string): Generator<{ line: string; number: number }> {
  let number = 0;
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf('\n', from);
    const until = end < 0 ? text.length : end;
    yield { line: text.slice(from, text[until - 1] === '\r' ? until - 1 : until), number: ++number };
    from = until + 1;
  }
}

function* cut(chunk: FileChunk): Generator<FileChunk> {
  for (const text of piecesOf(chunk.text)) yield { ...chunk, text };
}

export interface ChunkOrigin {
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

export interface NewChunk {
  id: number;
  scope: number;
  origin: number;
  at: number | null;
  author: string;
  length: number;
  traits: number;
  heardAfter: number;
}

/** Chunks cleared per step, which a search may have to wait for. */
const CLEARED_AT_ONCE = 500;
const MERGED_AT_ONCE = 200;
const PURGE = 'purge';

export class Chunks {
  constructor(private readonly db: IndexDatabase) {}

  scopeNumber(scope: Scope): number | null {
    const sql = 'SELECT number FROM scope WHERE chat = ? AND persona = ? AND dead = 0';
    return this.db.row<{ number: number }>(sql, scope.chatId, scope.personaId)?.number ?? null;
  }

  private scopeFor(scope: Scope): number {
    const sql = 'INSERT INTO scope (chat, persona) VALUES (?, ?)';
    return (
      this.scopeNumber(scope) ?? Number(this.db.change(sql, scope.chatId, scope.personaId).lastInsertRowid)
    );
  }

  private originIn(scope: number, kind: ChunkOrigin['kind'], name: string): ChunkOrigin | null {
    const sql = `SELECT * FROM origin WHERE scope = ? AND kind = ? AND name = ? AND state = ${WHOLE}`;
    return this.db.row<ChunkOrigin>(sql, scope, kind, name) ?? null;
  }

  private newOrigin(
    scope: number,
    kind: ChunkOrigin['kind'],
    name: string,
    version: string,
    state: number,
  ): ChunkOrigin {
    const sql = 'INSERT INTO origin (scope, kind, name, version, state) VALUES (?, ?, ?, ?, ?) RETURNING *';
    const made = this.db.row<ChunkOrigin>(sql, scope, kind, name, version, state);
    if (made === undefined) throw new Error('the index returned no row for what was inserted');
    return made;
  }

  private isBuilding({ number }: ChunkOrigin): boolean {
    return (
      this.db.row<{ state: number }>('SELECT state FROM origin WHERE number = ?', number)?.state === BUILDING
    );
  }

  private addChunk(chunk: NewChunk, terms: string[], file: FileChunk | null): boolean {
    const added = this.db.change(
      `INSERT OR IGNORE INTO chunk (id, origin, at, author, length, traits, heard_after, text, line, tier, message)
       VALUES (@id, @origin, @at, @author, @length, @traits, @heardAfter, @text, @line, @tier, @message)`,
      { text: null, line: null, tier: null, message: null, ...file, ...chunk },
    );
    if (added.changes === 0) {
      // The store can reuse ids, so a removed chunk with the same id may not be cleared yet.
      const sql = `SELECT 1 FROM chunk JOIN origin ON origin.number = chunk.origin
                   WHERE chunk.id = ? AND origin.state = ${DEAD}`;
      if (this.db.row(sql, chunk.id) === undefined) return false;
      this.clearChunk(chunk.id);
      return this.addChunk(chunk, terms, file);
    }
    // Prefixed with the scope, so that a search reads the entries of one scope only.
    const text = terms.map((term) => `${chunk.scope}x${term}`).join(' ');
    this.db.change('INSERT INTO words (rowid, terms) VALUES (CAST(? AS INTEGER), ?)', chunk.id, text);
    return true;
  }

  drop(origin: ChunkOrigin): void {
    this.db.change(`UPDATE origin SET state = ${DEAD}, chunks = 0 WHERE number = ?`, origin.number);
  }

  /** Whether the store's message with this id and minute is indexed itself. */
  private isIndexed(scope: number, message: number, at: number | null): boolean {
    if (message >= FIRST_LINE) return false;
    const found = this.db.row<{ at: number }>(
      'SELECT at FROM chunk WHERE id = ?',
      scope * SCOPE_SPAN + message,
    );
    return found !== undefined && (at === null || Math.abs(found.at - at) < 60_000);
  }

  private clearOrigin(origin: number): void {
    const ids = this.db.rows<{ id: number }>(
      'SELECT id FROM chunk WHERE origin = ? LIMIT ?',
      origin,
      CLEARED_AT_ONCE,
    );
    for (const { id } of ids) this.clearChunk(id);
    if (ids.length > 0) this.db.change('INSERT OR IGNORE INTO chore (what) VALUES (?)', PURGE);
    if (ids.length < CLEARED_AT_ONCE) this.db.change('DELETE FROM origin WHERE number = ?', origin);
  }

  private clearChunk(id: number): void {
    this.db.change('DELETE FROM words WHERE rowid = CAST(? AS INTEGER)', id);
    this.db.change('DELETE FROM vector WHERE chunk = ?', id);
    this.db.change('DELETE FROM chunk WHERE id = ?', id);
  }

  /** The full-text index only marks entries as deleted; a full merge removes them physically. */
  private merge(): boolean {
    const pending = this.db.row<{ what: string }>('SELECT what FROM chore');
    if (pending === undefined) return false;
    const changes = () => this.db.number('SELECT total_changes() AS n');
    const before = changes();
    // A negative number starts a full merge; a positive one continues it.
    const pages = pending.what === PURGE ? -MERGED_AT_ONCE : MERGED_AT_ONCE;
    this.db.change("INSERT INTO words (words, rank) VALUES ('merge', ?)", pages);
    if (pending.what !== PURGE && changes() - before >= 2) return true;
    this.db.change('DELETE FROM chore');
    if (pending.what === PURGE) this.db.change("INSERT INTO chore (what) VALUES ('merging')");
    return pending.what === PURGE;
  }

  scopes(): (Scope & { number: number })[] {
    return this.db.rows<Scope & { number: number }>(
      'SELECT number, chat AS chatId, persona AS personaId FROM scope WHERE dead = 0',
    );
  }

  origin(scope: Scope, kind: ChunkOrigin['kind'], name: string): ChunkOrigin | null {
    const number = this.scopeNumber(scope);
    return number === null ? null : this.originIn(number, kind, name);
  }

  origins(scope: Scope, kind: ChunkOrigin['kind']): ChunkOrigin[] {
    const sql = `SELECT * FROM origin WHERE scope = ? AND kind = ? AND state = ${WHOLE}`;
    return this.db.rows<ChunkOrigin>(sql, this.scopeNumber(scope), kind);
  }

  newest(origin: ChunkOrigin): { messageId: number; at: number } | null {
    const sql = 'SELECT id, at FROM chunk WHERE origin = ? ORDER BY id DESC LIMIT 1';
    const found = this.db.row<{ id: number; at: number }>(sql, origin.number);
    return found === undefined ? null : { messageId: found.id - origin.scope * SCOPE_SPAN, at: found.at };
  }

  /** A file's line, by its chunk id. */
  line(id: number): (FileChunk & { file: string }) | null {
    const sql = `SELECT text, line, tier, at, author, name AS file
                 FROM chunk JOIN origin ON origin.number = chunk.origin WHERE id = ? AND text IS NOT NULL`;
    return this.db.row<FileChunk & { file: string }>(sql, id) ?? null;
  }

  /** Number of chunks that a search can find. */
  count() {
    return this.db.number(`SELECT coalesce(sum(chunks), 0) AS n FROM origin WHERE state = ${WHOLE}`);
  }

  markStale(origin: ChunkOrigin): void {
    this.db.change("UPDATE origin SET version = '' WHERE number = ?", origin.number);
  }

  /** How far the view is indexed; drops its chunks if it was reset since. */
  view(scope: Scope, room: string, resetAt: number): { view: IndexedView; dropped: ChunkOrigin | null } {
    return this.db.write(() => {
      const number = this.scopeFor(scope);
      const before = this.originIn(number, 'room', room);
      const isCurrent = before?.version === String(resetAt);
      const dropped = isCurrent ? null : before;
      if (dropped !== null) this.drop(dropped);
      const origin =
        isCurrent && before ? before : this.newOrigin(number, 'room', room, String(resetAt), WHOLE);
      const view = {
        addressed: { heardAfter: origin.addressed_after, messageId: origin.addressed_id },
        overheard: { heardAfter: origin.overheard_after, messageId: origin.overheard_id },
      };
      return { view, dropped };
    });
  }

  /** null: the index has moved on since the page was read, so it was not added. */
  addMessages(page: MessagePage): NewChunk[] | null {
    return this.db.write(() => {
      const scope = this.scopeNumber(page.scope);
      const origin = scope === null ? null : this.originIn(scope, 'room', page.room);
      const last = page.messages.at(-1);
      if (scope === null || origin === null || origin.version !== String(page.resetAt)) return null;
      const kind = page.addressed ? 'addressed' : 'overheard';
      const { heardAfter, messageId } = page.after;
      if (origin[`${kind}_after`] !== heardAfter || origin[`${kind}_id`] !== messageId) return null;
      const added = page.messages.flatMap(({ id, text, ...message }): NewChunk[] => {
        if (id < 1 || id >= FIRST_LINE) return [];
        const terms = indexTerms(text);
        const place = { id: scope * SCOPE_SPAN + id, scope, origin: origin.number };
        const chunk = { ...message, ...place, length: terms.length, traits: traitsOf(text) };
        return this.addChunk(chunk, [...terms, ...ownTerms(text)], null) ? [chunk] : [];
      });
      if (last !== undefined) {
        this.db.change(
          `UPDATE origin SET ${kind}_after = ?, ${kind}_id = ?, chunks = chunks + ? WHERE number = ?`,
          last.heardAfter,
          last.id,
          added.length,
          origin.number,
        );
      }
      return added;
    });
  }

  beginFile(scope: Scope, file: string, stamp: string): ChunkOrigin {
    return this.db.write(() => {
      const number = this.scopeFor(scope);
      const sql = `UPDATE origin SET state = ${DEAD}
                   WHERE scope = ? AND kind = 'file' AND name = ? AND state = ${BUILDING}`;
      this.db.change(sql, number, file);
      return this.newOrigin(number, 'file', file, stamp, BUILDING);
    });
  }

  addLines(origin: ChunkOrigin, lines: FileChunk[]): void {
    this.db.write(() => {
      if (!this.isBuilding(origin)) return;
      const { scope, number } = origin;
      let added = 0;
      for (const file of lines) {
        if (file.message !== null && this.isIndexed(scope, file.message, file.at)) continue;
        const sql = 'UPDATE scope SET lines = lines + 1 WHERE number = ? RETURNING lines';
        const line = this.db.row<{ lines: number }>(sql, scope)?.lines;
        if (line === undefined || line >= FIRST_LINE) return;
        const terms = indexTerms(file.text);
        const id = scope * SCOPE_SPAN + FIRST_LINE + line;
        const { at, author } = file;
        // Notes are personal, although not in the first person.
        const traits = traitsOf(file.text) | (author === '' ? PERSONAL : 0);
        const chunk = {
          id,
          scope,
          origin: number,
          at,
          author,
          traits,
          length: terms.length,
          heardAfter: 0,
        };
        if (this.addChunk(chunk, [...terms, ...ownTerms(file.text)], file)) added++;
      }
      this.db.change('UPDATE origin SET chunks = chunks + ? WHERE number = ?', added, number);
    });
  }

  /** Replaces the old version; false if a newer one has been started. */
  finishFile(origin: ChunkOrigin): boolean {
    return this.db.write(() => {
      if (!this.isBuilding(origin)) return false;
      const before = this.originIn(origin.scope, 'file', origin.name);
      if (before !== null) this.drop(before);
      this.db.change(`UPDATE origin SET state = ${WHOLE} WHERE number = ?`, origin.number);
      return true;
    });
  }

  dropScope(scope: number): void {
    this.db.write(() => {
      this.db.change('UPDATE scope SET dead = 1, chat = ?, persona = ? WHERE number = ?', '', '', scope);
      this.db.change(`UPDATE origin SET state = ${DEAD}, chunks = 0 WHERE scope = ?`, scope);
    });
  }

  /** Clears some removed chunks; false when nothing is left. */
  clear(): boolean {
    return this.db.write(() => {
      const dead = this.db.row<{ number: number }>(`SELECT number FROM origin WHERE state = ${DEAD} LIMIT 1`);
      if (dead !== undefined) this.clearOrigin(dead.number);
      else this.db.change('DELETE FROM scope WHERE dead = 1');
      return dead !== undefined || this.merge();
    });
  }
}
