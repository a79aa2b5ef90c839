/**
 * Step 5, to the server and back: a request goes out over Node's own HTTP client, with connections kept open, and the response
 * is read as it comes in: server-sent events, or the one JSON document of a server that does not stream. The global `fetch`,
 * and so the `openai` package, costs more than everything else the gateway does for a message.
 */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { pipeline, Readable } from 'node:stream';
import { urlToHttpOptions } from 'node:url';
import type { Clock } from '../core/clock.js';
import { describe } from '../core/errors.js';
import { type Body, byteLengthOf, piecesOf } from './body.js';
import { parse, record } from './json.js';
import { connectionError, errorInAnswer, plainWords, refusal, ServerError } from './server-error.js';

/** Shorter than the five seconds for which common servers keep an unused connection. */
const IDLE_MS = 4_000;
/** How long a server may keep the connection open after the end of its answer. */
const END_MS = 100;
/** More than the largest answer takes as one JSON document. */
const LONGEST_LINE = 32_000_000;

/**
 * Sends the body, JSON, and resolves with the open response once its status says success. Never retries. Throws
 * ServerError, whose words name neither headers nor key.
 */
export type Post = (body: Body, signal: AbortSignal) => Promise<Readable>;

export function createPost(
  server: { baseUrl: string; apiKey: string | null; headers?: Record<string, string> | undefined },
  now: () => number,
  path = '/chat/completions',
): Post {
  const url = new URL(server.baseUrl);
  url.pathname = `${url.pathname.replace(/\/+$/, '')}${path}`;
  const secure = url.protocol === 'https:';
  const agent = new (secure ? HttpsAgent : HttpAgent)({ keepAlive: true, timeout: IDLE_MS });
  const request = secure ? httpsRequest : httpRequest;
  const options = { ...urlToHttpOptions(url), method: 'POST', agent };
  const headers: Record<string, string> = {
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
    'user-agent': 'coterie',
  };
  if (server.apiKey) headers.authorization = `Bearer ${server.apiKey}`;
  for (const [name, value] of Object.entries(server.headers ?? {})) headers[name.toLowerCase()] = value;

  /** Resolves when the head of the response is there. Rejects with Node's own errors. */
  const send = (body: Body, signal: AbortSignal) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const hasPictures = body.pictures.length > 0;
      const length = hasPictures ? byteLengthOf(body) : Buffer.byteLength(body.text);
      const head = { ...options, headers: { ...headers, 'content-length': length } };
      const sent = request(head, (response) => {
        // Whoever reads gets the error too; without a listener, one that nobody reads would end the process.
        response.on('error', () => {});
        resolve(response);
      });
      sent.on('error', reject);
      const hangUp = () => sent.destroy();
      signal.addEventListener('abort', hangUp, { once: true });
      sent.once('close', () => signal.removeEventListener('abort', hangUp));
      if (signal.aborted) hangUp();
      // The request itself tells of what went wrong.
      if (hasPictures) pipeline(Readable.from(piecesOf(body)), sent, () => {});
      // As text: the bytes are freed when they are written, where a buffer would wait for the garbage collector.
      else sent.end(body.text);
    });

  return async (body, signal) => {
    const response = await send(body, signal).catch((error) => {
      throw connectionError(error);
    });
    const status = response.statusCode ?? 0;
    if (status >= 200 && status < 300) return response;
    throw await refusal(response, now());
  };
}

/**
 * Reads a chat completion from an open response. Throws ServerError where it is none. `heard` is called for whatever arrives,
 * comments that only keep the connection alive included.
 */
export async function* chunksOf(body: Readable, heard: () => void, clock: Clock): AsyncGenerator<unknown> {
  body.setEncoding('utf8');
  const reader: Reader = body[Symbol.asyncIterator]();
  const events = createEventParser();
  let unread = '';
  let form: 'unknown' | 'events' | 'document' = 'unknown';

  for (;;) {
    const { done, value } = await readSome(reader);
    heard();
    if (!done) unread += value;
    if (unread.length > LONGEST_LINE) {
      const words = `sent ${LONGEST_LINE.toLocaleString('en')} characters without the end of a line`;
      throw new ServerError({ kind: 'endless', words });
    }
    // A line that goes on need not be read from its beginning for each piece of it.
    if (!done && form === 'events' && !/[\r\n]/.test(value)) continue;
    if (form === 'unknown') form = formOf(unread);

    if (form === 'events') {
      const lines = unread.split(/\r\n|\n|\r/);
      unread = done ? '' : (lines.pop() ?? '');
      for (const line of lines) {
        const event = events.line(line);
        if (event === 'end') {
          // What was answered is waited for; the connection is not.
          setImmediate(() => {
            if (!body.closed) drain(body, clock);
          });
          return;
        }
        if (event !== null) yield checked(event.data, event.name);
      }
    }
    if (done) break;
  }
  if (form === 'document') yield checked(parse(unread), null);
  else if (!events.any()) {
    throw new ServerError({
      kind: 'broken',
      words: `answered with neither events nor JSON: ${plainWords(unread || events.sample())}`,
    });
  }
}

type Reader = AsyncIterator<string>;

async function readSome(reader: Reader): Promise<IteratorResult<string>> {
  try {
    return await reader.next();
  } catch (error) {
    throw new ServerError({ kind: 'broken', words: `broke off its answer (${describe(error)})` });
  }
}

/** By the first character that is not blank, because some servers send a wrong content type. */
function formOf(start: string): 'unknown' | 'events' | 'document' {
  const first = start.trimStart()[0];
  if (first === undefined) return 'unknown';
  return first === '{' || first === '[' ? 'document' : 'events';
}

/** An error may come as a chunk, long after the status said 200. */
function checked(data: unknown, eventName: string | null): unknown {
  const chunk = record(Array.isArray(data) ? data[0] : data);
  if (chunk === null) throw new ServerError({ kind: 'broken', words: 'answered with malformed JSON' });
  const isError = eventName === 'error' || (chunk.error !== undefined && chunk.error !== null);
  if (isError) throw errorInAnswer(chunk);
  return chunk;
}

/**
 * Server-sent events a line at a time. Each `data:` line that is JSON by itself counts at once, because some
 * servers leave out the blank line between events; what is not waits for its next line.
 */
function createEventParser() {
  let name: string | null = null;
  let data = '';
  let seen = false;
  let sample = '';

  return {
    any: () => seen,
    sample: () => sample,

    line(line: string): { data: unknown; name: string | null } | 'end' | null {
      if (line.startsWith('event:')) {
        name = line.slice(6).trim();
      } else if (line.startsWith('data:')) {
        seen = true;
        const part = line.slice(5).trim();
        if (part.startsWith('[DONE]')) return 'end';
        data = data === '' ? part : `${data}\n${part}`;
        const value = parse(data);
        if (value === undefined) return null;
        data = '';
        return { data: value, name };
      } else if (line === '') {
        if (data !== '') throw new ServerError({ kind: 'broken', words: 'sent an event that is not JSON' });
        name = null;
      } else if (!line.startsWith(':') && sample.length < 2000) {
        sample += `${line}\n`;
      }
      return null;
    },
  };
}

/**
 * Reads the response to its end, so that the connection can be used again, and closes it where that takes too long. Runs
 * in the background: the answer is complete.
 */
function drain(body: Readable, clock: Clock): void {
  const cancel = clock.after(END_MS, () => body.destroy());
  body.once('close', cancel).once('end', cancel).resume();
}
