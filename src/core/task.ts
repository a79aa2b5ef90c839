/**
 * Tasks: work that is given to an agent, by a program (docs/tasks.md) or by a persona that delegates it (docs/agents.md).
 * A task is stored before it begins, runs at most once, and ends in exactly one way; what comes of it is stored in the
 * transaction that ends it, together with whatever is told of it.
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

/** What happened to a task; the newest `MOST_EVENTS` are kept. The store itself adds every `status`. */
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
type TaskMessageMode = 'steer' | 'followup' | 'collect';

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
  /** Adds to its journal and its events. False, and nothing is stored, when it is not running for this owner any more. */
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

type TaskAnswer =
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

// Agents: who works on tasks. Each is a file that operators edit, `data/agents/<id>.yaml`, read for every task; it has an
// internal space of its own (seed 004) and transcripts of its sessions (seed 003).

/** One that is always there, also without a file. */
export const UTILITY = 'utility';

/** A safe name of a folder and of a file, and of no agent's file: these lie side by side. */
export function isAgentId(id: string): boolean {
  return /^(?!\.)[A-Za-z0-9._-]{1,64}$/.test(id) && !/\.ya?ml$/i.test(id);
}

export interface AgentDefinition {
  id: string;
  /** null: the configured model. */
  model: string | null;
  prompt: string;
  /** Groups of tools, as far as its chat has them too. */
  tools: readonly string[];
  timeoutMinutes: number | null;
  maxRounds: number | null;
}

const LONGEST_SESSION = 120;

/** The name of a session's file: whatever the session is called, it lies in its folder, and no two share one. */
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
 * One of an agent's internal spaces: of a chat, for its tasks there; null: the shared one, which all its tasks read, and
 * only tasks of owners and of programs write, before they have read words from outside.
 */
export interface AgentSpace {
  agent: string;
  chatId: ChatId | null;
}

/** What a prompt shows of a space. */
export interface SpaceNotes {
  longTerm: string;
  daily: string;
}

/** Writes throw Fault `memory_unavailable`. */
export interface Agents {
  /** Always as the file is now. `ok: false`: a sentence that names those that exist, or says what is wrong in the file. */
  find(id: string): Promise<{ ok: true; agent: AgentDefinition } | { ok: false; reason: string }>;
  list(): Promise<string[]>;
  /** `data/agents/<id>/internal_space` or `data/agents/<id>/chats/<chat_id>`, made where it is missing. */
  space(of: AgentSpace): Promise<string>;
  /** For a prompt: MEMORY.md and the latest days, cut to the budgets of seed 004 with its markers. Never rejects. */
  memory(of: AgentSpace, today: string): Promise<SpaceNotes & { origin: Origin }>;
  /** The whole of MEMORY.md, or one day of `memories/`; empty if there is none. */
  read(of: AgentSpace, what: 'MEMORY.md' | { date: string }): Promise<{ text: string; origin: Origin }>;
  /** One line more in `memories/<date>.md`, unless it has that very line already. */
  append(of: AgentSpace, date: string, line: string, signal: AbortSignal): Promise<void>;
  /** What of a space a prompt may show, by its name for `Origins`. Never rejects. */
  shownOf(of: AgentSpace): Promise<ReadonlyMap<string, string>>;
  /** Adds lines to `sessions/<session>.jsonl`. A failure is logged: it ends no task. */
  log(id: string, session: string, lines: readonly SessionLine[]): Promise<void>;
  /** Bad lines are skipped; empty if there is no such session. */
  session(id: string, session: string): Promise<SessionLine[]>;
}

// The one loop of model and tools, as whoever runs a task uses it. The conversation implements it: limits and budgets,
// the journal, questions to people and what they decide are the same as in a turn.

export interface WorkAsk {
  task: Task;
  agent: AgentDefinition;
  place: AgentPlace;
  /** System prompt first; the last one is what is asked. */
  messages: ModelMessage[];
  /** Words from outside stood before the model in what the task was given, or in an earlier request. */
  isTainted: boolean;
  /** Which request of the task it is, from 0: the ids of its calls depend on it. */
  round: number;
  /** Stores what it did, first. False: the task is over, and so is this. */
  note(what: { entries?: readonly JournalWrite[]; events?: readonly TaskEvent[] }): Promise<boolean>;
  /** It waits for a person, or goes on: such time does not count against its budget. */
  waits(isWaiting: boolean): void;
}

export interface WorkDone {
  /** All that was said and done: the messages that were given, calls, results, and the answer. */
  messages: ModelMessage[];
  /** Of this request alone. */
  steps: Step[];
  /** Words from outside stood before the model. */
  tainted: boolean;
  /** A call was refused that would have needed an owner's word on this very task. */
  wasExternalRefused: boolean;
}

export type WorkEnd =
  | ({ kind: 'answered'; text: string } & WorkDone)
  | ({ kind: 'failed'; fault: Fault } & WorkDone)
  /** The signal aborted, or the task is over: a call that was cut off has a result that says so. */
  | ({ kind: 'dropped' } & WorkDone);

export interface Work {
  do(ask: WorkAsk, signal: AbortSignal): Promise<WorkEnd>;
}

/** What a call is told that leaves the machine without an owner's word. */
export const NEEDS_INSTRUCTION = 'requires explicit owner instruction';

// A structured plan as Markdown: what is written to `task.md`, and what people and models read. Pure.

const DONE = 'completed';
const NOT_BEGUN = 'pending';

/**
 * A heading, and one line a step: `- [x] title` where it is completed. Any other status but `pending` stands behind the
 * title, and the id in a comment, so that the list can be read back.
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

/** Nothing in it may end the comment. */
function inComment(id: string): string {
  return oneLine(id).replace(/-(?=-)|[<>]/g, '_');
}
