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
  /**
   * It was said as it stands in the question, which is about it, and it is no word of every day; of a name less proof is
   * asked that it is rare.
   */
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
const MOST_SEEDS = 3_000;
const BINS = 1_024;
/** For who said it, of whom, and how much it says. */
export function factor(
  table: ScopeTable,
  { asked }: Question,
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
