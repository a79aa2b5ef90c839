/**
 * The Bot API client: grammY, with a deadline and the caller's signal for each call, and per-chat back-off.
 * The HTTP transport is Node's own: it tells whether the server had the whole request when the connection
 * broke, the only case in which a message may have arrived (`was-delivered.ts`).
 */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { pipeline } from 'node:stream/promises';
import { Api } from 'grammy/web';
import { LRUCache } from 'lru-cache';
import { type Clock, withDeadline } from '../../core/clock.js';
import type { Log } from '../../core/log.js';
import type { Address } from '../../core/message.js';
import { MOST_DOCUMENT_BYTES, type Outward, ProxyRefusal } from '../../core/network.js';
import { NOT_PACKED, unpacked, wholeOf } from '../../core/response-body.js';
import { backoffMs } from '../kit/supervise.js';
import {
  type BotCredentials,
  CallError,
  type CallFailure,
  failureOf,
  heldBack,
  type Refusable,
  TransportError,
  withoutRefused,
} from './failure.js';

const CALL_MS = 30_000;
/** Extra time for files: allows for a slow line (50 kB/s). */
const SLOWEST_BYTES_PER_MS = 50;
/** Last resort behind our own deadlines: longer than the largest file may take. */
const LIBRARY_TIMEOUT_SECONDS = 1_200;
/** Shorter than servers' keep-alive, so that no connection is reused that the server has just closed. */
const IDLE_MS = 15_000;
/** Bytes encrypted at once: a large file must not block the event loop. */
const PIECE_BYTES = 65_536;

const MOST_CHATS = 10_000;
/** A call that took this long was throttled: the next one waits for as long. */
const SLOW_MS = 2_000;
/** Telegram throttles no call for longer; a slower answer was merely lost. */
const MOST_HELD_MS = 8_000;
/** Refusals of two chats within this time, until about the same time, count as the bot's own limit. */
const TOGETHER_MS = 60_000;

export type RawApi = Api['raw'];

/** grammY's types want an older library's signal; any standard one works. */
export type Ended = AbortSignal & NonNullable<Parameters<RawApi['getMe']>[0]>;

interface CallBounds {
  signal?: AbortSignal;
  ms?: number;
  /** Bytes to upload, or at most to download. */
  bytes?: number;
  /** The chat it acts on: no call is made there during back-off. */
  chat?: Address;
}

export type BotApi = ReturnType<typeof createBotApi>;

export function createBotApi(
  apiRoot: string,
  credentials: BotCredentials,
  { clock, log, outward }: { clock: Clock; log: Log; outward: Outward },
) {
  const { token } = credentials;
  const transport = createTransport(apiRoot, outward);
  const { raw } = new Api(token, {
    apiRoot,
    // grammY uses only this much of `fetch`: JSON and forms with files, and only the JSON of a response.
    fetch: transport.fetch as unknown as typeof fetch,
    timeoutSeconds: LIBRARY_TIMEOUT_SECONDS,
  });
  const floods = createFloods(clock);

  /** Runs a call with a signal that aborts with the caller's, or on time-out. Never rejects. */
  async function attempt<T>(
    run: (api: RawApi, ended: Ended) => Promise<T>,
    { signal, ms = CALL_MS, bytes = 0, chat }: CallBounds = {},
  ): Promise<{ answer: T } | { failure: CallFailure }> {
    const wait = chat === undefined ? 0 : floods.waitFor(chat);
    if (wait > 0) return { failure: heldBack(wait) };
    const askedAt = clock.now();
    try {
      const deadline = ms + bytes / SLOWEST_BYTES_PER_MS;
      const answer = await withDeadline(clock, deadline, signal, (ended) => run(raw, ended as Ended));
      if (chat !== undefined && bytes === 0) floods.took(chat, clock.now() - askedAt);
      return { answer };
    } catch (error) {
      const failure = failureOf(error, credentials);
      if (chat !== undefined && failure.retryAfterMs !== null) floods.refused(chat, failure.retryAfterMs);
      return { failure };
    }
  }

  /** The same, but rejects with a `CallError`. */
  async function call<T>(run: (api: RawApi, ended: Ended) => Promise<T>, bounds?: CallBounds): Promise<T> {
    const done = await attempt(run, bounds);
    if ('failure' in done) throw new CallError(done.failure);
    return done.answer;
  }

  /** Calls with a request, and retries without the part that Telegram refused. Never rejects. */
  async function send<Request extends Refusable, Answer>(
    first: Request,
    run: (api: RawApi, request: Request, ended: Ended) => Promise<Answer>,
    bounds: CallBounds & { mostText?: number },
  ): Promise<{ answer: Answer; request: Request } | { failure: CallFailure }> {
    const limits = { ...bounds, chat: String(first.chat_id) };
    for (let request = first; ; ) {
      const said = request;
      const done = await attempt((api, ended) => run(api, said, ended), limits);
      if ('answer' in done) return { ...done, request };
      const next = withoutRefused(request, done.failure, log, bounds.mostText);
      if (next === null) return done;
      request = next;
    }
  }

  return {
    call,
    attempt,
    send,
    /** URL of a file by the path from `getFile`. Contains the token. */
    fileAddress: (path: string) =>
      `${apiRoot}/file/bot${token}/${path.split('/').map(encodeURIComponent).join('/')}`,
    /** Telegram's own server, not an operator's. */
    isPublic: new URL(apiRoot).host.endsWith('.telegram.org'),
    failure: (error: unknown) => failureOf(error, credentials),
    /** Cuts off the calls under way. */
    close: transport.close,
  };
}

/** Back-off per chat, by `retry_after` or slow calls. Every action in a chat counts towards its limits. */
function createFloods(clock: Clock) {
  const closedUntil = new LRUCache<Address, number>({ max: MOST_CHATS });
  /** Refusals in a row, each soon after the previous wait. */
  const refusals = new LRUCache<Address, { inRow: number; until: number }>({ max: MOST_CHATS });
  let allUntil = 0;
  let last: { chat: Address; at: number; until: number } | null = null;

  const close = (chat: Address, ms: number) => {
    closedUntil.set(chat, Math.max(closedUntil.get(chat) ?? 0, clock.now() + ms));
  };

  return {
    /** Remaining back-off in a chat, ms. */
    waitFor: (chat: Address): number =>
      Math.max(0, allUntil - clock.now(), (closedUntil.get(chat) ?? 0) - clock.now()),

    /** A call was refused for `toldMs`; however short that is, the pauses between refusals in a row grow. */
    refused(chat: Address, toldMs: number): void {
      const now = clock.now();
      const known = refusals.get(chat);
      const before = known !== undefined && now - known.until < TOGETHER_MS ? known.inRow : 0;
      const ms = Math.max(toldMs, backoffMs(before));
      const until = now + ms;
      refusals.set(chat, { inRow: before + 1, until });
      close(chat, ms);
      const isTogether = (one: number, other: number) => Math.abs(one - other) < TOGETHER_MS;
      if (last !== null && last.chat !== chat && isTogether(now, last.at) && isTogether(until, last.until)) {
        allUntil = Math.max(allUntil, until);
      }
      last = { chat, at: now, until };
    },

    took(chat: Address, ms: number): void {
      if (ms >= SLOW_MS) close(chat, Math.min(ms, MOST_HELD_MS));
    },
  };
}

interface HttpCall {
  method?: string;
  headers?: Record<string, string>;
  body?: string | AsyncIterable<Uint8Array>;
  signal?: AbortSignal;
}

function createTransport(apiRoot: string, outward: Outward) {
  const secure = apiRoot.startsWith('https:');
  const agent = outward.agent(secure, { idleMs: IDLE_MS });
  const request = secure ? httpsRequest : httpRequest;

  async function exchange(url: string, { method = 'GET', headers, signal, body = '' }: HttpCall) {
    const pieces = await piecesOf(body);
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
    return new Promise<{ json(): unknown }>((resolve, reject) => {
      let connected = false;
      let whole = false;
      let status: number | null = null;
      const broken = (error: NodeJS.ErrnoException) => {
        const where = connected && !whole ? ', in the middle of an upload' : '';
        reject(new TransportError(`${wordsFor(error, signal)}${where}`, connected && whole, status));
      };
      const sent = request(url, {
        method,
        agent,
        headers: { ...headers, ...NOT_PACKED, 'content-length': length },
        ...(signal === undefined ? {} : { signal }),
      });
      sent.on('error', broken);
      sent.on('socket', (socket) => {
        if (!socket.connecting) connected = true;
        else socket.once(secure ? 'secureConnect' : 'connect', () => (connected = true));
      });
      sent.on('response', (response) => {
        status = response.statusCode ?? null;
        wholeOf(unpacked(response), MOST_DOCUMENT_BYTES).then((bytes) => {
          // The server answered before it had read everything, and does not want the rest.
          if (!whole) sent.destroy();
          resolve({ json: () => parsed(bytes.toString('utf8'), status) });
        }, broken);
      });
      /** Before the last piece the server cannot have taken the request. */
      function* upload(): Generator<Buffer> {
        for (const [index, piece] of pieces.entries()) {
          whole = index === pieces.length - 1;
          yield piece;
        }
      }
      pipeline(upload, sent).catch(broken);
    });
  }

  return { fetch: exchange, close: () => agent.destroy() };
}

/** JSON, or a form as grammY makes it. A file in it, already in memory, is split without copying. */
async function piecesOf(body: string | AsyncIterable<Uint8Array>): Promise<Buffer[]> {
  if (typeof body === 'string') return [Buffer.from(body)];
  const pieces: Buffer[] = [];
  for await (const part of body) {
    const bytes = Buffer.from(part.buffer, part.byteOffset, part.byteLength);
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) pieces.push(bytes.subarray(at, at + PIECE_BYTES));
  }
  return pieces;
}

function parsed(text: string, status: number | null): unknown {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && 'ok' in value) return value;
  } catch {
    // Reported below, whatever the body was.
  }
  throw new TransportError(`the answer (HTTP ${status}) is not one of the Bot API`, true, status);
}

function wordsFor(error: NodeJS.ErrnoException, signal: AbortSignal | undefined): string {
  if (signal?.aborted) return 'there was no answer in time, or it was not waited for';
  if (error instanceof ProxyRefusal) return error.message;
  return error.code ?? 'the connection broke';
}
