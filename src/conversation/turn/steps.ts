/** Step 5 of the route: the request of a turn, and its stored steps: as messages, as calls, and counted against the limits on calls. */
import { isDeepStrictEqual } from 'node:util';
import { type AskedCall, askedCallIn } from '../../core/access.js';
import type { Authorisation } from '../../core/authorisation.js';
import { cutWithMarker, estimateTokens } from '../../core/cut.js';
import type { RoomId } from '../../core/ids.js';
import type { JournalWrite } from '../../core/journal.js';
import type { Cause, SeenTier } from '../../core/memory.js';
import type { ModelMessage, ToolCall } from '../../core/model.js';
import { isNestedDeeper, MOST_LEVELS } from '../../core/network.js';
import { element, elementAround, escaped, UNTRUSTED } from '../../core/origin.js';
import type { Persona } from '../../core/persona.js';
import type { ToolSet, Wait } from '../../core/tool.js';
import type { Tracing } from '../../core/tracing.js';
import type { Step } from '../../core/transcript.js';
import type { CallLimits, Services } from '../services.js';
import type { Guard } from './guard.js';
import type { RunApproval, Trust } from './taint.js';
import { writtenCalls } from './tokens.js';

export interface TurnRequest {
  turnId: string;
  /** Seed for the ids of its calls, if several requests share this `turnId`. Default: `turnId`. */
  callSeed?: string;
  room: RoomId;
  tools: ToolSet;
  maxToolRounds: number;
  bounds: TurnBounds;
  persona: { model: Persona['model']; temperature: Persona['temperature'] };
  /** System prompt, history and, at the end, the batch. */
  messages: ModelMessage[];
  /** The tiers shown in the prompt; the memory tools keep it current. */
  seen: Map<string, SeenTier>;
  authorisation: Authorisation;
  /** Stored with what tools write. */
  cause: Cause;
  /** Place of its calls in the journal. */
  record: { room: RoomId | null; turnId: string | null; parentEventId: string | null };
  trust: Trust;
  /** The owners' decision about an agent's whole run. Absent: a persona acts and asks about each call. */
  run?: RunApproval;
  /** Time a person has to decide about a call; null if nobody can be asked. */
  approvalMs: number | null;
  /** Steps stored by an earlier run of this turn; grows as the turn proceeds. */
  steps: Step[];
  /** Stores a step and its journal entries, and asks people about a call. False if the claim is lost: end silently. */
  save(step: Step, more?: StepExtras): Promise<boolean>;
  /** Ends the journal entries of calls that an abort cut off. Absent: the caller does it. */
  cutOff?(entries: readonly JournalWrite[]): Promise<void>;
  /** Nobody reads the answer, so it may be empty once tools have answered. */
  isUnread?: true;
  /** Absent: its answers are sent as they are. */
  guard?: Guard | undefined;
  /** Shows the chat the text of the current round so far; empty when it starts over. */
  show?(text: string): void;
  /** Where its requests and calls are told. Absent: it is no turn, and is not traced. */
  traced?: Tracing | undefined;
  signal: AbortSignal;
}

/** A turn whose calls run, with the services. */
export interface CallingTurn extends Services, TurnRequest {}

/** Stored in one transaction with a step. */
export interface StepExtras {
  entries?: readonly JournalWrite[];
  asked?: AskedCall;
}

/** Ends or suspends a turn before its answer. */
export type CallsEnd =
  /** A call waits for an outside result or a person; the step is stored. */
  | ({ kind: 'suspended' } & Wait)
  /** Aborted, or the claim was lost. */
  | { kind: 'dropped' };

/** False if the claim is lost. */
export async function keep(request: TurnRequest, step: Step, more?: StepExtras): Promise<boolean> {
  if (!(await request.save(step, more))) return false;
  request.steps.push(step);
  return true;
}

/** Tells the model that a call's result was not stored. The call is not repeated because it may have succeeded. */
export const INTERRUPTED =
  'Interrupted: the gateway ended while this ran. Its outcome is unknown; check before you repeat it.';

/** Each answer with tool calls, followed by a result for each call. */
export function stepMessages(steps: Step[], resultChars = Number.POSITIVE_INFINITY): ModelMessage[] {
  const results = new Map(
    steps.flatMap((step) => (step.kind === 'result' ? [[step.callId, step] as const] : [])),
  );
  return steps.flatMap((step): ModelMessage[] => {
    if (step.kind !== 'answer' || step.calls.length === 0) return [];
    return [
      {
        role: 'assistant',
        content: escaped(step.text),
        calls: step.calls,
        ...(step.echo && { echo: step.echo }),
      },
      ...step.calls.map(({ id }): ModelMessage => {
        return { role: 'tool', callId: id, content: resultText(results.get(id), resultChars) };
      }),
    ];
  });
}

/** Wraps untrusted text in an element that says so. */
function resultText(result: (Step & { kind: 'result' }) | undefined, most: number): string {
  // Escape after the cut, because cutting may turn a longer name into one of our element names.
  const words = escaped(cutWithMarker(result?.content ?? INTERRUPTED, most, 'history-max-chars'));
  return result?.outside ? elementAround('tool_result', UNTRUSTED, `\n${words}\n`) : words;
}

export function stepOf(
  { id: callId }: ToolCall,
  { content, failed, said, outside }: { content: string; failed: boolean; said?: string; outside?: true },
): Step & { kind: 'result' } {
  return { kind: 'result', callId, content, failed, ...(said && { said }), ...(outside && { outside }) };
}

export function hasResult(steps: readonly Step[], callId: string): boolean {
  return steps.some((step) => step.kind === 'result' && step.callId === callId);
}

/** Whether a call had begun when its turn was cut off, so that its outcome is unknown. */
export function isCutOff(steps: readonly Step[], callId: string): boolean {
  const own = steps.filter((step) => 'callId' in step && step.callId === callId);
  const isWaiting = own.at(-1)?.kind === 'waiting';
  return own.some(({ kind }) => kind === 'call') && !hasResult(steps, callId) && !isWaiting;
}

export function calledIn(steps: readonly Step[]): ToolCall[] {
  return steps.flatMap((step) => (step.kind === 'answer' ? step.calls : []));
}

const MEMORY_TOOL = /^(?:read|write)_(?:tiered_)?memory$/;

/** Without calls that may be made once more: of memory, and those that only read. The others were made. */
export function withoutRepeatable(steps: readonly Step[], tools: ToolSet['tools']): Step[] {
  const isRead = (name: string) => tools.some((tool) => tool.name === name && tool.risk === 'low');
  const isMade = ({ name }: ToolCall) => !MEMORY_TOOL.test(name) && !isRead(name);
  const made = new Set(calledIn(steps).flatMap((call) => (isMade(call) ? [call.id] : [])));
  return steps.flatMap((step): Step[] => {
    if (step.kind !== 'answer') return made.has(step.callId) ? [step] : [];
    const calls = step.calls.filter(({ id }) => made.has(id));
    if (calls.length === 0) return [];
    const { echo } = step;
    return [{ kind: 'answer', text: '', calls, ...(calls.length === step.calls.length && echo && { echo }) }];
  });
}

export function lastCalls(steps: readonly Step[]): ToolCall[] {
  return steps.findLast((step) => step.kind === 'answer')?.calls ?? [];
}

/** The last answer's calls that have no result yet. */
export function openCalls(steps: readonly Step[]): ToolCall[] {
  return lastCalls(steps).filter(({ id }) => !hasResult(steps, id));
}

/** The last answer's calls that were cut off by the end of the process or abandoned by it. */
export function cutOffCalls(steps: readonly Step[]): ToolCall[] {
  return openCalls(steps).filter(({ id }) => isCutOff(steps, id));
}

/** Whether the same call was refused, or its approval expired, in this turn. */
export function wasRefused(steps: readonly Step[], call: ToolCall): boolean {
  const isRefused = (id: string) =>
    steps.some((step) => step.kind === 'waiting' && step.callId === id && askedCallIn(step.waitsFor)) &&
    hasResult(steps, id) &&
    !steps.some((step) => step.kind === 'approved' && step.callId === id);
  return calledIn(steps).some((each) => each.id !== call.id && isSameCall(each, call) && isRefused(each.id));
}

/** Text that came with tool calls: a model that has said everything there may end with an empty answer. */
export function textBesideCalls(steps: Step[]): string {
  const said = steps.flatMap((step) => (step.kind === 'answer' ? [step.text.trim()] : []));
  return [...new Set(said)].filter((text) => text !== '').join('\n\n');
}

/** Results that replace an answer, such as a reaction; empty if there are none. */
export function saidByCalls(steps: Step[]): string {
  return steps.flatMap((step) => (step.kind === 'result' && step.said ? [step.said] : [])).join('\n');
}

/** Whether the messages to answer or a call's result contain untrusted text. */
export function isTainted(trust: { isTainted: boolean }, steps: readonly Step[]): boolean {
  return trust.isTainted || steps.some((step) => step.kind === 'result' && step.outside === true);
}

interface TurnBounds extends CallLimits {
  /** Budget for the turn's own calls and results, in estimated tokens. */
  tokens: number;
}

/** A shorter part of a result would not be worth reading. */
const LEAST_RESULT_CHARS = 200;

const SAME_CALL = 'Not run: you have made this same call';
const FULL =
  'Not run: this turn has read and written as much as there is room for. Answer with what you have.';

const UNREADABLE = 'The arguments were not valid JSON, so nothing was done. Call again with a JSON object.';
const TOO_DEEP = `The arguments were nested more than ${MOST_LEVELS} levels deep, so nothing was done. Call again with flatter ones.`;

/** False: the model repeated unreadable arguments or the same call after being told, or there is no room for another result. */
export function mayCallAgain(steps: Step[], bounds: TurnBounds): boolean {
  const results = steps.filter((step) => step.kind === 'result');
  const unreadable = results.filter(({ content }) => [UNREADABLE, TOO_DEEP].includes(content));
  const repeated = results.filter(({ content }) => content.startsWith(SAME_CALL));
  const repeating = steps.filter(
    (step) =>
      step.kind === 'answer' && step.calls.some(({ id }) => repeated.some((each) => each.callId === id)),
  );
  return unreadable.length < 2 && repeating.length < 2 && !isFull(steps, bounds);
}

/** Why a call may not run; null if it may. */
export function refusalOf(call: ToolCall, { tools: { tools }, steps, bounds }: TurnRequest): string | null {
  const { callsPerAnswer, sendsPerTurn, sameCallsPerTurn } = bounds;
  if (lastCalls(steps).findIndex(({ id }) => id === call.id) >= callsPerAnswer)
    return `Not run: one answer may make ${callsPerAnswer} calls. Make it again in your next one if it is still needed.`;
  if (isFull(steps, bounds)) return FULL;
  const ids = new Set(steps.flatMap((step) => (step.kind === 'call' ? [step.callId] : [])));
  const begun = calledIn(steps).filter(({ id }) => ids.has(id));
  const isRead = (name: string) => tools.some((tool) => tool.name === name && tool.risk === 'low');
  const isSend = tools.some((tool) => tool.name === call.name && tool.isSend);
  if (isSend && begun.filter(({ name }) => name === call.name).length >= sendsPerTurn)
    return `Not run: a turn may call ${call.name} ${sendsPerTurn} times. Say the rest in your answer.`;
  // A write in between may have changed the result of a read.
  const since = isRead(call.name) ? begun.findLastIndex(({ name }) => !isRead(name)) + 1 : 0;
  const same = begun.slice(since).filter((each) => isSameCall(each, call));
  if (same.length < sameCallsPerTurn) return null;
  return `${SAME_CALL} ${sameCallsPerTurn} times in this turn. Go on with the results above, or answer.`;
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
    return sum + estimateTokens(step.text) + estimateTokens(writtenCalls(step.calls));
  }, 0);
}

/** A call's arguments as the model wrote them; a text for the model if they are no JSON object or nested too deep. */
export function readArguments(
  written: string,
): Record<string, unknown> | typeof UNREADABLE | typeof TOO_DEEP {
  try {
    const parsed: unknown = JSON.parse(written.trim() || '{}');
    if (isNestedDeeper(parsed)) return TOO_DEEP;
    const isObject = typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed);
    return isObject ? (parsed as Record<string, unknown>) : UNREADABLE;
  } catch {
    return UNREADABLE;
  }
}

/** Whether two calls do the same: order and blanks do not matter, and null equals absent. */
export function isSameCall(a: ToolCall, b: ToolCall): boolean {
  return a.name === b.name && isDeepStrictEqual(argumentsOf(a), argumentsOf(b));
}

function argumentsOf({ arguments: given }: ToolCall): unknown {
  const read = readArguments(given);
  if (typeof read === 'string') return given;
  return JSON.parse(JSON.stringify(read), (_, value) => value ?? undefined);
}

/** Results are shortened so that they do not crowd out the conversation. */
const OLD_RESULT_CHARS = 2_000;

/** The outcome of a call of each of these tools, in a few words. */
const TOLD_IN_A_LINE: Record<string, (asked: Record<string, unknown>) => string> = {
  read_tiered_memory: ({ tier }) => `read ${tierOf(tier)}`,
  write_tiered_memory: ({ tier }) => `wrote ${tierOf(tier)}`,
  read_memory: ({ scope, date }) => `read memory (${[scope, date].filter(isShort).join(', ')})`,
  write_memory: ({ date }) => `added to the daily log${isShort(date) ? ` of ${date}` : ''}`,
  react: ({ emoji }) => `reacted with ${isShort(emoji) ? emoji : 'an emoji'}`,
};

/** Reactions and memory calls become a note of one line each: an older copy of memory would contradict the current one in the prompt. */
export function earlierSteps(steps: Step[]): ModelMessage[] {
  // An answer that also called other tools stays as it was: servers want its calls back complete.
  const isTold = (step: Step) =>
    step.kind === 'answer' && step.calls.every(({ name }) => Object.hasOwn(TOLD_IN_A_LINE, name));
  const lines = calledIn(steps.filter(isTold)).map((call) => callLine(call, steps));
  const others = steps.filter((step) => !isTold(step));
  const messages = stepMessages(others, OLD_RESULT_CHARS);
  if (lines.length === 0) return messages;
  // Before the other calls, because some servers refuse a user message right after a tool result.
  return [{ role: 'user', content: lines.join('\n') }, ...messages];
}

const REACTION = 'your reaction';

/** A reaction whose call is no longer kept. */
export function reactionLine(text: string): ModelMessage {
  return { role: 'user', content: element('event', { about: REACTION }, text) };
}

function callLine(call: ToolCall, steps: Step[]): string {
  const result = steps.find((step) => step.kind === 'result' && step.callId === call.id);
  const end =
    result?.kind !== 'result' ? ' (interrupted, outcome unknown)' : result.failed ? ' (refused)' : '';
  const read = readArguments(call.arguments);
  // A call with unreadable arguments did nothing, and its result said why.
  const told = TOLD_IN_A_LINE[call.name]?.(typeof read === 'object' ? read : {});
  const about = call.name === 'react' ? REACTION : 'your memory';
  return element('event', { about }, `you ${told}${end}`);
}

function tierOf(tier: unknown): string {
  return tier === undefined ? 'your tiers' : `tier ${isShort(tier) ? tier : '?'}`;
}

function isShort(value: unknown): value is string | number {
  return (typeof value === 'string' || typeof value === 'number') && String(value).length <= 20;
}
