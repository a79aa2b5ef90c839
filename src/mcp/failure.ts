/** What a failed call means, for the model and for the connection: refused, not reached, or nobody knows. Pure. */
import { describe } from '../core/errors.js';
import type { ToolResult } from '../core/tool.js';
import { oneLine } from './words.js';

export interface Failure {
  result: ToolResult;
  /** The connection is of no use any more: it is made anew. */
  isLost: boolean;
}

const NOT_REACHED = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ESRCH',
]);
const UNKNOWN =
  'whether the call was carried out is unknown. Do not take it for done, nor for undone; look first, or ask.';

export const AWAY = 'The server cannot be reached just now. Nothing was done.';

/** Errors of the client library by the codes that they carry, so that its classes need not be loaded here. */
export function failureOf(error: unknown, seconds: number): Failure {
  const { code, status, data } = (error ?? {}) as {
    code?: unknown;
    status?: unknown;
    data?: { status?: unknown };
  };
  const http = Number(data?.status ?? status);
  if (typeof code === 'number') {
    return { result: failed(`The server refused the call: ${oneLine(describe(error), 500)}`), isLost: false };
  }
  switch (code) {
    case 'REQUEST_TIMEOUT':
      return {
        result: failed(`The server did not answer within ${seconds} s, so ${UNKNOWN}`),
        isLost: false,
      };
    case 'UNSUPPORTED_RESULT_TYPE':
      return {
        result: failed(
          'The server asked for something in return (a person’s input, or a model’s), which it does not get here, so the call came to nothing.',
        ),
        isLost: false,
      };
    case 'NOT_CONNECTED':
      return { result: failed(AWAY), isLost: true };
    case 'INVALID_RESULT':
      return { result: failed(`The server’s answer is none that can be read; ${UNKNOWN}`), isLost: false };
  }
  if (http === 401 || http === 403) {
    return { result: failed('The server does not let this gateway in. Nothing was done.'), isLost: true };
  }
  if (http === 404) {
    return {
      result: failed('The server has forgotten this connection. Nothing was done; call again.'),
      isLost: true,
    };
  }
  if (http >= 400) {
    return {
      result: failed(`The server answered with the error ${http}, so ${UNKNOWN}`),
      isLost: http >= 500,
    };
  }
  if (NOT_REACHED.has(codeOf(error))) {
    return { result: failed(AWAY), isLost: true };
  }
  return { result: failed(`The connection to the server broke, so ${UNKNOWN}`), isLost: true };
}

export function failed(content: string): ToolResult {
  return { content, failed: true };
}

/** Of the first cause that has one. */
function codeOf(error: unknown): string {
  for (let each = error, depth = 0; each instanceof Error && depth < 5; each = each.cause, depth += 1) {
    const { code } = each as { code?: unknown };
    if (typeof code === 'string') return code;
  }
  return '';
}
