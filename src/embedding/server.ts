/**
 * An OpenAI-compatible embedding server: called by the gateway itself, or by a worker beside the GPU. A batch that
 * is refused is sent again in halves, until the text at fault is alone.
 */
import { type Clock, OVER } from '../core/clock.js';
import { cutAt } from '../core/cut.js';
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { Outward } from '../core/network.js';
import type { Embedder } from '../core/recall.js';
import { createEmbedder } from './embedder.js';
import { type Answer, createHttpClient, readAnswer } from './http.js';
import { type GivenRecipe, recipeOf } from './recipe.js';
import {
  fitting,
  HARMLESS,
  inBatches,
  LastingFault,
  type Outcome,
  type VectorAsk,
  type VectorSource,
} from './vectors.js';

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
