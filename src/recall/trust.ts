/**
 * How far a scope's vectors can be believed: as far as they agree with the words, over all questions so far. One
 * question says little, because noise agrees with the words by chance as well. Pure.
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
