/** Tasks (docs/tasks.md, docs/agents.md): stored before they begin, they run at most once and end exactly once. */
import { createHash } from 'node:crypto';
import type { NewQuestion } from './access.js';
import type { ArtifactRef } from './artifacts.js';
import type { AgentPlace } from './authorisation.js';
import { inOneLine } from './cut.js';
import type { Fault } from './errors.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { JournalWrite } from './journal.js';
import type { ModelMessage } from './model.js';
import type { Origin } from './origin.js';
import type { ReceiptOf } from './receipt.js';
import type { Step } from './transcript.js';

/** interrupted: the process ended while it ran; no retry. error: `Task.error` says why. stopped: nobody is told. */
export type TaskStatus = 'pending' | 'running' | 'completed' | 'error' | 'stopped' | 'interrupted';

export const ENDED: readonly TaskStatus[] = ['completed', 'error', 'stopped', 'interrupted'];

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
  eventId?: string | undefined;
}

interface TaskWords {
  role: 'user' | 'assistant' | 'system';
  content: string;
}

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

export type TaskEvent = { at: number } & (
  | { kind: 'status'; status: TaskStatus }
  | { kind: 'tool-call'; callId: string; tool: string; arguments: string }
  | { kind: 'tool-result'; callId: string; tool: string; failed: boolean; content: string }
);

export const MOST_EVENTS = 500;

/** steer: interrupts the agent; followup: after its answer, one by one; collect: last, together. */
export type TaskMessageMode = 'steer' | 'followup' | 'collect';

export interface NewTask extends GivenTask {
  /** `hash`: of the whole body. */
  idempotency: { key: string; hash: string } | null;
  now: number;
}

export type TaskOrigin = 'programs' | { channels: readonly string[] };

export interface TaskBounds {
  /** Pending tasks of programs; unfinished delegated tasks, per room and in total. */
  waiting: number;
  perRoom: number;
  delegated: number;
}

export type TaskAdded =
  | { kind: 'added' }
  /** Same key and body within a day. Not after `interrupted`. */
  | { kind: 'there'; task: Task }
  | { kind: 'conflict' }
  | { kind: 'full'; bound: keyof TaskBounds };

export interface TaskFinish {
  status: 'completed' | 'error' | 'interrupted';
  result: TaskResult | null;
  error: string | null;
  now: number;
}

/** The end of a task and the message about it, in one transaction. */
export interface TaskEnd extends TaskFinish {
  id: string;
  /** Also ends its pending journal entries, and the call that delegated it. */
  entries: readonly JournalWrite[];
  /** An event in the parent's room; null: nobody is told. Dropped if that conversation was forgotten meanwhile. */
  tell: ReceiptOf<'event'> | null;
}

/** `question`: to people, about a call. */
export interface TaskNote {
  entries?: readonly JournalWrite[];
  events?: readonly TaskEvent[];
  question?: NewQuestion;
}

type TaskTold = 'done' | 'ended' | 'unknown';

/** Expires with its lease, as for rooms. */
export interface TaskClaim {
  id: string;
  owner: string;
}

export interface TaskStore {
  addTask(task: NewTask, bounds: TaskBounds): Promise<TaskAdded>;
  /** By its id or its idempotency key. */
  task(which: string | { key: string }): Promise<Task | null>;
  /** Newest first. `before`: the id of the last one of the page before. */
  tasks(most: number, before?: string): Promise<Omit<Task, 'request'>[]>;
  /** Ids of tasks given by other chats or by programs. */
  tasksElsewhere(chatId: ChatId): Promise<string[]>;
  taskEvents(id: string): Promise<TaskEvent[]>;
  claimTask(lease: { owner: string; leaseMs: number; now: number; of: TaskOrigin }): Promise<Task | null>;
  renewTasks(lease: { owner: string; leaseMs: number; now: number }): Promise<void>;
  /** Those of this owner, and those whose lease has expired. `isSteered`: a message that steers waits. */
  runningTasks(ask: {
    owner: string;
    now: number;
  }): Promise<{ id: string; owner: string; isSteered: boolean }[]>;
  /** False, storing nothing, if this owner has lost the task. */
  noteTask(claim: TaskClaim, what: TaskNote): Promise<boolean>;
  /** If it is stopped, nobody is told. */
  tellTask(
    id: string,
    what: { mode: TaskMessageMode; text: string } | 'stop',
    now: number,
  ): Promise<TaskTold>;
  /** Those of the first of these modes in which any wait; of `followup`, the oldest. */
  takeTaskMessages(claim: TaskClaim, modes: readonly TaskMessageMode[]): Promise<string[] | 'lost'>;
  /** `lost`: by this owner. `message`: one still waits. Either way nothing is stored or told. */
  finishTask(end: TaskEnd, owner: string): Promise<'finished' | 'lost' | 'message'>;
}

export interface Tasks {
  submit(wish: TaskWish): Promise<TaskAnswer>;
  find(id: string): Promise<{ task: Task; events: TaskEvent[] } | null>;
  list(most: number): Promise<Omit<Task, 'request'>[]>;
  stop(id: string): Promise<TaskTold>;
  tell(id: string, text: string, mode: TaskMessageMode): Promise<TaskTold>;
  /** Events from now on, until the task ends. A slow reader may miss deltas; joined ones are a prefix of the result. */
  follow(id: string, signal: AbortSignal): AsyncIterable<TaskProgress>;
}

export type TaskProgress =
  | { kind: 'event'; event: TaskEvent }
  | { kind: 'text-delta'; text: string }
  | { kind: 'end'; task: Task };

export interface TaskWish {
  goal: string;
  agent: string | null;
  request: Omit<TaskRequest, 'viap' | 'eventId'>;
  idempotencyKey: string | null;
}

type TaskAnswer =
  | { kind: 'accepted'; task: { id: string; status: TaskStatus } }
  | { kind: 'unknown agent'; reason: string }
  | { kind: 'conflict' }
  | { kind: 'full' };

export interface Delegation {
  /** `reason`: a sentence for the model. */
  spawn(
    wish: { agentId: string; task: unknown; eventId?: string | undefined } & TaskParent,
  ): Promise<{ ok: true; taskId: string; said: string } | { ok: false; reason: string }>;
  given(call: DelegatingCall): Promise<string | null>;
}

/** The chat of programs' tasks, for budgets, the journal and tool rules. */
export const BOARD_CHAT: ChatId = 'board_main';

export const TASK_COMPLETED = 'task_completed';

export function taskEventId(taskId: string): string {
  return `task:${taskId}`;
}

/** The first paragraph: a summary for people. */
export function headOfTaskEnd(text: string): string {
  return text.split('\n\n', 1)[0] ?? '';
}

export function taskOfEvent(platformMessageId: string | null): string | null {
  return /^event:task:(.+)$/.exec(platformMessageId ?? '')?.[1] ?? null;
}

export const UTILITY = 'utility';

/** Safe as a folder and file name, and not the name of an agent's file. */
export function isAgentId(id: string): boolean {
  return /^(?!\.)[A-Za-z0-9._-]{1,64}$/.test(id) && !/\.ya?ml$/i.test(id);
}

/** `data/agents/<id>.yaml`, read for every task. */
export interface AgentDefinition {
  id: string;
  model: string | null;
  prompt: string;
  tools: readonly string[];
  timeoutMinutes: number | null;
  maxRounds: number | null;
}

const LONGEST_SESSION = 120;

export function sessionFile(session: string): string {
  const safe = session.replaceAll(/[^A-Za-z0-9_-]/gu, '_').slice(0, LONGEST_SESSION);
  if (safe === session && safe !== '') return `${safe}.jsonl`;
  const hash = createHash('sha256').update(session).digest('hex').slice(0, 12);
  return `${safe}.${hash}.jsonl`;
}

export interface SessionLine {
  role: 'user' | 'assistant' | 'system';
  content: string;
  ts: number;
}

/**
 * An internal space: for tasks in one chat, or (null) shared. Only tasks of owners and programs write the shared one,
 * until they have seen untrusted text.
 */
export interface AgentSpace {
  agent: string;
  chatId: ChatId | null;
}

export interface SpaceNotes {
  longTerm: string;
  daily: string;
}

export interface Agents {
  /** `reason`: a sentence that lists the agents, or names the error in the file. */
  find(id: string): Promise<{ ok: true; agent: AgentDefinition } | { ok: false; reason: string }>;
  list(): Promise<string[]>;
  /** `internal_space` or `chats/<chat_id>` in the agent's folder; created if missing. */
  space(of: AgentSpace): Promise<string>;
  /** For a prompt, cut to the budgets of seed 004. Never rejects. */
  memory(of: AgentSpace, today: string): Promise<SpaceNotes & { origin: Origin }>;
  read(of: AgentSpace, what: 'MEMORY.md' | { date: string }): Promise<{ text: string; origin: Origin }>;
  /** Unless it is there already. */
  append(of: AgentSpace, date: string, line: string, signal: AbortSignal): Promise<void>;
  /** The parts that a prompt may show, by their names for `Origins`. Never rejects. */
  shownOf(of: AgentSpace): Promise<ReadonlyMap<string, string>>;
  /** Never rejects: failures are logged. */
  log(id: string, session: string, lines: readonly SessionLine[]): Promise<void>;
  session(id: string, session: string): Promise<SessionLine[]>;
}

/** The loop of model and tools for tasks, with the limits, budgets, journal and approvals of a turn. */
export interface WorkAsk {
  task: Task;
  agent: AgentDefinition;
  place: AgentPlace;
  messages: ModelMessage[];
  isTainted: boolean;
  /** Number of this request within the task, from 0. */
  round: number;
  /** Stores progress. False: the task is over, so the loop ends. */
  note(what: TaskNote): Promise<boolean>;
  waits(isWaiting: boolean): void;
}

export interface WorkDone {
  messages: ModelMessage[];
  steps: Step[];
  tainted: boolean;
  /** A call was refused because it needs an owner's approval of this task. */
  wasExternalRefused: boolean;
}

export type WorkEnd =
  | ({ kind: 'answered'; text: string } & WorkDone)
  | ({ kind: 'failed'; fault: Fault } & WorkDone)
  /** An interrupted call has a result that says so. */
  | ({ kind: 'dropped' } & WorkDone);

export interface Work {
  do(ask: WorkAsk, signal: AbortSignal): Promise<WorkEnd>;
}

export const NEEDS_INSTRUCTION = 'requires explicit owner instruction';

const DONE = 'completed';
const NOT_BEGUN = 'pending';

/** One line per step, `- [x] title` if completed; the id is in a comment, so that the list can be parsed again. */
export function planText(plan: Plan): string {
  if (typeof plan === 'string') return plan;
  const steps = plan.steps.map(({ id, title, status }) => {
    const box = status === DONE ? '[x]' : '[ ]';
    const state = status === DONE || status === NOT_BEGUN ? '' : ` (${inOneLine(status)})`;
    return `- ${box} ${inOneLine(title)}${state} <!-- ${inComment(id)} -->`;
  });
  return `# ${inOneLine(plan.goal)}\n\n${steps.map((step) => `${step}\n`).join('')}`;
}

/** Cannot end the comment. */
function inComment(id: string): string {
  return inOneLine(id).replace(/-(?=-)|[<>]/g, '_');
}
