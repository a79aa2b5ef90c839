/** Step 5, inside the model client: estimates a request's tokens, and tells from the server's count whether it has read all of it. */

import { onceForEach } from '../core/concurrency.js';
import type { ModelMessage, ModelRequest, ToolDescription } from '../core/model.js';

export interface RequestSize {
  estimated: number;
  /** Like `estimated`, but scripts other than Latin count one token per byte. */
  ample: number;
  /** Lower bound for the visible text with any tokeniser. */
  least: number;
  /** Upper bound: one token per byte. */
  most: number;
  /** Part that may take any number of tokens: pictures, tools and returned fields. */
  uncertain: number;
}

const NOTHING: RequestSize = { estimated: 0, ample: 0, least: 0, most: 0, uncertain: 0 };
/** Overhead per message, and the size of a picture. */
const MESSAGE: RequestSize = { ...NOTHING, estimated: 4, ample: 4, most: 10 };
const PICTURE: RequestSize = { ...NOTHING, estimated: 1_000, ample: 1_000, uncertain: 1_000 };

/** Tokens per character: Latin and others below U+0300; other alphabets; Chinese, Japanese and Korean. */
const LATIN = { estimated: 0.25, least: 0.15 };
const ALPHABET = { estimated: 0.5, least: 0.18 };
const IDEOGRAPH = { estimated: 1, least: 0.4 };

/** Code ranges of blanks, controls, combining marks and zero-width characters: a server may drop them. */
const UNSEEN = [
  ...[
    [0, 0x20],
    [0x7f, 0xa0],
    [0xad, 0xad],
    [0x300, 0x36f],
    [0x2000, 0x200f],
    [0x2028, 0x202f],
  ],
  ...[
    [0x205f, 0x206f],
    [0x3000, 0x3000],
    [0xfe00, 0xfe0f],
    [0xfeff, 0xfeff],
  ],
] as const;
const isUnseen = (code: number) =>
  code <= 0x20 || (code >= 0x7f && UNSEEN.some(([from = 0, to = 0]) => from <= code && code <= to));

/** Caches the size of each message and tool for as long as the object lives. */
export function createSizer(): (request: ModelRequest) => RequestSize {
  const ofMessage = onceForEach(sizeOfMessage);
  const ofTool = onceForEach(sizeOfTool);

  return ({ messages, tools }) => {
    const sum = { ...NOTHING };
    for (const message of messages) add(sum, ofMessage(message));
    for (const tool of tools) add(sum, ofTool(tool));
    return {
      estimated: Math.ceil(sum.estimated),
      ample: Math.ceil(sum.ample),
      least: Math.floor(sum.least),
      most: Math.ceil(sum.most),
      uncertain: Math.ceil(sum.uncertain),
    };
  };
}

function add(sum: RequestSize, { estimated, ample, least, most, uncertain }: RequestSize, times = 1): void {
  sum.estimated += estimated * times;
  sum.ample += ample * times;
  sum.least += least * times;
  sum.most += most * times;
  sum.uncertain += uncertain * times;
}

function sizeOfMessage(message: ModelMessage): RequestSize {
  const size = sizeOfText(textOf(message));
  add(size, MESSAGE);
  if (message.role === 'user') add(size, PICTURE, message.images?.length ?? 0);
  if (message.role === 'assistant' && message.echo) {
    size.uncertain += JSON.stringify(message.echo).length * LATIN.estimated;
  }
  return size;
}

function textOf(message: ModelMessage): string {
  if (message.role !== 'assistant') return message.content;
  return message.content + message.calls.map((call) => call.name + call.arguments).join('');
}

/** Not every template shows the model all of a tool, so nothing counts towards `least`. */
function sizeOfTool(tool: ToolDescription): RequestSize {
  const { estimated, ample } = sizeOfText(JSON.stringify(tool));
  return { ...NOTHING, estimated, ample, uncertain: estimated };
}

/** A run of the same character may be one token, so it counts once towards `least`. */
function sizeOfText(text: string): RequestSize {
  const size = { ...NOTHING };
  let before = -1;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    const rate = code < 0x300 ? LATIN : code < 0x2e80 ? ALPHABET : IDEOGRAPH;
    const isHalf = code >= 0xd800 && code < 0xe000;
    const bytes = code < 0x80 ? 1 : code < 0x800 || isHalf ? 2 : 3;
    size.estimated += rate.estimated;
    size.ample += rate === LATIN ? rate.estimated : bytes;
    size.most += bytes;
    if (code !== before && !isUnseen(code)) size.least += rate.least;
    before = code;
  }
  return size;
}

interface Counted {
  texts: readonly string[];
  size: RequestSize;
  /** One per reading of the server's figures: most include cached tokens, some do not. */
  counts: number[];
}

/** Smaller requests and counts prove nothing: some servers report tiny counts whatever they are sent. */
const LEAST_REQUEST = 1_200;
const LEAST_COUNT = 500;
/** Minimum growth of a conversation, in tokens, from which its counts are compared. */
const GROWN = 400;
/** A server that reads everything counts more than this share of the growth's lower bound: no text has 33 letters per token. */
const LEAST_OF_GROWTH = 0.2;
/** An unchanged count varies by at most this many tokens. */
const STANDS = 16;
/** Maximum number of conversations whose last request is kept. */
const MOST_CHATS = 20;

/** `in part`: count below the lower bound. `stalled`: fell or hardly grew while its conversation grew. `stands`: unchanged meanwhile. */
export type Reading = 'whole' | 'in part' | 'stalled' | 'stands';

interface CutWatch {
  /** `chat`: the conversation that the request continues; null if unknown. */
  reading(
    chat: string | null,
    request: Omit<Counted, 'texts'> & { messages: readonly ModelMessage[] },
  ): Reading;
}

export function createCutWatch(): CutWatch {
  /** The request to compare with, by conversation, in order of use. */
  const before = new Map<string, Counted>();

  function keep(chat: string, request: Counted): void {
    before.delete(chat);
    before.set(chat, request);
    for (const oldest of before.keys()) {
      if (before.size <= MOST_CHATS) break;
      before.delete(oldest);
    }
  }

  return {
    reading(chat, { messages, size, counts }) {
      const highest = Math.max(...counts);
      if (size.estimated < LEAST_REQUEST || highest < LEAST_COUNT) return 'whole';
      const alone: Reading = highest < size.least ? 'in part' : 'whole';
      if (chat === null) return alone;
      const request = { texts: messages.map(textOf), size, counts };
      const last = before.get(chat);
      const change = last === undefined ? null : changeFrom(last, request);
      if (last === undefined || change === null) {
        keep(chat, request);
        return alone;
      }
      const grown = LEAST_OF_GROWTH * change.come - change.gone;
      const more = counts.map((count, n) => count - (last.counts[n] ?? 0));
      const isStalled = change.come >= GROWN && more.every((each) => each < grown);
      // Else keep the old one: if more was removed than added, a later request shows more.
      if (isStalled || (change.come >= GROWN && grown > 0)) keep(chat, request);
      if (!isStalled) return alone;
      return more.every((each) => Math.abs(each) <= STANDS) ? 'stands' : 'stalled';
    },
  };
}

/** Tokens added (lower bound) and removed (upper bound). null if less than half is left, or a picture, of unknown size, is gone. */
function changeFrom(last: Counted, { texts, size }: Counted): { come: number; gone: number } | null {
  if (size.uncertain < last.size.uncertain) return null;
  let same = 0;
  while (same < last.texts.length && last.texts[same] === texts[same]) same++;
  const common = commonLength(last.texts[same] ?? '', texts[same] ?? '');
  const gone = sizeOfRest(last.texts, same, common).most;
  if (gone > last.size.most / 2) return null;
  return { come: sizeOfRest(texts, same, common).least, gone };
}

function commonLength(a: string, b: string): number {
  const most = Math.min(a.length, b.length);
  let length = 0;
  while (length < most && a.charCodeAt(length) === b.charCodeAt(length)) length++;
  return length;
}

/** Size of the messages from `from` on, without the first `without` characters. */
function sizeOfRest(texts: readonly string[], from: number, without: number): RequestSize {
  const sum = { ...NOTHING };
  for (const [n, text] of texts.slice(from).entries()) {
    add(sum, sizeOfText(n === 0 ? text.slice(without) : text));
    if (n > 0 || without === 0) add(sum, MESSAGE);
  }
  return sum;
}

/** The window behind a cut request's count: Ollama keeps half of its (round) window plus two or three tokens. */
export function windowBehind(counted: number): number {
  const round = Math.round((2 * counted) / 1_024) * 1_024;
  const over = counted - round / 2;
  return over >= 1 && over <= 16 && isPowerOfTwo(round / 1_024) ? round : counted;
}

function isPowerOfTwo(n: number): boolean {
  return n >= 1 && Number.isInteger(Math.log2(n));
}
