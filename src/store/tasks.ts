/** Tasks: added within limits, claimed by one process, and ended in one transaction with the report. */

import {
  BOARD_CHAT,
  MOST_EVENTS,
  type NewTask,
  type Task,
  type TaskAdded,
  type TaskBounds,
  type TaskClaim,
  type TaskEnd,
  type TaskEvent,
  type TaskMessageMode,
  type TaskNote,
  type TaskStore,
} from '../core/task.js';
import * as db from './db.js';
import { IS_DELEGATED, writeJournal } from './journal.js';
import { askedIn, askPeople } from './questions.js';
import { receiveEvent } from './receive.js';
import type { task } from './schema.js';
import { bound, columns, insertInto, type Some } from './sql.js';
import { addTaskEvent, endTask, OPEN_TASK, type OpenTask, stopTask } from './task-events.js';
import { beganBefore } from './views.js';

/** Lifetime of an idempotency key. */
export const KEY_LIVES_MS = 86_400_000;

const PARENT = 'roomId personaId turnId callId senderId tainted';
const LISTED = `id agent goal status createdAt startedAt completedAt result error chatId ${PARENT}` as const;
const TASK = `n ${LISTED} request idempotencyHash` as const;
type TaskRow = Some<typeof task, typeof TASK>;
type ListedRow = Some<typeof task, typeof LISTED>;

function toTask({ n, request, idempotencyHash, ...row }: TaskRow): Task {
  return { ...toListed(row), request: JSON.parse(request) };
}

function toListed(row: ListedRow): Omit<Task, 'request'> {
  const { chatId, roomId: room, personaId, turnId, callId, senderId, tainted, result, ...rest } = row;
  const isOfProgram = room === null || personaId === null || turnId === null || callId === null;
  const parent = isOfProgram
    ? null
    : { chatId, room, personaId, turnId, callId, senderId: senderId ?? '', tainted: tainted === 1 };
  return { ...rest, parent, result: result === null ? null : JSON.parse(result) };
}

const taskWhere = (which: string) => `select ${columns(TASK)} from task where ${which} = ?`;

function* findRow(which: Parameters<TaskStore['task']>[0]): db.Verb<TaskRow | undefined> {
  if (typeof which === 'string') return yield* db.one<TaskRow>(taskWhere('id'), which);
  return yield* db.one<TaskRow>(taskWhere('idempotency_key'), which.key);
}

// ── Adding ──────────────────────────────────────────────────────────────────────────────────────────────────

const FREE_KEY = 'update task set idempotency_key = null, idempotency_hash = null where idempotency_key = ?';
const WAITING = `select count(*) from task where status = 'pending' and room_id is null`;
const DELEGATED = `
  select count(*) filter (where room_id = @room) as here, count(*) as everywhere from task where ${IS_DELEGATED}`;
const NEW_TASK = 'id agent goal status createdAt chatId request idempotencyKey idempotencyHash';
/** The turn that delegated it was forgotten. */
const WAS_FORGOTTEN = `
  select 1 from turn join view on view.room_id = turn.room_id and view.persona_id = turn.persona_id
  where turn.id = ? and ${beganBefore('view.reset_at')}`;

/** The limit that it would exceed; null if none. */
function* exceeded({ parent }: NewTask, bounds: TaskBounds): db.Verb<keyof TaskBounds | null> {
  if (parent === null) return ((yield* db.value<number>(WAITING)) ?? 0) >= bounds.waiting ? 'waiting' : null;
  const there = yield* db.one<{ here: number; everywhere: number }>(DELEGATED, { room: parent.room });
  const { here = 0, everywhere = 0 } = there ?? {};
  return here >= bounds.perRoom ? 'perRoom' : everywhere >= bounds.delegated ? 'delegated' : null;
}

function* givenBefore({ id, idempotency, now }: NewTask): db.Verb<TaskAdded | null> {
  const twin = yield* findRow(id);
  if (twin !== undefined) return { kind: 'there', task: toTask(twin) };
  const row = idempotency === null ? undefined : yield* findRow(idempotency);
  if (row === undefined) return null;
  if (row.status === 'interrupted' || row.createdAt <= now - KEY_LIVES_MS) return null;
  return row.idempotencyHash === idempotency?.hash
    ? { kind: 'there', task: toTask(row) }
    : { kind: 'conflict' };
}

function* addTask(added: NewTask, bounds: TaskBounds): db.Verb<TaskAdded> {
  const before = yield* givenBefore(added);
  if (before !== null) return before;
  const full = yield* exceeded(added, bounds);
  if (full !== null) return { kind: 'full', bound: full };
  const { now, parent, idempotency, ...given } = added;
  const from = { chatId: BOARD_CHAT, ...parent, roomId: parent?.room };
  const key = { idempotencyKey: idempotency?.key, idempotencyHash: idempotency?.hash };
  // Frees the key of an interrupted task, or of one older than `KEY_LIVES_MS`.
  if (idempotency !== null) yield* db.tell(FREE_KEY, idempotency.key);
  const names = parent === null ? NEW_TASK : `${NEW_TASK} ${PARENT}`;
  const row = bound({ ...given, status: 'pending', createdAt: now, ...from, ...key });
  const add = `${insertInto('task', names)} returning ${columns(OPEN_TASK)}`;
  for (const task of yield* db.all<OpenTask>(add, row)) {
    yield* addTaskEvent(task.n, { at: now, kind: 'status', status: 'pending' });
    if ((yield* db.one(WAS_FORGOTTEN, task.turnId)) !== undefined) yield* stopTask(task, now);
  }
  return { kind: 'added' };
}

// ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────────

const NEWEST = `select ${columns(LISTED)} from task where n > 0 order by n desc limit @most + 0`;
const OLDER = `
  select ${columns(LISTED)} from task where n < (select n from task where id = @before)
  order by n desc limit @most + 0`;
const EVENTS = `
  select body from task_event where task = (select n from task where id = ?)
  order by n desc limit ${MOST_EVENTS}`;
const RUNNING = `
  select id, lease_owner as owner, exists (
    select 1 from task_message where task = task.n and taken = 0 and mode = 'steer') as isSteered
  from task where status = 'running' and (lease_owner = @owner or lease_until <= @now)`;

// ── Running ─────────────────────────────────────────────────────────────────────────────────────────────────

const claimOldest = (oldest: string) => `
  update task set status = 'running', started_at = @now, lease_owner = @owner, lease_until = @until
  where n = (${oldest}) returning ${columns(TASK)}`;
const CLAIM_OF_PROGRAMS = claimOldest(`
  select n from task where status = 'pending' and room_id is null order by n limit 1`);
// These are few, even if thousands of programs' tasks are ahead of them.
const CLAIM_DELEGATED = claimOldest(`
  select min(n) from task where ${IS_DELEGATED} and status = 'pending'
    and channel_in(chat_id, @channels)`);
const ANY_PENDING = `select 1 from task where status = 'pending' limit 1`;
const IS_HELD = `status = 'running' and lease_owner = @owner`;
const RENEW = `update task set lease_until = @until where ${IS_HELD}`;
const HELD = `select ${columns(OPEN_TASK)} from task where id = @id and ${IS_HELD}`;
const OPEN = `select ${columns(OPEN_TASK)} from task where id = ? and status in ('pending', 'running')`;
const ADD_MESSAGE = `
  insert into task_message (task, n, mode, text, at)
  values (@task, (select coalesce(max(n), 0) + 1 from task_message where task = @task), @mode, @text, @now)`;
const MESSAGES = 'select n, mode, text from task_message where task = ? and taken = 0 order by n';
const TAKE_MESSAGES = 'update task_message set taken = 1 where task = @task and number_in(n, @ns)';

function* claimTask(ask: Parameters<TaskStore['claimTask']>[0]): db.Verb<Task | null> {
  const { owner, leaseMs, now, of } = ask;
  const lease = { owner, now, until: now + leaseMs };
  const row =
    of === 'programs'
      ? yield* db.one<TaskRow>(CLAIM_OF_PROGRAMS, lease)
      : yield* db.one<TaskRow>(CLAIM_DELEGATED, { ...lease, channels: JSON.stringify(of.channels) });
  if (row === undefined) return null;
  yield* addTaskEvent(row.n, { at: now, kind: 'status', status: 'running' });
  return toTask(row);
}

/** Undefined unless the task still runs for this owner. */
function* heldTask(claim: TaskClaim): db.Verb<OpenTask | undefined> {
  return yield* db.one<OpenTask>(HELD, claim);
}

function* noteTask(claim: TaskClaim, { entries = [], events = [], question }: TaskNote): db.Verb<boolean> {
  const task = yield* heldTask(claim);
  if (task === undefined) return false;
  yield* writeJournal(entries, claim.owner);
  for (const event of events) yield* addTaskEvent(task.n, event);
  if (question) yield* askPeople(question);
  return true;
}

function* tellTask(...[id, what, now]: Parameters<TaskStore['tellTask']>) {
  const task = yield* db.one<OpenTask>(OPEN, id);
  if (task === undefined) return (yield* findRow(id)) === undefined ? 'unknown' : 'ended';
  if (what === 'stop') yield* stopTask(task, now);
  else yield* db.tell(ADD_MESSAGE, { task: task.n, ...what, now });
  return 'done';
}

function* takeMessages(claim: TaskClaim, modes: readonly TaskMessageMode[]): db.Verb<string[] | 'lost'> {
  const task = yield* heldTask(claim);
  if (task === undefined) return 'lost';
  const waiting = yield* db.all<{ n: number; mode: TaskMessageMode; text: string }>(MESSAGES, task.n);
  const mode = modes.find((each) => waiting.some((message) => message.mode === each));
  const ofMode = waiting.filter((message) => message.mode === mode);
  const taken = mode === 'followup' ? ofMode.slice(0, 1) : ofMode;
  if (taken.length > 0) {
    yield* db.tell(TAKE_MESSAGES, { task: task.n, ns: JSON.stringify(taken.map(({ n }) => n)) });
  }
  return taken.map(({ text }) => text);
}

function* finishTask(end: TaskEnd, owner: string): db.Verb<'finished' | 'lost' | 'message'> {
  const { id, status, result, error, entries, tell, now } = end;
  const task = yield* heldTask({ id, owner });
  if (task === undefined) return 'lost';
  const hasMessage = 'select 1 from task_message where task = ? and taken = 0 limit 1';
  if (status === 'completed' && (yield* db.one(hasMessage, task.n)) !== undefined) return 'message';
  yield* writeJournal(entries, owner);
  yield* endTask(task, { status, result, error, now });
  // A forgotten conversation has already stopped its tasks.
  if (tell !== null) yield* receiveEvent(tell);
  return 'finished';
}

export function taskStore(database: db.Database): TaskStore {
  return {
    addTask: (task, bounds) => database.write([db.TASKS, task.parent?.chatId], () => addTask(task, bounds)),
    task: (which) =>
      database.look(function* () {
        const row = yield* findRow(which);
        return row === undefined ? null : toTask(row);
      }),
    tasks: (most, before) =>
      database.look(function* () {
        const rows =
          before === undefined
            ? yield* db.all<ListedRow>(NEWEST, { most })
            : yield* db.all<ListedRow>(OLDER, { most, before });
        return rows.map(toListed);
      }),
    tasksElsewhere: (chatId) =>
      database.look(() => db.column<string>('select id from task where chat_id <> ?', chatId)),
    taskEvents: (id) =>
      database.look(function* () {
        const bodies = (yield* db.column<string>(EVENTS, id)).reverse();
        return bodies.map((body): TaskEvent => JSON.parse(body));
      }),
    async claimTask(ask) {
      // Most looks find no task, and a transaction costs more than this question.
      const isAny = (await database.look(() => db.one(ANY_PENDING))) !== undefined;
      return isAny ? database.write(db.TASKS, () => claimTask(ask)) : null;
    },
    renewTasks: ({ owner, leaseMs, now }) =>
      database.write([], () => db.tell(RENEW, { owner, until: now + leaseMs })),
    runningTasks: (ask) =>
      database.look(function* () {
        const rows = yield* db.all<{ id: string; owner: string; isSteered: number }>(RUNNING, ask);
        return rows.map(({ isSteered, ...row }) => ({ ...row, isSteered: isSteered === 1 }));
      }),
    noteTask: (claim, what) => {
      const asked = what.question ? [db.WAITS, ...askedIn(what.question)] : [];
      return database.write([db.TASKS, ...asked], () => noteTask(claim, what));
    },
    tellTask: (...told) => database.write(db.TASKS, () => tellTask(...told)),
    takeTaskMessages: (claim, modes) => database.write(db.TASKS, () => takeMessages(claim, modes)),
    finishTask: (end, owner) => database.write([db.TASKS, end.tell?.room], () => finishTask(end, owner)),
  };
}
