/** Tokens as servers count them: chat completions, the Responses API, and what each calls its prompt cache. Pure. */
import type { Usage } from '../core/model.js';
import { record } from './json.js';

export function usageOf(value: unknown): Usage | null {
  const usage = record(value);
  if (usage === null) return null;
  const inputTokens = count(usage.prompt_tokens ?? usage.input_tokens);
  const outputTokens = count(usage.completion_tokens ?? usage.output_tokens ?? 0);
  if (inputTokens === null || outputTokens === null) return null;
  const input = record(usage.prompt_tokens_details ?? usage.input_tokens_details) ?? {};
  // OpenAI, OpenRouter, vLLM, Groq; DeepSeek; Moonshot; Anthropic's own words, where a proxy passes them on.
  const cachedTokens = first(
    input.cached_tokens,
    usage.prompt_cache_hit_tokens,
    usage.cached_tokens,
    usage.cache_read_input_tokens,
  );
  const cacheWriteTokens = first(
    input.cache_write_tokens,
    usage.cache_write_tokens,
    usage.cache_creation_input_tokens,
  );
  // A share is not larger than the whole: these stand beside it, as Anthropic counts.
  const isBeside = inputTokens < Math.max(cachedTokens ?? 0, cacheWriteTokens ?? 0);
  const beside = isBeside ? (cachedTokens ?? 0) + (cacheWriteTokens ?? 0) : 0;
  return {
    inputTokens: inputTokens + beside,
    outputTokens,
    ...(cachedTokens !== null && { cachedTokens }),
    ...(cacheWriteTokens !== null && { cacheWriteTokens }),
  };
}

/** How many of the tokens that were written went into reasoning; null where the server does not say. */
export function reasoningTokensOf(value: unknown): number | null {
  const usage = record(value);
  const output = record(usage?.completion_tokens_details ?? usage?.output_tokens_details);
  return count(output?.reasoning_tokens);
}

function first(...values: unknown[]): number | null {
  return count(values.find((value) => count(value) !== null));
}

function count(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 ? value : null;
}
