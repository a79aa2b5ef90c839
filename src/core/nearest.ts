/** Which of some known words was probably meant by one that is not among them. */

/** Whether one word may be a misspelling of another: few edits for so short a word. */
export function isNear(word: string, known: string): boolean {
  return editsBetween(word, known) <= Math.max(1, Math.floor(word.length / 3));
}

/** The one with the fewest edits, however many these are; of equals the first. null: there is none. */
export function closest(word: string, known: readonly string[]): string | null {
  const [best] = known
    .map((each) => ({ each, edits: editsBetween(word, each) }))
    .sort((a, b) => a.edits - b.edits);
  return best?.each ?? null;
}

/** Insertions, deletions, replacements, and swaps of neighbours. */
function editsBetween(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  const at = (i: number, j: number) => rows[i]?.[j] ?? Number.POSITIVE_INFINITY;
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwap = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row.push(
        Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, replaced, isSwap ? at(i - 2, j - 2) + 1 : replaced),
      );
    }
  }
  return at(a.length, b.length);
}
