/**
 * Step 5 of the route: what a turn is asked with, how it stores its steps, and what these tell: which calls were cut off,
 * which are still to run. A tool call goes to a model only together with a result, so history is never malformed.
 */

import type { AskedCall } from '../../core/access.js';
import { cutWithMarker } from '../../core/cut.js';
import type { RoomId } from '../../core/ids.js';
import type { JournalWrite } from '../../core/journal.js';
import type { Cause, SeenTier } from '../../core/memory.js';
import type { ModelMessage, ToolCall } from '../../core/model.js';
import { elementAround, escaped, UNTRUSTED } from '../../core/origin.js';
import type { Persona } from '../../core/persona.js';
import type { Authorisation, ToolSet, Wait } from '../../core/tool.js';
import type { Step } from '../../core/transcript.js';
import type { TurnBounds } from './bounds.js';
import type { RunApproval, Trust } from './taint.js';

export interface TurnRequest {
  turnId: string;
  /** The ids of its calls are made from it, where several requests share this `turnId`. Left out: the `turnId`. */
  callSeed?: string;
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
  /** Where its calls stand in the journal. */
  record: { room: RoomId | null; turnId: string | null; parentEventId: string | null };
  trust: Trust;
  /** What owners decided about the whole run of an agent. Left out: a persona acts, and asks about each call. */
  run?: RunApproval;
  /** How long a person may take to decide about a call; null: nobody can be asked. */
  approvalMs: number | null;
  /** Steps stored by an earlier run of this turn; grows as the turn proceeds. */
  steps: Step[];
  /**
   * Stores a step with its entries in the journal, and asks people about a call. False when the claim is lost: the turn
   * must then end silently.
   */
  save(step: Step, more?: StepExtras): Promise<boolean>;
  /** Ends the entries of calls that an abort cut off. Left out: the caller does it. */
  cutOff?(entries: readonly JournalWrite[]): Promise<void>;
  /** Nobody reads the answer: it may be empty once tools have answered. */
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
  /** A call waits for an outside result, or for a person; the step is stored. */
  | ({ kind: 'suspended' } & Wait)
  /** Aborted, or the claim was lost. */
  | { kind: 'dropped' };

/** False when the claim is lost. */
export async function keep(request: TurnRequest, step: Step, more?: StepExtras): Promise<boolean> {
  if (!(await request.save(step, more))) return false;
  request.steps.push(step);
  return true;
}

/** What the model is told about a call whose result was not stored. It is not run again: it may have been done. */
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

/** Words from outside stand in an element that says so. */
function resultText(result: (Step & { kind: 'result' }) | undefined, most: number): string {
  // A cut may make a name of ours of a longer one.
  const words = escaped(cutWithMarker(result?.content ?? INTERRUPTED, most, 'history-max-chars'));
  return result?.outside ? elementAround('tool_result', UNTRUSTED, `\n${words}\n`) : words;
}

/** The result of a call, as it is stored. */
export function stepOf(
  { id: callId }: ToolCall,
  { content, failed, said, outside }: { content: string; failed: boolean; said?: string; outside?: true },
): Step & { kind: 'result' } {
  return { kind: 'result', callId, content, failed, ...(said && { said }), ...(outside && { outside }) };
}

export function hasResult(steps: readonly Step[], callId: string): boolean {
  return steps.some((step) => step.kind === 'result' && step.callId === callId);
}

/** Whether a call had begun when its turn was cut off: its outcome is unknown. */
export function isCutOff(steps: readonly Step[], callId: string): boolean {
  const own = steps.filter((step) => 'callId' in step && step.callId === callId);
  const isWaiting = own.at(-1)?.kind === 'waiting';
  return own.some(({ kind }) => kind === 'call') && !hasResult(steps, callId) && !isWaiting;
}

/** The last answer's calls that were cut off when the process ended, or had to leave them. */
export function cutOffCalls(steps: readonly Step[]): ToolCall[] {
  const calls = steps.findLast((step) => step.kind === 'answer')?.calls ?? [];
  return calls.filter(({ id }) => isCutOff(steps, id));
}

/** A model that has said everything along with its tool calls may end with an empty answer. */
export function textBesideCalls(steps: Step[]): string {
  const said = steps.flatMap((step) => (step.kind === 'answer' ? [step.text.trim()] : []));
  return [...new Set(said)].filter((text) => text !== '').join('\n\n');
}

/** Results that may stand for an answer, such as a reaction; empty if there are none. */
export function saidByCalls(steps: Step[]): string {
  return steps.flatMap((step) => (step.kind === 'result' && step.said ? [step.said] : [])).join('\n');
}

/** The names of the last answer's calls that have no result yet. */
export function callsToRun(steps: Step[]): string[] {
  const answer = steps.findLast((step) => step.kind === 'answer');
  return (answer?.calls ?? []).filter(({ id }) => !hasResult(steps, id)).map(({ name }) => name);
}

/** Whether untrusted text is in the messages to be answered or in a call's result. */
export function isTainted(trust: { isTainted: boolean }, steps: readonly Step[]): boolean {
  return trust.isTainted || steps.some((step) => step.kind === 'result' && step.outside === true);
}
