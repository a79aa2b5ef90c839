/**
 * An OpenAI-compatible embedding server on 127.0.0.1. A text has the same vector always; what goes wrong is told by
 * a script for each request, or by limits that hold for all.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { counter, listen } from './http-server.js';

export interface EmbeddingBody {
  model: string;
  input: string[];
  encoding_format?: string;
  dimensions?: number;
}

export interface EmbeddingScript {
  delayMs?: number;
  /** No answer, for ever; or none at all. */
  stall?: 'hang' | 'drop';
  status?: number;
  /** JSON from an object, else as it is. */
  body?: unknown;
  headers?: Record<string, string>;
  /** In place of the vector of a text; undefined is the usual one. */
  vectorOf?: (text: string) => unknown;
  /** The last text's vector first. */
  reversed?: true;
}

/** `n` counts requests from 0. */
export type EmbeddingReply = (body: EmbeddingBody, n: number) => EmbeddingScript;

export interface FakeEmbeddings {
  /** Ends in /v1. */
  url: string;
  requests: { body: EmbeddingBody; headers: IncomingHttpHeaders }[];
  /** Sockets that were opened. */
  connections(): number;
  reply(reply: EmbeddingReply | EmbeddingScript): void;
  /** Of the vectors. */
  length(next: number): void;
  /** Resolves when that many requests have come in. */
  received(count: number): Promise<void>;
  close(): Promise<void>;
}

export async function startFakeEmbeddings(
  options: {
    length?: number;
    reply?: EmbeddingReply | EmbeddingScript;
    /** More texts, or more characters in one, are refused with 413. */
    mostTexts?: number;
    mostCharacters?: number;
    /** How many of the latest requests to keep. A bench wants few. */
    keep?: number;
    /**
     * The model was trained with these before its texts (model cards of nomic-embed, E5, Qwen3-Embedding and others;
     * servers do not add them): a text with one has the vector of its words, any other lies far away.
     */
    prefixes?: { query: string; document: string };
    /**
     * What becomes of `dimensions` in a request. OpenAI's v3 models, vLLM and Ollama with Matryoshka models honour it
     * (and do not all normalise what they cut); others refuse it with 400, or do as if it were not there.
     */
    dimensions?: 'honoured' | 'refused' | 'ignored';
    /**
     * text-embeddings-inference: 413 for a text that is too long ("`inputs` must have less than N tokens. Given: M"),
     * 422 for more texts than --max-client-batch-size, 429 for more requests at once than it takes. Ollama: 400 for
     * what is too long, with near a token a character of dense text (code, base64, YAML).
     */
    like?: { tei: { tokens: number; texts: number; atOnce: number } } | { ollama: { tokens: number } };
    /** The models it has; another is not found (404, as Ollama and vLLM say). Without: whatever is asked for. */
    models?: string[];
    /** It has one model, whatever is asked for, and says which (text-embeddings-inference). */
    only?: string;
    /** Every text has the same vector, written once: for benches. */
    constant?: boolean;
  } = {},
): Promise<FakeEmbeddings> {
  const { mostTexts = Infinity, mostCharacters = Infinity, keep = Infinity } = options;
  const requests: FakeEmbeddings['requests'] = [];
  let reply = options.reply ?? {};
  let length = options.length ?? 8;
  const count = counter();
  const constant = options.constant ? JSON.stringify(vectorFor('constant', length)) : null;

  const server = createServer((request, response) => {
    answer(request, response).catch((error) => {
      if (!response.headersSent) response.writeHead(500);
      response.end(`the fake failed: ${error}`);
    });
  });

  let busy = 0;
  async function answer(request: IncomingMessage, response: ServerResponse) {
    busy++;
    try {
      return await respond(request, response);
    } finally {
      busy--;
    }
  }

  async function respond(request: IncomingMessage, response: ServerResponse) {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    if (request.method !== 'POST' || request.url !== '/v1/embeddings') return send(response, 404, {});
    const body: EmbeddingBody = JSON.parse(Buffer.concat(pieces).toString('utf8'));
    requests.push({ body, headers: request.headers });
    if (requests.length > keep) requests.shift();
    const n = count.next();

    const script = typeof reply === 'function' ? reply(body, n) : reply;
    if (script.delayMs) await new Promise((resolve) => setTimeout(resolve, script.delayMs));
    if (script.stall === 'hang') return;
    if (script.stall === 'drop') return response.socket?.destroy();
    if (script.status !== undefined || script.body !== undefined) {
      const said = script.body ?? { error: { message: `status ${script.status}` } };
      return send(response, script.status ?? 200, said, script.headers);
    }
    const refused = refusalOf(options.like, body.input, busy);
    if (refused !== null) return send(response, refused.status, refused.body);
    if (options.models !== undefined && !options.models.includes(body.model)) {
      return send(response, 404, {
        error: { message: `model "${body.model}" not found`, type: 'not_found' },
      });
    }
    if (options.dimensions === 'refused' && body.dimensions !== undefined) {
      const message = `Model "${body.model}" does not support matryoshka representation, changing output dimensions will lead to poor results.`;
      return send(response, 400, { error: { message, type: 'BadRequestError', code: 400 } });
    }
    const width = options.dimensions === 'honoured' ? (body.dimensions ?? length) : length;
    if (body.input.length > mostTexts || body.input.some((text) => text.length > mostCharacters)) {
      return send(response, 413, { error: { message: 'too much', type: 'Validation' } });
    }
    if (constant !== null) {
      const data = body.input.map((_, index) => `{"index":${index},"embedding":${constant}}`);
      return send(response, 200, `{"data":[${data.join(',')}]}`);
    }
    const data = body.input.map((text, index) => {
      const odd = script.vectorOf?.(text);
      const usual = () =>
        vectorFor(
          meantBy(text, options.prefixes),
          length,
          options.models ? body.model : (options.only ?? ''),
        ).slice(0, width);
      return { object: 'embedding', index, embedding: odd === undefined ? usual() : odd };
    });
    return send(response, 200, {
      object: 'list',
      model: options.only ?? body.model,
      data: script.reversed ? data.reverse() : data,
    });
  }

  const { url, connections, close } = await listen(server);

  return {
    url: `${url}/v1`,
    requests,
    connections,
    reply(next) {
      reply = next;
    },
    length(next) {
      length = next;
    },
    received: count.reached,
    close,
  };
}

function meantBy(text: string, prefixes: { query: string; document: string } | undefined): string {
  if (prefixes === undefined) return text;
  const known = [prefixes.query, prefixes.document]
    .filter((prefix) => prefix !== '' && text.startsWith(prefix))
    .sort((a, b) => b.length - a.length)[0];
  if (known !== undefined) return text.slice(known.length);
  // Bare texts are documents where documents have no prefix.
  return prefixes.document === '' ? text : `somewhere else: ${text}`;
}

type Like = NonNullable<NonNullable<Parameters<typeof startFakeEmbeddings>[0]>['like']>;

function refusalOf(
  like: Like | undefined,
  texts: string[],
  busy: number,
): { status: number; body: object } | null {
  if (like === undefined) return null;
  const longest = Math.max(...texts.map(tokensIn));
  if ('ollama' in like) {
    if (longest <= like.ollama.tokens) return null;
    const message = 'the input length exceeds the context length';
    return { status: 400, body: { error: { message, type: 'invalid_request_error' } } };
  }
  const { tokens, texts: most, atOnce } = like.tei;
  if (busy > atOnce) {
    return { status: 429, body: { error: 'Model is overloaded', error_type: 'Overloaded' } };
  }
  if (texts.length > most) {
    const error = `batch size ${texts.length} > maximum allowed batch size ${most}`;
    return { status: 422, body: { error, error_type: 'Validation' } };
  }
  if (longest < tokens) return null;
  const error = `\`inputs\` must have less than ${tokens} tokens. Given: ${longest}`;
  return { status: 413, body: { error, error_type: 'Validation' } };
}

/** Words are cheap; digits, signs and scripts without spaces take near a token a character. */
function tokensIn(text: string): number {
  const words = text.match(/[a-z]+/gi)?.reduce((sum, word) => sum + Math.ceil(word.length / 4), 0) ?? 0;
  return words + (text.match(/[^a-z\s]/gi)?.length ?? 0);
}

/** Not of length 1, as with many servers. The same text lies elsewhere in each model. */
export function vectorFor(text: string, length: number, model = ''): number[] {
  let state = 2166136261 ^ (model === '' ? 0 : hashOf(model));
  for (let i = 0; i < text.length; i++) state = Math.imul(state ^ text.charCodeAt(i), 16777619);
  return Array.from({ length }, () => {
    state = Math.imul(state ^ (state >>> 15), 2246822507) + 0x9e3779b9;
    return Number(((state >>> 0) / 2 ** 31 - 1).toFixed(8));
  });
}

function hashOf(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return hash;
}

function send(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(text);
}
