/**
 * Step 5, inside the model client: how many tokens a request takes before any server has counted it (a fair guess, and the
 * least that any tokeniser makes of it), and what a server's own count of it tells: whether it has read all of it.
 */
import type { ModelMessage, ModelRequest, ToolDescription } from '../core/model.js';
import { onceForEach } from '../core/once.js';

export interface RequestSize {
  estimated: number;
  least: number;
  /** Of what may take any number of tokens: pictures, tools, and what goes back to the server unread. */
  uncertain: number;
}

/** Around each message, and for a picture. */
const MESSAGE: RequestSize = { estimated: 4, least: 0, uncertain: 0 };
const PICTURE: RequestSize = { estimated: 1_000, least: 0, uncertain: 1_000 };

/** Tokens a character: Latin and what else is below U+0300; other alphabets; Chinese, Japanese and Korean. */
const LATIN = { estimated: 0.25, least: 0.15 };
const ALPHABET = { estimated: 0.5, least: 0.18 };
const IDEOGRAPH = { estimated: 1, least: 0.4 };

/** The size of a message or tool is computed once, as long as the object lives. */
export function createSizer(): (request: Pick<ModelRequest, 'messages' | 'tools'>) => RequestSize {
  const ofMessage = onceForEach(sizeOfMessage);
  const ofTool = onceForEach(sizeOfTool);

  return ({ messages, tools }) => {
    const sum: RequestSize = { estimated: 0, least: 0, uncertain: 0 };
    for (const message of messages) add(sum, ofMessage(message));
    for (const tool of tools) add(sum, ofTool(tool));
    return {
      estimated: Math.ceil(sum.estimated),
      least: Math.floor(sum.least),
      uncertain: Math.ceil(sum.uncertain),
    };
  };
}

function add(sum: RequestSize, { estimated, least, uncertain }: RequestSize, times = 1): void {
  sum.estimated += estimated * times;
  sum.least += least * times;
  sum.uncertain += uncertain * times;
}

function sizeOfMessage(message: ModelMessage): RequestSize {
  const size = sizeOfText(message.content);
  add(size, MESSAGE);
  if (message.role === 'user') add(size, PICTURE, message.images?.length ?? 0);
  if (message.role === 'assistant') {
    for (const call of message.calls) add(size, sizeOfText(call.name + call.arguments));
    if (message.echo) size.uncertain += JSON.stringify(message.echo).length * LATIN.estimated;
  }
  return size;
}

/** Not every template shows all of a tool to its model. */
function sizeOfTool(tool: ToolDescription): RequestSize {
  const { estimated } = sizeOfText(JSON.stringify(tool));
  return { estimated, least: 0, uncertain: estimated };
}

/** The same character many times in a row may be one token: towards the least, it counts once. */
function sizeOfText(text: string): RequestSize {
  const size: RequestSize = { estimated: 0, least: 0, uncertain: 0 };
  let before = -1;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    const rate = code < 0x300 ? LATIN : code < 0x2e80 ? ALPHABET : IDEOGRAPH;
    size.estimated += rate.estimated;
    if (code !== before) size.least += rate.least;
    before = code;
  }
  return size;
}

interface Counted {
  size: RequestSize;
  /** In each way in which the server's figures can be read: most count what was in their cache, some leave it out. */
  counts: number[];
}

/** Smaller requests and counts tell nothing: some servers count next to nothing, whatever they are sent. */
const LEAST_REQUEST = 1_200;
const LEAST_COUNT = 500;
/** A conversation that grew by so many tokens at least is looked at. */
const GROWN = 500;
/** Of what was added, a server that reads all counts more than this share. */
const LEAST_OF_GROWTH = 0.2;
const MOST_CHATS = 200;

/**
 * Notices that a server reads only a part of long requests, by the one thing that tells: its count of their tokens. It is
 * below the least that they can be, or it stays where it is, or falls, while a conversation grows.
 */
interface CutWatch {
  isCut(chat: string, request: Counted & { isOneChat: boolean }): boolean;
}

export function createCutWatch(): CutWatch {
  /** In order of use. By conversation: the request that later ones are compared with. */
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
    isCut(chat, { size, counts, isOneChat }) {
      const highest = Math.max(...counts);
      if (size.estimated < LEAST_REQUEST || highest < LEAST_COUNT) return false;
      const isBelowLeast = highest < size.least;
      if (!isOneChat) return isBelowLeast;
      const last = before.get(chat);
      const grown = last === undefined ? 0 : size.least - last.size.least;
      // A picture that is gone may have taken more than the text has grown by.
      const isLessCertain = last !== undefined && size.uncertain < last.size.uncertain;
      if (last === undefined || grown < 0 || isLessCertain) {
        keep(chat, { size, counts });
        return isBelowLeast;
      }
      if (grown < GROWN) return isBelowLeast;
      keep(chat, { size, counts });
      const stalls = counts.every((count, n) => count - (last.counts[n] ?? 0) < LEAST_OF_GROWTH * grown);
      return isBelowLeast || stalls;
    },
  };
}

/**
 * The window behind the count of a request that was cut. Ollama keeps half of its window and two or three tokens more;
 * a count that is just above half of a round window means that one.
 */
export function windowBehind(counted: number): number {
  const round = Math.round((2 * counted) / 1_024) * 1_024;
  const over = counted - round / 2;
  return over >= 1 && over <= 16 && isPowerOfTwo(round / 1_024) ? round : counted;
}

function isPowerOfTwo(n: number): boolean {
  return n >= 1 && Number.isInteger(Math.log2(n));
}
