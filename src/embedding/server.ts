/**
 * An OpenAI-compatible embedding server: called by the gateway itself, or by a worker beside the GPU. A batch that
 * is refused is sent again in halves, until the text at fault is alone.
 */
import { type Clock, OVER } from '../core/clock.js';
import { cutAt } from '../core/cut.js';
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { addressOf, fetchWhole, type Outward, rootCause } from '../core/network.js';
import type { Embedder } from '../core/recall.js';
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
  /** `http://gpu:8080/v1`: what stands before `/embeddings`. */
  baseUrl: string;
  apiKey: string | null;
  model: string;
  /** How long vectors should be; not said to a server that refuses to be told. null: as the model makes them. */
  dimensions?: number | null;
  /** For one request, and for all the waiting while the server says that it is busy. */
  timeoutSeconds: number;
  /** Texts in one request; fewer, once the server has refused so many. */
  batchSize?: number;
  outward: Outward;
  clock: Clock;
}

type Answer =
  /** One for each text, in order; null where it is none that can be used. */
  | { kind: 'vectors'; vectors: (number[] | null)[]; model: string | null }
  /** It does not accept these texts. `transient`: perhaps only this time. */
  | { kind: 'refused'; words: string; tooLong: boolean; transient: boolean }
  /** It has too much to do. */
  | { kind: 'busy'; words: string; waitMs: number | null }
  /** It does not work, whatever the texts. `lasting`: nor will it, asked the same way. */
  | { kind: 'broken'; words: string; lasting?: true };

type Refused = Extract<Answer, { kind: 'refused' }>;

/** One call of `embed`. Until it has got a vector, a refusal may be the server's fault as well as the text's. */
interface EmbeddingCall {
  signal: AbortSignal;
  model: string;
  dimensions: number | null;
  deadline: number;
  gotVector: boolean;
}

/** What is read of an answer: a vector of 10,000 numbers takes less, and so does what is said of an error. */
const BYTES_A_VECTOR = 250_000;
const LEAST_BOUND = 1_000_000;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 5_000;
/** A text shorter than this is not refused for its length. */
const SHORT = 200;
const UNUSABLE: Refused = {
  kind: 'refused',
  words: 'its vector is empty, zero, or not made of finite numbers',
  tooLong: false,
  transient: true,
};

export function createEmbeddingServer(options: EmbeddingServerOptions): VectorSource {
  return new EmbeddingServer(options);
}

class EmbeddingServer implements VectorSource {
  readonly place: string;
  private readonly title: string;
  private readonly address: ReturnType<typeof addressOf>;
  private readonly fetch: typeof fetch;
  private readonly timeoutMs: number;
  private batchSize: number;
  private takesDimensions = true;

  constructor(private readonly options: EmbeddingServerOptions) {
    const { baseUrl, model, apiKey, outward, timeoutSeconds, batchSize = 64 } = options;
    this.place = placeOf(baseUrl);
    this.title = `The embedding server at ${this.place} (model "${model}")`;
    this.address = addressOf(baseUrl, '/embeddings');
    Object.assign(this.address.headers, { 'content-type': 'application/json', accept: 'application/json' });
    if (apiKey !== null) this.address.headers.authorization = `Bearer ${apiKey}`;
    this.fetch = outward.fetch();
    this.timeoutMs = timeoutSeconds * 1000;
    this.batchSize = batchSize;
  }

  async embed(texts: string[], { signal, as }: VectorAsk): Promise<Outcome[]> {
    const { model, dimensions = null, clock } = this.options;
    const call: EmbeddingCall = { ...(as ?? { model, dimensions }), signal, deadline: 0, gotVector: false };
    const outcomes: Outcome[] = [];
    for (const batch of inBatches(texts.map(fitting), (text) => text, this.batchSize)) {
      // For each batch anew: many may take longer than one request may.
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

  /** A text that was refused by itself: shortened, tried again, and in the end considered to be at fault. */
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

  /** One request, made again while the server is busy. */
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
      // A server that says 0 would be asked without a pause.
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
    const sent = { method: 'POST', headers, body, signal: AbortSignal.any([signal, late.signal]) };
    try {
      const most = Math.max(LEAST_BOUND, texts.length * BYTES_A_VECTOR);
      const answer = await fetchWhole(this.fetch, url, sent, most);
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

/** OpenAI's older models, and servers whose model has one length only: the vectors are cut here then. */
function isAboutDimensions(answer: Answer, { dimensions }: EmbeddingCall): boolean {
  return dimensions !== null && answer.kind === 'refused' && /dimension|matryoshka/i.test(answer.words);
}

/** `embeddings.backend: http`: the gateway calls the server itself. */
export function createHttpEmbedder(options: EmbeddingServerOptions & GivenRecipe & { log: Log }): Embedder {
  return createEmbedder(createEmbeddingServer(options), { ...options, recipe: recipeOf(options) });
}

/** An address without what may be secret in it. */
export function placeOf(url: string): string {
  const shown = URL.canParse(url) ? new URL(url) : null;
  return shown === null
    ? 'an address that cannot be read'
    : `${shown.protocol}//${shown.host}${shown.pathname}`;
}

/** What servers say of a text that is longer than their model reads, some of them with status 400. */
const TOO_LONG =
  /context.?length|batch size|too (?:long|large|many)|maximum.{0,40}(?:token|length)|exceed|longer than/i;

/** A key that is missing or wrong; an address or a model that there is not. */
const LASTING = [401, 403, 404];

export function readAnswer(
  { status, headers, text }: { status: number; headers: Headers; text: string },
  count: number,
  now: number,
): Answer {
  if (status === 200) return readVectors(text, count);
  const words = `${status}: ${reasonIn(text)}`;
  if (status === 429 || status === 503) {
    return { kind: 'busy', words, waitMs: waitOf(headers.get('retry-after'), now) };
  }
  if (status === 413) return { kind: 'refused', words, tooLong: true, transient: false };
  if (status === 400 || status === 422) {
    return { kind: 'refused', words, tooLong: TOO_LONG.test(text), transient: false };
  }
  // How servers fail on a single text: Ollama with 500 when it makes NaN, text-embeddings-inference with 424.
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

/** Servers word their errors in different fields; of a proxy's HTML page the text is left. */
function reasonIn(text: string): string {
  const body = parsed(text);
  const found = [body, isRecord(body) ? body.error : undefined].filter(isRecord);
  const fields = found.flatMap((part) => [part.message, part.error, part.detail]);
  const words =
    fields.find((field) => typeof field === 'string') ??
    (body === undefined ? text.replace(/<[^<>]*>/g, ' ') : text);
  return String(words).replace(/\s+/g, ' ').trim().slice(0, 300) || 'no reason given';
}

/** Seconds or a date. */
function waitOf(retryAfter: string | null, now: number): number | null {
  if (retryAfter === null) return null;
  const ms = /^\s*\d+(\.\d+)?\s*$/.test(retryAfter)
    ? Number(retryAfter) * 1000
    : Date.parse(retryAfter) - now;
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}
