/** Jobs and their runs. Claiming a slot and adding its event to the room is one transaction. */

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
import { assigned, bound, columns, insertInto, type Row } from './sql.js';

const COLUMNS = `id chatId n personaId prompt kind value timezone followUp senderId createdAt state nextAt retryOf failures
  senderName tainted why guarded`;
/** With the room; also used in statements that join a job with other rows. */
export const JOB_COLUMNS = `${columns(COLUMNS, 'job')}, job.room_id as room`;
export type JobRow = Omit<Row<typeof job>, 'roomId' | 'endedAt'> & { room: string };

const jobsWhere = (where: string) => `select ${JOB_COLUMNS} from job where ${where}`;
const IS_OPEN = `state in ('active', 'paused', 'parked')`;
const IN_CHANNELS = 'channel_in(job.chat_id, @channels)';
const MOST_AT_ONCE = 100;
/** Runs kept per job. */
const KEPT_RUNS = 20;
const DAY_MS = 86_400_000;

export function toJob({ followUp, tainted, guarded, ...row }: JobRow): Job {
  return { ...row, followUp: followUp === 1, tainted: tainted === 1, guarded: guarded === 1 };
}

function* findRow(id: string): db.Verb<JobRow | undefined> {
  return yield* db.one<JobRow>(jobsWhere('id = ?'), id);
}

function* jobs(which: Parameters<JobStore['jobs']>[0]): db.Verb<Job[]> {
  const ofChat =
    'n' in which ? 'chat_id = @chatId and n = @n' : `chat_id = @chatId and ${IS_OPEN} order by n`;
  return (yield* db.all<JobRow>(jobsWhere('id' in which ? 'id = @id' : ofChat), which)).map(toJob);
}

// ── Adding and changing ─────────────────────────────────────────────────────────────────────────────────────

const COUNTED = `
  select coalesce(max(n), 0) as newest, count(*) filter (where ${IS_OPEN}) as open,
    count(*) filter (where follow_up = 1 and ${IS_OPEN}) as followUps,
    count(*) filter (where follow_up = 1 and created_at > @since) as followUpsToday
  from job where chat_id = @chatId`;
type Counted = Record<'newest' | 'open' | 'followUps' | 'followUpsToday', number>;
const NAME_IN_BATCH = `
  select author_name from message where number_in(id, @batch) and author_id = @senderId limit 1`;
const NAME_IN_JOBS = `
  select sender_name from job where chat_id = @chatId and sender_id = @senderId order by n desc limit 1`;
const CHANGE = `update job set ${assigned('state nextAt retryOf failures why endedAt')} where id = @id`;

/** The name of the person the turn answers, else the name stored with another job of theirs. */
function* nameOf({ turnId, senderId, chatId }: Omit<NewJob, 'now'>): db.Verb<string> {
  if (senderId === '') return '';
  const batch = (yield* db.value<string>('select batch from turn where id = ?', turnId)) ?? '[]';
  const name = yield* db.value<string>(NAME_IN_BATCH, { batch, senderId });
  return name ?? (yield* db.value<string>(NAME_IN_JOBS, { chatId, senderId })) ?? '';
}

function* addJob({ now, ...wanted }: NewJob, bounds: JobBounds) {
  const { turnId, ...terms } = wanted;
  const { chatId, followUp } = terms;
  const there = yield* db.one<Counted>(COUNTED, { chatId, since: now - DAY_MS });
  const { newest = 0, open = 0, followUps = 0, followUpsToday = 0 } = there ?? {};
  if (open >= bounds.open) return 'open';
  if (followUp && followUps >= bounds.followUps) return 'followUps';
  if (followUp && followUpsToday >= bounds.followUpsADay) return 'followUpsADay';
  const begun = { state: 'active', retryOf: null, failures: 0, why: null } as const;
  const added = { ...terms, n: newest + 1, senderName: yield* nameOf(wanted), createdAt: now, ...begun };
  yield* db.tell(insertInto('job', `${COLUMNS} roomId`), bound({ ...added, roomId: added.room }));
  return added;
}

function* applyChange(row: JobRow, changed: JobChange, now: number): db.Verb<void> {
  const next = { ...row, ...changed };
  const isOver = next.state === 'done' || next.state === 'cancelled';
  yield* db.tell(CHANGE, bound({ ...next, endedAt: isOver ? now : null }));
}

function* changeJob(id: string, from: readonly JobState[], changed: JobChange, now: number) {
  const row = yield* findRow(id);
  if (row === undefined || !from.includes(row.state)) return false;
  yield* applyChange(row, changed, now);
  return true;
}

// ── Runs ────────────────────────────────────────────────────────────────────────────────────────────────────

const NEXT = jobsWhere(`
  state = 'active' and next_at is not null and ${IN_CHANNELS} order by next_at limit ${MOST_AT_ONCE}`);
const RUNS = `
  select ${columns('slot attempt outcome')} from job_run where job_id = ?
  order by slot desc, attempt desc limit ${KEPT_RUNS}`;
const AHEAD = jobsWhere(`
  id in (select job_id from job_run where fired_at > @now limit ${MOST_AT_ONCE}) and ${IN_CHANNELS}`);
const COUNT_AS_NOW = 'update job_run set fired_at = @now where fired_at > @now and job_id = @id';
const IS_RUNNING = `select 1 from job_run where job_id = ? and outcome = 'running'`;
const ADD_RUN = `
  ${insertInto('job_run', 'jobId slot attempt firedAt eventId outcome finishedAt')} on conflict do nothing`;
const FORGET_OLD_RUNS = `
  delete from job_run where job_id = @id and outcome <> 'running' and slot < (
    select min(slot) from (
      select slot from job_run where job_id = @id order by slot desc, attempt desc limit ${KEPT_RUNS}) as newest)`;
const END_RUN = `
  update job_run set outcome = @outcome, finished_at = @now
  where job_id = @id and slot = @slot and attempt = @attempt and outcome = 'running'`;

const hasPart = (which: string) => `
  exists (select 1 from outbox where outbox.origin = 'turn:' || turn.id and ${which})`;
/** null while the run or the delivery of its reply is in progress. Nobody answers what was forgotten or stopped. */
const OUTCOME = `
  case when message.id is null then 'skipped'
    when message.state = 'waiting' then null
    when turn.id is null or turn.state = 'aborted' then 'skipped'
    when turn.state in ('failed', 'parked') then 'failed'
    when turn.state <> 'answered' or ${hasPart('finished_at is null')} then null
    when ${hasPart(`outbox.state = 'refused'`)} and not ${hasPart(`outbox.state <> 'refused'`)} then 'failed'
    else 'answered' end`;
/** `isWorking`: it counts towards the limit of concurrent runs. */
const OPEN_RUNS = `
  select ${JOB_COLUMNS}, ${columns('slot attempt firedAt', 'job_run')}, ${OUTCOME} as outcome,
    case when message.state = 'waiting' or turn.state in ('running', 'ready') then 1 else 0 end as isWorking,
    coalesce(turn.finished_at, job_run.fired_at) as endedAt
  from job_run join job on job.id = job_run.job_id
    left join message on message.chat_id = job.chat_id and message.account = '' and message.moves = 0
      and message.edited = 0 and message.platform_message_id = 'event:' || job_run.event_id
    left join turn on turn.id = message.turn_id
  where job_run.outcome = 'running' and ${IN_CHANNELS}`;
type OpenRow = JobRow &
  Omit<EndedRun, 'job' | 'outcome'> & {
    firedAt: number;
    outcome: EndedRun['outcome'] | null;
    isWorking: number;
  };

function* dueJobs({ channels, now, most }: Parameters<JobStore['dueJobs']>[0]) {
  const next = (yield* db.all<JobRow>(NEXT, { channels: JSON.stringify(channels) })).map(toJob);
  const due = next.filter(({ nextAt }) => nextAt !== null && nextAt <= now).slice(0, most);
  return { due, nextAt: next[due.length]?.nextAt ?? null };
}

function* fireJob(firing: Firing): db.Verb<'fired' | 'skipped' | null> {
  const { seen, slot, attempt, head, becomes, now } = firing;
  const row = yield* findRow(seen.id);
  if (row === undefined || row.state !== 'active' || row.nextAt !== seen.nextAt) return null;
  const isPassedOver = head === null || (yield* db.one(IS_RUNNING, row.id)) !== undefined;
  const id = jobEventId(row.id, slot, attempt);
  const outcome = isPassedOver ? 'skipped' : 'running';
  const run = { jobId: row.id, slot, attempt, firedAt: now, eventId: id, outcome };
  // If the clock goes back, the same slot comes up again.
  const isNew = (yield* db.run(ADD_RUN, { ...run, finishedAt: isPassedOver ? now : null })) > 0;
  yield* applyChange(row, becomes, now);
  yield* db.tell(FORGET_OLD_RUNS, { id: row.id });
  if (!isNew || isPassedOver) return 'skipped';
  const { room, personaId, prompt, n, value, tainted } = row;
  yield* receiveEvent({
    ...{ kind: 'event', id, room, about: SCHEDULE, personaId, at: now, text: `${head}\n\n${prompt}` },
    content: { task_id: n, schedule: value, prompt },
    ...(tainted === 1 && { tainted: true as const }),
  });
  return 'fired';
}

function* openRuns({ since, now, ...ask }: Parameters<JobStore['openRuns']>[0]) {
  const channels = JSON.stringify(ask.channels);
  const wereAhead = yield* db.all<JobRow>(AHEAD, { channels, now });
  for (const { id } of wereAhead) yield* db.tell(COUNT_AS_NOW, { id, now });
  const ahead = wereAhead.filter(({ kind, state }) => kind === 'cron' && state === 'active').map(toJob);
  const rows = yield* db.all<OpenRow>(OPEN_RUNS, { channels });
  const working = rows.filter(({ firedAt, isWorking }) => firedAt > since && isWorking === 1).length;
  const ended = rows.flatMap(({ slot, attempt, firedAt, outcome, isWorking, endedAt, ...row }) =>
    outcome === null ? [] : { job: toJob(row), slot, attempt, outcome, endedAt },
  );
  return { working, ended, ahead };
}

function* endRun({ job, slot, attempt, outcome }: EndedRun, changed: JobChange, now: number) {
  if ((yield* db.run(END_RUN, { id: job.id, slot, attempt, outcome, now })) === 0) return false;
  const row = yield* findRow(job.id);
  // Not if it was cancelled or paused meanwhile.
  const isGoingOn = row?.state === 'active' || (row?.state === 'done' && row.kind === 'once');
  if (row !== undefined && isGoingOn) yield* applyChange(row, changed, now);
  return true;
}

export function jobStore(database: db.Database): JobStore {
  return {
    addJob: (job, bounds) => database.write([db.JOBS, job.chatId], () => addJob(job, bounds)),
    jobs: (which) => database.look(() => jobs(which)),
    runsOf: (id) => database.look(() => db.all<JobRun>(RUNS, id)),
    changeJob: (which, changed, now) =>
      database.write(db.JOBS, () =>
        'ended' in which ? endRun(which.ended, changed, now) : changeJob(which.id, which.from, changed, now),
      ),
    dueJobs: (ask) => database.look(() => dueJobs(ask)),
    fireJob: (firing) => database.write([db.JOBS, firing.seen.room], () => fireJob(firing)),
    openRuns: (ask) => database.write(db.JOBS, () => openRuns(ask)),
  };
}
