/** What a failed request means: which fault it is, and whether the same server may be asked again. Pure. */
import type { FaultCode } from '../core/errors.js';
import type { ServerErrorDetails } from './server-error.js';

export interface Verdict {
  code: FaultCode;
  retry: boolean;
}

/** A server that asks to wait longer is not waited for: a fallback, or a person, is quicker. */
const LONGEST_WAIT_MS = 60_000;
const FIRST_WAIT_MS = 500;
const LONGEST_BACK_OFF_MS = 8_000;

/** Beside the code `context_length_exceeded`, the words of OpenAI, vLLM, llama.cpp, Ollama, OpenRouter and others. */
const TOO_LONG = [
  /context_length_exceeded|exceed_context_size/i,
  /maximum (context|prompt|model|input) length/i,
  /(context|model'?s context) (length|size|window|limit)\b.*\b(exceed|only|reduce|overflow)/i,
  /\b(exceed|larger|longer|greater|overflow)\w*\b.*\bcontext([ _-]?(length|size|window|limit))?\b/i,
  /\b(prompt|input|request|messages?)\b.{0,40}\b(is|are) too (long|large)\b/i,
  /\bprompt too long\b/i,
  /\binput token count\b.*\bexceeds\b/i,
  /\breduce the length of (the|your) (messages|prompt|input)/i,
  /\bmax_new_tokens\b.*must be <=/i,
  /\bcontext shift is disabled\b/i,
];

export function verdictOn(error: ServerErrorDetails): Verdict {
  if (error.kind === 'silent') return { code: 'model_unreachable', retry: false };
  if (error.kind !== 'answered') return { code: 'model_unreachable', retry: true };

  const { status, code = '', words } = error;
  if (code === 'insufficient_quota') return { code: 'model_refused', retry: false };
  if (status === 413) return { code: 'context_too_long', retry: false };
  if (status !== 429 && TOO_LONG.some((wording) => wording.test(`${code} ${words}`))) {
    return { code: 'context_too_long', retry: false };
  }
  // Without a status it is an error in the middle of an answer.
  const passing = status === undefined || status >= 500 || status === 408 || status === 409 || status === 429;
  if (!passing) return { code: 'model_refused', retry: false };
  const tooFar = (error.retryAfterMs ?? 0) > LONGEST_WAIT_MS;
  return { code: 'model_unreachable', retry: !tooFar && error.shouldRetry !== false };
}

/** How long to wait before the next try: what the server asks for, else longer each time, up to a quarter less. */
export function waitBefore(failures: number, error: ServerErrorDetails, random: () => number): number {
  if (error.retryAfterMs !== undefined) return error.retryAfterMs;
  const backOff = Math.min(FIRST_WAIT_MS * 2 ** (failures - 1), LONGEST_BACK_OFF_MS);
  return Math.round(backOff * (1 - random() / 4));
}
