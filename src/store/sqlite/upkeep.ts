/**
 * Upkeep: deletes, in steps of milliseconds, rows past their retention, and at any age what a `/reset` forgot and
 * nobody else may still see. Also makes a restored copy safe to start, and counts rows.
 */
import type { RoomId } from '../../core/ids.js';
import type { StoredAttachment } from '../../core/media.js';
import { FORGOTTEN_FILES, type OperatorStore, type UpkeepStore } from '../../core/store.js';
import type { Database, Statements } from './connection.js';
import { stillHeard } from './feeds.js';
import { changingEntries, forgetMessageEntries, NEWEST_CHANGE } from './journal.js';
import { NO_WORDS } from './outbox.js';
import { type Bounds, type KeyPath, type Walk, walkOf } from './sql.js';
import { KEY_LIVES_MS } from './tasks.js';
import { findSetting, setSetting } from './values.js';
import { beganBefore } from './views.js';

type Ask = Parameters<UpkeepStore['prune']>[0];

const DAY_MS = 86_400_000;

// ── Retention ───────────────────────────────────────────────────────────────────────────────────────────────

interface Ageing {
  path: KeyPath;
  /** The columns that identify a row. Default: the path's key. */
  row?: string;
  isOld: string;
  /** If rows are ordered by this time, the walk stops at the first younger one. */
  time?: string;
}

/** Keeps the newest row, so that no id is reused. */
function growing(table: string, time: string, isOld: string, key = 'id'): Ageing {
  const notNewest = `${key} < (select max(${key}) from ${table})`;
  return { path: { table, key, first: 0 }, isOld: `${isOld} and ${notNewest}`, time };
}

/** The steps of a turn that used tools are kept while its reply is in a window. */
const IS_OVER = `turn.state in ('answered', 'failed', 'aborted') and turn.finished_at < @before
  and (turn.used_tools = 0 or exists (
    select 1 from view cross join message on message.id = view.window_message
    where view.room_id = turn.room_id and view.persona_id = turn.persona_id
      and message.received_at > turn.finished_at))`;

const AGEING: Ageing[] = [
  growing(
    'outbox',
    'created_at',
    `state in ('sent', 'refused', 'unconfirmed', 'dropped') and finished_at < @before`,
  ),
  growing('command', 'received_at', 'finished_at < @before'),
  growing('version', 'at', 'at < @before', 'n'),
  growing('journal', 'at', `at < @before and status is not 'pending' and changed < ${NEWEST_CHANGE}`, 'n'),
  {
    path: { table: 'step', key: 'turn_id', first: '' },
    row: 'turn_id, n',
    isOld: `exists (select 1 from turn where turn.id = turn_id and ${IS_OVER})`,
  },
  { path: { table: 'turn', key: 'id', first: '' }, isOld: IS_OVER },
  // In any time zone, a day has ended two days after its first millisecond in UTC.
  {
    path: { table: 'spent', key: 'day', first: 0 },
    row: 'day, person_id',
    isOld: `day < @before - ${2 * DAY_MS}`,
  },
];

function ageing(db: Database, { path, isOld, time, row = path.key }: Ageing): Walk<Ask> {
  const { table, key } = path;
  const remove = `
    delete from ${table} where (${row}) in (
      select ${row} from ${table} where ${key} > @after and ${key} <= @upTo and ${isOld} limit @most + 0)`;
  const isYoung = `select 1 from ${table} where ${key} = @after and ${time} >= @before`;
  return walkOf<Ask>(
    db,
    path,
    (ask) => db.run(remove, ask).changes,
    (ask) => time !== undefined && db.get(isYoung, ask) !== undefined,
  );
}

/** For short tables: no batches. */
function expired(db: Database, table: string, key: string, isOld: string): Walk<Ask> {
  const remove = `
    delete from ${table} where ${key} in (select ${key} from ${table} where ${isOld} limit @most + 0)`;
  return (ask) => db.writeOne(remove, ask);
}

const ENDED_JOBS = `
  select id from job where ended_at is not null and ended_at < @before
    and n < (select max(n) from job as other where other.chat_id = job.chat_id) limit @most + 0`;

/** Jobs that ended long ago, with their runs; a chat's highest job number stays, so that none is reused. */
function endedJobs(db: Database): Walk<Ask> {
  return (ask) =>
    db.write(() => {
      const ids = db.column<string>(ENDED_JOBS, ask);
      for (const id of ids) {
        db.run('delete from job_run where job_id = ?', id);
        db.run('delete from job where id = ?', id);
      }
      return ids.length;
    });
}

/** A task is kept at least as long as its idempotency key. */
const ENDED_TASKS = `
  select n from task
  where n > @after and n <= @upTo and completed_at is not null
    and (idempotency_key is null or created_at < @now - ${KEY_LIVES_MS})
    and (completed_at < @before or exists (
      select 1 from turn join view on view.room_id = turn.room_id and view.persona_id = turn.persona_id
      where turn.id = task.turn_id and ${beganBefore('view.reset_at')}))`;
const removeOf = (table: 'task_event' | 'task_message') => `
  delete from ${table} where (task, n) in (
    select task, n from json_each(@ids) cross join ${table} on task = json_each.value limit @most + 0)`;
const REMOVE_TASKS = [
  removeOf('task_event'),
  removeOf('task_message'),
  // Last, so that a task whose events are not all deleted yet is found again.
  'delete from task where n in (select value from json_each(@ids) limit @most + 0)',
];

/** Tasks that ended long ago, and at any age those delegated by a forgotten turn. */
function endedTasks(db: Database): Walk<Ask> {
  return walkOf<Ask>(db, { table: 'task', key: 'n', first: 0 }, ({ most, ...ask }) =>
    runEach(db, REMOVE_TASKS, db.column<number>(ENDED_TASKS, ask), most),
  );
}

/** Runs the statements on these ids until `most` rows have changed. */
function runEach(db: Statements, statements: string[], ids: unknown[], most: number): number {
  const values = { ids: JSON.stringify(ids) };
  return statements.reduce((sum, sql) => sum + db.run(sql, { ...values, most: most - sum }).changes, 0);
}

// ── Forgotten messages: ids are kept, without text, while a platform may redeliver them ────────────────────

/** Platforms redeliver unacknowledged messages for about a day. */
const REDELIVERED_FOR_MS = 2 * DAY_MS;
const LAST_RESET = 'select max(reset_at) from view';
const REMOVE_HEARINGS = `
  delete from heard where (room_id, persona_id, addressed, heard_after, message_id) in (
    select heard.room_id, heard.persona_id, addressed, heard_after, message_id
    from view cross join heard on heard.room_id = view.room_id and heard.persona_id = view.persona_id
      and addressed in (0, 1) and heard_after < view.reset_at
    where view.reset_at > 0 limit @most + 0)`;

const FORGOTTEN_TURNS = `
  select turn.id from turn
    cross join view on view.room_id = turn.room_id and view.persona_id = turn.persona_id
  where turn.id > @after and turn.id <= @upTo and turn.state not in ('running', 'suspended', 'ready')
    and ${beganBefore('view.reset_at')}`;
// Keeps the row, so that a reply to it on the platform still addresses its persona.
const silence = (isOf: string) => `
  update outbox set body = '${NO_WORDS}' where id in (
    select outbox.id from json_each(@ids) cross join outbox on ${isOf}
    where finished_at is not null and body <> '${NO_WORDS}' limit @most + 0)`;
const FORGET_TURNS = [
  `delete from step where (turn_id, n) in (
    select turn_id, n from json_each(@ids) cross join step on step.turn_id = json_each.value
    limit @most + 0)`,
  silence(`outbox.origin = 'turn:' || json_each.value`),
  silence(`
    outbox.origin > 'tool:' || json_each.value || ':' and outbox.origin < 'tool:' || json_each.value || ';'`),
];

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
  where id > @after and id <= @upTo and state = 'done'
    and id <= (select max(reset_at) from view where view.room_id = message.room_id)`;
const REMOVE_MESSAGES = 'delete from message where id in (select value from json_each(?))';
const SILENCE_MESSAGES = `
  update message set text = '', words = null, attachments = null, reply_to = null
  where id in (select value from json_each(?))`;

function forgottenBetween(db: Statements, { after, upTo }: Bounds, now: number): Candidate[] {
  const byRoom = new Map<RoomId, Candidate[]>();
  const bounds = { after, upTo, redeliveredSince: now - REDELIVERED_FOR_MS };
  for (const each of db.all<Candidate>(CANDIDATES, bounds)) {
    byRoom.set(each.room, [...(byRoom.get(each.room) ?? []), each]);
  }
  return [...byRoom].flatMap(([room, candidates]) => {
    const ids = candidates.map(({ id }) => id);
    const heard = stillHeard(db, room, ids);
    return candidates.filter(({ id, mayGo, speaks }) => (mayGo || speaks) && !heard.has(id));
  });
}

function forgetMessages(db: Database, forgotten: Candidate[]): number {
  const ids = (which: (each: Candidate) => boolean) =>
    JSON.stringify(forgotten.filter(which).map(({ id }) => id));
  const files = forgotten.flatMap(({ attachments }) => filesOf(attachments));
  if (files.length > 0) {
    const noted: string[] = JSON.parse(findSetting(db, FORGOTTEN_FILES) ?? '[]');
    setSetting(db, FORGOTTEN_FILES, JSON.stringify([...noted, ...files]));
  }
  if (forgotten.length > 0) {
    const all = forgotten.map(({ id }) => id);
    forgetMessageEntries(db, all);
  }
  db.run(
    SILENCE_MESSAGES,
    ids(({ mayGo }) => !mayGo),
  );
  db.run(
    REMOVE_MESSAGES,
    ids(({ mayGo }) => mayGo === 1),
  );
  return forgotten.length;
}

function filesOf(attachments: string | null): string[] {
  if (attachments === null) return [];
  return (JSON.parse(attachments) as StoredAttachment[]).flatMap(({ outcome }) =>
    outcome?.kind === 'kept' ? [outcome.file] : [],
  );
}

function forgottenWalks(db: Database): Walk<Ask>[] {
  const lastReset = () => db.value<number | null>(LAST_RESET) ?? 0;
  return [
    (ask) => db.writeOne(REMOVE_HEARINGS, ask),
    walkOf<Ask>(
      db,
      { table: 'turn', key: 'id', first: '' },
      ({ after, upTo, most }) =>
        runEach(db, FORGET_TURNS, db.column<string>(FORGOTTEN_TURNS, { after, upTo }), most),
      () => lastReset() === 0,
    ),
    walkOf<Ask>(
      db,
      { table: 'message', key: 'id', first: 0 },
      ({ most, now, ...bounds }) => forgetMessages(db, forgottenBetween(db, bounds, now).slice(0, most)),
      ({ after }) => Number(after) >= lastReset(),
    ),
  ];
}

// ── A restored copy ─────────────────────────────────────────────────────────────────────────────────────────

/** Makes a restored copy drop its unfinished work; `@now`. */
const QUIETEN = [
  `update turn set state = 'aborted', finished_at = @now, waits_for = null, waits_until = null
    where state = 'running'`,
  `update turn set state = 'aborted', finished_at = @now, waits_for = null, waits_until = null
    where state in ('suspended', 'ready')`,
  `insert into task_event (task, n, body)
    select n, (select coalesce(max(n), 0) + 1 from task_event where task_event.task = task.n),
      json_object('at', @now, 'kind', 'status', 'status', 'interrupted')
    from task where status in ('pending', 'running')`,
  `update task set status = 'interrupted', completed_at = @now, error = 'restored from a backup', lease_owner = null,
    lease_until = null where status in ('pending', 'running')`,
  'delete from shown',
  'delete from question',
  'delete from offer',
  `update command set state = 'done', finished_at = @now where finished_at is null`,
  'update room set lease_owner = null where lease_owner is not null',
  changingEntries(
    `status = 'interrupted', results = json_object('error', 'restored from a backup'), finished_at = @now`,
    `status = 'pending'`,
  ),
  // The journal's files may belong to another machine or time, so they are rebuilt.
  `update journal set filed = 'log' where filed <> 'log'`,
];
const PARK = `
  update outbox set state = 'parked', finished_at = @now, error = 'restored from a backup'
  where finished_at is null`;
const IN_RUNNING_TURNS = `
  select count(*) from turn cross join json_each(turn.batch)
    cross join message on message.id = json_each.value and message.turn_id = turn.id
  where turn.state = 'running'`;

/** A login from another time or machine would be rejected, or conflict with the current one. */
export const FORGET_LOGINS = 'delete from channel_state';

function quieten(db: Database, keepLogins: boolean): { deliveries: number; messages: number } {
  const now = db.clock.now();
  const deliveries = db.run(PARK, { now }).changes;
  const answered = db.run(`update message set state = 'done' where state = 'waiting'`).changes;
  const messages = answered + (db.value<number>(IN_RUNNING_TURNS) ?? 0);
  for (const sql of QUIETEN) db.run(sql, { now });
  if (!keepLogins) db.run(FORGET_LOGINS);
  return { deliveries, messages };
}

// ── The port ────────────────────────────────────────────────────────────────────────────────────────────────

/** The value of `auto_vacuum` with which free pages can be released on demand. */
const INCREMENTAL = 2;

async function shrink(db: Database, pages: number): Promise<boolean> {
  if ((await db.withBusyRetry(() => db.value<number>('PRAGMA auto_vacuum'))) === INCREMENTAL) {
    await db.withBusyRetry(() => void db.raw.exec(`PRAGMA incremental_vacuum(${Math.trunc(pages)})`));
    const free = await db.withBusyRetry(() => db.value<number>('PRAGMA freelist_count') ?? 0);
    if (free > 0) return true;
  }
  // The write-ahead log still contains old versions of pages.
  await db.withBusyRetry(() => void db.raw.exec('PRAGMA wal_checkpoint(TRUNCATE)'));
  return false;
}

const GROWING = { message: 'id', outbox: 'id', command: 'id', version: 'n', task: 'n' };

function sizes(db: Statements) {
  const page = db.value<number>('PRAGMA page_size') ?? 0;
  const pragma = (name: string) => (db.value<number>(`PRAGMA ${name}`) ?? 0) * page;
  const rows = Object.entries(GROWING).map(([table, key]) => {
    // Estimated from the ids: counting would read all rows.
    const span = `select coalesce(max(${key}) - (select min(${key}) from ${table}) + 1, 0) from ${table}`;
    return [table, db.value<number>(span) ?? 0] as const;
  });
  return { bytes: pragma('page_count'), free: pragma('freelist_count'), rows: Object.fromEntries(rows) };
}

function counts(db: Statements) {
  const count = (rows: string) => db.value<number>(`select count(*) from ${rows}`) ?? 0;
  return {
    waiting: count(`message where state = 'waiting'`),
    running: count(`turn where state = 'running'`),
    undelivered: count('outbox where finished_at is null'),
    parked: count(`outbox where state = 'parked'`) + count(`turn where state = 'parked'`),
  };
}

export function upkeepStore(db: Database): UpkeepStore & OperatorStore {
  const walks: Walk<Ask>[] = [
    ...AGEING.map((table) => ageing(db, table)),
    expired(db, 'pairing', 'id', 'coalesce(expires_at, 0) < @before and requested_at < @before'),
    expired(db, 'question', 'id', 'until < @before'),
    expired(db, 'offer', 'key', 'until < @now'),
    expired(db, 'early_result', 'waits_for', 'at < @before'),
    endedJobs(db),
    endedTasks(db),
    expired(db, 'asked_call', 'id', 'until < @before'),
    ...forgottenWalks(db),
  ];
  /** The walk at which the next call continues. */
  let current = 0;

  return {
    async prune(ask) {
      let gone = 0;
      for (let walk = walks[current]; walk !== undefined; walk = walks[current]) {
        const removed = await walk({ ...ask, most: ask.most - gone });
        if (removed > 0) db.journalChanges.tell();
        gone += removed;
        if (gone >= ask.most) return gone;
        current++;
      }
      current = 0;
      return gone;
    },
    shrink: (pages) => shrink(db, pages),
    sizes: () => db.read(() => sizes(db)),
    quieten: ({ keepLogins } = { keepLogins: false }) => db.write(() => quieten(db, keepLogins)),
    counts: () => db.read(() => counts(db)),
  };
}
