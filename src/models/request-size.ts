/**
 * How many tokens a request takes before any server has counted it: a fair guess, and the least that any tokeniser makes
 * of it. A server that counts less than the least has not read all.
 */
import type { ModelMessage, ModelRequest, ToolDescription } from '../core/model.js';

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
  const sizes = new WeakMap<ModelMessage | ToolDescription, RequestSize>();

  function sizeOf<T extends ModelMessage | ToolDescription>(part: T, measure: (part: T) => RequestSize) {
    let size = sizes.get(part);
    if (size === undefined) {
      size = measure(part);
      sizes.set(part, size);
    }
    return size;
  }

  return ({ messages, tools }) => {
    const sum: RequestSize = { estimated: 0, least: 0, uncertain: 0 };
    for (const message of messages) add(sum, sizeOf(message, sizeOfMessage));
    for (const tool of tools) add(sum, sizeOf(tool, sizeOfTool));
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
