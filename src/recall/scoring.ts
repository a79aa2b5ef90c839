/**
 * What ranking works on: the words and the meaning of a question, the weights, and what raises or lowers a chunk
 * however it was found. Pure.
 */
import type { Span } from './dates.js';
import type { ScopeTable } from './scope-table.js';

/** Where a term occurs: indexes into the table in ascending order, repeated for each occurrence. */
export type Occurrences = Int32Array;

export interface Term {
  positions: Occurrences;
  /** 1: the question is about it. Less: it only says how it is asked, or was said just before. */
  weight: number;
  /** It was said as it stands in the question, which is about it; of a name less proof is asked that it is rare. */
  said: 'name' | 'word' | null;
}

export interface Question {
  terms: Term[];
  /** Words that the question calls somebody's own, as "my dog". */
  own: Occurrences[];
  /** The authors that the question names, as numbers in the table. */
  asked: Set<number>;
  dates: Span[];
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
  /** Saturation: messages are short, so repeating a word adds hardly anything. */
  k1: 0.7,
  /** Length normalisation: low, because long messages also say more. */
  b: 0.35,
  /** Bonus for two terms that are adjacent, as in the question. */
  pair: 0.5,
  /** Bonus for what is said to be one's own, as in the question: "my dog". */
  own: 0.5,
  /** Share from the message before: the answer to a question follows it and need not repeat its words. */
  before: 0.5,
  /** Share from the message after, which may be the answer. */
  after: 0.1,
  /** Share from two messages away, in both directions: people stay with a subject for a few messages. */
  further: 0.2,
  /** A session about the subject raises everything said in it, by at most this share of the best score. */
  session: 0.7,
  /** Factor for messages by somebody whom the question names. */
  speaker: 1.3,
  /** Factor for messages from the time that the question mentions. */
  date: 3,
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
const MOST_SEEDS = 3_000;
const BINS = 1_024;
/** For who said it, when, and how much it says. */
export function factor(
  table: ScopeTable,
  { asked, dates }: Question,
  index: number,
  date: number,
  weights: typeof WEIGHTS,
): number {
  let product = Math.min(1, weights.short + weights.shortStep * (table.lengths[index] ?? 0));
  if (asked.has(table.authors[index] ?? -1)) product *= weights.speaker;
  if (within(dates, table.times[index])) product *= date;
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

function within(dates: Span[], at: number | undefined): boolean {
  return at !== undefined && dates.some((span) => at >= span.from && at < span.until);
}
