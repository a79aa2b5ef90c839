/**
 * Step 5, inside the model client: the one further request for an answer that is not whole. Pure. An empty answer is
 * asked for with a new message, because the same request mostly brings the same, and so is a call in the text that cannot be
 * carried out; one that was cut at its limit is carried on; where thinking or a tool call filled the limit, there is more room.
 */
import type { ModelMessage, ModelRequest } from '../core/model.js';
import { type Answer, isCutAtLimit, isEmpty } from './answer.js';
import { parse, record } from './json.js';

export interface Further {
  why: 'empty' | 'no room' | 'cut' | 'failed call';
  request: ModelRequest;
  outputTokens: number;
  /** The text so far, which the answer to it continues. */
  before: string;
}

/** How many times as much room. */
const MORE_ROOM = 4;

const SAY_SOMETHING =
  'Your answer was empty. Please continue: say in words, in the language of the conversation, what there is to say.';
const notCalled = (why: string) =>
  `Your last answer tried to call a tool in its text, which did nothing and was shown to nobody. ${why} If the call is still needed, make it as a proper tool call; else answer in words, in the language of the conversation.`;
const CARRY_ON =
  'Your answer was cut off at its length limit. Begin with its last few words once more, and carry on from there to the end, in the same language and form. Say nothing about the interruption.';

/** An overlap of what was said and what follows is looked for within this, and believed from this length on. */
const MOST_OVERLAP = 200;
const LEAST_OVERLAP = 8;

export function furtherFor(request: ModelRequest, answer: Answer, outputTokens: number): Further | null {
  const { text, calls, finish, failedCall } = answer;
  const atLimit = isCutAtLimit(finish);
  const again = { request, outputTokens, before: '' };
  const roomy = { outputTokens: outputTokens * MORE_ROOM, before: '' };
  if (calls.length === 0 && failedCall !== undefined) {
    if (atLimit && failedCall.isOpen) return { ...roomy, why: 'no room', request };
    const said = text === '' ? [] : [{ role: 'assistant' as const, content: text, calls: [] }];
    return { ...again, why: 'failed call', request: withMore(request, notCalled(failedCall.why), ...said) };
  }
  if (isEmpty(answer)) {
    if (atLimit) return { ...roomy, why: 'no room', request };
    return request.mayBeEmpty ? null : { ...again, why: 'empty', request: withMore(request, SAY_SOMETHING) };
  }
  if (!atLimit) return null;
  if (calls.length > 0) {
    const isReadable = calls.every((call) => record(parse(call.arguments)) !== null);
    return isReadable ? null : { ...roomy, why: 'no room', request };
  }
  const thought = answer.reasoningTokens ?? 0;
  return {
    why: 'cut',
    request: withMore(request, CARRY_ON, { role: 'assistant', content: text, calls: [] }),
    outputTokens: thought > outputTokens / 2 ? outputTokens * MORE_ROOM : outputTokens,
    before: text,
  };
}

/** What was said and what follows it as one text; words that were said again at the joint stand there once. */
export function continued(before: string, after: string): string {
  const most = Math.min(before.length, after.length, MOST_OVERLAP);
  for (let length = most; length >= LEAST_OVERLAP; length--) {
    if (before.endsWith(after.slice(0, length))) return before + after.slice(length);
  }
  return before + after;
}

/** As `continued`, of a text that is still being written: nothing is shown while the joint may still move. */
export function continuedSoFar(before: string, after: string): string {
  return before === '' || after.length > MOST_OVERLAP ? continued(before, after) : before;
}

function withMore(request: ModelRequest, content: string, ...between: ModelMessage[]): ModelRequest {
  return { ...request, messages: [...request.messages, ...between, { role: 'user', content }] };
}
