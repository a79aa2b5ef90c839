/** Token counts: our estimate for messages, the server's count for requests, and how full they make a persona's window. */

import { answerTokens, estimateTokens } from '../../core/cut.js';
import type { Metrics } from '../../core/log.js';
import type { ModelEvent, ModelMessage, ToolCall, Usage } from '../../core/model.js';
import type { Measured } from '../../core/transcript.js';
import type { BaseServices, WindowSize } from '../services.js';

/** Typical charge of models for an image of the size we send. */
const TOKENS_PER_IMAGE = 1_000;
/** Per message. */
const OVERHEAD = 4;

/** Our estimate, for use where no server has counted. */
export function tokensOf(messages: readonly ModelMessage[]): number {
  return messages.reduce((sum, message) => {
    const calls = message.role === 'assistant' ? writtenCalls(message.calls) : '';
    const images = message.role === 'user' ? (message.images?.length ?? 0) * TOKENS_PER_IMAGE : 0;
    return sum + estimateTokens(message.content) + estimateTokens(calls) + images + OVERHEAD;
  }, 0);
}

export function writtenCalls(calls: readonly ToolCall[]): string {
  return calls.map((call) => call.name + call.arguments).join();
}

/** Available for a request to a persona's model: its window, as known now, minus the answer's reserve. */
export function requestTokens({ model, settings }: BaseServices, name: string | null): number {
  const window = model.contextTokens(name ?? undefined);
  return Math.max(1_000, window - answerTokens(window, settings.maxOutputTokens));
}

/** Minimum share of a request for a turn's own steps; if the conversation leaves less, it is compacted. */
const LEAST_FOR_STEPS = 0.25;

/** `most`: capacity of a request. `used`: size of this one without the turn's steps. Both in tokens. */
export function roomForSteps(most: number, used: number): number {
  return Math.max(most - used, most * LEAST_FOR_STEPS);
}

/** Sums the usage of several requests, ignoring those without a count. */
export function addedUsage(a: Usage | null, b: Usage | null): Usage | null {
  if (!a || !b) return a ?? b;
  const sum = { ...a };
  for (const [key, value] of Object.entries(b))
    sum[key as keyof Usage] = (sum[key as keyof Usage] ?? 0) + value;
  return sum;
}

export function spentOn({ usage, further }: ModelEvent & { kind: 'done' }): Usage | null {
  return addedUsage(usage, further ?? null);
}

export function countTokens(metrics: Metrics, usage: Usage | null): void {
  if (!usage) return;
  metrics.count('model_tokens_total', { direction: 'input' }, usage.inputTokens);
  metrics.count('model_tokens_total', { direction: 'output' }, usage.outputTokens);
  // Part of the input.
  metrics.count('model_tokens_total', { direction: 'cached' }, usage.cachedTokens ?? 0);
  metrics.count('model_tokens_total', { direction: 'cache_write' }, usage.cacheWriteTokens ?? 0);
}

type Pressure =
  | 'none'
  /** Time to flush and compact in the background. */
  | 'soon'
  /** The next request would not fit. */
  | 'now';

/** Share of a window at which background compaction starts. */
const BEGIN_AT = 0.75;
/** A count below this share of our estimate is a miscount, as no alphabet takes so few tokens. */
const LEAST_CREDIBLE = 0.25;

export function tokensPerEstimated(measured: Measured | null): number {
  if (!measured || measured.estimated <= 0) return 1;
  const ratio = measured.counted / measured.estimated;
  return ratio < LEAST_CREDIBLE ? 1 : ratio;
}

/** `most`: tokens available for a request; `mostMessages`: `conversation.compact_after_messages`. */
export function pressureOf(
  sizes: WindowSize,
  measured: Measured | null,
  most: number,
  mostMessages: number,
): Pressure {
  const tokens = sizes.estimated * tokensPerEstimated(measured);
  if (sizes.overfull || tokens > most) return 'now';
  return tokens >= BEGIN_AT * most || sizes.messages >= mostMessages ? 'soon' : 'none';
}

/** Approximate number of characters that fit into so many tokens; the whole length if all of it fits. */
export function charsWithin(words: string, tokens: number): number {
  if (words.length <= tokens || estimateTokens(words) <= tokens) return words.length;
  let chars = tokens;
  while (estimateTokens(words.slice(0, Math.floor(chars * 1.25))) <= tokens) chars = Math.floor(chars * 1.25);
  return chars;
}
