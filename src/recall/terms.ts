/** Splits text into search terms: words, or groups of characters in scripts without spaces. The same for questions. Pure. */
import { functionWordsIn, withoutUnspacedFrames } from '../core/phrase.js';
import { isStopWord, stem } from './english.js';

export interface Term {
  /** Never contains a space or ASCII punctuation. */
  text: string;
  /** Matches all terms with this prefix, because it is shorter than its script's groups. */
  begins: boolean;
}

/** In characters; longer terms are noise and are cut. */
const LONGEST_TERM = 40;
/** In characters; of a longer text only the beginning is indexed. */
const LONGEST_TEXT = 200_000;

/** Runs of letters (with their marks) or digits. An apostrophe separates: "Mary's" becomes "mary". */
const RUN = /[\p{L}\p{M}]+|\p{N}+/gu;
/** Scripts without spaces, or that attach words which other languages separate. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}ー\p{sc=Hangul}\p{sc=Bopomofo}]+/u;
const SYLLABIC = /[\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}\p{sc=Tibetan}]+/u;
const PARTS = new RegExp(
  `${UNSPACED.source}|${SYLLABIC.source}|(?:(?!${UNSPACED.source}|${SYLLABIC.source}).)+`,
  'gu',
);
const LATIN = /^[a-z]+$/;
/** Inflections and particles. */
const HIRAGANA = /^\p{sc=Hiragana}+$/u;

/** A text's terms, one per occurrence. Very common words are omitted here and in questions. */
export function indexTerms(text: string): string[] {
  return Array.from(terms(text, 'index'), (term) => term.text);
}

/** A question's terms, each once, in order. */
export function queryTerms(text: string, most: number): Term[] {
  return distinctTerms(terms(text, 'query'), most);
}

/** The same without words of the phrasing. */
export function subjectTerms(text: string, most: number): Term[] {
  const plain = withoutUnspacedFrames(plainly(text));
  const runs = plain.match(RUN) ?? [];
  const isFunction = functionWordsIn(runs);
  const found = distinctTerms(terms(runs.filter((run) => !isFunction(run)).join(' '), 'query'), most);
  const telling = found.filter(({ text: term }) => !HIRAGANA.test(term));
  return telling.length > 0 ? telling : found;
}

function distinctTerms(found: Iterable<Term>, most: number): Term[] {
  const seen = new Map<string, Term>();
  for (const term of found) {
    if (!seen.has(term.text)) seen.set(term.text, term);
    if (seen.size >= most) break;
  }
  return [...seen.values()];
}

/** Marks terms of "my dog"; not a letter, so that it equals no word. */
const OWN = '°';
const POSSESSIVE =
  /^(?:my|our|your|mein(?:e[mnrs]?)?|unser(?:e[mnrs]?)?|dein(?:e[mnrs]?)?|mi|mis|nuestr[oa]s?|tu|tus|mon|ma|mes|notre|nos|ton|ta|tes|mi[ao]|miei|nostr[oaie]|meu|minha|meus|minhas|noss[oa]s?|mijn|ons|onze|мо(?:й|я|ю|ё|е|и|его|ей|ему|им|их)|наш(?:а|у|е|и|его|ей|ему|им|их)?)$/u;
/** In words, because an adjective may come between: "our old dog". */
const OWN_REACH = 2;

/** Terms for things called somebody's own: "my dog" is not the dog next door. */
export function ownTerms(text: string): string[] {
  const own = new Set<string>();
  let reach = 0;
  for (const [run] of plainly(text).matchAll(RUN)) {
    if (POSSESSIVE.test(run)) reach = OWN_REACH;
    else if (reach > 0) {
      const [term] = indexTerms(run);
      if (term === undefined) continue;
      own.add(`${OWN}${term}`);
      reach--;
    }
  }
  return [...own];
}

/** Traits of a text, as bits: it asks a question; it is in the first person. */
export const ASKS = 1;
export const PERSONAL = 2;

/** "I", "my" and "we" in the languages that write them. */
const FIRST_PERSON = new Set(
  `i im me my mine we us our ours ich mich mir mein meine meinen meinem meiner meines wir uns unser unsere unseren unserem
  unserer yo mí mi mis mío mía conmigo nosotros nosotras nos nuestro nuestra nuestros nuestras je j moi mon ma mes nous
  notre io mio mia miei mie noi nostro nostra nostri nostre eu mim meu minha meus minhas nós nosso nossa nossos nossas ik
  mij mijn wij ons onze я меня мне мной мой моя моё мое мои моего моей моему моим мою мы нас нам нами наш наша наше наши
  нашего нашей нашему нашу أنا انا نحن`.split(/\s+/),
);
const UNSPACED_FIRST_PERSON = /[我私僕俺]|わたし|ぼく|나[는의도]|내가|저[는의도]|제가|우리/u;

export function traitsOf(text: string): number {
  const asks = /[?？؟]/.test(text) ? ASKS : 0;
  const plain = plainly(text);
  for (const [run] of plain.matchAll(RUN)) {
    if (FIRST_PERSON.has(run)) return asks | PERSONAL;
  }
  return UNSPACED_FIRST_PERSON.test(plain) ? asks | PERSONAL : asks;
}

function plainly(text: string): string {
  return text.slice(0, LONGEST_TEXT).normalize('NFKC').toLowerCase();
}

function* terms(text: string, purpose: 'index' | 'query'): Generator<Term> {
  for (const [run] of plainly(text).matchAll(RUN)) {
    if (LATIN.test(run)) {
      if (run.length > 1 && !isStopWord(run)) yield whole(stem(run));
    } else if (!/[^\p{N}]/u.test(run)) yield whole(run);
    else
      for (const [part] of run.matchAll(PARTS)) {
        if (UNSPACED.test(part)) yield* groups(part, 2, purpose);
        else if (SYLLABIC.test(part)) yield* groups(part, 3, purpose);
        else {
          const word = lightStem(folded(part));
          if (word !== '') yield whole(word);
        }
      }
  }
}

function whole(term: string): Term {
  return {
    text: term.length <= LONGEST_TERM ? term : [...term.slice(0, LONGEST_TERM)].join(''),
    begins: false,
  };
}

/** "東京都" becomes 東京 and 京都; the end of an indexed run also becomes shorter groups, so that one character finds it. */
function* groups(part: string, size: number, purpose: 'index' | 'query'): Generator<Term> {
  const characters = [...part];
  const last = purpose === 'index' ? characters.length - 1 : Math.max(0, characters.length - size);
  for (let at = 0; at <= last; at++) {
    const group = characters.slice(at, at + size);
    yield { text: group.join(''), begins: purpose === 'query' && group.length < size };
  }
}

/** Removes accents, Arabic and Hebrew vowel signs and the like, because people omit them. */
function folded(word: string): string {
  // й is a separate letter, although it can be written as и with a mark.
  if (CYRILLIC.test(word)) return word.replace(/\u0301/g, '').replace(/ё/g, 'е');
  const bare = word
    .normalize('NFD')
    .replace(/\p{Mn}+|ـ/gu, '')
    .normalize('NFC');
  return bare
    .replace(/[أإآٱ]/g, 'ا')
    .replace(/ى/g, 'ي')
    .replace(/ة/g, 'ه')
    .replace(/ё/g, 'е')
    .replace(/ß/g, 'ss');
}

const ARABIC = /^\p{sc=Arabic}+$/u;
const CYRILLIC = /^(?:\p{sc=Cyrillic}|\u0301)+$/u;
/** Arabic attaches "and", "with the", "for the" and "the", as well as plurals and "my", "your". */
const ARABIC_BEGINNING = /^(?:وال|بال|كال|فال|لل|ال)(?=..)/;
const ARABIC_END = /(?<=...)(?:ها|ان|ات|ون|ين|يه|ه|ي)$/;
const CYRILLIC_END =
  /(?<=...)(?:иями|ями|ами|ого|его|ому|ему|ыми|ими|ией|ить|ать|ять|еть|ла|ло|ли|ых|их|ах|ях|ам|ям|ом|ем|ов|ев|ей|ой|ый|ий|ая|яя|ое|ее|ую|юю|ия|ию|ии|ть|л|а|я|о|е|и|ы|у|ю|й|ь)$/;

function lightStem(word: string): string {
  if (LATIN.test(word)) return stem(word);
  if (ARABIC.test(word)) return word.replace(ARABIC_BEGINNING, '').replace(ARABIC_END, '');
  if (CYRILLIC.test(word)) return word.replace(CYRILLIC_END, '');
  return word;
}

/** Shorter words have too many neighbours with other meanings. */
const SHORTEST = 5;
const SHORTEST_PART = 4;
const LETTERS = /^\p{L}+$/u;

/** The prefix of words worth comparing; null if the word is too short or not a word. */
export function beginningOf(word: string): string | null {
  return word.length >= SHORTEST && LETTERS.test(word) ? word.slice(0, 2) : null;
}

/** The last of two Chinese characters, which carries the meaning, to be searched alone as a prefix; else null. */
export function lastSign(word: string): string | null {
  const signs = [...word];
  return signs.length === 2 && /^\p{sc=Han}{2}$/u.test(word) ? (signs[1] ?? null) : null;
}

/** Words of the scope, all with that prefix, that the word may stand for. */
export function alike(word: string, said: string[]): string[] {
  const stem = word.length < 6 ? word : word.slice(0, Math.max(5, word.length - 3));
  const slips = word.length < 8 ? 1 : 2;
  const near = said.filter((other) => other.startsWith(stem) || isWithin(slips, word, other));
  return near.length > 0 ? near : partsOf(word, said);
}

function partsOf(word: string, said: string[]): string[] {
  const parts = said.filter((other) => other.length >= SHORTEST_PART && word.startsWith(other));
  return parts.sort((a, b) => b.length - a.length).slice(0, 1);
}

/** Whether the edit distance (insertions, deletions, changes, swaps) is at most `most`. */
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
