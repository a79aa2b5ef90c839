/** Jobs and their runs. Claiming a slot and adding its event to the room is one transaction. */
import type { ChatId } from '../../core/ids.js';
import {
  type EndedRun,
  type Firing,
  type Job,
  type JobBounds,
  type JobChange,
  type JobRun,
  type JobState,
  type JobStore,
  jobEventId,
  type NewJob,
  SCHEDULE,
} from '../../core/jobs.js';
import type { Database, Statements } from './connection.js';
import { receiveEvent } from './receive.js';
import type { job } from './schema-work.js';
import { bound, columns, insertInto, type Row } from './sql.js';

const COLUMNS = `id chatId n personaId prompt kind value timezone followUp senderId createdAt state nextAt retryOf failures
  senderName tainted why guarded`;
const SELECTED = `${columns(COLUMNS, 'job')}, job.room_id as room`;
type JobRow = Omit<Row<typeof job>, 'roomId' | 'endedAt'> & { room: string };

/** Must match the partial index on due jobs. */
const IS_DUE_ONCE_MORE = `state = 'active' and next_at is not null`;
const IS_OPEN = `state in ('active', 'paused', 'parked')`;
const IN_CHANNELS = `substr(job.chat_id, 1, instr(job.chat_id, '_') - 1) in (select value from json_each(@channels))`;
const MOST_AT_ONCE = 100;
/** Runs kept per job. */
const KEPT_RUNS = 20;
const DAY_MS = 86_400_000;

const jobsWhere = (where: string) => `select ${SELECTED} from job where ${where}`;
const DUE = jobsWhere(
  `${IS_DUE_ONCE_MORE} and next_at <= @now and ${IN_CHANNELS} order by next_at limit ${MOST_AT_ONCE}`,
);
const NEXT_AT = `select next_at from job where ${IS_DUE_ONCE_MORE} and ${IN_CHANNELS} order by next_at limit 1`;
const RUNS = `
  select ${columns('slot attempt firedAt outcome')} from job_run where job_id = ?
  order by slot desc, attempt desc limit ${KEPT_RUNS}`;
const STATES = 'select state, count(*) as jobs from job group by state';
const AHEAD = jobsWhere(
  `id in (select job_id from job_run where fired_at > @now limit ${MOST_AT_ONCE}) and ${IN_CHANNELS}`,
);

// ── Adding and changing ─────────────────────────────────────────────────────────────────────────────────────

const COUNTED = `
  select coalesce(sum(${IS_OPEN}), 0) as open,
    coalesce(sum(follow_up and ${IS_OPEN}), 0) as followUps,
    coalesce(sum(follow_up and created_at > @since), 0) as followUpsToday
  from job where chat_id = @chatId`;
/** The name of the person the turn answers, else the name stored with another job of theirs. */
const NAME_OF = `
  select coalesce(
    (select message.author_name from turn cross join json_each(turn.batch)
      cross join message on message.id = json_each.value
      where turn.id = @turnId and message.author_id = @senderId and @senderId <> '' limit 1),
    (select sender_name from job
      where chat_id = @chatId and sender_id = @senderId and @senderId <> '' order by n desc limit 1),
    '')`;
const CHANGE = `
  update job set state = @state, next_at = @nextAt, retry_of = @retryOf, failures = @failures, why = @why,
    ended_at = @endedAt
  where id = @id`;

function addJob(db: Statements, { now, turnId, room, ...wanted }: NewJob, bounds: JobBounds) {
  const { chatId, senderId, followUp } = wanted;
  const there = db.get<{ open: number; followUps: number; followUpsToday: number }>(COUNTED, {
    chatId,
    since: now - DAY_MS,
  });
  if ((there?.open ?? 0) >= bounds.open) return 'open';
  if (followUp && (there?.followUps ?? 0) >= bounds.followUps) return 'followUps';
  if (followUp && (there?.followUpsToday ?? 0) >= bounds.followUpsADay) return 'followUpsADay';
  const senderName = db.value<string>(NAME_OF, { turnId, senderId, chatId }) ?? '';
  const newest = db.value<number | null>('select max(n) from job where chat_id = ?', chatId);
  const begun = { state: 'active', retryOf: null, failures: 0, why: null } as const;
  const added = { ...wanted, n: (newest ?? 0) + 1, room, senderName, createdAt: now, ...begun };
  db.run(insertInto('job', `${COLUMNS} roomId`), bound({ ...added, roomId: room }));
  return added;
}

function findRow(db: Statements, id: string): JobRow | undefined {
  return db.get<JobRow>(jobsWhere('id = ?'), id);
}

function applyChange(db: Statements, row: JobRow, changed: JobChange, now: number): void {
  const next = { ...row, ...changed };
  const isOver = next.state === 'done' || next.state === 'cancelled';
  db.run(CHANGE, bound({ ...next, endedAt: isOver ? now : null }));
}

function changeJob(
  db: Statements,
  id: string,
  from: readonly JobState[],
  changed: JobChange,
  now: number,
): boolean {
  const row = findRow(db, id);
  if (row === undefined || !from.includes(row.state)) return false;
  applyChange(db, row, changed, now);
  return true;
}

// ── Runs ────────────────────────────────────────────────────────────────────────────────────────────────────

interface OpenRow extends JobRow {
  slot: number;
  attempt: number;
  firedAt: number;
  messageId: number | null;
  messageState: 'waiting' | 'done' | null;
  turnId: string | null;
  turnState: 'running' | 'suspended' | 'ready' | 'answered' | 'failed' | 'parked' | 'aborted' | null;
  endedAt: number | null;
  /** Parts of the run's reply: undelivered, refused, and all. */
  undelivered: number;
  refused: number;
  said: number;
}

const IS_RUNNING = `select 1 from job_run where job_id = ? and outcome = 'running'`;
const ADD_RUN = `
  ${insertInto('job_run', 'jobId slot attempt firedAt eventId outcome finishedAt')} on conflict do nothing`;
const FORGET_OLD_RUNS = `
  delete from job_run where job_id = @id and outcome <> 'running' and slot < (
    select min(slot) from (
      select slot from job_run where job_id = @id order by slot desc, attempt desc limit ${KEPT_RUNS}))`;
const OPEN_RUNS = `
  select ${SELECTED}, ${columns('slot attempt firedAt', 'job_run')}, message.id as messageId,
    message.state as messageState, turn.id as turnId, turn.state as turnState, turn.finished_at as endedAt,
    (select count(*) from outbox where origin = 'turn:' || turn.id and finished_at is null) as undelivered,
    (select count(*) from outbox where origin = 'turn:' || turn.id and state = 'refused') as refused,
    (select count(*) from outbox where origin = 'turn:' || turn.id) as said
  from job_run cross join job on job.id = job_run.job_id
    left join message on message.chat_id = job.chat_id and message.account = '' and message.moves = 0
      and message.edited = 0 and message.platform_message_id = 'event:' || job_run.event_id
    left join turn on turn.id = message.turn_id
  where job_run.outcome = 'running' and ${IN_CHANNELS}`;
const END_RUN = `
  update job_run set outcome = @outcome, finished_at = @now
  where job_id = @id and slot = @slot and attempt = @attempt and outcome = 'running'`;

function fireJob(db: Database, firing: Firing): 'fired' | 'skipped' | null {
  const { seen, slot, attempt, head, becomes, now } = firing;
  const row = findRow(db, seen.id);
  if (row === undefined || row.state !== 'active' || row.nextAt !== seen.nextAt) return null;
  const isPassedOver = head === null || db.get(IS_RUNNING, row.id) !== undefined;
  const eventId = jobEventId(row.id, slot, attempt);
  const outcome = isPassedOver ? 'skipped' : 'running';
  const run = { jobId: row.id, slot, attempt, firedAt: now, eventId, outcome };
  // If the clock goes back, the same slot comes up again.
  const isNew = db.run(ADD_RUN, bound({ ...run, finishedAt: isPassedOver ? now : null })).changes > 0;
  applyChange(db, row, becomes, now);
  db.run(FORGET_OLD_RUNS, { id: row.id });
  if (!isNew || isPassedOver) return 'skipped';
  const { room, personaId, prompt, n, value } = row;
  const text = `${head}\n\n${prompt}`;
  const content = { task_id: n, schedule: value, prompt };
  const event = {
    kind: 'event',
    id: eventId,
    room,
    about: SCHEDULE,
    text,
    personaId,
    at: now,
    content,
  } as const;
  receiveEvent(db, row.tainted === 1 ? { ...event, tainted: true } : event);
  return 'fired';
}

function openRuns(db: Statements, channels: string[], since: number) {
  const rows = db.all<OpenRow>(OPEN_RUNS, { channels: JSON.stringify(channels) });
  const ended = rows.flatMap((row) => endOf(row) ?? []);
  const working = rows.filter((row) => row.firedAt > since && isWorking(row)).length;
  return { working, ended };
}

/** Whether it counts towards the limit of concurrent runs. */
function isWorking({ messageState, turnState }: OpenRow): boolean {
  return messageState === 'waiting' || turnState === 'running' || turnState === 'ready';
}

/** null: the run or the delivery of its reply is still in progress. */
function endOf(row: OpenRow): EndedRun | null {
  const outcome = outcomeOf(row);
  if (outcome === null) return null;
  const { slot, attempt, firedAt, messageId, messageState, turnId, turnState, endedAt, ...rest } = row;
  const { undelivered, refused, said, ...own } = rest;
  return { job: toJob(own), slot, attempt, outcome, endedAt: endedAt ?? firedAt };
}

function outcomeOf(row: OpenRow): EndedRun['outcome'] | null {
  const { messageId, messageState, turnId, turnState, undelivered, refused, said } = row;
  // Nobody will answer it: it was forgotten, or stopped before it had a turn.
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

function endRun(db: Statements, run: Omit<EndedRun, 'endedAt'>, changed: JobChange, now: number): boolean {
  const { job, slot, attempt, outcome } = run;
  if (db.run(END_RUN, { id: job.id, slot, attempt, outcome, now }).changes === 0) return false;
  const row = findRow(db, job.id);
  // Not if it was cancelled or paused meanwhile.
  const isGoingOn = row?.state === 'active' || (row?.state === 'done' && row.kind === 'once');
  if (row !== undefined && isGoingOn) applyChange(db, row, changed, now);
  return true;
}

function jobsAhead(db: Statements, channels: string[], now: number): Job[] {
  const rows = db.all<JobRow>(AHEAD, { channels: JSON.stringify(channels), now });
  const countAsNow = 'update job_run set fired_at = @now where fired_at > @now and job_id = @id';
  for (const { id } of rows) db.run(countAsNow, { id, now });
  return rows.filter(({ kind, state }) => kind === 'cron' && state === 'active').map(toJob);
}

function toJob({ followUp, tainted, guarded, ...row }: JobRow): Job {
  return { ...row, followUp: followUp === 1, tainted: tainted === 1, guarded: guarded === 1 };
}

function found(row: JobRow | undefined): Job | null {
  return row === undefined ? null : toJob(row);
}

export function jobStore(db: Database): JobStore {
  const all = (sql: string, values: ChatId | object) => db.all<JobRow>(sql, values).map(toJob);
  return {
    addJob: (job, bounds) => db.write(() => addJob(db, job, bounds)),
    jobsOf: (chatId) => db.read(() => all(jobsWhere(`chat_id = ? and ${IS_OPEN} order by n`), chatId)),
    jobNumbered: (chatId, n) =>
      db.read(() => found(db.get<JobRow>(jobsWhere('chat_id = ? and n = ?'), chatId, n))),
    job: (id) => db.read(() => found(findRow(db, id))),
    runsOf: (id) => db.read(() => db.all<JobRun>(RUNS, id)),
    changeJob: (id, from, changed, now) => db.write(() => changeJob(db, id, from, changed, now)),
    nextJobAt: (channels) =>
      db.read(() => db.value<number>(NEXT_AT, { channels: JSON.stringify(channels) }) ?? null),
    dueJobs: ({ channels, now, most }) =>
      db.read(() => all(DUE, { channels: JSON.stringify(channels), now }).slice(0, most)),
    fireJob: (firing) => db.write(() => fireJob(db, firing)),
    openRuns: ({ channels, since }) => db.read(() => openRuns(db, channels, since)),
    endRun: (run, changed, now) => db.write(() => endRun(db, run, changed, now)),
    jobsAhead: ({ channels, now }) => db.write(() => jobsAhead(db, channels, now)),
    jobStates: () =>
      db.read(() => {
        const states = db.all<{ state: JobState; jobs: number }>(STATES);
        return Object.fromEntries(states.map(({ state, jobs }) => [state, jobs] as const));
      }),
  };
}
