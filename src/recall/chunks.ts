/**
 * The index's chunks: splits files into them (lines of MEMORY.md and daily logs, messages of archives), and makes all changes. Each
 * belongs to an origin (a room or file) of a scope; removed ones are hidden at once and cleared in small steps.
 */

import { piecesOf } from '../core/cut.js';
import { localMidnight, type Zone } from '../core/dates.js';
import type { RoomId } from '../core/ids.js';
import type { Scope } from '../core/recall.js';
import type { Position } from '../core/transcript.js';
import {
  BUILDING,
  type ChunkOrigin,
  DEAD,
  FIRST_LINE,
  type IndexDatabase,
  type NewChunk,
  SCOPE_SPAN,
  WHOLE,
} from './index-database.js';
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
    for (const { line } of lines(text)) if (HEADING.test(line)) return archiveChunks(text, zone);
    return foreignChunks(text, timeOf(BEGUN.exec(file)?.slice(1), zone));
  }
  const midnight = timeOf(DAY.exec(file)?.slice(1), zone);
  return lineChunks(text, midnight && midnight + NOON_MS, file.endsWith('MEMORY.md'));
}

/** Of year, month, day, and maybe hour and minute; null without them, or if there is no such day. */
function timeOf(written: string[] | undefined, zone: Zone): number | null {
  const [year = Number.NaN, month = 0, day = 0, hour = 0, minute = 0] = (written ?? []).map(Number);
  const time = localMidnight(year, month, day, zone) + (hour * 60 + minute) * 60_000;
  return Number.isFinite(time) ? time : null;
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
    const [, author, ...written] = HEADING.exec(line) ?? [];
    if (author !== undefined) {
      if (current !== null) yield* cut(current);
      const at = timeOf(written, zone);
      current = { text: '', line: number, tier: null, at, author, message: Number(written.at(-1)) };
    } else if (current !== null) current.text += `${current.text === '' ? '' : '\n'}${line}`;
  }
  if (current !== null) yield* cut(current);
}

/** MicroClaw's format: headings with the author, and no times. */
function* foreignChunks(text: string, at: number | null): Generator<FileChunk> {
  let current: FileChunk = { text: '', line: 1, tier: null, at, author: '', message: null };
  let fences = text.startsWith('---\n') ? 2 : 0;
  for (const { line, number } of lines(text)) {
    if (fences > 0) {
      if (line === '---') fences--;
      continue;
    }
    const author = FOREIGN_HEADING.exec(line)?.[1];
    if (author !== undefined || line.trim() === '') {
      yield* cut(current);
      current = { ...current, text: '', line: number, author: author ?? current.author };
    } else current.text += `${current.text === '' ? '' : '\n'}${line}`;
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

export interface IndexedView {
  addressed: Position;
  overheard: Position;
  newest: { messageId: number; at: number } | null;
}

export interface MessagePage {
  scope: Scope;
  room: RoomId;
  resetAt: number;
  addressed: boolean;
  /** Position of the index when the page was read; if it has moved on since, the page is not added. */
  after: Position;
  messages: { id: number; heardAfter: number; at: number; author: string; text: string }[];
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

  scopes(): (Scope & { number: number })[] {
    return this.db.rows<Scope & { number: number }>(
      'SELECT number, chat AS chatId, persona AS personaId FROM scope WHERE dead = 0',
    );
  }

  origins(scope: Scope, kind: 'room' | 'file'): ChunkOrigin[] {
    const sql = `SELECT * FROM origin WHERE scope = ? AND kind = ? AND state = ${WHOLE}`;
    return this.db.rows<ChunkOrigin>(sql, this.scopeNumber(scope), kind);
  }

  origin(scope: number | null, kind: 'room' | 'file', name: string): ChunkOrigin | null {
    const sql = `SELECT * FROM origin WHERE scope = ? AND kind = ? AND name = ? AND state = ${WHOLE}`;
    return this.db.row<ChunkOrigin>(sql, scope, kind, name) ?? null;
  }

  private newOrigin(
    scope: number,
    kind: 'room' | 'file',
    name: string,
    version: string,
    state: number,
  ): ChunkOrigin {
    const sql = 'INSERT INTO origin (scope, kind, name, version, state) VALUES (?, ?, ?, ?, ?) RETURNING *';
    return this.db.row<ChunkOrigin>(sql, scope, kind, name, version, state) as ChunkOrigin;
  }

  private isBuilding({ number }: ChunkOrigin): boolean {
    const sql = `SELECT 1 FROM origin WHERE number = ? AND state = ${BUILDING}`;
    return this.db.row(sql, number) !== undefined;
  }

  /** null if the chunk is there already. */
  private addChunk(
    { text, ...fields }: Omit<NewChunk, 'length' | 'traits'> & { text: string },
    file: FileChunk | null,
  ): NewChunk | null {
    const terms = indexTerms(text);
    // Notes are personal, although not in the first person.
    const traits = traitsOf(text) | (file?.author === '' ? PERSONAL : 0);
    const chunk = { ...fields, length: terms.length, traits };
    const add = () =>
      this.db.change(
        `INSERT OR IGNORE INTO chunk (id, origin, at, author, length, traits, heard_after, text, line, tier, message)
         VALUES (@id, @origin, @at, @author, @length, @traits, @heardAfter, @text, @line, @tier, @message)`,
        { text: null, line: null, tier: null, message: null, ...file, ...chunk },
      ).changes > 0;
    if (!add()) {
      // The store can reuse ids, so a removed chunk with the same id may not be cleared yet.
      const sql = `SELECT 1 FROM chunk JOIN origin ON origin.number = chunk.origin
                   WHERE chunk.id = ? AND origin.state = ${DEAD}`;
      if (this.db.row(sql, chunk.id) === undefined) return null;
      this.clearChunk(chunk.id);
      add();
    }
    // Prefixed with the scope, so that a search reads the entries of one scope only.
    const scope = Math.floor(chunk.id / SCOPE_SPAN);
    const words = [...terms, ...ownTerms(text)].map((term) => `${scope}x${term}`).join(' ');
    this.db.change('INSERT INTO words (rowid, terms) VALUES (CAST(? AS INTEGER), ?)', chunk.id, words);
    return chunk;
  }

  drop(origin: ChunkOrigin): void {
    this.db.change(`UPDATE origin SET state = ${DEAD}, chunks = 0 WHERE number = ?`, origin.number);
  }

  dropScope(scope: number): void {
    this.db.write(() => {
      this.db.change('UPDATE scope SET dead = 1, chat = ?, persona = ? WHERE number = ?', '', '', scope);
      this.db.change(`UPDATE origin SET state = ${DEAD}, chunks = 0 WHERE scope = ?`, scope);
    });
  }

  markStale(origin: ChunkOrigin): void {
    this.db.change("UPDATE origin SET version = '' WHERE number = ?", origin.number);
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

  /** How far the view is indexed; drops its chunks if it was reset since. */
  view(scope: Scope, room: string, resetAt: number): { view: IndexedView; dropped: ChunkOrigin | null } {
    return this.db.write(() => {
      const number = this.scopeFor(scope);
      const before = this.origin(number, 'room', room);
      const current = before?.version === String(resetAt) ? before : null;
      const dropped = current === null ? before : null;
      if (dropped !== null) this.drop(dropped);
      const origin = current ?? this.newOrigin(number, 'room', room, String(resetAt), WHOLE);
      const sql = 'SELECT id, at FROM chunk WHERE origin = ? ORDER BY id DESC LIMIT 1';
      const newest = this.db.row<{ id: number; at: number }>(sql, origin.number);
      const view = {
        addressed: { heardAfter: origin.addressed_after, messageId: origin.addressed_id },
        overheard: { heardAfter: origin.overheard_after, messageId: origin.overheard_id },
        newest: newest ? { messageId: newest.id - number * SCOPE_SPAN, at: newest.at } : null,
      };
      return { view, dropped };
    });
  }

  /** null: the index has moved on since the page was read, so it was not added. */
  addMessages(page: MessagePage): { scope: number; added: NewChunk[] } | null {
    return this.db.write(() => {
      const scope = this.scopeNumber(page.scope);
      const origin = this.origin(scope, 'room', page.room);
      if (scope === null || origin === null || origin.version !== String(page.resetAt)) return null;
      const kind = page.addressed ? 'addressed' : 'overheard';
      const { heardAfter, messageId } = page.after;
      if (origin[`${kind}_after`] !== heardAfter || origin[`${kind}_id`] !== messageId) return null;
      const added = page.messages.flatMap((message) => {
        if (message.id < 1 || message.id >= FIRST_LINE) return [];
        const place = { id: scope * SCOPE_SPAN + message.id, origin: origin.number };
        return this.addChunk({ ...message, ...place }, null) ?? [];
      });
      const last = page.messages.at(-1);
      const sql = `UPDATE origin SET ${kind}_after = ?, ${kind}_id = ?, chunks = chunks + ? WHERE number = ?`;
      if (last !== undefined) this.db.change(sql, last.heardAfter, last.id, added.length, origin.number);
      return { scope, added };
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

  addLines(origin: ChunkOrigin, chunks: FileChunk[]): void {
    this.db.write(() => {
      if (!this.isBuilding(origin)) return;
      const { scope, number } = origin;
      let added = 0;
      for (const file of chunks) {
        if (file.message !== null && this.isIndexed(scope, file.message, file.at)) continue;
        const sql = 'UPDATE scope SET lines = lines + 1 WHERE number = ? RETURNING lines';
        const line = this.db.row<{ lines: number }>(sql, scope)?.lines;
        if (line === undefined || line >= FIRST_LINE) return;
        const id = scope * SCOPE_SPAN + FIRST_LINE + line;
        const { text, at, author } = file;
        if (this.addChunk({ id, origin: number, at, author, heardAfter: 0, text }, file)) added++;
      }
      this.db.change('UPDATE origin SET chunks = chunks + ? WHERE number = ?', added, number);
    });
  }

  /** Whether the store's message with this id and minute is indexed itself. */
  private isIndexed(scope: number, message: number, at: number | null): boolean {
    if (message >= FIRST_LINE) return false;
    const id = scope * SCOPE_SPAN + message;
    const found = this.db.row<{ at: number }>('SELECT at FROM chunk WHERE id = ?', id);
    return found !== undefined && (at === null || Math.abs(found.at - at) < 60_000);
  }

  /** Replaces the old version; false if a newer one has been started. */
  finishFile(origin: ChunkOrigin): boolean {
    return this.db.write(() => {
      if (!this.isBuilding(origin)) return false;
      const before = this.origin(origin.scope, 'file', origin.name);
      if (before !== null) this.drop(before);
      this.db.change(`UPDATE origin SET state = ${WHOLE} WHERE number = ?`, origin.number);
      return true;
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

  private clearOrigin(origin: number): void {
    const sql = 'SELECT id FROM chunk WHERE origin = ? LIMIT ?';
    const ids = this.db.rows<{ id: number }>(sql, origin, CLEARED_AT_ONCE);
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
}
