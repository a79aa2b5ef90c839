/**
 * A task that runs in this process, between whoever watches over it (runner.ts) and whoever does it (run-task.ts): what
 * ends it, and what ends its current request.
 */
import { setMaxListeners } from 'node:events';
import { type Clock, OVER } from '../core/clock.js';
import { redactor } from '../core/command-env.js';
import { Fault, sentenceOf } from '../core/errors.js';
import { type ChatId, channelOf, DEFAULT_PERSONA } from '../core/ids.js';
import type { ModelMessage } from '../core/model.js';
import type { Workspace } from '../core/persona.js';
import {
  type AgentDefinition,
  type Agents,
  BOARD_CHAT,
  type SessionLine,
  type Task,
  type TaskMessage,
  type TaskStore,
  type Work,
  type WorkEnd,
} from '../core/task.js';
import type { AgentPlace, ToolsFor } from '../core/tool.js';
import type { Step } from '../core/transcript.js';
import { beginningOfProgramsTask, type EndParts, endTask, NO_TASK, type Outcome, timeIsUp } from './end.js';
import { type Folders, findArtifact, placeOf, type TaskGiver } from './place.js';
import { openingRequest, type RequestParts } from './request.js';
import type { Followers } from './tasks.js';
import { completeReport, failureReport, readReport, repairRequest } from './viap/report.js';
import { readViapTask, type ViapTask } from './viap/task.js';

/**
 * over: it was stopped, or another process has taken it, so that nothing is stored of it any more; timeout: its time is
 * used up; shutdown: the gateway ends.
 */
type EndReason = 'over' | 'timeout' | 'shutdown';

export interface Running {
  readonly task: Task;
  /** Why it has to end; null: it need not. */
  why(): EndReason | null;
  end(why: EndReason): void;
  /** A new message comes first: ends the current request. */
  steer(): void;
  /** The signal for a request: aborts when that was steered, or when the task has to end. */
  request(): AbortSignal;
}

export function createRunning(task: Task): Running {
  let reason: EndReason | null = null;
  let current = newController();
  return {
    task,
    why: () => reason,
    end(why) {
      // What is stored of it no more stays so, whatever comes after.
      if (reason === null || why === 'over') reason = why;
      current.abort(why);
    },
    steer: () => current.abort('steer'),
    request() {
      if (reason === null) current = newController();
      return current.signal;
    },
  };
}

function newController(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}

// The time that a task may take. While it waits for a person, none of it is used.

interface TimeLimit {
  /** It waits for a person, or goes on. */
  waits(isWaiting: boolean): void;
  /** The task is over: nothing expires any more. */
  end(): void;
}

function startTimeLimit(clock: Clock, ms: number, expire: () => void): TimeLimit {
  let left = ms;
  let since = clock.now();
  let isOver = false;
  let cancel: (() => void) | null = clock.after(left, expire);

  function pause(): void {
    if (cancel === null) return;
    cancel();
    cancel = null;
    left -= Math.max(0, clock.now() - since);
  }

  function goOn(): void {
    if (cancel !== null || isOver) return;
    since = clock.now();
    cancel = clock.after(Math.max(0, left), expire);
  }

  return {
    waits: (isWaiting) => (isWaiting ? pause() : goOn()),
    end() {
      isOver = true;
      cancel?.();
      cancel = null;
    },
  };
}

// What a task is told while it runs: which of the waiting messages come next. Pure.

interface NextMessages {
  /** As one message of the user's. */
  text: string;
  ns: number[];
}

/** What steers comes first, all of it together; then what follows up, one by one; at last what was collected, together. */
function nextMessages(waiting: readonly TaskMessage[]): NextMessages | null {
  const of = (mode: TaskMessage['mode']) => waiting.filter((message) => message.mode === mode);
  const next = [of('steer'), of('followup').slice(0, 1), of('collect')].find(({ length }) => length > 0);
  if (next === undefined) return null;
  return { text: next.map(({ text }) => text).join('\n'), ns: next.map(({ n }) => n) };
}

// One task from top to bottom: the agent, its place, the request, then the model with its tools, as often as somebody says
// something more, and the end. It ends with this in every case: with an answer, a fault, because its time is used up, or
// because the gateway stops.

export interface TaskParts extends EndParts, Omit<RequestParts, 'agents' | 'workspace'> {
  store: TaskStore;
  owner: string;
  work: Work;
  agents: Agents;
  workspace: Workspace;
  toolsFor: ToolsFor;
  /** Where agents may work, but for the workspace. */
  folders: Omit<Folders, 'workspace'>;
  whoGave(task: Task): Promise<TaskGiver>;
  followers: Followers;
}

const MINUTE_MS = 60_000;
const DEFAULT_MINUTES = 30;
/** What was aborted settles within this time, or hangs; then nobody waits for it. */
const REST_MS = 2_000;

/** A task with all that is needed to work on it, and how far it has come. */
interface TaskRun {
  running: Running;
  agent: AgentDefinition;
  place: AgentPlace;
  viap: ViapTask | null;
  minutes: number;
  messages: ModelMessage[];
  /** How many of the messages stand in the session's transcript. */
  logged: number;
  steps: Step[];
  tainted: boolean;
  wasExternalRefused: boolean;
  round: number;
  hasRepaired: boolean;
}

/** Rejects only where the store does not do as it is told. */
export async function runTask(parts: TaskParts, running: Running): Promise<void> {
  const { task } = running;
  if (!(await isOnRecord(parts, task))) return;
  const read = task.request.viap === null ? null : readViapTask(task.request.viap);
  const viap = read?.ok ? read.task : null;
  const fail = async (reason: string) => {
    const outcome = { kind: 'error', reason } as const;
    await endTask(parts, { task, viap, outcome, tainted: false }, parts.owner);
  };
  if (read?.ok === false) return fail(NO_TASK);
  let course: TaskRun;
  try {
    const found = await parts.agents.find(task.agent);
    if (!found.ok) return await fail(found.reason);
    course = await begin(parts, running, found.agent, viap);
  } catch (error) {
    parts.log.error({ err: error, task: task.id }, 'a task could not be begun');
    return fail(sentenceOf(error));
  }
  const budget = startTimeLimit(parts.clock, course.minutes * MINUTE_MS, () => running.end('timeout'));
  try {
    await goOn(parts, course, budget);
  } finally {
    budget.end();
  }
}

/** False: it is over already. */
async function isOnRecord({ store, owner, clock }: TaskParts, task: Task): Promise<boolean> {
  if (task.parent !== null) return true;
  return store.noteTask({ id: task.id, owner }, { entries: [beginningOfProgramsTask(task, clock.now())] });
}

async function begin(
  parts: TaskParts,
  running: Running,
  agent: AgentDefinition,
  viap: ViapTask | null,
): Promise<TaskRun> {
  const { task } = running;
  const { workspace, agents, folders, clock } = parts;
  const { isOwner, isAmongOwners } = await parts.whoGave(task);
  const place = await placeOf(task, viap, {
    folders: { ...folders, workspace: await workspace.folder() },
    spaces: {
      own: await agents.space({ agent: agent.id, chatId: chatOf(task) }),
      shared: await agents.space({ agent: agent.id, chatId: null }),
    },
    isOwner,
  });
  const { messages, origin } = await openingRequest(parts, {
    ...{ task, agent, place, viap, now: clock.now() },
    isOwners: isAmongOwners,
    tools: toolsOf(parts, task, agent),
  });
  return {
    ...{ running, agent, place, viap, messages, minutes: minutesFor(agent, viap) },
    ...{ logged: 0, steps: [], round: 0 },
    ...{ tainted: origin === 'outside', wasExternalRefused: false, hasRepaired: false },
  };
}

/** What the task says counts, but never more than the agent's own limit. */
function minutesFor({ timeoutMinutes }: AgentDefinition, viap: ViapTask | null): number {
  const given = viap?.raw.constraints as { time_budget_min?: unknown } | undefined;
  const asked = viap?.constraints.timeBudgetMin ?? DEFAULT_MINUTES;
  if (given?.time_budget_min !== asked) return timeoutMinutes ?? DEFAULT_MINUTES;
  return Math.min(asked, timeoutMinutes ?? asked);
}

/** Programs have one together. */
function chatOf({ parent }: Task): ChatId {
  return parent?.chatId ?? BOARD_CHAT;
}

function toolsOf({ toolsFor }: TaskParts, task: Task, agent: AgentDefinition): ReadonlySet<string> {
  const { parent } = task;
  const chatId = chatOf(task);
  const { tools } = toolsFor({
    ...{ kind: 'agent', chatId, personaId: parent?.personaId ?? DEFAULT_PERSONA },
    ...{ senderId: parent?.senderId ?? '', allowed: agent.tools },
    ...{ channel: channelOf(chatId), chatKind: 'direct' },
  });
  return new Set(tools.map(({ name }) => name));
}

/** One request after the other, until there is an end. */
async function goOn(parts: TaskParts, course: TaskRun, budget: TimeLimit): Promise<void> {
  const { running } = course;
  let signal = running.request();
  // While it waited to begin, there was no request that this could have ended.
  if ((await hear(parts, course, ['steer'])) === 'lost') return;
  for (;;) {
    const done = await request(parts, course, budget, signal);
    const wasAborted = signal.aborted;
    // Whoever steers from now on ends the next one.
    signal = running.request();
    const why = running.why();
    if (why === 'over') return;
    if (why === 'shutdown') return void (await end(parts, course, { kind: 'interrupted' }));
    if (why === 'timeout') {
      return void (await end(
        parts,
        course,
        await failed(course, parts, 'timeout', timeIsUp(course.minutes)),
      ));
    }
    if (done.kind === 'failed') {
      parts.log.warn({ err: done.fault, task: running.task.id }, 'the model of a task failed');
      return void (await end(parts, course, await failed(course, parts, 'model', done.fault.sentence)));
    }
    // Nothing may be stored of it any more, which its work noticed first.
    if (done.kind === 'dropped' && !wasAborted) return;
    const told = await hear(parts, course);
    if (told === 'lost') return;
    if (told === 'told' || done.kind === 'dropped') continue;
    if ((await answer(parts, course, done.text)) === 'over') return;
  }
}

/** Asks the model, and takes over what it said and did. */
async function request(
  parts: TaskParts,
  course: TaskRun,
  budget: TimeLimit,
  signal: AbortSignal,
): Promise<WorkEnd> {
  const { running, agent, place, messages } = course;
  const { task } = running;
  await log(parts, course);
  const claim = { id: task.id, owner: parts.owner };
  const work = parts.work.do(
    {
      ...{ task, agent, place, messages, round: course.round++, isTainted: course.tainted },
      async note(what) {
        const isNoted = await parts.store.noteTask(claim, what);
        if (isNoted && what.events) parts.followers.saw(task.id, what.events);
        return isNoted;
      },
      waits: budget.waits,
    },
    signal,
  );
  const done = await settled(parts.clock, work, signal, messages);
  // It no longer waits for a person, however it ended.
  budget.waits(false);
  course.messages = [...done.messages];
  course.steps.push(...done.steps);
  course.tainted ||= done.tainted;
  course.wasExternalRefused ||= done.wasExternalRefused;
  await log(parts, course);
  return done;
}

/** What throws has failed, and what ignores its signal is left behind. */
async function settled(
  clock: Clock,
  work: Promise<WorkEnd>,
  signal: AbortSignal,
  messages: ModelMessage[],
): Promise<WorkEnd> {
  const nothing = { messages, steps: [], tainted: true, wasExternalRefused: false };
  const patience = new AbortController();
  const aborted = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
  const hung = aborted
    .then(() => clock.sleep(REST_MS, patience.signal))
    .then((): WorkEnd => ({ kind: 'dropped', ...nothing }));
  const done = work.catch((error: unknown): WorkEnd => {
    const fault = error instanceof Fault ? error : new Fault('internal', 'the work on a task failed', error);
    return { kind: 'failed', fault, ...nothing };
  });
  try {
    return await Promise.race([done, hung]);
  } finally {
    patience.abort(OVER);
  }
}

/** What somebody has said meanwhile comes next. */
async function hear(
  { store, owner }: TaskParts,
  course: TaskRun,
  modes: readonly TaskMessage['mode'][] = ['steer', 'followup', 'collect'],
): Promise<'told' | 'nothing' | 'lost'> {
  const { id } = course.running.task;
  const next = nextMessages((await store.taskMessages(id)).filter(({ mode }) => modes.includes(mode)));
  if (next === null) return 'nothing';
  if (!(await store.takeTaskMessages({ id, owner }, next.ns))) return 'lost';
  course.messages.push({ role: 'user', content: next.text });
  return 'told';
}

/** The model has answered, and nobody says anything more: that is the end, if it is the report that was asked for. */
async function answer(parts: TaskParts, course: TaskRun, text: string): Promise<'over' | 'goes on'> {
  const { viap } = course;
  if (viap === null) return end(parts, course, { kind: 'answered', text });
  const read = readReport(text, viap.taskId);
  if (!read.ok && !course.hasRepaired) {
    course.hasRepaired = true;
    course.messages.push({ role: 'user', content: repairRequest(read.reason, viap.taskId) });
    return 'goes on';
  }
  if (!read.ok) {
    const reason = `The agent gave no report that can be used. ${read.reason}`;
    return end(parts, course, await failed(course, parts, 'report_parse', reason, text));
  }
  const report = await completeReport(read.report, factsOf(course, viap, parts));
  return end(parts, course, { kind: 'report', report, hasFailed: false });
}

/** Of a persona's task, the gateway writes the report itself. */
async function failed(
  course: TaskRun,
  parts: TaskParts,
  where: string,
  reason: string,
  tail?: string,
): Promise<Outcome> {
  const { viap } = course;
  if (viap === null) return { kind: 'error', reason };
  const made = failureReport(viap, { where, message: reason, ...(tail !== undefined && { tail }) });
  return {
    kind: 'report',
    report: await completeReport(made, factsOf(course, viap, parts)),
    hasFailed: true,
  };
}

function factsOf({ running, steps, place, wasExternalRefused }: TaskRun, viap: ViapTask, parts: TaskParts) {
  const startedAt = running.task.startedAt ?? running.task.createdAt;
  const endedAt = parts.clock.now();
  return { task: viap, steps, place, startedAt, endedAt, wasExternalRefused, findFile: findArtifact };
}

async function end(parts: TaskParts, course: TaskRun, outcome: Outcome): Promise<'over' | 'goes on'> {
  const { running, viap, tainted } = course;
  const { task } = running;
  const ended = await endTask(parts, { task, viap, outcome, tainted }, parts.owner);
  if (ended !== 'message') return 'over';
  // Something was said at the very last moment.
  return (await hear(parts, course)) === 'lost' ? 'over' : 'goes on';
}

/** What is new among the messages is added to the transcript of the session. */
async function log({ agents, clock }: TaskParts, course: TaskRun): Promise<void> {
  const { running, agent, place, messages, logged } = course;
  const clean = redactor(place.env);
  const ts = clock.now();
  const lines = messages.slice(logged).flatMap((message): SessionLine[] => {
    const { role, content } = message;
    return (role === 'user' || role === 'assistant') && content !== ''
      ? [{ role, content: clean(content), ts }]
      : [];
  });
  course.logged = messages.length;
  if (lines.length > 0) await agents.log(agent.id, running.task.id, lines);
}
