/**
 * Ranks the pieces of one scope for one question. Words first (BM25), then what a conversation adds: an answer stands
 * beside its question, a subject fills a sitting, and who and when are often named. Pure.
 */
import type { Span } from './dates.js';
import type { Shelf } from './shelf.js';

/** Where a term occurs: places on the shelf in ascending order, each as often as the term stands there. */
export type Occurrences = Int32Array;

export interface Question {
  terms: Occurrences[];
  /** Whose words are asked for, as numbers of the shelf's authors. */
  asked: Set<number>;
  dates: Span[];
  /** Whether a piece may be found at all. */
  wanted(index: number): boolean;
  /** How near in meaning each piece is, as a cosine; NaN where nobody knows. null: nobody was asked. */
  similar: Float32Array | null;
}

export interface Scored {
  index: number;
  score: number;
  /** Of what the words of the question are worth, how much is met; above 1 with help of what stands around it. */
  share: number;
}

export const WEIGHTS = {
  /** Saturation: messages are short, and a word said twice is hardly more than once. */
  k1: 0.7,
  /** How much long ones pay for their length: little, they also say more. */
  b: 0.35,
  /** Two terms that follow each other in the question tell more together than apart. */
  pair: 0.5,
  /** The answer to a question follows it and need not repeat its words. */
  before: 0.5,
  /** And the question that an answer belongs to. */
  after: 0.1,
  /** One further, in both directions: a subject is kept for a few messages. */
  further: 0.2,
  /** A sitting about the subject lends to everything said in it, at most this share of the best. */
  stretch: 0.7,
  /** Said by whom the question names. */
  speaker: 1.3,
  /** Said when the question says: who names a day means it. */
  date: 3,
  /** A word or two carry little, whatever they match: they have this share of their score, a term more a bit more. */
  short: 0.6,
  shortStep: 0.02,
  /** What is nearest in meaning has this share of what the best by words has. */
  meaning: 0.6,
  /** In standard deviations from the scope's mean: where standing out begins, and how far it goes. */
  meaningFrom: 1.5,
  meaningOver: 3,
};

/** Of a scope where very many pieces hold a word of the question, these are looked at closely. */
const MOST_SEEDS = 3_000;
const BINS = 1_024;

/** What stands out most in meaning is taken to be as relevant as a piece with this share of the words. */
const MEANING_SHARE = 1.3;

export function rank(shelf: Shelf, question: Question, weights = WEIGHTS): Scored[] {
  const { size } = shelf;
  if (size === 0) return [];
  const ideal = question.terms.reduce((sum, places) => sum + rarity(size, distinct(places)), 0);
  // A question of one word that many use is met by chance.
  const sure = Math.min(1, ideal / Math.log(1 + size));
  const own = wordScores(shelf, question.terms, weights);
  const sittings = stretchScores(shelf, question.terms);
  const best = largest(own);
  const bestSitting = largest(sittings);
  const found: Scored[] = [];
  for (const index of reached(shelf, own, best)) {
    if (!question.wanted(index)) continue;
    const before = shelf.beside(index, -1);
    const after = shelf.beside(index, 1);
    const at = (place: number) => (place < 0 ? 0 : (own[place] ?? 0));
    const further =
      (before < 0 ? 0 : at(shelf.beside(before, -1))) + (after < 0 ? 0 : at(shelf.beside(after, 1)));
    const sitting = (sittings[shelf.stretches[index] ?? 0] ?? 0) / (bestSitting || 1);
    let score =
      at(index) +
      weights.before * at(before) +
      weights.after * at(after) +
      weights.further * further +
      weights.stretch * best * sitting;
    const length = shelf.lengths[index] ?? 0;
    if (question.asked.has(shelf.authors[index] ?? -1)) score *= weights.speaker;
    if (within(question.dates, shelf.times[index])) score *= weights.date;
    score *= Math.min(1, weights.short + weights.shortStep * length);
    if (score > 0) found.push({ index, score, share: ideal > 0 ? (sure * score) / ideal : 0 });
  }
  if (question.similar !== null) addMeaning(shelf, found, question.similar, question.wanted, weights);
  return found.sort((a, b) => b.score - a.score || b.index - a.index);
}

/**
 * Scores are added, not places in two lists: in those, a weak list has as much to say as a strong one. What counts is
 * how far a piece stands out among all of the scope: a model that tells nothing apart then moves nothing.
 */
function addMeaning(
  shelf: Shelf,
  found: Scored[],
  similar: Float32Array,
  wanted: (index: number) => boolean,
  weights: typeof WEIGHTS,
): void {
  let count = 0;
  let sum = 0;
  let squares = 0;
  for (const value of similar) {
    if (Number.isNaN(value)) continue;
    count++;
    sum += value;
    squares += value * value;
  }
  const mean = sum / count;
  const spread = Math.sqrt(Math.max(0, squares / count - mean * mean));
  if (!(spread > 1e-6)) return;
  const best = found.reduce((most, { score }) => Math.max(most, score), 0) || 1;
  const byIndex = new Map(found.map((scored) => [scored.index, scored]));
  for (let index = 0; index < shelf.size; index++) {
    const outstanding = ((similar[index] ?? Number.NaN) - mean) / spread;
    const gain = Math.min(1, (outstanding - weights.meaningFrom) / weights.meaningOver);
    if (!(gain > 0) || !wanted(index)) continue;
    let scored = byIndex.get(index);
    if (scored === undefined) {
      scored = { index, score: 0, share: 0 };
      found.push(scored);
    }
    scored.score += weights.meaning * best * gain;
    scored.share = Math.max(scored.share, MEANING_SHARE * gain);
  }
}

/** BM25 of each piece by itself, with the pairs of terms that follow each other in the question. */
function wordScores(shelf: Shelf, terms: Occurrences[], weights: typeof WEIGHTS): Float32Array {
  const scores = new Float32Array(shelf.size);
  const average = shelf.terms / shelf.size || 1;
  const norm = (index: number) =>
    weights.k1 * (1 - weights.b + (weights.b * (shelf.lengths[index] ?? 0)) / average);
  terms.forEach((places, n) => {
    const weight = rarity(shelf.size, distinct(places));
    eachPlace(places, (index, times) => {
      scores[index] = (scores[index] ?? 0) + (weight * times * (weights.k1 + 1)) / (times + norm(index));
    });
    const next = terms[n + 1];
    if (next === undefined || weights.pair === 0) return;
    const both = common(places, next);
    const rare = weights.pair * rarity(shelf.size, both.length);
    for (const index of both)
      scores[index] = (scores[index] ?? 0) + (rare * (weights.k1 + 1)) / (1 + norm(index));
  });
  return scores;
}

/** BM25 again, with sittings as the documents. */
function stretchScores(shelf: Shelf, terms: Occurrences[]): Float32Array {
  const count = shelf.stretchLengths.length;
  const scores = new Float32Array(count);
  const average = shelf.terms / count || 1;
  for (const places of terms) {
    const times = new Map<number, number>();
    for (const index of places) {
      const stretch = shelf.stretches[index] ?? 0;
      times.set(stretch, (times.get(stretch) ?? 0) + 1);
    }
    const weight = rarity(count, times.size);
    for (const [stretch, n] of times) {
      const norm = 1.2 * (0.25 + (0.75 * (shelf.stretchLengths[stretch] ?? 0)) / average);
      scores[stretch] = (scores[stretch] ?? 0) + (weight * n * 2.2) / (n + norm);
    }
  }
  return scores;
}

/** What has a score, or stands within two of what has. Among very many, those with the best scores and around them. */
function reached(shelf: Shelf, own: Float32Array, best: number): Set<number> {
  const least = leastOf(own, best);
  const places = new Set<number>();
  for (let index = 0; index < own.length; index++) {
    const score = own[index] ?? 0;
    if (score === 0 || score < least) continue;
    places.add(index);
    for (const direction of [1, -1] as const) {
      const beside = shelf.beside(index, direction);
      if (beside < 0) continue;
      places.add(beside);
      const further = shelf.beside(beside, direction);
      if (further >= 0) places.add(further);
    }
  }
  return places;
}

/** The score that about `MOST_SEEDS` pieces reach. */
function leastOf(own: Float32Array, best: number): number {
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

function largest(scores: Float32Array): number {
  let most = 0;
  for (const score of scores) if (score > most) most = score;
  return most;
}

function rarity(all: number, having: number): number {
  return Math.log(1 + (all - having + 0.5) / (having + 0.5));
}

function eachPlace(places: Occurrences, visit: (index: number, times: number) => void): void {
  for (let n = 0; n < places.length; ) {
    const index = places[n] ?? 0;
    let times = 0;
    while (n < places.length && places[n] === index) {
      times++;
      n++;
    }
    visit(index, times);
  }
}

function distinct(places: Occurrences): number {
  let count = 0;
  eachPlace(places, () => count++);
  return count;
}

function common(a: Occurrences, b: Occurrences): number[] {
  const both: number[] = [];
  for (let n = 0, m = 0; n < a.length && m < b.length; ) {
    const left = a[n] ?? 0;
    const right = b[m] ?? 0;
    if (left === right && both.at(-1) !== left) both.push(left);
    if (left <= right) n++;
    else m++;
  }
  return both;
}

function within(dates: Span[], at: number | undefined): boolean {
  return at !== undefined && dates.some((span) => at >= span.from && at < span.until);
}
