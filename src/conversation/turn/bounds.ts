/**
 * Step 5 of the route: limits on the calls of one turn, and when the model has to answer without further calls. Counts come from
 * the stored steps, so they survive a resume. Pure.
 */
import { cutAt, cutWithMarker, estimateTokens } from '../../core/cut.js';
import type { ToolCall } from '../../core/model.js';
import { isNestedDeeper, MOST_LEVELS } from '../../core/network.js';
import type { AnyTool, ToolResult } from '../../core/tool.js';
import type { Step } from '../../core/transcript.js';
import type { CallLimits } from '../services.js';

export interface TurnBounds extends CallLimits {
  /** Budget for the turn's own calls and results, in estimated tokens. */
  tokens: number;
}

/** Calls beyond this number in one answer are dropped silently. */
const MOST_CALLS_KEPT = 1_000;
/** Minimum share of a request for a turn's own steps; if the conversation leaves less, it is compacted. */
const LEAST_SHARE = 0.25;
/** A shorter part of a result would not be worth reading. */
const LEAST_RESULT_CHARS = 200;

const SAME_CALL = 'Not run: you have made this same call';
const FULL =
  'Not run: this turn has read and written as much as there is room for. Answer with what you have.';

export const UNREADABLE =
  'The arguments were not valid JSON, so nothing was done. Call again with a JSON object.';
export const TOO_DEEP = `The arguments were nested more than ${MOST_LEVELS} levels deep, so nothing was done. Call again with flatter ones.`;

/** Longer answers are cut: nobody reads on, and no later request could hold them. */
const MOST_REPLY_CHARS = 60_000;

/** Appended to a reply that is cut. */
const CUT_OFF = ' …\n\n(This is cut off: it grew longer than I may write at once. Ask me to go on.)';

export function replyIn(text: string, isTruncated: boolean): string {
  if (text.length > MOST_REPLY_CHARS) return cutAt(text, MOST_REPLY_CHARS) + CUT_OFF;
  return isTruncated ? text + CUT_OFF : text;
}

/** `most`: capacity of a request. `used`: size of this one without the turn's steps. Both in tokens. */
export function roomForSteps(most: number, used: number): number {
  return Math.max(most - used, most * LEAST_SHARE);
}

export function callsKept(calls: readonly ToolCall[]): readonly ToolCall[] {
  return calls.length <= MOST_CALLS_KEPT ? calls : calls.slice(0, MOST_CALLS_KEPT);
}

/**
 * False if the model must answer without further calls: it repeated unreadable arguments or the same call after being told, or
 * there is no room for another result.
 */
export function mayCallAgain(steps: Step[], bounds: TurnBounds): boolean {
  return unreadableCalls(steps) < 2 && repeatingAnswers(steps) < 2 && !isFull(steps, bounds);
}

/** The refusal for the `n`th call of its answer; null if it may run. */
export function refusalOf(
  call: ToolCall,
  n: number,
  tools: readonly AnyTool[],
  steps: Step[],
  bounds: TurnBounds,
): ToolResult | null {
  const { callsPerAnswer, sendsPerTurn, sameCallsPerTurn } = bounds;
  const refused = (content: string) => ({ content, failed: true });
  if (n >= callsPerAnswer) {
    return refused(
      `Not run: one answer may make ${callsPerAnswer} calls. Make it again in your next one if it is still needed.`,
    );
  }
  if (isFull(steps, bounds)) return refused(FULL);
  const begun = begunCalls(steps);
  const isSend = (name: string) => tools.some((tool) => tool.name === name && tool.isSend);
  const isRead = (name: string) => tools.some((tool) => tool.name === name && tool.risk === 'low');
  const sends = begun.filter(({ name }) => name === call.name).length;
  if (isSend(call.name) && sends >= sendsPerTurn) {
    return refused(
      `Not run: a turn may call ${call.name} ${sendsPerTurn} times. Say the rest in your answer.`,
    );
  }
  // A write in between may have changed the result of a read.
  const since = isRead(call.name) ? begun.findLastIndex(({ name }) => !isRead(name)) + 1 : 0;
  const same = begun.slice(since).filter((each) => isSameCall(each, call));
  if (same.length < sameCallsPerTurn) return null;
  return refused(
    `${SAME_CALL} ${sameCallsPerTurn} times in this turn. Go on with the results above, or answer.`,
  );
}

/** Cuts the result to the space left. Nothing runs after a cut result, so nothing is overwritten unseen. */
export function fitted<Result extends { content: string }>(
  result: Result,
  steps: Step[],
  { tokens }: TurnBounds,
): Result {
  const left = tokens - tokensIn(steps);
  const takes = estimateTokens(result.content);
  if (takes <= left) return result;
  const most = Math.max(LEAST_RESULT_CHARS, Math.floor((result.content.length * Math.max(0, left)) / takes));
  return { ...result, content: cutWithMarker(result.content, most, MARKER) };
}

const MARKER = 'turn-max-chars';
/** The marker of `cutWithMarker` after an empty line, which people's words in a result never have in front of them. */
const IS_CUT = new RegExp(`\\n\\n<<truncated due to ${MARKER}=\\d+>>$`);

function isFull(steps: Step[], { tokens }: TurnBounds): boolean {
  return (
    steps.some((step) => step.kind === 'result' && IS_CUT.test(step.content)) || tokensIn(steps) >= tokens
  );
}

/** Results that are still to come do not count. */
function tokensIn(steps: Step[]): number {
  return steps.reduce((sum, step) => {
    if (step.kind === 'result') return sum + estimateTokens(step.content);
    if (step.kind !== 'answer') return sum;
    const calls = step.calls.map((call) => call.name + call.arguments).join();
    return sum + estimateTokens(step.text) + estimateTokens(calls);
  }, 0);
}

function begunCalls(steps: Step[]): ToolCall[] {
  const begun = new Set(steps.flatMap((step) => (step.kind === 'call' ? [step.callId] : [])));
  const calls = steps.flatMap((step) => (step.kind === 'answer' ? step.calls : []));
  return calls.filter(({ id }) => begun.has(id));
}

/** The model gets a second try after one round of arguments that were invalid JSON or too deep. */
function unreadableCalls(steps: Step[]): number {
  return steps.filter((step) => step.kind === 'result' && [UNREADABLE, TOO_DEEP].includes(step.content))
    .length;
}

/** Number of answers that repeated a call after the limit for it. */
function repeatingAnswers(steps: Step[]): number {
  const repeated = new Set(
    steps.flatMap((step) =>
      step.kind === 'result' && step.content.startsWith(SAME_CALL) ? [step.callId] : [],
    ),
  );
  return steps.filter((step) => step.kind === 'answer' && step.calls.some(({ id }) => repeated.has(id)))
    .length;
}

/** A call's arguments as the model wrote them. */
export type CallArguments =
  | { kind: 'object'; given: Record<string, unknown> }
  | { kind: 'too deep' }
  /** Not a JSON object. */
  | { kind: 'unreadable' };

export function readArguments(written: string): CallArguments {
  let parsed: unknown;
  try {
    parsed = JSON.parse(written.trim() || '{}');
  } catch {
    return { kind: 'unreadable' };
  }
  if (isNestedDeeper(parsed)) return { kind: 'too deep' };
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return { kind: 'unreadable' };
  return { kind: 'object', given: parsed as Record<string, unknown> };
}

/** Whether two calls are the same, regardless of how they are written. */
export function isSameCall(a: ToolCall, b: ToolCall): boolean {
  return a.name === b.name && keyOf(a) === keyOf(b);
}

/** Equal for equivalent arguments: order and blanks do not matter, and null equals absent. */
function keyOf({ arguments: given }: ToolCall): string {
  const read = readArguments(given);
  return read.kind === 'object' ? JSON.stringify(read.given, sorted) : given;
}

function sorted(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).filter(([, each]) => each !== null);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}
