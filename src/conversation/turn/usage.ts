/** Step 5 of the route: adds up what requests took, and counts it. */
import type { Metrics } from '../../core/log.js';
import type { ModelEvent, Usage } from '../../core/model.js';

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
