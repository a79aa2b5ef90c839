/** Runs one request to an agent. Steps stay in memory because no task is resumed, but every call is journalled before it runs. */
import { LRUCache } from 'lru-cache';
import { type AskedCall, isAboutRun } from '../../core/access.js';
import { describe, Fault } from '../../core/errors.js';
import { callEntryId } from '../../core/ids.js';
import type { JournalWrite } from '../../core/journal.js';
import type { ModelMessage } from '../../core/model.js';
import { NEEDS_INSTRUCTION, type Work, type WorkAsk, type WorkDone, type WorkEnd } from '../../core/task.js';
import type { ToolSet } from '../../core/tool.js';
import type { Step } from '../../core/transcript.js';
import { REFUSED } from '../approvals.js';
import { tellLeftOut } from '../deliver/post.js';
import type { Services } from '../services.js';
import { outcomesOf } from '../turn/calls.js';
import { calledIn, isTainted, type StepExtras, stepOf, type TurnRequest } from '../turn/steps.js';
import { needsApprovalText, type RunApproval } from '../turn/taint.js';
import { requestTokens, roomForSteps, tokensOf } from '../turn/tokens.js';
import { runTurn } from '../turn/turn.js';
import { cutOffSteps, eventsOf, saidIn, shortened, trustIn } from './messages.js';
import {
  authorisationFor,
  decisionOn,
  isSomebodyThere,
  type Principal,
  principalOf,
  questionOf,
} from './principal.js';

/** Number of tasks whose approval is remembered; for older ones, owners are asked again. */
const MOST_WORDS = 1_000;

const NOT_WAITED_FOR = 'Not waited for: in a task nothing can be waited for. Go on without it.';

export function createWork(services: Services): Work {
  /** The owners' decisions about whole runs, by task. */
  const words = new LRUCache<string, RunApproval>({ max: MOST_WORDS });
  const faultOf = (ask: WorkAsk, error: unknown): Fault => {
    const fields = { err: error, task: ask.task.id, why: describe(error) };
    services.log.error(fields, 'work on a task has failed');
    return error instanceof Fault ? error : new Fault('internal', describe(error), error);
  };
  return {
    async do(ask, signal) {
      const { id } = ask.task;
      const request = await begin(services, ask, words.get(id), signal).catch((error) => faultOf(ask, error));
      if (request instanceof Fault) {
        const { isTainted: tainted } = trustIn(ask.task, ask.messages, ask.isTainted);
        const nothing = { messages: ask.messages, steps: [], tainted, wasExternalRefused: false };
        return { kind: 'failed', fault: request, ...nothing };
      }
      const { room, personaId, senderId } = request.whose;
      const meter = services.dailyLimits.meter({ room, personaId, personId: senderId || null });
      const end = await request
        .run({ ...services, model: meter.model })
        .catch((error) => request.failed(faultOf(ask, error)))
        // The usage of a dropped request is charged as well.
        .finally(meter.settle);
      if (request.word === 'allowed' || request.word === 'refused') words.set(id, request.word);
      return end;
    },
  };
}

async function begin(
  services: Services,
  ask: WorkAsk,
  said: RunApproval | undefined,
  signal: AbortSignal,
): Promise<AgentRequest> {
  const whose = await principalOf(services, ask.task);
  const { personaId, senderId, chat } = whose;
  const place = { chatId: chat.id, channel: chat.channel, chatKind: chat.kind };
  const kind = { kind: 'agent' as const, ...place, personaId, senderId, allowed: ask.agent.tools };
  await services.toolsReady?.(kind, [], signal);
  const word = (await isSomebodyThere(services, whose)) ? (said ?? 'unasked') : 'nobody';
  const tools = services.toolsFor(kind);
  tellLeftOut(services, tools);
  return new AgentRequest(services, ask, signal, whose, tools, word);
}

class AgentRequest {
  private readonly steps: Step[] = [];
  /** The earlier messages, as they are sent. */
  private messages: ModelMessage[];
  /** The call that owners are being asked about. */
  private asked: AskedCall | null = null;

  constructor(
    private readonly services: Services,
    private readonly ask: WorkAsk,
    private readonly signal: AbortSignal,
    readonly whose: Principal,
    private readonly tools: ToolSet,
    /** The owners' decision about this run so far. */
    public word: RunApproval,
  ) {
    this.messages = ask.messages;
  }

  /** `paying.model` charges the payer. */
  async run(paying: Services): Promise<WorkEnd> {
    const { ask, signal, tools } = this;
    const most = requestTokens(paying, ask.agent.model);
    if (tokensOf(this.messages) + tools.tokens > most) this.shorten();
    for (;;) {
      const outcome = await runTurn(paying, this.turn(most));
      if (outcome.kind === 'suspended') {
        if (await this.goesOn()) continue;
        return this.dropped();
      }
      if (outcome.kind === 'dropped' || signal.aborted) return this.dropped();
      if (outcome.kind === 'answered' && outcome.text !== '') {
        return { kind: 'answered', text: outcome.text, ...this.done(outcome.text) };
      }
      const fault = outcome.kind === 'failed' ? outcome.fault : new Fault('model_empty', 'no words');
      if (fault.code !== 'context_too_long') return this.failed(fault);
      paying.log.warn({ task: ask.task.id, why: describe(fault) }, 'a request of a task did not fit');
      if (!this.shorten()) return this.failed(new Fault('task_too_long', fault.message, fault));
    }
  }

  failed(fault: Fault): WorkEnd {
    return { kind: 'failed', fault, ...this.done(null) };
  }

  private turn(most: number): TurnRequest {
    const { ask, whose, tools, messages, word, signal, services } = this;
    const { task, agent, round } = ask;
    const { personaId, room } = whose;
    const { callLimits, maxToolRounds, approvalMs } = services.settings;
    const tokens = roomForSteps(most, tokensOf(messages) + tools.tokens);
    return {
      ...this.acting(),
      callSeed: `${task.id} ${round}`,
      room,
      tools,
      maxToolRounds: agent.maxRounds ?? maxToolRounds,
      bounds: { ...callLimits, tokens },
      persona: { model: agent.model, temperature: null },
      messages,
      seen: new Map(),
      cause: { kind: 'turn', personaId, turnId: task.id },
      trust: trustIn(task, messages, ask.isTainted),
      run: word,
      approvalMs: word === 'nobody' ? null : approvalMs,
      save: (step, more) => this.save(step, more),
      traced: services.tracing,
      signal,
    };
  }

  private acting() {
    const { ask, whose, steps, tools } = this;
    const { id: turnId, request } = ask.task;
    const record = { room: whose.room, turnId, parentEventId: request.eventId ?? null };
    return { turnId, record, authorisation: authorisationFor(whose, ask), steps, tools };
  }

  /** Journals a call before it runs and its outcome afterwards. */
  private async save(step: Step, { entries = [], asked }: StepExtras = {}): Promise<boolean> {
    const { ask, services } = this;
    const events = eventsOf(services, step, this.steps);
    if (asked === undefined) {
      return (entries.length === 0 && events.length === 0) || ask.note({ entries, events });
    }
    const question = await questionOf(services, this.whose, ask, asked);
    if (!(await ask.note({ entries, events, question }))) return false;
    this.asked = asked;
    for (const { chatId } of question.posts) services.deliver.wake(chatId);
    return true;
  }

  /** Waits for the owners' decision. False if the request is over. */
  private async goesOn(): Promise<boolean> {
    const { ask, asked, steps, signal, tools } = this;
    this.asked = null;
    const last = steps.at(-1);
    // A tool asked the turn to wait.
    if (asked === null) return last?.kind === 'waiting' && this.settle(last.callId, NOT_WAITED_FOR);
    ask.waits(true);
    const decision = await decisionOn(this.services, asked, signal).finally(() => ask.waits(false));
    if (decision === 'ended' || signal.aborted) return false;
    const isYes = decision === 'approved';
    if (isAboutRun(asked)) this.word = isYes ? 'allowed' : 'refused';
    const { callId, arguments: given } = asked;
    if (isYes) {
      // The store knows who approved it.
      steps.push({ kind: 'approved', callId, arguments: given, by: '' });
      return true;
    }
    const tool = tools.tools.find(({ name }) => name === asked.tool);
    return this.settle(callId, tool?.isExternal ? needsApprovalText(tool, 'refused') : REFUSED[decision]);
  }

  private async settle(callId: string, content: string): Promise<boolean> {
    const call = calledIn(this.steps).find(({ id }) => id === callId);
    if (call === undefined) return false;
    const result = { content, failed: true };
    const step = stepOf(call, result);
    const entries = outcomesOf(this.acting(), call, result, this.services.clock.now());
    if (!(await this.save(step, { entries }))) return false;
    this.steps.push(step);
    return true;
  }

  private shorten(): boolean {
    const shorter = shortened(this.messages);
    this.messages = shorter ?? this.messages;
    return shorter !== null;
  }

  /** Gives every interrupted call a result that says so and, unless the task is over, an outcome in the journal. */
  private async dropped(): Promise<WorkEnd> {
    const { ask, steps, services } = this;
    const now = services.clock.now();
    const results = cutOffSteps(steps);
    const begun = steps.flatMap((each) =>
      each.kind === 'call' || each.kind === 'waiting' ? [each.callId] : [],
    );
    const entries = results
      .filter(({ callId }) => begun.includes(callId))
      .map(({ callId, content: error }): JournalWrite => {
        const id = callEntryId(ask.task.id, callId);
        return { kind: 'outcome', id, status: 'interrupted', results: { error }, at: now };
      });
    const events = results.flatMap((step) => eventsOf(services, step, steps));
    if (events.length > 0) await ask.note({ entries, events });
    steps.push(...results);
    return { kind: 'dropped', ...this.done(null) };
  }

  private done(answer: string | null): WorkDone {
    const { ask, messages, steps, tools } = this;
    const known = [...tools.tools, ...(tools.withheld ?? [])];
    const external = new Set(known.filter(({ isExternal }) => isExternal).map(({ name }) => name));
    const calls = calledIn(steps).filter(({ name }) => external.has(name));
    const wasRefused = (step: Step) =>
      step.kind === 'result' &&
      step.outside === undefined &&
      step.content.startsWith(NEEDS_INSTRUCTION) &&
      calls.some(({ id }) => id === step.callId);
    // Adds a result for each call that a fault left without one.
    const whole = [...steps, ...cutOffSteps(steps)];
    return {
      messages: saidIn(messages, whole, answer),
      steps: whole,
      tainted: isTainted(trustIn(ask.task, messages, ask.isTainted), steps),
      wasExternalRefused: steps.some(wasRefused),
    };
  }
}
