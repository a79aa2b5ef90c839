/**
 * Step 5 of the route: how many tokens messages take in a request, by our estimate, and what requests took by the server's
 * count.
 */
import type { Metrics } from '../../core/log.js';
import { estimateTokens, type ModelEvent, type ModelMessage, type Usage } from '../../core/model.js';

/** The order of magnitude that models charge for an image of the size we send. */
const TOKENS_PER_IMAGE = 1_000;
/** Per message. */
const OVERHEAD = 4;

/** By our estimate, for where no server has counted. */
export function tokensOf(messages: readonly ModelMessage[]): number {
  return messages.reduce((sum, message) => sum + tokensOfOne(message), 0);
}

function tokensOfOne(message: ModelMessage): number {
  const calls =
    message.role === 'assistant' ? message.calls.map((call) => call.name + call.arguments).join() : '';
  const images = message.role === 'user' ? (message.images?.length ?? 0) * TOKENS_PER_IMAGE : 0;
  return estimateTokens(message.content) + estimateTokens(calls) + images + OVERHEAD;
}

/** Sums the usage of several requests; those without a count are left out. */
export function addedUsage(a: Usage | null, b: Usage | null): Usage | null {
  if (!a || !b) return a ?? b;
  const sum = (x?: number, y?: number) => (x === undefined || y === undefined ? (x ?? y) : x + y);
  const cachedTokens = sum(a.cachedTokens, b.cachedTokens);
  const cacheWriteTokens = sum(a.cacheWriteTokens, b.cacheWriteTokens);
  const cost = sum(a.cost, b.cost);
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    ...(cachedTokens !== undefined && { cachedTokens }),
    ...(cacheWriteTokens !== undefined && { cacheWriteTokens }),
    ...(cost !== undefined && { cost }),
  };
}

/** What an answer took in all. */
export function spentOn({ usage, further }: ModelEvent & { kind: 'done' }): Usage | null {
  return addedUsage(usage, further ?? null);
}

export function countTokens(metrics: Metrics, usage: Usage | null): void {
  if (!usage) return;
  metrics.count('model_tokens_total', { direction: 'input' }, usage.inputTokens);
  metrics.count('model_tokens_total', { direction: 'output' }, usage.outputTokens);
  // Of the input.
  metrics.count('model_tokens_total', { direction: 'cached' }, usage.cachedTokens ?? 0);
  metrics.count('model_tokens_total', { direction: 'cache_write' }, usage.cacheWriteTokens ?? 0);
}
