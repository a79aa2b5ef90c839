/**
 * Discord's API as we call it: the library's client, which knows the rate limits, with a deadline and the caller's
 * signal. It repeats nothing by itself: whoever calls knows what may be repeated, and when.
 */
import { setMaxListeners } from 'node:events';
import {
  DefaultRestOptions,
  type RateLimitData,
  RateLimitError,
  REST,
  type RequestMethod,
} from '@discordjs/rest';
import { type Clock, OVER } from '../../core/clock.js';
import type { Log } from '../../core/log.js';
import type { Outward } from '../../core/network.js';
import { bounded } from '../kit/bounded.js';
import { Aborted, CallFailed, failureOf, withoutTokens } from './failure.js';
import { createForbidden, type Forbidden } from './forbidden.js';
import { createLimits } from './limits.js';
import type { DiscordOptions } from './options.js';
import { IS_VOICE_MESSAGE } from './voice-note.js';

/** A call that is not answered by then is given up. */
const CALL_MS = 30_000;
/** What is uploaded has more time: as much as it takes on a slow line (50 kB a second). */
const SLOWEST_BYTES_PER_MS = 50;
/** The last resort under our own deadlines: more than the largest file has. */
const LIBRARY_TIMEOUT_MS = 600_000;
/** A limit that ends within this is waited for; of a longer one the caller is told. */
const LONGEST_WAIT_MS = 2_000;
const PUBLIC_REQUESTS_PER_SECOND = 50;
/** How many things of one kind the channel remembers; older ones go. */
export const MOST_NOTED = 1_000;

export interface Call {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Behind the version: `/channels/1/messages`. */
  path: string;
  query?: Record<string, string>;
  body?: unknown;
  files?: { name: string; data: Buffer; contentType?: string }[];
  /** Paths that hold an interaction's token go without ours. */
  anonymous?: boolean;
}

/** What every part of the channel works with. */
export interface Base {
  api: Api;
  clock: Clock;
  log: Log;
}

export interface Api {
  /** What Discord answered: JSON, mostly. Rejects with `CallFailed`. */
  call(call: Call, signal?: AbortSignal): Promise<unknown>;
  get(path: string, signal?: AbortSignal, query?: Record<string, string>): Promise<unknown>;
  /** What Discord refuses us at present. */
  forbidden: Forbidden;
  /** Aborts every call. */
  close(): void;
}

export function createApi(
  { token, apiRoot, messagesPerSecond }: DiscordOptions,
  { clock, outward }: { clock: Clock; outward: Outward },
): Api {
  const forbidden = createForbidden(clock);
  const limits = createLimits(clock);
  /** Refusals in a row (429), by method and path. */
  const refusals = bounded<string, number>(MOST_NOTED);
  const rest = new REST({
    api: apiRoot,
    version: '10',
    retries: 0,
    timeout: LIBRARY_TIMEOUT_MS,
    rejectOnRateLimit: (limit) => isTooLong(limit, refusals.get(routeOf(limit.method, limit.url)) ?? 0),
    globalRequestsPerSecond: Math.max(PUBLIC_REQUESTS_PER_SECOND, messagesPerSecond),
    async makeRequest(url, init) {
      const response = await DefaultRestOptions.makeRequest(url, {
        ...init,
        dispatcher: await outward.dispatcher(),
      });
      const route = routeOf(init.method ?? 'GET', url);
      if (response.status === 429) refusals.set(route, (refusals.get(route) ?? 0) + 1);
      else refusals.delete(route);
      forbidden.count(response.status, response.headers.get('x-ratelimit-scope'));
      return response;
    },
  });
  const closing = new AbortController();
  setMaxListeners(0, closing.signal);

  const api: Api = {
    forbidden,
    async call(call, signal) {
      const kind = kindOf(call);
      // Typing has a limit of its own.
      const isTyping = call.path.endsWith('/typing');
      const limited = isTyping ? `${kind} typing` : kind;
      const barred = forbidden.reason(kind) ?? limits.reason(limited);
      if (barred !== null) throw new CallFailed(barred);
      const bytes = (call.files ?? []).reduce((sum, { data }) => sum + data.length, 0);
      const over = new AbortController();
      const abort = () => over.abort();
      const ends = signal === undefined ? [closing.signal] : [closing.signal, signal];
      for (const end of ends) {
        // As many calls as are under way listen to one signal of the caller; that is no leak to warn of.
        setMaxListeners(0, end);
        if (end.aborted) abort();
        end.addEventListener('abort', abort, { once: true });
      }
      const cancelDeadline = clock.after(CALL_MS + bytes / SLOWEST_BYTES_PER_MS, abort);
      // A 401 makes it forget the token, for good.
      rest.setToken(token);
      try {
        const told = await untilAborted(rest.request(requestOf(call, over.signal)), over.signal);
        // Somebody may be let type who may not send.
        if (!isTyping) forbidden.clear(kind);
        limits.served(limited);
        return told;
      } catch (error) {
        const told = failureOf(error);
        const failure = error instanceof RateLimitError ? limits.refused(limited, error.global, told) : told;
        const reason = withoutTokens(failure.reason, [token, ...tokensIn(call.path)]);
        forbidden.note(kind, { ...failure, reason });
        throw new CallFailed({ ...failure, reason });
      } finally {
        cancelDeadline();
        for (const end of ends) end.removeEventListener('abort', abort);
      }
    },
    get: (path, signal, query) =>
      api.call({ method: 'GET', path, ...(query === undefined ? {} : { query }) }, signal),
    close() {
      closing.abort(OVER);
      rest.clearHashSweeper();
      rest.clearHandlerSweeper();
    },
  };
  return api;
}

/** What the same permissions allow: messages in a channel, and typing there, whichever they are. */
function kindOf({ method, path, files = [], body }: Call): string {
  const [, things, id, ...rest] = path.split('/');
  const what = rest
    .map((word, at) => (/^\d+$/.test(word) || rest[at - 1] === 'reactions' ? ':id' : word))
    .join('/');
  if (method === 'POST' && (what === 'messages' || what === 'typing')) {
    const needs = [
      files.length > 0 && 'with files',
      isSpoken(body) && 'as voice',
      isReply(body) && 'in reply',
    ];
    return `say in ${id} ${needs.filter(Boolean).join(' ')}`;
  }
  return `${method} ${things}/${id}/${what}`;
}

function isReply(body: unknown): boolean {
  return typeof body === 'object' && body !== null && 'message_reference' in body;
}

function isSpoken(body: unknown): boolean {
  const hasFlags = typeof body === 'object' && body !== null && 'flags' in body;
  return hasFlags && (Number(body.flags) & IS_VOICE_MESSAGE) !== 0;
}

/** Whoever has the token of a webhook or of an interaction speaks through it. */
function tokensIn(path: string): string[] {
  const [, token] = /^\/(?:webhooks|interactions)\/\d+\/([^/]+)/.exec(path) ?? [];
  return token === undefined ? [] : [token];
}

function requestOf({ method, path, query, body, files = [], anonymous = false }: Call, signal: AbortSignal) {
  return {
    method: method as RequestMethod,
    fullRoute: path as `/${string}`,
    auth: !anonymous,
    signal,
    ...(query === undefined ? {} : { query: new URLSearchParams(query) }),
    ...(body === undefined ? {} : { body }),
    ...(files.length === 0 ? {} : { files }),
  };
}

/** A limit without a time, or one that came again at once, would be run against again and again. */
function isTooLong({ retryAfter }: RateLimitData, refusals: number): boolean {
  return refusals > 1 || !(retryAfter > 0 && retryAfter <= LONGEST_WAIT_MS);
}

function routeOf(method: string, url: string): string {
  return `${method.toUpperCase()} ${new URL(url).pathname}`;
}

/** The library does not listen to the signal while it waits for a limit to pass. */
function untilAborted<T>(result: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const aborted = () => reject(new Aborted());
    if (signal.aborted) aborted();
    signal.addEventListener('abort', aborted, { once: true });
    result.then(resolve, reject).finally(() => signal.removeEventListener('abort', aborted));
  });
}
