/** Jobs and their runs. Claiming a slot and adding its event to the room is one transaction. */

import type { ChatId } from '../core/ids.js';
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
} from '../core/jobs.js';
import * as db from './db.js';
import { receiveEvent } from './receive.js';
import type { job } from './schema.js';
import { bound, columns, insertInto, type Row } from './sql.js';

const COLUMNS = `id chatId n personaId prompt kind value timezone followUp senderId createdAt state nextAt retryOf failures
  senderName tainted why guarded`;
const SELECTED = `${columns(COLUMNS, 'job')}, job.room_id as room`;
type JobRow = Omit<Row<typeof job>, 'roomId' | 'endedAt'> & { room: string };

const IS_OPEN = `state in ('active', 'paused', 'parked')`;
const IN_CHANNELS = 'channel_in(job.chat_id, @channels)';
const MOST_AT_ONCE = 100;
/** Runs kept per job. */
const KEPT_RUNS = 20;
const DAY_MS = 86_400_000;

const jobsWhere = (where: string) => `select ${SELECTED} from job where ${where}`;
const NEXT = jobsWhere(`
  state = 'active' and next_at is not null and ${IN_CHANNELS} order by next_at limit ${MOST_AT_ONCE}`);
const RUNS = `
  select ${columns('slot attempt firedAt outcome')} from job_run where job_id = ?
  order by slot desc, attempt desc limit ${KEPT_RUNS}`;
const STATES = 'select state, count(*) as jobs from job group by state';
const AHEAD = jobsWhere(
  `id in (select job_id from job_run where fired_at > @now limit ${MOST_AT_ONCE}) and ${IN_CHANNELS}`,
);
const COUNT_AS_NOW = 'update job_run set fired_at = @now where fired_at > @now and job_id = @id';

// ── Adding and changing ─────────────────────────────────────────────────────────────────────────────────────

const COUNTED = `
  select count(*) filter (where ${IS_OPEN}) as open,
    count(*) filter (where follow_up = 1 and ${IS_OPEN}) as followUps,
    count(*) filter (where follow_up = 1 and created_at > @since) as followUpsToday
  from job where chat_id = @chatId`;
const NAME_IN_BATCH = `
  select author_name from message where number_in(id, @batch) and author_id = @senderId limit 1`;
const NAME_IN_JOBS = `
  select sender_name from job where chat_id = @chatId and sender_id = @senderId order by n desc limit 1`;
const CHANGE = `
  update job set state = @state, next_at = @nextAt, retry_of = @retryOf, failures = @failures, why = @why,
    ended_at = @endedAt
  where id = @id`;

/** The name of the person the turn answers, else the name stored with another job of theirs. */
function* nameOf({
  turnId,
  senderId,
  chatId,
}: {
  turnId: string;
  senderId: ChatId;
  chatId: ChatId;
}): db.Verb<string> {
  if (senderId === '') return '';
  const batch = (yield* db.value<string>('select batch from turn where id = ?', turnId)) ?? '[]';
  const name = yield* db.value<string>(NAME_IN_BATCH, { batch, senderId });
  return name ?? (yield* db.value<string>(NAME_IN_JOBS, { chatId, senderId })) ?? '';
}

function* addJob({ now, turnId, room, ...wanted }: NewJob, bounds: JobBounds) {
  const { chatId, senderId, followUp } = wanted;
  const there = yield* db.one<{ open: number; followUps: number; followUpsToday: number }>(COUNTED, {
    chatId,
    since: now - DAY_MS,
  });
  if ((there?.open ?? 0) >= bounds.open) return 'open';
  if (followUp && (there?.followUps ?? 0) >= bounds.followUps) return 'followUps';
  if (followUp && (there?.followUpsToday ?? 0) >= bounds.followUpsADay) return 'followUpsADay';
  const senderName = yield* nameOf({ turnId, senderId, chatId });
  const newest = yield* db.value<number | null>('select max(n) from job where chat_id = ?', chatId);
  const begun = { state: 'active', retryOf: null, failures: 0, why: null } as const;
  const added = { ...wanted, n: (newest ?? 0) + 1, room, senderName, createdAt: now, ...begun };
  yield* db.tell(insertInto('job', `${COLUMNS} roomId`), bound({ ...added, roomId: room }));
  return added;
}

function* findRow(id: string): db.Verb<JobRow | undefined> {
  return yield* db.one<JobRow>(jobsWhere('id = ?'), id);
}

function* applyChange(row: JobRow, changed: JobChange, now: number): db.Verb<void> {
  const next = { ...row, ...changed };
  const isOver = next.state === 'done' || next.state === 'cancelled';
  yield* db.tell(CHANGE, bound({ ...next, endedAt: isOver ? now : null }));
}

function* changeJob(
  { id, from }: { id: string; from: readonly JobState[] },
  changed: JobChange,
  now: number,
): db.Verb<boolean> {
  const row = yield* findRow(id);
  if (row === undefined || !from.includes(row.state)) return false;
  yield* applyChange(row, changed, now);
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
      select slot from job_run where job_id = @id order by slot desc, attempt desc limit ${KEPT_RUNS}) as newest)`;
const OPEN_RUNS = `
  select ${SELECTED}, ${columns('slot attempt firedAt', 'job_run')}, message.id as messageId,
    message.state as messageState, turn.id as turnId, turn.state as turnState, turn.finished_at as endedAt,
    (select count(*) from outbox where origin = 'turn:' || turn.id and finished_at is null) as undelivered,
    (select count(*) from outbox where origin = 'turn:' || turn.id and state = 'refused') as refused,
    (select count(*) from outbox where origin = 'turn:' || turn.id) as said
  from job_run join job on job.id = job_run.job_id
    left join message on message.chat_id = job.chat_id and message.account = '' and message.moves = 0
      and message.edited = 0 and message.platform_message_id = 'event:' || job_run.event_id
    left join turn on turn.id = message.turn_id
  where job_run.outcome = 'running' and ${IN_CHANNELS}`;
const END_RUN = `
  update job_run set outcome = @outcome, finished_at = @now
  where job_id = @id and slot = @slot and attempt = @attempt and outcome = 'running'`;

function* fireJob(firing: Firing): db.Verb<'fired' | 'skipped' | null> {
  const { seen, slot, attempt, head, becomes, now } = firing;
  const row = yield* findRow(seen.id);
  if (row === undefined || row.state !== 'active' || row.nextAt !== seen.nextAt) return null;
  const isPassedOver = head === null || (yield* db.one(IS_RUNNING, row.id)) !== undefined;
  const eventId = jobEventId(row.id, slot, attempt);
  const outcome = isPassedOver ? 'skipped' : 'running';
  const run = { jobId: row.id, slot, attempt, firedAt: now, eventId, outcome };
  // If the clock goes back, the same slot comes up again.
  const isNew = (yield* db.run(ADD_RUN, bound({ ...run, finishedAt: isPassedOver ? now : null }))) > 0;
  yield* applyChange(row, becomes, now);
  yield* db.tell(FORGET_OLD_RUNS, { id: row.id });
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
  yield* receiveEvent(row.tainted === 1 ? { ...event, tainted: true } : event);
  return 'fired';
}

function* openRuns({ since, now, ...ask }: Parameters<JobStore['openRuns']>[0]) {
  const channels = JSON.stringify(ask.channels);
  const wereAhead = yield* db.all<JobRow>(AHEAD, { channels, now });
  for (const { id } of wereAhead) yield* db.tell(COUNT_AS_NOW, { id, now });
  const ahead = wereAhead.filter(({ kind, state }) => kind === 'cron' && state === 'active').map(toJob);
  const rows = yield* db.all<OpenRow>(OPEN_RUNS, { channels });
  const ended = rows.flatMap((row) => endOf(row) ?? []);
  const working = rows.filter((row) => row.firedAt > since && isWorking(row)).length;
  return { working, ended, ahead };
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

function* endRun(
  { job, slot, attempt, outcome }: EndedRun,
  changed: JobChange,
  now: number,
): db.Verb<boolean> {
  if ((yield* db.run(END_RUN, { id: job.id, slot, attempt, outcome, now })) === 0) return false;
  const row = yield* findRow(job.id);
  // Not if it was cancelled or paused meanwhile.
  const isGoingOn = row?.state === 'active' || (row?.state === 'done' && row.kind === 'once');
  if (row !== undefined && isGoingOn) yield* applyChange(row, changed, now);
  return true;
}

function toJob({ followUp, tainted, guarded, ...row }: JobRow): Job {
  return { ...row, followUp: followUp === 1, tainted: tainted === 1, guarded: guarded === 1 };
}

function* jobs(which: Parameters<JobStore['jobs']>[0]): db.Verb<Job[]> {
  const ofChat =
    'n' in which ? 'chat_id = @chatId and n = @n' : `chat_id = @chatId and ${IS_OPEN} order by n`;
  return (yield* db.all<JobRow>(jobsWhere('id' in which ? 'id = @id' : ofChat), which)).map(toJob);
}

function* dueJobs({ channels, now, most }: Parameters<JobStore['dueJobs']>[0]) {
  const next = (yield* db.all<JobRow>(NEXT, { channels: JSON.stringify(channels) })).map(toJob);
  const due = next.filter(({ nextAt }) => nextAt !== null && nextAt <= now).slice(0, most);
  return { due, nextAt: next[due.length]?.nextAt ?? null };
}

export function jobStore(database: db.Database): JobStore {
  return {
    addJob: (job, bounds) => database.write([db.JOBS, job.chatId], () => addJob(job, bounds)),
    jobs: (which) => database.look(() => jobs(which)),
    runsOf: (id) => database.look(() => db.all<JobRun>(RUNS, id)),
    changeJob: (which, changed, now) =>
      database.write(db.JOBS, () =>
        'ended' in which ? endRun(which.ended, changed, now) : changeJob(which, changed, now),
      ),
    dueJobs: (ask) => database.look(() => dueJobs(ask)),
    fireJob: (firing) => database.write([db.JOBS, firing.seen.room], () => fireJob(firing)),
    openRuns: (ask) => database.write(db.JOBS, () => openRuns(ask)),
    jobStates: () =>
      database.look(function* () {
        const states = yield* db.all<{ state: JobState; jobs: number }>(STATES);
        return Object.fromEntries(states.map(({ state, jobs }) => [state, jobs] as const));
      }),
  };
}
