/** Ranks a scope's chunks by words (BM25) and meaning. Answers follow questions, and sessions have one subject. Pure. */
import type { ScopeTable, TimeSpan } from './scope-table.js';

/** Maximum distance of a neighbour on each side, in messages. */
const NEIGHBOURS = 2;

export function rank(table: ScopeTable, question: SearchQuestion): Scored[] {
  const { size } = table;
  if (size === 0) return [];
  const ideal = idealOf(size, question.terms);
  // A question of one common word is easily matched by chance.
  const sure = Math.min(1, ideal / Math.log(1 + size));
  const rare = rareOf(size, question.terms, ideal);
  const most = question.terms.some(({ said }) => said !== null) ? Number.POSITIVE_INFINITY : EVERYDAY_SHARE;
  const own = wordScores(table, question);
  const sessions = sessionScores(table, question.terms);
  const best = largest(own);
  const bestSession = largest(sessions);
  const found: Scored[] = [];
  for (const index of reached(table, own, best)) {
    if (!question.wanted(index)) continue;
    const session = (sessions[table.columns.sessions[index] ?? 0] ?? 0) / (bestSession || 1);
    const leaning = Math.min(1, WEIGHTS.leaning / (table.columns.lengths[index] || 1));
    let score =
      (own[index] ?? 0) +
      WEIGHTS.before * beside(table, own, index, -1) +
      WEIGHTS.after * beside(table, own, index, 1) +
      WEIGHTS.session * leaning * best * Math.sqrt(session);
    score *= factor(table, question, index);
    if (!(score > 0)) continue;
    const share = ideal > 0 ? Math.min(most, (sure * score) / ideal) : 0;
    found.push({ index, score, share, rare: rare.has(index) });
  }
  if (question.meaning !== null) addMeaning(table, found, question, question.meaning);
  return found.sort((a, b) => b.score - a.score || b.index - a.index);
}

/** The neighbours' scores on one side, falling with the words in between: short messages depend on context, long ones do not. */
function beside(table: ScopeTable, own: Float32Array, index: number, direction: 1 | -1): number {
  let sum = 0;
  let words = (table.columns.lengths[index] ?? 0) / 2;
  let other = index;
  for (let step = 0; step < NEIGHBOURS; step++) {
    other = table.beside(other, direction);
    if (other < 0) break;
    const length = table.columns.lengths[other] ?? 0;
    const answers = table.asks(direction < 0 ? other : index) ? 1 : WEIGHTS.unasked;
    sum += answers * Math.exp(-(words + length / 2) / WEIGHTS.apart) * (own[other] ?? 0);
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
function wordScores(table: ScopeTable, { terms, own, dates }: SearchQuestion): Float32Array {
  const scores = new Float32Array(table.size);
  const average = table.terms / table.size || 1;
  const norm = (index: number) =>
    WEIGHTS.k1 * (1 - WEIGHTS.b + (WEIGHTS.b * (table.columns.lengths[index] ?? 0)) / average);
  for (const positions of own) {
    const weight = WEIGHTS.own * rarity(table.size, distinct(positions));
    eachPosition(positions, (index) => {
      scores[index] = (scores[index] ?? 0) + weight;
    });
  }
  for (const { positions, weight: share } of terms) {
    const weight = share * rarity(table.size, distinct(positions));
    eachPosition(positions, (index, times) => {
      scores[index] = (scores[index] ?? 0) + (weight * times * (WEIGHTS.k1 + 1)) / (times + norm(index));
    });
  }
  for (const span of dates.flatMap((date) => [date, ...(date.soon ? [date.soon] : [])])) {
    const said = table.within(span);
    const weight = WEIGHTS.date * rarity(table.size, said.length);
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
      const session = table.columns.sessions[index] ?? 0;
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

/** Adds scores, because merging ranked lists would overrate a weak one. */
function addMeaning(
  table: ScopeTable,
  found: Scored[],
  question: SearchQuestion,
  { similar, trust }: Meaning,
): void {
  const standard = standardised(similar);
  if (standard === null) return;
  const believed = trust(agreementOf(standard, found));
  // The maximum expected by chance among so many chunks.
  const expected = Math.sqrt(2 * Math.log(table.size));
  const best = found.reduce((most, { score }) => Math.max(most, score), 0) || 1;
  const gains = inTalk(table, standard);
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
      WEIGHTS.meaning *
      believed *
      best *
      gain *
      factor(table, question, index) *
      (then.has(index) ? WEIGHTS.meaningDate : 1);
    const outstanding = Math.min(1, ((standard[index] ?? 0) - expected) / WEIGHTS.meaningOver);
    if (outstanding > 0) {
      scored.share = Math.max(
        scored.share,
        MEANING_SHARE * Math.max(WEIGHTS.leastTrust, believed) * outstanding,
      );
    }
  }
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

/** How far the best hits by words also stand out in meaning; null if unknown. */
function agreementOf(standard: Float32Array, found: Scored[]): number | null {
  const best = [...found].sort((a, b) => b.score - a.score || b.index - a.index).slice(0, AGREEING);
  const values = best
    .map(({ index }) => standard[index] ?? Number.NaN)
    .filter((value) => !Number.isNaN(value));
  return values.length < AGREEING ? null : values.reduce((sum, value) => sum + value, 0) / AGREEING;
}

/** Adds the neighbours' and the session's meaning to each message's own. */
function inTalk(table: ScopeTable, standard: Float32Array): Float32Array | null {
  const above = standard.map((value) => Math.max(value, 0));
  const sittings = new Float32Array(table.sessionLengths.length).fill(Number.NaN);
  for (let index = 0; index < table.size; index++) {
    const sitting = table.columns.sessions[index] ?? 0;
    const value = above[index] ?? 0;
    if (!((sittings[sitting] ?? 0) >= value)) sittings[sitting] = value;
  }
  const bySitting = standardised(sittings);
  const gains = new Float32Array(table.size);
  for (let index = 0; index < table.size; index++) {
    const at = (position: number) => (position < 0 ? 0 : (above[position] ?? 0));
    gains[index] =
      at(index) +
      WEIGHTS.meaningBefore * at(table.beside(index, -1)) +
      WEIGHTS.meaningAfter * at(table.beside(index, 1)) +
      WEIGHTS.meaningSession * (bySitting?.[table.columns.sessions[index] ?? 0] ?? 0);
  }
  return standardised(gains)?.map((value) => Math.max(0, (value + 1) / 2)) ?? null;
}

/** Occurrences of a term: indexes into the table in ascending order, one per occurrence. */
type Occurrences = Int32Array;

interface WeightedTerm {
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

const WEIGHTS = {
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
const MOST_SEEDS = 3_000;

const BINS = 1_024;

/** Adjusts for length, author and first person. */
function factor(table: ScopeTable, { asked }: SearchQuestion, index: number): number {
  let product = Math.min(1, WEIGHTS.short + WEIGHTS.shortStep * (table.columns.lengths[index] ?? 0));
  if (asked.has(table.columns.authors[index] ?? -1)) product *= WEIGHTS.speaker;
  if (!table.isPersonal(index)) product *= WEIGHTS.impersonal;
  return product;
}

/** The score reached by about `MOST_SEEDS` chunks. */
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
