/**
 * At startup, checks without the indexing thread whether the index is behind. Reads the index once if it is small;
 * usually nothing is missing, and the thread need not be started.
 */
import { existsSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { type RoomId, roomParts } from '../core/ids.js';
import type { HeardView, RecallFeed, RecallFiles, Scope } from '../core/recall.js';
import { BEGINNING, type Position } from '../core/transcript.js';
import { SCOPE_SPAN, VERSION, WHOLE } from './index-database.js';

interface IndexedRoom {
  resetAt: string;
  addressed: Position;
  overheard: Position;
  newest: { messageId: number; at: number } | null;
}

export interface Indexed {
  pieces: number;
  /** By scope and room. */
  rooms: Map<string, IndexedRoom>;
  /** By scope: the files with their stamps. */
  files: Map<string, Map<string, string>>;
}

const PAGE = 50;
/** Above this, the thread compares: here it would take too long. */
const MOST_ORIGINS = 5_000;

/**
 * Empty if the file does not exist. null if it is too large, or has to be repaired or cleared first. As with
 * `openIndex`, objects added to `held` must stay there.
 */
export function readIndexed(file: string, held: unknown[]): Indexed | null {
  if (!existsSync(file)) return { pieces: 0, rooms: new Map(), files: new Map() };
  try {
    const db = new Database(file, { fileMustExist: true, timeout: 0 });
    held.push(db);
    try {
      return indexedIn(db, held);
    } finally {
      db.close();
    }
  } catch {
    // The thread will find the same problem and report it.
    return null;
  }
}

function indexedIn(db: Database.Database, held: unknown[]): Indexed | null {
  function rows<T>(sql: string): T[] {
    const statement = db.prepare(sql);
    held.push(statement);
    return statement.all() as T[];
  }
  if (rows<{ n: number }>('SELECT user_version AS n FROM pragma_user_version')[0]?.n !== VERSION) return null;
  const leftToClear = `
    SELECT 1 FROM origin WHERE state <> ${WHOLE} UNION ALL SELECT 1 FROM scope WHERE dead = 1
    UNION ALL SELECT 1 FROM chore LIMIT 1`;
  if (rows(leftToClear).length > 0) return null;
  const origins = rows<{
    chat: string;
    persona: string;
    scope: number;
    kind: 'room' | 'file';
    name: string;
    version: string;
    chunks: number;
    addressed_after: number;
    addressed_id: number;
    overheard_after: number;
    overheard_id: number;
    newest: number | null;
    newest_at: number;
  }>(`
    SELECT scope.chat, scope.persona, origin.*, chunk.id AS newest, chunk.at AS newest_at
    FROM origin JOIN scope ON scope.number = origin.scope
    LEFT JOIN chunk ON kind = 'room' AND chunk.id = (SELECT max(id) FROM chunk WHERE chunk.origin = origin.number)
    LIMIT ${MOST_ORIGINS + 1}`);
  if (origins.length > MOST_ORIGINS) return null;
  const indexed: Indexed = { pieces: 0, rooms: new Map(), files: new Map() };
  for (const origin of origins) {
    const scope = keyOf({ chatId: origin.chat, personaId: origin.persona });
    indexed.pieces += origin.chunks;
    if (origin.kind === 'file') {
      const files = indexed.files.get(scope) ?? new Map<string, string>();
      indexed.files.set(scope, files.set(origin.name, origin.version));
    } else {
      const { newest, newest_at: at } = origin;
      indexed.rooms.set(`${scope} ${origin.name}`, {
        resetAt: origin.version,
        addressed: { heardAfter: origin.addressed_after, messageId: origin.addressed_id },
        overheard: { heardAfter: origin.overheard_after, messageId: origin.overheard_id },
        newest: newest === null ? null : { messageId: newest - origin.scope * SCOPE_SPAN, at },
      });
    }
  }
  return indexed;
}

/**
 * Returns the rooms in which messages are missing (less than `many` in all), and whether files have changed. null if
 * more is missing, or if the index holds what the store does not: then everything has to be compared.
 */
export async function findMissing(
  { rooms, files: indexedFiles }: Indexed,
  feed: RecallFeed,
  files: RecallFiles,
  many: number,
  signal: AbortSignal,
): Promise<{ rooms: RoomId[]; files: boolean } | null> {
  const missing: RoomId[] = [];
  const scopes = new Map<string, Scope>();
  let messages = 0;
  let found = 0;
  for (let after: HeardView | null = null; !signal.aborted; ) {
    const page: HeardView[] = await feed.heardViews(after, PAGE);
    for (const view of page) {
      const scope = { chatId: roomParts(view.room).chatId, personaId: view.personaId };
      scopes.set(keyOf(scope), scope);
      const indexed = rooms.get(`${keyOf(scope)} ${view.room}`);
      if (indexed && !(await isOfThisStore(indexed, view, scope, feed))) return null;
      if (indexed) found++;
      const unread = await countUnread(view, indexed, feed, many);
      messages += unread;
      if (messages >= many) return null;
      if (unread > 0) missing.push(view.room);
    }
    after = page.at(-1) ?? null;
    if (after === null) break;
    await setImmediate();
  }
  if (found < rooms.size) return null;
  for (const scope of await files.scopes()) scopes.set(keyOf(scope), scope);
  if ([...indexedFiles.keys()].some((scope) => !scopes.has(scope))) return null;
  return { rooms: missing, files: await haveChanged([...scopes.values()], indexedFiles, files, signal) };
}

/** After a reset, or with a recreated or restored store, indexed data may be void. */
async function isOfThisStore(
  { resetAt, newest }: IndexedRoom,
  view: HeardView,
  scope: Scope,
  feed: RecallFeed,
): Promise<boolean> {
  if (resetAt !== String(view.resetAt)) return false;
  if (newest === null) return true;
  const [message] = await feed.visible(scope, [newest.messageId]);
  return message?.room === view.room && message.sentAt === newest.at;
}

async function countUnread(
  { room, personaId }: HeardView,
  indexed: IndexedRoom | undefined,
  feed: RecallFeed,
  most: number,
): Promise<number> {
  const { addressed, overheard } = indexed ?? { addressed: BEGINNING, overheard: BEGINNING };
  const said = await feed.heardSince({ room, personaId, addressed: true, after: addressed, most });
  const others = await feed.heardSince({ room, personaId, addressed: false, after: overheard, most });
  return said.length + others.length;
}

async function haveChanged(
  scopes: Scope[],
  indexed: Indexed['files'],
  files: RecallFiles,
  signal: AbortSignal,
): Promise<boolean> {
  for (const scope of scopes) {
    if (signal.aborted) break;
    const stamps = indexed.get(keyOf(scope)) ?? new Map<string, string>();
    const there = await files.list(scope);
    if (there.length !== stamps.size) return true;
    if (there.some(({ file, stamp }) => stamps.get(file) !== stamp)) return true;
    await setImmediate();
  }
  return false;
}

function keyOf({ chatId, personaId }: Scope): string {
  return JSON.stringify([chatId, personaId]);
}
