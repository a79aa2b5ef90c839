/** Step 3 of the route, pure: whom a text addresses by name. For people any name counts, for personas only an address. */
import { DEFAULT_PERSONA, type PersonaId } from '../../core/ids.js';
import type { Persona } from '../../core/persona.js';

/** A persona and its names, normalised for comparison. */
export interface Called {
  id: PersonaId;
  names: string[];
}

export function calledOf({ id, name, aliases }: Persona): Called {
  return { id, names: [name, id, ...aliases].filter((each) => each.trim() !== '').map(fold) };
}

/** Explicit address: `@luna …` anywhere, or `luna: …` at the start. Absent personas count, too. */
export function calledPlainly(words: string, personas: readonly Called[]): PersonaId[] {
  const text = fold(words);
  return inOrder(personas, (name) => plainCall(text, name));
}

/** For transcribed speech, which has no colon or `@`: a name at the very start, followed by any punctuation. */
export function calledAloud(words: string, personas: readonly Called[]): PersonaId[] {
  const text = fold(words);
  return inOrder(personas, (name) => (startsWith(text, name, /^\s*[:：,，.!?…]/u) ? 0 : -1));
}

/** All personas whose name appears anywhere, except `default`, which is too common a word. */
export function named(words: string, personas: readonly Called[]): PersonaId[] {
  const text = fold(words);
  return inOrder(personas, (name) => (name === DEFAULT_PERSONA ? -1 : standsAlone(text, name)));
}

/** The personas addressed explicitly, and those listed with them: `@Luna and Max, …`. Names elsewhere in the text are ignored. */
export function calledTogether(words: string, present: readonly Called[]): PersonaId[] {
  const text = fold(words);
  const places = present.flatMap(({ id, names }) =>
    names.flatMap((name) => occurrences(text, name).map((at) => ({ id, at, end: at + name.length }))),
  );
  const plainly = new Set(calledPlainly(words, present));
  const called = new Set(plainly);
  for (let found = plainly.size; found > 0; ) {
    const before = called.size;
    for (const place of places) {
      const isBeside = places.some(
        (other) =>
          called.has(other.id) &&
          (isConnector(text.slice(other.end, place.at)) || isConnector(text.slice(place.end, other.at))),
      );
      if (isBeside) called.add(place.id);
    }
    found = called.size - before;
  }
  const together = present.filter(({ id }) => called.has(id));
  return inOrder(together, (name) => standsAlone(text, name));
}

/** The personas that a persona's reply addresses: `@Name` anywhere, or a name set off by a comma or a colon. */
export function turnedTo(words: string, present: readonly Called[]): PersonaId[] {
  const text = fold(words);
  return inOrder(present, (name) => {
    const plain = plainCall(text, name);
    return plain >= 0 || name === DEFAULT_PERSONA ? plain : vocative(text, name);
  });
}

const CONNECTOR = /^[\s,、，&+/@]*(?:(?:and|und|et|y|e|i|en|og|och|ve|和|跟|と)[\s,、，&+/@]*)?$/u;

function isConnector(between: string): boolean {
  return between !== '' && between.length < 12 && CONNECTOR.test(between);
}

/** Those with a name that has a place in a text, by the first place. -1: none. */
function inOrder(personas: readonly Called[], placeOf: (name: string) => number): PersonaId[] {
  return personas
    .map(({ id, names }) => ({ id, at: Math.min(...names.map(placeOf).filter((at) => at >= 0)) }))
    .filter(({ at }) => at < Number.POSITIVE_INFINITY)
    .sort((a, b) => a.at - b.at)
    .map(({ id }) => id);
}

function plainCall(text: string, name: string): number {
  return startsWith(text, name, /^\s*[:：]/u) ? 0 : standsAlone(text, `@${name}`);
}

function startsWith(text: string, name: string, sign: RegExp): boolean {
  const start = text.trimStart();
  return start.startsWith(name) && sign.test(start.slice(name.length, name.length + 10));
}

/** At the start of a line or sentence before a comma or colon; or after a comma at the end of a sentence. */
function vocative(text: string, name: string): number {
  for (const at of occurrences(text, name)) {
    const before = text.slice(0, at).trimEnd();
    const after = text.slice(at + name.length, at + name.length + 5).replace(/^[\s*_]+/, '');
    if (begins(before, text[at - 1]) && /^[,，、،:：!！?？؟]/u.test(after)) return at;
    if (/[,，、،]$/u.test(before) && (after === '' || /^[.!?…。！？؟]/u.test(after))) return at;
  }
  return -1;
}

/** Whether the next character begins a line or a sentence; `last` is the one just before it. */
function begins(before: string, last: string | undefined): boolean {
  return before === '' || /[.!?…。！？؟\n*_"“]$/u.test(before) || last === '\n';
}

/** Index of a name's first occurrence as a whole word, or -1. An `@` after a word character is an e-mail address. */
function standsAlone(text: string, name: string): number {
  return occurrences(text, name)[0] ?? -1;
}

function occurrences(text: string, name: string): number[] {
  const found: number[] = [];
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    const end = at + name.length;
    const inAddress =
      name.startsWith('@') && WORD.test(text[at - 1] ?? ' ') && !UNSPACED.test(text[at - 1] ?? ' ');
    if (!inAddress && !glued(text[at - 1], text[at]) && !glued(text[end - 1], text[end])) found.push(at);
    if (found.length >= MOST_OCCURRENCES) break;
  }
  return found;
}

/** Limits the search in long texts: more occurrences of one name change nothing. */
const MOST_OCCURRENCES = 20;

const WORD = /[\p{L}\p{N}_]/u;
/** Scripts without spaces between words: an adjacent character may belong to the next word. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u;

function glued(left: string | undefined, right: string | undefined): boolean {
  if (left === undefined || right === undefined || UNSPACED.test(left + right)) return false;
  return WORD.test(left) && WORD.test(right);
}

export function fold(text: string): string {
  return text.normalize('NFKC').toLowerCase();
}

/** Words people say before a name when they call somebody, in lower case. */
const GREETING_WORDS = [
  'hey|hi|hello|hiya|yo|ok|okay|dear|good (?:morning|afternoon|evening|night)',
  'hallo|moin|servus|guten (?:morgen|tag|abend)|salut|coucou|bonjour|bonsoir|dis|hola|oye|buen(?:os|as) \\p{L}+',
  'oi|olá|ola|bo[ma] (?:dia|tarde|noite)|ciao|ehi|buongiorno|buonasera|hoi|hej|hei|cześć|ahoj|szia|selam|merhaba',
  'привет|эй|слушай|добр\\p{L}+ (?:утро|день|вечер)|привіт|здравей|γεια(?: σου)?|هاي|مرحبا|يا|היי|הי|नमस्ते|हे',
  'halo|hai|xin chào|chào|สวัสดี|嘿|嗨|喂|你好|您好|早上好|哈喽|哈囉|ねえ|ねぇ|やあ|おい|おはよう|こんにちは|안녕|저기',
].join('|');
const GREETING = new RegExp(
  `(?:^|[\\s\\p{P}])(?:${GREETING_WORDS.normalize('NFKC')})(?: there)?[\\s,，、،!！]*$`,
  'u',
);
/** Longer than any greeting. */
const GREETING_CHARS = 40;
/** Suffixes that polite people append to a name. */
const HONORIFIC = '\\s?(?:さん|ちゃん|くん|君|様|さま|先生|님|씨|아|야|जी)|-(?:san|chan|kun|ji)';

/** Whether a text calls the bot. Its name may be any word, so only an address counts; `aloud`: also the first word. */
export function callsBot(words: string, names: readonly string[], aloud?: 'aloud'): boolean {
  const said = fold(words);
  return callable(names).some((name) => {
    const text = said.replaceAll(honorificsAfter(name), '');
    const isAlone = text.length <= name.length + GREETING_CHARS && withoutSigns(text) === withoutSigns(name);
    if (isAlone || plainCall(text, name) >= 0 || vocative(text, name) >= 0) return true;
    // Signs and spaces may precede the first word.
    const isFirst = (at: number) => aloud !== undefined && !/[\p{L}\p{N}]/u.test(text.slice(0, at));
    return occurrences(text, name).some((at) => isGreeted(text, at) || isFirst(at));
  });
}

function isGreeted(text: string, at: number): boolean {
  const before = text.slice(Math.max(0, at - GREETING_CHARS), at);
  const greeting = GREETING.exec(before);
  if (greeting === null) return false;
  const earlier = before.slice(0, greeting.index + 1);
  return greeting.index === 0 || begins(earlier.trimEnd(), earlier.at(-1));
}

/** The names as people say them: without emoji, brackets, and a suffix such as "bot". */
function callable(names: readonly string[]): string[] {
  const found = names.flatMap((each) => {
    const plain = withoutSigns(each.replaceAll(/\([^()]*\)|\[[^[\]]*\]/gu, ' '));
    const short = plain.replace(/(?<=\p{Ll})Bot$/u, '').replace(/(?<![\s_-])[\s_-]+(?:bot|ai)$/iu, '');
    return [each.trim(), plain, short].map(fold);
  });
  return [...new Set(found)].filter((name) => /[\p{L}\p{N}]/u.test(name));
}

/** Without leading and trailing characters that are not letters or digits. */
function withoutSigns(text: string): string {
  return text.replace(/^[^\p{L}\p{N}]+/u, '').replace(/[^\p{L}\p{N}\p{M}]+$/u, '');
}

function honorificsAfter(name: string): RegExp {
  const exact = name.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`(?<=${exact})(?:${HONORIFIC})(?![\\p{L}\\p{M}])`, 'gu');
}
