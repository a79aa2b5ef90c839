/**
 * Secrets by what they are called: `password: …`, `my password is …`, `API_KEY=…`. What stands after the name
 * decides, and the less there is between the two, the more it must look like a secret.
 */
import type { Secret } from './found.js';
import { couldBePassword, looksLikeKey, looksLikePassword } from './values.js';
import * as words from './words.js';

export const ENDS = '(?![\\p{L}\\p{N}])';
export const BEGINS = '(?<![\\p{L}\\p{N}])';
/** Chinese and the like set no space after a word. */
const ENDS_NAME = `(?:${ENDS}|(?<=[\\p{Lo}\\p{Lm}]))`;

const ANY_PASSWORD = `(?:${words.COMPOUND_PASSWORDS.join('|')}|${BEGINS}(?:${words.PASSWORDS.join('|')}))`;
/** What a text or a line of it calls a password. */
export const PASSWORD_NAME = `${ANY_PASSWORD}${ENDS_NAME}`;

const NAMES = new RegExp(
  [
    `(?<key>${words.KEYS.join('|')})`,
    `(?<bare>${BEGINS}(?:${words.BARE_KEYS.join('|')}))`,
    `(?<password>${ANY_PASSWORD})`,
    `(?<short>${BEGINS}(?:${words.SHORT_PASSWORDS.join('|')}))`,
  ]
    .map((name) => `${name}${ENDS_NAME}`)
    .join('|'),
  'giu',
);

/** What Markdown, JSON and quotes set around a name or a value. */
const MARKS = '[*_"\'`“”„«»‘’~\\])}]{0,4}';
/** `password (router): …`, `password for the wifi: …`, `password_2=…`. */
const ABOUT = `(?:\\s?\\([^()\\n]{1,40}\\)|\\s(?:${words.PREPOSITIONS})\\s[^\\n:=|]{1,40}?|[_-]?\\d{1,2})?`;

const ASSIGNED = joint(`(?:[ \\t]{0,3}(?::=|=>|[:=]{1,2})\\s{0,3}|>(?=\\S))(?!\`\`\`|~~~)${MARKS}\\s{0,8}`);
const SAID = joint(`\\s{1,3}(?:${words.COPULAS})${ENDS}:?\\s{0,3}`);
const SAID_OTHERWISE = joint(
  `\\s{0,3}(?:(?:${words.OTHER_COPULAS})${ENDS}|${words.JOINED_COPULAS}):?\\s{0,3}`,
);
const BESIDE = new RegExp(`^${MARKS}(?:[ \\t]{1,8}|\\s{1,3})`, 'u');
const JOINED = new RegExp(`^${MARKS}[ \\t]{0,8}`, 'u');

function joint(source: string): RegExp {
  return new RegExp(`^${MARKS}${ABOUT}${MARKS}${source}`, 'iu');
}

interface Value {
  text: string;
  /** Where it begins, counted from the name. */
  at: number;
  /** In quotes, backticks or a fence. */
  quoted: boolean;
  /** The line, the sentence, the field ends after it. */
  alone: boolean;
}

/** How far from its name a value may end. */
const REACH = 300;

export function namedSecrets(text: string): Secret[] {
  return [...text.matchAll(NAMES)].flatMap((name) => {
    const end = name.index + name[0].length;
    const rest = text.slice(end, end + REACH);
    const { key, bare, password } = name.groups ?? {};
    const isKey = key !== undefined || bare !== undefined;
    const beside = /[\p{Lo}\p{Lm}]$/u.test(name[0]) ? JOINED : BESIDE;
    const value = isKey
      ? keyAfter(rest, key !== undefined, beside)
      : passwordAfter(rest, password !== undefined, beside);
    if (value === null) return [];
    return [
      {
        kind: isKey ? 'a key or token' : 'a password',
        at: end + value.at,
        value: value.text,
      },
    ];
  });
}

function keyAfter(rest: string, certain: boolean, beside: RegExp): Value | null {
  const assigned = ASSIGNED.exec(rest)?.[0];
  const value = valueAfter(rest, assigned, SAID, SAID_OTHERWISE, beside);
  const equals = assigned?.includes('=') === true;
  const shortest = assigned === undefined ? (certain ? 12 : 16) : certain || equals ? 8 : 16;
  return value !== null && looksLikeKey(value.text, shortest) ? value : null;
}

function passwordAfter(rest: string, certain: boolean, beside: RegExp): Value | null {
  const assigned = ASSIGNED.exec(rest)?.[0];
  const said = assigned ?? SAID.exec(rest)?.[0];
  const value = valueAfter(rest, said, SAID_OTHERWISE, beside);
  if (value === null) return null;
  // A plain word counts where nothing else can be meant: on the same line, and nothing more after it.
  const plain =
    said !== undefined &&
    (certain || assigned?.includes('=') === true) &&
    (value.quoted || (value.alone && !said.includes('\n')));
  return looksLikePassword(value.text) || (plain && couldBePassword(value.text)) ? value : null;
}

const FENCE = /^(?:```|~~~)[^\n]*\n\s*/;
const LIST_MARK = /^(?:[-*+>]|\d{1,2}[.)])\s+/;
const CLOSERS: Record<string, string> = {
  '"': '"',
  "'": "'",
  '`': '`',
  '“': '”',
  '„': '“”',
  '«': '»',
  '‘': '’',
};
/** Up to a space, a quote, the next field of an address, a closing tag, or a script without capitals (prose). */
const WORD = /^(?:(?![;&][\w .-]{1,30}=|<\/)[^\s"`\p{Lo}\p{Lm}、。」])+/u;

/** What stands after what is between; if that is not known yet, after the first of the others that fits. */
function valueAfter(rest: string, between: string | undefined, ...others: RegExp[]): Value | null {
  const known = between ?? others.map((other) => other.exec(rest)?.[0]).find((found) => found !== undefined);
  if (known === undefined) return null;
  const fence = FENCE.exec(rest.slice(known.length));
  const skipped = fence ?? LIST_MARK.exec(rest.slice(known.length));
  const start = known.length + (skipped?.[0].length ?? 0);
  const value = inQuotes(rest, start) ?? bare(rest, start, fence !== null);
  // A heading, and the value alone on the line below it; not a sentence that goes on there.
  const below = between === undefined && known.includes('\n');
  return below && value?.alone !== true ? null : value;
}

/** The opening quote may have been taken with what stands before. */
function inQuotes(rest: string, start: number): Value | null {
  const at = rest.charAt(start) in CLOSERS ? start + 1 : start;
  const closers = CLOSERS[rest.charAt(at - 1)];
  if (closers === undefined) return null;
  const end = rest.slice(at).search(new RegExp(`[${closers}\n]`));
  const text = end < 1 || rest.charAt(at + end) === '\n' ? '' : rest.slice(at, at + end).trim();
  return text === '' ? null : { text, at, quoted: true, alone: true };
}

function bare(rest: string, at: number, quoted: boolean): Value | null {
  const line = rest.slice(at).split('\n', 1)[0] ?? '';
  const word = WORD.exec(line)?.[0] ?? '';
  const text = word.replace(/^[*_]+|[*_.,:;'’”»)\]}]+$/g, '');
  const after = line.slice(word.length);
  const alone =
    /^\s*$|^\s*[;&|<>"`/(*]/.test(after) ||
    /\.$/.test(word) ||
    (/,$/.test(word) && /^\s*[\w ]{1,30}[:=]/.test(after));
  return text === '' ? null : { text, at, quoted, alone };
}
