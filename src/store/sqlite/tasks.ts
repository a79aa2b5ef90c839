/** Tasks: added within limits, claimed by one process, and ended in one transaction with the report. */
import type { Results } from '../../core/journal.js';
import {
  MOST_EVENTS,
  type NewTask,
  type Task,
  type TaskAdded,
  type TaskBounds,
  type TaskEnd,
  type TaskEvent,
  type TaskMessage,
  type TaskStore,
} from '../../core/task.js';
import type { Database, Statements } from './connection.js';
import { IS_DELEGATED, PROCESS_ENDED, writeJournal } from './journal.js';
import { askPeople } from './questions.js';
import { receiveEvent } from './receive.js';
import { bound, columns, insertInto } from './sql.js';
import {
  addTaskEvent,
  endTask,
  IS_HELD_TASK,
  LISTED,
  type ListedRow,
  NEW_TASK,
  OPEN_TASK,
  type OpenTask,
  rowOf,
  stopTask,
  TASK,
  type TaskRow,
  toListed,
  toTask,
} from './task-events.js';
import { beganBefore } from './views.js';

/** Lifetime of an idempotency key. */
export const KEY_LIVES_MS = 86_400_000;

// ── Adding ──────────────────────────────────────────────────────────────────────────────────────────────────

const KEYED = `
  select ${columns(`${TASK} idempotencyHash`)} from task
  where idempotency_key = @key and created_at > @since and status <> 'interrupted'`;
const FREE_KEY = 'update task set idempotency_key = null, idempotency_hash = null where idempotency_key = ?';
const WAITING = `select count(*) from task where status = 'pending' and room_id is null`;
const DELEGATED = `
  select coalesce(sum(room_id = @room), 0) as here, count(*) as everywhere from task where ${IS_DELEGATED}`;
const ADD = `${insertInto('task', NEW_TASK)} on conflict (id) do nothing returning n`;
/** The turn that delegated it was forgotten. */
const WAS_FORGOTTEN = `
  select 1 from turn join view on view.room_id = turn.room_id and view.persona_id = turn.persona_id
  where turn.id = ? and ${beganBefore('view.reset_at')}`;

/** The limit that it would exceed; null if none. */
function exceeded(db: Statements, { parent }: NewTask, bounds: TaskBounds): keyof TaskBounds | null {
  if (parent === null) return (db.value<number>(WAITING) ?? 0) >= bounds.waiting ? 'waiting' : null;
  const there = db.get<{ here: number; everywhere: number }>(DELEGATED, { room: parent.room });
  if ((there?.here ?? 0) >= bounds.perRoom) return 'perRoom';
  return (there?.everywhere ?? 0) >= bounds.delegated ? 'delegated' : null;
}

function givenBefore(db: Statements, { idempotency, now }: NewTask): TaskAdded | null {
  if (idempotency === null) return null;
  const { key, hash } = idempotency;
  const ask = { key, since: now - KEY_LIVES_MS };
  const row = db.get<TaskRow & { idempotencyHash: string }>(KEYED, ask);
  if (row === undefined) return null;
  return row.idempotencyHash === hash ? { kind: 'there', task: toTask(row) } : { kind: 'conflict' };
}

function addTask(db: Database, task: NewTask, bounds: TaskBounds): TaskAdded {
  const before = givenBefore(db, task);
  if (before !== null) return before;
  const full = exceeded(db, task, bounds);
  if (full !== null) return { kind: 'full', bound: full };
  // Frees the key of an interrupted task, or of one older than `KEY_LIVES_MS`.
  if (task.idempotency !== null) db.run(FREE_KEY, task.idempotency.key);
  const n = db.value<number>(ADD, bound(rowOf(task)));
  if (n === undefined) {
    const there = findTask(db, task.id);
    return there === null ? { kind: 'conflict' } : { kind: 'there', task: there };
  }
  addTaskEvent(db, n, { at: task.now, kind: 'status', status: 'pending' });
  const { parent } = task;
  if (parent !== null && db.get(WAS_FORGOTTEN, parent.turnId) !== undefined) {
    const { chatId, room: roomId, ...from } = parent;
    stopTask(db, { n, id: task.id, chatId, roomId, ...from }, task.now);
  }
  db.taskChanges.tell();
  return { kind: 'added' };
}

// ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────────

const NEWEST = `
  select ${columns(LISTED)} from task where n > 0 and agent = coalesce(@agent, agent)
  order by n desc limit @most + 0`;
const EVENTS = `
  select body from task_event where task = (select n from task where id = ?)
  order by n desc limit ${MOST_EVENTS}`;
const RUNNING = `
  select id, exists (
    select 1 from task_message where task = task.n and taken = 0 and mode = 'steer') as isSteered
  from task where ${IS_HELD_TASK} order by n`;
const MESSAGES = `
  select ${columns('n mode text')} from task_message
  where task = (select n from task where id = ?) and taken = 0 order by n`;
const LEFT = `
  select ${columns(TASK)}, lease_owner as owner from task
  where status = 'running' and (lease_owner = @owner or lease_until <= @now)`;

function findTask(db: Statements, id: string, by = 'id'): Task | null {
  const row = db.get<TaskRow>(`select ${columns(TASK)} from task where ${by} = ?`, id);
  return row === undefined ? null : toTask(row);
}

function leftTasks(db: Statements, ask: { owner: string; now: number }) {
  const rows = db.all<TaskRow & { owner: string }>(LEFT, ask);
  return rows.map(({ owner, ...row }) => ({ task: toTask(row), owner }));
}

type Decision = 'approved' | 'denied' | 'expired' | 'ended';

/** A question that is no longer stored cannot be decided. */
function taskDecision(db: Statements, askedId: string): Decision | null {
  const decided = db.value<Decision | null>('select decision from asked_call where id = ?', askedId);
  return decided === undefined ? 'ended' : decided;
}

// ── Running ─────────────────────────────────────────────────────────────────────────────────────────────────

const claimOldest = (oldest: string) => `
  update task set status = 'running', started_at = @now, lease_owner = @owner, lease_until = @until
  where n = (${oldest}) returning ${columns(`n ${TASK}`)}`;
const CLAIM_OF_PROGRAMS = claimOldest(`
  select n from task where status = 'pending' and room_id is null order by n limit 1`);
// These are few, even if thousands of programs' tasks are ahead of them.
const CLAIM_DELEGATED = claimOldest(`
  select min(n) from task indexed by task_delegated where ${IS_DELEGATED} and status = 'pending'
    and substr(chat_id, 1, instr(chat_id, '_') - 1) in (select value from json_each(@channels))`);
const RENEW = `update task set lease_until = @until where ${IS_HELD_TASK}`;
const HELD = `select ${columns(OPEN_TASK)} from task where id = @id and ${IS_HELD_TASK}`;
const OPEN = `select ${columns(OPEN_TASK)} from task where id = ? and status in ('pending', 'running')`;
const ADD_MESSAGE = `
  insert into task_message (task, n, mode, text, at)
  values (@task, (select coalesce(max(n), 0) + 1 from task_message where task = @task), @mode, @text, @now)`;
const TAKE_MESSAGES = `
  update task_message set taken = 1 where task = @task and n in (select value from json_each(@ns))`;

function claimTask(db: Database, ask: Parameters<TaskStore['claimTask']>[0]): Task | null {
  const { owner, leaseMs, now, of } = ask;
  const lease = { owner, now, until: now + leaseMs };
  const row =
    of === 'programs'
      ? db.get<TaskRow & { n: number }>(CLAIM_OF_PROGRAMS, lease)
      : db.get<TaskRow & { n: number }>(CLAIM_DELEGATED, { ...lease, channels: JSON.stringify(of.channels) });
  if (row === undefined) return null;
  const { n, ...task } = row;
  addTaskEvent(db, n, { at: now, kind: 'status', status: 'running' });
  return toTask(task);
}

/** Runs `work` if the task still runs for this owner; else returns false. */
function whileHeld(
  db: Database,
  claim: { id: string; owner: string },
  work: (task: OpenTask) => void,
): Promise<boolean> {
  return db.write(() => {
    const task = db.get<OpenTask>(HELD, claim);
    if (task !== undefined) work(task);
    return task !== undefined;
  });
}

/** Runs `work` if the task is unfinished. */
function whileOpen<Done extends string>(
  db: Database,
  id: string,
  done: Done,
  work: (task: OpenTask) => void,
): Promise<Done | 'ended' | 'unknown'> {
  return db.write(() => {
    const task = db.get<OpenTask>(OPEN, id);
    if (task !== undefined) work(task);
    const isThere = task !== undefined || db.get('select 1 from task where id = ?', id) !== undefined;
    if (!isThere) return 'unknown';
    return task === undefined ? 'ended' : done;
  });
}

function finishTask(db: Database, end: TaskEnd, owner: string): 'finished' | 'lost' | 'message' {
  const { id, status, result, error, entries, tell, now } = end;
  const task = db.get<OpenTask>(HELD, { id, owner });
  if (task === undefined) return 'lost';
  const hasMessage = 'select 1 from task_message where task = ? and taken = 0 limit 1';
  if (status === 'completed' && db.get(hasMessage, task.n) !== undefined) return 'message';
  writeJournal(db, entries, owner);
  endTask(db, task, { status, result, error, now }, callOutcome(end));
  // A forgotten conversation has already stopped its tasks.
  if (tell !== null) receiveEvent(db, tell);
  return 'finished';
}

/** The outcome of the call that delegated a task. */
function callOutcome({ status, result, error }: TaskEnd): {
  status: 'completed' | 'interrupted';
  results: Results;
} {
  if (status === 'interrupted') return { status, results: { error: error ?? PROCESS_ENDED } };
  const results = status === 'error' ? { error: error ?? '' } : { output: result?.summary ?? '' };
  return { status: 'completed', results };
}

export function taskStore(db: Database): TaskStore {
  return {
    addTask: (task, bounds) => db.write(() => addTask(db, task, bounds)),
    task: (id) => db.withBusyRetry(() => findTask(db, id)),
    taskOfKey: (key) => db.withBusyRetry(() => findTask(db, key, 'idempotency_key')),
    tasks: ({ most, agent = null }) =>
      db.withBusyRetry(() => db.all<ListedRow>(NEWEST, { most, agent }).map(toListed)),
    tasksElsewhere: (chatId) =>
      db.read(() => db.column<string>('select id from task where chat_id <> ?', chatId)),
    taskEvents: (id) =>
      db.withBusyRetry(() => {
        const bodies = db.column<string>(EVENTS, id).reverse();
        return bodies.map((body): TaskEvent => JSON.parse(body));
      }),
    claimTask: (ask) => db.write(() => claimTask(db, ask)),
    async renewTasks({ owner, leaseMs, now }) {
      await db.writeOne(RENEW, { owner, until: now + leaseMs });
    },
    noteTask: (claim, { entries = [], events = [] }) =>
      whileHeld(db, claim, ({ n }) => {
        writeJournal(db, entries, claim.owner);
        for (const event of events) addTaskEvent(db, n, event);
      }),
    askForTask: (claim, question, entries) =>
      whileHeld(db, claim, () => {
        writeJournal(db, entries, claim.owner);
        askPeople(db, question);
      }),
    taskDecision: (askedId) => db.withBusyRetry(() => taskDecision(db, askedId)),
    addTaskMessage: ({ id, mode, text, now }) =>
      whileOpen(db, id, 'added', ({ n }) => {
        db.run(ADD_MESSAGE, { task: n, mode, text, now });
        db.taskChanges.tell();
      }),
    runningTasks: (owner) =>
      db.withBusyRetry(() => {
        const rows = db.all<{ id: string; isSteered: number }>(RUNNING, { owner });
        return rows.map(({ id, isSteered }) => ({ id, isSteered: isSteered === 1 }));
      }),
    taskMessages: (id) => db.withBusyRetry(() => db.all<TaskMessage>(MESSAGES, id)),
    takeTaskMessages: (claim, ns) =>
      whileHeld(db, claim, ({ n }) => void db.run(TAKE_MESSAGES, { task: n, ns: JSON.stringify(ns) })),
    finishTask: (end, owner) => db.write(() => finishTask(db, end, owner)),
    stopTask: (id, now) => whileOpen(db, id, 'stopped', (task) => stopTask(db, task, now)),
    leftTasks: (ask) => db.read(() => leftTasks(db, ask)),
    watchTasks(changed) {
      const ends = [db.taskChanges.watch(changed), db.watch(changed)];
      return () => {
        for (const end of ends) end();
      };
    },
  };
}
