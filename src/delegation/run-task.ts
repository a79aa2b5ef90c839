/** Runs one task: the agent, its place, the request, then the model with its tools, again for each further message. */
import { setMaxListeners } from 'node:events';
import type { AgentPlace } from '../core/authorisation.js';
import { type Clock, onAbort, orAfter } from '../core/clock.js';
import { redactor } from '../core/command-env.js';
import { Fault, sentenceOf } from '../core/errors.js';
import { channelOf, DEFAULT_PERSONA } from '../core/ids.js';
import type { ModelMessage } from '../core/model.js';
import {
  type AgentDefinition,
  BOARD_CHAT,
  type SessionLine,
  type Task,
  type TaskMessageMode,
  type TaskNote,
  type WorkEnd,
} from '../core/task.js';
import type { Step } from '../core/transcript.js';
import { beginningOfProgramsTask, endTask, type TaskServices } from './end.js';
import { placeOf } from './place.js';
import { DEFAULT_MINUTES, openingRequest } from './request.js';
import {
  completeReport,
  failureReport,
  readReport,
  repairRequest,
  type TaskOutcome,
  type ViapReport,
} from './viap/report.js';
import { type ViapTask, viapOf } from './viap/task.js';

const MINUTE_MS = 60_000;
/** Aborted work that has not settled within this time is abandoned. */
const SETTLE_MS = 2_000;

/** Rejects only if the store fails. */
export async function runTask(services: TaskServices, running: Running): Promise<void> {
  const { task } = running;
  const { store, owner, clock, log } = services;
  if (task.parent === null) {
    const entries = [beginningOfProgramsTask(task, clock.now())];
    // Already over.
    if (!(await store.noteTask({ id: task.id, owner }, { entries }))) return;
  }
  const viap = viapOf(task);
  const run = await begin(services, running, viap).catch((error: unknown) => {
    log.error({ err: error, task: task.id }, 'could not begin a task');
    return sentenceOf(error);
  });
  if (typeof run !== 'string') return run.work();
  await endTask(services, { task, viap, outcome: { kind: 'error', reason: run }, tainted: false });
}

/** Or why it cannot begin. */
async function begin(
  services: TaskServices,
  running: Running,
  viap: ViapTask | null,
): Promise<TaskRun | string> {
  const { task } = running;
  const { workspace, agents, folders } = services;
  if (task.request.viap !== null && viap === null) return 'The request of this task can no longer be read.';
  const found = await agents.find(task.agent);
  if (!found.ok) return found.reason;
  const { agent } = found;
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
    now: services.clock.now(),
  });
  return new TaskRun(services, running, agent, place, viap, messages, origin === 'outside');
}

class TaskRun {
  /** Number of messages already in the session's transcript. */
  #logged = 0;
  #round = 0;
  #hasRepaired = false;
  #wasExternalRefused = false;
  readonly #steps: Step[] = [];
  readonly #minutes: number;
  readonly #limit: TimeLimit;

  constructor(
    private readonly services: TaskServices,
    private readonly running: Running,
    private readonly agent: AgentDefinition,
    private readonly place: AgentPlace,
    private readonly viap: ViapTask | null,
    private messages: ModelMessage[],
    private isTainted: boolean,
  ) {
    const { timeoutMinutes } = agent;
    const own = viap?.timeBudgetMin ?? timeoutMinutes ?? DEFAULT_MINUTES;
    this.#minutes = Math.min(own, timeoutMinutes ?? own);
    this.#limit = startTimeLimit(services.clock, this.#minutes * MINUTE_MS, () => running.end('timeout'));
  }

  async work(): Promise<void> {
    await this.#untilEnd().finally(this.#limit.end);
  }

  /** Repeats requests until there is an end. */
  async #untilEnd(): Promise<void> {
    const { running, services } = this;
    let signal = running.request();
    // While the task waited to begin, there was no request for this to end.
    if ((await this.#hear(['steer'])) === 'lost') return;
    for (;;) {
      const done = await this.#request(signal);
      const wasAborted = signal.aborted;
      // From now on, steering ends the next request.
      signal = running.request();
      const why = running.why();
      if (why === 'over') return;
      if (why === 'shutdown') return void (await this.#end({ kind: 'interrupted' }));
      if (why === 'timeout') return this.#fail('timeout', timeIsUp(this.#minutes));
      if (done.kind === 'failed') {
        services.log.warn({ err: done.fault, task: running.task.id }, 'the model of a task failed');
        return this.#fail('model', done.fault.sentence);
      }
      // Nothing more may be stored, which the work itself noticed first.
      if (done.kind === 'dropped' && !wasAborted) return;
      const heard = await this.#hear();
      if (heard === 'lost') return;
      if (heard === 'told' || done.kind === 'dropped') continue;
      if ((await this.#answer(done.text)) === 'over') return;
    }
  }

  /** Asks the model, and records its messages and calls. */
  async #request(signal: AbortSignal): Promise<WorkEnd> {
    const { services, agent, place, messages, isTainted } = this;
    const { store, owner, followers, clock } = services;
    const { task } = this.running;
    await this.#logSession();
    const asked = {
      task,
      agent,
      place,
      messages,
      round: this.#round++,
      isTainted,
      async note(what: TaskNote) {
        const isNoted = await store.noteTask({ id: task.id, owner }, what);
        if (isNoted && what.events) followers.saw(task.id, what.events);
        return isNoted;
      },
      waits: this.#limit.waits,
    };
    const nothing = { messages, steps: [], tainted: true, wasExternalRefused: false };
    const working = services.work.do(asked, signal).catch((error: unknown): WorkEnd => {
      const fault =
        error instanceof Fault ? error : new Fault('internal', 'the work on a task failed', error);
      return { kind: 'failed', fault, ...nothing };
    });
    const aborted = new Promise<void>((resolve) => onAbort(signal, resolve));
    const hung = aborted.then(() => orAfter(working, SETTLE_MS, clock));
    const done = (await Promise.race([working, hung])) ?? { kind: 'dropped' as const, ...nothing };
    // However it ended, it no longer waits for a person.
    this.#limit.waits(false);
    this.messages = [...done.messages];
    this.#steps.push(...done.steps);
    this.isTainted ||= done.tainted;
    this.#wasExternalRefused ||= done.wasExternalRefused;
    await this.#logSession();
    return done;
  }

  /** Takes messages: first all that steer; then one that follows up; last all collected ones. */
  async #hear(
    modes: readonly TaskMessageMode[] = ['steer', 'followup', 'collect'],
  ): Promise<'told' | 'nothing' | 'lost'> {
    const { store, owner } = this.services;
    const { id } = this.running.task;
    const heard = await store.takeTaskMessages({ id, owner }, modes);
    if (heard === 'lost') return 'lost';
    if (heard.length === 0) return 'nothing';
    this.messages.push({ role: 'user', content: heard.join('\n') });
    return 'told';
  }

  /** The model answered, and no message waits: ends the task, if this is the requested report. */
  async #answer(text: string): Promise<'over' | 'goes on'> {
    const { viap } = this;
    if (viap === null) return this.#end({ kind: 'answered', text });
    const read = readReport(text, viap.taskId);
    if (read.ok) {
      return this.#end({ kind: 'report', report: await this.#completed(read.report) });
    }
    if (!this.#hasRepaired) {
      this.#hasRepaired = true;
      this.messages.push({ role: 'user', content: repairRequest(read.reason, viap.taskId) });
      return 'goes on';
    }
    const reason = `The agent gave no report that can be used. ${read.reason}`;
    return this.#end(await this.#failure('report_parse', reason, text));
  }

  async #fail(where: string, reason: string): Promise<void> {
    await this.#end(await this.#failure(where, reason));
  }

  /** For a persona's task, the gateway writes the report. `output`: the end of it goes into the report. */
  async #failure(where: string, reason: string, output = ''): Promise<TaskOutcome> {
    if (this.viap === null) return { kind: 'error', reason };
    const report = await this.#completed(failureReport(this.viap.taskId, where, reason, output));
    return { kind: 'report', report, hasFailed: true };
  }

  #completed(report: ViapReport): Promise<ViapReport> {
    const { startedAt, createdAt } = this.running.task;
    return completeReport(report, {
      steps: this.#steps,
      place: this.place,
      startedAt: startedAt ?? createdAt,
      endedAt: this.services.clock.now(),
      wasExternalRefused: this.#wasExternalRefused,
    });
  }

  async #end(outcome: TaskOutcome): Promise<'over' | 'goes on'> {
    const { services, running, viap, isTainted } = this;
    const ended = await endTask(services, { task: running.task, viap, outcome, tainted: isTainted });
    if (ended !== 'message') return 'over';
    // A message arrived at the last moment.
    return (await this.#hear()) === 'lost' ? 'over' : 'goes on';
  }

  /** Adds new messages to the transcript of the session. */
  async #logSession(): Promise<void> {
    const { services, running, agent, place, messages } = this;
    const redact = redactor(place.env);
    const ts = services.clock.now();
    const lines = messages.slice(this.#logged).flatMap(({ role, content }): SessionLine[] => {
      const isWords = (role === 'user' || role === 'assistant') && content !== '';
      return isWords ? [{ role, content: redact(content), ts }] : [];
    });
    this.#logged = messages.length;
    if (lines.length > 0) await services.agents.log(agent.id, running.task.id, lines);
  }
}

function timeIsUp(minutes: number): string {
  const amount = minutes === 1 ? 'a minute' : `${Math.round(minutes * 100) / 100} minutes`;
  return `The time for this task, ${amount}, was used up before it was done.`;
}

/** over: nothing more may be stored, stopped or taken over; timeout; shutdown: the gateway ends. */
type EndReason = 'over' | 'timeout' | 'shutdown';

/** A task running in this process, shared by its supervisor (`runner.ts`) and its work. */
export class Running {
  #reason: EndReason | null = null;
  #current = newController();

  constructor(readonly task: Task) {}

  /** Reason to end; null: none. */
  why(): EndReason | null {
    return this.#reason;
  }

  end(why: EndReason): void {
    // Once nothing more may be stored, no later reason changes that.
    if (this.#reason === null || why === 'over') this.#reason = why;
    this.#current.abort(why);
  }

  /** Ends the current request, because a new message comes first. */
  steer(): void {
    this.#current.abort('steer');
  }

  /** Signal for a request: aborts on steering, or when the task has to end. */
  request(): AbortSignal {
    if (this.#reason === null) this.#current = newController();
    return this.#current.signal;
  }
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
