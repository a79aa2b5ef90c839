/** The way to a server over HTTP: answers of any size come in pieces and bounded, as those of a process do. */
import type { FetchLike } from '@modelcontextprotocol/client';
import type { Clock } from '../core/clock.js';
import { bodyOf, linesOf, type Received, standIn } from './messages.js';

/** What a server says about an error is read no further. */
const MOST_ERROR_BYTES = 64_000;
const DATA = 'data:';

export function createBoundedFetch(ask: typeof fetch, clock: Clock): FetchLike {
  return async (url, init) => {
    const response = await ask(url, init);
    const { body, status, statusText, headers } = response;
    if (body === null || status < 200 || (status >= 300 && status < 400)) return response;
    const kind = headers.get('content-type') ?? '';
    const read = !response.ok ? firstBytes : kind.includes('text/event-stream') ? events : document;
    return new Response(ReadableStream.from(read(body, clock)) as ReadableStream<Uint8Array>, {
      ...{ status, statusText, headers },
    });
  };
}

async function* document(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield Buffer.from(textOf(await bodyOf(body)));
}

async function* events(body: ReadableStream<Uint8Array>, clock: Clock): AsyncGenerator<Uint8Array> {
  for await (const line of linesOf(body, clock)) yield Buffer.from(`${eventLine(line)}\n`);
}

function eventLine(line: Received): string {
  if ('whole' in line) return line.whole;
  if (!line.head.startsWith(DATA)) return '';
  const inside = standIn({ ...line, head: line.head.slice(DATA.length), tail: line.tail.trimEnd() });
  return inside === null ? '' : `${DATA} ${inside}`;
}

/** Of one that is too large and cannot be told: nothing, which is no JSON. */
function textOf(message: Received): string {
  return 'whole' in message ? message.whole : (standIn(message) ?? '');
}

async function* firstBytes(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  let left = MOST_ERROR_BYTES;
  for await (const chunk of body) {
    yield chunk.subarray(0, left);
    left -= chunk.length;
    if (left <= 0) return;
  }
}
