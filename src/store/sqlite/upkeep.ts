/**
 * Upkeep: deletes, at any age, what `/reset` made personas forget and nobody else may still see: message texts, replies
 * as sent, tool calls and results. The ids of messages that a platform may deliver again are kept that long, without
 * text.
 */

import type { Clock } from '../../core/clock.js';
import type { RoomId } from '../../core/ids.js';
import type { StoredAttachment } from '../../core/media.js';
import { FORGOTTEN_FILES, type Store, type UpkeepStore } from '../../core/store.js';
import type { Connection } from './connection.js';
import { stillHeardIn } from './feeds.js';
import { type Journal, NEWEST_CHANGE } from './journal.js';
import { NO_WORDS } from './outbox.js';
import { type KeyPath, type Walk, walkOf } from './sql.js';
import { KEY_LIVES_MS } from './tasks.js';
import { beganBefore } from './views.js';

type PruneForgottenAsk = Parameters<UpkeepStore['prune']>[0];

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

function forgottenWalks(connection: Connection, journal: Journal): Walk<PruneForgottenAsk>[] {
  const { raw, write } = connection;
  const stillHeard = stillHeardIn(connection);
  const lastReset = raw.prepare<[], number | null>('select max(reset_at) from view').pluck();
  const removeHearings = raw.prepare<[object]>(`
    delete from heard where (room_id, persona_id, addressed, heard_after, message_id) in (
      select heard.room_id, heard.persona_id, addressed, heard_after, message_id
      from view cross join heard on heard.room_id = view.room_id and heard.persona_id = view.persona_id
        and addressed in (0, 1) and heard_after < view.reset_at
      where view.reset_at > 0 limit @most + 0)`);

  const forgottenTurns = raw
    .prepare<[object], string>(`
      select turn.id from turn
        cross join view on view.room_id = turn.room_id and view.persona_id = turn.persona_id
      where turn.id > @after and turn.id <= @upTo and turn.state not in ('running', 'suspended', 'ready')
        and ${beganBefore('view.reset_at')}`)
    .pluck();
  const removeSteps = raw.prepare<[object]>(`
    delete from step where (turn_id, n) in (
      select turn_id, n from json_each(@turns) cross join step on step.turn_id = json_each.value
      limit @most + 0)`);
  // Keeps the row, so that a reply to it on the platform still addresses the persona that said it.
  const silence = (isOf: string) =>
    raw.prepare<[object]>(`
      update outbox set body = '${NO_WORDS}' where id in (
        select outbox.id from json_each(@turns) cross join outbox on ${isOf}
        where finished_at is not null and body <> '${NO_WORDS}' limit @most + 0)`);
  const silenceAnswers = silence(`outbox.origin = 'turn:' || json_each.value`);
  const silenceAsides = silence(`
    outbox.origin > 'tool:' || json_each.value || ':' and outbox.origin < 'tool:' || json_each.value || ';'`);

  const candidates = raw.prepare<[object], Candidate>(`
    select id, room_id as room, attachments,
      text <> '' or words is not null or attachments is not null or reply_to is not null as speaks,
      (platform_message_id is null or received_at < @redeliveredSince)
        and id < (select max(id) from message) as mayGo
    from message
    where id > @after and id <= @upTo and state = 'done'
      and id <= (select max(reset_at) from view where view.room_id = message.room_id)`);
  const removeMessages = raw.prepare<[string]>(
    'delete from message where id in (select value from json_each(?))',
  );
  const silenceMessages = raw.prepare<[string]>(`
    update message set text = '', words = null, attachments = null, reply_to = null
    where id in (select value from json_each(?))`);
  const noted = raw.prepare<[], string>(`select value from setting where key = '${FORGOTTEN_FILES}'`).pluck();
  const noteFiles = raw.prepare<[string]>(`
    insert into setting (key, value) values ('${FORGOTTEN_FILES}', ?)
    on conflict do update set value = excluded.value`);

  function forgottenBetween(ask: object): Candidate[] {
    const byRoom = new Map<RoomId, Candidate[]>();
    for (const each of candidates.all(ask)) byRoom.set(each.room, [...(byRoom.get(each.room) ?? []), each]);
    return [...byRoom].flatMap(([room, ofRoom]) => {
      const heard = stillHeard(
        room,
        ofRoom.map(({ id }) => id),
      );
      return ofRoom.filter(({ id, mayGo, speaks }) => (mayGo || speaks) && !heard.has(id));
    });
  }

  function forgetMessages(forgotten: Candidate[]): number {
    const ids = (which: (each: Candidate) => boolean) =>
      JSON.stringify(forgotten.filter(which).map(({ id }) => id));
    const files = forgotten.flatMap(({ attachments }) => filesOf(attachments));
    if (files.length > 0) noteFiles.run(JSON.stringify([...JSON.parse(noted.get() ?? '[]'), ...files]));
    if (forgotten.length > 0) journal.forgetMessages(forgotten.map(({ id }) => id));
    silenceMessages.run(ids(({ mayGo }) => !mayGo));
    removeMessages.run(ids(({ mayGo }) => mayGo === 1));
    return forgotten.length;
  }

  return [
    ({ most }) => write(() => removeHearings.run({ most }).changes, 'single'),

    walkOf<PruneForgottenAsk>(
      connection,
      { table: 'turn', key: 'id', first: '' },
      {
        isDone: () => (lastReset.get() ?? 0) === 0,
        work({ after, upTo, most }) {
          const turns = JSON.stringify(forgottenTurns.all({ after, upTo }));
          return [removeSteps, silenceAnswers, silenceAsides].reduce(
            (sum, statement) => sum + statement.run({ turns, most: most - sum }).changes,
            0,
          );
        },
      },
    ),

    walkOf<PruneForgottenAsk>(
      connection,
      { table: 'message', key: 'id', first: 0 },
      {
        isDone: ({ after }) => Number(after) >= (lastReset.get() ?? 0),
        work({ after, upTo, most, now }) {
          const redeliveredSince = now - REDELIVERED_FOR_MS;
          return forgetMessages(forgottenBetween({ after, upTo, redeliveredSince }).slice(0, most));
        },
      },
    ),
  ];
}

function filesOf(attachments: string | null): string[] {
  if (attachments === null) return [];
  return (JSON.parse(attachments) as StoredAttachment[]).flatMap(({ outcome }) =>
    outcome?.kind === 'kept' ? [outcome.file] : [],
  );
}

// Upkeep: deletes tasks that have been over for long, and at any age those that were given by what a persona has forgotten,
// with what is kept of their course. A key stays as long as it lives.

type PruneTasksAsk = Parameters<UpkeepStore['prune']>[0];

function endedTasks(connection: Connection): Walk<PruneTasksAsk> {
  const { raw } = connection;
  const ended = raw
    .prepare<[object], number>(`
      select n from task
      where n > @after and n <= @upTo and completed_at is not null
        and (idempotency_key is null or created_at < @now - ${KEY_LIVES_MS})
        and (completed_at < @before or exists (
          select 1 from turn join view on view.room_id = turn.room_id and view.persona_id = turn.persona_id
          where turn.id = task.turn_id and ${beganBefore('view.reset_at')}))`)
    .pluck();
  const removeOf = (table: 'task_event' | 'task_message') =>
    raw.prepare<[object]>(`
      delete from ${table} where (task, n) in (
        select task, n from json_each(@tasks) cross join ${table} on task = json_each.value limit @most + 0)`);
  // Last, so that one whose course is not yet gone is found again.
  const remove = raw.prepare<[object]>(
    'delete from task where n in (select value from json_each(@tasks) limit @most + 0)',
  );
  const removals = [removeOf('task_event'), removeOf('task_message'), remove];
  return walkOf<PruneTasksAsk>(
    connection,
    { table: 'task', key: 'n', first: 0 },
    {
      work({ most, ...ask }) {
        const tasks = JSON.stringify(ended.all(ask));
        return removals.reduce(
          (sum, statement) => sum + statement.run({ tasks, most: most - sum }).changes,
          0,
        );
      },
    },
  );
}

// Upkeep: deletes what has exceeded its retention, in steps of milliseconds.

/** A table whose rows expire. */
interface Ageing {
  path: KeyPath;
  /** The columns that identify a row; left out: the key of the path. */
  row?: string;
  isOld: string;
  /** If rows are in the order of this time, nothing behind the first younger one is looked at. */
  time?: string;
}

/** The newest row is kept, so that no id is reused. */
const notNewest = (table: string, key: string) => `${key} < (select max(${key}) from ${table})`;

function growing(table: string, time: string, isOld: string, key = 'id'): Ageing {
  return { path: { table, key, first: 0 }, isOld: `${isOld} and ${notNewest(table, key)}`, time };
}

/** The steps of a turn that used tools are needed while its reply is in a window. */
const IS_OVER = `turn.state in ('answered', 'failed', 'aborted') and turn.finished_at < @before
  and (turn.used_tools = 0 or exists (
    select 1 from view cross join message on message.id = view.window_message
    where view.room_id = turn.room_id and view.persona_id = turn.persona_id
      and message.received_at > turn.finished_at))`;

const DAY_MS = 86_400_000;

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
  // In whatever zone: a day is over two days after its first millisecond in UTC.
  {
    path: { table: 'spent', key: 'day', first: 0 },
    row: 'day, person_id',
    isOld: `day < @before - ${2 * DAY_MS}`,
  },
];

type Ask = Parameters<UpkeepStore['prune']>[0];

export function pruneStore(connection: Connection, journal: Journal): UpkeepStore {
  const { raw, memory, withBusyRetry: patiently, read, write } = connection;

  function ageing({ path, isOld, time, row = path.key }: Ageing): Walk<Ask> {
    const { table, key } = path;
    const remove = raw.prepare<[object]>(`
      delete from ${table} where (${row}) in (
        select ${row} from ${table} where ${key} > @after and ${key} <= @upTo and ${isOld} limit @most + 0)`);
    const isYoung =
      time === undefined
        ? null
        : raw.prepare<[object]>(`select 1 from ${table} where ${key} = @after and ${time} >= @before`);
    return walkOf(connection, path, {
      work: (ask) => remove.run(ask).changes,
      isDone: (ask) => isYoung?.get(ask) !== undefined,
      single: 'single',
    });
  }

  /** A short table. */
  function expired(table: string, key: string, isOld: string): Walk<Ask> {
    const remove = raw.prepare<[object]>(`
      delete from ${table} where ${key} in (select ${key} from ${table} where ${isOld} limit @most + 0)`);
    return (ask) => write(() => remove.run(ask).changes, 'single');
  }

  const autoVacuum = raw.prepare<[], number>('PRAGMA auto_vacuum').pluck();
  const freePages = raw.prepare<[], number>('PRAGMA freelist_count').pluck();
  const allPages = raw.prepare<[], number>('PRAGMA page_count').pluck();
  const pageSize = raw.prepare<[], number>('PRAGMA page_size').pluck();
  const counted = ['message', 'outbox', 'command', 'version', 'task'].map((table) => {
    const key = table === 'version' || table === 'task' ? 'n' : 'id';
    // Estimated from the ids: counting would read all rows.
    const span = `select coalesce(max(${key}) - (select min(${key}) from ${table}) + 1, 0) from ${table}`;
    return { table, rows: raw.prepare<[], number>(span).pluck() };
  });

  const walks: Walk<Ask>[] = [
    ...AGEING.map(ageing),
    expired('pairing', 'id', 'coalesce(expires_at, 0) < @before and requested_at < @before'),
    expired('question', 'id', 'until < @before'),
    expired('offer', 'key', 'until < @now'),
    expired('early_result', 'waits_for', 'at < @before'),
    endedJobs(connection),
    endedTasks(connection),
    expired('asked_call', 'id', 'until < @before'),
    ...forgottenWalks(connection, journal),
  ];
  /** Where the next call continues. */
  let current = 0;

  return {
    async prune(ask) {
      let gone = 0;
      for (let walk = walks[current]; walk !== undefined; walk = walks[current]) {
        const removed = await walk({ ...ask, most: ask.most - gone });
        if (removed > 0) journal.changed();
        gone += removed;
        memory.clear();
        if (gone >= ask.most) return gone;
        current++;
      }
      current = 0;
      return gone;
    },

    async shrink(pages) {
      if ((await patiently(() => autoVacuum.get())) === INCREMENTAL) {
        await write(() => void raw.exec(`PRAGMA incremental_vacuum(${Math.trunc(pages)})`), 'single');
        if (await patiently(() => (freePages.get() ?? 0) > 0)) return true;
      }
      // The write-ahead log still contains old versions of pages.
      await patiently(() => void raw.exec('PRAGMA wal_checkpoint(TRUNCATE)'));
      return false;
    },

    sizes: () =>
      read(() => {
        const bytes = pageSize.get() ?? 0;
        return {
          bytes: (allPages.get() ?? 0) * bytes,
          free: (freePages.get() ?? 0) * bytes,
          rows: Object.fromEntries(counted.map(({ table, rows }) => [table, rows.get() ?? 0])),
        };
      }),
  };
}

const INCREMENTAL = 2;

/** Jobs that have been over for long, with their runs; a chat's newest number stays, so that none is given twice. */
function endedJobs({ raw, write }: Connection): Walk<{ before: number }> {
  const over = raw
    .prepare<[object], string>(`
      select id from job where ended_at is not null and ended_at < @before
        and n < (select max(n) from job as other where other.chat_id = job.chat_id) limit @most + 0`)
    .pluck();
  const removeRuns = raw.prepare<[string]>('delete from job_run where job_id = ?');
  const remove = raw.prepare<[string]>('delete from job where id = ?');
  return ({ before, most }) =>
    write(() => {
      const ids = over.all({ before, most });
      for (const id of ids) {
        removeRuns.run(id);
        remove.run(id);
      }
      return ids.length;
    });
}

// For operators: making a restored copy safe to start, and counts.

type Upkeep = Pick<Store, 'quieten' | 'counts'>;

/** What a restored copy must not do again, `@now`. */
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
  `update journal set status = 'interrupted', results = json_object('error', 'restored from a backup'), finished_at = @now,
    changed = ${NEWEST_CHANGE} + chosen.place
    from (select n, row_number() over (order by n) as place from journal where status = 'pending') as chosen
    where journal.n = chosen.n`,
  // The files may be another machine's, or another time's: they are made anew.
  `update journal set filed = 'log' where filed <> 'log'`,
];

/** A login from another time or machine would be rejected, or conflict with the current one. */
export const FORGET_LOGINS = 'delete from channel_state';

export function upkeepOf({ raw, memory, read, write }: Connection, clock: Clock): Upkeep {
  const park = raw.prepare<[object]>(`
    update outbox set state = 'parked', finished_at = @now, error = 'restored from a backup'
    where finished_at is null`);
  const answer = raw.prepare(`update message set state = 'done' where state = 'waiting'`);
  const inRunningTurns = raw
    .prepare<[], number>(`
      select count(*) from turn cross join json_each(turn.batch)
        cross join message on message.id = json_each.value and message.turn_id = turn.id
      where turn.state = 'running'`)
    .pluck();
  const forgetLogins = raw.prepare(FORGET_LOGINS);
  const quieten = QUIETEN.map((sql) => raw.prepare<[object]>(sql));
  const counted = (rows: string) => raw.prepare<[], number>(`select count(*) from ${rows}`).pluck();
  const waiting = counted(`message where state = 'waiting'`);
  const running = counted(`turn where state = 'running'`);
  const undelivered = counted('outbox where finished_at is null');
  const parkedEntries = counted(`outbox where state = 'parked'`);
  const parkedTurns = counted(`turn where state = 'parked'`);

  return {
    quieten: ({ keepLogins } = { keepLogins: false }) =>
      write(() => {
        const now = clock.now();
        const deliveries = park.run({ now }).changes;
        const messages = answer.run().changes + (inRunningTurns.get() ?? 0);
        for (const statement of quieten) statement.run({ now });
        if (!keepLogins) forgetLogins.run();
        memory.clear();
        return { deliveries, messages };
      }),

    counts: () =>
      read(() => ({
        waiting: waiting.get() ?? 0,
        running: running.get() ?? 0,
        undelivered: undelivered.get() ?? 0,
        parked: (parkedEntries.get() ?? 0) + (parkedTurns.get() ?? 0),
      })),
  };
}
