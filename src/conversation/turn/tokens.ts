/** Token counts: our estimate for messages, the server's count for requests, and how full they make a persona's window. */

import { estimateTokens } from '../../core/cut.js';
import type { Metrics } from '../../core/log.js';
import type { ModelEvent, ModelMessage, Usage } from '../../core/model.js';
import type { Measured } from '../../core/transcript.js';
import type { WindowSize } from '../services.js';

/** Typical charge of models for an image of the size we send. */
const TOKENS_PER_IMAGE = 1_000;
/** Per message. */
const OVERHEAD = 4;

/** Our estimate, for use where no server has counted. */
export function tokensOf(messages: readonly ModelMessage[]): number {
  return messages.reduce((sum, message) => sum + tokensOfOne(message), 0);
}

function tokensOfOne(message: ModelMessage): number {
  const calls =
    message.role === 'assistant' ? message.calls.map((call) => call.name + call.arguments).join() : '';
  const images = message.role === 'user' ? (message.images?.length ?? 0) * TOKENS_PER_IMAGE : 0;
  return estimateTokens(message.content) + estimateTokens(calls) + images + OVERHEAD;
}

/** Sums the usage of several requests, ignoring those without a count. */
export function addedUsage(a: Usage | null, b: Usage | null): Usage | null {
  if (!a || !b) return a ?? b;
  const sum = { ...a };
  for (const [key, value] of Object.entries(b))
    sum[key as keyof Usage] = (sum[key as keyof Usage] ?? 0) + value;
  return sum;
}

/** Total usage of an answer. */
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

export interface SizeLimits {
  /** Tokens available for a request: the model's window minus the reserve for the answer. */
  tokens: number;
  /** `conversation.compact_after_messages`. */
  messages: number;
}

export type Pressure =
  | 'none'
  /** Time to flush and compact in the background. */
  | 'soon'
  /** The next request would not fit. */
  | 'now';

/** Share of a window at which background compaction starts. */
const BEGIN_AT = 0.75;
/**
 * A count below this share of our estimate is a miscount, as no alphabet takes so few tokens. Requests that a server cut are
 * detected by the model client, and their counts do not come here.
 */
const LEAST_CREDIBLE = 0.25;

/** Real tokens per estimated token. */
export function tokensPerEstimated(measured: Measured | null): number {
  if (!measured || measured.estimated <= 0) return 1;
  const ratio = measured.counted / measured.estimated;
  return ratio < LEAST_CREDIBLE ? 1 : ratio;
}

/** Corrects an estimate by the last request that the server counted. */
export function expectedTokens(estimated: number, measured: Measured | null): number {
  return estimated * tokensPerEstimated(measured);
}

export function pressureOf(sizes: WindowSize, measured: Measured | null, limits: SizeLimits): Pressure {
  const tokens = expectedTokens(sizes.estimated, measured);
  if (sizes.overfull || tokens > limits.tokens) return 'now';
  if (tokens >= BEGIN_AT * limits.tokens || sizes.messages >= limits.messages) return 'soon';
  return 'none';
}

/** Approximate number of characters that fit into so many tokens; the whole length if all of it fits. */
export function charsWithin(words: string, tokens: number): number {
  if (words.length <= tokens || estimateTokens(words) <= tokens) return words.length;
  let chars = tokens;
  while (estimateTokens(words.slice(0, Math.floor(chars * 1.25))) <= tokens) chars = Math.floor(chars * 1.25);
  return chars;
}
