/** Texts as embedding servers take them: well formed, not too long, and in batches that are not too large. */
import { cutAt } from '../core/cut.js';
import { estimateTokens } from '../core/model.js';

/** What common models read; a little below 8,192, because it is an estimate. */
export const MOST_TOKENS = 8_000;
/** Of one request. text-embeddings-inference takes 16,384 unless told otherwise. */
const MOST_BATCH_TOKENS = 16_000;

/** Every server that works at all has a vector for it: tells a bad text from a bad server. */
export const HARMLESS = 'hello';

/** A text without anything in it gets no vector, and nobody is asked for one. */
export function isBlank(text: string): boolean {
  return text.trim() === '';
}

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

/** The first half. */
export function halved(text: string): string {
  return cutAt(text, text.length >> 1);
}

/** In their order, at most so many in each, and no more text than one request should carry. */
export function inBatches<Item>(items: Item[], textOf: (item: Item) => string, most: number): Item[][] {
  const batches: Item[][] = [];
  let batch: Item[] = [];
  let tokens = 0;
  for (const item of items) {
    const size = Math.min(estimateTokens(textOf(item)), MOST_TOKENS);
    if (batch.length > 0 && (batch.length >= most || tokens + size > MOST_BATCH_TOKENS)) {
      batches.push(batch);
      batch = [];
      tokens = 0;
    }
    batch.push(item);
    tokens += size;
  }
  if (batch.length > 0) batches.push(batch);
  return batches;
}
