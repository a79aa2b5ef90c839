/** Client of an OpenAI-compatible embedding server. A refused batch is halved until the text at fault is alone. */
import { type Clock, OVER } from '../core/clock.js';
import { cutAt } from '../core/cut.js';
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { addressOf, type Outward, rootCause, type ServerResponse } from '../core/network.js';
import type { Embedder } from '../core/recall.js';
import { wholeAnswer } from '../core/response-body.js';
import { backoff } from '../core/retry.js';
import {
  asVector,
  createEmbedder,
  fitting,
  type GivenRecipe,
  HARMLESS,
  inBatches,
  isRecord,
  LastingFault,
  type Outcome,
  parsed,
  recipeOf,
  type VectorAsk,
  type VectorSource,
} from './embedder.js';

export interface EmbeddingServerOptions {
  /** `http://gpu:8080/v1`: the part before `/embeddings`. */
  baseUrl: string;
  apiKey: string | null;
  model: string;
  /** Length of the vectors; not sent once the server has refused it. null: the model's own length. */
  dimensions?: number | null;
  /** Per request, and for all waiting while the server is busy. */
  timeoutSeconds: number;
  /** Texts per request; lowered once the server refuses so many. */
  batchSize?: number;
  outward: Outward;
  clock: Clock;
}

type Answer =
  /** One per text, in order; null if unusable. */
  | { kind: 'vectors'; vectors: (number[] | null)[]; model: string | null }
  /** The texts are refused. `transient`: a retry may succeed. */
  | { kind: 'refused'; words: string; tooLong: boolean; transient: boolean }
  | { kind: 'busy'; words: string; waitMs: number | null }
  /** The server fails for any text. `lasting`: a retry is useless. */
  | { kind: 'broken'; words: string; lasting?: true };

type Refused = Extract<Answer, { kind: 'refused' }>;

/** One call of `embed`. Until it has got a vector, a refusal may also be the server's fault. */
interface EmbeddingCall {
  signal: AbortSignal;
  model: string;
  dimensions: number | null;
  deadline: number;
  gotVector: boolean;
}

/** Maximum size of an answer: 10,000 numbers, or an error, take less. */
const BYTES_A_VECTOR = 250_000;
const LEAST_BOUND = 1_000_000;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 5_000;
/** A shorter text, in characters, is not refused for its length. */
const SHORT = 200;
const UNUSABLE: Refused = {
  kind: 'refused',
  words: 'its vector is empty, zero, or not made of finite numbers',
  tooLong: false,
  transient: true,
};

export class EmbeddingServer implements VectorSource {
  readonly place: string;
  private readonly title: string;
  private readonly address: ReturnType<typeof addressOf>;
  private readonly timeoutMs: number;
  private batchSize: number;
  private takesDimensions = true;

  constructor(private readonly options: EmbeddingServerOptions) {
    const { baseUrl, model, apiKey, timeoutSeconds, batchSize = 64 } = options;
    this.place = placeOf(baseUrl);
    this.title = `The embedding server at ${this.place} (model "${model}")`;
    this.address = addressOf(baseUrl, '/embeddings');
    Object.assign(this.address.headers, { 'content-type': 'application/json', accept: 'application/json' });
    if (apiKey !== null) this.address.headers.authorization = `Bearer ${apiKey}`;
    this.timeoutMs = timeoutSeconds * 1000;
    this.batchSize = batchSize;
  }

  async embed(texts: string[], { signal, as }: VectorAsk): Promise<Outcome[]> {
    const { model, dimensions = null, clock } = this.options;
    const call: EmbeddingCall = { ...(as ?? { model, dimensions }), signal, deadline: 0, gotVector: false };
    const outcomes: Outcome[] = [];
    for (const batch of inBatches(texts.map(fitting), (text) => text, this.batchSize)) {
      // Per batch: many together may take longer than one request may.
      call.deadline = clock.now() + this.timeoutMs;
      outcomes.push(...(await this.embedBatch(batch, call)));
    }
    return outcomes;
  }

  async close(): Promise<void> {}

  private async embedBatch(texts: string[], call: EmbeddingCall): Promise<Outcome[]> {
    const answer = await this.askWhileBusy(texts, call);
    if (answer.kind === 'vectors') {
      const outcomes: Outcome[] = [];
      for (const [n, text] of texts.entries()) {
        const vector = answer.vectors[n];
        outcomes.push(vector ? { vector } : await this.embedAlone(text, UNUSABLE, call));
      }
      return outcomes;
    }
    if (texts.length === 1) return [await this.embedAlone(texts[0] ?? '', answer, call)];
    const middle = texts.length >> 1;
    const first = await this.embedBatch(texts.slice(0, middle), call);
    const second = await this.embedBatch(texts.slice(middle), call);
    const outcomes = [...first, ...second];
    const onlyTooMany = answer.tooLong && outcomes.every((outcome) => 'vector' in outcome);
    if (onlyTooMany) this.batchSize = Math.max(1, Math.min(this.batchSize, texts.length - middle));
    return outcomes;
  }

  /** A text refused alone: shortened, retried, and finally considered at fault. */
  private async embedAlone(text: string, refused: Refused, call: EmbeddingCall): Promise<Outcome> {
    let words = refused.words;
    if (refused.tooLong && text.length > SHORT) {
      const [outcome] = await this.embedBatch([cutAt(text, text.length >> 1)], call);
      if (outcome !== undefined) return outcome;
    }
    if (refused.transient) {
      const again = await this.askWhileBusy([text], call);
      const vector = again.kind === 'vectors' ? again.vectors[0] : null;
      if (vector) return { vector };
      if (again.kind === 'refused') words = again.words;
    }
    if (!call.gotVector) {
      const harmless = await this.askWhileBusy([HARMLESS], call);
      if (harmless.kind === 'refused') throw this.down(`answered with ${harmless.words}`);
      if (!harmless.vectors[0]) throw this.down(`gives no vectors: ${UNUSABLE.words}`);
    }
    return { refused: words };
  }

  private async askWhileBusy(
    texts: string[],
    call: EmbeddingCall,
  ): Promise<Extract<Answer, { kind: 'vectors' | 'refused' }>> {
    const { model, clock } = this.options;
    for (let attempt = 1; ; attempt++) {
      const answer = await this.request(texts, call);
      if (this.takesDimensions && isAboutDimensions(answer, call)) {
        this.takesDimensions = false;
        continue;
      }
      if (answer.kind === 'vectors' && call.model !== model && answer.model !== call.model) {
        throw this.down(`answers with another model than "${call.model}"`);
      }
      if (answer.kind === 'broken')
        throw this.down(`answered with ${answer.words}`, undefined, answer.lasting);
      if (answer.kind !== 'busy') {
        if (answer.kind === 'vectors' && answer.vectors.some((vector) => vector)) call.gotVector = true;
        return answer;
      }
      const wait = backoff(attempt, FIRST_WAIT_MS, LONGEST_WAIT_MS);
      // With a server that says 0, there would be no pause.
      const waitMs = answer.waitMs === null ? wait : Math.max(answer.waitMs, wait / 5);
      if (clock.now() + waitMs >= call.deadline)
        throw this.down(`is too busy and answered with ${answer.words}`);
      await clock.sleep(waitMs, call.signal);
      if (call.signal.aborted) throw this.stopped();
    }
  }

  private async request(texts: string[], { signal, model, dimensions }: EmbeddingCall): Promise<Answer> {
    if (signal.aborted) throw this.stopped();
    const { clock, timeoutSeconds } = this.options;
    const { url, headers } = this.address;
    const late = new AbortController();
    const stopTimer = clock.after(this.timeoutMs, () => late.abort(OVER));
    const length = dimensions === null || !this.takesDimensions ? {} : { dimensions };
    const body = JSON.stringify({ model, input: texts, encoding_format: 'float', ...length });
    const ended = AbortSignal.any([signal, late.signal]);
    try {
      const most = Math.max(LEAST_BOUND, texts.length * BYTES_A_VECTOR);
      const answer = await wholeAnswer(
        this.options.outward,
        url,
        { method: 'POST', headers, body, signal: ended },
        most,
      );
      const text = answer.bytes.toString('utf8');
      return readAnswer({ ...answer, text }, texts.length, clock.now());
    } catch (error) {
      if (signal.aborted) throw this.stopped();
      if (late.signal.aborted) throw this.down(`did not answer for ${timeoutSeconds} s`);
      throw this.down(`could not be reached: ${describe(rootCause(error))}`, error);
    } finally {
      stopTimer();
    }
  }

  private down(what: string, cause?: unknown, isLasting = false): Fault {
    const advice = isLasting
      ? ' Check embeddings.base_url, embeddings.api_key and embeddings.model.'
      : ' Check embeddings.base_url, embeddings.model and that the server runs.';
    const message = `${this.title} ${what.replace(/(?<![.\s])[.\s]+$/, '')}.${advice}`;
    return new (isLasting ? LastingFault : Fault)('embedding_unavailable', message, cause);
  }

  private stopped(): Fault {
    return new Fault('embedding_unavailable', `${this.title} was not waited for: the request was stopped.`);
  }
}

/** OpenAI's older models and single-length models refuse `dimensions`; the vectors are then cut here. */
function isAboutDimensions(answer: Answer, { dimensions }: EmbeddingCall): boolean {
  return dimensions !== null && answer.kind === 'refused' && /dimension|matryoshka/i.test(answer.words);
}

/** `embeddings.backend: http`: the gateway calls the server itself. */
export function createHttpEmbedder(options: EmbeddingServerOptions & GivenRecipe & { log: Log }): Embedder {
  return createEmbedder(new EmbeddingServer(options), { ...options, recipe: recipeOf(options) });
}

/** An address without login and query, which may be secret. */
export function placeOf(url: string): string {
  const shown = URL.canParse(url) ? new URL(url) : null;
  return shown === null
    ? 'an address that cannot be read'
    : `${shown.protocol}//${shown.host}${shown.pathname}`;
}

/** Errors for a text longer than the model takes, some with status 400. */
const TOO_LONG =
  /context.?length|batch size|too (?:long|large|many)|maximum.{0,40}(?:token|length)|exceed|longer than/i;

/** A missing or wrong key, address or model. */
const LASTING = [401, 403, 404];

export function readAnswer(
  { status, headers, text }: Omit<ServerResponse, 'body'> & { text: string },
  count: number,
  now: number,
): Answer {
  if (status === 200) return readVectors(text, count);
  const words = `${status}: ${reasonIn(text)}`;
  if (status === 429 || status === 503) {
    return { kind: 'busy', words, waitMs: waitOf(headers['retry-after'] ?? null, now) };
  }
  if (status === 413) return { kind: 'refused', words, tooLong: true, transient: false };
  if (status === 400 || status === 422) {
    return { kind: 'refused', words, tooLong: TOO_LONG.test(text), transient: false };
  }
  // Failures on a single text: Ollama sends 500 when it computes NaN, text-embeddings-inference 424.
  if (status === 500 || status === 424) {
    return { kind: 'refused', words, tooLong: TOO_LONG.test(text), transient: true };
  }
  return { kind: 'broken', words, ...(LASTING.includes(status) && { lasting: true }) };
}

function readVectors(text: string, count: number): Answer {
  const body = parsed(text);
  const data = isRecord(body) ? body.data : undefined;
  if (!Array.isArray(data)) return { kind: 'broken', words: 'an answer without "data"' };
  if (data.length !== count) {
    return { kind: 'broken', words: `${data.length} vectors for ${count} texts` };
  }
  const vectors = new Array<number[] | null>(count).fill(null);
  const seen = new Set<number>();
  for (const [position, entry] of data.entries()) {
    if (!isRecord(entry)) return { kind: 'broken', words: 'an answer whose "data" holds no objects' };
    const index = typeof entry.index === 'number' ? entry.index : position;
    if (!(index in vectors) || seen.has(index)) {
      return { kind: 'broken', words: 'an answer whose indexes do not fit the texts' };
    }
    seen.add(index);
    vectors[index] = asVector(entry.embedding);
  }
  const model = isRecord(body) && typeof body.model === 'string' ? body.model : null;
  return { kind: 'vectors', vectors, model };
}

/** Servers use different fields for the error; of a proxy's HTML page, the text is kept. */
function reasonIn(text: string): string {
  const body = parsed(text);
  const found = [body, isRecord(body) ? body.error : undefined].filter(isRecord);
  const fields = found.flatMap((part) => [part.message, part.error, part.detail]);
  const words =
    fields.find((field) => typeof field === 'string') ??
    (body === undefined ? text.replace(/<[^<>]*>/g, ' ') : text);
  return String(words).replace(/\s+/g, ' ').trim().slice(0, 300) || 'no reason given';
}

/** Parses seconds or a date; in ms. */
function waitOf(retryAfter: string | null, now: number): number | null {
  if (retryAfter === null) return null;
  const ms = /^\s*\d+(\.\d+)?\s*$/.test(retryAfter)
    ? Number(retryAfter) * 1000
    : Date.parse(retryAfter) - now;
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}
