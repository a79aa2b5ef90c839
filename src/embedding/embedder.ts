/** Adds prefixes, normalisation and a circuit breaker to a vector source. While open, calls fail at once; it retries in the background. */
import { z } from 'zod';
import type { Clock } from '../core/clock.js';
import { cutAt, estimateTokens } from '../core/cut.js';
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { Embedder, EmbeddingQueue } from '../core/recall.js';

/** The vector as made, or why this text was refused; a failing server throws instead. */
export type Outcome = { vector: number[] } | { refused: string };

export interface VectorAsk {
  purpose: 'query' | 'document';
  signal: AbortSignal;
  /** Another model or length than the usual one; refused unless the server is sure to support it. */
  as?: { model: string; dimensions: number | null };
}

/** A retry is useless until an operator changes something. */
export class LastingFault extends Fault {}

export interface VectorSource {
  /** The address as shown to an operator. */
  readonly place: string;
  /** One outcome per text, in order; texts are never blank. Throws Fault `embedding_unavailable`. */
  embed(texts: string[], ask: VectorAsk): Promise<Outcome[]>;
  queue?(): Promise<EmbeddingQueue | null>;
  close(): Promise<void>;
}

/** A little below the usual 8,192, because it is compared with an estimate. */
export const MOST_TOKENS = 8_000;
/** Per request. text-embeddings-inference takes 16,384 by default. */
const MOST_BATCH_TOKENS = 16_000;

/** Any working server embeds it: distinguishes a bad text from a bad server. */
export const HARMLESS = 'hello';

/** The prefix that fits; lone surrogates are replaced. */
export function fitting(text: string): string {
  const wellFormed = text.replace(/\p{Surrogate}/gu, '\ufffd');
  if (estimateTokens(wellFormed) <= MOST_TOKENS) return wellFormed;
  let fits = 0;
  let tooMuch = wellFormed.length;
  while (tooMuch - fits > 1) {
    const middle = (fits + tooMuch) >> 1;
    if (estimateTokens(wellFormed.slice(0, middle)) <= MOST_TOKENS) fits = middle;
    else tooMuch = middle;
  }
  return cutAt(wellFormed, fits);
}

/** In order, at most `most` items per batch, and no more text than fits one request. */
export function inBatches<Item>(items: Item[], textOf: (item: Item) => string, most: number): Item[][] {
  const batches: Item[][] = [];
  let batch: Item[] = [];
  let tokens = 0;
  for (const item of items) {
    const size = Math.min(estimateTokens(textOf(item)), MOST_TOKENS);
    if (batch.length === 0 || batch.length >= most || tokens + size > MOST_BATCH_TOKENS) {
      batch = [];
      batches.push(batch);
      tokens = 0;
    }
    batch.push(item);
    tokens += size;
  }
  return batches;
}

/** A comparable vector: finite numbers, not all zero; else null. */
export function asVector(value: unknown): number[] | null {
  if (!Array.isArray(value) || !value.every(Number.isFinite)) return null;
  return value.some((number) => number !== 0) ? value : null;
}

/** Cut to `most` numbers and normalised, so that a dot product measures similarity. Scaled first, because squares may overflow. */
export function toUnit(whole: number[], most: number | null = null): Float32Array {
  const vector = most === null || whole.length <= most ? whole : whole.slice(0, most);
  let largest = 0;
  for (const number of vector) largest = Math.max(largest, Math.abs(number));
  let squares = 0;
  if (largest > 0) for (const number of vector) squares += (number / largest) ** 2;
  const scale = squares > 0 ? 1 / Math.sqrt(squares) : 0;
  const unit = new Float32Array(vector.length);
  for (let n = 0; n < vector.length; n++) unit[n] = largest > 0 ? ((vector[n] ?? 0) / largest) * scale : 0;
  return unit;
}

/** Like JSON.parse, but Python's NaN and Infinity become null. undefined: not JSON. */
export function parsed(raw: string): unknown {
  const text = raw.startsWith('\uFEFF') ? raw.slice(1) : raw;
  try {
    return JSON.parse(text);
  } catch {
    if (!/NaN|Infinity/.test(text)) return undefined;
  }
  try {
    return JSON.parse(text.replace(/-?\b(?:NaN|Infinity)\b/g, 'null'));
  } catch {
    return undefined;
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

interface Recipe {
  model: string;
  /** Prefixes for questions and for texts that are searched. */
  queryPrefix: string;
  documentPrefix: string;
  /** null: the model's own length. */
  dimensions: number | null;
}

const TASK = 'Given a question, retrieve what was said or noted earlier that answers it';
const PASSAGES = 'Represent this sentence for searching relevant passages: ';

/** From the models' own pages; the first match counts. Names vary by server: `BAAI/bge-m3`, `bge-m3:latest`. */
const KNOWN: [name: RegExp, query: string, document: string][] = [
  [/nomic-embed/, 'search_query: ', 'search_document: '],
  [/e5.*instruct|e5-mistral|gte-qwen\d*.*instruct/, `Instruct: ${TASK}\nQuery: `, ''],
  [/(?:^|[^a-z])e5(?![a-z0-9])/, 'query: ', 'passage: '],
  [/qwen3-embedding/, `Instruct: ${TASK}\nQuery:`, ''],
  [/embedding-?gemma/, 'task: search result | query: ', 'title: none | text: '],
  [/bge-m3/, '', ''],
  [/bge-(?:small|base|large)-zh/, '为这个句子生成表示以用于检索相关文章：', ''],
  [/bge-(?:small|base|large)/, PASSAGES, ''],
  [/mxbai-embed/, PASSAGES, ''],
  [/arctic-embed.*(?:v2|2\.0)|arctic-embed2/, 'query: ', ''],
  [/arctic-embed/, PASSAGES, ''],
];

/** As configured. Default: what is known of the model. */
export interface GivenRecipe {
  model: string;
  queryPrefix?: string | null;
  documentPrefix?: string | null;
  dimensions?: number | null;
}

export function recipeOf({ model, dimensions, ...given }: GivenRecipe): Recipe {
  const [, query, document] = KNOWN.find(([name]) => name.test(model.toLowerCase())) ?? [null, '', ''];
  return {
    model,
    queryPrefix: given.queryPrefix ?? query,
    documentPrefix: given.documentPrefix ?? document,
    dimensions: dimensions ?? null,
  };
}

/** Identifies a recipe: vectors under different names are never compared. */
export function nameOf({ model, queryPrefix, documentPrefix, dimensions }: Recipe): string {
  if (queryPrefix === '' && documentPrefix === '' && dimensions === null) return model;
  return `${model}\n${JSON.stringify([queryPrefix, documentPrefix, dimensions])}`;
}

const NAMED = z.tuple([z.string(), z.string(), z.number().nullable().catch(null)]);

/** Parses a name made by `nameOf`; null if invalid. */
export function readName(name: string): Recipe | null {
  const [model = '', rest] = name.split('\n');
  if (rest === undefined) return { model, queryPrefix: '', documentPrefix: '', dimensions: null };
  const read = NAMED.safeParse(parsed(rest));
  if (!read.success) return null;
  const [queryPrefix, documentPrefix, dimensions] = read.data;
  return { model, queryPrefix, documentPrefix, dimensions };
}

export function createEmbedder(
  source: VectorSource,
  { recipe, clock, log }: { recipe: Recipe; clock: Clock; log: Log },
): Embedder {
  const { model, dimensions } = recipe;
  /** Length of the vectors, set by the first answer; another length means another model. */
  let length: number | null = null;
  const breaker = createBreaker(source.place, tryHarmless, clock, log);

  async function tryHarmless(signal: AbortSignal): Promise<void> {
    const [vector] = unitVectors(await source.embed([HARMLESS], { purpose: 'query', signal }));
    if (!vector) throw fault(`${source.place} refuses even a harmless text.`);
  }

  function unitVectors(outcomes: Outcome[]): (Float32Array | null)[] {
    const vectors = outcomes.map((outcome) => ('vector' in outcome ? outcome.vector : null));
    const lengths = vectors.flatMap((vector) => vector?.length ?? []);
    length ??= commonest(lengths);
    const short = dimensions !== null && lengths.find((each) => each < dimensions);
    if (short) {
      const wanted = `embeddings.dimensions asks for ${dimensions}: lower it`;
      throw fault(`${source.place} gave vectors of ${short} numbers, and ${wanted}.`);
    }
    if (lengths.length > 0 && !lengths.some((each) => each === length)) {
      throw fault(
        `${source.place} gave vectors of ${lengths[0]} numbers, and of ${length} before: it runs another model now. ` +
          `Name it in embeddings.model and start again, or go back to "${model}".`,
      );
    }
    return vectors.map((vector) => (vector?.length === length ? toUnit(vector, dimensions) : null));
  }

  return {
    ...{ model: nameOf(recipe), state: breaker.state },
    dimensions: () => (length === null ? null : Math.min(length, dimensions ?? length)),
    ...(source.queue && { queue: () => source.queue?.() ?? Promise.resolve(null) }),

    async embed(texts, { purpose, signal }) {
      const asked = texts.filter((text) => !isBlank(text));
      if (asked.length === 0) return texts.map(() => null);
      const made = await breaker.pass(async () => {
        const prefix = purpose === 'query' ? recipe.queryPrefix : recipe.documentPrefix;
        const prefixed = asked.map((text) => prefix + text);
        const outcomes = await source.embed(prefixed, { purpose, signal });
        return { outcomes, vectors: unitVectors(outcomes) };
      }, signal);
      const without = made.vectors.filter((vector) => vector === null).length;
      if (without > 0) {
        const [refused = 'a vector of another length'] = made.outcomes.flatMap((each) =>
          'refused' in each ? each.refused : [],
        );
        const fields = { place: source.place, texts: without, reason: refused };
        log.warn(fields, 'embedding server gave no vector; finding these texts by keywords only');
      }
      let next = 0;
      return texts.map((text) => (isBlank(text) ? null : (made.vectors[next++] ?? null)));
    },

    async embedAsBefore(name, text, signal) {
      const before = readName(name);
      if (before === null || isBlank(text) || breaker.state().kind === 'failing') return null;
      try {
        // Bypasses the breaker: a missing old model is no failure of the server.
        const as = { model: before.model, dimensions: before.dimensions };
        const [outcome] = await source.embed([before.queryPrefix + text], { purpose: 'query', signal, as });
        return outcome !== undefined && 'vector' in outcome
          ? toUnit(outcome.vector, before.dimensions)
          : null;
      } catch (error) {
        log.debug({ place: source.place, error: describe(error) }, 'former embedding model did not answer');
        return null;
      }
    },

    async close() {
      breaker.close();
      await source.close();
    },
  };
}

function fault(message: string): Fault {
  return new Fault('embedding_unavailable', message);
}

function commonest(lengths: number[]): number | null {
  const counts = new Map<number, number>();
  for (const length of lengths) counts.set(length, (counts.get(length) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null;
}

/** Blank texts get no vector and are not sent. */
function isBlank(text: string): boolean {
  return text.trim() === '';
}

/** Consecutive failures that open the breaker; a single one may be chance. */
const FAILURES = 2;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 15_000;
/** A caller that gives up after SLOW_MS counts as a failure if nobody got an answer for SILENT_MS. */
const SLOW_MS = 500;
const SILENT_MS = 10_000;

/** `trial`: one small request; throws if it fails. */
export function createBreaker(
  place: string,
  trial: (signal: AbortSignal) => Promise<void>,
  clock: Clock,
  log: Log,
) {
  const closing = new AbortController();
  let failures: { count: number; since: number; reason: string } | null = null;
  let open = false;
  let lastAnswer = clock.now();

  function succeeded(): void {
    lastAnswer = clock.now();
    if (open) log.info({ place }, 'embeddings work again');
    open = false;
    failures = null;
  }

  function failed(error: unknown): void {
    failures = {
      count: (failures?.count ?? 0) + 1,
      since: failures?.since ?? clock.now(),
      reason: describe(error),
    };
    if (open || failures.count < FAILURES || closing.signal.aborted) return;
    open = true;
    log.warn({ place, reason: failures.reason }, 'embeddings failed; searching by keywords meanwhile');
    void tryUntilItWorks();
  }

  /** A server that is only busy still answers others. */
  function gaveUpInSilence(begun: number): boolean {
    const now = clock.now();
    return now - begun >= SLOW_MS && now - lastAnswer >= SILENT_MS;
  }

  async function tryUntilItWorks(): Promise<void> {
    for (let pause = FIRST_PAUSE_MS; open; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      await clock.sleep(pause, closing.signal);
      if (closing.signal.aborted || !open) return;
      await trial(closing.signal).then(succeeded, failed);
    }
  }

  return {
    /** Throws at once while open. Errors of `work` count as failures, unless the caller has given up. */
    async pass<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
      if (closing.signal.aborted) throw fault(`${place} is not asked any more.`);
      if (open) {
        throw fault(`Embeddings are not available just now: ${failures?.reason ?? 'they fail'}`);
      }
      const begun = clock.now();
      try {
        const result = await work();
        succeeded();
        return result;
      } catch (error) {
        if (closing.signal.aborted) throw error;
        if (!signal.aborted) failed(error);
        else if (gaveUpInSilence(begun)) failed(new Error(`${place} does not answer in time`));
        throw error;
      }
    },

    state: (): ReturnType<Embedder['state']> =>
      open && failures !== null
        ? { kind: 'failing', since: failures.since, reason: failures.reason }
        : { kind: 'ok' },

    close: () => closing.abort(),
  };
}
