/**
 * For a word of a question that nobody has used: which words of the scope it may stand for. Another ending, a slip of
 * the finger, or a compound of words that were used: "Zahnarzttermin" and "Zahnarzt". Pure.
 */

/** Below this a word has too many neighbours that mean something else. */
const SHORTEST = 5;
const SHORTEST_PART = 4;
const LETTERS = /^\p{L}+$/u;

/** How the words begin that are worth comparing; null: the word is too short, or no word. */
export function beginningOf(word: string): string | null {
  return word.length >= SHORTEST && LETTERS.test(word) ? word.slice(0, 2) : null;
}

/** Those of the scope's words, all with that beginning, that the word may stand for. */
export function alike(word: string, said: string[]): string[] {
  const stem = word.length < 6 ? word : word.slice(0, Math.max(5, word.length - 3));
  const slips = word.length < 8 ? 1 : 2;
  const near = said.filter((other) => other.startsWith(stem) || isWithin(slips, word, other));
  return near.length > 0 ? near : partsOf(word, said);
}

/** The longest word that it begins with. */
function partsOf(word: string, said: string[]): string[] {
  const parts = said.filter((other) => other.length >= SHORTEST_PART && word.startsWith(other));
  return parts.sort((a, b) => b.length - a.length).slice(0, 1);
}

/** Whether so many letters added, left out, changed or swapped make one of the other. */
function isWithin(most: number, a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > most) return false;
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, n) => n);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let cost = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, (before[j - 2] ?? 0) + 1);
      }
      next.push(cost);
    }
    if (Math.min(...next) > most) return false;
    before = row;
    row = next;
  }
  return (row[b.length] ?? 0) <= most;
}
