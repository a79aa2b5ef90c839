/**
 * The one file that needs the `openai` package, so that it can be loaded when it is first needed: sends a
 * request, gives back the open response, and puts every failure into our words. It never retries. What asks for
 * something else than chat gets the package's own client.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import OpenAI from 'openai';
import type { ChatCompletionCreateParams } from 'openai/resources/chat/completions';
import { describe } from '../core/errors.js';
import { createPost, textOf } from './http.js';
import { parse } from './json.js';
import { errorBody, ServerError } from './server-error.js';

export type RequestBody = ChatCompletionCreateParams;

/** Throws ServerError. The answer is the body, unread, of one with a status of success. */
export type Wire = (body: RequestBody, signal: AbortSignal) => Promise<Readable>;

/** The longest a timer can wait: silence is watched by the caller. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;

interface Server {
  baseUrl: string;
  apiKey: string | null;
}

export function createClient(server: Server, limits: { timeout: number; maxRetries: number }): OpenAI {
  return new OpenAI({
    baseURL: server.baseUrl,
    // The package insists on a key; a server without one gets no Authorization header at all.
    apiKey: server.apiKey || 'none',
    ...(server.apiKey ? {} : { defaultHeaders: { Authorization: null } }),
    // Else these would come from the environment and go to whichever server this is.
    organization: null,
    project: null,
    ...limits,
  });
}

export async function createWire(server: Server, now: () => number): Promise<Wire> {
  const client = createClient(server, { timeout: NO_TIMEOUT_MS, maxRetries: 0 });
  // The package says how a server is addressed: where, as whom, with which headers. That is the same for every
  // request, and working it out anew costs as much as sending it.
  const { url, req } = await client.buildRequest({ method: 'post', path: '/chat/completions', body: {} });
  const post = createPost(url, Object.fromEntries(new Headers(req.headers)));

  return async (body, signal) => {
    const answer = await post(JSON.stringify(body), signal).catch((error) => {
      throw noAnswer(error);
    });
    const status = answer.statusCode ?? 0;
    if (status >= 200 && status < 300) return answer;
    throw await refusal(answer, status, now());
  };
}

function noAnswer(error: unknown): ServerError {
  const words = connectionWords(error);
  // The system's own limit for a connection.
  return /ETIMEDOUT/.test(words)
    ? new ServerError({ kind: 'silent', words: 'could not be connected to in time' })
    : new ServerError({ kind: 'unreachable', words });
}

async function refusal(answer: IncomingMessage, status: number, now: number): Promise<ServerError> {
  const text = await textOf(answer).catch(() => '');
  const told = errorBody(parse(text) ?? text);
  const shouldRetry = answer.headers['x-should-retry'];
  return new ServerError({
    kind: 'answered',
    words: told.message,
    // What is neither a success nor an error of its own kind counts as a request that was wrong.
    status: Math.max(status, 400),
    code: told.code ?? told.type,
    param: told.param,
    retryAfterMs: retryAfter(answer.headers, now),
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

function retryAfter(headers: IncomingHttpHeaders, now: number): number | undefined {
  const milliseconds = Number.parseFloat(String(headers['retry-after-ms']));
  if (milliseconds >= 0) return milliseconds;
  const after = headers['retry-after'] ?? '';
  const seconds = Number(after);
  if (after.trim() !== '' && seconds >= 0) return seconds * 1000;
  const date = Date.parse(after);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
