/**
 * Upkeep, in steps of milliseconds so that others are served meanwhile: erases a phrase from every row of a chat, and
 * deletes rows past their retention, and at any age what a `/reset` forgot and nobody else may still see. Also makes a
 * restored copy safe to start, and counts rows.
 */

import { setImmediate as nextPass } from 'node:timers/promises';
import type { ChatId, RoomId } from '../core/ids.js';
import type { EraseStore } from '../core/memory.js';
import type { Phrase } from '../core/phrase.js';
import type { OperatorStore, UpkeepStore } from '../core/store.js';
import * as db from './db.js';
import { stillHeard } from './feeds.js';
import { changingEntries, endSends, forgetMessageEntries, SEND_END, type SendEnd } from './journal.js';
import { NO_WORDS } from './outbox.js';
import { type Bounds, batchEnd, type KeyPath } from './sql.js';
import {
  batchesOf,
  type Eraser,
  eraserOf,
  IS_FORGOTTEN,
  JOURNAL,
  type KeptTable,
  MESSAGES,
  OPEN_COMMANDS,
  ofTheChat,
  TABLES,
} from './tables.js';
import { filesIn, forgetFiles } from './values.js';

/** The batches of a table; a short one is a single batch without bounds. */
async function* batches(
  database: db.Database,
  path: KeyPath | null,
  rows: number,
): AsyncGenerator<Partial<Bounds>> {
  if (path === null) return yield {};
  for (let after = path.first; ; await nextPass()) {
    const upTo = await database.look(() => batchEnd(path, rows, after));
    if (upTo === null) return;
    yield { after, upTo };
    after = upTo;
  }
}

// ── Erasing ─────────────────────────────────────────────────────────────────────────────────────────────────

type TableRow = Record<string, unknown>;

/** Rows read at once, with their texts. */
const READ_AT_ONCE = 1_000;

/** The rows of a chat, batch by batch. `end`: of the statement that reads them. */
async function* chatRows(database: db.Database, table: KeptTable, chat: ChatId, end = '') {
  const { path, where } = batchesOf(table, ofTheChat(table));
  const columns = [...table.key.split(' '), ...Object.keys(table.words ?? {})].join(', ');
  const sql = `select ${columns} from ${table.name} where ${where} ${end}`;
  for await (const bounds of batches(database, path, READ_AT_ONCE)) {
    yield () => db.all<TableRow>(sql, { chat, ...bounds });
  }
}

/** The cleaned row; null if the phrase does not occur in it. */
function cleaned({ words = {} }: KeptTable, row: TableRow, eraser: Eraser): TableRow | null {
  const next = { ...row };
  for (const [column, clean] of Object.entries(words)) {
    const source = row[column];
    if (typeof source === 'string') next[column] = clean(source, eraser);
  }
  return Object.keys(words).some((column) => next[column] !== row[column]) ? next : null;
}

async function erase(database: db.Database, table: KeptTable, chat: ChatId, eraser: Eraser): Promise<void> {
  const { name, key, words = {}, isWhole, also } = table;
  const isRow = key.split(' ').map((column) => `${column} = @${column}`);
  const set = [...Object.keys(words).map((column) => `${column} = @${column}`), ...(also ? [also] : [])];
  const change = isWhole ? `delete from ${name}` : `update ${name} set ${set.join(', ')}`;
  // Locked: an outcome that is stored between reading and writing back would be lost.
  for await (const rows of chatRows(database, table, chat, 'locked()')) {
    await database.write(chat, function* () {
      const changed = (yield* rows()).flatMap((row) => cleaned(table, row, eraser) ?? []);
      for (const row of changed) yield* db.tell(`${change} where ${isRow.join(' and ')}`, row);
      if (changed.length === 0) return;
      // Invalidates cached copies of the chat's rooms.
      yield* db.tell('update room set revision = revision + 1 where chat_id = ?', chat);
    });
  }
}

async function findWords(database: db.Database, chat: ChatId, phrase: Phrase) {
  const found = { messages: 0, others: 0, files: [] as string[] };
  const eraser = eraserOf(phrase, null);
  const count = async (table: KeptTable) => {
    const as = table === MESSAGES ? 'messages' : 'others';
    for await (const rows of chatRows(database, table, chat)) {
      for (const row of await database.read(rows)) {
        if (cleaned(table, row, eraser) !== null) found[as]++;
        if (table !== MESSAGES) continue;
        found.files.push(...filesIn(row.attachments, ({ read = '' }) => phrase.isIn(read)));
      }
    }
  };
  for (const table of TABLES) if (table.words && !table.isCopy) await count(table);
  if (found.messages + found.others === 0) await count(JOURNAL);
  return found;
}

export function eraseStore(database: db.Database): EraseStore {
  return {
    findWords: (chatId, phrase) => findWords(database, chatId, phrase),
    async eraseWords(chatId, phrase, by) {
      const eraser = eraserOf(phrase, by);
      for (const table of [...TABLES, JOURNAL]) if (table.words) await erase(database, table, chatId, eraser);
      await database.scrub(true);
    },
    async endErasing(chatId, phrase, by) {
      if (phrase !== null) await erase(database, OPEN_COMMANDS, chatId, eraserOf(phrase, by));
      await database.scrub(false);
    },
  };
}

// ── Pruning ─────────────────────────────────────────────────────────────────────────────────────────────────

type Ask = Parameters<UpkeepStore['prune']>[0];
type Where = Ask & { after?: number | string; upTo?: number | string };

/** Changes at most `most` rows of each batch at a time. */
interface Pruning {
  path: KeyPath | null;
  change(ask: Where): db.Verb<number>;
  /** The rows after this place need no look. */
  isOver?(ask: Where): db.Verb<boolean>;
}

/** Rows examined before other work may run. */
const EXAMINED_AT_ONCE = 2_000;
/** Returned to the disk before other work may run. */
const PAGES_AT_ONCE = 100;

function pruningOf(table: KeptTable): Pruning[] {
  const { name, key, old, time } = table;
  if (old === undefined) return [];
  const { path, where } = batchesOf(table, old);
  const columns = key.split(' ').join(', ');
  const remove = `delete from ${name} where (${columns}) in (select ${columns} from ${name} where ${where} limit @most + 0)`;
  const isYoung = `select 1 from ${name} where ${key} = @after and ${time} >= @before`;
  return [
    {
      path,
      change: (ask) => db.run(remove, ask),
      *isOver(ask) {
        return time !== undefined && (yield* db.one(isYoung, ask)) !== undefined;
      },
    },
  ];
}

function* isBehindResets({ after = 0 }: Where): db.Verb<boolean> {
  return Number(after) >= ((yield* db.value<number | null>('select max(reset_at) from view')) ?? 0);
}

const REMOVE_HEARINGS = `
  delete from heard where (room_id, persona_id, addressed, heard_after, message_id) in (
    select heard.room_id, heard.persona_id, addressed, heard_after, message_id
    from view join heard on heard.room_id = alone(view.room_id) and heard.persona_id = alone(view.persona_id)
      and addressed in (0, 1) and heard_after < view.reset_at
    where view.reset_at > 0 limit @most + 0)`;
// Keeps the row, so that a reply to it on the platform still addresses its persona.
const SILENCE_REPLIES = `
  update outbox set body = '${NO_WORDS}' where id in (
    select outbox.id from turn join outbox on origin = 'turn:' || turn.id
      or origin > 'tool:' || turn.id || ':' and origin < 'tool:' || turn.id || ';'
    where turn.id > @after and turn.id <= @upTo and ${IS_FORGOTTEN}
      and outbox.finished_at is not null and body <> '${NO_WORDS}' limit @most + 0)`;

const PRUNED: Pruning[] = [
  ...[...TABLES, JOURNAL].flatMap(pruningOf),
  { path: null, change: (ask) => db.run(REMOVE_HEARINGS, ask) },
  { path: { table: 'turn', key: 'id', first: '' }, change: (ask) => db.run(SILENCE_REPLIES, ask) },
  { path: { table: 'message', key: 'id', first: 0 }, change: forgetMessages, isOver: isBehindResets },
];

/** The numbers of rows that each step changed; null after a step that only returned space to the disk. */
async function* pruning(database: db.Database, ask: Ask): AsyncGenerator<number | null, void, Ask> {
  let asked = ask;
  for (const { path, change, isOver } of PRUNED) {
    for await (const bounds of batches(database, path, EXAMINED_AT_ONCE)) {
      if (isOver && (await database.look(() => isOver({ ...asked, ...bounds })))) break;
      for (let isMore = true; isMore; ) {
        const where = { ...asked, ...bounds };
        const changed = await database.write(db.UPKEEP, () => change(where));
        isMore = changed >= where.most;
        asked = yield changed;
      }
    }
  }
  while (await database.shrink(PAGES_AT_ONCE)) asked = yield null;
}

// ── Forgotten messages: ids are kept, without text, while a platform may redeliver them ────────────────────

/** Platforms redeliver unacknowledged messages for about a day. */
const REDELIVERED_FOR_MS = 2 * 86_400_000;

interface Candidate {
  id: number;
  room: RoomId;
  attachments: string | null;
  /** It still has text. */
  speaks: number;
  /** Its row is not needed for deduplication. */
  mayGo: number;
}
const CANDIDATES = `
  select id, room_id as room, attachments,
    text <> '' or words is not null or attachments is not null or reply_to is not null as speaks,
    (platform_message_id is null or received_at < @redeliveredSince)
      and id < (select max(id) from message) as mayGo
  from message
  where id > @after and id <= @upTo and state <> 'waiting'
    and id <= (select max(reset_at) from view where view.room_id = message.room_id)
  order by id`;
const REMOVE_MESSAGES = 'delete from message where number_in(id, ?)';
const SILENCE_MESSAGES = `
  update message set text = '', words = null, attachments = null, reply_to = null where number_in(id, ?)`;

function* forgetMessages({ most, now, ...bounds }: Where): db.Verb<number> {
  const ask = { ...bounds, redeliveredSince: now - REDELIVERED_FOR_MS };
  const candidates = yield* db.all<Candidate>(CANDIDATES, ask);
  const heard = yield* stillHeard(candidates);
  const forgotten = candidates
    .filter(({ id, mayGo, speaks }) => (mayGo || speaks) && !heard.has(id))
    .slice(0, most);
  if (forgotten.length === 0) return 0;
  yield* forgetFiles(forgotten.map(({ attachments }) => attachments));
  const [going, staying] = [1, 0].map((goes) =>
    forgotten.filter(({ mayGo }) => mayGo === goes).map(({ id }) => id),
  );
  yield* forgetMessageEntries(forgotten.map(({ id }) => id));
  yield* db.tell(SILENCE_MESSAGES, JSON.stringify(staying));
  yield* db.tell(REMOVE_MESSAGES, JSON.stringify(going));
  return forgotten.length;
}

// ── A restored copy ─────────────────────────────────────────────────────────────────────────────────────────

const RESTORED = 'restored from a backup';
const ABORT = `update turn set state = 'aborted', finished_at = @now, waits_for = null, waits_until = null where state`;
/** Makes a restored copy drop its unfinished work; `@now`. */
const QUIETEN = [
  `${ABORT} = 'running'`,
  `${ABORT} in ('suspended', 'ready')`,
  `insert into task_event (task, n, body)
    select n, (select coalesce(max(n), 0) + 1 from task_event where task_event.task = task.n),
      cast(@interrupted as text)
    from task where status in ('pending', 'running')`,
  `update task set status = 'interrupted', completed_at = @now, error = '${RESTORED}', lease_owner = null,
    lease_until = null where status in ('pending', 'running')`,
  'delete from shown',
  'delete from question',
  'delete from offer',
  `update command set state = 'done', finished_at = @now where finished_at is null`,
  'update room set lease_owner = null where lease_owner is not null',
  changingEntries(`status = 'interrupted', results = @restored, finished_at = @now`, `status = 'pending'`),
  // The journal's files may belong to another machine or time, so they are rebuilt.
  `update journal set filed = 'log' where filed <> 'log'`,
];
const PARK = `
  update outbox set state = 'parked', finished_at = @now, error = '${RESTORED}'
  where finished_at is null returning ${SEND_END}`;
const RUNNING = `select id, batch from turn where state = 'running'`;
const IN_TURN = 'select count(*) from message where number_in(id, @batch) and turn_id = @id';

function* quieten(keepLogins: boolean, now: number): db.Verb<{ deliveries: number; messages: number }> {
  const parked = yield* db.all<SendEnd>(PARK, { now });
  yield* endSends(parked);
  let messages = yield* db.run(`update message set state = 'done' where state = 'waiting'`);
  for (const turn of yield* db.all<object>(RUNNING))
    messages += (yield* db.value<number>(IN_TURN, turn)) ?? 0;
  const interrupted = JSON.stringify({ at: now, kind: 'status', status: 'interrupted' });
  const restored = JSON.stringify({ error: RESTORED });
  for (const sql of QUIETEN) yield* db.tell(sql, { now, interrupted, restored });
  // A login from another time or machine would be rejected, or conflict with the current one.
  if (!keepLogins) yield* db.tell('delete from channel_state');
  return { deliveries: parked.length, messages };
}

// ── The port ────────────────────────────────────────────────────────────────────────────────────────────────

/** Estimated from the ids: counting would read all rows. */
const rowsOf = (table: string, key: 'id' | 'n') =>
  `(select coalesce(max(${key}) - (select min(${key}) from ${table}) + 1, 0) from ${table}) as ${table}`;
const ROWS = `
  select ${rowsOf('message', 'id')}, ${rowsOf('outbox', 'id')}, ${rowsOf('command', 'id')},
    ${rowsOf('version', 'n')}, ${rowsOf('task', 'n')}`;
const JOBS = 'select state, count(*) as jobs from job group by state';
const COUNTS = `
  select (select count(*) from message where state = 'waiting') as waiting,
    (select count(*) from turn where state = 'running') as running,
    (select count(*) from outbox where finished_at is null) as undelivered,
    (select count(*) from outbox where state = 'parked') + (select count(*) from turn where state = 'parked') as parked`;
const NO_COUNTS = { waiting: 0, running: 0, undelivered: 0, parked: 0 };

export function upkeepStore(database: db.Database): UpkeepStore & OperatorStore {
  /** The steps at which the next call continues. */
  let steps: ReturnType<typeof pruning> | null = null;
  return {
    async prune(ask) {
      let rows = 0;
      try {
        while (rows < ask.most) {
          steps ??= pruning(database, ask);
          const { done, value } = await steps.next({ ...ask, most: ask.most - rows });
          if (done) steps = null;
          if (done || value === null) return { rows, more: !done };
          rows += value;
        }
      } catch (error) {
        steps = null;
        throw error;
      }
      return { rows, more: true };
    },
    async sizes() {
      const rows = await database.look(() => db.one<Record<string, number>>(ROWS));
      const jobs = await database.look(() => db.all<{ state: string; jobs: number }>(JOBS));
      const states = Object.fromEntries(jobs.map((each) => [each.state, each.jobs]));
      return { ...(await database.size()), rows: rows ?? {}, jobs: states };
    },
    quieten: ({ keepLogins } = { keepLogins: false }) =>
      database.write(db.UPKEEP, () => quieten(keepLogins, database.clock.now())),
    counts: async () => (await database.look(() => db.one<typeof NO_COUNTS>(COUNTS))) ?? NO_COUNTS,
  };
}
