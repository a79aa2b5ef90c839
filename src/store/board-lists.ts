/** Lists of the board: rooms of all channels by their newest message, and a search that goes down through all messages. */
import { setImmediate as nextPass } from 'node:timers/promises';
import type { BoardLists, FoundMessage, FoundPlace, ListedPlace, ListedRoom } from '../core/board.js';
import type { RoomId } from '../core/ids.js';
import type { StoredMessage } from '../core/transcript.js';
import { CHAT_COLUMNS, type ChatRow, toChat } from './chats.js';
import * as db from './db.js';
import { hearersIn, LAST_RESET, resetOf, stillHeard } from './feeds.js';
import { MESSAGE_COLUMNS, type MessageRow, toMessage } from './transcript.js';

/** A message as people saw it; `isOld`: it is older than a reset of its room. */
const READABLE = `author_kind <> 'gateway' and state <> 'unsaid' and (text <> '' or attachments is not null)`;
type ReadableRow = MessageRow & { isOld: number };
const READ = `
  select ${MESSAGE_COLUMNS}, id <= ${LAST_RESET} as isOld from message
  where number_in(id, ?) and ${READABLE} order by id`;

/** Those that somebody may still see, by id. */
function* readable(ids: readonly number[]): db.Verb<Map<number, StoredMessage>> {
  const rows = ids.length === 0 ? [] : yield* db.all<ReadableRow>(READ, JSON.stringify(ids));
  const old = rows.filter(({ isOld }) => isOld).map(({ id, roomId }) => ({ id, room: roomId }));
  const heard = yield* stillHeard(old);
  const seen = rows.filter(({ id, isOld }) => !isOld || heard.has(id));
  return new Map(seen.map((row) => [row.id, toMessage(row)]));
}

// ── Conversations ───────────────────────────────────────────────────────────────────────────────────────────

// Rooms are few beside messages: going through them costs less than an index that every message would have to change.
const listed = (which: string) => `
  select listed.id as room, newest_message as newest, ${CHAT_COLUMNS}
  from (select id, chat_id, newest_message from room where ${which}) as listed join chat on chat.id = listed.chat_id
  order by newest_message desc, listed.id`;
const NEWEST_ROOMS = listed(`newest_message < @newest or newest_message = @newest and id > @room
    order by newest_message desc, id limit @most + 0`);
const ONE_ROOM = listed('id = @room');
type ListedRow = ChatRow & ListedPlace;

/** Of one kind, addressed or overheard; some of the newest may be without words. */
const LAST_HEARD = `
  select message_id from heard
  where room_id = @room and persona_id = @personaId and addressed = @addressed
    and message_id > ${resetOf('@room', '@personaId')}
  order by heard_after desc, message_id desc limit 5`;

function* lastHeard(room: RoomId): db.Verb<StoredMessage | null> {
  const ids: number[] = [];
  for (const personaId of yield* hearersIn(room)) {
    for (const addressed of [0, 1])
      ids.push(...(yield* db.column<number>(LAST_HEARD, { room, personaId, addressed })));
  }
  return [...(yield* readable(ids)).values()].at(-1) ?? null;
}

function* withLast(rows: readonly ListedRow[]): db.Verb<ListedRoom[]> {
  const newest = yield* readable(rows.map((row) => row.newest));
  return yield* db.each(rows, function* (row): db.Verb<ListedRoom> {
    const last = newest.get(row.newest) ?? (row.newest > 0 ? yield* lastHeard(row.room) : null);
    return { room: row.room, newest: row.newest, chat: toChat(row), last };
  });
}

// ── Search ──────────────────────────────────────────────────────────────────────────────────────────────────

// All messages are read, because recall's index knows only what a persona has heard, by stems, and may lag. Of 300,000
// messages a second passes SQLite 180,000, PostgreSQL 90,000.

/** Messages read at once; SQLite serves nobody else meanwhile. */
const AT_ONCE = 1_000;
/** Messages that one step goes through at most, and the characters of long texts. */
const IN_A_STEP = 20_000;
const LONG_IN_A_STEP = 10_000_000;
/** A longer text is read by itself, in characters. */
const LONG = 20_000;
const TEXTS = `
  select id, sent_at as at, length(text) as length,
    case when author_kind <> 'gateway' and length(text) <= ${LONG} then text end as text
  from message where id < @before order by id desc limit ${AT_ONCE}`;
interface TextRow {
  id: number;
  at: number;
  length: number;
  text: string | null;
}
const LONG_TEXT = `select text from message where id = ? and author_kind <> 'gateway'`;
const FOUND = `
  select message.id, ${CHAT_COLUMNS} from message join chat on chat.id = message.chat_id
  where number_in(message.id, ?) and not exists (
    select 1 from message as later
    where later.chat_id = message.chat_id and later.account = message.account and later.moves = message.moves
      and later.platform_message_id = message.platform_message_id and later.edited = 1
      and later.id > message.id)
  order by message.id desc`;

function* visibleAmong(ids: readonly number[]): db.Verb<FoundMessage[]> {
  const messages = yield* readable(ids);
  const rows = yield* db.all<ChatRow & { id: number }>(FOUND, JSON.stringify([...messages.keys()]));
  return rows.flatMap(({ id, ...row }) => {
    const message = messages.get(id);
    return message ? [{ message, chat: toChat(row) }] : [];
  });
}

/** Reads downwards until enough is found or examined; other work runs between the reads. */
async function findSaid(
  database: db.Reader,
  { words, before, most }: Parameters<BoardLists['findSaid']>[0],
): ReturnType<BoardLists['findSaid']> {
  const found: FoundMessage[] = [];
  let place: FoundPlace = { before: before ?? Number.MAX_SAFE_INTEGER, at: 0 };
  let longs = 0;
  for (let examined = 0; examined < IN_A_STEP && longs < LONG_IN_A_STEP; examined += AT_ONCE) {
    const rows = await database.look(() => db.all<TextRow>(TEXTS, { before: place.before }));
    const last = rows.at(-1);
    if (last === undefined) return { found, next: null };
    const ids: number[] = [];
    for (const { id, at, length, text } of rows) {
      place = { before: id, at };
      const isLong = length > LONG;
      if (isLong) longs += length;
      const whole = isLong ? await database.look(() => db.value<string>(LONG_TEXT, id)) : text;
      if (whole && words.isIn(whole)) ids.push(id);
      if (found.length + ids.length >= most || longs >= LONG_IN_A_STEP) break;
    }
    if (ids.length > 0) found.push(...(await database.read(() => visibleAmong(ids))));
    if (rows.length < AT_ONCE && last.id === place.before) return { found, next: null };
    if (found.length >= most) break;
    await nextPass();
  }
  return { found, next: place };
}

// ── A time ──────────────────────────────────────────────────────────────────────────────────────────────────

const AT_OR_BEHIND = 'select id, received_at as at from message where id >= ? order by id limit 1';

/** Ids ascend with the time of receipt, so halving finds it without an index. */
function* messageAt(at: number): db.Verb<number | null> {
  let [from, to] = [0, (yield* db.value<number | null>('select max(id) from message')) ?? 0];
  let found: number | null = null;
  while (from <= to) {
    const middle = Math.floor((from + to) / 2);
    const row = yield* db.one<{ id: number; at: number }>(AT_OR_BEHIND, middle);
    if (row === undefined) return found;
    if (row.at < at) from = row.id + 1;
    else {
      found = row.id;
      to = middle - 1;
    }
  }
  return found;
}

export function boardLists(database: db.Database): BoardLists {
  return {
    conversations: ({ before, most }) =>
      database.read(function* () {
        const from = before ?? { newest: Number.MAX_SAFE_INTEGER, room: '' };
        return yield* withLast(yield* db.all<ListedRow>(NEWEST_ROOMS, { ...from, most }));
      }),
    listedRoom: (id) =>
      database.read(function* () {
        return (yield* withLast(yield* db.all<ListedRow>(ONE_ROOM, { room: id })))[0] ?? null;
      }),
    findSaid: (ask) => findSaid(database, ask),
    messageAt: (at) => database.read(() => messageAt(at)),
  };
}
