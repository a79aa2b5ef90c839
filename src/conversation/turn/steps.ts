/**
 * Step 5 of the route: turns a turn's steps into messages for a model. A tool call is only written together with a
 * result, so malformed history is impossible.
 */
import { cutWithMarker } from '../../core/cut.js';
import { escaped } from '../../core/elements.js';
import type { ModelMessage } from '../../core/model.js';
import type { Step } from '../../core/transcript.js';

/** What the model is told about a call whose result was not stored. */
export const INTERRUPTED =
  'Interrupted: the gateway ended while this ran. Its outcome is unknown; check before you repeat it.';

/** Each answer with tool calls, followed by a result for each call. */
export function stepMessages(steps: Step[], resultChars = Number.POSITIVE_INFINITY): ModelMessage[] {
  const results = new Map(
    steps.flatMap((step) => (step.kind === 'result' ? [[step.callId, step.content]] : [])),
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
          // A cut may make a name of ours of a longer one.
          content: escaped(
            cutWithMarker(results.get(call.id) ?? INTERRUPTED, resultChars, 'history-max-chars'),
          ),
        }),
      ),
    ];
  });
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
