/**
 * Step 5, from the server: a response is read as it comes in: server-sent events, or the one JSON document of a server that
 * does not stream.
 */
import type { Readable } from 'node:stream';
import type { Clock } from '../core/clock.js';
import { describe } from '../core/errors.js';
import { TIMES_AN_ANSWER } from '../core/network.js';
import { parse, record } from './json.js';
import { errorInAnswer, plainWords, ServerError } from './server-error.js';

/** How long a server may keep the connection open after the end of its answer. */
const END_MS = 100;

/** How a body ended: with the mark `[DONE]`, or without. */
export type End = 'marked' | 'unmarked';

/**
 * Reads a chat completion from an open response. Throws ServerError where it is none, and where one line, event or document
 * is longer than eight times `mostBytes`. `heard` is called for whatever arrives, comments that only keep the connection
 * alive included, with its size in bytes.
 */
export async function* chunksOf(
  body: Readable,
  { heard, mostBytes, clock }: { heard(bytes: number): void; mostBytes: number; clock: Clock },
): AsyncGenerator<unknown, End> {
  body.setEncoding('utf8');
  const reader: Reader = body[Symbol.asyncIterator]();
  const longest = mostBytes * TIMES_AN_ANSWER;
  const events = createEventParser(longest);
  let unread = '';
  let unreadBytes = 0;
  let form: 'unknown' | 'events' | 'document' = 'unknown';

  for (;;) {
    const { done, value } = await readSome(reader);
    const bytes = done ? 0 : Buffer.byteLength(value);
    heard(bytes);
    if (!done) {
      unread += value;
      unreadBytes += bytes;
    }
    if (form === 'unknown') {
      // Without blank lines that only keep the connection alive, and a byte order mark.
      unread = unread.trimStart();
      unreadBytes = Buffer.byteLength(unread);
      form = formOf(unread);
    }
    // A line that goes on need not be read from its beginning for each piece of it.
    if (form === 'events' && (done || /[\r\n]/.test(value))) {
      const lines = unread.split(/\r\n|\n|\r/);
      unread = done ? '' : (lines.pop() ?? '');
      unreadBytes = Buffer.byteLength(unread);
      for (const line of lines) {
        const event = events.line(line);
        if (event === 'end') {
          // What was answered is waited for; the connection is not.
          setImmediate(() => {
            if (!body.closed) drain(body, clock);
          });
          return 'marked';
        }
        if (event !== null) yield checked(event.data, event.name);
      }
    }
    if (unreadBytes > longest) throw endless(longest);
    if (done) break;
  }
  if (form === 'document') yield checked(parse(unread), null);
  else if (!events.any()) {
    throw new ServerError({
      kind: 'broken',
      words: `answered with neither events nor JSON: ${plainWords(unread || events.sample())}`,
    });
  } else {
    const last = events.rest();
    if (last !== null) yield checked(last.data, last.name);
  }
  return 'unmarked';
}

type Reader = AsyncIterator<string>;

async function readSome(reader: Reader): Promise<IteratorResult<string>> {
  try {
    return await reader.next();
  } catch (error) {
    throw new ServerError({ kind: 'broken', words: `broke off its answer (${describe(error)})` });
  }
}

function endless(longest: number): ServerError {
  const words = `sent ${longest.toLocaleString('en')} bytes without the end of a line`;
  return new ServerError({ kind: 'endless', words });
}

/** By the first character that is not blank, because some servers send a wrong content type. */
function formOf(start: string): 'unknown' | 'events' | 'document' {
  if (start === '') return 'unknown';
  return start[0] === '{' || start[0] === '[' ? 'document' : 'events';
}

/** An error may come as a chunk, long after the status said 200. */
function checked(data: unknown, eventName: string | null): unknown {
  const chunk = record(Array.isArray(data) ? data[0] : data);
  if (chunk === null) throw new ServerError({ kind: 'broken', words: 'answered with malformed JSON' });
  const isError = eventName === 'error' || (chunk.error !== undefined && chunk.error !== null);
  if (isError) throw errorInAnswer(chunk);
  return chunk;
}

/** What stands in an event that only keeps the connection alive, JSON or not; mostly nothing. */
const HEARTBEAT = /^\W{0,3}(ping|heartbeat|keep-?alive|null)?\W{0,3}$/i;

interface ServerEvent {
  data: unknown;
  name: string | null;
}

/**
 * Server-sent events a line at a time. A `data:` line that is JSON by itself counts at once, because some servers leave
 * out the blank line between events; what is not is joined with the lines that follow, up to a blank one.
 */
function createEventParser(longest: number) {
  let name: string | null = null;
  let parts: string[] = [];
  let bytes = 0;
  let seen = false;
  let sample = '';

  /** The event of the lines so far; null where there is none. */
  function rest(): ServerEvent | null {
    const text = parts.join('\n');
    parts = [];
    bytes = 0;
    if (HEARTBEAT.test(text)) return null;
    const value = parse(text);
    if (value === undefined)
      throw new ServerError({ kind: 'broken', words: 'sent an event that is not JSON' });
    return { data: value, name };
  }

  return {
    any: () => seen,
    sample: () => sample,
    rest,

    line(line: string): ServerEvent | 'end' | null {
      if (line.startsWith('event:')) {
        name = line.slice(6).trim();
      } else if (line.startsWith('data:')) {
        seen = true;
        const part = line.slice(5).trim();
        if (part.startsWith('[DONE]')) return 'end';
        const value = parts.length === 0 ? parse(part) : undefined;
        if (value !== undefined)
          return HEARTBEAT.test(part) && name !== 'error' ? null : { data: value, name };
        parts.push(part);
        bytes += Buffer.byteLength(part) + 1;
        if (bytes > longest) throw endless(longest);
      } else if (line === '') {
        const event = rest();
        name = null;
        return event;
      } else if (!line.startsWith(':') && sample.length < 2000) {
        sample += `${line.slice(0, 2000)}\n`;
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
