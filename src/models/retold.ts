/**
 * Step 5, to the server: messages retold in a form that it takes, where it does not take them as they are. What can stay
 * stays the same object, whose text is written once. Pure.
 */

import type { ModelMessage } from '../core/model.js';
import { element, escaped } from '../core/origin.js';
import { sentName } from './call-names.js';

/** Calls to which `applies`, and their results, become text, and speakers take turns. */
export function withoutCalls(
  messages: ModelMessage[],
  applies: (message: ModelMessage) => boolean,
): ModelMessage[] {
  const names = new Map<string, string>();
  const plain: ModelMessage[] = [];
  for (const message of messages) {
    if (message.role === 'assistant' && applies(message)) {
      for (const call of message.calls) names.set(call.id, sentName(call.name));
    }
    const next = inWords(message, names);
    const last = plain.at(-1);
    const whole = last === undefined ? null : merged(last, next);
    if (whole === null) plain.push(next);
    else plain[plain.length - 1] = whole;
  }
  return plain;
}

/** `names` are those of the calls that are told in words, by id. */
function inWords(message: ModelMessage, names: ReadonlyMap<string, string>): ModelMessage {
  if (message.role === 'tool') {
    const name = names.get(message.callId);
    return name === undefined
      ? message
      : { role: 'user', content: element('tool_result', { of: name }, message.content) };
  }
  if (message.role !== 'assistant' || !message.calls.some(({ id }) => names.has(id))) return message;
  const called = message.calls.map((call) =>
    escaped(`[Called ${sentName(call.name)} with ${call.arguments}]`),
  );
  const content = [message.content, ...called].filter((text) => text !== '').join('\n');
  return { role: 'assistant', content, calls: [] };
}

/** null where they are to stay apart. */
function merged(last: ModelMessage, next: ModelMessage): ModelMessage | null {
  const content = [last.content, next.content].filter((text) => text !== '').join('\n\n');
  if (last.role === 'user' && next.role === 'user') {
    const images = [...(last.images ?? []), ...(next.images ?? [])];
    return { role: 'user', content, ...(images.length > 0 && { images }) };
  }
  if (last.role !== 'assistant' || next.role !== 'assistant') return null;
  return last.calls.length > 0 || next.calls.length > 0 ? null : { role: 'assistant', content, calls: [] };
}

const BETWEEN: ModelMessage = { role: 'assistant', content: '(I have read the results.)', calls: [] };

/** With a word of the model between a result and what a user says next (Mistral). */
export function inOrder(messages: ModelMessage[]): ModelMessage[] {
  return messages.flatMap((message, n) => (isUserAfterTool(messages, n) ? [BETWEEN, message] : [message]));
}

export function isOutOfOrder(messages: ModelMessage[]): boolean {
  return messages.some((_message, n) => isUserAfterTool(messages, n));
}

function isUserAfterTool(messages: ModelMessage[], n: number): boolean {
  return messages[n]?.role === 'user' && messages[n - 1]?.role === 'tool';
}

const GOES_ON: ModelMessage = { role: 'user', content: '(The conversation goes on.)' };

/** Sides take turns, beginning with the user; what stands beside calls and their results is left as it is. */
export function inTurns(messages: ModelMessage[]): ModelMessage[] {
  const merged = withoutCalls(messages, () => false);
  const first = merged.findIndex(({ role }) => role !== 'system');
  return merged[first]?.role === 'assistant' ? merged.toSpliced(first, 0, GOES_ON) : merged;
}

/** Whether they do already, calls and results not counted. */
export function takesTurns(messages: ModelMessage[]): boolean {
  const sides = messages
    .filter((message) => !(message.role === 'assistant' && message.calls.length > 0))
    .map(({ role }) => role)
    .filter((role) => role === 'user' || role === 'assistant');
  return sides.every((role, n) => role === (n % 2 === 0 ? 'user' : 'assistant'));
}

/** What stands in system messages stands before the first words of a user instead. */
export function withoutSystem(messages: ModelMessage[]): ModelMessage[] {
  const isSystem = ({ role }: ModelMessage) => role === 'system';
  const system = messages.filter(isSystem).map(({ content }) => content);
  const [first, ...rest] = messages.filter((message) => !isSystem(message));
  const instructions: ModelMessage = { role: 'user', content: system.join('\n\n') };
  if (first === undefined) return [instructions];
  const whole = merged(instructions, first);
  return whole === null ? [instructions, first, ...rest] : [whole, ...rest];
}
