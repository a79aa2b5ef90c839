/** The sentences of a task's end, and how it is summed up. Pure. */
import { cutAt } from '../core/cut.js';

const MOST_SUMMARY_CHARS = 200;

export const INTERRUPTED = 'The gateway stopped while this task ran. It is not run again by itself.';
export const NO_TASK = 'What this task was given can no longer be read.';

export function timeIsUp(minutes: number): string {
  const amount = minutes === 1 ? 'a minute' : `${Math.round(minutes * 100) / 100} minutes`;
  return `The time for this task, ${amount}, was used up before it was done.`;
}

/** The first sentence, or the first line where that is shorter. */
export function summaryOf(text: string): string {
  const line = text
    .slice(0, MOST_SUMMARY_CHARS * 20)
    .split('\n')
    .map((each) => each.replace(/^[\s#>*-]+/, '').trim())
    .find((each) => each !== '' && !/^(`{3,}|~{3,})/.test(each));
  if (line === undefined) return '';
  const sentence = /^.*?[.!?…](?=\s|$)/u.exec(line)?.[0] ?? line;
  return sentence.length <= MOST_SUMMARY_CHARS ? sentence : `${cutAt(sentence, MOST_SUMMARY_CHARS - 1)}…`;
}
