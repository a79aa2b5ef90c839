/** Repeats a turn's recorded requests, with the results its calls had then, and compares the answers. No call is carried out. */
import type { Clock } from '../core/clock.js';
import { Fault } from '../core/errors.js';
import type { Echo, ModelClient, ModelMessage, ModelRequest, Prices, Usage } from '../core/model.js';
import type { Step } from '../core/transcript.js';
import type { RecordedEnd, RecordedMessage, RecordedRequest } from './files.js';
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
  const echo = echoOf(message.calls[0]?.id, steps);
  return echo === undefined ? message : { ...message, echo };
}

function echoOf(callId: string | undefined, steps: readonly Step[]): Echo | undefined {
  const answer = steps.find((step) => step.kind === 'answer' && step.calls[0]?.id === callId);
  return callId !== undefined && answer?.kind === 'answer' ? answer.echo : undefined;
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

export function usedBy(asked: readonly AskedAgain[]): {
  input: number;
  output: number;
  /** Absent if no price is known. */
  cost?: number;
} {
  let [input, output, cost] = [0, 0, 0];
  let isPriced = false;
  for (const { end, prices } of asked) {
    if (end.kind === 'failed') continue;
    for (const usage of [end.usage, end.further]) {
      if (!usage) continue;
      input += usage.inputTokens;
      output += usage.outputTokens;
      if (prices) cost += costOf(usage, prices);
      isPriced ||= prices !== undefined;
    }
  }
  return { input, output, ...(isPriced && { cost }) };
}

function costOf({ inputTokens, outputTokens }: Usage, { input, output }: Prices): number {
  return (inputTokens * input + outputTokens * output) / 1_000_000;
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
  let start = 0;
  while (start < was.length && start < is.length && was[start] === is[start]) start++;
  let end = 0;
  while (
    end < was.length - start &&
    end < is.length - start &&
    was[was.length - 1 - end] === is[is.length - 1 - end]
  )
    end++;
  const middle = changed(was.slice(start, was.length - end), is.slice(start, is.length - end));
  return [...signed(' ', was.slice(0, start)), ...middle, ...signed(' ', was.slice(was.length - end))];
}

/** Only changes with lines around them; `…` replaces the rest. Empty if nothing differs. */
export function shownDiff(lines: readonly DiffLine[]): string[] {
  if (lines.every(({ sign }) => sign === ' ')) return [];
  const isNear = (n: number) =>
    lines.slice(Math.max(0, n - AROUND), n + AROUND + 1).some(({ sign }) => sign !== ' ');
  const shown: string[] = [];
  let isCut = false;
  for (const [n, { sign, line }] of lines.entries()) {
    if (isNear(n)) shown.push(`${sign} ${line}`);
    else if (!isCut) shown.push('  …');
    isCut = !isNear(n);
  }
  return shown;
}

function changed(was: string[], is: string[]): DiffLine[] {
  if (was.length * is.length > MOST_CELLS) return [...signed('-', was), ...signed('+', is)];
  // `common[i][j]`: length of the longest common subsequence of the lines from i and from j.
  const width = is.length + 1;
  const common = new Uint32Array((was.length + 1) * width);
  const at = (i: number, j: number) => common[i * width + j] ?? 0;
  for (let i = was.length - 1; i >= 0; i--) {
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

function signed(sign: DiffLine['sign'], lines: string[]): DiffLine[] {
  return lines.map((line) => ({ sign, line }));
}
