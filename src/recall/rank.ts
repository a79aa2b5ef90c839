/** Ranks a scope's chunks: by words (BM25), and as conversations work: answers follow questions, sessions have one subject. Pure. */
import {
  addMeaning,
  factor,
  largest,
  leastOf,
  type Occurrences,
  type Scored,
  type SearchQuestion,
  WEIGHTS,
  type WeightedTerm,
} from './meaning.js';
import type { ScopeTable } from './scope-table.js';

/** Maximum distance of a neighbour on each side, in messages. */
const NEIGHBOURS = 2;

export function rank(table: ScopeTable, question: SearchQuestion, weights = WEIGHTS): Scored[] {
  const { size } = table;
  if (size === 0) return [];
  const ideal = idealOf(size, question.terms);
  // A question of one common word is easily matched by chance.
  const sure = Math.min(1, ideal / Math.log(1 + size));
  const rare = rareOf(size, question.terms, ideal);
  const most = question.terms.some(({ said }) => said !== null) ? Number.POSITIVE_INFINITY : EVERYDAY_SHARE;
  const own = wordScores(table, question, weights);
  const sessions = sessionScores(table, question.terms);
  const best = largest(own);
  const bestSession = largest(sessions);
  const found: Scored[] = [];
  for (const index of reached(table, own, best)) {
    if (!question.wanted(index)) continue;
    const session = (sessions[table.sessions[index] ?? 0] ?? 0) / (bestSession || 1);
    const leaning = Math.min(1, weights.leaning / (table.lengths[index] || 1));
    let score =
      (own[index] ?? 0) +
      weights.before * beside(table, own, index, -1, weights) +
      weights.after * beside(table, own, index, 1, weights) +
      weights.session * leaning * best * Math.sqrt(session);
    score *= factor(table, question, index, weights);
    if (!(score > 0)) continue;
    const share = ideal > 0 ? Math.min(most, (sure * score) / ideal) : 0;
    found.push({ index, score, share, rare: rare.has(index) });
  }
  if (question.meaning !== null) addMeaning(table, found, question, question.meaning, weights);
  return found.sort((a, b) => b.score - a.score || b.index - a.index);
}

/** The neighbours' scores on one side, falling with the words in between: short messages depend on context, long ones do not. */
function beside(
  table: ScopeTable,
  own: Float32Array,
  index: number,
  direction: 1 | -1,
  weights: typeof WEIGHTS,
): number {
  let sum = 0;
  let words = (table.lengths[index] ?? 0) / 2;
  let other = index;
  for (let step = 0; step < NEIGHBOURS; step++) {
    other = table.beside(other, direction);
    if (other < 0) break;
    const length = table.lengths[other] ?? 0;
    const answers = table.asks(direction < 0 ? other : index) ? 1 : weights.unasked;
    sum += answers * Math.exp(-(words + length / 2) / weights.apart) * (own[other] ?? 0);
    words += length;
  }
  return sum;
}

/** The score of a chunk with all words of the subject. */
function idealOf(size: number, terms: WeightedTerm[]): number {
  const about = terms.filter(({ weight }) => weight === 1);
  const counted = about.length > 0 ? about : terms;
  return counted.reduce((sum, { positions }) => sum + rarity(size, distinct(positions)), 0);
}

/** Maximum share if the question has only everyday words. */
const EVERYDAY_SHARE = 1.3;

/** Words told once, long ago: in few chunks of many, and a large part of the question. */
const RARE = { chunks: 2, among: 100, amongForName: 12, part: 0.2 };

function rareOf(size: number, terms: WeightedTerm[], ideal: number): Set<number> {
  const parts = new Map<number, number>();
  for (const { positions, said } of terms) {
    const having = distinct(positions);
    const among = said === 'name' ? RARE.amongForName : RARE.among;
    if (said === null || having > RARE.chunks || size < among * having) continue;
    const part = rarity(size, having) / ideal;
    eachPosition(positions, (index) => parts.set(index, (parts.get(index) ?? 0) + part));
  }
  return new Set([...parts].filter(([, part]) => part >= RARE.part).map(([index]) => index));
}

/** BM25 of each chunk alone. Dates count as terms of what was said then. */
function wordScores(
  table: ScopeTable,
  { terms, own, dates }: SearchQuestion,
  weights: typeof WEIGHTS,
): Float32Array {
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
  for (const { positions, weight: share } of terms) {
    const weight = share * rarity(table.size, distinct(positions));
    eachPosition(positions, (index, times) => {
      scores[index] = (scores[index] ?? 0) + (weight * times * (weights.k1 + 1)) / (times + norm(index));
    });
  }
  for (const span of dates.flatMap((date) => [date, ...(date.soon ? [date.soon] : [])])) {
    const said = table.within(span);
    const weight = weights.date * rarity(table.size, said.length);
    for (const index of said) scores[index] = (scores[index] ?? 0) + weight;
  }
  return scores;
}

/** BM25 with sessions as the documents. */
function sessionScores(table: ScopeTable, terms: WeightedTerm[]): Float32Array {
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

/** Chunks with a score and their neighbours; if very many, only around the best. */
function reached(table: ScopeTable, own: Float32Array, best: number): Set<number> {
  const least = leastOf(own, best);
  const positions = new Set<number>();
  for (let index = 0; index < own.length; index++) {
    const score = own[index] ?? 0;
    if (score === 0 || score < least) continue;
    positions.add(index);
    for (const direction of [1, -1] as const) {
      let other = index;
      for (let step = 0; step < NEIGHBOURS; step++) {
        other = table.beside(other, direction);
        if (other < 0) break;
        positions.add(other);
      }
    }
  }
  return positions;
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

/** Logistic curve fitted to the best chunks of answerable and unanswerable questions; at MIDDLE, both are equally frequent. */
const MIDDLE = 1;
const STEEPNESS = 3.5;

/** Maps the matched share to the probability that memory knows the answer. */
export function relevanceOf(share: number): number {
  const chance = (x: number) => 1 / (1 + Math.exp(-STEEPNESS * (x - MIDDLE)));
  const floor = chance(0);
  return (chance(share) - floor) / (1 - floor);
}
