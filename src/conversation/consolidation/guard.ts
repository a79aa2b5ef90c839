/** Checks a consolidated memory before it replaces the old one: a careless model must not empty it. Pure. */
import { wordFinder } from '../commands/shared-words.js';
import { TIERS, type Tiers } from './draft.js';

/** The share of the words of tiers 1 and 2 that may go; of a small memory some more, for a contradiction settled is much of it. */
const MOST_LOST = 0.4;
const MOST_LOST_OF_FEW = 0.6;
const FEW_LOST = 8;
/** The title and the three headings count into the budget. */
const HEADINGS_CHARS = 120;

/** Why it must not be written, for the operator; null if it may. Tier 3 ages, so its words may go. */
export function objection(
  before: Tiers,
  after: Tiers,
  { memoryChars, mayChangeTier1 }: { memoryChars: number; mayChangeTier1: boolean },
): string | null {
  if (!mayChangeTier1 && after[1] !== before[1])
    return 'it changes tier 1, which here only people may (memory.tier1_by)';
  const chars = charsOf(after);
  if (chars > memoryChars && chars > charsOf(before)) {
    return `it is longer (${chars}) than a prompt shows of it (memory.long_term_max_chars=${memoryChars})`;
  }
  const wordsOf = wordFinder();
  const kept = wordsOf(TIERS.map((tier) => after[tier]).join('\n'));
  const lasting = wordsOf(`${before[1]}\n${before[2]}`);
  const lost = [...lasting].filter((word) => !kept.has(word)).length;
  const most = Math.max(MOST_LOST * lasting.size, Math.min(FEW_LOST, MOST_LOST_OF_FEW * lasting.size));
  return lost > most ? `it loses ${lost} of the ${lasting.size} words of tiers 1 and 2` : null;
}

function charsOf(tiers: Tiers): number {
  return TIERS.reduce((sum, tier) => sum + tiers[tier].length, HEADINGS_CHARS);
}
