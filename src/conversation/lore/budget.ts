/** Which of the entries that matched stand in a prompt, and in which order. Pure. */
import { estimateTokens } from '../../core/cut.js';
import type { Lorebook, LoreEntry } from '../../core/lorebook.js';
import type { LoreMatch } from './scan.js';

export interface LoreBudget {
  /** For all books together. */
  tokens: number;
  /** Of each book so far. */
  used: Map<Lorebook, number>;
}

export interface Budgeted {
  /** In the order of the prompt. */
  kept: LoreMatch[];
  /** They matched and did not fit. */
  left: LoreMatch[];
  /** Left for others. */
  rest: LoreBudget;
}

const RANKS = { constant: 0, named: 1, brought: 2 };

/** Whole entries, the most important first. */
export function withinBudget(matches: readonly LoreMatch[], budget: LoreBudget): Budgeted {
  const used = new Map(budget.used);
  let { tokens } = budget;
  const [kept, left]: [LoreMatch[], LoreMatch[]] = [[], []];
  for (const match of [...matches].sort(byImportance)) {
    // It may have brought others; there is nothing to show.
    if (match.text === '') continue;
    const takes = estimateTokens(match.text) + TOKENS_AROUND_EACH;
    const { book } = match;
    const ofBook = (used.get(book) ?? 0) + takes;
    if (takes > tokens || ofBook > (book.tokenBudget ?? Number.POSITIVE_INFINITY)) {
      left.push(match);
      continue;
    }
    tokens -= takes;
    used.set(book, ofBook);
    kept.push(match);
  }
  return { kept: kept.sort(byPlace), left, rest: { tokens, used } };
}

const TOKENS_AROUND_EACH = 1;
const CHARS_BETWEEN = 2;

/** Those that have room in so many characters. `isAll`: there is no other text, so the first stands even if it is longer. */
export function withinChars({ kept, left, rest }: Budgeted, chars: number, isAll: boolean): Budgeted {
  let room = chars;
  const fitting = new Set<LoreMatch>();
  const sorted = [...kept].sort(byImportance);
  for (const match of sorted) {
    const takes = match.text.length + CHARS_BETWEEN;
    if (takes > room) continue;
    room -= takes;
    fitting.add(match);
  }
  const [first] = sorted;
  if (fitting.size === 0 && first !== undefined && isAll) fitting.add(first);
  const others = kept.filter((match) => !fitting.has(match));
  return { kept: kept.filter((match) => fitting.has(match)), left: [...left, ...others], rest };
}

function byImportance(one: LoreMatch, other: LoreMatch): number {
  const [a, b] = [entryOf(one), entryOf(other)];
  return (
    Number(a.decorators.ignoreOnMaxContext) - Number(b.decorators.ignoreOnMaxContext) ||
    RANKS[one.rank] - RANKS[other.rank] ||
    b.priority - a.priority ||
    b.order - a.order
  );
}

const PLACES = { before: 0, after: 1, depth: 2 };

/** Deeper in the history is earlier. */
function byPlace(one: LoreMatch, other: LoreMatch): number {
  const [a, b] = [entryOf(one), entryOf(other)];
  const isDeep = a.position === 'depth' && b.position === 'depth';
  return PLACES[a.position] - PLACES[b.position] || (isDeep ? b.depth - a.depth : 0) || a.order - b.order;
}

function entryOf({ book, entry }: LoreMatch): LoreEntry {
  return book.entries[entry] as LoreEntry;
}
