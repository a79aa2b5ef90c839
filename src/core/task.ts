/**
 * Tasks: work that is given to an agent, by a program (docs/tasks.md) or by a persona that delegates it (docs/agents.md).
 * A task is stored before it begins, runs at most once, and ends in exactly one way; what comes of it is stored in the
 * transaction that ends it, together with whatever is told of it.
 */
import type { NewQuestion } from './approval.js';
import type { ArtifactRef } from './artifacts.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { JournalWrite } from './journal.js';
import type { ReceiptOf } from './receipt.js';

/**
 * interrupted: the process ended while it ran; it is not run again. A task that ended with `error` has a sentence that
 * says why; of one that was stopped nothing is told.
 */
export type TaskStatus = 'pending' | 'running' | 'completed' | 'error' | 'stopped' | 'interrupted';

export const ENDED: readonly TaskStatus[] = ['completed', 'error', 'stopped', 'interrupted'];

export interface Task {
  /** Letters, digits, `-` and `_`: a safe folder name. */
  id: string;
  agent: string;
  goal: string;
  status: TaskStatus;
  createdAt: number;
  startedAt: number | null;
  completedAt: number | null;
  request: TaskRequest;
  result: TaskResult | null;
  error: string | null;
  /** The persona that delegated it; null: a program gave it. */
  parent: TaskParent | null;
}

export interface TaskRequest {
  messages: TaskWords[];
  /** For this task alone; null: the workspace's. */
  plan: Plan | null;
  artifacts: ArtifactRef[];
  memory: string[];
  /** The `VIAP_V3_TASK` as it was given; null: a program's task. */
  viap: Record<string, unknown> | null;
  /** Of the message that led a persona to give it: the event in the journal. Left out: of none. */
  eventId?: string;
}

export interface TaskWords {
  role: 'user' | 'assistant' | 'system';
  content: string;
}

/** Markdown, or steps (seed 003). */
export type Plan = string | StructuredPlan;

export interface StructuredPlan {
  goal: string;
  steps: { id: string; title: string; status: string }[];
}

export interface TaskResult {
  text: string;
  summary: string;
  artifactRefs?: ArtifactRef[];
}

/** Where a delegated task comes from, and where its outcome is told. */
export interface TaskParent {
  chatId: ChatId;
  room: RoomId;
  personaId: PersonaId;
  turnId: string;
  /** The call of `sessions_spawn`. */
  callId: string;
  /** Whose words led to it; empty: nobody's, or not one person's. */
  senderId: ChatId;
  /** It was given while words from outside stood before the model. */
  tainted: boolean;
}

/** What is kept of a task's course, the newest `MOST_EVENTS`. The store itself adds every `status`. */
export type TaskEvent = { at: number } & (
  | { kind: 'status'; status: TaskStatus }
  | { kind: 'tool-call'; callId: string; tool: string; arguments: string }
  | { kind: 'tool-result'; callId: string; tool: string; failed: boolean; content: string }
);

export const MOST_EVENTS = 500;

/**
 * steer: ends what the agent is doing and comes first; followup: after its answer, each by itself; collect: after all
 * of these, together.
 */
export type TaskMessageMode = 'steer' | 'followup' | 'collect';

export interface TaskMessage {
  n: number;
  mode: TaskMessageMode;
  text: string;
}

export type NewTask = Pick<Task, 'id' | 'agent' | 'goal' | 'request' | 'parent'> & {
  /** `hash`: of the whole body, so that the same key with another body is noticed. */
  idempotency: { key: string; hash: string } | null;
  now: number;
};

/** Tasks that programs gave, or that personas delegated in chats of these channels. */
export type TaskOrigin = 'programs' | { channels: readonly string[] };

export interface TaskBounds {
  /** Programs' tasks that are pending. */
  waiting: number;
  /** Delegated tasks that are not over: of one room, and in all. */
  perRoom: number;
  delegated: number;
}

export type TaskAdded =
  | { kind: 'added' }
  /** The same key and body, within a day: nothing was added. Not after `interrupted`. */
  | { kind: 'there'; task: Task }
  /** The same key with another body. */
  | { kind: 'conflict' }
  | { kind: 'full'; bound: keyof TaskBounds };

/** How a task ends, and what is told of it in the same transaction. */
export interface TaskEnd {
  id: string;
  status: 'completed' | 'error' | 'interrupted';
  result: TaskResult | null;
  error: string | null;
  /** Whatever else the journal has pending of it is ended with it: its own calls, and the call that gave it. */
  entries: readonly JournalWrite[];
  /** An event of the parent's room; null: nobody is told. Not stored where the room's conversation was forgotten since. */
  tell: ReceiptOf<'event'> | null;
  now: number;
}

/** A claim expires with its lease, like that of a room. */
export interface TaskStore {
  /** Counts and adds in one transaction. */
  addTask(task: NewTask, bounds: TaskBounds): Promise<TaskAdded>;
  task(id: string): Promise<Task | null>;
  /** The newest that was added with this idempotency key, whatever became of it. */
  taskOfKey(key: string): Promise<Task | null>;
  /** Newest first. Left out: of all. */
  tasks(ask: { most: number; agent?: string }): Promise<Omit<Task, 'request'>[]>;
  /** The ids of those that another chat has given, or a program. */
  tasksElsewhere(chatId: ChatId): Promise<string[]>;
  /** In their order. */
  taskEvents(id: string): Promise<TaskEvent[]>;
  /** The oldest pending task of this origin becomes a running one of this process; null: there is none. */
  claimTask(lease: { owner: string; leaseMs: number; now: number; of: TaskOrigin }): Promise<Task | null>;
  renewTasks(lease: { owner: string; leaseMs: number; now: number }): Promise<void>;
  /** Adds to its journal and its course. False, and nothing is stored, when it is not running for this owner any more. */
  noteTask(
    claim: { id: string; owner: string },
    what: { entries?: readonly JournalWrite[]; events?: readonly TaskEvent[] },
  ): Promise<boolean>;
  /** As `noteTask`, with a question to people about what it wants to do (`taskDecision`). */
  askForTask(
    claim: { id: string; owner: string },
    question: NewQuestion,
    entries: readonly JournalWrite[],
  ): Promise<boolean>;
  /** What was decided about a question of a task: an id of `AskedCall`. null: nothing yet. */
  taskDecision(askedId: string): Promise<'approved' | 'denied' | 'expired' | 'ended' | null>;
  addTaskMessage(message: {
    id: string;
    mode: TaskMessageMode;
    text: string;
    now: number;
  }): Promise<'added' | 'ended' | 'unknown'>;
  /** Those that still run for this owner; `isSteered`: a message that steers was not taken yet. */
  runningTasks(owner: string): Promise<{ id: string; isSteered: boolean }[]>;
  /** The messages that were not taken yet, in their order. */
  taskMessages(id: string): Promise<TaskMessage[]>;
  /** False when it is not running for this owner any more. */
  takeTaskMessages(claim: { id: string; owner: string }, ns: readonly number[]): Promise<boolean>;
  /** `lost`: it is not running for this owner any more. `message`: it would be completed, but has a message waiting. Nothing is stored or told then. */
  finishTask(end: TaskEnd, owner: string): Promise<'finished' | 'lost' | 'message'>;
  /** Nothing is told of it. Whoever runs it notices by `watchTasks`, or because it may not note anything any more. */
  stopTask(id: string, now: number): Promise<'stopped' | 'ended' | 'unknown'>;
  /**
   * Tasks that a dead process was running, an earlier one of this name or one whose lease has expired; to be ended as
   * interrupted, with `finishTask` for the owner they have. Whoever asks leaves out what it runs itself.
   */
  leftTasks(ask: { owner: string; now: number }): Promise<{ task: Task; owner: string }[]>;
  /** Calls `changed` soon after a task was added, told something, stopped or decided about, by this process or another. */
  watchTasks(changed: () => void): () => void;
}

/** Tasks as programs see them. */
export interface Tasks {
  submit(wish: TaskWish): Promise<TaskAnswer>;
  find(id: string): Promise<{ task: Task; events: TaskEvent[] } | null>;
  list(most: number): Promise<Omit<Task, 'request'>[]>;
  stop(id: string): Promise<'stopped' | 'ended' | 'unknown'>;
  tell(id: string, text: string, mode: TaskMessageMode): Promise<'added' | 'ended' | 'unknown'>;
  /**
   * What happens to a task from now on, until it is over or the signal aborts. A follower that does not read misses
   * deltas, never the end. `text-delta`s joined are the beginning of the result's text, or all of it.
   */
  follow(id: string, signal: AbortSignal): AsyncIterable<TaskProgress>;
}

export type TaskProgress =
  | { kind: 'event'; event: TaskEvent }
  | { kind: 'text-delta'; text: string }
  /** Comes last; `task` as it ended. */
  | { kind: 'end'; task: Task };

export interface TaskWish {
  goal: string;
  agent: string | null;
  request: Omit<TaskRequest, 'viap' | 'eventId'>;
  idempotencyKey: string | null;
}

export type TaskAnswer =
  | { kind: 'accepted'; task: Pick<Task, 'id' | 'status'>; isNew: boolean }
  | { kind: 'unknown agent'; reason: string }
  | { kind: 'conflict' }
  | { kind: 'full' };

/** Delegation as the tool `sessions_spawn` uses it. */
export interface Delegation {
  /** `ok: false`: a sentence for the model; nothing was begun. */
  spawn(
    wish: { agentId: string; task: unknown } & TaskParent & Pick<TaskRequest, 'eventId'>,
  ): Promise<{ ok: true; taskId: string; said: string } | { ok: false; reason: string }>;
  /** What was said of the task that this call has given; null: it has given none. */
  given(call: Pick<TaskParent, 'turnId' | 'callId'>): Promise<string | null>;
}

/** The chat that programs' tasks belong to, in budgets, in the journal and in the rules for tools. */
export const BOARD_CHAT: ChatId = 'board_main';

/** The author's `about` of the event that tells of a delegated task's end. */
export const TASK_COMPLETED = 'task_completed';

export function taskEventId(taskId: string): string {
  return `task:${taskId}`;
}

/**
 * What can be told to people as it stands of a task's end: the first paragraph of the event's text, which says in plain
 * words what became of the task.
 */
export function headOfTaskEnd(text: string): string {
  return text.split('\n\n', 1)[0] ?? '';
}

/** The task whose end a message of the transcript tells of; null: of none. */
export function taskOfEvent(platformMessageId: string | null): string | null {
  return /^event:task:(.+)$/.exec(platformMessageId ?? '')?.[1] ?? null;
}
