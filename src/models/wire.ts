/**
 * The one file that needs the `openai` package, so that it can be loaded when it is first needed: sends a
 * request, gives back the open response, and puts every failure into our words. It never retries.
 */
import OpenAI, { APIConnectionTimeoutError, APIError } from 'openai';
import type { ChatCompletionCreateParams } from 'openai/resources/chat/completions';
import { describe } from '../core/errors.js';
import { type Ask, createAsk, type OpenAnswer, textOf } from './http.js';
import { parse } from './json.js';
import { errorBody, ServerError } from './server-error.js';

export type RequestBody = ChatCompletionCreateParams;

/** Throws ServerError. The answer is one with a status of success, its body unread. */
export type Wire = (body: RequestBody, signal: AbortSignal) => Promise<OpenAnswer>;

/** The longest a timer can wait: silence is watched by the caller. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;

export function createWire(server: { baseUrl: string; apiKey: string | null }, now: () => number): Wire {
  const client = new OpenAI({
    baseURL: server.baseUrl,
    // The package insists on a key; a server without one gets no Authorization header at all.
    apiKey: server.apiKey || 'none',
    ...(server.apiKey ? {} : { defaultHeaders: { Authorization: null } }),
    // Else these would come from the environment and go to whichever server this is.
    organization: null,
    project: null,
    maxRetries: 0,
    timeout: NO_TIMEOUT_MS,
    logLevel: 'off',
    // Of an answer that went well the package looks at the head alone, and hands it on.
    fetch: plainErrors(createAsk(server.baseUrl)) as unknown as typeof fetch,
  });
  return async (body, signal) => {
    try {
      const answer = await client.chat.completions.create(body, { signal }).asResponse();
      return answer as unknown as OpenAnswer;
    } catch (error) {
      throw asServerError(error, now);
    }
  };
}

/** The package reads only `error` of an error's body; many servers put their words elsewhere. */
function plainErrors(ask: Ask) {
  return async (url: string, init: RequestInit): Promise<OpenAnswer | Response> => {
    const answer = await ask(url, init);
    if (answer.ok) return answer;
    const text = await textOf(answer.body).catch(() => '');
    const error = errorBody(parse(text) ?? text);
    // A Response takes no status below 200, and an error's body must be readable as JSON.
    return new Response(JSON.stringify({ error }), {
      status: Math.max(answer.status, 400),
      headers: answer.headers,
    });
  };
}

function asServerError(error: unknown, now: () => number): ServerError {
  if (error instanceof APIConnectionTimeoutError) {
    // Node's own limits: 10 s for a connection, 5 minutes for the headers.
    return new ServerError({ kind: 'silent', words: 'could not be connected to, or gave no sign, in time' });
  }
  if (!(error instanceof APIError) || error.status === undefined) {
    return new ServerError({ kind: 'unreachable', words: connectionWords(error) });
  }
  const told = errorBody({ error: error.error });
  const shouldRetry = error.headers?.get('x-should-retry');
  return new ServerError({
    kind: 'answered',
    words: told.message,
    status: error.status,
    code: told.code ?? told.type,
    param: told.param,
    retryAfterMs: error.headers ? retryAfter(error.headers, now()) : undefined,
    shouldRetry: shouldRetry === 'true' ? true : shouldRetry === 'false' ? false : undefined,
  });
}

/** The innermost cause is the one that says why: `connect ECONNREFUSED 127.0.0.1:11434`. */
function connectionWords(error: unknown): string {
  let inner = error;
  while (inner instanceof Error && inner.cause instanceof Error) inner = inner.cause;
  if (inner instanceof AggregateError && inner.errors.length > 0) return describe(inner.errors[0]);
  return describe(inner);
}

function retryAfter(headers: Headers, now: number): number | undefined {
  const milliseconds = Number.parseFloat(headers.get('retry-after-ms') ?? '');
  if (milliseconds >= 0) return milliseconds;
  const after = headers.get('retry-after') ?? '';
  const seconds = Number(after);
  if (after.trim() !== '' && seconds >= 0) return seconds * 1000;
  const date = Date.parse(after);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
