/**
 * Runs one request to an agent: rights, the loop of model and tools (step 5 of the route, as in a persona's turn), approval by
 * owners, and the outcome. Steps stay in memory because a task is not resumed after a crash, but every call is journalled before it
 * runs.
 */
import { type AskedCall, isAboutRun } from '../../core/access.js';
import { describe, Fault } from '../../core/errors.js';
import { callEntryId } from '../../core/ids.js';
import type { JournalWrite } from '../../core/journal.js';
import type { ModelMessage } from '../../core/model.js';
import { NEEDS_INSTRUCTION, type Work, type WorkAsk, type WorkDone, type WorkEnd } from '../../core/task.js';
import type { ToolSet } from '../../core/tool.js';
import type { Step } from '../../core/transcript.js';
import { refusedWith } from '../approvals.js';
import { requestTokens, type Services } from '../services.js';
import { roomForSteps } from '../turn/bounds.js';
import { outcomesOf } from '../turn/calls.js';
import { isTainted, type StepExtras, stepOf, type TurnRequest } from '../turn/steps.js';
import { needsApprovalText, type RunApproval } from '../turn/taint.js';
import { tokensOf } from '../turn/tokens.js';
import { runTurn } from '../turn/turn.js';
import { cutOffSteps, eventsOf, saidIn, shortened, trustIn } from './messages.js';
import {
  authorisationFor,
  decisionOn,
  isSomebodyThere,
  type Principal,
  payerFor,
  principalOf,
  questionOf,
} from './principal.js';

interface AgentRequest {
  ask: WorkAsk;
  signal: AbortSignal;
  whose: Principal;
  tools: ToolSet;
  /** The earlier messages, as they are sent. */
  messages: ModelMessage[];
  steps: Step[];
  /** The owners' decision about this run so far. */
  word: RunApproval;
  /** The call that owners are being asked about. */
  asked: AskedCall | null;
}

/** Number of tasks whose approval is remembered; for older ones, owners are asked again. */
const MOST_WORDS = 1_000;

const NOT_WAITED_FOR = 'Not waited for: in a task nothing can be waited for. Go on without it.';

export function createWork(services: Services): Work {
  /** The owners' decisions about whole runs, by task. */
  const words = new Map<string, RunApproval>();

  return {
    async do(ask, signal) {
      const request = await begun(services, ask, words.get(ask.task.id), signal).catch((error: unknown) =>
        faultOf(services, ask, error),
      );
      if (request instanceof Fault) return { kind: 'failed', fault: request, ...doneOf(ask) };
      const meter = services.dailyLimits.meter(payerFor(request.whose));
      const paying = { ...services, model: meter.model };
      const end = await answered(paying, request)
        .catch((error: unknown) => failed(request, faultOf(services, ask, error)))
        // The usage of a dropped request is charged as well.
        .finally(meter.settle);
      if (request.word === 'allowed' || request.word === 'refused') words.set(ask.task.id, request.word);
      const [oldest] = words.keys();
      if (words.size > MOST_WORDS && oldest !== undefined) words.delete(oldest);
      return end;
    },
  };
}

async function begun(
  services: Services,
  ask: WorkAsk,
  said: RunApproval | undefined,
  signal: AbortSignal,
): Promise<AgentRequest> {
  const whose = await principalOf(services, ask.task);
  const { personaId, senderId, chat } = whose;
  const kind = {
    ...{ kind: 'agent' as const, chatId: chat.id, personaId, senderId, allowed: ask.agent.tools },
    ...{ channel: chat.channel, chatKind: chat.kind },
  };
  await services.toolsReady?.(kind, [], signal);
  const word = (await isSomebodyThere(services, whose)) ? (said ?? 'unasked') : 'nobody';
  const tools = services.toolsFor(kind);
  return { ask, signal, whose, tools, messages: ask.messages, steps: [], word, asked: null };
}

/** `services.model` charges the payer. */
async function answered(services: Services, request: AgentRequest): Promise<WorkEnd> {
  const { ask, signal, tools } = request;
  const most = requestTokens(services, ask.agent.model);
  if (tokensOf(request.messages) + tools.tokens > most) shorten(request);
  for (;;) {
    const outcome = await runTurn(services, turnOf(services, request, most));
    if (outcome.kind === 'suspended') {
      if (await goesOn(services, request)) continue;
      return dropped(services, request);
    }
    if (outcome.kind === 'dropped' || signal.aborted) return dropped(services, request);
    if (outcome.kind === 'failed' || outcome.text === '') {
      const fault = outcome.kind === 'failed' ? outcome.fault : new Fault('model_empty', 'no words');
      if (fault.code !== 'context_too_long') return failed(request, fault);
      services.log.warn({ task: ask.task.id, why: describe(fault) }, 'a request of a task did not fit');
      if (shorten(request)) continue;
      return failed(request, new Fault('task_too_long', fault.message, fault));
    }
    return { kind: 'answered', text: outcome.text, ...doneIn(request, outcome.text) };
  }
}

function turnOf(services: Services, request: AgentRequest, most: number): TurnRequest {
  const { ask, whose, tools, messages, word, signal } = request;
  const { task, agent, round } = ask;
  const { personaId, room } = whose;
  return {
    ...actingIn(request),
    callSeed: `${task.id} ${round}`,
    room,
    tools,
    maxToolRounds: agent.maxRounds ?? services.settings.maxToolRounds,
    bounds: {
      ...services.settings.callLimits,
      tokens: roomForSteps(most, tokensOf(messages) + tools.tokens),
    },
    persona: { model: agent.model, temperature: null },
    messages,
    seen: new Map(),
    cause: { kind: 'turn', personaId, turnId: task.id },
    trust: trustIn(task, messages, ask.isTainted),
    run: word,
    approvalMs: word === 'nobody' ? null : services.settings.approvalMs,
    save: (step, more) => save(services, request, step, more),
    signal,
  };
}

function actingIn({ ask, whose, steps, tools }: AgentRequest) {
  const { id: turnId, request } = ask.task;
  const record = { room: whose.room, turnId, parentEventId: request.eventId ?? null };
  return { turnId, record, authorisation: authorisationFor(whose, ask), steps, tools };
}

/** Journals a call before it runs and its outcome afterwards. */
async function save(
  services: Services,
  request: AgentRequest,
  step: Step,
  { entries = [], asked }: StepExtras = {},
): Promise<boolean> {
  const { ask, whose, steps } = request;
  const { store, owner, deliver, redact, clock } = services;
  const events = eventsOf(step, steps, { redact, now: clock.now() });
  if (asked === undefined) {
    return (entries.length === 0 && events.length === 0) || ask.note({ entries, events });
  }
  if (!(await ask.note({ events }))) return false;
  const question = await questionOf(services, whose, ask, asked);
  if (!(await store.askForTask({ id: ask.task.id, owner }, question, entries))) return false;
  request.asked = asked;
  for (const { chatId } of question.posts) deliver.wake(chatId);
  return true;
}

/** Waits for the owners' decision. False if the request is over. */
async function goesOn(services: Services, request: AgentRequest): Promise<boolean> {
  const { ask, asked, steps, signal, tools } = request;
  request.asked = null;
  if (asked === null) return settleWait(services, request);
  ask.waits(true);
  const decision = await decisionOn(services, asked, signal).finally(() => ask.waits(false));
  if (decision === 'ended' || signal.aborted) return false;
  const isYes = decision === 'approved';
  if (isAboutRun(asked)) request.word = isYes ? 'allowed' : 'refused';
  const { callId, arguments: given } = asked;
  if (isYes) {
    // The store knows who approved it.
    steps.push({ kind: 'approved', callId, arguments: given, by: '' });
    return true;
  }
  const tool = tools.tools.find(({ name }) => name === asked.tool);
  const content = tool?.isExternal ? needsApprovalText(tool, 'refused') : refusedWith(decision);
  return settle(services, request, callId, content);
}

/** A tool asked the turn to wait. */
async function settleWait(services: Services, request: AgentRequest): Promise<boolean> {
  const step = request.steps.at(-1);
  return step?.kind === 'waiting' && settle(services, request, step.callId, NOT_WAITED_FOR);
}

async function settle(
  services: Services,
  request: AgentRequest,
  callId: string,
  content: string,
): Promise<boolean> {
  const { steps } = request;
  const call = steps
    .flatMap((each) => (each.kind === 'answer' ? each.calls : []))
    .find(({ id }) => id === callId);
  if (call === undefined) return false;
  const result = { content, failed: true };
  const step = stepOf(call, result);
  const entries = outcomesOf(actingIn(request), call, result, services.clock.now());
  if (!(await save(services, request, step, { entries }))) return false;
  steps.push(step);
  return true;
}

/** False if nothing is left to shorten. */
function shorten(request: AgentRequest): boolean {
  const shorter = shortened(request.messages);
  if (shorter !== null) request.messages = shorter;
  return shorter !== null;
}

function failed(request: AgentRequest, fault: Fault): WorkEnd {
  return { kind: 'failed', fault, ...doneIn(request, null) };
}

/** Gives every interrupted call a result that says so and, unless the task is over, an outcome in the journal. */
async function dropped(services: Services, request: AgentRequest): Promise<WorkEnd> {
  const { ask, steps } = request;
  const now = services.clock.now();
  const entries: JournalWrite[] = [];
  const results = cutOffSteps(steps);
  for (const { callId, content: error } of results) {
    const id = callEntryId(ask.task.id, callId);
    const isNoted = steps.some(
      (step) => (step.kind === 'call' || step.kind === 'waiting') && step.callId === callId,
    );
    if (isNoted) entries.push({ kind: 'outcome', id, status: 'interrupted', results: { error }, at: now });
  }
  const { redact } = services;
  const events = results.flatMap((step) => eventsOf(step, steps, { redact, now }));
  if (events.length > 0) await ask.note({ entries, events });
  steps.push(...results);
  return { kind: 'dropped', ...doneIn(request, null) };
}

function doneIn({ ask, messages, steps, tools }: AgentRequest, answer: string | null): WorkDone {
  const known = [...tools.tools, ...(tools.withheld ?? [])];
  const external = new Set(known.filter(({ isExternal }) => isExternal).map(({ name }) => name));
  const calls = steps.flatMap((step) => (step.kind === 'answer' ? step.calls : []));
  const wasRefused = (step: Step) =>
    step.kind === 'result' &&
    step.outside === undefined &&
    step.content.startsWith(NEEDS_INSTRUCTION) &&
    calls.some(({ id, name }) => id === step.callId && external.has(name));
  // Adds a result for each call that a fault left without one.
  const whole = [...steps, ...cutOffSteps(steps)];
  return {
    messages: saidIn(messages, whole, answer),
    steps: whole,
    tainted: isTainted(trustIn(ask.task, messages, ask.isTainted), steps),
    wasExternalRefused: steps.some(wasRefused),
  };
}

/** For a request that has not begun. */
function doneOf({ task, messages, isTainted: wasTainted }: WorkAsk): WorkDone {
  const { isTainted: tainted } = trustIn(task, messages, wasTainted);
  return { messages, steps: [], tainted, wasExternalRefused: false };
}

function faultOf({ log }: Services, { task }: WorkAsk, error: unknown): Fault {
  log.error({ err: error, task: task.id, why: describe(error) }, 'work on a task has failed');
  return error instanceof Fault ? error : new Fault('internal', describe(error), error);
}
