/** What a failed request means: which fault it is, how an operator reads it, whether to ask again and when. Pure. */

import { Fault, type FaultCode } from '../core/errors.js';
import { backoff } from '../core/retry.js';
import { FILTERED, isTooLong, MALFORMED_CALL, type ServerErrorDetails } from './server-error.js';

/** A server that asks for a longer wait is not asked again: a fallback, or the person asking later, is quicker. */
const LONGEST_WAIT_MS = 60_000;
const FIRST_WAIT_MS = 500;
const LONGEST_BACK_OFF_MS = 8_000;

/** Groq says 413 where one request has more tokens than the account may send in a minute. */
const ACCOUNT_LIMIT = /tokens per minute|\bTPM\b/i;

/** The model was offered tools and wrote nonsense: sampling, which may end better the next time (Groq, Gemini). */
const BAD_CALLS: readonly string[] = ['tool_use_failed', MALFORMED_CALL];
const BAD_CALL =
  /\btool call validation failed\b|\bfailed to call a function\b|\bfailed_generation\b|\bmodel called a tool\b|\bparameters for tool\b[^.]*\bdid not match\b|\btool[ _-](?:call )?arguments\b|\barguments (?:of|for) (?:the )?(?:tool|function)\b/i;

/** What OpenAI says of a prompt that its filter took for something else; the same prompt mostly passes the next time. */
const FLAGGED = /\binvalid_prompt\b|\b(was|were|been) flagged\b/i;

export function isBadCall({ code = '', words }: ServerErrorDetails): boolean {
  return BAD_CALLS.includes(code) || BAD_CALL.test(words);
}

/** `estimated`: our estimate of the request in tokens. `retry`: whether the same server is asked again. */
export function classify(
  error: ServerErrorDetails,
  estimated: number,
): { code: FaultCode; retry: boolean | 'once' } {
  if (error.kind === 'silent') return { code: 'model_silent', retry: false };
  if (error.kind === 'endless') return { code: 'model_endless', retry: false };
  if (error.kind !== 'answered') return { code: 'model_unreachable', retry: true };

  const { status, code = '', words } = error;
  const isFinal = code === 'insufficient_quota' || code === FILTERED;
  if (isFinal) return { code: 'model_refused', retry: false };
  if (isBadCall(error)) return { code: 'model_refused', retry: 'once' };
  if (status === 400 && FLAGGED.test(`${code} ${words}`)) return { code: 'model_refused', retry: 'once' };
  if (status === 413 && ACCOUNT_LIMIT.test(words)) return { code: 'model_refused', retry: false };
  if (isTooLong(error, estimated)) return { code: 'context_too_long', retry: false };
  // Without a status it is an error in the middle of an answer.
  const isPassing = status === undefined || status >= 500 || [408, 409, 429].includes(status);
  if (!isPassing) return { code: 'model_refused', retry: false };
  const isTooFar = (error.retryAfterMs ?? 0) > LONGEST_WAIT_MS;
  return { code: 'model_unreachable', retry: !isTooFar && error.shouldRetry !== false };
}

/** How long to wait before the next try: what the server asks for, else longer each time, up to a quarter less. */
export function retryDelay(failures: number, error: ServerErrorDetails, random: () => number): number {
  const asked = error.retryAfterMs ?? 0;
  // One that asks for no time at all would be asked without a pause.
  if (asked >= FIRST_WAIT_MS) return asked;
  return backoff(failures, FIRST_WAIT_MS, LONGEST_BACK_OFF_MS, random);
}

/** `place` is the address as it may be shown. */
export function serverTitle(place: string, model: string): string {
  return `The model server at ${place} (model "${model}")`;
}

/** The words of the details hold no secret any more. */
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
  return new Fault(
    'model_empty',
    `${title} reached its limit of ${outputTokens} tokens before it said anything, mostly by thinking, and more room did not help: raise model.max_output_tokens, or let it think less.`,
  );
}

/** A long request brought an end without a word or a count: LM Studio says so where it does not fit. */
export function overflow(title: string): Fault {
  return new Fault(
    'context_too_long',
    `${title} gave nothing at all to a long request: it seems not to fit its context window. Raise the context length it loads the model with, or set model.context_tokens to it.`,
  );
}

export function stoppedRequest(title: string): Fault {
  return new Fault('model_unreachable', `${title} was not waited for: the request was stopped.`);
}

function whatHappened(error: ServerErrorDetails): string {
  const words = error.words.replace(/(?<![.\s])[.\s]+$/, '');
  if (error.kind === 'unreachable') return `could not be reached: ${words}`;
  if (error.kind !== 'answered') return words;
  return error.status === undefined ? `answered: ${words}` : `answered with ${error.status}: ${words}`;
}

function advice(code: FaultCode, error: ServerErrorDetails): string {
  if (code === 'context_too_long')
    return ' The conversation is made shorter; model.context_tokens says how much the model takes.';
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
