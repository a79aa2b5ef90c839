/** Jobs and their runs. A slot is claimed, and becomes an event of its room, in one transaction. */
import type { ChatId } from '../../core/ids.js';
import {
  type EndedRun,
  type Job,
  type JobChange,
  type JobRun,
  type JobState,
  type JobStore,
  jobEventId,
  SCHEDULE,
} from '../../core/jobs.js';
import type { Connection } from './connection.js';
import type { Waiting } from './receive.js';
import type { job } from './schema-work.js';
import { bound, columns, insertInto, type Row } from './sql.js';

const COLUMNS = `id chatId n personaId prompt kind value timezone followUp senderId createdAt state nextAt retryOf failures
  senderName tainted why guarded`;
const SELECTED = `${columns(COLUMNS, 'job')}, job.room_id as room`;
type JobRow = Omit<Row<typeof job>, 'roomId' | 'endedAt'> & { room: string };

/** As the partial index on what is due has it. */
const IS_DUE_ONCE_MORE = `state = 'active' and next_at is not null`;
const IS_OPEN = `state in ('active', 'paused', 'parked')`;
const IN_CHANNELS = `substr(job.chat_id, 1, instr(job.chat_id, '_') - 1) in (select value from json_each(@channels))`;
const MOST_AT_ONCE = 100;
/** So many runs of a job are kept. */
const KEPT_RUNS = 20;
const DAY_MS = 86_400_000;

interface OpenRow extends JobRow {
  slot: number;
  attempt: number;
  firedAt: number;
  messageId: number | null;
  messageState: 'waiting' | 'done' | null;
  turnId: string | null;
  turnState: 'running' | 'suspended' | 'ready' | 'answered' | 'failed' | 'parked' | 'aborted' | null;
  endedAt: number | null;
  /** Of its reply: what is still to be delivered, what was refused, and all. */
  undelivered: number;
  refused: number;
  said: number;
}

export function jobStore(connection: Connection, waiting: Waiting): JobStore {
  const { raw, read, write } = connection;
  const one = (where: string) => raw.prepare<unknown[], JobRow>(`select ${SELECTED} from job where ${where}`);
  const byId = one('id = ?');
  const byNumber = one('chat_id = ? and n = ?');
  const open = one(`chat_id = ? and ${IS_OPEN} order by n`);
  const due = raw.prepare<[object], JobRow>(`
    select ${SELECTED} from job where ${IS_DUE_ONCE_MORE} and next_at <= @now and ${IN_CHANNELS}
    order by next_at limit ${MOST_AT_ONCE}`);
  const nextAt = raw
    .prepare<[object], number>(
      `select next_at from job where ${IS_DUE_ONCE_MORE} and ${IN_CHANNELS} order by next_at limit 1`,
    )
    .pluck();
  const runs = raw.prepare<[string], JobRun>(`
    select ${columns('slot attempt firedAt outcome')} from job_run where job_id = ?
    order by slot desc, attempt desc limit ${KEPT_RUNS}`);
  const states = raw.prepare<[], { state: JobState; jobs: number }>(
    'select state, count(*) as jobs from job group by state',
  );

  const counted = raw.prepare<[object], { open: number; followUps: number; followUpsToday: number }>(`
    select coalesce(sum(${IS_OPEN}), 0) as open,
      coalesce(sum(follow_up and ${IS_OPEN}), 0) as followUps,
      coalesce(sum(follow_up and created_at > @since), 0) as followUpsToday
    from job where chat_id = @chatId`);
  /** Whoever the turn answers is known by name; else as whoever set another job. */
  const nameOf = raw
    .prepare<[object], string>(`
      select coalesce(
        (select message.author_name from turn cross join json_each(turn.batch)
          cross join message on message.id = json_each.value
          where turn.id = @turnId and message.author_id = @senderId and @senderId <> '' limit 1),
        (select sender_name from job
          where chat_id = @chatId and sender_id = @senderId and @senderId <> '' order by n desc limit 1),
        '')`)
    .pluck();
  const newest = raw.prepare<[ChatId], number | null>('select max(n) from job where chat_id = ?').pluck();
  const add = raw.prepare<[object]>(insertInto('job', `${COLUMNS} roomId`));
  const change = raw.prepare<[object]>(`
    update job set state = @state, next_at = @nextAt, retry_of = @retryOf, failures = @failures, why = @why,
      ended_at = @endedAt
    where id = @id`);

  const isRunning = raw
    .prepare<[string], number>(`select 1 from job_run where job_id = ? and outcome = 'running'`)
    .pluck();
  const addRun = raw.prepare<[object]>(`
    ${insertInto('job_run', 'jobId slot attempt firedAt eventId outcome finishedAt')} on conflict do nothing`);
  const forgetOldRuns = raw.prepare<[object]>(`
    delete from job_run where job_id = @id and outcome <> 'running' and slot < (
      select min(slot) from (
        select slot from job_run where job_id = @id order by slot desc, attempt desc limit ${KEPT_RUNS}))`);
  const openRuns = raw.prepare<[object], OpenRow>(`
    select ${SELECTED}, ${columns('slot attempt firedAt', 'job_run')}, message.id as messageId,
      message.state as messageState, turn.id as turnId, turn.state as turnState, turn.finished_at as endedAt,
      (select count(*) from outbox where origin = 'turn:' || turn.id and finished_at is null) as undelivered,
      (select count(*) from outbox where origin = 'turn:' || turn.id and state = 'refused') as refused,
      (select count(*) from outbox where origin = 'turn:' || turn.id) as said
    from job_run cross join job on job.id = job_run.job_id
      left join message on message.chat_id = job.chat_id and message.account = '' and message.moves = 0
        and message.edited = 0 and message.platform_message_id = 'event:' || job_run.event_id
      left join turn on turn.id = message.turn_id
    where job_run.outcome = 'running' and ${IN_CHANNELS}`);
  const end = raw.prepare<[object]>(`
    update job_run set outcome = @outcome, finished_at = @now
    where job_id = @id and slot = @slot and attempt = @attempt and outcome = 'running'`);
  const ahead = raw.prepare<[object], JobRow>(`
    select ${SELECTED} from job where id in (
      select job_id from job_run where fired_at > @now limit ${MOST_AT_ONCE}) and ${IN_CHANNELS}`);
  const countAsNow = raw.prepare<[object]>(
    'update job_run set fired_at = @now where fired_at > @now and job_id = @id',
  );

  function apply(row: JobRow, changed: JobChange, now: number): void {
    const next = { ...row, ...changed };
    const isOver = next.state === 'done' || next.state === 'cancelled';
    change.run(bound({ ...next, endedAt: isOver ? now : null }));
  }

  /** The event, as `receive` adds one. */
  function tell(row: JobRow, { id, head, now }: { id: string; head: string; now: number }): void {
    const { room, personaId, prompt, n, value } = row;
    const text = `${head}\n\n${prompt}`;
    const content = { task_id: n, schedule: value, prompt };
    const event = { kind: 'event', id, room, about: SCHEDULE, text, personaId, at: now, content } as const;
    waiting.event(row.tainted === 1 ? { ...event, tainted: true } : event);
  }

  return {
    addJob: ({ now, turnId, room, ...wanted }, bounds) =>
      write(() => {
        const { chatId, senderId, followUp } = wanted;
        const there = counted.get({ chatId, since: now - DAY_MS });
        if ((there?.open ?? 0) >= bounds.open) return 'open';
        if (followUp && (there?.followUps ?? 0) >= bounds.followUps) return 'followUps';
        if (followUp && (there?.followUpsToday ?? 0) >= bounds.followUpsADay) return 'followUpsADay';
        const senderName = nameOf.get({ turnId, senderId, chatId }) ?? '';
        const n = (newest.get(chatId) ?? 0) + 1;
        const begun = { state: 'active', retryOf: null, failures: 0, why: null } as const;
        const added = { ...wanted, n, room, senderName, createdAt: now, ...begun };
        add.run(bound({ ...added, roomId: room }));
        return added;
      }),

    jobsOf: (chatId) => read(() => open.all(chatId).map(toJob)),
    jobNumbered: (chatId, n) => read(() => found(byNumber.get(chatId, n))),
    job: (id) => read(() => found(byId.get(id))),
    runsOf: (id) => read(() => runs.all(id)),

    changeJob: (id, from, changed, now) =>
      write(() => {
        const row = byId.get(id);
        if (row === undefined || !from.includes(row.state)) return false;
        apply(row, changed, now);
        return true;
      }),

    nextJobAt: (channels) => read(() => nextAt.get({ channels: JSON.stringify(channels) }) ?? null),
    dueJobs: ({ channels, now, most }) =>
      read(() =>
        due
          .all({ channels: JSON.stringify(channels), now })
          .slice(0, most)
          .map(toJob),
      ),

    fireJob: ({ seen, slot, attempt, head, becomes, now }) =>
      write(() => {
        const row = byId.get(seen.id);
        if (row === undefined || row.state !== 'active' || row.nextAt !== seen.nextAt) return null;
        const isPassedOver = head === null || isRunning.get(row.id) !== undefined;
        const eventId = jobEventId(row.id, slot, attempt);
        const outcome = isPassedOver ? 'skipped' : 'running';
        const run = { jobId: row.id, slot, attempt, firedAt: now, eventId, outcome };
        // A clock that went back comes to the same slot again.
        const isNew = addRun.run(bound({ ...run, finishedAt: isPassedOver ? now : null })).changes > 0;
        apply(row, becomes, now);
        forgetOldRuns.run({ id: row.id });
        if (!isNew || isPassedOver) return 'skipped';
        tell(row, { id: eventId, head, now });
        return 'fired';
      }),

    openRuns: ({ channels, since }) =>
      read(() => {
        const rows = openRuns.all({ channels: JSON.stringify(channels) });
        const ended = rows.flatMap((row) => endOf(row) ?? []);
        const working = rows.filter((row) => row.firedAt > since && isWorking(row)).length;
        return { working, ended };
      }),

    endRun: ({ job: { id }, slot, attempt, outcome }, changed, now) =>
      write(() => {
        if (end.run({ id, slot, attempt, outcome, now }).changes === 0) return false;
        const row = byId.get(id);
        // It is over where it was cancelled, and not to be gone on with where it was paused.
        const isGoingOn = row?.state === 'active' || (row?.state === 'done' && row.kind === 'once');
        if (row !== undefined && isGoingOn) apply(row, changed, now);
        return true;
      }),

    jobsAhead: ({ channels, now }) =>
      write(() => {
        const rows = ahead.all({ channels: JSON.stringify(channels), now });
        for (const { id } of rows) countAsNow.run({ id, now });
        return rows.filter(({ kind, state }) => kind === 'cron' && state === 'active').map(toJob);
      }),

    jobStates: () =>
      read(() => Object.fromEntries(states.all().map(({ state, jobs }) => [state, jobs] as const))),
  };
}

function found(row: JobRow | undefined): Job | null {
  return row === undefined ? null : toJob(row);
}

function toJob({ followUp, tainted, guarded, ...row }: JobRow): Job {
  return { ...row, followUp: followUp === 1, tainted: tainted === 1, guarded: guarded === 1 };
}

/** Whether it takes part in what the gateway does at once. */
function isWorking({ messageState, turnState }: OpenRow): boolean {
  return messageState === 'waiting' || turnState === 'running' || turnState === 'ready';
}

/** null: it is under way, or its reply is. */
function endOf(row: OpenRow): EndedRun | null {
  const outcome = outcomeOf(row);
  if (outcome === null) return null;
  const { slot, attempt, firedAt, endedAt } = row;
  return { job: jobIn(row), slot, attempt, outcome, endedAt: endedAt ?? firedAt };
}

function jobIn(row: OpenRow): Job {
  const { slot, attempt, firedAt, messageId, messageState, turnId, turnState, endedAt, ...rest } = row;
  const { undelivered, refused, said, ...own } = rest;
  return toJob(own);
}

function outcomeOf(row: OpenRow): EndedRun['outcome'] | null {
  const { messageId, messageState, turnId, turnState, undelivered, refused, said } = row;
  // Nobody is going to answer it: it was forgotten, or stopped before it had a turn.
  if (messageId === null) return 'skipped';
  if (messageState === 'waiting') return null;
  if (turnId === null) return 'skipped';
  switch (turnState) {
    case 'answered':
      if (undelivered > 0) return null;
      return said > 0 && refused === said ? 'failed' : 'answered';
    case 'failed':
    case 'parked':
      return 'failed';
    case 'aborted':
      return 'skipped';
    default:
      return null;
  }
}
