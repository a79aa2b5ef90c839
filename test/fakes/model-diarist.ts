/**
 * A scripted model for long conversations: it writes down what it is told to, saves the rest when it is asked to flush, sums
 * up what leaves its window, and says what it could not do. All that it does is in its answers, so that a test can count.
 */
import type { ChatBody } from './model.js';
import type { ModelScript } from './model-script.js';

/** What it does with `note N`, `both N` and `plain N`, and what it answers then. */
export const ANSWERS = { note: 'noted', both: 'noted twice', plain: 'heard' } as const;

export type Wish = keyof typeof ANSWERS;

const daily = (content: string) => ({ name: 'write_memory', arguments: { scope: 'chat_daily', content } });

export function diarist(body: ChatBody): ModelScript {
  const { messages } = body;
  const asked = messages.findLast(({ role }) => role === 'user')?.content ?? '';
  if (asked.includes('<summary_so_far>')) return { text: `Talked of ${numbersIn(asked).join(', ')}.` };
  const isAnswered = messages.at(-1)?.role === 'tool';
  if (messages.some(({ role, content }) => role === 'user' && content?.includes('Memory flush.'))) {
    if (isAnswered || asked.startsWith('Your answer was empty')) return { text: 'done' };
    const fresh = numbersIn(messages.map(({ content }) => content ?? '').join('\n'));
    return { calls: [daily(`flushed up to ${fresh.at(-1)}`)] };
  }

  // What the gateway itself asks for, in a new message, is about the last one that a person wrote.
  const said = messages.findLast(
    ({ role, content }) => role === 'user' && content?.includes('<user_message'),
  );
  const [, wish, number] =
    [...(said?.content ?? '').matchAll(/>(note|both|plain) (\d+)[^\d<]*</g)].at(-1) ?? [];
  if (wish === undefined) return { text: 'I do not know what you want.' };
  const answer = `${ANSWERS[wish as Wish]} ${number}`;
  const hasWritten = isAnswered || (said === undefined ? -1 : messages.indexOf(said)) < messages.length - 1;
  if (wish === 'plain' || hasWritten) return { text: answer };
  if (body.tools === undefined) return { text: `could not note ${number}` };
  // Some models speak while they call, others do not.
  const text = Number(number) % 2 === 0 ? { text: answer } : {};
  const second = { name: 'read_tiered_memory', arguments: { tier: 1 } };
  return { ...text, calls: [...(wish === 'both' ? [second] : []), daily(`fact ${number}`)] };
}

function numbersIn(text: string): number[] {
  return [...text.matchAll(/\b(?:note|both|plain) (\d+)\b/g)].map(([, number]) => Number(number));
}
