/** The inputs of ranking, and scores by meaning, which is weak for a message alone and strong with its neighbours and session. Pure. */

import type { ScopeTable, TimeSpan } from './scope-table.js';

/** How far vectors and words agree in a scope, over all questions: a single question may agree by chance. */
export interface Agreement {
  questions: number;
  /** In standard deviations, summed over all questions. */
  sum: number;
}

/** Agreement at which a model is fully trusted. Real models reach more, noise none. */
const FULL = 0.5;
/** Prior trust of one half, with the weight of this many questions. */
const PRIOR = 0.25;
const PRIOR_QUESTIONS = 3;

export function trustAfter({ questions, sum }: Agreement): number {
  const mean = (sum + PRIOR * PRIOR_QUESTIONS) / (questions + PRIOR_QUESTIONS);
  return Math.min(1, Math.max(0, mean / FULL));
}

/** Number of best hits by words with which a model is compared. */
const AGREEING = 5;

/** The chunk most outstanding in meaning is as relevant as one matching this share of the words. */
const MEANING_SHARE = 1.3;

/** Adds scores, because merging ranked lists would overrate a weak one. Returns how far model and words agree; null if unknown. */
export function addMeaning(
  table: ScopeTable,
  found: Scored[],
  question: SearchQuestion,
  { similar, trust }: Meaning,
  weights: typeof WEIGHTS,
): number | null {
  const standard = standardised(similar);
  if (standard === null) return null;
  const agreement = agreementOf(standard, found);
  const believed = trust(agreement);
  // The maximum expected by chance among so many chunks.
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

/** In standard deviations from the scope's mean; NaN without a vector. null if all are alike. */
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

/** How far the best hits by words also stand out in meaning. */
function agreementOf(standard: Float32Array, found: Scored[]): number | null {
  const best = [...found].sort((a, b) => b.score - a.score || b.index - a.index).slice(0, AGREEING);
  const values = best
    .map(({ index }) => standard[index] ?? Number.NaN)
    .filter((value) => !Number.isNaN(value));
  return values.length < AGREEING ? null : values.reduce((sum, value) => sum + value, 0) / AGREEING;
}

/** Adds the neighbours' and the session's meaning to each message's own. */
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

/** Occurrences of a term: indexes into the table in ascending order, one per occurrence. */
export type Occurrences = Int32Array;

export interface WeightedTerm {
  positions: Occurrences;
  /** 1: a word of the subject. Less: it belongs to the phrasing, or was said just before. */
  weight: number;
  /** Set for a literal word of the subject that is not an everyday word; a name needs less proof of being rare. */
  said: 'name' | 'word' | null;
}

export interface SearchQuestion {
  terms: WeightedTerm[];
  /** Words that the question calls someone's own, as "my dog". */
  own: Occurrences[];
  /** Authors named in the question, as numbers in the table. */
  asked: Set<number>;
  dates: TimeSpan[];
  wanted(index: number): boolean;
  /** null: search by words only. */
  meaning: Meaning | null;
}

export interface Meaning {
  /** Cosine similarity of each chunk; NaN without a vector. */
  similar: Float32Array;
  /** Trust in the model, 0 to 1, given its agreement with the words here, in standard deviations; null if unknown. */
  trust(agreement: number | null): number;
}

export interface Scored {
  index: number;
  score: number;
  /** Matched share of the question's weight; above 1 with the help of neighbours. */
  share: number;
  /** Whether it has a rare word of the question's subject. */
  rare: boolean;
}

export const WEIGHTS = {
  /** Saturation of repeated words. */
  k1: 1.2,
  /** Length normalisation: a long message matches words by chance. */
  b: 0.6,
  /** Bonus if the question's "my dog" is also somebody's own here. */
  own: 0.25,
  /** Share of the preceding messages' score: an answer need not repeat its question's words. */
  before: 1,
  /** The same for following messages, which may be the answer. */
  after: 0.3,
  /** Factor for neighbours if no question was asked. */
  unasked: 0.5,
  /** A neighbour's share falls to 1/e with this many words between the middles of both. */
  apart: 25,
  /** Maximum bonus from a session about the subject, as a share of the best score. */
  session: 0.7,
  /** Longer messages, in words, get less of the session's bonus. */
  leaning: 50,
  /** Factor for messages by an author named in the question. */
  speaker: 1.4,
  /** Factor for texts not in the first person, in which facts are mostly told. */
  impersonal: 0.8,
  /** Weight of being said at the time that the question mentions. */
  date: 1,
  /** Factor for the shortest messages, which say little whatever they match. */
  short: 0.6,
  /** Added to it per term. */
  shortStep: 0.02,
  /** Share of the best score by words per standard deviation in meaning. */
  meaning: 0.2,
  /** Shares of the previous and next message, and of the session's best. */
  meaningBefore: 0.6,
  meaningAfter: 0.3,
  meaningSession: 0.6,
  meaningDate: 2,
  /** Standard deviations above chance at which a chunk is certainly relevant. */
  meaningOver: 1.5,
  /** Minimum trust for relevance, which is strict anyway, so that a new model counts. */
  leastTrust: 0.7,
};

/** If very many chunks match, only about this many are examined closely. */
export const MOST_SEEDS = 3_000;

export const BINS = 1_024;

/** Adjusts for length, author and first person. */
export function factor(
  table: ScopeTable,
  { asked }: SearchQuestion,
  index: number,
  weights: typeof WEIGHTS,
): number {
  let product = Math.min(1, weights.short + weights.shortStep * (table.lengths[index] ?? 0));
  if (asked.has(table.authors[index] ?? -1)) product *= weights.speaker;
  if (!table.isPersonal(index)) product *= weights.impersonal;
  return product;
}

/** The score reached by about `MOST_SEEDS` chunks. */
export function leastOf(own: Float32Array, best: number): number {
  const bins = new Uint32Array(BINS);
  let count = 0;
  for (const score of own) {
    if (score === 0) continue;
    count++;
    const bin = Math.min(BINS - 1, Math.floor((score / best) * BINS));
    bins[bin] = (bins[bin] ?? 0) + 1;
  }
  for (let bin = 0; count > MOST_SEEDS && bin < BINS; bin++) {
    count -= bins[bin] ?? 0;
    if (count <= MOST_SEEDS) return ((bin + 1) / BINS) * best;
  }
  return 0;
}

export function largest(scores: Float32Array): number {
  let most = 0;
  for (const score of scores) if (score > most) most = score;
  return most;
}
