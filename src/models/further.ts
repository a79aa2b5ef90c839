/** The further request for an incomplete answer, and its answer joined to the first. */
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { ModelEvent, ModelMessage, ModelRequest } from '../core/model.js';
import { type Answer, eventsTo, isCutAtLimit, isEmpty, type Shown } from './answer.js';
import { overflow } from './failures.js';
import { parse, record } from './json.js';

export interface Further {
  why: 'empty' | 'no room' | 'cut' | 'failed call';
  request: ModelRequest;
  outputTokens: number;
  before: string;
}

const MORE_ROOM = 4;

const SAY_SOMETHING =
  'Your answer was empty. Please continue: say in words, in the language of the conversation, what there is to say.';
const notCalled = (why: string) =>
  `Your last answer tried to call a tool in its text, which did nothing and was shown to nobody. ${why} If the call is still needed, make it as a proper tool call; else answer in words, in the language of the conversation.`;
const CARRY_ON =
  'Your answer was cut off at its length limit. Begin with its last few words once more, and carry on from there to the end, in the same language and form. Say nothing about the interruption.';

/** Window for finding an overlap of two texts, and the shortest overlap accepted, in characters. */
const MOST_OVERLAP = 200;
const LEAST_OVERLAP = 8;

/**
 * null if the answer is complete. After an empty answer or an invalid call in the text, a message is added, because the same request
 * mostly fails the same way. A cut text is continued; if reasoning or a call used up the limit, it is raised. Pure.
 */
function furtherFor(request: ModelRequest, answer: Answer, outputTokens: number): Further | null {
  const { text, calls, finish, failedCall } = answer;
  const isAtLimit = isCutAtLimit(finish);
  const roomy: Further = { why: 'no room', request, outputTokens: outputTokens * MORE_ROOM, before: '' };
  const said: ModelMessage = { role: 'assistant', content: text, calls: [] };
  if (calls.length === 0 && failedCall !== undefined) {
    if (isAtLimit && failedCall.isOpen) return roomy;
    const again = withMore(request, notCalled(failedCall.why), ...(text === '' ? [] : [said]));
    return { why: 'failed call', request: again, outputTokens, before: '' };
  }
  if (isEmpty(answer)) {
    if (isAtLimit) return roomy;
    if (request.mayBeEmpty) return null;
    return { why: 'empty', request: withMore(request, SAY_SOMETHING), outputTokens, before: '' };
  }
  if (!isAtLimit) return null;
  if (calls.length > 0) {
    return calls.every((call) => record(parse(call.arguments)) !== null) ? null : roomy;
  }
  const isMostlyThought = (answer.reasoningTokens ?? 0) > outputTokens / 2;
  const more = isMostlyThought ? roomy.outputTokens : outputTokens;
  return { why: 'cut', request: withMore(request, CARRY_ON, said), outputTokens: more, before: text };
}

function withMore(request: ModelRequest, content: string, ...between: ModelMessage[]): ModelRequest {
  return { ...request, messages: [...request.messages, ...between, { role: 'user', content }] };
}

interface RestAsker {
  readonly place: string;
  readonly options: { log: Log };
  ask(question: Further, signal: AbortSignal, shown: Shown): AsyncGenerator<ModelEvent, Answer>;
  limitOf(request: ModelRequest): number;
  titleOf(model: string): string;
  isOverflow(request: ModelRequest, model: string, empty: 'twice'): boolean;
}

/** The answer that completes or replaces the first; null if that is complete, or must do. */
export async function* restOf(
  asking: RestAsker,
  request: ModelRequest,
  model: string,
  first: Answer,
  signal: AbortSignal,
  shown: Shown,
): AsyncGenerator<ModelEvent, Answer | null> {
  const { place, options } = asking;
  const limit = asking.limitOf(request);
  const title = asking.titleOf(model);
  const further = furtherFor(request, first, limit);
  if (further === null) return null;
  const { why } = further;
  const fields = { server: place, model, why, finish: first.finish };
  options.log.info(fields, 'model answer was not whole; asking for the rest');
  const wordless = `${title} reached its limit of ${limit} tokens before it said anything, mostly by thinking, and more room did not help: raise model.max_output_tokens, or let it think less.`;
  let answer: Answer | null = null;
  try {
    answer = yield* asking.ask(further, signal, shown);
  } catch (error) {
    const isNothing = why === 'empty' || (why === 'failed call' && isEmpty(first));
    if (signal.aborted || !(error instanceof Fault) || isNothing) throw error;
    const reason = { server: place, why: describe(error) };
    options.log.warn(reason, 'asking for the rest of an answer failed; using what came');
    if (isEmpty(first) && !request.mayBeEmpty) throw new Fault('model_empty', wordless);
  }
  if (answer !== null && (!isEmpty(answer) || request.mayBeEmpty)) {
    // An unchanged text means that the model did not finish its sentence.
    return why === 'cut' && answer.text === first.text ? { ...answer, finish: first.finish } : answer;
  }
  if (answer === null || (why === 'failed call' && !isEmpty(first))) {
    yield* eventsTo(shown, first.text);
    return null;
  }
  if (isCutAtLimit(answer.finish)) throw new Fault('model_empty', wordless);
  const isNothing = why === 'empty' && first.usage === null && answer.usage === null;
  throw isNothing && asking.isOverflow(further.request, model, 'twice')
    ? overflow(title)
    : new Fault('model_empty', `${title} gave an empty answer twice.`);
}

/** Joins two texts and drops the words repeated at the joint. */
export function continued(before: string, after: string): string {
  const most = Math.min(before.length, after.length, MOST_OVERLAP);
  for (let length = most; length >= LEAST_OVERLAP; length--) {
    if (before.endsWith(after.slice(0, length))) return before + after.slice(length);
  }
  return before + after;
}

/** Like `continued`, for a text still being written: shows nothing while the joint may still change. */
export function continuedSoFar(before: string, after: string): string {
  return before === '' || after.length > MOST_OVERLAP ? continued(before, after) : before;
}
