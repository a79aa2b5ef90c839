/**
 * Tasks: work for an agent, given by a program (docs/tasks.md) or delegated by a persona (docs/agents.md). A task is
 * stored before it begins, runs at most once and ends exactly once; its result and the message about it are stored in
 * the transaction that ends it.
 */

import { createHash } from 'node:crypto';
import type { NewQuestion } from './access.js';
import type { ArtifactRef } from './artifacts.js';
import type { Fault } from './errors.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { JournalWrite } from './journal.js';
import type { ModelMessage } from './model.js';
import type { Origin } from './origin.js';
import type { ReceiptOf } from './receipt.js';
import type { AgentPlace } from './tool.js';
import type { Step } from './transcript.js';

/** interrupted: the process ended while it ran; no retry. error: `Task.error` says why. stopped: nobody is told. */
export type TaskStatus = 'pending' | 'running' | 'completed' | 'error' | 'stopped' | 'interrupted';

export const ENDED: readonly TaskStatus[] = ['completed', 'error', 'stopped', 'interrupted'];

/** A task as it was given. */
interface GivenTask {
  /** Letters, digits, `-` and `_`: safe as a folder name. */
  id: string;
  agent: string;
  goal: string;
  request: TaskRequest;
  /** The persona that delegated it; null: given by a program. */
  parent: TaskParent | null;
}

export interface Task extends GivenTask {
  status: TaskStatus;
  createdAt: number;
  startedAt: number | null;
  completedAt: number | null;
  result: TaskResult | null;
  error: string | null;
}

export interface TaskRequest {
  messages: TaskWords[];
  /** The plan of this task; null: the workspace's plan. */
  plan: Plan | null;
  artifacts: ArtifactRef[];
  memory: string[];
  /** The original `VIAP_V3_TASK`; null for a program's task. */
  viap: Record<string, unknown> | null;
  /** The journal event of the message that made a persona delegate it. Absent: none. */
  eventId?: string;
}

interface TaskWords {
  role: 'user' | 'assistant' | 'system';
  content: string;
}

/** Markdown, or steps (seed 003). */
export type Plan = string | StructuredPlan;

interface StructuredPlan {
  goal: string;
  steps: { id: string; title: string; status: string }[];
}

export interface TaskResult {
  text: string;
  summary: string;
  artifactRefs?: ArtifactRef[];
}

export interface DelegatingCall {
  turnId: string;
  /** The call of `sessions_spawn`. */
  callId: string;
}

export interface TaskParent extends DelegatingCall {
  chatId: ChatId;
  room: RoomId;
  personaId: PersonaId;
  /** The person whose words led to it; empty if nobody's, or not one person's. */
  senderId: ChatId;
  /** It was delegated while the model saw untrusted text. */
  tainted: boolean;
}

/** The newest `MOST_EVENTS` are kept. The store adds every `status` itself. */
export type TaskEvent = { at: number } & (
  | { kind: 'status'; status: TaskStatus }
  | { kind: 'tool-call'; callId: string; tool: string; arguments: string }
  | { kind: 'tool-result'; callId: string; tool: string; failed: boolean; content: string }
);

export const MOST_EVENTS = 500;

/** steer: interrupts the agent, comes first; followup: after its answer, one by one; collect: last, together. */
type TaskMessageMode = 'steer' | 'followup' | 'collect';

export interface TaskMessage {
  n: number;
  mode: TaskMessageMode;
  text: string;
}

export interface NewTask extends GivenTask {
  /** `hash`: of the whole body, to detect the same key with another body. */
  idempotency: { key: string; hash: string } | null;
  now: number;
}

/** Tasks of programs, or tasks delegated in chats of these channels. */
export type TaskOrigin = 'programs' | { channels: readonly string[] };

export interface TaskBounds {
  /** Pending tasks of programs. */
  waiting: number;
  /** Unfinished delegated tasks, per room and in total. */
  perRoom: number;
  delegated: number;
}

export type TaskAdded =
  | { kind: 'added' }
  /** Same key and body within a day: nothing was added. Not after `interrupted`. */
  | { kind: 'there'; task: Task }
  | { kind: 'conflict' }
  | { kind: 'full'; bound: keyof TaskBounds };

export interface TaskFinish {
  status: 'completed' | 'error' | 'interrupted';
  result: TaskResult | null;
  error: string | null;
  now: number;
}

/** The end of a task, and the message about it, in one transaction. */
export interface TaskEnd extends TaskFinish {
  id: string;
  /** Also ends its other pending journal entries: its own calls, and the call that delegated it. */
  entries: readonly JournalWrite[];
  /** An event in the parent's room; null: nobody is told. Dropped if the room's conversation was forgotten meanwhile. */
  tell: ReceiptOf<'event'> | null;
}

/** A claim expires with its lease, as for rooms. */
export interface TaskStore {
  /** Checks the bounds and adds in one transaction. */
  addTask(task: NewTask, bounds: TaskBounds): Promise<TaskAdded>;
  task(id: string): Promise<Task | null>;
  /** The newest task with this idempotency key, in any state. */
  taskOfKey(key: string): Promise<Task | null>;
  /** Newest first. `agent` absent: all agents. */
  tasks(ask: { most: number; agent?: string }): Promise<Omit<Task, 'request'>[]>;
  /** Ids of tasks given by other chats or by programs. */
  tasksElsewhere(chatId: ChatId): Promise<string[]>;
  /** Oldest first. */
  taskEvents(id: string): Promise<TaskEvent[]>;
  /** Claims the oldest pending task of this origin; null if there is none. */
  claimTask(lease: { owner: string; leaseMs: number; now: number; of: TaskOrigin }): Promise<Task | null>;
  renewTasks(lease: { owner: string; leaseMs: number; now: number }): Promise<void>;
  /** Adds journal entries and events. False, storing nothing, if this owner has lost the task. */
  noteTask(
    claim: { id: string; owner: string },
    what: { entries?: readonly JournalWrite[]; events?: readonly TaskEvent[] },
  ): Promise<boolean>;
  /** As `noteTask`, with a question to people about a call (`taskDecision`). */
  askForTask(
    claim: { id: string; owner: string },
    question: NewQuestion,
    entries: readonly JournalWrite[],
  ): Promise<boolean>;
  /** The decision about a task's question (`AskedCall.id`); null: none yet. */
  taskDecision(askedId: string): Promise<'approved' | 'denied' | 'expired' | 'ended' | null>;
  addTaskMessage(message: {
    id: string;
    mode: TaskMessageMode;
    text: string;
    now: number;
  }): Promise<'added' | 'ended' | 'unknown'>;
  /** The owner's running tasks; `isSteered`: a steering message is waiting. */
  runningTasks(owner: string): Promise<{ id: string; isSteered: boolean }[]>;
  /** Messages not taken yet, oldest first. */
  taskMessages(id: string): Promise<TaskMessage[]>;
  /** False if this owner has lost the task. */
  takeTaskMessages(claim: { id: string; owner: string }, ns: readonly number[]): Promise<boolean>;
  /** `lost`: this owner lost the task. `message`: a message still waits. Either way nothing is stored or told. */
  finishTask(end: TaskEnd, owner: string): Promise<'finished' | 'lost' | 'message'>;
  /** Nobody is told. Its runner notices through `watchTasks` or a failing write. */
  stopTask(id: string, now: number): Promise<'stopped' | 'ended' | 'unknown'>;
  /**
   * Running tasks of a dead process: an earlier one with this name, or one whose lease has expired. End them as
   * interrupted with `finishTask` under their owner. May include the caller's own running tasks.
   */
  leftTasks(ask: { owner: string; now: number }): Promise<{ task: Task; owner: string }[]>;
  /**
   * Calls `changed` soon after any process adds, messages, stops or decides about a task. Returns the unwatch function.
   */
  watchTasks(changed: () => void): () => void;
}

/** Tasks as programs see them (HTTP). */
export interface Tasks {
  submit(wish: TaskWish): Promise<TaskAnswer>;
  find(id: string): Promise<{ task: Task; events: TaskEvent[] } | null>;
  list(most: number): Promise<Omit<Task, 'request'>[]>;
  stop(id: string): Promise<'stopped' | 'ended' | 'unknown'>;
  tell(id: string, text: string, mode: TaskMessageMode): Promise<'added' | 'ended' | 'unknown'>;
  /**
   * The task's events from now on, until it ends or the signal aborts. A slow reader may miss deltas, but never the
   * end. Joined `text-delta`s are a prefix of the result's text, or all of it.
   */
  follow(id: string, signal: AbortSignal): AsyncIterable<TaskProgress>;
}

export type TaskProgress =
  | { kind: 'event'; event: TaskEvent }
  | { kind: 'text-delta'; text: string }
  /** Always last. */
  | { kind: 'end'; task: Task };

export interface TaskWish {
  goal: string;
  agent: string | null;
  request: Omit<TaskRequest, 'viap' | 'eventId'>;
  idempotencyKey: string | null;
}

type TaskAnswer =
  | { kind: 'accepted'; task: { id: string; status: TaskStatus }; isNew: boolean }
  | { kind: 'unknown agent'; reason: string }
  | { kind: 'conflict' }
  | { kind: 'full' };

export interface Delegation {
  /** `ok: false`: nothing was started; the reason is a sentence for the model. */
  spawn(
    wish: { agentId: string; task: unknown } & TaskParent & { eventId?: string },
  ): Promise<{ ok: true; taskId: string; said: string } | { ok: false; reason: string }>;
  /** The result of the call that delegated a task; null if it delegated none. */
  given(call: DelegatingCall): Promise<string | null>;
}

/** The chat of programs' tasks, for budgets, the journal and tool rules. */
export const BOARD_CHAT: ChatId = 'board_main';

/** `about` of the event that reports the end of a delegated task. */
export const TASK_COMPLETED = 'task_completed';

export function taskEventId(taskId: string): string {
  return `task:${taskId}`;
}

/** The first paragraph of the event's text: a plain summary that can be shown to people. */
export function headOfTaskEnd(text: string): string {
  return text.split('\n\n', 1)[0] ?? '';
}

/** The task whose end a message reports; null for other messages. */
export function taskOfEvent(platformMessageId: string | null): string | null {
  return /^event:task:(.+)$/.exec(platformMessageId ?? '')?.[1] ?? null;
}

// Agents work on tasks. Each is a file for operators, `data/agents/<id>.yaml`, read for every task, with an internal
// space (seed 004) and session transcripts (seed 003).

/** Built-in agent; needs no file. */
export const UTILITY = 'utility';

/** Safe as a folder and file name, and not the name of an agent's file, which lies beside the folders. */
export function isAgentId(id: string): boolean {
  return /^(?!\.)[A-Za-z0-9._-]{1,64}$/.test(id) && !/\.ya?ml$/i.test(id);
}

export interface AgentDefinition {
  id: string;
  /** null: the configured model. */
  model: string | null;
  prompt: string;
  /** Tool groups, limited to those of its chat. */
  tools: readonly string[];
  timeoutMinutes: number | null;
  maxRounds: number | null;
}

const LONGEST_SESSION = 120;

/** The file name of a session: safe, and unique per session. */
export function sessionFile(session: string): string {
  const safe = session.replaceAll(/[^A-Za-z0-9_-]/gu, '_').slice(0, LONGEST_SESSION);
  if (safe === session && safe !== '') return `${safe}.jsonl`;
  const hash = createHash('sha256').update(session).digest('hex').slice(0, 12);
  return `${safe}.${hash}.jsonl`;
}

export interface SessionLine {
  role: 'user' | 'assistant' | 'system';
  content: string;
  /** ms since 1970. */
  ts: number;
}

/**
 * An internal space of an agent: for its tasks in one chat, or (null) shared. All its tasks read the shared one; only
 * tasks of owners and programs write it, until they have seen untrusted text.
 */
export interface AgentSpace {
  agent: string;
  chatId: ChatId | null;
}

export interface SpaceNotes {
  longTerm: string;
  daily: string;
}

/** Writes throw Fault `memory_unavailable`. */
export interface Agents {
  /** Reads the current file. `ok: false`: a sentence that lists the existing agents, or names the error in the file. */
  find(id: string): Promise<{ ok: true; agent: AgentDefinition } | { ok: false; reason: string }>;
  list(): Promise<string[]>;
  /** `data/agents/<id>/internal_space` or `data/agents/<id>/chats/<chat_id>`; created if missing. */
  space(of: AgentSpace): Promise<string>;
  /** For a prompt: MEMORY.md and the latest days, cut to the budgets of seed 004, with markers. Never rejects. */
  memory(of: AgentSpace, today: string): Promise<SpaceNotes & { origin: Origin }>;
  /** All of MEMORY.md, or one day of `memories/`; empty if missing. */
  read(of: AgentSpace, what: 'MEMORY.md' | { date: string }): Promise<{ text: string; origin: Origin }>;
  /** Appends a line to `memories/<date>.md`, unless it is there already. */
  append(of: AgentSpace, date: string, line: string, signal: AbortSignal): Promise<void>;
  /** The parts of a space that a prompt may show, by their names for `Origins`. Never rejects. */
  shownOf(of: AgentSpace): Promise<ReadonlyMap<string, string>>;
  /** Appends to `sessions/<session>.jsonl`. Logs failures: they end no task. */
  log(id: string, session: string, lines: readonly SessionLine[]): Promise<void>;
  /** Skips malformed lines; empty if there is no such session. */
  session(id: string, session: string): Promise<SessionLine[]>;
}

// The loop of model and tools for tasks. The conversation implements it, with the same limits, budgets, journal and
// approvals as a turn.

export interface WorkAsk {
  task: Task;
  agent: AgentDefinition;
  place: AgentPlace;
  /** System prompt first, the request last. */
  messages: ModelMessage[];
  /** The task's input, or an earlier request of it, contained untrusted text. */
  isTainted: boolean;
  /** Number of this request within the task, from 0; call ids depend on it. */
  round: number;
  /** Stores progress before the loop continues. False: the task is over, so the loop ends. */
  note(what: { entries?: readonly JournalWrite[]; events?: readonly TaskEvent[] }): Promise<boolean>;
  /** Marks time spent waiting for a person, which does not count against the budget. */
  waits(isWaiting: boolean): void;
}

export interface WorkDone {
  /** The whole conversation: given messages, calls, results and the answer. */
  messages: ModelMessage[];
  /** Of this request only. */
  steps: Step[];
  /** The model saw untrusted text. */
  tainted: boolean;
  /** A call was refused because it needs an owner's approval of this task. */
  wasExternalRefused: boolean;
}

export type WorkEnd =
  | ({ kind: 'answered'; text: string } & WorkDone)
  | ({ kind: 'failed'; fault: Fault } & WorkDone)
  /** The signal aborted, or the task is over. An interrupted call has a result that says so. */
  | ({ kind: 'dropped' } & WorkDone);

export interface Work {
  do(ask: WorkAsk, signal: AbortSignal): Promise<WorkEnd>;
}

/** The result of an external call without an owner's instruction. */
export const NEEDS_INSTRUCTION = 'requires explicit owner instruction';

// A structured plan as Markdown, for `task.md`, people and models. Pure.

const DONE = 'completed';
const NOT_BEGUN = 'pending';

/**
 * A heading and one line per step, `- [x] title` if completed. Other statuses but `pending` follow the title; the id is
 * in a comment, so that the list can be parsed again.
 */
export function planText(plan: Plan): string {
  if (typeof plan === 'string') return plan;
  const steps = plan.steps.map(({ id, title, status }) => {
    const box = status === DONE ? '[x]' : '[ ]';
    const state = status === DONE || status === NOT_BEGUN ? '' : ` (${oneLine(status)})`;
    return `- ${box} ${oneLine(title)}${state} <!-- ${inComment(id)} -->`;
  });
  return `# ${oneLine(plan.goal)}\n\n${steps.map((step) => `${step}\n`).join('')}`;
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

/** Escapes text so that it cannot end the comment. */
function inComment(id: string): string {
  return oneLine(id).replace(/-(?=-)|[<>]/g, '_');
}
