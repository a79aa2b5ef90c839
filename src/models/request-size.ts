/** Estimates a request's tokens, with bounds that hold for any tokeniser. Pure. */
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
export const MESSAGE: RequestSize = { ...NOTHING, estimated: 4, ample: 4, most: 10 };
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
  return ({ messages, tools }) => {
    const { estimated, ample, least, most, uncertain } = total([
      ...messages.map(ofMessage),
      ...tools.map(ofTool),
    ]);
    return {
      estimated: Math.ceil(estimated),
      ample: Math.ceil(ample),
      least: Math.floor(least),
      most: Math.ceil(most),
      uncertain: Math.ceil(uncertain),
    };
  };
}

export function total(sizes: readonly RequestSize[]): RequestSize {
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

export function textOf(message: ModelMessage): string {
  if (message.role !== 'assistant') return message.content;
  return message.content + message.calls.map((call) => call.name + call.arguments).join('');
}

/** Not every template shows the model all of a tool, so nothing counts towards `least`. */
function sizeOfTool(tool: ToolDescription): RequestSize {
  const { estimated, ample } = sizeOfText(JSON.stringify(tool));
  return { ...NOTHING, estimated, ample, uncertain: estimated };
}

/** A run of the same character may be one token, so it counts once towards `least`. */
export function sizeOfText(text: string): RequestSize {
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
    const isUnseen = code <= 0x20 || (code >= 0x7f && UNSEEN.test(text[i] ?? ''));
    if (code !== before && !isUnseen) size.least += rate.least;
    before = code;
  }
  return size;
}
