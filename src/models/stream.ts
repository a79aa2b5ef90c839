/** Sends a request to a model server and reads the reply: server-sent events, or one JSON document if it does not stream. */
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { createParser } from 'eventsource-parser';
import type { Clock } from '../core/clock.js';
import { describe } from '../core/errors.js';
import type { ModelImage } from '../core/model.js';
import { addressOf, type Outward, TIMES_AN_ANSWER } from '../core/network.js';
import { NOT_PACKED } from '../core/response-body.js';
import { connectionError, errorInAnswer, plainWords, refusal, ServerError } from './failures.js';
import { parse, record } from './json.js';

/** JSON with a slot per picture: base64 is made only while sending, so that ten pictures fit in memory. */
export interface Body {
  text: string;
  pictures: readonly Buffer[];
}

/** Posts JSON and resolves with the body of a successful response. Never retries. Throws ServerError without headers or key. */
export type HttpPost = (body: Body, signal: AbortSignal) => Promise<AsyncIterable<Uint8Array>>;

/** Random, so that no message can contain it. */
const SLOT = `picture-${randomUUID()}`;
/** A multiple of 3, so that the base64 of the pieces can be joined. */
const PIECE_BYTES = 3 * 16_384;
/** How long a server may keep the connection open after its answer, in ms. */
const END_MS = 100;

export function pictureUrl({ mimeType }: ModelImage): string {
  return `data:${mimeType};base64,${SLOT}`;
}

export function* piecesOf({ text, pictures }: Body): Generator<Buffer> {
  for (const [n, part] of text.split(SLOT).entries()) {
    const picture = pictures[n - 1] ?? Buffer.alloc(0);
    for (let at = 0; at < picture.length; at += PIECE_BYTES) {
      yield Buffer.from(picture.toString('base64', at, Math.min(at + PIECE_BYTES, picture.length)));
    }
    yield Buffer.from(part);
  }
}

function lengthOf({ text, pictures }: Body): number {
  const base64 = pictures.reduce((sum, { length }) => sum + 4 * Math.ceil(length / 3) - SLOT.length, 0);
  return Buffer.byteLength(text) + base64;
}

/** Reads at most eight times `mostBytes` of a refusal. */
export function createPost(
  server: { baseUrl: string; apiKey: string | null; headers?: Record<string, string> | undefined },
  path: string,
  { outward, now, mostBytes }: { outward: Outward; now(): number; mostBytes: number },
): HttpPost {
  const { url, headers } = addressOf(server.baseUrl, path);
  const ask = outward.fetch();
  Object.assign(headers, NOT_PACKED, {
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
    'user-agent': 'coterie',
  });
  if (server.apiKey) headers.authorization = `Bearer ${server.apiKey}`;
  for (const [name, value] of Object.entries(server.headers ?? {})) headers[name.toLowerCase()] = value;

  return async (body, signal) => {
    const hasPictures = body.pictures.length > 0;
    const sent = {
      method: 'POST',
      redirect: 'manual',
      signal,
      headers: hasPictures ? { ...headers, 'content-length': `${lengthOf(body)}` } : headers,
      body: hasPictures ? Readable.from(piecesOf(body)) : body.text,
      duplex: 'half',
    };
    const response = await ask(url, sent as never).catch((error) => {
      throw connectionError(error);
    });
    if (!response.ok) throw await refusal(response, now(), mostBytes * TIMES_AN_ANSWER);
    return (response.body ?? []) as AsyncIterable<Uint8Array>;
  };
}

/** Whether the body ended with `[DONE]`. */
export type End = 'marked' | 'unmarked';

/**
 * Reads chunks from an open response. Throws ServerError if they are malformed, or if one line, event or document exceeds eight
 * times `mostBytes`. `heard` gets the size of everything that arrives, including keep-alive comments.
 */
export async function* chunksOf(
  body: AsyncIterable<Uint8Array>,
  {
    heard,
    hangUp,
    mostBytes,
    clock,
  }: { heard(bytes: number): void; hangUp(): void; mostBytes: number; clock: Clock },
): AsyncGenerator<unknown, End> {
  const reader = body[Symbol.asyncIterator]();
  const decoder = new TextDecoder();
  const longest = mostBytes * TIMES_AN_ANSWER;
  let form: 'unknown' | 'events' | 'document' = 'unknown';
  let document = '';
  /** Since the last whole event. */
  let bytes = 0;
  let events: { name: string | undefined; data: string }[] = [];
  let hasEvents = false;
  let sample = '';
  const parser = createParser({
    onEvent({ event, data }) {
      events.push({ name: event, data });
      hasEvents = true;
      bytes = 0;
    },
    onComment() {
      bytes = 0;
    },
    onError({ line = '' }) {
      if (sample.length < 2000) sample += `${line.slice(0, 2000)}\n`;
    },
  });

  for (;;) {
    const { done, value } = await readSome(reader);
    const size = value?.length ?? 0;
    heard(size);
    bytes += size;
    let text = decoder.decode(value, { stream: !done });
    if (form === 'unknown') {
      // Skips a byte order mark and keep-alive blank lines.
      text = text.trimStart();
      form = formOf(text);
    }
    if (form === 'document') document += text;
    else if (form === 'events') parser.feed(done ? `${text}\n\n` : text);
    const read = events;
    events = [];
    for (const { name, data } of read) {
      const [before = '', ...rest] = data.split(/^\[DONE\]/m);
      for (const chunk of chunksIn(before, name)) yield chunk;
      if (rest.length === 0) continue;
      void drain(reader, hangUp, clock);
      return 'marked';
    }
    if (bytes > longest) {
      const words = `sent ${longest.toLocaleString('en')} bytes without the end of a line`;
      throw new ServerError({ kind: 'endless', words });
    }
    if (done) break;
  }
  if (form === 'document') yield checked(parse(document), undefined);
  else if (!hasEvents) throw broken(`answered with neither events nor JSON: ${plainWords(sample)}`);
  return 'unmarked';
}

async function readSome(reader: AsyncIterator<Uint8Array>): Promise<{ done: boolean; value?: Uint8Array }> {
  try {
    const { done = false, value } = await reader.next();
    return done ? { done } : { done, value };
  } catch (error) {
    throw broken(`broke off its answer (${describe(error)})`);
  }
}

/** By the first character, because some servers send a wrong content type. */
function formOf(start: string): 'unknown' | 'events' | 'document' {
  if (start === '') return 'unknown';
  return start[0] === '{' || start[0] === '[' ? 'document' : 'events';
}

/** Data of an event that only keeps the connection alive. */
const HEARTBEAT = /^\W{0,3}(ping|heartbeat|keep-?alive|null)?\W{0,3}$/i;

/** Some servers omit the blank line between events, so each line is a chunk. */
function chunksIn(data: string, name: string | undefined): unknown[] {
  if (HEARTBEAT.test(data) && name !== 'error') return [];
  const whole = parse(data);
  const values = whole === undefined ? data.trim().split('\n').map(parse) : [whole];
  if (values.includes(undefined)) throw broken('sent an event that is not JSON');
  return values.map((value) => checked(value, name));
}

/** An error may come as a chunk, long after the status 200. */
function checked(data: unknown, eventName: string | undefined): unknown {
  const chunk = record(Array.isArray(data) ? data[0] : data);
  if (chunk === null) throw broken('answered with malformed JSON');
  if (eventName === 'error' || (chunk.error ?? null) !== null) throw errorInAnswer(chunk);
  return chunk;
}

function broken(words: string): ServerError {
  return new ServerError({ kind: 'broken', words });
}

/** Reads to the end so that the connection can be reused; hangs up after END_MS. Never rejects. */
async function drain(reader: AsyncIterator<unknown>, hangUp: () => void, clock: Clock): Promise<void> {
  const cancel = clock.after(END_MS, hangUp);
  try {
    while (!(await reader.next()).done);
  } catch {
    // The answer is already complete.
  }
  cancel();
}
