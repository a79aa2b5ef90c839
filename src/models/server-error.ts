/** What can go wrong between us and a model server, in one shape. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { describe } from '../core/errors.js';
import { unpacked } from '../core/network.js';
import { parse, record, word } from './json.js';

export interface ServerErrorDetails {
  /**
   * answered: the server said so itself. unreachable: no connection, or it broke before an answer. broken: the
   * answer is not one (cut, HTML, nothing). silent: nothing came for `timeout_seconds`. endless: more came than an
   * answer may hold.
   */
  kind: 'answered' | 'unreachable' | 'broken' | 'silent' | 'endless';
  words: string;
  status?: number | undefined;
  code?: string | undefined;
  /** The parameter of the request that the server names as the reason. */
  param?: string | undefined;
  /** The most tokens that the model takes, where the server gives it beside its words (llama.cpp). */
  window?: number | undefined;
  /** It was refused without a word. */
  isBodyEmpty?: boolean | undefined;
  /** How long the server asks to wait. */
  retryAfterMs?: number | undefined;
  /** `x-should-retry`. */
  shouldRetry?: boolean | undefined;
}

/** Used inside this folder only; `openai.ts` turns it into a Fault. */
export class ServerError extends Error {
  override readonly name = 'ServerError';

  constructor(readonly details: ServerErrorDetails) {
    super(details.words);
  }
}

/** Where no response came. */
export function connectionError(error: unknown): ServerError {
  const words = connectionWords(error);
  // The system's own limit for a connection.
  return /ETIMEDOUT/.test(words)
    ? new ServerError({ kind: 'silent', words: 'could not be connected to in time' })
    : new ServerError({ kind: 'unreachable', words });
}

/** The innermost cause is the one that says why: `connect ECONNREFUSED 127.0.0.1:11434`. */
function connectionWords(error: unknown): string {
  let inner = error;
  while (inner instanceof Error && inner.cause instanceof Error) inner = inner.cause;
  if (inner instanceof AggregateError && inner.errors.length > 0) return describe(inner.errors[0]);
  return describe(inner);
}

/**
 * What a response without success says. Some servers repeat the whole request in it; of what is longer only so many bytes are
 * read, and the connection is closed.
 */
export async function refusal(
  response: IncomingMessage,
  now: number,
  mostBytes: number,
): Promise<ServerError> {
  const text = await textOf(unpacked(response), mostBytes);
  const body = errorBody(parse(text) ?? text);
  const shouldRetry = response.headers['x-should-retry'];
  return new ServerError({
    kind: 'answered',
    words: body.message,
    // A status below 400 that is no success counts as a request that was wrong.
    status: Math.max(response.statusCode ?? 0, 400),
    code: body.code ?? body.type,
    param: body.param,
    window: body.window,
    isBodyEmpty: text.trim() === '',
    retryAfterMs: retryAfter(response.headers, now),
    shouldRetry: shouldRetry === 'true' ? true : shouldRetry === 'false' ? false : undefined,
  });
}

/** What the server says in the middle of an answer. */
export function errorInAnswer(chunk: unknown): ServerError {
  const body = errorBody(chunk);
  return new ServerError({
    kind: 'answered',
    words: body.message,
    status: body.status,
    code: body.code ?? body.type,
    param: body.param,
    window: body.window,
  });
}

/** What came of it, also where it is cut or breaks off. */
async function textOf(body: Readable, mostBytes: number): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const piece of body as AsyncIterable<Buffer>) {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes > mostBytes) break;
    }
  } catch {
    // Its status says enough, and what had come may say more.
  }
  return Buffer.concat(pieces).toString('utf8');
}

/** The words of an error body in the one shape that OpenAI uses. */
interface ErrorBody {
  message: string;
  type?: string;
  code?: string;
  param?: string;
  /** Where the code is a number, as OpenRouter's, it is a status. */
  status?: number;
  window?: number;
}

/**
 * Finds the words in the shapes that servers really use: `{error: {…}}`, `{error: "…"}`, `{message}`,
 * `{detail: "…"}`, FastAPI's `{detail: [{loc, msg}]}`, an array of one (Gemini) and plain text. What a validator echoes of the request
 * (`input`) is left out: it may be somebody's words.
 */
function errorBody(body: unknown): ErrorBody {
  if (typeof body === 'string') return { message: plainWords(body) };
  const outer = record(Array.isArray(body) ? body[0] : body) ?? {};
  const inner = record(outer.error);
  const source = inner ?? outer;
  const found: ErrorBody = { message: '' };

  if (Array.isArray(outer.detail)) {
    const faults = outer.detail.map((fault) => {
      const loc = record(fault)?.loc;
      const place = (Array.isArray(loc) ? loc : []).filter((part) => part !== 'body').join('.');
      return { place, words: word(record(fault)?.msg) ?? 'invalid' };
    });
    found.message = faults.map((fault) => `${fault.place}: ${fault.words}`).join('; ');
    if (faults[0]?.place) found.param = faults[0].place;
  } else {
    found.message =
      word(source.message) ??
      word(outer.error) ??
      word(outer.detail) ??
      word(source.msg) ??
      'no reason given';
  }

  const type = word(source.type);
  const code = word(source.code);
  const param = word(source.param);
  if (type) found.type = type;
  if (code) found.code = code;
  if (param) found.param = param;
  if (typeof source.code === 'number' && source.code >= 400 && source.code < 600) found.status = source.code;
  else if (typeof source.code === 'number') found.code = String(source.code);
  if (typeof source.n_ctx === 'number' && source.n_ctx > 0) found.window = source.n_ctx;
  found.message = found.message.slice(0, 1000);
  return found;
}

/** Of a page or a text, more than this is not looked at for its words. */
const MOST_PAGE_CHARS = 10_000;

/** One line of a page or a plain text, without its tags. */
export function plainWords(text: string): string {
  const plain = text
    .slice(0, MOST_PAGE_CHARS)
    .replace(/<(script|style)\b[\s\S]*?(?:<\/\1>|$)/gi, ' ')
    .replace(/<[^<>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return plain.slice(0, 300) || 'an empty body';
}

/** How long the server asks to wait, ms. */
function retryAfter(headers: IncomingHttpHeaders, now: number): number | undefined {
  const milliseconds = Number.parseFloat(String(headers['retry-after-ms']));
  if (milliseconds >= 0) return milliseconds;
  const after = headers['retry-after'] ?? '';
  const seconds = Number(after);
  if (after.trim() !== '' && seconds >= 0) return seconds * 1000;
  const date = Date.parse(after);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
