/**
 * Runs one task from start to end: the agent, its place, the request, then the model with its tools, repeated
 * for each further message. Ends with an answer, an error, on time-out, or at a shutdown.
 */
import { setMaxListeners } from 'node:events';
import type { AgentPlace } from '../core/authorisation.js';
import { type Clock, OVER } from '../core/clock.js';
import { redactor } from '../core/command-env.js';
import { Fault, sentenceOf } from '../core/errors.js';
import { channelOf, DEFAULT_PERSONA } from '../core/ids.js';
import type { ModelMessage } from '../core/model.js';
import {
  type AgentDefinition,
  BOARD_CHAT,
  type SessionLine,
  type Task,
  type TaskMessage,
  type WorkEnd,
} from '../core/task.js';
import type { Step } from '../core/transcript.js';
import { beginningOfProgramsTask, endTask, type TaskOutcome, type TaskServices } from './end.js';
import { placeOf } from './place.js';
import { openingRequest } from './request.js';
import { completeReport, failureReport, readReport, repairRequest } from './viap/report.js';
import { readViapTask, type ViapTask } from './viap/task.js';

const MINUTE_MS = 60_000;
const DEFAULT_MINUTES = 30;
/** Aborted work that has not settled within this time is abandoned. */
const SETTLE_MS = 2_000;

/** A running task: its dependencies and its progress. */
interface TaskRun {
  services: TaskServices;
  running: Running;
  agent: AgentDefinition;
  place: AgentPlace;
  viap: ViapTask | null;
  minutes: number;
  limit: TimeLimit;
  messages: ModelMessage[];
  /** Number of messages already in the session's transcript. */
  logged: number;
  steps: Step[];
  tainted: boolean;
  wasExternalRefused: boolean;
  round: number;
  hasRepaired: boolean;
}

/** Rejects only if the store fails. */
export async function runTask(services: TaskServices, running: Running): Promise<void> {
  const { task } = running;
  const { store, owner, clock, log } = services;
  if (task.parent === null) {
    const entries = [beginningOfProgramsTask(task, clock.now())];
    // Already over.
    if (!(await store.noteTask({ id: task.id, owner }, { entries }))) return;
  }
  const read = task.request.viap === null ? null : readViapTask(task.request.viap);
  const viap = read?.ok ? read.task : null;
  const fail = async (reason: string) => {
    const outcome = { kind: 'error', reason } as const;
    await endTask(services, { task, viap, outcome, tainted: false }, owner);
  };
  if (read?.ok === false) return fail('The request of this task can no longer be read.');
  let run: TaskRun;
  try {
    const found = await services.agents.find(task.agent);
    if (!found.ok) return await fail(found.reason);
    run = await begin(services, running, found.agent, viap);
  } catch (error) {
    log.error({ err: error, task: task.id }, 'could not begin a task');
    return fail(sentenceOf(error));
  }
  try {
    await work(run);
  } finally {
    run.limit.end();
  }
}

async function begin(
  services: TaskServices,
  running: Running,
  agent: AgentDefinition,
  viap: ViapTask | null,
): Promise<TaskRun> {
  const { task } = running;
  const { workspace, agents, folders, clock } = services;
  const chatId = task.parent?.chatId ?? BOARD_CHAT;
  const { isOwner, isAmongOwners } = await services.whoGave(task);
  const place = await placeOf(task, viap, {
    folders: { ...folders, workspace: await workspace.folder() },
    spaces: {
      own: await agents.space({ agent: agent.id, chatId }),
      shared: await agents.space({ agent: agent.id, chatId: null }),
    },
    isOwner,
  });
  const { tools } = services.toolsFor({
    kind: 'agent',
    chatId,
    personaId: task.parent?.personaId ?? DEFAULT_PERSONA,
    senderId: task.parent?.senderId ?? '',
    allowed: agent.tools,
    channel: channelOf(chatId),
    chatKind: 'direct',
  });
  const { messages, origin } = await openingRequest(services, {
    task,
    agent,
    place,
    viap,
    isOwners: isAmongOwners,
    tools: new Set(tools.map(({ name }) => name)),
    now: clock.now(),
  });
  const minutes = minutesFor(agent, viap);
  return {
    services,
    running,
    agent,
    place,
    viap,
    minutes,
    limit: startTimeLimit(clock, minutes * MINUTE_MS, () => running.end('timeout')),
    messages,
    logged: 0,
    steps: [],
    tainted: origin === 'outside',
    wasExternalRefused: false,
    round: 0,
    hasRepaired: false,
  };
}

/** The task's own limit, but never more than the agent's. */
function minutesFor({ timeoutMinutes }: AgentDefinition, viap: ViapTask | null): number {
  const given = viap?.raw.constraints as { time_budget_min?: unknown } | undefined;
  const asked = viap?.timeBudgetMin ?? DEFAULT_MINUTES;
  if (given?.time_budget_min !== asked) return timeoutMinutes ?? DEFAULT_MINUTES;
  return Math.min(asked, timeoutMinutes ?? asked);
}

/** Repeats requests until there is an end. */
async function work(run: TaskRun): Promise<void> {
  const { running, services } = run;
  let signal = running.request();
  // While the task waited to begin, there was no request for this to end.
  if ((await hear(run, ['steer'])) === 'lost') return;
  for (;;) {
    const done = await request(run, signal);
    const wasAborted = signal.aborted;
    // From now on, steering ends the next request.
    signal = running.request();
    const why = running.why();
    if (why === 'over') return;
    if (why === 'shutdown') return void (await end(run, { kind: 'interrupted' }));
    if (why === 'timeout') return void (await end(run, await failed(run, 'timeout', timeIsUp(run.minutes))));
    if (done.kind === 'failed') {
      services.log.warn({ err: done.fault, task: running.task.id }, 'the model of a task failed');
      return void (await end(run, await failed(run, 'model', done.fault.sentence)));
    }
    // Nothing more may be stored, which the work itself noticed first.
    if (done.kind === 'dropped' && !wasAborted) return;
    const heard = await hear(run);
    if (heard === 'lost') return;
    if (heard === 'told' || done.kind === 'dropped') continue;
    if ((await answer(run, done.text)) === 'over') return;
  }
}

/** Asks the model, and records its messages and calls. */
async function request(run: TaskRun, signal: AbortSignal): Promise<WorkEnd> {
  const { services, running, agent, place, messages, limit } = run;
  const { store, owner, followers, clock } = services;
  const { task } = running;
  await logSession(run);
  const working = services.work.do(
    {
      task,
      agent,
      place,
      messages,
      round: run.round++,
      isTainted: run.tainted,
      async note(what) {
        const isNoted = await store.noteTask({ id: task.id, owner }, what);
        if (isNoted && what.events) followers.saw(task.id, what.events);
        return isNoted;
      },
      waits: limit.waits,
    },
    signal,
  );
  const done = await settled(clock, working, signal, messages);
  // However it ended, it no longer waits for a person.
  limit.waits(false);
  run.messages = [...done.messages];
  run.steps.push(...done.steps);
  run.tainted ||= done.tainted;
  run.wasExternalRefused ||= done.wasExternalRefused;
  await logSession(run);
  return done;
}

/** An exception is a failure; work that ignores its signal is abandoned. */
async function settled(
  clock: Clock,
  working: Promise<WorkEnd>,
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
    .then(() => clock.sleep(SETTLE_MS, patience.signal))
    .then((): WorkEnd => ({ kind: 'dropped', ...nothing }));
  const done = working.catch((error: unknown): WorkEnd => {
    const fault = error instanceof Fault ? error : new Fault('internal', 'the work on a task failed', error);
    return { kind: 'failed', fault, ...nothing };
  });
  try {
    return await Promise.race([done, hung]);
  } finally {
    patience.abort(OVER);
  }
}

/** Takes messages: first all that steer; then one that follows up; last all collected ones. */
async function hear(
  { services, running, messages }: TaskRun,
  modes: readonly TaskMessage['mode'][] = ['steer', 'followup', 'collect'],
): Promise<'told' | 'nothing' | 'lost'> {
  const { store, owner } = services;
  const { id } = running.task;
  const waiting = await store.taskMessages(id);
  const mode = modes.find((each) => waiting.some((message) => message.mode === each));
  if (mode === undefined) return 'nothing';
  const next = waiting
    .filter((message) => message.mode === mode)
    .slice(0, mode === 'followup' ? 1 : undefined);
  const numbers = next.map(({ n }) => n);
  if (!(await store.takeTaskMessages({ id, owner }, numbers))) return 'lost';
  messages.push({ role: 'user', content: next.map(({ text }) => text).join('\n') });
  return 'told';
}

/** The model answered, and no message waits: ends the task, if this is the requested report. */
async function answer(run: TaskRun, text: string): Promise<'over' | 'goes on'> {
  const { viap } = run;
  if (viap === null) return end(run, { kind: 'answered', text });
  const read = readReport(text, viap.taskId);
  if (read.ok)
    return end(run, { kind: 'report', report: await completed(run, read.report), hasFailed: false });
  if (!run.hasRepaired) {
    run.hasRepaired = true;
    run.messages.push({ role: 'user', content: repairRequest(read.reason, viap.taskId) });
    return 'goes on';
  }
  const reason = `The agent gave no report that can be used. ${read.reason}`;
  return end(run, await failed(run, 'report_parse', reason, text));
}

/** For a persona's task, the gateway writes the report. */
async function failed(run: TaskRun, where: string, reason: string, tail?: string): Promise<TaskOutcome> {
  const { viap } = run;
  if (viap === null) return { kind: 'error', reason };
  const made = failureReport(viap, { where, message: reason, ...(tail !== undefined && { tail }) });
  return { kind: 'report', report: await completed(run, made), hasFailed: true };
}

function completed(run: TaskRun, report: Parameters<typeof completeReport>[0]) {
  const { startedAt, createdAt } = run.running.task;
  return completeReport(report, {
    steps: run.steps,
    place: run.place,
    startedAt: startedAt ?? createdAt,
    endedAt: run.services.clock.now(),
    wasExternalRefused: run.wasExternalRefused,
  });
}

async function end(run: TaskRun, outcome: TaskOutcome): Promise<'over' | 'goes on'> {
  const { services, running, viap, tainted } = run;
  const ended = await endTask(services, { task: running.task, viap, outcome, tainted }, services.owner);
  if (ended !== 'message') return 'over';
  // A message arrived at the last moment.
  return (await hear(run)) === 'lost' ? 'over' : 'goes on';
}

/** Adds new messages to the transcript of the session. */
async function logSession(run: TaskRun): Promise<void> {
  const { services, running, agent, place, messages, logged } = run;
  const redact = redactor(place.env);
  const ts = services.clock.now();
  const lines = messages.slice(logged).flatMap((message): SessionLine[] => {
    const { role, content } = message;
    const isWords = (role === 'user' || role === 'assistant') && content !== '';
    return isWords ? [{ role, content: redact(content), ts }] : [];
  });
  run.logged = messages.length;
  if (lines.length > 0) await services.agents.log(agent.id, running.task.id, lines);
}

function timeIsUp(minutes: number): string {
  const amount = minutes === 1 ? 'a minute' : `${Math.round(minutes * 100) / 100} minutes`;
  return `The time for this task, ${amount}, was used up before it was done.`;
}

/** over: nothing more may be stored, stopped or taken over; timeout; shutdown: the gateway ends. */
type EndReason = 'over' | 'timeout' | 'shutdown';

export type Running = ReturnType<typeof createRunning>;

/** A task running in this process, shared by its supervisor (`runner.ts`) and its work. */
export function createRunning(task: Task) {
  let reason: EndReason | null = null;
  let current = newController();
  return {
    task,
    /** Reason to end; null: none. */
    why: () => reason,
    end(why: EndReason): void {
      // Once nothing more may be stored, no later reason changes that.
      if (reason === null || why === 'over') reason = why;
      current.abort(why);
    },
    /** Ends the current request, because a new message comes first. */
    steer: () => current.abort('steer'),
    /** Signal for a request: aborts on steering, or when the task has to end. */
    request(): AbortSignal {
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

type TimeLimit = ReturnType<typeof startTimeLimit>;

/** The clock stops while the task waits for a person. */
function startTimeLimit(clock: Clock, ms: number, expire: () => void) {
  let left = ms;
  let since = clock.now();
  let isOver = false;
  let cancel: (() => void) | null = clock.after(left, expire);
  return {
    waits(isWaiting: boolean): void {
      if (isWaiting && cancel !== null) {
        cancel();
        cancel = null;
        left -= Math.max(0, clock.now() - since);
      } else if (!isWaiting && cancel === null && !isOver) {
        since = clock.now();
        cancel = clock.after(Math.max(0, left), expire);
      }
    },
    /** The task is over: cancels the time-out. */
    end(): void {
      isOver = true;
      cancel?.();
      cancel = null;
    },
  };
}
