/** How the faults of a model server are worded for an operator: what happened, where, what to do. */
import { Fault, type FaultCode } from '../core/errors.js';
import type { ServerErrorDetails } from './server-error.js';

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
