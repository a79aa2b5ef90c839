/**
 * Step 5 of the route: the request of a turn, how its steps are stored, and what they say about calls: interrupted, or still to
 * run. A tool call is sent to a model only with its result, so the history is always well-formed.
 */

import type { AskedCall } from '../../core/access.js';
import type { Authorisation } from '../../core/authorisation.js';
import { cutWithMarker } from '../../core/cut.js';
import type { RoomId } from '../../core/ids.js';
import type { JournalWrite } from '../../core/journal.js';
import type { Cause, SeenTier } from '../../core/memory.js';
import type { ModelMessage, ToolCall } from '../../core/model.js';
import { elementAround, escaped, UNTRUSTED } from '../../core/origin.js';
import type { Persona } from '../../core/persona.js';
import type { ToolSet, Wait } from '../../core/tool.js';
import type { Step } from '../../core/transcript.js';
import type { TurnBounds } from './bounds.js';
import type { RunApproval, Trust } from './taint.js';

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
  /** Shows the chat the text of the current round so far; empty when it starts over. */
  show?(text: string): void;
  signal: AbortSignal;
}

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

/** The last answer's calls that were cut off by the end of the process or abandoned by it. */
export function cutOffCalls(steps: readonly Step[]): ToolCall[] {
  const calls = steps.findLast((step) => step.kind === 'answer')?.calls ?? [];
  return calls.filter(({ id }) => isCutOff(steps, id));
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

/** The names of the last answer's calls that have no result yet. */
export function callsToRun(steps: Step[]): string[] {
  const answer = steps.findLast((step) => step.kind === 'answer');
  return (answer?.calls ?? []).filter(({ id }) => !hasResult(steps, id)).map(({ name }) => name);
}

/** Whether the messages to answer or a call's result contain untrusted text. */
export function isTainted(trust: { isTainted: boolean }, steps: readonly Step[]): boolean {
  return trust.isTainted || steps.some((step) => step.kind === 'result' && step.outside === true);
}
