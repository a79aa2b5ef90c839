/** Discord's API: the library's client with its rate limits, deadlines and signals. It never retries. */
import { setMaxListeners } from 'node:events';
import {
  DefaultRestOptions,
  type RateLimitData,
  RateLimitError,
  REST,
  type RequestMethod,
} from '@discordjs/rest';
import * as Discord from 'discord-api-types/v10';
import { LRUCache } from 'lru-cache';
import { type Clock, OVER, onAbort } from '../../core/clock.js';
import type { Log } from '../../core/log.js';
import type { Outward } from '../../core/network.js';
import {
  CallFailed,
  createForbidden,
  createLimits,
  failureOf,
  MOST_NOTED,
  withoutTokens,
} from './failure.js';
import type { DiscordOptions } from './options.js';
import { hasFlag } from './payload.js';

const CALL_MS = 30_000;
/** Extra time for uploads: allows for a slow line (50 kB/s). */
const SLOWEST_BYTES_PER_MS = 50;
/** Last resort behind our own deadlines: longer than the largest file may take. */
const LIBRARY_TIMEOUT_MS = 600_000;
/** Rate limits that end within this are waited out; longer ones are reported to the caller. */
const LONGEST_WAIT_MS = 2_000;
const PUBLIC_REQUESTS_PER_SECOND = 50;

export interface ApiCall {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Without the version: `/channels/1/messages`. */
  path: string;
  query?: Record<string, string> | undefined;
  body?: unknown;
  files?: { name: string; data: Buffer; contentType?: string }[];
  /** Omits our token, for paths with the token of an interaction or a webhook. */
  anonymous?: boolean;
}

export interface Base {
  api: DiscordApi;
  clock: Clock;
  log: Log;
}

export type DiscordApi = ReturnType<typeof createApi>;

export function createApi(
  { token, apiRoot, messagesPerSecond }: DiscordOptions,
  { clock, outward }: { clock: Clock; outward: Outward },
) {
  /** Calls that Discord currently refuses us. */
  const forbidden = createForbidden(clock);
  const limits = createLimits(clock);
  /** Refusals in a row (429), by method and path. */
  const refusals = new LRUCache<string, number>({ max: MOST_NOTED });
  const rest = new REST({
    api: apiRoot,
    version: '10',
    retries: 0,
    timeout: LIBRARY_TIMEOUT_MS,
    rejectOnRateLimit: (limit) => isTooLong(limit, refusals.get(routeOf(limit.method, limit.url)) ?? 0),
    globalRequestsPerSecond: Math.max(PUBLIC_REQUESTS_PER_SECOND, messagesPerSecond),
    async makeRequest(url, init) {
      const dispatcher = await outward.dispatcher();
      const response = await DefaultRestOptions.makeRequest(url, { ...init, dispatcher });
      const route = routeOf(init.method ?? 'GET', url);
      if (response.status === 429) refusals.set(route, (refusals.get(route) ?? 0) + 1);
      else refusals.delete(route);
      forbidden.count(response.status, response.headers.get('x-ratelimit-scope'));
      return response;
    },
  });
  const closing = new AbortController();
  setMaxListeners(0, closing.signal);

  /** Discord's answer, usually JSON in the form that Discord documents. Rejects with `CallFailed`. */
  async function call<Answer>(call: ApiCall, signal?: AbortSignal): Promise<Answer> {
    const kind = kindOf(call);
    const isTyping = call.path.endsWith('/typing');
    const limited = isTyping ? `${kind} typing` : kind;
    const barred = forbidden.reason(kind) ?? limits.reason(limited);
    if (barred !== null) throw new CallFailed(barred);
    const bytes = (call.files ?? []).reduce((sum, { data }) => sum + data.length, 0);
    const over = new AbortController();
    const end = () => over.abort();
    const stops = [
      onAbort(closing.signal, end),
      onAbort(signal, end),
      clock.after(CALL_MS + bytes / SLOWEST_BYTES_PER_MS, end),
    ];
    // The library forgets the token after a 401.
    rest.setToken(token);
    try {
      const { method, path, query, body, files = [], anonymous } = call;
      const request = rest.request({
        method: method as RequestMethod,
        fullRoute: path as `/${string}`,
        query: new URLSearchParams(query),
        body,
        files,
        auth: !anonymous,
        signal: over.signal,
      });
      const told = await untilAborted(request, over.signal);
      // Permission to type does not imply permission to send.
      if (!isTyping) forbidden.clear(kind);
      limits.served(limited);
      return told as Answer;
    } catch (error) {
      const told = failureOf(error);
      const failure = error instanceof RateLimitError ? limits.refused(limited, error.global, told) : told;
      const reason = withoutTokens(failure.reason, [token, tokenIn(call.path)]);
      forbidden.note(kind, { ...failure, reason });
      throw new CallFailed({ ...failure, reason });
    } finally {
      for (const stop of stops) stop();
    }
  }

  return {
    forbidden,
    call,
    get: <Answer>(path: string, signal?: AbortSignal, query?: Record<string, string>) =>
      call<Answer>({ method: 'GET', path, query }, signal),
    close() {
      closing.abort(OVER);
      rest.clearHashSweeper();
      rest.clearHandlerSweeper();
    },
  };
}

/** Calls that need the same permissions, such as all messages and typing in a channel. */
function kindOf({ method, path, files = [], body }: ApiCall): string {
  const [, things, id, ...rest] = path.split('/');
  const what = rest
    .map((word, at) => (/^\d+$/.test(word) || rest[at - 1] === 'reactions' ? ':id' : word))
    .join('/');
  if (method !== 'POST' || (what !== 'messages' && what !== 'typing')) {
    return `${method} ${things}/${id}/${what}`;
  }
  const said = (body ?? {}) as { flags?: unknown; message_reference?: unknown };
  const needs = [
    files.length > 0 && 'with files',
    hasFlag(said.flags, Discord.MessageFlags.IsVoiceMessage) && 'as voice',
    said.message_reference !== undefined && 'in reply',
  ];
  return `say in ${id} ${needs.filter(Boolean).join(' ')}`;
}

/** A webhook's or an interaction's token, which permits sending through it. */
function tokenIn(path: string): string {
  return /^\/(?:webhooks|interactions)\/\d+\/([^/]+)/.exec(path)?.[1] ?? '';
}

/** A limit without a time, or one that recurs at once, would be hit again and again. */
function isTooLong({ retryAfter }: RateLimitData, refusals: number): boolean {
  return refusals > 1 || !(retryAfter > 0 && retryAfter <= LONGEST_WAIT_MS);
}

function routeOf(method: string, url: string): string {
  return `${method.toUpperCase()} ${new URL(url).pathname}`;
}

/** The library ignores the signal while it waits for a limit to pass. */
function untilAborted<T>(result: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const unlisten = onAbort(signal, () => reject(new DOMException('', 'AbortError')));
    result.then(resolve, reject).finally(unlisten);
  });
}
