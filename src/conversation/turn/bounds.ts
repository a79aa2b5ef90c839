/**
 * Step 5 of the route: limits on what a model does in one turn: which calls are not run, and when it has to answer without
 * further calls. Everything is counted from the stored steps, so a resumed turn goes on counting. Pure.
 */
import { cutAt, cutWithMarker } from '../../core/cut.js';
import { estimateTokens, type ToolCall } from '../../core/model.js';
import { isNestedDeeper, MOST_LEVELS } from '../../core/network.js';
import type { AnyTool, ToolResult } from '../../core/tool.js';
import type { Step } from '../../core/transcript.js';
import type { CallLimits } from '../services.js';

export interface TurnBounds extends CallLimits {
  /** What the turn's own calls and results may take of a request, in tokens, by our estimate. */
  tokens: number;
}

/** Further calls of one answer are dropped silently. */
const MOST_CALLS_KEPT = 1_000;
/** The share of a request that a turn's own steps may take even where the conversation leaves less: it is compacted then. */
const LEAST_SHARE = 0.25;
/** Below this many characters, a part of a result would not be worth reading. */
const LEAST_RESULT_CHARS = 200;

const SAME_CALL = 'Not run: you have made this same call';
const FULL =
  'Not run: this turn has read and written as much as there is room for. Answer with what you have.';

export const UNREADABLE =
  'The arguments were not valid JSON, so nothing was done. Call again with a JSON object.';
export const TOO_DEEP = `The arguments were nested more than ${MOST_LEVELS} levels deep, so nothing was done. Call again with flatter ones.`;

/**
 * A longer answer is cut: nobody reads on, no later request could hold it, and everything that reads the
 * transcript would carry it.
 */
const MOST_REPLY_CHARS = 60_000;

/** Ends a reply that is cut. */
const CUT_OFF = ' …\n\n(This is cut off: it grew longer than I may write at once. Ask me to go on.)';

export function replyIn(text: string, isTruncated: boolean): string {
  if (text.length > MOST_REPLY_CHARS) return cutAt(text, MOST_REPLY_CHARS) + CUT_OFF;
  return isTruncated ? text + CUT_OFF : text;
}

/** `most` is what a request may hold, `used` what this one holds without the turn's steps, in tokens. */
export function roomForSteps(most: number, used: number): number {
  return Math.max(most - used, most * LEAST_SHARE);
}

export function callsKept(calls: readonly ToolCall[]): readonly ToolCall[] {
  return calls.length <= MOST_CALLS_KEPT ? calls : calls.slice(0, MOST_CALLS_KEPT);
}

/**
 * False when the model must answer without further calls: it went on although it was told that its arguments were no JSON
 * or that it had made the same call before, or there is no room for another result.
 */
export function mayCallAgain(steps: Step[], bounds: TurnBounds): boolean {
  return unreadableCalls(steps) < 2 && repeatingAnswers(steps) < 2 && !isFull(steps, bounds);
}

/** Why the call, the `n`th of its answer, is not run; null if it is. */
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

/** The result as far as there is room for it. Nothing runs after one that was cut, so nothing is overwritten unseen. */
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
/** As `cutWithMarker` ends a text, behind an empty line, which no words of people in a result have before them. */
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

/** The calls that were begun, in order. */
function begunCalls(steps: Step[]): ToolCall[] {
  const begun = new Set(steps.flatMap((step) => (step.kind === 'call' ? [step.callId] : [])));
  const calls = steps.flatMap((step) => (step.kind === 'answer' ? step.calls : []));
  return calls.filter(({ id }) => begun.has(id));
}

/** After one round of arguments that were not JSON, or too deep, the model may try again. */
function unreadableCalls(steps: Step[]): number {
  return steps.filter((step) => step.kind === 'result' && [UNREADABLE, TOO_DEEP].includes(step.content))
    .length;
}

/** How many answers have made a call again that had been made too often. */
function repeatingAnswers(steps: Step[]): number {
  const repeated = new Set(
    steps.flatMap((step) =>
      step.kind === 'result' && step.content.startsWith(SAME_CALL) ? [step.callId] : [],
    ),
  );
  return steps.filter((step) => step.kind === 'answer' && step.calls.some(({ id }) => repeated.has(id)))
    .length;
}

/** The arguments of a call as a model wrote them. */
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

/** Whether two calls ask for the same, however they are written. */
export function isSameCall(a: ToolCall, b: ToolCall): boolean {
  return a.name === b.name && keyOf(a) === keyOf(b);
}

/** Equal for equivalent arguments: in any order, with or without blanks, null as left out. */
function keyOf({ arguments: given }: ToolCall): string {
  const read = readArguments(given);
  return read.kind === 'object' ? JSON.stringify(read.given, sorted) : given;
}

function sorted(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).filter(([, each]) => each !== null);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}
