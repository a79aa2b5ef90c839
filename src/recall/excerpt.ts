/** The part of a long text to show for a question: where most of the question's words stand together. Pure. */
import { cutAt } from '../core/cut.js';
import { indexTerms, subjectTerms } from './terms.js';

/** Longer texts are shown by a part. */
const MOST_CHARS = 600;
/** So much stands before the first of the words, so that they can be understood. */
const LEAD_CHARS = 150;
/** Of a question that was answered, its end is shown: there it is asked. */
const ASKED_CHARS = 300;
/** Words further behind are not looked for. */
const READ_CHARS = 50_000;
const MOST_TERMS = 64;

/** Makes the excerpts for one question: null for a text that is short enough to be shown whole. */
export function excerptsFor(question: string): (text: string) => string | null {
  const wanted = new Set(subjectTerms(question, MOST_TERMS).map((term) => term.text));
  /** Of each word so far, the terms that are wanted: most words stand in many texts. */
  const known = new Map<string, string[]>();
  function wantedIn(word: string): string[] {
    const terms = known.get(word) ?? indexTerms(word).filter((term) => wanted.has(term));
    known.set(word, terms);
    return terms;
  }
  return (text) => (text.length <= MOST_CHARS ? null : excerptOf(text, wantedIn));
}

function excerptOf(text: string, wantedIn: (word: string) => string[]): string {
  const found: { at: number; term: string }[] = [];
  for (const { 0: word, index } of text.slice(0, READ_CHARS).matchAll(/[\p{L}\p{M}\p{N}]+/gu))
    for (const term of wantedIn(word)) found.push({ at: index, term });
  let best = { from: 0, words: 0 };
  let first = 0;
  const inside = new Map<string, number>();
  for (const { at, term } of found) {
    inside.set(term, (inside.get(term) ?? 0) + 1);
    for (
      let other = found[first];
      other && at - other.at > MOST_CHARS - 2 * LEAD_CHARS;
      other = found[first]
    ) {
      const left = (inside.get(other.term) ?? 0) - 1;
      if (left > 0) inside.set(other.term, left);
      else inside.delete(other.term);
      first++;
    }
    if (inside.size > best.words) best = { from: found[first]?.at ?? 0, words: inside.size };
  }
  return part(text, Math.max(0, best.from - LEAD_CHARS), MOST_CHARS);
}

/** null: the question is short enough to be shown whole. */
export function endOf(asked: string): string | null {
  return asked.length <= MOST_CHARS ? null : part(asked, asked.length - ASKED_CHARS, ASKED_CHARS);
}

function part(text: string, from: number, most: number): string {
  const start = from === 0 ? 0 : beginningOf(text, from);
  const shown = cutAt(text.slice(start), most);
  return `${start > 0 ? '… ' : ''}${shown.trim()}${start + shown.length < text.length ? ' …' : ''}`;
}

/** The next beginning of a word, or at least not between the halves of a character. */
function beginningOf(text: string, from: number): number {
  const space = text.slice(from, from + LEAD_CHARS).search(/\s/);
  if (space >= 0) return from + space + 1;
  return /[\uDC00-\uDFFF]/.test(text[from] ?? '') ? from + 1 : from;
}
