/** What a task's course says of its calls, made from the steps that are stored of them. Pure. */
import { cutWithMarker } from '../../core/cut.js';
import type { TaskEvent } from '../../core/task.js';
import type { Step } from '../../core/transcript.js';

const MOST_CHARS = 2_000;
/** A model may make up a name of any length. */
const MOST_NAME_CHARS = 100;

/** `before`: the steps that there were. `clean` takes secrets out, before anything is cut: half a secret is none to it. */
export function eventsOf(
  step: Step,
  before: readonly Step[],
  { clean, now }: { clean(text: string): string; now: number },
): TaskEvent[] {
  if (step.kind === 'answer' || step.kind === 'approved') return [];
  const { callId } = step;
  const call = before
    .flatMap((each) => (each.kind === 'answer' ? each.calls : []))
    .find(({ id }) => id === callId);
  if (call === undefined) return [];
  const shown = (text: string) => cutWithMarker(clean(text), MOST_CHARS, 'event-max-chars');
  const tool = clean(call.name).slice(0, MOST_NAME_CHARS);
  const of = { at: now, callId, tool };
  const isTold = before.some((each) => isBeginning(each) && each.callId === callId);
  const events: TaskEvent[] = isTold ? [] : [{ ...of, kind: 'tool-call', arguments: shown(call.arguments) }];
  if (step.kind === 'result') {
    events.push({ ...of, kind: 'tool-result', failed: step.failed, content: shown(step.content) });
  }
  return events;
}

/** It runs, or waits for a person first. */
function isBeginning(step: Step): step is Step & { kind: 'call' | 'waiting' } {
  return step.kind === 'call' || step.kind === 'waiting';
}
