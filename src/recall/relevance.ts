/** How much a score is worth: from the share of the question that is met to the chance that memory knows of it. Pure. */

/**
 * A logistic curve through what was measured: for each question about a conversation, its best piece; and for each
 * question about another conversation, which this one cannot answer, the best piece here. At the middle both are as
 * frequent.
 */
const MIDDLE = 1.1;
const STEEPNESS = 3.5;

export function relevanceOf(share: number): number {
  const chance = (x: number) => 1 / (1 + Math.exp(-STEEPNESS * (x - MIDDLE)));
  const floor = chance(0);
  return (chance(share) - floor) / (1 - floor);
}
