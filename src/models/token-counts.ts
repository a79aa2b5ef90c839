/** Estimates a request's tokens, and tells from the server's count whether it has read all of it. */
import { onceForEach } from '../core/concurrency.js';
import type { ModelMessage, ModelRequest, ToolDescription } from '../core/model.js';

const NOTHING = {
  estimated: 0,
  /** Like `estimated`, but scripts other than Latin count one token per byte. */
  ample: 0,
  /** Lower bound for the visible text with any tokeniser. */
  least: 0,
  /** Upper bound: one token per byte. */
  most: 0,
  /** Part that may take any number of tokens: pictures, tools and returned fields. */
  uncertain: 0,
};
export type RequestSize = typeof NOTHING;

/** Overhead of a message. */
const MESSAGE: RequestSize = { ...NOTHING, estimated: 4, ample: 4, most: 10 };
const PICTURE_TOKENS = 1_000;

/** Tokens per character: Latin and others below U+0300; other alphabets; Chinese, Japanese and Korean. */
const LATIN = { estimated: 0.25, least: 0.15 };
const ALPHABET = { estimated: 0.5, least: 0.18 };
const IDEOGRAPH = { estimated: 1, least: 0.4 };

/** Blanks, controls, combining marks and zero-width characters: a server may drop them. */
const UNSEEN = /[\s\p{Cc}\p{Cf}\p{sc=Inherited}]/u;

/** Caches the size of each message and tool for as long as the object lives. */
export function createSizer(): (request: ModelRequest) => RequestSize {
  const ofMessage = onceForEach(sizeOfMessage);
  const ofTool = onceForEach(sizeOfTool);
  return ({ messages, tools }) => total([...messages.map(ofMessage), ...tools.map(ofTool)]);
}

function total(sizes: readonly RequestSize[]): RequestSize {
  const sum = { ...NOTHING };
  for (const size of sizes) {
    sum.estimated += size.estimated;
    sum.ample += size.ample;
    sum.least += size.least;
    sum.most += size.most;
    sum.uncertain += size.uncertain;
  }
  return sum;
}

function sizeOfMessage(message: ModelMessage): RequestSize {
  const size = total([sizeOfText(textOf(message)), MESSAGE]);
  if (message.role === 'user' && message.images) {
    const pictures = message.images.length * PICTURE_TOKENS;
    size.estimated += pictures;
    size.ample += pictures;
    size.uncertain += pictures;
  }
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
  let [estimated, ample, least, most] = [0, 0, 0, 0];
  let before = -1;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    const rate = code < 0x300 ? LATIN : code < 0x2e80 ? ALPHABET : IDEOGRAPH;
    const isHalf = code >= 0xd800 && code < 0xe000;
    const bytes = code < 0x80 ? 1 : code < 0x800 || isHalf ? 2 : 3;
    estimated += rate.estimated;
    ample += rate === LATIN ? rate.estimated : bytes;
    most += bytes;
    const isUnseen = code <= 0x20 || (code >= 0x7f && UNSEEN.test(text[i] ?? ''));
    if (code !== before && !isUnseen) least += rate.least;
    before = code;
  }
  return { ...NOTHING, estimated, ample, least, most };
}

interface Counted {
  texts: readonly string[];
  size: RequestSize;
  /** One per reading of the server's figures: most include cached tokens, some do not. */
  counts: number[];
}

/** Smaller requests and counts prove nothing: some servers report tiny counts whatever they are sent. */
export const LEAST_REQUEST = 1_200;
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
type Reading = 'whole' | 'in part' | 'stalled' | 'stands';

export class CutWatch {
  /** The request to compare with, by conversation, in order of use. */
  private readonly before = new Map<string, Counted>();

  /** Of a request of at least LEAST_REQUEST. `chat`: the conversation that it continues; null if unknown. */
  reading(
    chat: string | null,
    messages: readonly ModelMessage[],
    size: RequestSize,
    counts: number[],
  ): Reading {
    const highest = Math.max(...counts);
    if (highest < LEAST_COUNT) return 'whole';
    const alone: Reading = highest < size.least ? 'in part' : 'whole';
    if (chat === null) return alone;
    const request = { texts: messages.map(textOf), size, counts };
    const last = this.before.get(chat);
    const change = last === undefined ? null : changeFrom(last, request);
    if (last === undefined || change === null) {
      this.keep(chat, request);
      return alone;
    }
    const grown = LEAST_OF_GROWTH * change.come - change.gone;
    const more = counts.map((count, n) => count - (last.counts[n] ?? 0));
    const isStalled = change.come >= GROWN && more.every((each) => each < grown);
    // Else keep the old one: if more was removed than added, a later request shows more.
    if (isStalled || (change.come >= GROWN && grown > 0)) this.keep(chat, request);
    if (!isStalled) return alone;
    return more.every((each) => Math.abs(each) <= STANDS) ? 'stands' : 'stalled';
  }

  private keep(chat: string, request: Counted): void {
    this.before.delete(chat);
    this.before.set(chat, request);
    const [oldest = ''] = this.before.keys();
    if (this.before.size > MOST_CHATS) this.before.delete(oldest);
  }
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
  const sizes = texts.slice(from).flatMap((text, n) => {
    const isBegun = n === 0 && without > 0;
    return isBegun ? [sizeOfText(text.slice(without))] : [sizeOfText(text), MESSAGE];
  });
  return total(sizes);
}

/** The window behind a cut request's count: Ollama keeps half of its window, a power of two, plus two or three tokens. */
export function windowBehind(counted: number): number {
  const round = Math.round((2 * counted) / 1_024) * 1_024;
  const over = counted - round / 2;
  const isPowerOfTwo = round >= 1_024 && Number.isInteger(Math.log2(round / 1_024));
  return over >= 1 && over <= 16 && isPowerOfTwo ? round : counted;
}
