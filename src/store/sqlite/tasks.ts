/** Tasks: added within their bounds, claimed by one process, and ended together with what is told of it. */
import type { Results } from '../../core/journal.js';
import {
  MOST_EVENTS,
  type NewTask,
  type TaskAdded,
  type TaskBounds,
  type TaskEnd,
  type TaskEvent,
  type TaskMessage,
  type TaskStore,
} from '../../core/task.js';
import type { Connection } from './connection.js';
import { IS_DELEGATED, type Journal } from './journal.js';
import type { AskedCalls } from './questions.js';
import type { Waiting } from './receive.js';
import { bound, columns, insertInto } from './sql.js';
import {
  IS_HELD_TASK,
  LISTED,
  type ListedRow,
  NEW_TASK,
  OPEN_TASK,
  type OpenTask,
  rowOf,
  TASK,
  type TaskCourse,
  type TaskRow,
  type TaskSignal,
  toListed,
  toTask,
} from './task-events.js';
import { beganBefore } from './views.js';

/** So long the same key is the same task. */
export const KEY_LIVES_MS = 86_400_000;

const UNKNOWN_OUTCOME = 'The gateway ended while this ran: its outcome is unknown. It is not done again.';

type Decision = 'approved' | 'denied' | 'expired' | 'ended';
type KeyedRow = TaskRow & { idempotencyHash: string };

export function taskStore(
  connection: Connection,
  course: TaskCourse,
  signal: TaskSignal,
  { journal, asked, waiting }: { journal: Journal; asked: AskedCalls; waiting: Waiting },
): TaskStore {
  const { raw, read, write, withBusyRetry: patiently } = connection;
  const keyed = raw.prepare<[object], KeyedRow>(`
    select ${columns(`${TASK} idempotencyHash`)} from task
    where idempotency_key = @key and created_at > @since and status <> 'interrupted'`);
  const freeKey = raw.prepare<[string]>(
    'update task set idempotency_key = null, idempotency_hash = null where idempotency_key = ?',
  );
  const waitingNow = raw
    .prepare<[], number>(`select count(*) from task where status = 'pending' and room_id is null`)
    .pluck();
  const delegated = raw.prepare<[object], { here: number; everywhere: number }>(`
    select coalesce(sum(room_id = @room), 0) as here, count(*) as everywhere from task where ${IS_DELEGATED}`);
  const add = raw
    .prepare<[object], number>(`${insertInto('task', NEW_TASK)} on conflict (id) do nothing returning n`)
    .pluck();
  /** The turn that gave it is forgotten. */
  const wasForgotten = raw
    .prepare<[object], number>(`
      select 1 from turn join view on view.room_id = turn.room_id and view.persona_id = turn.persona_id
      where turn.id = @turnId and ${beganBefore('view.reset_at')}`)
    .pluck();
  const open = raw.prepare<[string], OpenTask>(`
    select ${columns(OPEN_TASK)} from task where id = ? and status in ('pending', 'running')`);

  const one = raw.prepare<[string], TaskRow>(`select ${columns(TASK)} from task where id = ?`);
  const oneOfKey = raw.prepare<[string], TaskRow>(
    `select ${columns(TASK)} from task where idempotency_key = ?`,
  );
  const isThere = raw.prepare<[string], number>('select 1 from task where id = ?').pluck();
  const newest = raw.prepare<[object], ListedRow>(`
    select ${columns(LISTED)} from task where n > 0 and agent = coalesce(@agent, agent)
    order by n desc limit @most + 0`);
  const elsewhere = raw.prepare<[string], string>('select id from task where chat_id <> ?').pluck();
  const eventsOf = raw
    .prepare<[string], string>(`
      select body from task_event where task = (select n from task where id = ?)
      order by n desc limit ${MOST_EVENTS}`)
    .pluck();

  const claim = (oldest: string) =>
    raw.prepare<[object], TaskRow & { n: number }>(`
      update task set status = 'running', started_at = @now, lease_owner = @owner, lease_until = @until
      where n = (${oldest}) returning ${columns(`n ${TASK}`)}`);
  const claimOfPrograms = claim(`
    select n from task where status = 'pending' and room_id is null order by n limit 1`);
  // There are few of them, though thousands of programs' tasks may stand before.
  const claimDelegated = claim(`
    select min(n) from task indexed by task_delegated where ${IS_DELEGATED} and status = 'pending'
      and substr(chat_id, 1, instr(chat_id, '_') - 1) in (select value from json_each(@channels))`);
  const renew = raw.prepare<[object]>(`update task set lease_until = @until where ${IS_HELD_TASK}`);
  const held = raw.prepare<[object], OpenTask>(`
    select ${columns(OPEN_TASK)} from task where id = @id and ${IS_HELD_TASK}`);
  const left = raw.prepare<[object], TaskRow & { owner: string }>(`
    select ${columns(TASK)}, lease_owner as owner from task
    where status = 'running' and (lease_owner = @owner or lease_until <= @now)`);

  const decision = raw
    .prepare<[string], Decision | null>('select decision from asked_call where id = ?')
    .pluck();
  const addMessage = raw.prepare<[object]>(`
    insert into task_message (task, n, mode, text, at)
    values (@task, (select coalesce(max(n), 0) + 1 from task_message where task = @task), @mode, @text, @now)`);
  const running = raw.prepare<[object], { id: string; isSteered: number }>(`
    select id, exists (
      select 1 from task_message where task = task.n and taken = 0 and mode = 'steer') as isSteered
    from task where ${IS_HELD_TASK} order by n`);
  const untaken = raw.prepare<[string], TaskMessage>(`
    select ${columns('n mode text')} from task_message
    where task = (select n from task where id = ?) and taken = 0 order by n`);
  const hasMessage = raw
    .prepare<[number], number>('select 1 from task_message where task = ? and taken = 0 limit 1')
    .pluck();
  const take = raw.prepare<[object]>(`
    update task_message set taken = 1 where task = @task and n in (select value from json_each(@ns))`);

  /** The bound that it would exceed; null: none. */
  function exceeded({ parent }: NewTask, bounds: TaskBounds): keyof TaskBounds | null {
    if (parent === null) return (waitingNow.get() ?? 0) >= bounds.waiting ? 'waiting' : null;
    const { here = 0, everywhere = 0 } = delegated.get({ room: parent.room }) ?? {};
    if (here >= bounds.perRoom) return 'perRoom';
    return everywhere >= bounds.delegated ? 'delegated' : null;
  }

  function givenBefore({ idempotency, now }: NewTask): TaskAdded | null {
    if (idempotency === null) return null;
    const { key, hash } = idempotency;
    const row = keyed.get({ key, since: now - KEY_LIVES_MS });
    if (row === undefined) return null;
    return row.idempotencyHash === hash ? { kind: 'there', task: toTask(row) } : { kind: 'conflict' };
  }

  function addOne(task: NewTask, bounds: TaskBounds): TaskAdded {
    const before = givenBefore(task);
    if (before !== null) return before;
    const full = exceeded(task, bounds);
    if (full !== null) return { kind: 'full', bound: full };
    // The key of a task that was interrupted, or is older than a key lives.
    if (task.idempotency !== null) freeKey.run(task.idempotency.key);
    const n = add.get(bound(rowOf(task)));
    if (n === undefined) {
      const row = one.get(task.id);
      return row === undefined ? { kind: 'conflict' } : { kind: 'there', task: toTask(row) };
    }
    course.note(n, { at: task.now, kind: 'status', status: 'pending' });
    const { parent } = task;
    if (parent !== null && wasForgotten.get({ turnId: parent.turnId }) !== undefined) {
      const { chatId, room: roomId, ...from } = parent;
      course.stop({ n, id: task.id, chatId, roomId, ...from }, task.now);
    }
    signal.changed();
    return { kind: 'added' };
  }

  function finish({ id, status, result, error, entries, tell, now }: TaskEnd, owner: string) {
    const task = held.get({ id, owner });
    if (task === undefined) return 'lost';
    if (status === 'completed' && hasMessage.get(task.n) !== undefined) return 'message';
    journal.write(entries, owner);
    course.over(task, { status, result, error, now }, outcomeOf({ status, result, error }));
    // A conversation that was forgotten has stopped it.
    if (tell !== null) waiting.event(tell);
    return 'finished';
  }

  return {
    addTask: (task, bounds) => write(() => addOne(task, bounds)),

    task: (id) =>
      patiently(() => {
        const row = one.get(id);
        return row === undefined ? null : toTask(row);
      }),

    taskOfKey: (key) =>
      patiently(() => {
        const row = oneOfKey.get(key);
        return row === undefined ? null : toTask(row);
      }),
    tasks: ({ most, agent }) => patiently(() => newest.all({ most, agent: agent ?? null }).map(toListed)),
    tasksElsewhere: (chatId) => read(() => elsewhere.all(chatId)),
    taskEvents: (id) =>
      patiently(() =>
        eventsOf
          .all(id)
          .reverse()
          .map((body): TaskEvent => JSON.parse(body)),
      ),

    claimTask: ({ owner, leaseMs, now, of }) =>
      write(() => {
        const lease = { owner, now, until: now + leaseMs };
        const row =
          of === 'programs'
            ? claimOfPrograms.get(lease)
            : claimDelegated.get({ ...lease, channels: JSON.stringify(of.channels) });
        if (row === undefined) return null;
        const { n, ...task } = row;
        course.note(n, { at: now, kind: 'status', status: 'running' });
        return toTask(task);
      }),
    renewTasks: ({ owner, leaseMs, now }) =>
      write(() => void renew.run({ owner, until: now + leaseMs }), 'single'),

    noteTask: ({ id, owner }, { entries = [], events = [] }) =>
      write(() => {
        const task = held.get({ id, owner });
        if (task === undefined) return false;
        journal.write(entries, owner);
        for (const event of events) course.note(task.n, event);
        return true;
      }),

    askForTask: ({ id, owner }, question, entries) =>
      write(() => {
        if (held.get({ id, owner }) === undefined) return false;
        journal.write(entries, owner);
        asked.ask(question);
        return true;
      }),
    // One that is not kept any more cannot be decided.
    taskDecision: (askedId) =>
      patiently(() => {
        const decided = decision.get(askedId);
        return decided === undefined ? 'ended' : decided;
      }),

    addTaskMessage: ({ id, mode, text, now }) =>
      write(() => {
        const task = open.get(id);
        if (task === undefined) return isThere.get(id) === undefined ? 'unknown' : 'ended';
        addMessage.run({ task: task.n, mode, text, now });
        signal.changed();
        return 'added';
      }),
    runningTasks: (owner) =>
      patiently(() =>
        running.all({ owner }).map(({ id, isSteered }) => ({ id, isSteered: isSteered === 1 })),
      ),
    taskMessages: (id) => patiently(() => untaken.all(id)),
    takeTaskMessages: ({ id, owner }, ns) =>
      write(() => {
        const task = held.get({ id, owner });
        if (task === undefined) return false;
        take.run({ task: task.n, ns: JSON.stringify(ns) });
        return true;
      }),

    finishTask: (end, owner) => write(() => finish(end, owner)),
    stopTask: (id, now) =>
      write(() => {
        const task = open.get(id);
        if (task === undefined) return isThere.get(id) === undefined ? 'unknown' : 'ended';
        course.stop(task, now);
        return 'stopped';
      }),
    leftTasks: (ask) => read(() => left.all(ask).map(({ owner, ...row }) => ({ task: toTask(row), owner }))),

    watchTasks(changed) {
      const ends = [signal.watch(changed), connection.watch(changed)];
      return () => {
        for (const end of ends) end();
      };
    },
  };
}

/** What becomes of the call that gave a task, where whoever ends it does not say so. */
function outcomeOf({ status, result, error }: Pick<TaskEnd, 'status' | 'result' | 'error'>): {
  status: 'completed' | 'interrupted';
  results: Results;
} {
  if (status === 'interrupted') return { status, results: { error: error ?? UNKNOWN_OUTCOME } };
  const results = status === 'error' ? { error: error ?? '' } : { output: result?.summary ?? '' };
  return { status: 'completed', results };
}
