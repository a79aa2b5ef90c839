/**
 * The messages of a server as they come in, whatever it sends: each as one line of text that is not too large to be parsed.
 * Of one that is larger only its beginning and its end are kept, and what can be told from these stands in for it; a flood
 * waits with the server, for it is read no faster than it is worked on.
 */
import { sizeInWords } from '../core/bytes.js';
import type { Clock } from '../core/clock.js';
import { cutAt } from '../core/cut.js';
import { Fault } from '../core/errors.js';
import { MOST_BYTES_AT_ALL, MOST_MESSAGE_BYTES, MOST_RESULT_CHARS } from './settings.js';

/** Of a message that is too large: enough for the text that a model would see of it. */
const HEAD_BYTES = 512_000;
const TAIL_BYTES = 1_000;
const LINE_END = 0x0a;

/** No more messages than this are taken in that time. */
const BURST = 200;
const BURST_MS = 100;

/** One message: as it came, or its two ends and how large it was. */
export type Received = { whole: string } | { head: string; tail: string; bytes: number };

/** Bytes of one message that come in pieces; in memory there is never more of it than may be parsed. */
class Gathering {
  private pieces: Uint8Array[] = [];
  private tail = Buffer.alloc(0);
  private bytes = 0;

  add(piece: Uint8Array): void {
    this.bytes += piece.length;
    if (this.bytes > MOST_BYTES_AT_ALL) {
      throw new Fault(
        'internal',
        `the server sent more than ${sizeInWords(MOST_BYTES_AT_ALL)} in one message`,
      );
    }
    if (this.bytes <= MOST_MESSAGE_BYTES) {
      this.pieces.push(piece);
      return;
    }
    if (this.tail.length > 0) {
      this.tail = Buffer.concat([this.tail, piece]).subarray(-TAIL_BYTES);
      return;
    }
    const whole = Buffer.concat([...this.pieces, piece]);
    this.pieces = [Buffer.from(whole.subarray(0, HEAD_BYTES))];
    this.tail = Buffer.from(whole.subarray(-TAIL_BYTES));
  }

  isEmpty(): boolean {
    return this.bytes === 0;
  }

  take(): Received {
    const kept = Buffer.concat(this.pieces).toString('utf8');
    const { bytes } = this;
    const tail = this.tail.toString('utf8');
    this.pieces = [];
    this.tail = Buffer.alloc(0);
    this.bytes = 0;
    return bytes <= MOST_MESSAGE_BYTES ? { whole: kept } : { head: kept, tail, bytes };
  }
}

/** Lines, one after the other, no faster than a reader and the clock let them go. */
export async function* linesOf(source: AsyncIterable<Uint8Array>, clock: Clock): AsyncGenerator<Received> {
  const gathering = new Gathering();
  let since = clock.now();
  let taken = 0;
  for await (const chunk of source) {
    let from = 0;
    for (let at = chunk.indexOf(LINE_END); at !== -1; at = chunk.indexOf(LINE_END, from)) {
      gathering.add(chunk.subarray(from, at));
      from = at + 1;
      yield gathering.take();
      taken += 1;
      if (taken < BURST) continue;
      const left = since + BURST_MS - clock.now();
      if (left > 0) await clock.sleep(left);
      since = clock.now();
      taken = 0;
    }
    if (from < chunk.length) gathering.add(chunk.subarray(from));
  }
  if (!gathering.isEmpty()) yield gathering.take();
}

/** A whole body as one message. */
export async function bodyOf(source: AsyncIterable<Uint8Array>): Promise<Received> {
  const gathering = new Gathering();
  for await (const chunk of source) gathering.add(chunk);
  return gathering.take();
}

/**
 * An answer that was too large, as a small one with the same id that holds the beginning of its first text; null where the
 * two ends do not say which call it answers.
 */
export function standIn({ head, tail, bytes }: { head: string; tail: string; bytes: number }): string | null {
  const id = idIn(head, tail);
  if (id === null) return null;
  const size = `The server's answer had ${sizeInWords(bytes)}, which is more than is read at once`;
  const text = firstText(head);
  const isError = /"isError"\s*:\s*true/.test(tail) || text === null;
  const said =
    text === null
      ? [`${size}, and nothing of it can be shown. Ask for less.`]
      : [text, `[${size}: only the beginning of its first text stands above. Ask for less to see the rest.]`];
  const content = said.map((each) => ({ type: 'text', text: each }));
  return JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', content, isError } });
}

/** Ids of calls are numbers; the one of the message itself stands at its beginning, or before its last brace. */
function idIn(head: string, tail: string): number | null {
  const first = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,/.exec(head);
  const last = /,\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/.exec(tail);
  const found = first?.[1] ?? last?.[1];
  return found === undefined ? null : Number(found);
}

function firstText(head: string): string | null {
  const begins = /"text"\s*:\s*"/.exec(head);
  if (begins === null) return null;
  const from = begins.index + begins[0].length;
  let to = from;
  while (to < head.length && head[to] !== '"') to += head[to] === '\\' ? 2 : 1;
  // The cut may have split an escape of up to six characters.
  for (let end = Math.min(to, head.length), tries = 0; end >= from && tries < 7; end -= 1, tries += 1) {
    try {
      return cutAt(JSON.parse(`"${head.slice(from, end)}"`) as string, MOST_RESULT_CHARS - 1_000);
    } catch {
      // One character less.
    }
  }
  return null;
}
