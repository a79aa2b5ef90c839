/**
 * Asks a model once more what it was asked in a turn: each request as it was sent, with the results that its calls had
 * then. Nothing that it answers is carried out.
 */
import type { Clock } from '../core/clock.js';
import { Fault } from '../core/errors.js';
import type { Echo, ModelClient, ModelMessage, ModelRequest, Prices, Usage } from '../core/model.js';
import type { Step } from '../core/transcript.js';
import { endOf, type RecordedEnd, type RecordedMessage, type RecordedRequest } from './record.js';

export interface AskedAgain {
  end: RecordedEnd;
  ms: number;
  /** Of whoever answered; left out where none are known. */
  prices?: Prices;
}

/** `steps`: those of the turn, which have what the server wants back unread. */
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

/** What an answer came to, as lines that can be compared: its words, then its calls without the ids that change. */
export function comparable(end: RecordedEnd): string {
  if (end.kind === 'failed') return `(failed: ${end.why})`;
  const calls = end.calls.map(({ name, arguments: given }) => `calls ${name} ${laidOut(given)}`);
  return [end.text.trim(), ...calls].filter((part) => part !== '').join('\n');
}

/** A line for each argument, where they are JSON. */
function laidOut(given: string): string {
  try {
    return JSON.stringify(JSON.parse(given || '{}'), null, 2);
  } catch {
    return given;
  }
}

/** What the requests took together. */
export function usedBy(asked: readonly Pick<AskedAgain, 'end' | 'prices'>[]): {
  input: number;
  output: number;
  /** Left out where no price is known. */
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
