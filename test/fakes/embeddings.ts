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

  async function answer(request: IncomingMessage, response: ServerResponse) {
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
    if (body.input.length > mostTexts || body.input.some((text) => text.length > mostCharacters)) {
      return send(response, 413, { error: { message: 'too much', type: 'Validation' } });
    }
    if (constant !== null) {
      const data = body.input.map((_, index) => `{"index":${index},"embedding":${constant}}`);
      return send(response, 200, `{"data":[${data.join(',')}]}`);
    }
    const data = body.input.map((text, index) => {
      const odd = script.vectorOf?.(text);
      return { object: 'embedding', index, embedding: odd === undefined ? vectorFor(text, length) : odd };
    });
    return send(response, 200, {
      object: 'list',
      model: body.model,
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

/** Not of length 1, as with many servers. */
export function vectorFor(text: string, length: number): number[] {
  let state = 2166136261;
  for (let i = 0; i < text.length; i++) state = Math.imul(state ^ text.charCodeAt(i), 16777619);
  return Array.from({ length }, () => {
    state = Math.imul(state ^ (state >>> 15), 2246822507) + 0x9e3779b9;
    return Number(((state >>> 0) / 2 ** 31 - 1).toFixed(8));
  });
}

function send(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(text);
}
