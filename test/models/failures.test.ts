import { describe, expect, test } from 'vitest';
import { classify, retryDelay } from '../../src/models/failures.js';

const answered = (status: number | undefined, words = '', more = {}) =>
  classify({ kind: 'answered', status, words, ...more }, 100);

describe('what a failure means', () => {
  test.each([408, 409, 429, 500, 502, 503, 524, 529, undefined])('%s passes: it is asked again', (status) => {
    expect(answered(status)).toEqual({ code: 'model_unreachable', retry: true });
  });

  test.each([400, 401, 402, 403, 404, 405, 422])('%s is a refusal', (status) => {
    expect(answered(status)).toEqual({ code: 'model_refused', retry: false });
  });

  test('no credit is a refusal, though it comes as 429', () => {
    expect(answered(429, 'quota', { code: 'insufficient_quota' })).toEqual({
      code: 'model_refused',
      retry: false,
    });
  });

  test('a server that asks not to be asked again, or to be asked tomorrow, is not', () => {
    expect(answered(503, '', { shouldRetry: false }).retry).toBe(false);
    expect(answered(429, '', { retryAfterMs: 60_000 }).retry).toBe(true);
    expect(answered(429, '', { retryAfterMs: 61_000 }).retry).toBe(false);
  });

  test('silence is not repeated, a broken connection or answer is', () => {
    expect(classify({ kind: 'silent', words: '' }, 100).retry).toBe(false);
    expect(classify({ kind: 'unreachable', words: '' }, 100).retry).toBe(true);
    expect(classify({ kind: 'broken', words: '' }, 100).retry).toBe(true);
  });

  /** As OpenAI, vLLM, llama.cpp, Ollama, OpenRouter, Gemini, Mistral, Anthropic's proxies, SGLang, LM Studio say it. */
  test.each([
    [
      400,
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    ],
    [400, "'max_tokens' is too large: 4096. This model's maximum context length is 8192 tokens"],
    [
      400,
      "You passed 1015 input tokens and requested 10 output tokens. However, the model's context length is only 1024 tokens",
    ],
    [400, 'The decoder prompt (length 9000) is longer than the maximum model length of 8192.'],
    [400, 'request (33056 tokens) exceeds the available context size (32768 tokens), try increasing it'],
    [500, 'Context size has been exceeded.'],
    [400, 'input length exceeds maximum context length'],
    [400, 'prompt too long; exceeded max context length by 5 tokens'],
    [
      400,
      "This endpoint's maximum context length is 131072 tokens. However, you requested about 200000 tokens",
    ],
    [400, 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).'],
    [400, 'Prompt contains 40000 tokens, too large for model with 32768 maximum context length'],
    [400, 'prompt is too long: 210000 tokens > 200000 maximum'],
    [400, "The input (5000 tokens) is longer than the model's context length (4096 tokens)."],
    [400, 'The number of tokens to keep from the initial prompt is greater than the context length'],
    [400, 'Please reduce the length of the messages or completion.'],
    [undefined, 'context_length_exceeded'],
  ])('%s %j is too long', (status, words) => {
    expect(answered(status, words)).toEqual({ code: 'context_too_long', retry: false });
  });

  test('413 without a word of the model is too long where the request is long, and a refusal where it is not', () => {
    const error = { kind: 'answered', status: 413, words: 'Request entity too large' } as const;
    expect(classify(error, 40_000)).toEqual({ code: 'context_too_long', retry: false });
    expect(classify(error, 100)).toEqual({ code: 'model_refused', retry: false });
  });

  test('by its code alone', () => {
    expect(answered(400, 'no', { code: 'context_length_exceeded' }).code).toBe('context_too_long');
  });

  test.each([
    [429, 'Request too large for small on tokens per min: reduce the length of the messages'],
    [400, "Invalid 'messages[1].content': string too long."],
    [400, 'The model `context` does not exist'],
  ])('%s %j is something else', (status, words) => {
    expect(answered(status, words).code).not.toBe('context_too_long');
  });
});

describe('how long to wait', () => {
  const error = { kind: 'answered' as const, words: '' };
  test('longer each time, up to eight seconds', () => {
    expect([1, 2, 3, 4, 5, 6, 60].map((n) => retryDelay(n, error, () => 0))).toEqual([
      500, 1000, 2000, 4000, 8000, 8000, 8000,
    ]);
    expect(retryDelay(1, error, () => 1)).toBe(375);
  });
  test('what the server asks for', () => {
    expect(retryDelay(5, { ...error, retryAfterMs: 500 }, () => 1)).toBe(500);
    expect(retryDelay(5, { ...error, retryAfterMs: 3000 }, () => 1)).toBe(3000);
  });

  test('longer each time, where it asks for none', () => {
    const waits = [1, 2, 3].map((failures) => retryDelay(failures, { ...error, retryAfterMs: 0 }, () => 0));
    expect(waits).toEqual([500, 1_000, 2_000]);
  });
});
