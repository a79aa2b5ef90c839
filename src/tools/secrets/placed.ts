/** Secrets that their place tells: logins, headers, PINs, and lists under a heading that says passwords. */
import { linesOf, type Secret } from './found.js';
import { BEGINS, ENDS, PASSWORD_NAME } from './named.js';
import { looksLikeKey, looksLikePassword } from './values.js';

/** Between the name of a number and the number. */
const JOINT =
  '["*`]{0,2}(?:\\s?(?:code|number))?(?: (?:is|are|ist|lautet|es|est))?\\s?[:=]?\\s{0,2}[-*`"]{0,3}\\s?';

interface Place {
  kind: string;
  pattern: RegExp;
  is: (value: string) => boolean;
}

const PLACES: Place[] = [
  {
    kind: 'a password',
    pattern: new RegExp(
      `${BEGINS}(?<value>\\S{5,80}) (?:is|ist|es|est|è|é) (?:\\p{L}+[ -]){1,3}?${PASSWORD_NAME}`,
      'giu',
    ),
    is: looksLikePassword,
  },
  {
    kind: 'a password',
    pattern:
      /(?:^|\s)(?:-u|--user|(?:logins?|credentials|zugangsdaten|zugang)\s?[:=])\s*[^\s:/]*\p{L}[^\s:/]*(?:\s[:/|]\s|:(?!\/))(?<value>\S{5,80})/giu,
    is: looksLikePassword,
  },
  {
    kind: 'a key or token',
    pattern: /\bauthorization["']?\s*[:=]\s*["']?(?:basic|bearer|token)\s+(?<value>[\w.~+/=-]{8,})/gi,
    is: (value) => looksLikeKey(value, 8) || /[a-z][A-Z]|=$/.test(value),
  },
  {
    kind: 'a password',
    pattern: /WIFI:(?:[A-Z]:[^;\n]{0,64};){0,4}P:(?<value>[^;\n]{4,64});/g,
    is: () => true,
  },
  {
    kind: 'a PIN',
    pattern: new RegExp(`${BEGINS}PIN${JOINT}(?<value>\\d{4})(?![\\d\\p{L}]|[-/.:]\\d)`, 'gu'),
    is: () => true,
  },
  {
    kind: 'a PUK',
    pattern: new RegExp(`${BEGINS}PUK2?${JOINT}(?<value>\\d{8})${ENDS}`, 'gu'),
    is: () => true,
  },
  {
    kind: 'a card code',
    pattern: new RegExp(`${BEGINS}(?:CVV2?|CVC2?)${JOINT}(?<value>\\d{3,4})${ENDS}`, 'gu'),
    is: () => true,
  },
  {
    kind: 'a backup code',
    pattern: new RegExp(
      `(?:backup|recovery|emergency|one-time)[ -]codes?${JOINT}(?<value>[a-z0-9]{4,8}[- ]?[a-z0-9]{4,8})${ENDS}`,
      'giu',
    ),
    is: (value) => /\d/.test(value),
  },
];

export function placedSecrets(text: string): Secret[] {
  const found = PLACES.flatMap(({ kind, pattern, is }) =>
    [...text.matchAll(pattern)].flatMap((match) => {
      const value = bare(match.groups?.value ?? '');
      return is(value) ? [{ kind, at: match.index, value }] : [];
    }),
  );
  return [...found, ...listed(text)];
}

/** A heading, bold words, or a line that ends with a colon. */
const HEADING = new RegExp(`^(?=\\s*#|\\s*\\*\\*|.*:[\\s*_]*$).{0,60}${PASSWORD_NAME}[\\s:*_]*$`, 'iu');
const ITEM = /^\s*(?:[-*+]|\d{1,2}[.)])\s+.*?[:=–—-]\s+(?<value>\S+)/u;

/** `## Passwords`, then `- router: …`. */
function listed(text: string): Secret[] {
  let under = false;
  return linesOf(text).flatMap(({ text: line, at }) => {
    if (line.trim() === '') return [];
    const item = ITEM.exec(line);
    const value = bare(item?.groups?.value ?? '');
    if (item === null) under = HEADING.test(line);
    return under && looksLikePassword(value) ? [{ kind: 'a password', at, value }] : [];
  });
}

function bare(value: string): string {
  return value.replace(/^["'`*]+|["'`*.,;]+$/g, '');
}
