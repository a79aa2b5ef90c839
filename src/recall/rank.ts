/**
 * Ranks the chunks of one scope for one question. First by words (BM25), then by what is typical of conversations: an
 * answer is next to its question, a session is about one subject, and questions often mention who and when. Pure.
 */
import type { Span } from './dates.js';
import type { ScopeTable } from './scope-table.js';

/** Where a term occurs: indexes into the table in ascending order, repeated for each occurrence. */
export type Occurrences = Int32Array;

export interface Term {
  positions: Occurrences;
  /** 1: the question is about it. Less: it only says how it is asked, or was said just before. */
  weight: number;
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
  /** The cosine similarity of each chunk; NaN if it has no vector. null: the search is by words only. */
  similar: Float32Array | null;
}

export interface Scored {
  index: number;
  score: number;
  /** The share of the question's weight that it matches; above 1 with the help of its neighbours. */
  share: number;
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
  /** A word of the question that nobody ever said counts this much against what has the others: it may be said otherwise. */
  unsaid: 1,
  /** The most similar chunk in meaning gets this share of the best score by words. */
  meaning: 0.6,
  /**
   * In standard deviations above the scope's mean: where similarity starts to count, and the range over which it grows.
   */
  meaningFrom: 1.5,
  meaningOver: 3,
};

/** If very many chunks match a word of the question, only about this many are examined closely. */
const MOST_SEEDS = 3_000;
const BINS = 1_024;

/** The chunk that stands out most in meaning counts as relevant as one with this share of the words. */
const MEANING_SHARE = 1.3;

export function rank(table: ScopeTable, question: Question, weights = WEIGHTS): Scored[] {
  const { size } = table;
  if (size === 0) return [];
  const ideal = idealOf(size, question.terms, weights);
  // A question of one common word is easily matched by chance.
  const sure = Math.min(1, ideal / Math.log(1 + size));
  const own = wordScores(table, question, weights);
  const sessions = sessionScores(table, question.terms);
  const best = largest(own);
  const bestSession = largest(sessions);
  const found: Scored[] = [];
  for (const index of reached(table, own, best)) {
    if (!question.wanted(index)) continue;
    const before = table.beside(index, -1);
    const after = table.beside(index, 1);
    const at = (position: number) => (position < 0 ? 0 : (own[position] ?? 0));
    const further =
      (before < 0 ? 0 : at(table.beside(before, -1))) + (after < 0 ? 0 : at(table.beside(after, 1)));
    const session = (sessions[table.sessions[index] ?? 0] ?? 0) / (bestSession || 1);
    let score =
      at(index) +
      weights.before * at(before) +
      weights.after * at(after) +
      weights.further * further +
      weights.session * best * session;
    const length = table.lengths[index] ?? 0;
    if (question.asked.has(table.authors[index] ?? -1)) score *= weights.speaker;
    if (within(question.dates, table.times[index])) score *= weights.date;
    score *= Math.min(1, weights.short + weights.shortStep * length);
    if (score > 0) found.push({ index, score, share: ideal > 0 ? (sure * score) / ideal : 0 });
  }
  if (question.similar !== null) addMeaning(table, found, question.similar, question.wanted, weights);
  return found.sort((a, b) => b.score - a.score || b.index - a.index);
}

/**
 * Adds scores instead of merging two ranked lists, in which a weak list would count as much as a strong one. What
 * counts is how far a chunk stands out from the rest of the scope, so a model that cannot tell texts apart changes
 * nothing.
 */
function addMeaning(
  table: ScopeTable,
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
  for (let index = 0; index < table.size; index++) {
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

/** What a chunk would score that had every word which the question is about; of words never said, only a share. */
function idealOf(size: number, terms: Term[], weights: typeof WEIGHTS): number {
  const about = terms.some(({ weight }) => weight === 1) ? terms.filter(({ weight }) => weight === 1) : terms;
  return about.reduce((sum, { positions }) => {
    const having = distinct(positions);
    return sum + (having === 0 ? weights.unsaid : 1) * rarity(size, having);
  }, 0);
}

/** BM25 of each chunk by itself, plus the bonus for adjacent terms. */
function wordScores(table: ScopeTable, { terms, own }: Question, weights: typeof WEIGHTS): Float32Array {
  const scores = new Float32Array(table.size);
  const average = table.terms / table.size || 1;
  const norm = (index: number) =>
    weights.k1 * (1 - weights.b + (weights.b * (table.lengths[index] ?? 0)) / average);
  for (const positions of own) {
    const weight = weights.own * rarity(table.size, distinct(positions));
    eachPosition(positions, (index) => {
      scores[index] = (scores[index] ?? 0) + weight;
    });
  }
  terms.forEach(({ positions, weight: share }, n) => {
    const weight = share * rarity(table.size, distinct(positions));
    eachPosition(positions, (index, times) => {
      scores[index] = (scores[index] ?? 0) + (weight * times * (weights.k1 + 1)) / (times + norm(index));
    });
    const next = terms[n + 1];
    if (next === undefined || weights.pair === 0) return;
    const both = common(positions, next.positions);
    const rare = Math.min(share, next.weight) * weights.pair * rarity(table.size, both.length);
    for (const index of both)
      scores[index] = (scores[index] ?? 0) + (rare * (weights.k1 + 1)) / (1 + norm(index));
  });
  return scores;
}

/** BM25 with sessions as the documents. */
function sessionScores(table: ScopeTable, terms: Term[]): Float32Array {
  const count = table.sessionLengths.length;
  const scores = new Float32Array(count);
  const average = table.terms / count || 1;
  for (const { positions, weight: share } of terms) {
    const times = new Map<number, number>();
    for (const index of positions) {
      const session = table.sessions[index] ?? 0;
      times.set(session, (times.get(session) ?? 0) + 1);
    }
    const weight = share * rarity(count, times.size);
    for (const [session, n] of times) {
      const norm = 1.2 * (0.25 + (0.75 * (table.sessionLengths[session] ?? 0)) / average);
      scores[session] = (scores[session] ?? 0) + (weight * n * 2.2) / (n + norm);
    }
  }
  return scores;
}

/** Chunks with a score, and up to two neighbours on each side; if there are very many, only around the best. */
function reached(table: ScopeTable, own: Float32Array, best: number): Set<number> {
  const least = leastOf(own, best);
  const positions = new Set<number>();
  for (let index = 0; index < own.length; index++) {
    const score = own[index] ?? 0;
    if (score === 0 || score < least) continue;
    positions.add(index);
    for (const direction of [1, -1] as const) {
      const beside = table.beside(index, direction);
      if (beside < 0) continue;
      positions.add(beside);
      const further = table.beside(beside, direction);
      if (further >= 0) positions.add(further);
    }
  }
  return positions;
}

/** The score that about `MOST_SEEDS` chunks reach. */
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

function eachPosition(positions: Occurrences, visit: (index: number, times: number) => void): void {
  for (let n = 0; n < positions.length; ) {
    const index = positions[n] ?? 0;
    let times = 0;
    while (n < positions.length && positions[n] === index) {
      times++;
      n++;
    }
    visit(index, times);
  }
}

function distinct(positions: Occurrences): number {
  let count = 0;
  eachPosition(positions, () => count++);
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

/**
 * A logistic curve fitted to measurements: for questions about a conversation, its best chunk; and for questions about
 * other conversations, which it cannot answer, its best chunk as well. At the middle both are equally frequent.
 */
const MIDDLE = 1.1;
const STEEPNESS = 3.5;

/** Maps the matched share of the question to the probability that memory knows the answer. */
export function relevanceOf(share: number): number {
  const chance = (x: number) => 1 / (1 + Math.exp(-STEEPNESS * (x - MIDDLE)));
  const floor = chance(0);
  return (chance(share) - floor) / (1 - floor);
}
