/**
 * One request to a server, watched for silence until its last chunk. Reads server-sent events, or one JSON document if the server
 * does not stream.
 */
import { Readable } from 'node:stream';
import { createParser } from 'eventsource-parser';
import type { Clock } from '../core/clock.js';
import { describe } from '../core/errors.js';
import type { ModelEvent } from '../core/model.js';
import { addressOf, type Outward, TIMES_AN_ANSWER } from '../core/network.js';
import { NOT_PACKED } from '../core/response-body.js';
import { type Answer, type AnswerReader, eventsTo, isEmpty, type Shown } from './answer.js';
import {
  broken,
  connectionError,
  endless,
  errorInAnswer,
  plainWords,
  refusal,
  ServerError,
  throwIfFailed,
} from './failures.js';
import { continued, continuedSoFar } from './further.js';
import { parse, record } from './json.js';
import { type Body, type ChatRequest, SLOT } from './request.js';
import { createSaidReader, type SaidReader } from './said.js';
import type { Endpoint } from './server-ways.js';

/** A multiple of 3, so that the base64 of the pieces can be joined. */
const PIECE_BYTES = 3 * 16_384;

export function* piecesOf({ text, pictures }: Body): Generator<Buffer> {
  for (const [n, part] of text.split(SLOT).entries()) {
    const picture = pictures[n - 1] ?? Buffer.alloc(0);
    for (let at = 0; at < picture.length; at += PIECE_BYTES) {
      yield Buffer.from(picture.toString('base64', at, Math.min(at + PIECE_BYTES, picture.length)));
    }
    yield Buffer.from(part);
  }
}

function lengthOf({ text, pictures }: Body): number {
  const base64 = pictures.reduce((sum, { length }) => sum + 4 * Math.ceil(length / 3) - SLOT.length, 0);
  return Buffer.byteLength(text) + base64;
}

/** Posts JSON and resolves with the body of a successful response. Never retries. Throws ServerError without headers or key. */
type HttpPost = (body: Body, signal: AbortSignal) => Promise<AsyncIterable<Uint8Array>>;

/** Reads at most eight times `mostBytes` of a refusal. */
export function createPost(
  server: Endpoint,
  path: string,
  outward: Outward,
  clock: Clock,
  mostBytes: number,
): HttpPost {
  const { url, headers } = addressOf(server.baseUrl, path);
  Object.assign(headers, NOT_PACKED, {
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
    'user-agent': 'coterie',
  });
  if (server.apiKey) headers.authorization = `Bearer ${server.apiKey}`;
  for (const [name, value] of Object.entries(server.headers ?? {})) headers[name.toLowerCase()] = value;

  return async (body, signal) => {
    const hasPictures = body.pictures.length > 0;
    const sent = hasPictures
      ? {
          headers: { ...headers, 'content-length': `${lengthOf(body)}` },
          body: Readable.from(piecesOf(body)),
        }
      : { headers, body: body.text };
    const response = await outward.request(url, { method: 'POST', ...sent, signal }).catch((error) => {
      throw connectionError(error);
    });
    if (response.status >= 200 && response.status < 300) return response.body;
    throw await refusal(response, clock.now(), mostBytes * TIMES_AN_ANSWER);
  };
}

/** Reading the whole text after every piece would take quadratic time, so it is read again only when it has grown by 1 %. */
const GROWTH = 1.01;
/** A text without any of these is only words: it needs no reader. */
const MAY_HOLD_MORE = /[`<[]|^\s*\{/;

interface Sending {
  post: HttpPost;
  body: Body;
  /** A new reader for each attempt. */
  answer: AnswerReader;
  /** Maximum wait for the headers, and between pieces of the answer or keep-alives, in ms. */
  silenceMs: number;
  shown: Shown;
  /** Maximum size of an answer (text, calls and reasoning), in bytes. */
  mostBytes: number;
  /** Tools that the text may call, and messages that it may quote. */
  sent: { tools: ChatRequest['tools']; messages: ChatRequest['messages'] };
  /** The text of an earlier request that this answer continues; empty if none. */
  before: string;
  clock: Clock;
  signal: AbortSignal;
}

/** Yields text as the model writes it, then returns the answer. Throws ServerError; the caller checks its own signal first. */
export async function* attempt(sending: Sending): AsyncGenerator<ModelEvent, Answer> {
  const { answer, mostBytes, shown, before, clock, signal } = sending;
  const connection = new AbortController();
  const hangUp = () => connection.abort();
  const patience = new Patience(sending.silenceMs, mostBytes, clock, hangUp);
  let said: SaidReader | null = null;
  let isMarked = false;
  let isOpen = true;
  signal.addEventListener('abort', hangUp, { once: true });
  if (signal.aborted) hangUp();
  try {
    const response = await sending.post(sending.body, connection.signal);
    patience.heard(0);
    yield* eventsTo(shown, before);
    let dueAt = 0;
    for await (const chunk of chunksOf(response, patience, mostBytes)) {
      isMarked = chunk === MARK;
      if (isMarked) break;
      const isGoingOn = answer.finish() === null;
      const brought = answer.add(chunk);
      const isFinished = answer.finish() !== null;
      if (brought !== 'nothing' || (isGoingOn && isFinished)) patience.written(isFinished);
      const size = answer.bytes();
      if (size > mostBytes) throw tooLong('wrote', mostBytes);
      if (brought !== 'text' || size < dueAt) continue;
      dueAt = size * GROWTH;
      let visible = answer.visible();
      if (MAY_HOLD_MORE.test(visible)) {
        said ??= createSaidReader(sending.sent);
        visible = said.soFar(visible);
      }
      yield* eventsTo(shown, before === '' ? visible : continuedSoFar(before, visible));
    }
    isOpen = false;
  } catch (error) {
    // A complete answer counts, even if the connection broke or more arrived afterwards.
    if (answer.finish() === null || signal.aborted || answer.bytes() > mostBytes) {
      throw patience.overdue === null ? error : new ServerError({ kind: 'silent', words: patience.overdue });
    }
  } finally {
    // Also if the consumer stops early.
    if (isOpen) hangUp();
    patience.stop();
    signal.removeEventListener('abort', hangUp);
  }
  const whole = answer.complete();
  // Some servers end an answer only with the mark at the end of the stream (Snowflake Cortex).
  if (isMarked && !isEmpty(whole)) whole.finish ??= whole.calls.length > 0 ? 'tool_calls' : 'stop';
  if (whole.finish !== 'stop') throwIfFailed(whole.finish);
  const isPlain = !MAY_HOLD_MORE.test(whole.text);
  const read = isPlain ? whole : withWrittenCalls(whole, said ?? createSaidReader(sending.sent));
  const text = before === '' ? read.text : continued(before, read.text);
  yield* eventsTo(shown, text);
  return { ...read, text };
}

/** Takes calls from the text if the server found none in it. */
function withWrittenCalls(answer: Answer, reader: SaidReader): Answer {
  const { text, calls, failed, isOpen } = reader.whole(answer.text);
  if (text === answer.text && calls.length === 0) return answer;
  const { items, ...besides } = answer.besides;
  // All items would bring the removed text back; calls need only the items that led to them.
  const kept = items?.filter(({ type }) => type !== 'message');
  if (answer.calls.length > 0)
    return { ...answer, text, besides: { ...besides, ...(kept && { items: kept }) } };
  const written = calls.map((call) => ({ ...call, id: '' }));
  const failedCall = failed === null ? {} : { failedCall: { why: failed, isOpen } };
  return { ...answer, text, calls: written, besides, ...failedCall };
}

function tooLong(what: 'wrote' | 'sent', most: number): ServerError {
  return endless(`${what} more than ${most.toLocaleString('en')} bytes without coming to an end`);
}

/** Keep-alives extend the wait to this many times the silence limit; then the model must write something. */
const TIMES_SILENCE = 4;
/** Wait for the usage after the last piece of a finished answer, in ms. */
const GRACE_MS = 1_500;

/** Watches a request for silence, for keep-alives without an answer, and for an answer that continues after its end. */
class Patience {
  /** Why the connection was closed; null if it was not. */
  overdue: string | null = null;
  private lastHeard: number;
  private lastWritten: number;
  private finishedAt = Number.POSITIVE_INFINITY;
  /** Since the last write. Bounded, because a flood of keep-alives would block the process. */
  private idleBytes = 0;
  private cancel: () => void;

  constructor(
    private readonly silenceMs: number,
    private readonly mostBytes: number,
    readonly clock: Clock,
    readonly hangUp: () => void,
  ) {
    this.lastHeard = clock.now();
    this.lastWritten = this.lastHeard;
    this.cancel = clock.after(silenceMs, () => this.watch());
  }

  /** `bytes`: of everything that arrives, including keep-alive comments. */
  heard(bytes: number): void {
    this.lastHeard = this.clock.now();
    this.idleBytes += bytes;
    // One document or event arrives in many pieces.
    const most = 2 * TIMES_AN_ANSWER * this.mostBytes;
    if (this.idleBytes > most) throw tooLong('sent', most);
  }

  written(isFinished: boolean): void {
    this.lastWritten = this.clock.now();
    this.idleBytes = 0;
    if (!isFinished) return;
    const isFirst = this.finishedAt === Number.POSITIVE_INFINITY;
    this.finishedAt = this.lastWritten;
    if (!isFirst) return;
    this.stop();
    this.watch();
  }

  stop(): void {
    this.cancel();
  }

  private watch(): void {
    const { silenceMs } = this;
    const quiet = this.lastHeard + silenceMs;
    const until = Math.min(quiet, this.lastWritten + TIMES_SILENCE * silenceMs, this.finishedAt + GRACE_MS);
    const left = until - this.clock.now();
    if (left > 0) {
      this.cancel = this.clock.after(left, () => this.watch());
      return;
    }
    this.overdue =
      until === quiet
        ? `was silent for ${silenceMs / 1000} s`
        : `kept the connection alive, but wrote nothing for ${(TIMES_SILENCE * silenceMs) / 1000} s`;
    this.hangUp();
  }
}

/** Ends the chunks of a body that ended with `[DONE]`. */
const MARK = Symbol('[DONE]');
/** How long a server may keep the connection open after its answer, in ms. */
const END_MS = 100;

/** Reads chunks. Throws ServerError if they are malformed, or if one line, event or document exceeds eight times `mostBytes`. */
async function* chunksOf(
  body: AsyncIterable<Uint8Array>,
  patience: Patience,
  mostBytes: number,
): AsyncGenerator<unknown> {
  const reader = body[Symbol.asyncIterator]();
  const decoder = new TextDecoder();
  const longest = mostBytes * TIMES_AN_ANSWER;
  let form: 'unknown' | 'events' | 'document' = 'unknown';
  let document = '';
  /** Since the last whole event. */
  let bytes = 0;
  let events: { name: string | undefined; data: string }[] = [];
  let hasEvents = false;
  let sample = '';
  const parser = createParser({
    onEvent({ event, data }) {
      events.push({ name: event, data });
      hasEvents = true;
      bytes = 0;
    },
    onComment() {
      bytes = 0;
    },
    onError({ line = '' }) {
      if (sample.length < 2000) sample += `${line.slice(0, 2000)}\n`;
    },
  });

  for (let isDone = false; !isDone; ) {
    const { done = false, value } = await reader.next().catch((error) => {
      throw broken(`broke off its answer (${describe(error)})`);
    });
    isDone = done;
    const size = value?.length ?? 0;
    patience.heard(size);
    bytes += size;
    let text = decoder.decode(value, { stream: !done });
    if (form === 'unknown') {
      // Skips a byte order mark and keep-alive blank lines.
      text = text.trimStart();
      // By the first character, because some servers send a wrong content type.
      if (text !== '') form = text[0] === '{' || text[0] === '[' ? 'document' : 'events';
    }
    if (form === 'document') document += text;
    else if (form === 'events') parser.feed(done ? `${text}\n\n` : text);
    const read = events;
    events = [];
    for (const { name, data } of read) {
      const [before = '', ...rest] = data.split(/^\[DONE\]/m);
      yield* chunksIn(before, name);
      if (rest.length === 0) continue;
      void drain(reader, patience);
      return yield MARK;
    }
    if (bytes > longest) {
      throw endless(`sent ${longest.toLocaleString('en')} bytes without the end of a line`);
    }
  }
  if (form === 'document') yield checked(parse(document), undefined);
  else if (!hasEvents) throw broken(`answered with neither events nor JSON: ${plainWords(sample)}`);
}

/** Data of an event that only keeps the connection alive. */
const HEARTBEAT = /^\W{0,3}(ping|heartbeat|keep-?alive|null)?\W{0,3}$/i;

/** Some servers omit the blank line between events, so each line is a chunk. */
function chunksIn(data: string, name: string | undefined): unknown[] {
  if (HEARTBEAT.test(data) && name !== 'error') return [];
  const whole = parse(data);
  const values = whole === undefined ? data.trim().split('\n').map(parse) : [whole];
  if (values.includes(undefined)) throw broken('sent an event that is not JSON');
  return values.map((value) => checked(value, name));
}

/** An error may come as a chunk, long after the status 200. */
function checked(data: unknown, eventName: string | undefined): unknown {
  const chunk = record(Array.isArray(data) ? data[0] : data);
  if (chunk === null) throw broken('answered with malformed JSON');
  if (eventName === 'error' || (chunk.error ?? null) !== null) throw errorInAnswer(chunk);
  return chunk;
}

/** Reads to the end so that the connection can be reused; hangs up after END_MS. Never rejects. */
async function drain(reader: AsyncIterator<unknown>, { clock, hangUp }: Patience): Promise<void> {
  const cancel = clock.after(END_MS, hangUp);
  try {
    while (!(await reader.next()).done);
  } catch {
    // The answer is already complete.
  }
  cancel();
}
