/**
 * A scripted model server on 127.0.0.1 that speaks OpenAI's chat completions, streaming or not, and transcribes. What
 * it is not told to answer it echoes. Cheap enough for benches, which start it in a process of its own with plain options.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createBrotliCompress, createDeflate, createDeflateRaw, createGzip } from 'node:zlib';
import { counter, listen } from './http-server.js';
import { chunksOf, completionOf, type ModelScript } from './model-script.js';
import { asChat, createResponses } from './model-servers/responses.js';
import { type ModelServer, misnamed, tokensIn, unpaired } from './model-servers/server.js';
import {
  answerRecording,
  type Recording,
  readRecording,
  type TranscriptScript,
} from './model-transcription.js';

export type { ModelScript } from './model-script.js';

/** A request as it came in; loosely typed, because tests look at whatever was sent. */
export interface ChatBody {
  model: string;
  messages: ChatBodyMessage[];
  tools?: { type: string; function: { name: string; description?: string; parameters?: unknown } }[];
  stream?: boolean;
  stream_options?: { include_usage?: boolean };
  max_tokens?: number;
  max_completion_tokens?: number;
  temperature?: number;
  reasoning_effort?: string;
  [field: string]: unknown;
}

export interface ChatBodyMessage {
  role: string;
  /** Of a list of parts, its texts. */
  content: string | null;
  /** Of a list of parts, its pictures. */
  images?: { mimeType: string; bytes: Buffer }[];
  /** The field by which one of the parts asks to be cached. */
  mark?: string;
  tool_calls?: ChatBodyCall[];
  tool_call_id?: string;
  [field: string]: unknown;
}

export interface ChatBodyCall {
  id: string;
  type: string;
  function: { name: string; arguments: string };
  [field: string]: unknown;
}

export interface FakeModelRequest {
  /** Of a request to the Responses API, what it says as chat completions would. */
  body: ChatBody;
  /** Behind the address: `/chat/completions`. */
  path: string;
  /** As it was sent. */
  raw: Record<string, unknown>;
  headers: IncomingHttpHeaders;
  /** When its body was complete, and when its answer was; ms since 1970 with fractions. */
  at: number;
  answeredAt: number | null;
  /** The client hung up before the answer was complete. */
  abandoned: boolean;
}

/** `n` counts requests from 0. A string is a text. */
export type ModelReply = (body: ChatBody, n: number) => ModelScript | string | Promise<ModelScript | string>;

export interface FakeModelOptions {
  /** 0 takes a free one. */
  port?: number;
  /** Every answer waits this long, beside what its script says. */
  delayMs?: number;
  reply?: ModelReply | ModelScript | string;
  /** How many of the latest requests to keep; all. A long bench wants few. */
  keep?: number;
  /** `refused`: a model without eyes, as a proxy in front of one words it. */
  images?: 'taken' | 'refused';
  /** The rules of a real server, asked before the reply. Without it everything is taken. */
  server?: ModelServer;
  /** What is heard in recordings; what their bytes say as text, where left out. */
  transcript?: Transcript;
}

export type Transcript = TranscriptScript | ((recording: Recording) => TranscriptScript);

export interface FakeModel {
  /** Ends in /v1. */
  url: string;
  requests: FakeModelRequest[];
  /** How many requests there were, kept or not. */
  count(): number;
  /** Sockets that were opened: one for many requests, where the client keeps it alive. */
  connections(): number;
  reply(reply: ModelReply | ModelScript | string): void;
  /** May be changed at any time. */
  settings: { images: 'taken' | 'refused'; transcript: Transcript };
  /** What came in to be transcribed. */
  recordings: Recording[];
  /** What was looked up beside requests: `GET /props`. */
  lookedUp: string[];
  /** Resolves when that many requests have come in. */
  received(count: number): Promise<void>;
  close(): Promise<void>;
}

export async function startFakeModel(options: FakeModelOptions = {}): Promise<FakeModel> {
  const { delayMs = 0, keep = Number.POSITIVE_INFINITY } = options;
  const requests: FakeModelRequest[] = [];
  let reply = options.reply ?? echo;
  const count = counter();
  const settings: FakeModel['settings'] = {
    images: options.images ?? 'taken',
    transcript: options.transcript ?? (({ bytes }) => bytes.toString('utf8')),
  };
  const recordings: Recording[] = [];
  const lookedUp: string[] = [];
  const { server: rules } = options;
  const responses = createResponses();

  const server = createServer((request, response) => {
    answer(request, response).catch((error) => {
      if (!response.headersSent) response.writeHead(500, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message: `the fake model failed: ${error}` } }));
    });
  });

  async function answer(request: IncomingMessage, response: ServerResponse) {
    const sent = await bodyOf(request);
    if (request.method === 'POST' && request.url === '/v1/audio/transcriptions') {
      const recording = await readRecording(request, sent);
      recordings.push(recording);
      const { transcript } = settings;
      answerRecording(typeof transcript === 'function' ? transcript(recording) : transcript, response);
      return;
    }
    const place = `${request.method} ${request.url}`;
    const page = rules?.pages?.[place];
    if (page !== undefined) {
      lookedUp.push(place);
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(page()));
      return;
    }
    const toResponses = place === 'POST /v1/responses' && rules?.hasResponses === true;
    if (place !== 'POST /v1/chat/completions' && !toResponses) {
      response.writeHead(404, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message: `no such path: ${place}` } }));
      return;
    }
    const raw = JSON.parse(sent.toString('utf8'));
    const body: ChatBody = toResponses ? asChat(raw) : withPartsApart(raw);
    const seen: FakeModelRequest = {
      body,
      path: toResponses ? '/responses' : '/chat/completions',
      raw,
      headers: request.headers,
      at: performance.timeOrigin + performance.now(),
      answeredAt: null,
      abandoned: false,
    };
    requests.push(seen);
    if (requests.length > keep) requests.shift();
    response.on('close', () => {
      if (response.writableFinished) seen.answeredAt = performance.timeOrigin + performance.now();
      else seen.abandoned = true;
    });
    const n = count.next();

    if (settings.images === 'refused' && body.messages.some((message) => message.images)) {
      await play(NO_PICTURES, body, n, response);
      return;
    }
    const script = toResponses
      ? (responses.refusal(raw) ?? (await scriptFor(body, n)))
      : await ruled(body, n);
    const wait = delayMs + (script.headerDelayMs ?? 0);
    if (wait > 0) await pause(wait);
    if (toResponses && script.status === undefined && !script.drop && script.stall !== 'headers') {
      await responses.play(script, { body, raw, n }, response);
    } else await play(script, body, n, response);
  }

  async function scriptFor(body: ChatBody, n: number): Promise<ModelScript> {
    const said = typeof reply === 'function' ? await reply(body, n) : reply;
    return typeof said === 'string' ? { text: said } : said;
  }

  /** Past the rules of the server, in its form. */
  async function ruled(body: ChatBody, n: number): Promise<ModelScript> {
    if (rules === undefined) return scriptFor(body, n);
    const fault = unpaired(body);
    if (fault !== null) return { status: 400, body: { error: { message: `calls and results: ${fault}` } } };
    const misnaming = misnamed(body);
    if (misnaming !== null) return { status: 400, body: { error: misnaming } };
    const refusal = rules.rules(body, n);
    if (refusal !== null) return refusal;
    const given = rules.cut?.(body) ?? body;
    const script = await scriptFor(given, n);
    // What is no answer of the model has no form of its own.
    if (script.status !== undefined || script.raw !== undefined || script.stall === 'headers') return script;
    const counted = {
      prompt_tokens: tokensIn(given),
      completion_tokens: Math.ceil((script.text ?? '').length / 4),
    };
    return { usage: counted, ...(rules.dress?.(script, given, n) ?? script) };
  }

  const { url, connections, close } = await listen(server, options.port);

  return {
    url: `${url}/v1`,
    requests,
    count: count.count,
    connections,
    reply(next) {
      reply = next;
    },
    settings,
    recordings,
    lookedUp,
    received: count.reached,
    close,
  };
}

const PACKERS = {
  gzip: createGzip,
  deflate: createDeflate,
  'raw deflate': createDeflateRaw,
  br: createBrotliCompress,
};

/** Whatever is written is packed, piece by piece. */
function packing(form: keyof typeof PACKERS, response: ServerResponse): ServerResponse {
  const packer = PACKERS[form]();
  packer.pipe(response);
  return Object.assign(Object.create(response), {
    write: (piece: string, done?: () => void) => {
      packer.write(piece);
      packer.flush(done);
    },
    end: (piece = '') => packer.end(piece),
    writeHead: (status: number, headers: object) =>
      response.writeHead(status, { ...headers, 'content-encoding': form.replace('raw ', '') }),
  });
}

async function play(script: ModelScript, body: ChatBody, n: number, direct: ServerResponse): Promise<void> {
  const response = script.packed === undefined ? direct : packing(script.packed, direct);
  if (script.stall === 'headers') return;
  if (script.drop) {
    response.socket?.destroy();
    return;
  }
  if (script.status !== undefined || script.body !== undefined) {
    const raw = script.body ?? { error: { message: `status ${script.status}` } };
    const json = typeof raw !== 'string';
    response.writeHead(script.status ?? 200, {
      'content-type': json ? 'application/json' : 'text/html',
      ...script.headers,
    });
    response.end(json ? JSON.stringify(raw) : raw);
    return;
  }
  if (!body.stream || script.nonStreaming) {
    response.writeHead(200, { 'content-type': 'application/json', ...script.headers });
    response.end(JSON.stringify(completionOf(script, body, n)));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream', ...script.headers });
  await playStream(script, chunksOf(script, body, n), response);
}

async function playStream(script: ModelScript, chunks: string[], response: ServerResponse): Promise<void> {
  const { cutAfter, stallAfter, chunkDelayMs, hold, heartbeat } = script;
  // Without any wish about when, all of it is one write.
  if ([cutAfter, stallAfter, chunkDelayMs, hold, heartbeat].every((wish) => wish === undefined)) {
    response.end(chunks.join(''));
    return;
  }
  for (const [index, chunk] of chunks.entries()) {
    if (index === stallAfter) return;
    if (index === heartbeat?.after) break;
    if (index === hold?.after) await hold.until;
    if (index === cutAfter) {
      response.socket?.destroy();
      return;
    }
    if (index > 0 && chunkDelayMs) await pause(chunkDelayMs);
    await new Promise<void>((resolve) => response.write(chunk, () => resolve()));
  }
  while (heartbeat && !response.destroyed) {
    response.write(heartbeat.line);
    await pause(heartbeat.everyMs);
  }
  if (stallAfter !== chunks.length) response.end();
}

/** The default answer: what the last user message says, so that a test can match replies to messages. */
export function echo(body: ChatBody): ModelScript {
  return { text: `echo: ${lastUserText(body)}` };
}

/**
 * The texts of the last user message, out of their `<user_message>` marks, a line each: as they stand there, because a
 * model is told of no entities and resolves none.
 */
export function lastUserText(body: ChatBody): string {
  const content = body.messages.findLast((message) => message.role === 'user')?.content ?? '';
  const marked = [...content.matchAll(/<user_message\b[^>]*>([\s\S]*?)<\/user_message>/g)];
  const texts = marked.length > 0 ? marked.map((match) => match[1] ?? '') : [content];
  return texts.join('\n');
}

const NO_PICTURES: ModelScript = {
  status: 400,
  body: { error: { message: 'Invalid content type. image_url is only supported by certain models.' } },
};

interface RawPart {
  type: string;
  text?: string;
  image_url?: { url: string };
}

const CACHE_MARKS = ['cache_control', 'prompt_cache_breakpoint'];

/** Content may be a list of parts: most tests care for the words, some for the pictures. */
function withPartsApart(body: ChatBody): ChatBody {
  return { ...body, messages: body.messages.map(apart) };
}

function apart(message: ChatBodyMessage): ChatBodyMessage {
  const parts: unknown = message.content;
  if (!Array.isArray(parts)) return message;
  const known = parts as RawPart[];
  const content = known.flatMap(({ text }) => text ?? []).join('\n');
  const images = known.flatMap(({ image_url }) => (image_url === undefined ? [] : [imageOf(image_url.url)]));
  const mark = known.flatMap(Object.keys).find((field) => CACHE_MARKS.includes(field));
  return { ...message, content, ...(images.length > 0 && { images }), ...(mark && { mark }) };
}

function imageOf(url: string): { mimeType: string; bytes: Buffer } {
  const [, mimeType = '', data = ''] = /^data:([^;]+);base64,([A-Za-z0-9+/=]+)$/.exec(url) ?? [];
  if (data === '') throw new Error(`not a picture as data: ${url.slice(0, 40)}`);
  return { mimeType, bytes: Buffer.from(data, 'base64') };
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
