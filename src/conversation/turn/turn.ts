/**
 * Step 5 of the route: the model and its tools, in rounds, until there is an answer. Every answer with tool calls and
 * every call is stored before and after it runs, so that after a crash the turn resumes from its last stored step and
 * nothing runs twice. If a call waits for an outside result, the turn is suspended and resumes when the result has
 * come.
 */
import type { Audit } from '../../core/audit.js';
import type { Clock } from '../../core/clock.js';
import type { Zone } from '../../core/dates.js';
import { describe, Fault } from '../../core/errors.js';
import type { RoomId } from '../../core/ids.js';
import type { Log, Metrics } from '../../core/log.js';
import type { Cause, SeenTier } from '../../core/memory.js';
import type {
  ModelClient,
  ModelEvent,
  ModelMessage,
  ModelRequest,
  ToolCall,
  Usage,
} from '../../core/model.js';
import type { Persona } from '../../core/persona.js';
import type { AnyTool, Authorisation, ToolContext, ToolResult, ToolSet, Wait } from '../../core/tool.js';
import type { Step } from '../../core/transcript.js';
import {
  callsKept,
  fitted,
  mayCallAgain,
  refusalOf,
  replyIn,
  type TurnBounds,
  UNREADABLE,
} from './bounds.js';
import { cacheKeyOf, callId } from './keys.js';
import { INTERRUPTED, saidByCalls, stepMessages, wordsBeside } from './steps.js';
import { checkArguments, execute } from './tools.js';
import { addedUsage, countTokens, spentOn } from './usage.js';

export interface TurnServices {
  model: ModelClient;
  audit: Audit;
  zone: Pick<Zone, 'name'>;
  clock: Clock;
  log: Log;
  metrics: Metrics;
}

export interface TurnAsk {
  turnId: string;
  room: RoomId;
  tools: ToolSet;
  maxToolRounds: number;
  bounds: TurnBounds;
  persona: Pick<Persona, 'model' | 'temperature'>;
  /** System prompt, history, and finally the batch. */
  messages: ModelMessage[];
  /** What the prompt shows of tiers; the memory tools keep it current. */
  seen: Map<string, SeenTier>;
  authorisation: Authorisation;
  /** Stored with what tools write. */
  cause: Cause;
  /** Steps stored by an earlier run of this turn; grows as the turn proceeds. */
  steps: Step[];
  /** Stores a step. False when the claim is lost: the turn must then end silently. */
  save(step: Step): Promise<boolean>;
  /** Nobody reads the answer: once tools have answered, an empty one is its end. */
  isUnread?: true;
  /** Shows the chat the text of the current round so far; empty when it starts over. */
  show?(text: string): void;
  signal: AbortSignal;
}

export type TurnOutcome =
  /** `cut`: a request of it was read only in part by the model server. */
  | {
      kind: 'answered';
      text: string;
      /** Set where there are no words: what was done instead of an answer. */
      wordless?: string;
      usage: Usage | null;
      last: Usage | null;
      cut?: true;
    }
  | { kind: 'failed'; fault: Fault; usage: Usage | null }
  /** A call waits for an outside result; the step is stored. */
  | ({ kind: 'suspended' } & Wait)
  /** Aborted, or the claim was lost. */
  | { kind: 'dropped' };

export async function runTurn(services: TurnServices, ask: TurnAsk): Promise<TurnOutcome> {
  const { steps } = ask;
  let usage: Usage | null = null;
  let cut = false;
  for (;;) {
    const stopped = await finishCalls(services, ask);
    if (stopped) return stopped;
    const rounds = steps.filter((step) => step.kind === 'answer').length;
    const mayCall = rounds < ask.maxToolRounds && mayCallAgain(steps, ask.bounds);
    const event = await askModel(services, ask, mayCall ? 'may call' : 'may not call');
    if (ask.signal.aborted) return { kind: 'dropped' };
    if (event.kind === 'failed') return { kind: 'failed', fault: event.fault, usage };
    usage = addedUsage(usage, spentOn(event));
    countTokens(services.metrics, spentOn(event));
    cut ||= event.cut === true;

    if (!mayCall && event.calls.length > 0 && event.text.trim() === '')
      return lastRefusal(services, ask, usage, cut);
    if (event.calls.length === 0 || !mayCall) return answered(steps, event, usage, cut);
    if (event.cut) return { kind: 'failed', fault: new Fault('context_too_long', CALLS_UNSEEN), usage };
    const kept = callsKept(event.calls);
    const calls = kept.map((call, n) => ({ ...call, id: callId(ask.turnId, rounds, n) }));
    // By their place, what came along with the calls still belongs to them.
    const { text } = event;
    const echo = kept.length === event.calls.length && event.echo;
    if (!(await keep(ask, { kind: 'answer', text, calls, ...(echo && { echo }) })))
      return { kind: 'dropped' };
  }
}

/** A model that calls although it may not, and says nothing else, is asked once without any tools. */
async function lastRefusal(
  services: TurnServices,
  ask: TurnAsk,
  usage: Usage | null,
  cut: boolean,
): Promise<TurnOutcome> {
  const event = await askModel(services, ask, 'without tools');
  if (ask.signal.aborted) return { kind: 'dropped' };
  if (event.kind === 'failed') return { kind: 'failed', fault: event.fault, usage };
  countTokens(services.metrics, spentOn(event));
  return answered(ask.steps, event, addedUsage(usage, spentOn(event)), cut || event.cut === true);
}

function answered(
  steps: Step[],
  last: ModelEvent & { kind: 'done' },
  usage: Usage | null,
  cut: boolean,
): TurnOutcome {
  const text = last.text.trim() || wordsBeside(steps);
  const whole = replyIn(text, last.truncated && last.text.trim() !== '');
  const done = whole === '' ? saidByCalls(steps) : '';
  const wordless = done === '' ? {} : { wordless: done };
  return { kind: 'answered', text: whole, ...wordless, usage, last: last.usage, ...(cut && { cut }) };
}

async function askModel(
  { model, clock, metrics }: TurnServices,
  ask: TurnAsk,
  /** The last round sends the same tools as those before it, so that the server's prompt cache holds. */
  tools: 'may call' | 'may not call' | 'without tools',
): Promise<ModelEvent & { kind: 'done' | 'failed' }> {
  const started = clock.now();
  const { persona, messages, steps } = ask;
  const request: ModelRequest = {
    messages: steps.length === 0 ? messages : [...messages, ...stepMessages(steps)],
    tools: tools === 'without tools' ? [] : ask.tools.descriptions,
    ...(tools === 'may not call' && { mayCall: false }),
    // The last message is told anew next time: without what was recalled for it, and its calls in fewer words.
    stableThrough: Math.max(0, messages.length - 2),
    ...(persona.model !== null && { model: persona.model }),
    ...(persona.temperature !== null && { temperature: persona.temperature }),
    cacheKey: cacheKeyOf(ask.room, ask.authorisation.personaId),
    ...(mayBeEmpty(ask) && { mayBeEmpty: true }),
  };
  let written = '';
  if (steps.length > 0) ask.show?.('');
  for await (const event of model.stream(request, ask.signal)) {
    if (event.kind === 'text' || event.kind === 'restart') {
      written = event.kind === 'text' ? written + event.delta : '';
      ask.show?.(written);
      continue;
    }
    metrics.observe('model_seconds', (clock.now() - started) / 1000);
    return event;
  }
  return { kind: 'failed', fault: new Fault('internal', 'the model client ended its stream without a word') };
}

/** Runs every call of the last answer that has no result yet. A returned outcome ends or suspends the turn. */
async function finishCalls(services: TurnServices, ask: TurnAsk): Promise<TurnOutcome | null> {
  const { steps } = ask;
  const answer = steps.findLast((step) => step.kind === 'answer');
  for (const [n, call] of (answer?.calls ?? []).entries()) {
    if (steps.some((step) => step.kind === 'result' && step.callId === call.id)) continue;
    const waits = steps.find((step) => step.kind === 'waiting' && step.callId === call.id);
    if (waits?.kind === 'waiting') return { kind: 'suspended', waitsFor: waits.waitsFor, until: waits.until };
    const tool = ask.tools.tools.find((candidate) => candidate.name === call.name);
    const isBegun = steps.some((step) => step.kind === 'call' && step.callId === call.id);
    if (isBegun && tool?.risk !== 'low') {
      const interrupted = { kind: 'result', callId: call.id, content: INTERRUPTED, failed: true } as const;
      if (!(await keep(ask, interrupted))) return { kind: 'dropped' };
      continue;
    }
    const refusal = isBegun ? null : refusalOf(call, n, ask.tools.tools, steps, ask.bounds);
    if (refusal !== null) {
      if (!(await keep(ask, { kind: 'result', callId: call.id, ...refusal }))) return { kind: 'dropped' };
      continue;
    }
    if (!isBegun && !(await keep(ask, { kind: 'call', callId: call.id }))) return { kind: 'dropped' };
    const result = await runCall(services, ask, call, tool);
    if (ask.signal.aborted) return { kind: 'dropped' };
    if ('waitsFor' in result) {
      const { waitsFor, until } = result;
      const isKept = await keep(ask, { kind: 'waiting', callId: call.id, waitsFor, until });
      return isKept ? { kind: 'suspended', waitsFor, until } : { kind: 'dropped' };
    }
    const told = fitted(result, steps, ask.bounds);
    if (!(await keep(ask, { kind: 'result', callId: call.id, ...told }))) return { kind: 'dropped' };
  }
  return null;
}

async function runCall(
  services: TurnServices,
  ask: TurnAsk,
  call: ToolCall,
  tool: AnyTool | undefined,
): Promise<ToolResult | Wait> {
  const result = await resultOf(services, ask, call, tool);
  const failed = 'failed' in result && result.failed;
  services.metrics.count('tool_calls_total', { tool: tool?.name ?? 'unknown', failed: String(failed) });
  return result;
}

async function resultOf(
  { clock, zone, log, audit }: TurnServices,
  ask: TurnAsk,
  call: ToolCall,
  tool: AnyTool | undefined,
): Promise<ToolResult | Wait> {
  if (!tool) {
    const names = ask.tools.tools.map((known) => known.name).join(', ');
    const exists = ask.tools.descriptions.some((known) => known.name === call.name);
    const why = exists
      ? `${call.name} cannot be used here, so nothing was done.`
      : `There is no tool named ${call.name}.`;
    return { content: `${why} There are: ${names}.`, failed: true };
  }
  const parsed = parseArguments(call);
  if (parsed === null) return { content: UNREADABLE, failed: true };
  const checked = checkArguments(tool, parsed);
  if (!checked.ok) return { content: checked.faults, failed: true };
  const context: ToolContext = {
    authorisation: ask.authorisation,
    room: ask.room,
    turnId: ask.turnId,
    callId: call.id,
    signal: ask.signal,
    now: clock.now(),
    timezone: zone.name,
    log,
    cause: ask.cause,
    seen: ask.seen,
  };
  try {
    return await execute(audit, tool, checked.value, context);
  } catch (error) {
    log.error({ err: error, tool: tool.name, turn: ask.turnId }, 'a tool failed');
    const reason = error instanceof Fault ? describe(error) : 'an unexpected fault in the gateway';
    return {
      content: `${tool.name} failed: ${reason}. Nothing is known to have been changed.`,
      failed: true,
    };
  }
}

/** null if they are no JSON object. Many models write null for what they leave out. */
function parseArguments(call: ToolCall): Record<string, unknown> | null {
  try {
    const parsed: unknown = JSON.parse(call.arguments.trim() || '{}');
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return null;
    return Object.fromEntries(Object.entries(parsed).filter(([, value]) => value !== null));
  } catch {
    return null;
  }
}

async function keep(ask: TurnAsk, step: Step): Promise<boolean> {
  if (!(await ask.save(step))) return false;
  ask.steps.push(step);
  return true;
}

/** What it would write could take the place of memory that it has not seen. */
const CALLS_UNSEEN =
  'The model server read only a part of the request, and the model called tools after it; they were not run.';

function mayBeEmpty({ steps, isUnread }: TurnAsk): boolean {
  if (wordsBeside(steps) !== '' || saidByCalls(steps) !== '') return true;
  return isUnread === true && steps.some(({ kind }) => kind === 'result');
}
