/** Splits text into search terms: words, or groups of characters in scripts without spaces. The same for questions. Pure. */
import { functionWordsIn, withoutUnspacedFrames } from '../core/phrase.js';

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
      if (run.length > 1 && !STOP_WORDS.has(run)) yield whole(stem(run));
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

/** Too frequent to distinguish messages; includes the rest of words split at an apostrophe. */
const STOP_WORDS = new Set(
  `a about after all also am an and any are as at be because been before being but by can could did do does doing
  done for from had has have having he her here hers him his how i if in into is it its itself just like ll m may me
  might more most much must my no nor not now of off on once only or other our ours out over own re s same she should
  so some such t than that the their theirs them then there these they this those through to too under until up us ve
  very was we were what when where which while who whom whose why will with would you your yours d don didn doesn isn
  aren wasn weren won shouldn wouldn couldn hasn haven hadn ain gonna wanna got get yes yeah ok okay oh hey hi hello
  wow thanks thank please really`.split(/\s+/),
);

const IRREGULAR = table(`
  go went gone goes|buy bought|bring brought|think thought|teach taught|catch caught|fight fought|seek sought
  see saw seen|take took taken|give gave given|write wrote written|ride rode ridden|drive drove driven
  eat ate eaten|speak spoke spoken|break broke broken|choose chose chosen|steal stole stolen|wake woke woken
  begin began begun|drink drank drunk|sing sang sung|swim swam swum|run ran|come came|become became
  make made|meet met|feel felt|keep kept|sleep slept|leave left|lose lost|send sent|spend spent|build built
  tell told|sell sold|hold held|hear heard|find found|stand stood|understand understood|win won|sit sat
  say said|pay paid|lead led|read|feed fed|know knew known|grow grew grown|throw threw thrown|fly flew flown
  draw drew drawn|wear wore worn|tear tore torn|fall fell fallen|forget forgot forgotten|hide hid hidden
  bite bit bitten|shake shook shaken|rise rose risen|get got gotten|mean meant|deal dealt|dream dreamt
  child children|person people persons|man men|woman women|foot feet|tooth teeth|mouse mice|wife wives
  life lives|knife knives|leaf leaves|half halves|shelf shelves|self selves|die died dying dies|lie lied lying
  tie tied tying ties|good better best|bad worse worst`);

/** Synonyms people use when they ask about something later. Deliberately few and undisputed. */
const SAME = table(`
  mother mom mum mommy|father dad daddy|child kid|picture photo pic photograph image|movie film|bike bicycle
  television tv|grandmother grandma granny|grandfather grandpa|begin start|buy purchase|job work occupation career
  sick ill|vacation holiday trip travel journey|car automobile vehicle|wedding marriage marry|doctor physician
  phone telephone|apartment flat|shop store|sofa couch|fall autumn|happy glad|big large|often frequent
  friend buddy pal|dog puppy pup doggy|cat kitten kitty|author writer|book novel|gift present
  show display|help assist aid|hobby pastime|exam test|university college|company firm business`);

function table(rows: string): Map<string, string> {
  const forms = new Map<string, string>();
  for (const row of rows.split(/[|\n]/)) {
    const [word, ...others] = row.trim().split(' ');
    if (word) for (const other of others) forms.set(other, word);
  }
  return forms;
}

const VOWEL = /[aeiouy]/;

/** Rough: "painted" and "painter" are one term. A wrong stem is harmless if always the same. `word`: lower case, a to z. */
export function stem(word: string): string {
  const plain = IRREGULAR.get(word) ?? word;
  const singular = withoutPlural(plain);
  const known = IRREGULAR.get(singular) ?? singular;
  const base = withoutTense(SAME.get(known) ?? known);
  return ending(withoutSuffix(SAME.get(base) ?? SAME.get(`${base}e`) ?? base));
}

function withoutPlural(word: string): string {
  if (word.length < 4 || !word.endsWith('s') || /(?:ss|us|is)$/.test(word)) return word;
  if (word.endsWith('ies')) return word.length > 4 ? `${word.slice(0, -3)}y` : word.slice(0, -1);
  return /(?:sh|ch|x|z|ss)es$/.test(word) ? word.slice(0, -2) : word.slice(0, -1);
}

function withoutTense(word: string): string {
  const cut = /^(.{2,}?)(?:ing|ed)$/.exec(word)?.[1];
  if (cut === undefined || !VOWEL.test(cut)) return word;
  if (word.endsWith('eed')) return word;
  return withoutDouble(cut);
}

function withoutDouble(word: string): string {
  return /([bdgkmnprt])\1$/.test(word) ? word.slice(0, -1) : word;
}

/** At most one is removed, and only if enough is left to tell words apart. */
const SUFFIX =
  /^(.{3,})(?:ational|fulness|ousness|iveness|ement|ments?|ness|ances?|ences?|able|ible|ists?|isms?|fully|ful|less|ity|ally|ly|al|ers?|ors?|est|ship|ion)$/;

function withoutSuffix(word: string): string {
  if (word.length < 6) return word;
  const cut = SUFFIX.exec(word);
  if (cut?.[1] === undefined) return word;
  if (word.endsWith('ion') && !/[st]$/.test(cut[1])) return word;
  return withoutDouble(cut[1]);
}

function ending(word: string): string {
  if (word.length > 3 && word.endsWith('e')) return word.slice(0, -1);
  return word.length > 2 && /[^aeiou]y$/.test(word) ? `${word.slice(0, -1)}i` : word;
}
