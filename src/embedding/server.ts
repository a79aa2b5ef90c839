/**
 * One JSON request to an embedding server over Node's own HTTP client, with a connection kept open, and what its
 * answer means.
 */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { type Clock, OVER } from '../core/clock.js';
import { cutAt } from '../core/cut.js';
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { NOT_PACKED, type Outward, unpacked, wholeOf } from '../core/network.js';
import type { Embedder } from '../core/recall.js';
import { createEmbedder } from './embedder.js';
import {
  asVector,
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
} from './vectors.js';

interface Posted {
  status: number;
  /** The header Retry-After, as it came. */
  retryAfter: string | null;
  text: string;
}

/** Shorter than the five seconds for which common servers keep an unused connection. */
const IDLE_MS = 4_000;
/** Of a vector: one of 10,000 numbers takes less. */
const BYTES_A_VECTOR = 250_000;
/** What is said of an error. */
const LEAST_BOUND = 1_000_000;

function createHttpClient(baseUrl: string, apiKey: string | null, outward: Outward) {
  const base = baseUrl.replace(/(?<!\/)\/+$/, '');
  const secure = base.startsWith('https:');
  const agent = outward.agent(secure, { idleMs: IDLE_MS });
  const request = secure ? httpsRequest : httpRequest;
  const authorization = apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };

  /**
   * Rejects with Node's own errors, whose messages name neither headers nor key. `vectors`: how many are asked for, which
   * bounds what is read.
   */
  const post = (path: string, body: object, { vectors, signal }: { vectors: number; signal: AbortSignal }) =>
    new Promise<Posted>((resolve, reject) => {
      const payload = Buffer.from(JSON.stringify(body));
      const headers = {
        'content-type': 'application/json',
        'content-length': payload.length,
        accept: 'application/json',
        ...NOT_PACKED,
        ...authorization,
      };
      const sent = request(`${base}${path}`, { method: 'POST', agent, headers, signal }, (response) => {
        const most = Math.max(LEAST_BOUND, vectors * BYTES_A_VECTOR);
        wholeOf(unpacked(response), most).then(
          (bytes) =>
            resolve({
              status: response.statusCode ?? 0,
              retryAfter: response.headers['retry-after'] ?? null,
              text: bytes.toString('utf8'),
            }),
          (error) => {
            sent.destroy();
            reject(error);
          },
        );
      });
      sent.on('error', reject);
      sent.end(payload);
    });
  return { post, close: () => agent.destroy() };
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

/** What servers say of a text that is longer than their model reads, some of them with status 400. */
const TOO_LONG =
  /context.?length|batch size|too (?:long|large|many)|maximum.{0,40}(?:token|length)|exceed|longer than/i;

/** A key that is missing or wrong; an address or a model that there is not. */
const LASTING = [401, 403, 404];

export function readAnswer(posted: Posted, count: number, now: number): Answer {
  const { status, text } = posted;
  if (status === 200) return readVectors(text, count);
  const words = `${status}: ${reasonIn(text)}`;
  if (status === 429 || status === 503) {
    return { kind: 'busy', words, waitMs: waitOf(posted.retryAfter, now) };
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

// An OpenAI-compatible embedding server: called by the gateway itself, or by a worker beside the GPU. A batch that
// is refused is sent again in halves, until the text at fault is alone.

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

type Refused = Extract<Answer, { kind: 'refused' }>;

/** One call of `embed`. Until it has got a vector, a refusal may be the server's fault as well as the text's. */
interface Call {
  signal: AbortSignal;
  model: string;
  dimensions: number | null;
  deadline: number;
  gotVector: boolean;
}

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
  const { model, clock } = options;
  const timeoutMs = options.timeoutSeconds * 1000;
  const place = placeOf(options.baseUrl);
  const title = `The embedding server at ${place} (model "${model}")`;
  const http = createHttpClient(options.baseUrl, options.apiKey, options.outward);
  const usual = { model, dimensions: options.dimensions ?? null };
  let batchSize = options.batchSize ?? 64;
  let takesDimensions = true;

  async function embed(texts: string[], { signal, as = usual }: VectorAsk): Promise<Outcome[]> {
    const call = { ...as, signal, deadline: clock.now() + timeoutMs, gotVector: false };
    const outcomes: Outcome[] = [];
    for (const batch of inBatches(texts.map(fitting), (text) => text, batchSize)) {
      // For each batch anew: many may take longer than one request may.
      call.deadline = clock.now() + timeoutMs;
      outcomes.push(...(await embedBatch(batch, call)));
    }
    return outcomes;
  }

  async function embedBatch(texts: string[], call: Call): Promise<Outcome[]> {
    const answer = await askWhileBusy(texts, call);
    if (answer.kind === 'vectors') {
      const outcomes: Outcome[] = [];
      for (const [n, text] of texts.entries()) {
        const vector = answer.vectors[n];
        outcomes.push(vector ? { vector } : await embedAlone(text, UNUSABLE, call));
      }
      return outcomes;
    }
    if (texts.length === 1) return [await embedAlone(texts[0] ?? '', answer, call)];
    const middle = texts.length >> 1;
    const first = await embedBatch(texts.slice(0, middle), call);
    const second = await embedBatch(texts.slice(middle), call);
    const outcomes = [...first, ...second];
    const onlyTooMany = answer.tooLong && outcomes.every((outcome) => 'vector' in outcome);
    if (onlyTooMany) batchSize = Math.max(1, Math.min(batchSize, texts.length - middle));
    return outcomes;
  }

  /** A text that was refused by itself: shortened, tried again, and in the end considered to be at fault. */
  async function embedAlone(text: string, refused: Refused, call: Call): Promise<Outcome> {
    let words = refused.words;
    if (refused.tooLong && text.length > SHORT) {
      const [outcome] = await embedBatch([cutAt(text, text.length >> 1)], call);
      if (outcome !== undefined) return outcome;
    }
    if (refused.transient) {
      const again = await askWhileBusy([text], call);
      const vector = again.kind === 'vectors' ? again.vectors[0] : null;
      if (vector) return { vector };
      if (again.kind === 'refused') words = again.words;
    }
    if (!call.gotVector) {
      const harmless = await askWhileBusy([HARMLESS], call);
      if (harmless.kind === 'refused') throw down(`answered with ${harmless.words}`);
      if (!harmless.vectors[0]) throw down(`gives no vectors: ${UNUSABLE.words}`);
    }
    return { refused: words };
  }

  /** One request, made again while the server is busy. */
  async function askWhileBusy(
    texts: string[],
    call: Call,
  ): Promise<Extract<Answer, { kind: 'vectors' | 'refused' }>> {
    for (let wait = FIRST_WAIT_MS; ; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
      const answer = await request(texts, call);
      if (takesDimensions && isAboutDimensions(answer, call)) {
        takesDimensions = false;
        continue;
      }
      if (answer.kind === 'vectors' && call.model !== model && answer.model !== call.model) {
        throw down(`answers with another model than "${call.model}"`);
      }
      if (answer.kind === 'broken') throw down(`answered with ${answer.words}`, undefined, answer.lasting);
      if (answer.kind !== 'busy') {
        if (answer.kind === 'vectors' && answer.vectors.some((vector) => vector)) call.gotVector = true;
        return answer;
      }
      // A server that says 0 would be asked without a pause.
      const waitMs = answer.waitMs === null ? wait : Math.max(answer.waitMs, wait / 5);
      if (clock.now() + waitMs >= call.deadline) throw down(`is too busy and answered with ${answer.words}`);
      await clock.sleep(waitMs, call.signal);
      if (call.signal.aborted) throw stopped();
    }
  }

  async function request(texts: string[], { signal, model, dimensions }: Call): Promise<Answer> {
    if (signal.aborted) throw stopped();
    const connection = new AbortController();
    const hangUp = () => connection.abort(OVER);
    let timedOut = false;
    signal.addEventListener('abort', hangUp, { once: true });
    const stopTimer = clock.after(timeoutMs, () => {
      timedOut = true;
      hangUp();
    });
    try {
      const length = dimensions === null || !takesDimensions ? {} : { dimensions };
      const body = { model, input: texts, encoding_format: 'float', ...length };
      const asked = { vectors: texts.length, signal: connection.signal };
      return readAnswer(await http.post('/embeddings', body, asked), texts.length, clock.now());
    } catch (error) {
      if (signal.aborted) throw stopped();
      if (timedOut) throw down(`did not answer for ${options.timeoutSeconds} s`);
      throw down(`could not be reached: ${describe(error)}`, error);
    } finally {
      stopTimer();
      signal.removeEventListener('abort', hangUp);
    }
  }

  function down(what: string, cause?: unknown, isLasting = false): Fault {
    const advice = isLasting
      ? ' Check embeddings.base_url, embeddings.api_key and embeddings.model.'
      : ' Check embeddings.base_url, embeddings.model and that the server runs.';
    const message = `${title} ${what.replace(/(?<![.\s])[.\s]+$/, '')}.${advice}`;
    return new (isLasting ? LastingFault : Fault)('embedding_unavailable', message, cause);
  }

  function stopped(): Fault {
    return new Fault('embedding_unavailable', `${title} was not waited for: the request was stopped.`);
  }

  return {
    place,
    embed,
    close: async () => http.close(),
  };
}

/** OpenAI's older models, and servers whose model has one length only: the vectors are cut here then. */
function isAboutDimensions(answer: Answer, { dimensions }: Call): boolean {
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
