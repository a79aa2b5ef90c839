/**
 * Texts as embedding servers take them (well formed, not too long, in batches that are not too large) and vectors as
 * they come back. Pure.
 */
import { cutAt } from '../core/cut.js';
import { Fault } from '../core/errors.js';
import { estimateTokens } from '../core/model.js';

/** The vector as it was made, or why there is none: then it is the text's own fault, not the server's. */
export type Outcome = { vector: number[] } | { refused: string };

export interface VectorAsk {
  purpose: 'query' | 'document';
  signal: AbortSignal;
  /** Another model than the usual one, or another length: refused where that cannot be had for certain. */
  as?: { model: string; dimensions: number | null };
}

/** Trying again does not help: an operator has to change something first. */
export class LastingFault extends Fault {}

/** Makes vectors: an embedding server, or workers behind a queue. */
export interface VectorSource {
  /** Where it is, as an operator may be told. */
  readonly place: string;
  /** An outcome for each text, in order; none of them is blank. Throws Fault `embedding_unavailable`. */
  embed(texts: string[], ask: VectorAsk): Promise<Outcome[]>;
  close(): Promise<void>;
}

/** What common models read; a little below 8,192, because it is an estimate. */
export const MOST_TOKENS = 8_000;
/** Of one request. text-embeddings-inference takes 16,384 unless told otherwise. */
const MOST_BATCH_TOKENS = 16_000;

/** Every server that works at all has a vector for it: tells a bad text from a bad server. */
export const HARMLESS = 'hello';

/** The beginning that fits; half a surrogate pair, which is no text, is replaced. */
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

/** In their order, at most so many in each, and no more text than one request should carry. */
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

/** A vector that something can be compared with: it has numbers, all finite, and not all zero. */
export function asVector(value: unknown): number[] | null {
  if (!Array.isArray(value) || !value.every(Number.isFinite)) return null;
  return value.some((number) => number !== 0) ? value : null;
}

/**
 * Of length 1, so that the product of two says how alike they are, and cut to so many numbers first. Scaled: squares
 * may overflow.
 */
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

/** Python writes NaN and Infinity into its JSON; they become what they are: no number. undefined: no JSON. */
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

// How vectors are made that can be compared: by which model, with what before the texts, and how long. Many models
// were trained with a prefix for questions and another for documents, which embedding servers do not add. Pure.

export interface Recipe {
  model: string;
  /** What stands before a question, and before a text that is searched. */
  queryPrefix: string;
  documentPrefix: string;
  /** null: as long as the model makes them. */
  dimensions: number | null;
}

const TASK = 'Given a question, retrieve what was said or noted earlier that answers it';
const PASSAGES = 'Represent this sentence for searching relevant passages: ';

/** By the models' own pages; the first that fits. Names differ from server to server: `BAAI/bge-m3`, `bge-m3:latest`. */
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

/** As the operator gives it; what is left out is what is known of the model. */
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

/** One name for all of it: vectors of another name are never compared. */
export function nameOf({ model, queryPrefix, documentPrefix, dimensions }: Recipe): string {
  if (queryPrefix === '' && documentPrefix === '' && dimensions === null) return model;
  return `${model}\n${JSON.stringify([queryPrefix, documentPrefix, dimensions])}`;
}

/** The recipe of a name that `nameOf` gave; null: it is none. */
export function readName(name: string): Recipe | null {
  const [model = '', rest] = name.split('\n');
  if (rest === undefined) return { model, queryPrefix: '', documentPrefix: '', dimensions: null };
  try {
    const [queryPrefix, documentPrefix, dimensions] = JSON.parse(rest) as [unknown, unknown, unknown];
    if (typeof queryPrefix !== 'string' || typeof documentPrefix !== 'string') return null;
    return {
      model,
      queryPrefix,
      documentPrefix,
      dimensions: typeof dimensions === 'number' ? dimensions : null,
    };
  } catch {
    return null;
  }
}
