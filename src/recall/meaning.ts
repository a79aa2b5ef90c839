/**
 * What ranking works on (a question, its weights), and what adds to a ranking by words: the chunks that stand out in
 * meaning. A message's meaning is weak alone and strong with its neighbours and its session. Pure.
 */

import type { ScopeTable, TimeSpan } from './scope-table.js';

/**
 * How far a scope's vectors agree with the words, over all questions so far. One question says little, because noise agrees
 * with the words by chance as well.
 */
export interface Agreement {
  questions: number;
  /** In standard deviations, of all questions. */
  sum: number;
}

/** Agreement of a model that can be believed fully. Real ones have more, noise has none. */
const FULL = 0.5;
/** Before anything is known, half is believed, with the weight of so many questions. */
const PRIOR = 0.25;
const PRIOR_QUESTIONS = 3;

export function trustAfter({ questions, sum }: Agreement): number {
  const mean = (sum + PRIOR * PRIOR_QUESTIONS) / (questions + PRIOR_QUESTIONS);
  return Math.min(1, Math.max(0, mean / FULL));
}

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
  question: SearchQuestion,
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

/** Where a term occurs: indexes into the table in ascending order, repeated for each occurrence. */
export type Occurrences = Int32Array;

export interface WeightedTerm {
  positions: Occurrences;
  /** 1: the question is about it. Less: it only says how it is asked, or was said just before. */
  weight: number;
  /**
   * It was said as it stands in the question, which is about it, and it is no word of every day; of a name less proof is
   * asked that it is rare.
   */
  said: 'name' | 'word' | null;
}

export interface SearchQuestion {
  terms: WeightedTerm[];
  /** Words that the question calls somebody's own, as "my dog". */
  own: Occurrences[];
  /** The authors that the question names, as numbers in the table. */
  asked: Set<number>;
  dates: TimeSpan[];
  /** Whether a chunk may be found at all. */
  wanted(index: number): boolean;
  /** null: the search is by words only. */
  meaning: Meaning | null;
}

export interface Meaning {
  /** The cosine similarity of each chunk; NaN if it has no vector. */
  similar: Float32Array;
  /**
   * How far the model can be believed, from 0 to 1, given how far it agrees with the words on this question: in
   * standard deviations; null if that cannot be said.
   */
  trust(agreement: number | null): number;
}

export interface Scored {
  index: number;
  score: number;
  /** The share of the question's weight that it matches; above 1 with the help of its neighbours. */
  share: number;
  /** It has a rare word that the question is about. */
  rare: boolean;
}

export const WEIGHTS = {
  /** Saturation: how much it adds that a word is repeated. */
  k1: 1.2,
  /** Length normalisation: a long message has many words by chance. */
  b: 0.6,
  /** Bonus for what is said to be one's own, as in the question: "my dog". */
  own: 0.25,
  /** The share of the score of what stands before: an answer need not repeat the words of its question. */
  before: 1,
  /** Of what stands after, which may be the answer. */
  after: 0.3,
  /** Where nothing was asked, this much of it. */
  unasked: 0.5,
  /** The share falls to a third with so many words between the middles of both. */
  apart: 25,
  /** A session about the subject raises everything said in it, by at most this share of the best score. */
  session: 0.7,
  /** A message of more words than these stands for itself: its session raises it less. */
  leaning: 50,
  /** Factor for messages by somebody whom the question names. */
  speaker: 1.4,
  /** Factor for what nobody says of himself: facts are mostly told in the first person. */
  impersonal: 0.8,
  /** What was said at the time that the question mentions has a word more, of this weight. */
  date: 1,
  /** A message of a word or two says little, whatever it matches: it keeps this share of its score. */
  short: 0.6,
  /** Added for each further term. */
  shortStep: 0.02,
  /** A chunk that stands out in meaning by a standard deviation gets this share of the best score by words. */
  meaning: 0.2,
  /** Of the messages before and after, and of the most similar one of the sitting. */
  meaningBefore: 0.6,
  meaningAfter: 0.3,
  meaningSession: 0.6,
  meaningDate: 2,
  /** What stands out by so many standard deviations more than chance would is relevant for certain. */
  meaningOver: 1.5,
  /** Relevance asks for more than chance anyway, so that a model of which nothing is known yet counts this much. */
  leastTrust: 0.7,
};

/** If very many chunks match a word of the question, only about this many are examined closely. */
export const MOST_SEEDS = 3_000;

export const BINS = 1_024;

/** For who said it, of whom, and how much it says. */
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

/** The score that about `MOST_SEEDS` chunks reach. */
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
