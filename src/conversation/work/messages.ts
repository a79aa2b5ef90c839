/** Builds the messages and events of a task. Pure. */
import { cutWithMarker } from '../../core/cut.js';
import type { ModelMessage } from '../../core/model.js';
import { elementAround, escaped, UNTRUSTED } from '../../core/origin.js';
import type { Task, TaskEvent } from '../../core/task.js';
import type { Step } from '../../core/transcript.js';
import type { Services } from '../services.js';
import { calledIn, hasResult, isCutOff, stepMessages, stepOf } from '../turn/steps.js';
import { hostOf, hostsIn, type Trust } from '../turn/taint.js';

const CUT_OFF =
  'Interrupted: this was ended while it ran. Its outcome is unknown; check before you repeat it.';
const NOT_BEGUN = 'Not run: what you were doing was ended before it came to this.';

const LEFT_OUT =
  'Left out: there is no room any more for this result of an earlier request. Call again if you need it.';
const SHORT_CHARS = 400;

const OUTSIDE = elementAround('tool_result', UNTRUSTED, '').replace(/<\/tool_result>$/, '');

/** `answer`: null if the request ended without one. */
export function saidIn(
  messages: readonly ModelMessage[],
  steps: Step[],
  answer: string | null,
): ModelMessage[] {
  const last: ModelMessage[] =
    answer === null ? [] : [{ role: 'assistant', content: escaped(answer), calls: [] }];
  return [...messages, ...stepMessages(steps), ...last];
}

/** Results for calls that an abort left without one. */
export function cutOffSteps(steps: readonly Step[]): (Step & { kind: 'result' })[] {
  return calledIn(steps)
    .filter(({ id }) => !hasResult(steps, id))
    .map((call) => stepOf(call, { content: isCutOff(steps, call.id) ? CUT_OFF : NOT_BEGUN, failed: true }));
}

/** The same messages without the long results of earlier requests; null if there are none. */
export function shortened(messages: readonly ModelMessage[]): ModelMessage[] | null {
  const isLong = (message: ModelMessage) => message.role === 'tool' && message.content.length > SHORT_CHARS;
  if (!messages.some(isLong)) return null;
  const outside = elementAround('tool_result', UNTRUSTED, LEFT_OUT);
  return messages.map((message) => {
    if (!isLong(message)) return message;
    return { ...message, content: isOutside(message) ? outside : LEFT_OUT };
  });
}

/** Untrusted text may come from the delegating turn or an earlier request. Hosts count as named only in a trusted request. */
export function trustIn(
  { goal, request, parent }: Task,
  messages: readonly ModelMessage[],
  wasTainted: boolean,
): Trust {
  const words = [
    goal,
    ...(request.viap === null ? [] : stringsIn(request.viap)),
    ...request.messages.flatMap(({ role, content }) => (role === 'user' ? [content] : [])),
    ...messages.slice(-1).flatMap(({ role, content }) => (role === 'user' ? [content] : [])),
  ];
  const named = new Set(parent?.tainted ? [] : words.flatMap((text) => hostsIn(text)));
  return {
    isTainted: wasTainted || parent?.tainted === true || messages.some(isOutside),
    isNamed(address) {
      const host = hostOf(address);
      return host !== null && named.has(host);
    },
  };
}

function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(stringsIn);
}

function isOutside({ role, content }: ModelMessage): boolean {
  return role === 'tool' && content.startsWith(OUTSIDE);
}

const MOST_CHARS = 2_000;
/** A model may invent a tool name of any length. */
const MOST_NAME_CHARS = 100;

/** The task events of one step. `before`: the earlier steps. Secrets are redacted before texts are cut. */
export function eventsOf({ redact, clock }: Services, step: Step, before: readonly Step[]): TaskEvent[] {
  if (step.kind === 'answer' || step.kind === 'approved') return [];
  const { callId } = step;
  const call = calledIn(before).find(({ id }) => id === callId);
  if (call === undefined) return [];
  const shown = (text: string) => cutWithMarker(redact(text), MOST_CHARS, 'event-max-chars');
  const of = { at: clock.now(), callId, tool: redact(call.name).slice(0, MOST_NAME_CHARS) };
  // The call runs already, or waits for a person.
  const isTold = before.some(
    (each) => (each.kind === 'call' || each.kind === 'waiting') && each.callId === callId,
  );
  const events: TaskEvent[] = isTold ? [] : [{ ...of, kind: 'tool-call', arguments: shown(call.arguments) }];
  if (step.kind === 'result') {
    events.push({ ...of, kind: 'tool-result', failed: step.failed, content: shown(step.content) });
  }
  return events;
}
