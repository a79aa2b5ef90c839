/**
 * Upkeep: deletes, in steps of milliseconds, rows past their retention, and at any age what a `/reset` forgot and
 * nobody else may still see. Also makes a restored copy safe to start, and counts rows.
 */

import type { RoomId } from '../core/ids.js';
import type { StoredAttachment } from '../core/media.js';
import { FORGOTTEN_FILES, type OperatorStore, type UpkeepStore } from '../core/store.js';
import * as db from './db.js';
import { stillHeard } from './feeds.js';
import { changingEntries, endSends, forgetMessageEntries, SEND_END, type SendEnd } from './journal.js';
import { NO_WORDS } from './outbox.js';
import { type Bounds, type KeyPath, type Walk, walkOf } from './sql.js';
import { KEY_LIVES_MS } from './tasks.js';
import { findSetting, setSetting } from './values.js';
import { beganBefore } from './views.js';

type Ask = Parameters<UpkeepStore['prune']>[0];

const DAY_MS = 86_400_000;
/** Returned to the disk before other work may run. */
const PAGES_AT_ONCE = 100;

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
    select 1 from view join message on message.id = view.window_message
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
  growing(
    'journal',
    'at',
    `at < @before and status is distinct from 'pending' and changed < last_change()`,
    'n',
  ),
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

function ageing(database: db.Database, { path, isOld, time, row = path.key }: Ageing): Walk<Ask> {
  const { table, key } = path;
  const remove = `
    delete from ${table} where (${row}) in (
      select ${row} from ${table} where ${key} > @after and ${key} <= @upTo and ${isOld} limit @most + 0)`;
  const isYoung = `select 1 from ${table} where ${key} = @after and ${time} >= @before`;
  return walkOf<Ask>(
    database,
    path,
    function* (ask) {
      return yield* db.run(remove, ask);
    },
    function* (ask) {
      return time !== undefined && (yield* db.one(isYoung, ask)) !== undefined;
    },
  );
}

/** For short tables: no batches. */
function expired(database: db.Database, table: string, key: string, isOld: string): Walk<Ask> {
  const remove = `
    delete from ${table} where ${key} in (select ${key} from ${table} where ${isOld} limit @most + 0)`;
  return (ask) => database.writeOne(db.UPKEEP, remove, ask);
}

const ENDED_JOBS = `
  select id from job where ended_at is not null and ended_at < @before
    and n < (select max(n) from job as other where other.chat_id = job.chat_id) limit @most + 0`;

/** Jobs that ended long ago, with their runs; a chat's highest job number stays, so that none is reused. */
function endedJobs(database: db.Database): Walk<Ask> {
  return (ask) =>
    database.write(db.UPKEEP, function* () {
      const ids = yield* db.column<string>(ENDED_JOBS, ask);
      for (const id of ids) {
        yield* db.tell('delete from job_run where job_id = ?', id);
        yield* db.tell('delete from job where id = ?', id);
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
    select task, n from ${table} where number_in(task, @ids) limit @most + 0)`;
const REMOVE_TASKS = [
  removeOf('task_event'),
  removeOf('task_message'),
  // Last, so that a task whose events are not all deleted yet is found again.
  'delete from task where n in (select n from task where number_in(n, @ids) limit @most + 0)',
];

/** Tasks that ended long ago, and at any age those delegated by a forgotten turn. */
function endedTasks(database: db.Database): Walk<Ask> {
  return walkOf<Ask>(database, { table: 'task', key: 'n', first: 0 }, function* ({ most, ...ask }) {
    const ids = JSON.stringify(yield* db.column<number>(ENDED_TASKS, ask));
    return yield* runEach(REMOVE_TASKS, { ids }, most);
  });
}

/** Runs the statements until `most` rows have changed. */
function* runEach(statements: string[], values: object, most: number): db.Verb<number> {
  let changed = 0;
  for (const sql of statements) changed += yield* db.run(sql, { ...values, most: most - changed });
  return changed;
}

// ── Forgotten messages: ids are kept, without text, while a platform may redeliver them ────────────────────

/** Platforms redeliver unacknowledged messages for about a day. */
const REDELIVERED_FOR_MS = 2 * DAY_MS;
const LAST_RESET = 'select max(reset_at) from view';
const REMOVE_HEARINGS = `
  delete from heard where (room_id, persona_id, addressed, heard_after, message_id) in (
    select heard.room_id, heard.persona_id, addressed, heard_after, message_id
    from view join heard on heard.room_id = alone(view.room_id) and heard.persona_id = alone(view.persona_id)
      and addressed in (0, 1) and heard_after < view.reset_at
    where view.reset_at > 0 limit @most + 0)`;

const FORGOTTEN_TURNS = `
  select turn.id from turn
    join view on view.room_id = turn.room_id and view.persona_id = turn.persona_id
  where turn.id > @after and turn.id <= @upTo and turn.state not in ('running', 'suspended', 'ready')
    and ${beganBefore('view.reset_at')}`;
// Keeps the row, so that a reply to it on the platform still addresses its persona.
const silence = (isOf: string) => `
  update outbox set body = '${NO_WORDS}' where id in (
    select id from outbox where ${isOf} and finished_at is not null and body <> '${NO_WORDS}' limit @most + 0)`;
const FORGET_TURN = [
  `delete from step where turn_id = @id and n in (select n from step where turn_id = @id limit @most + 0)`,
  silence(`origin = 'turn:' || @id`),
  silence(`origin > 'tool:' || @id || ':' and origin < 'tool:' || @id || ';'`),
];

function* forgetTurns(ids: string[], most: number): db.Verb<number> {
  let gone = 0;
  for (const id of ids) gone += yield* runEach(FORGET_TURN, { id }, most - gone);
  return gone;
}

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
const REMOVE_MESSAGES = 'delete from message where number_in(id, ?)';
const SILENCE_MESSAGES = `
  update message set text = '', words = null, attachments = null, reply_to = null
  where number_in(id, ?)`;

function* forgottenBetween({ after, upTo }: Bounds, now: number): db.Verb<Candidate[]> {
  const byRoom = new Map<RoomId, Candidate[]>();
  const bounds = { after, upTo, redeliveredSince: now - REDELIVERED_FOR_MS };
  for (const each of yield* db.all<Candidate>(CANDIDATES, bounds)) {
    byRoom.set(each.room, [...(byRoom.get(each.room) ?? []), each]);
  }
  const forgotten = yield* db.each(byRoom, function* ([room, candidates]) {
    const ids = candidates.map(({ id }) => id);
    const heard = yield* stillHeard(room, ids);
    return candidates.filter(({ id, mayGo, speaks }) => (mayGo || speaks) && !heard.has(id));
  });
  return forgotten.flat();
}

function* forgetMessages(forgotten: Candidate[]): db.Verb<number> {
  const ids = (which: (each: Candidate) => boolean) =>
    JSON.stringify(forgotten.filter(which).map(({ id }) => id));
  const files = forgotten.flatMap(({ attachments }) => filesOf(attachments));
  if (files.length > 0) {
    const noted: string[] = JSON.parse((yield* findSetting(FORGOTTEN_FILES)) ?? '[]');
    yield* setSetting(FORGOTTEN_FILES, JSON.stringify([...noted, ...files]));
  }
  if (forgotten.length > 0) {
    const all = forgotten.map(({ id }) => id);
    yield* forgetMessageEntries(all);
  }
  yield* db.tell(
    SILENCE_MESSAGES,
    ids(({ mayGo }) => !mayGo),
  );
  yield* db.tell(
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

function forgottenWalks(database: db.Database): Walk<Ask>[] {
  const isBehindResets = function* (id: number): db.Verb<boolean> {
    return id >= ((yield* db.value<number | null>(LAST_RESET)) ?? 0);
  };
  return [
    (ask) => database.writeOne(db.UPKEEP, REMOVE_HEARINGS, ask),
    walkOf<Ask>(
      database,
      { table: 'turn', key: 'id', first: '' },
      function* ({ after, upTo, most }) {
        return yield* forgetTurns(yield* db.column<string>(FORGOTTEN_TURNS, { after, upTo }), most);
      },
      () => isBehindResets(0),
    ),
    walkOf<Ask>(
      database,
      { table: 'message', key: 'id', first: 0 },
      function* ({ most, now, ...bounds }) {
        return yield* forgetMessages((yield* forgottenBetween(bounds, now)).slice(0, most));
      },
      ({ after }) => isBehindResets(Number(after)),
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
      cast(@interrupted as text)
    from task where status in ('pending', 'running')`,
  `update task set status = 'interrupted', completed_at = @now, error = 'restored from a backup', lease_owner = null,
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
  update outbox set state = 'parked', finished_at = @now, error = 'restored from a backup'
  where finished_at is null returning ${SEND_END}`;
const RUNNING = `select id, batch from turn where state = 'running'`;
const IN_TURN = 'select count(*) from message where number_in(id, @batch) and turn_id = @id';

/** A login from another time or machine would be rejected, or conflict with the current one. */
const FORGET_LOGINS = 'delete from channel_state';

function* quieten(keepLogins: boolean, now: number): db.Verb<{ deliveries: number; messages: number }> {
  const parked = yield* db.all<SendEnd>(PARK, { now });
  yield* endSends(parked);
  let messages = yield* db.run(`update message set state = 'done' where state = 'waiting'`);
  for (const turn of yield* db.all<{ id: string; batch: string }>(RUNNING))
    messages += (yield* db.value<number>(IN_TURN, turn)) ?? 0;
  const interrupted = JSON.stringify({ at: now, kind: 'status', status: 'interrupted' });
  const restored = JSON.stringify({ error: 'restored from a backup' });
  for (const sql of QUIETEN) yield* db.tell(sql, { now, interrupted, restored });
  if (!keepLogins) yield* db.tell(FORGET_LOGINS);
  return { deliveries: parked.length, messages };
}

// ── The port ────────────────────────────────────────────────────────────────────────────────────────────────

const GROWING = { message: 'id', outbox: 'id', command: 'id', version: 'n', task: 'n' };

/** Estimated from the ids: counting would read all rows. */
function* rows(): db.Verb<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const [table, key] of Object.entries(GROWING)) {
    const span = `select coalesce(max(${key}) - (select min(${key}) from ${table}) + 1, 0) from ${table}`;
    found[table] = (yield* db.value<number>(span)) ?? 0;
  }
  return found;
}

const COUNTS = `
  select (select count(*) from message where state = 'waiting') as waiting,
    (select count(*) from turn where state = 'running') as running,
    (select count(*) from outbox where finished_at is null) as undelivered,
    (select count(*) from outbox where state = 'parked') + (select count(*) from turn where state = 'parked') as parked`;
const NO_COUNTS = { waiting: 0, running: 0, undelivered: 0, parked: 0 };

export function upkeepStore(database: db.Database): UpkeepStore & OperatorStore {
  const walks: Walk<Ask>[] = [
    ...AGEING.map((table) => ageing(database, table)),
    expired(database, 'pairing', 'id', 'coalesce(expires_at, 0) < @before and requested_at < @before'),
    expired(database, 'question', 'id', 'until < @before'),
    expired(database, 'offer', 'key', 'until < @now'),
    expired(database, 'early_result', 'waits_for', 'at < @before'),
    endedJobs(database),
    endedTasks(database),
    expired(database, 'asked_call', 'id', 'until < @before'),
    ...forgottenWalks(database),
  ];
  /** The walk at which the next call continues. */
  let current = 0;

  return {
    async prune(ask) {
      let rows = 0;
      for (let walk = walks[current]; walk !== undefined; walk = walks[current]) {
        rows += await walk({ ...ask, most: ask.most - rows });
        if (rows >= ask.most) return { rows, more: true };
        current++;
      }
      const more = await database.shrink(PAGES_AT_ONCE);
      if (!more) current = 0;
      return { rows, more };
    },
    sizes: async () => ({ ...(await database.size()), rows: await database.read(() => rows()) }),
    quieten: ({ keepLogins } = { keepLogins: false }) =>
      database.write(db.UPKEEP, () => quieten(keepLogins, database.clock.now())),
    counts: async () => (await database.look(() => db.one<typeof NO_COUNTS>(COUNTS))) ?? NO_COUNTS,
  };
}
