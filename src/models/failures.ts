/** What a failed request means: which fault it is, how an operator reads it, whether to ask again and when. Pure. */
import { Fault, type FaultCode } from '../core/errors.js';
import { FILTERED, MALFORMED_CALL } from './finish.js';
import type { ServerErrorDetails } from './server-error.js';

/** A server that asks for a longer wait is not asked again: a fallback, or the person asking later, is quicker. */
const LONGEST_WAIT_MS = 60_000;
const FIRST_WAIT_MS = 500;
const LONGEST_BACK_OFF_MS = 8_000;

/** Beside the code `context_length_exceeded`, the words of OpenAI, vLLM, llama.cpp, Ollama, OpenRouter and others. */
const TOO_LONG = [
  /context_(length|window)_exceeded|exceed_context_size/i,
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

/** Groq says 413 where one request has more tokens than the account may send in a minute. */
const ACCOUNT_LIMIT = /tokens per minute|\bTPM\b/i;

/** The model was offered tools and wrote nonsense: sampling, which may end better the next time (Groq, Gemini). */
const BAD_CALLS: readonly string[] = ['tool_use_failed', MALFORMED_CALL];

export interface Verdict {
  code: FaultCode;
  /** Whether the same server is asked again. */
  retry: boolean | 'once';
}

export function classify(error: ServerErrorDetails): Verdict {
  if (error.kind === 'silent') return { code: 'model_unreachable', retry: false };
  if (error.kind !== 'answered') return { code: 'model_unreachable', retry: true };

  const { status, code = '', words } = error;
  if (code === 'insufficient_quota') return { code: 'model_refused', retry: false };
  if (code === FILTERED) return { code: 'model_refused', retry: false };
  if (BAD_CALLS.includes(code)) return { code: 'model_refused', retry: 'once' };
  if (status === 413 && ACCOUNT_LIMIT.test(words)) return { code: 'model_refused', retry: false };
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
export function retryDelay(failures: number, error: ServerErrorDetails, random: () => number): number {
  if (error.retryAfterMs !== undefined) return error.retryAfterMs;
  const backOff = Math.min(FIRST_WAIT_MS * 2 ** (failures - 1), LONGEST_BACK_OFF_MS);
  return Math.round(backOff * (1 - random() / 4));
}

/** `place` is the address as it may be shown; the words of the details hold no secret any more. */
export function serverTitle(place: string, model: string): string {
  return `The model server at ${place} (model "${model}")`;
}

export function failedRequest(
  code: FaultCode,
  title: string,
  error: ServerErrorDetails,
  attempts: number,
): Fault {
  const times = attempts > 1 ? ` (asked ${attempts} times)` : '';
  return new Fault(code, `${title} ${whatHappened(error)}${times}.${advice(code, error)}`);
}

export function emptyAnswer(title: string): Fault {
  return new Fault('model_empty', `${title} gave an empty answer twice.`);
}

/** It filled its limit without a word; `outputTokens` is what it was given at first. */
export function wordlessAnswer(title: string, outputTokens: number): Fault {
  const what = `${title} reached its limit of ${outputTokens} tokens before it said anything, mostly by thinking`;
  return new Fault(
    'model_empty',
    `${what}, and more room did not help: raise model.max_output_tokens, or let it think less.`,
  );
}

export function stoppedRequest(title: string): Fault {
  return new Fault('model_unreachable', `${title} was not waited for: the request was stopped.`);
}

function whatHappened(error: ServerErrorDetails): string {
  const words = error.words.replace(/[.\s]+$/, '');
  if (error.kind === 'unreachable') return `could not be reached: ${words}`;
  if (error.kind !== 'answered') return words;
  return error.status === undefined ? `answered: ${words}` : `answered with ${error.status}: ${words}`;
}

function advice(code: FaultCode, error: ServerErrorDetails): string {
  if (code === 'context_too_long') return ' Set model.context_tokens to what the server really has.';
  if (ACCOUNT_LIMIT.test(error.words)) {
    return ' Raise the limit of the account, or set model.context_tokens below it.';
  }
  if (error.status === 401 || error.status === 403) return ' Check model.api_key.';
  if (error.status === 404) return ' Check model.name and model.base_url.';
  if (error.code === 'insufficient_quota' || error.status === 402) return ' The account needs credit.';
  if (error.kind === 'silent') return ' It may be overloaded, or model.timeout_seconds too short for it.';
  if (error.kind === 'unreachable') return ' Check model.base_url and that the server runs.';
  return '';
}
