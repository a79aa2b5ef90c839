/**
 * Step 5 of the route: the model and its tools, in rounds, until there is an answer. Each model answer that
 * calls tools and each call is stored before and after, so that a turn whose process died goes on from its last
 * stored step and nothing that may have happened happens again.
 */
import { createHash } from 'node:crypto';
import type { Clock } from '../core/clock.js';
import { describe, Fault } from '../core/errors.js';
import type { Log, Metrics } from '../core/log.js';
import type { Cause } from '../core/memory.js';
import type {
  ModelClient,
  ModelEvent,
  ModelMessage,
  ToolCall,
  ToolDescription,
  Usage,
} from '../core/model.js';
import type { AnyTool, Authorisation, ToolContext, ToolResult } from '../core/tool.js';
import type { Step } from '../core/transcript.js';
import type { Context } from './context.js';
import { INTERRUPTED, stepMessages } from './history.js';

export interface TurnParts {
  model: ModelClient;
  tools: AnyTool[];
  toolDescriptions: ToolDescription[];
  maxToolRounds: number;
  timezone: string;
  clock: Clock;
  log: Log;
  metrics: Metrics;
}

export interface TurnAsk {
  turnId: string;
  context: Pick<Context, 'persona' | 'messages' | 'seen'>;
  authorisation: Authorisation;
  /** Kept with what tools write. */
  cause: Cause;
  /** Stored by an earlier try of this turn; grows as this one goes on. */
  steps: Step[];
  /** Stores a step. False when the claim is lost: then the turn must end without a word. */
  save(step: Step): Promise<boolean>;
  /** Told all that the model has said so far in the present round, again and again; nothing, where it begins anew. */
  onText?(text: string): void;
  signal: AbortSignal;
}

export type TurnOutcome =
  | { kind: 'answered'; text: string; usage: Usage | null; last: Usage | null }
  | { kind: 'failed'; fault: Fault; usage: Usage | null }
  /** Aborted, or the claim was lost. */
  | { kind: 'dropped' };

export async function runTurn(parts: TurnParts, ask: TurnAsk): Promise<TurnOutcome> {
  const { steps } = ask;
  let usage: Usage | null = null;
  if (!(await finishCalls(parts, ask))) return { kind: 'dropped' };

  for (;;) {
    const rounds = steps.filter((step) => step.kind === 'answer').length;
    const mayCall = rounds < parts.maxToolRounds && unreadableCalls(steps) < 2;
    const event = await askModel(parts, ask, mayCall);
    if (ask.signal.aborted) return { kind: 'dropped' };
    if (event.kind === 'failed') return { kind: 'failed', fault: event.fault, usage };
    usage = addedUsage(usage, event.usage);
    countTokens(parts.metrics, event.usage);

    if (event.calls.length === 0 || !mayCall) {
      const text = event.text.trim() || lastWords(steps);
      return { kind: 'answered', text, usage, last: event.usage };
    }
    const calls = event.calls.map((call, n) => ({ ...call, id: callId(ask.turnId, rounds, n) }));
    if (!(await keep(ask, { kind: 'answer', text: event.text, calls }))) return { kind: 'dropped' };
    if (!(await finishCalls(parts, ask))) return { kind: 'dropped' };
  }
}

async function askModel(
  parts: TurnParts,
  ask: TurnAsk,
  mayCall: boolean,
): Promise<ModelEvent & { kind: 'done' | 'failed' }> {
  const started = parts.clock.now();
  const { persona, messages } = ask.context;
  const request: {
    messages: ModelMessage[];
    tools: ToolDescription[];
    model?: string;
    temperature?: number;
  } = {
    messages: [...messages, ...stepMessages(ask.steps)],
    tools: mayCall ? parts.toolDescriptions : [],
  };
  if (persona.model !== null) request.model = persona.model;
  if (persona.temperature !== null) request.temperature = persona.temperature;
  let written = '';
  if (ask.steps.length > 0) ask.onText?.('');
  for await (const event of parts.model.stream(request, ask.signal)) {
    if (event.kind === 'text' || event.kind === 'restart') {
      written = event.kind === 'text' ? written + event.delta : '';
      ask.onText?.(written);
      continue;
    }
    parts.metrics.observe('model_seconds', (parts.clock.now() - started) / 1000);
    return event;
  }
  return { kind: 'failed', fault: new Fault('internal', 'the model client ended its stream without a word') };
}

/** Runs every call of the last answer that has no result yet. False when the turn must end. */
async function finishCalls(parts: TurnParts, ask: TurnAsk): Promise<boolean> {
  const answer = ask.steps.findLast((step) => step.kind === 'answer');
  if (!answer) return true;
  for (const call of answer.calls) {
    if (ask.steps.some((step) => step.kind === 'result' && step.callId === call.id)) continue;
    const tool = parts.tools.find((candidate) => candidate.name === call.name);
    const begun = ask.steps.some((step) => step.kind === 'call' && step.callId === call.id);
    if (begun && !tool?.repeatable) {
      if (!(await keep(ask, { kind: 'result', callId: call.id, content: INTERRUPTED, failed: true })))
        return false;
      continue;
    }
    if (!begun && !(await keep(ask, { kind: 'call', callId: call.id }))) return false;
    const result = await runCall(parts, ask, call, tool);
    if (ask.signal.aborted) return false;
    if (!(await keep(ask, { kind: 'result', callId: call.id, ...result }))) return false;
  }
  return true;
}

async function runCall(
  parts: TurnParts,
  ask: TurnAsk,
  call: ToolCall,
  tool: AnyTool | undefined,
): Promise<ToolResult> {
  const result = await resultOf(parts, ask, call, tool);
  parts.metrics.count('tool_calls_total', { tool: tool?.name ?? 'unknown', failed: String(result.failed) });
  return result;
}

async function resultOf(
  parts: TurnParts,
  ask: TurnAsk,
  call: ToolCall,
  tool: AnyTool | undefined,
): Promise<ToolResult> {
  if (!tool) {
    const names = parts.tools.map((known) => known.name).join(', ');
    return { content: `There is no tool named ${call.name}. There are: ${names}.`, failed: true };
  }
  const given = argumentsOf(call);
  if (given === null) return { content: UNREADABLE, failed: true };
  const checked = tool.parameters.safeParse(given);
  if (!checked.success) {
    const faults = checked.error.issues.map(
      (issue) => `${issue.path.join('.') || 'arguments'}: ${issue.message}`,
    );
    return { content: `These arguments do not fit ${tool.name}: ${faults.join('; ')}`, failed: true };
  }
  const context: ToolContext = {
    authorisation: ask.authorisation,
    signal: ask.signal,
    now: parts.clock.now(),
    timezone: parts.timezone,
    log: parts.log,
    cause: ask.cause,
    seen: ask.context.seen,
  };
  try {
    // The tool's own schema has just checked what it is given.
    return await tool.execute(checked.data as never, context);
  } catch (error) {
    parts.log.error({ err: error, tool: tool.name, turn: ask.turnId }, 'a tool failed');
    const reason = error instanceof Fault ? describe(error) : 'an unexpected fault in the gateway';
    return {
      content: `${tool.name} failed: ${reason}. Nothing is known to have been changed.`,
      failed: true,
    };
  }
}

const UNREADABLE = 'The arguments were not valid JSON, so nothing was done. Call again with a JSON object.';

/** Told once that arguments were not JSON, a model may try again; then it has to answer without tools. */
function unreadableCalls(steps: Step[]): number {
  return steps.filter((step) => step.kind === 'result' && step.content === UNREADABLE).length;
}

/** null when they are no JSON object. Many models write null for what they leave out. */
function argumentsOf(call: ToolCall): Record<string, unknown> | null {
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

/**
 * Servers number calls as they like, some from zero in every answer. Ours are unique, stay the same when a turn
 * is taken up again, and have the one form that every server takes: nine letters and digits.
 */
function callId(turnId: string, round: number, n: number): string {
  const digest = createHash('sha1').update(`${turnId} ${round} ${n}`).digest('hex');
  return BigInt(`0x${digest}`).toString(36).slice(0, 9);
}

/** A model that has said all beside its tool calls may end with nothing. */
function lastWords(steps: Step[]): string {
  const said = steps.findLast((step) => step.kind === 'answer' && step.text.trim() !== '');
  return said?.kind === 'answer' ? said.text.trim() : '';
}

/** Of several requests; where a server told none, what the others told. */
export function addedUsage(a: Usage | null, b: Usage | null): Usage | null {
  if (!a || !b) return a ?? b;
  return { inputTokens: a.inputTokens + b.inputTokens, outputTokens: a.outputTokens + b.outputTokens };
}

export function countTokens(metrics: Metrics, usage: Usage | null): void {
  if (!usage) return;
  metrics.count('model_tokens_total', { direction: 'input' }, usage.inputTokens);
  metrics.count('model_tokens_total', { direction: 'output' }, usage.outputTokens);
}
