/** Repeats a turn's recorded requests with the results of then, and compares the answers. No call is carried out. */
import type { Clock } from '../core/clock.js';
import { Fault } from '../core/errors.js';
import type { RecordedEnd, RecordedMessage, RecordedRequest } from '../core/journal.js';
import type { ModelClient, ModelMessage, ModelRequest, Prices } from '../core/model.js';
import type { Step } from '../core/transcript.js';
import { endOf } from './records.js';

export interface AskedAgain {
  end: RecordedEnd;
  ms: number;
  /** Prices of the model that answered. Absent if unknown. */
  prices?: Prices;
}

/** `steps`: of the turn; they hold the fields to return to the server. */
export async function askAgain(
  { model, clock }: { model: ModelClient; clock: Clock },
  request: RecordedRequest,
  steps: readonly Step[],
  signal: AbortSignal,
): Promise<AskedAgain> {
  const { at: _, ms: __, end: ___, messages, ...settings } = request;
  const asked: ModelRequest = { ...settings, messages: messages.map((each) => messageOf(each, steps)) };
  const began = clock.now();
  for await (const event of model.stream(asked, signal)) {
    if (event.kind === 'text' || event.kind === 'restart') continue;
    const { prices } = event;
    return { end: endOf(event), ms: clock.now() - began, ...(prices && { prices }) };
  }
  throw new Fault('internal', 'the model client ended its stream without a word');
}

function messageOf(message: RecordedMessage, steps: readonly Step[]): ModelMessage {
  if (message.role === 'user') return { role: 'user', content: message.content };
  if (message.role !== 'assistant') return message;
  const id = message.calls[0]?.id;
  const answer = steps.find((step) => step.kind === 'answer' && step.calls[0]?.id === id);
  if (id === undefined || answer?.kind !== 'answer' || answer.echo === undefined) return message;
  return { ...message, echo: answer.echo };
}

/** An answer as comparable lines: its text, then its calls without ids, which vary. */
export function comparable(end: RecordedEnd): string {
  if (end.kind === 'failed') return `(failed: ${end.why})`;
  const calls = end.calls.map(({ name, arguments: given }) => `calls ${name} ${laidOut(given)}`);
  return [end.text.trim(), ...calls].filter((part) => part !== '').join('\n');
}

/** Indented JSON with one argument per line, if it is JSON. */
function laidOut(given: string): string {
  try {
    return JSON.stringify(JSON.parse(given || '{}'), null, 2);
  } catch {
    return given;
  }
}

interface DiffLine {
  sign: ' ' | '-' | '+';
  line: string;
}

/** If the product of both lengths exceeds this, the middle counts as wholly changed: a diff would take too long. */
const MOST_CELLS = 4_000_000;
const AROUND = 3;

/** All lines of both texts in order; lines in only one are signed. */
export function diffOf(before: string, after: string): DiffLine[] {
  const was = before.split('\n');
  const is = after.split('\n');
  const shorter = Math.min(was.length, is.length);
  let start = 0;
  while (start < shorter && was[start] === is[start]) start++;
  let end = 0;
  while (end < shorter - start && was.at(-1 - end) === is.at(-1 - end)) end++;
  const same = (lines: string[]) => lines.map((line): DiffLine => ({ sign: ' ', line }));
  const middle = changed(was.slice(start, was.length - end), is.slice(start, is.length - end));
  return [...same(was.slice(0, start)), ...middle, ...same(was.slice(was.length - end))];
}

function changed(was: string[], is: string[]): DiffLine[] {
  const isTooLong = was.length * is.length > MOST_CELLS;
  // `common[i][j]`: length of the longest common subsequence of the lines from i and from j.
  const width = is.length + 1;
  const common = new Uint32Array(isTooLong ? 0 : (was.length + 1) * width);
  const at = (i: number, j: number) => common[i * width + j] ?? 0;
  for (let i = was.length - 1; i >= 0 && !isTooLong; i--) {
    for (let j = is.length - 1; j >= 0; j--) {
      common[i * width + j] = was[i] === is[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < was.length || j < is.length) {
    const [old, fresh] = [was[i], is[j]];
    if (old !== undefined && old === fresh) {
      lines.push({ sign: ' ', line: old });
      i++;
      j++;
    } else if (old !== undefined && (fresh === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ sign: '-', line: old });
      i++;
    } else if (fresh !== undefined) {
      lines.push({ sign: '+', line: fresh });
      j++;
    }
  }
  return lines;
}

/** Only changes with lines around them; `…` replaces the rest. Empty if nothing differs. */
export function shownDiff(lines: readonly DiffLine[]): string[] {
  if (lines.every(({ sign }) => sign === ' ')) return [];
  const isNear = (n: number) =>
    lines.slice(Math.max(0, n - AROUND), n + AROUND + 1).some(({ sign }) => sign !== ' ');
  return lines.flatMap(({ sign, line }, n) => {
    if (isNear(n)) return [`${sign} ${line}`];
    return n === 0 || isNear(n - 1) ? ['  …'] : [];
  });
}
