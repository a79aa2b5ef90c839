/**
 * Step 5 of the route: one call of a tool: whether there is such a tool and its arguments fit, whether a person has to
 * allow it first, and what comes of it within its time.
 */

import { redactor } from '../../core/command-env.js';
import { cutAt } from '../../core/cut.js';
import { describe, Fault } from '../../core/errors.js';
import type { ToolCall } from '../../core/model.js';
import type { AnyTool, ToolContext, ToolResult, Wait } from '../../core/tool.js';
import { argumentsOf } from './arguments.js';
import type { TurnAsk, TurnServices } from './ask.js';
import { TOO_DEEP, UNREADABLE } from './bounds.js';
import { type Timed, withinTime } from './deadline.js';
import { wordsOfWithheld } from './leave.js';
import { isTainted } from './steps.js';
import { whyToAsk } from './taint.js';
import { checkArguments, execute, unknownArguments } from './tools.js';

export interface CallResult extends ToolResult {
  /** It was left to itself: nobody knows what comes of it. */
  unknown?: true;
}

/** A call that can run, with arguments that were validated. */
export interface Ready {
  kind: 'ready';
  call: ToolCall;
  tool: AnyTool;
  given: unknown;
}

export type Prepared =
  | Ready
  /** It is no call that could run. */
  | { kind: 'unfit'; tool: string; result: CallResult };

const DEFAULT_MS = 120_000;
/** How many arguments that there are not are named to the model, and how much of each name. */
const MOST_NAMED = 5;
const NAMED_CHARS = 60;

/** `call` holds the arguments that a person has approved, if one had to. */
export function prepared(ask: TurnAsk, call: ToolCall): Prepared {
  const tool = ask.tools.tools.find((candidate) => candidate.name === call.name);
  const unfit = (content: string): Prepared => ({
    ...{ kind: 'unfit', tool: tool?.name ?? 'unknown' },
    result: { content, failed: true },
  });
  const withheld = tool ? undefined : ask.tools.withheld?.find(({ name }) => name === call.name);
  if (withheld) return unfit(wordsOfWithheld(withheld));
  if (!tool) {
    const names = ask.tools.tools.map((known) => known.name).join(', ');
    const exists = ask.tools.descriptions.some((known) => known.name === call.name);
    const why = exists
      ? `${call.name} cannot be used here, so nothing was done.`
      : `There is no tool named ${call.name}.`;
    return unfit(`${why} There are: ${names}.`);
  }
  const read = argumentsOf(call.arguments);
  if (read.kind === 'unreadable') return unfit(UNREADABLE);
  if (read.kind === 'too deep') return unfit(TOO_DEEP);
  const checked = checkArguments(tool, withoutNulls(read.given));
  const inVain = tool.whyInVain?.(ask.authorisation) ?? null;
  if (checked.ok && inVain !== null) return unfit(inVain);
  return checked.ok ? { kind: 'ready', call, tool, given: checked.value } : unfit(checked.faults);
}

/** What is wrong with arguments that the tool does not know: nobody is asked about what has no part in what runs; null: nothing. */
export function whyUnknown({ call, tool }: Ready): string | null {
  const read = argumentsOf(call.arguments);
  const unknown = read.kind === 'object' ? unknownArguments(tool, read.given) : [];
  if (unknown.length === 0) return null;
  const names = unknown.slice(0, MOST_NAMED).map((name) => JSON.stringify(cutAt(name, NAMED_CHARS)));
  return `Not run, and nobody was asked: ${tool.name} has no argument ${names.join(', ')}. Call it again without.`;
}

/** Why a person has to allow it first; null: nobody has to. */
export async function whyAsked(
  services: TurnServices,
  ask: TurnAsk,
  { tool, call, given }: Ready,
): Promise<string | null> {
  try {
    return await whyToAsk(tool, given, contextOf(services, ask, call, ask.signal), ask.trust);
  } catch (error) {
    services.log.error(
      { err: error, tool: tool.name, turn: ask.turnId },
      'it is not known where a call reaches',
    );
    return 'It is not known where this reaches.';
  }
}

/** null: it was aborted, and nobody knows what came of it. */
export async function resultOf(
  services: TurnServices,
  ask: TurnAsk,
  { call, tool, given }: Ready,
  signal: AbortSignal,
): Promise<CallResult | Wait | null> {
  const { clock, log, audit, metrics } = services;
  const ms = tool.timeoutMs ?? DEFAULT_MS;
  const timed = await withinTime({ clock, ms, signal }, (within) =>
    execute(audit, tool, given, contextOf(services, ask, call, within)),
  );
  if (timed.kind !== 'done' && signal.aborted) return null;
  const told = timed.kind === 'done' ? timed.result : failureOf(tool, Math.ceil(ms / 1000), timed);
  const result = 'waitsFor' in told ? told : withoutSecrets(told, ask);
  if (timed.kind === 'left')
    log.warn({ tool: tool.name, turn: ask.turnId }, 'a tool call did not end in time');
  if (timed.kind === 'failed')
    log.error({ err: timed.error, tool: tool.name, turn: ask.turnId }, 'a tool failed');
  if ('waitsFor' in result) return result;
  const failed = String(result.failed);
  metrics.count('tool_calls_total', { tool: tool.name, failed });
  return tool.isFromOutside && result.inside === undefined ? { ...result, outside: true } : result;
}

/** What came of a call that a crash cut off, if its tool can tell; null: nobody knows. */
export async function whatCame(
  services: TurnServices,
  ask: TurnAsk,
  call: ToolCall,
): Promise<CallResult | null> {
  const tool = ask.tools.tools.find((candidate) => candidate.name === call.name);
  return (await tool?.whatCame?.(contextOf(services, ask, call, ask.signal))) ?? null;
}

/** A command of an agent's may have left a secret of its task anywhere; no tool shows it to the model. */
function withoutSecrets(result: CallResult, { authorisation: { agent } }: TurnAsk): CallResult {
  return agent ? { ...result, content: redactor(agent.env)(result.content) } : result;
}

function contextOf(
  { clock, zone, log }: TurnServices,
  ask: TurnAsk,
  call: ToolCall,
  signal: AbortSignal,
): ToolContext {
  const tainted = isTainted(ask.trust, ask.steps);
  return {
    authorisation: ask.authorisation,
    room: ask.room,
    turnId: ask.turnId,
    callId: call.id,
    signal,
    now: clock.now(),
    timezone: zone.name,
    log,
    cause: tainted ? { ...ask.cause, tainted } : ask.cause,
    seen: ask.seen,
    isTainted: tainted,
    ...(ask.record.parentEventId !== null && { eventId: ask.record.parentEventId }),
  };
}

/** Many models write null for what they leave out. */
function withoutNulls(given: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
}

function failureOf(
  { name }: AnyTool,
  seconds: number,
  timed: Exclude<Timed<unknown>, { kind: 'done' }>,
): CallResult {
  if (timed.kind === 'left') {
    const content = `${name} did not end within ${seconds} seconds and was given up: its outcome is unknown, so check before you repeat it.`;
    return { content, failed: true, unknown: true };
  }
  if (timed.isLate) {
    const content = `${name} was ended after ${seconds} seconds: what it had done until then is unknown, so check before you repeat it.`;
    return { content, failed: true, unknown: true };
  }
  const reason = timed.error instanceof Fault ? describe(timed.error) : 'an unexpected fault in the gateway';
  return { content: `${name} failed: ${reason}. Nothing is known to have been changed.`, failed: true };
}
