/**
 * Adds to a ranking by words what stands out in meaning. As with words, a message's meaning is weak alone and strong
 * with its neighbours and its sitting, and a model is believed as far as it agrees with the words. Pure.
 */
import type { ScopeTable } from './scope-table.js';
import {
  factor,
  largest,
  leastOf,
  type Meaning,
  type Question,
  type Scored,
  type WEIGHTS,
} from './scoring.js';

/** The best by words that a model has to agree with. */
const AGREEING = 5;

/** The chunk that stands out most in meaning counts as relevant as one with this share of the words. */
const MEANING_SHARE = 1.3;

/**
 * Adds scores instead of merging two ranked lists, in which a weak list would count as much as a strong one. Returns
 * how far the model agrees with the words on this question; null if that cannot be said.
 */
export function addMeaning(
  table: ScopeTable,
  found: Scored[],
  question: Question,
  { similar, trust }: Meaning,
  weights: typeof WEIGHTS,
): number | null {
  const standard = standardised(similar);
  if (standard === null) return null;
  const agreement = agreementOf(standard, found);
  const believed = trust(agreement);
  // What stands out by chance among so many does not stand out.
  const expected = Math.sqrt(2 * Math.log(table.size));
  const best = found.reduce((most, { score }) => Math.max(most, score), 0) || 1;
  const gains = inTalk(table, standard, weights);
  const byIndex = new Map(found.map((scored) => [scored.index, scored]));
  const then = new Set(question.dates.flatMap((span) => table.within(span)));
  const least = gains === null ? 0 : leastOf(gains, largest(gains));
  for (let index = 0; index < table.size; index++) {
    const gain = gains?.[index] ?? 0;
    let scored = byIndex.get(index);
    if (!(gain > 0) || (scored === undefined && (gain < least || !question.wanted(index)))) continue;
    if (scored === undefined) {
      scored = { index, score: 0, share: 0, rare: false };
      found.push(scored);
    }
    scored.score +=
      weights.meaning *
      believed *
      best *
      gain *
      factor(table, question, index, weights) *
      (then.has(index) ? weights.meaningDate : 1);
    const outstanding = Math.min(1, ((standard[index] ?? 0) - expected) / weights.meaningOver);
    if (outstanding > 0) {
      scored.share = Math.max(
        scored.share,
        MEANING_SHARE * Math.max(weights.leastTrust, believed) * outstanding,
      );
    }
  }
  return agreement;
}

/** In standard deviations above the mean of the scope; NaN without a vector. null: all are alike. */
function standardised(values: Float32Array): Float32Array | null {
  let count = 0;
  let sum = 0;
  let squares = 0;
  for (const value of values) {
    if (Number.isNaN(value)) continue;
    count++;
    sum += value;
    squares += value * value;
  }
  const mean = sum / count;
  const spread = Math.sqrt(Math.max(0, squares / count - mean * mean));
  return spread > 1e-6 ? values.map((value) => (value - mean) / spread) : null;
}

/** How far those that are best by words stand out in meaning, too. */
function agreementOf(standard: Float32Array, found: Scored[]): number | null {
  const best = [...found].sort((a, b) => b.score - a.score || b.index - a.index).slice(0, AGREEING);
  const values = best
    .map(({ index }) => standard[index] ?? Number.NaN)
    .filter((value) => !Number.isNaN(value));
  return values.length < AGREEING ? null : values.reduce((sum, value) => sum + value, 0) / AGREEING;
}

/** A message means little by itself: with those beside it and its sitting it means much. */
function inTalk(table: ScopeTable, standard: Float32Array, weights: typeof WEIGHTS): Float32Array | null {
  const above = standard.map((value) => Math.max(value, 0));
  const sittings = new Float32Array(table.sessionLengths.length).fill(Number.NaN);
  for (let index = 0; index < table.size; index++) {
    const sitting = table.sessions[index] ?? 0;
    const value = above[index] ?? 0;
    if (!((sittings[sitting] ?? 0) >= value)) sittings[sitting] = value;
  }
  const bySitting = standardised(sittings);
  const gains = new Float32Array(table.size);
  for (let index = 0; index < table.size; index++) {
    const at = (position: number) => (position < 0 ? 0 : (above[position] ?? 0));
    gains[index] =
      at(index) +
      weights.meaningBefore * at(table.beside(index, -1)) +
      weights.meaningAfter * at(table.beside(index, 1)) +
      weights.meaningSession * (bySitting?.[table.sessions[index] ?? 0] ?? 0);
  }
  return standardised(gains)?.map((value) => Math.max(0, (value + 1) / 2)) ?? null;
}
