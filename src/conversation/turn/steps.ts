/**
 * Step 5 of the route: a turn's steps, as messages for a model and as what they tell: which calls were cut off, which are still
 * to run, whether words from outside are among them. A tool call is only written together with a result, so malformed
 * history is impossible.
 */
import { cutWithMarker } from '../../core/cut.js';
import type { ModelMessage, ToolCall } from '../../core/model.js';
import { elementAround, escaped, UNTRUSTED } from '../../core/origin.js';
import type { Step } from '../../core/transcript.js';

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
      ...step.calls.map(
        (call): ModelMessage => ({
          role: 'tool',
          callId: call.id,
          content: told(results.get(call.id), resultChars),
        }),
      ),
    ];
  });
}

/** Words from outside stand in an element that says so. */
function told(result: (Step & { kind: 'result' }) | undefined, most: number): string {
  // A cut may make a name of ours of a longer one.
  const words = escaped(cutWithMarker(result?.content ?? INTERRUPTED, most, 'history-max-chars'));
  return result?.outside ? elementAround('tool_result', UNTRUSTED, `\n${words}\n`) : words;
}

/** The result of a call, as it is stored. */
export function stepOf(
  { id: callId }: ToolCall,
  { content, failed, said, outside }: { content: string; failed: boolean; said?: string; outside?: true },
): Step & { kind: 'result' } {
  return {
    ...{ kind: 'result', callId, content, failed },
    ...(said === undefined ? {} : { said }),
    ...(outside === undefined ? {} : { outside }),
  } as const;
}

/** Whether a call had begun when its turn was cut off: nobody knows what came of it. */
export function isCutOff(steps: readonly Step[], callId: string): boolean {
  const has = (kind: 'call' | 'result') => steps.some((step) => step.kind === kind && step.callId === callId);
  return has('call') && !has('result') && !waitsForResult(steps, callId);
}

/** It began, and then waits for something outside of it. */
function waitsForResult(steps: readonly Step[], callId: string): boolean {
  const last = steps.findLast((step) => 'callId' in step && step.callId === callId);
  return last?.kind === 'waiting';
}

/** The calls that were cut off when the process that ran them ended, or was made to leave them. */
export function cutOffCalls(steps: readonly Step[]): ToolCall[] {
  const calls = steps.findLast((step) => step.kind === 'answer')?.calls ?? [];
  return calls.filter(({ id }) => isCutOff(steps, id));
}

/** A model that has said everything along with its tool calls may end with an empty answer. */
export function wordsBeside(steps: Step[]): string {
  const said = steps.flatMap((step) => (step.kind === 'answer' ? [step.text.trim()] : []));
  return [...new Set(said)].filter((text) => text !== '').join('\n\n');
}

/** What calls have done that may stand for an answer; empty if there is none. */
export function saidByCalls(steps: Step[]): string {
  return steps.flatMap((step) => (step.kind === 'result' && step.said ? [step.said] : [])).join('\n');
}

/** The names of the last answer's calls that have no result yet. */
export function callsToRun(steps: Step[]): string[] {
  const answer = steps.findLast((step) => step.kind === 'answer');
  const isOver = (id: string) => steps.some((step) => step.kind === 'result' && step.callId === id);
  return (answer?.calls ?? []).filter(({ id }) => !isOver(id)).map(({ name }) => name);
}

/** Whether words from outside have led to it: what it answers, or what a call has read. */
export function isTainted(trust: { isTainted: boolean }, steps: readonly Step[]): boolean {
  return trust.isTainted || steps.some((step) => step.kind === 'result' && step.outside === true);
}
