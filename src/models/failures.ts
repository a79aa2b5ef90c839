/** What a failed request means: which fault it is, how an operator reads it, whether to ask again and when. Pure. */
import { Fault, type FaultCode } from '../core/errors.js';
import type { ServerErrorDetails } from './server-error.js';

/** A server that asks for a longer wait is not asked again: a fallback, or the person asking later, is quicker. */
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

export function classify(error: ServerErrorDetails): { code: FaultCode; retry: boolean } {
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

/** `finish` is why the model says that it ended. */
export function emptyAnswer(title: string, finish: string | null): Fault {
  if (finish === 'content_filter') {
    return new Fault('model_refused', `${title} gave no answer: its content filter stopped it.`);
  }
  const hint =
    finish === 'length'
      ? ' It reached its limit before it said anything, mostly by thinking: raise model.max_output_tokens.'
      : '';
  return new Fault('model_empty', `${title} gave an empty answer twice.${hint}`);
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
  if (error.status === 401 || error.status === 403) return ' Check model.api_key.';
  if (error.status === 404) return ' Check model.name and model.base_url.';
  if (error.code === 'insufficient_quota' || error.status === 402) return ' The account needs credit.';
  if (error.kind === 'silent') return ' It may be overloaded, or model.timeout_seconds too short for it.';
  if (error.kind === 'unreachable') return ' Check model.base_url and that the server runs.';
  return '';
}
