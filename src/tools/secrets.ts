/** Finds secrets in a text by their forms, names and check digits (docs/decisions/0010). Pure. */
import * as tables from './secret-patterns.js';

interface FoundSecret {
  /** With its article: `a password`, `a GitHub token`. */
  kind: string;
  /** Its position in the text, or that of its line. */
  at: number;
  /** The bare secret, to recognise it elsewhere. Never shown, never logged. */
  value: string;
}

/** The first secret not in `known`, the text being replaced: a person's own entry may stay. Lines count from 1. */
export function secretIn(text: string, known = ''): { kind: string; line: number } | null {
  const plain = normalised(text);
  const found = secretsOf(plain);
  if (found.length === 0) return null;
  const knownValues = new Set(secretsOf(normalised(known)).map(({ value }) => value));
  const first = found.find(({ value }) => !knownValues.has(value));
  return first ? { kind: first.kind, line: plain.slice(0, first.at).split('\n').length } : null;
}

function secretsOf(text: string): FoundSecret[] {
  return [
    ...matching(text, SHAPES),
    ...wrapped(text),
    ...matching(text, POSITIONS),
    ...named(text),
    ...underHeadings(text),
    ...inTables(text),
  ].sort((a, b) => a.at - b.at);
}

/** Canonical characters (also for full-width ones) and line ends, nothing invisible. */
function normalised(text: string): string {
  return text
    .replace(/\r\n?|[\u2028\u2029]/g, '\n')
    .normalize('NFKC')
    .replace(/[\u00AD\u200B-\u200F\u2060-\u2064\uFEFF]/g, '');
}

function linesOf(text: string): { line: string; at: number }[] {
  let next = 0;
  return text.split('\n').map((line) => {
    const at = next;
    next += line.length + 1;
    return { line, at };
  });
}

const BEGINS = '(?<![\\p{L}\\p{N}])';
const ENDS = '(?![\\p{L}\\p{N}])';
/** Chinese and similar scripts have no space after a word. */
const ENDS_NAME = `(?:${ENDS}|(?<=[\\p{Lo}\\p{Lm}]))`;
const ANY_PASSWORD = `(?:${tables.PASSWORD_SUFFIXES}|${BEGINS}(?:${tables.PASSWORDS}))`;
const PASSWORD_NAME = `${ANY_PASSWORD}${ENDS_NAME}`;
const RANDOM = '(?=[A-Za-z0-9]{0,40}\\d)(?=\\d{0,40}[A-Za-z])[A-Za-z0-9]';
const { NUMBER, PHRASE_WORD, PHRASE_GAP } = tables;
const PARTS = { RANDOM, BEGINS, ENDS, PASSWORD_NAME, NUMBER, PHRASE_WORD, PHRASE_GAP };

function patternsOf(table: string, flags: string, before = '') {
  const rows = table.trim().split('\n');
  return rows.map((row) => {
    const [kind = '', ...source] = row.split(': ');
    let whole = source.join(': ');
    for (const [name, part] of Object.entries(PARTS)) whole = whole.replaceAll(name, part);
    return { kind, pattern: new RegExp(`${before}(?:${whole})`, flags) };
  });
}

/** At the beginning of a word only: `desk-…` contains no `sk-…`. */
const SHAPES = patternsOf(tables.SHAPES, 'g', '(?<![A-Za-z0-9])');
const ANY_SHAPE = new RegExp(SHAPES.map(({ pattern }) => pattern.source).join('|'));
const POSITIONS = [...patternsOf(tables.POSITIONS, 'gu'), ...patternsOf(tables.POSITIONS_IN_ANY_CASE, 'giu')];
/** Stars, dots or a variable name in place of the secret. */
const MASKED = /[*•]{3}|\.{3}|:(?:\$\{?\w+\}?|\{+[^{}]*\}+|%\w+%|\[[^[\]]*\]|x{3,}|_+)@/i;
const CHECKS = new Map<string, (value: string) => boolean>([
  ['shape', (value) => !MASKED.test(value)],
  ['password', looksLikePassword],
  ['login', (value) => looksLikeKey(value, 8) || /[a-z][A-Z]|=$/.test(value)],
  ['code', (value) => /\d/.test(value)],
  ['card', isCardNumber],
]);

function matching(text: string, patterns: ReturnType<typeof patternsOf>): FoundSecret[] {
  return patterns.flatMap(({ kind, pattern }) =>
    [...text.matchAll(pattern)].flatMap((match) => {
      const [[group, found] = ['shape', match[0]]] = Object.entries(match.groups ?? {});
      const bare = group === 'shape' ? found : unquoted(found);
      // One number, however its digits are grouped.
      const value = group === 'card' ? bare.replace(/\D/g, '') : bare;
      return CHECKS.get(group)?.(value) === false ? [] : [{ kind, at: match.index, value }];
    }),
  );
}

/** Tokens wrapped across a line end: the line's last word, and the starts of the next three lines. */
function wrapped(text: string): FoundSecret[] {
  // Without Markdown's line prefix, and the backslash of a line break.
  const bare = (line: string) =>
    line
      .trimEnd()
      .replace(/^[\s>]+/, '')
      .replace(/\\$/, '');
  const lines = linesOf(text).map(({ line, at }) => ({ at, words: bare(line) }));
  return lines.flatMap(({ at, words }, row) => {
    const first = words.slice(words.lastIndexOf(' ') + 1);
    // A token that is whole on its line is found already.
    if (first === '' || ANY_SHAPE.test(first)) return [];
    let token = first;
    for (const next of lines.slice(row + 1, row + 4)) {
      const [word = ''] = next.words.split(/\s/, 1);
      token += word;
      const found = token.length >= 20 && ANY_SHAPE.test(token) ? matching(token, SHAPES) : [];
      const secret = found.find((each) => each.at < first.length);
      if (secret !== undefined) return [{ ...secret, at }];
      if (word === '' || word !== next.words) break;
    }
    return [];
  });
}

// By name: `password: …`, `my password is …`, `API_KEY=…`. The weaker the link between name and value, the
// more the value must look like a secret.

const NAMES = new RegExp(
  `(?:(?<key>${tables.KEYS})|(?<ambiguousKey>${BEGINS}(?:${tables.AMBIGUOUS_KEYS}))|` +
    `(?<password>${ANY_PASSWORD})|${BEGINS}(?:${tables.AMBIGUOUS_PASSWORDS}))${ENDS_NAME}`,
  'giu',
);

/** Markup of Markdown, JSON and quotes around a name or a value. */
const MARKS = '[*_"\'`“”„«»‘’~\\])}]{0,4}';
/** `password (router): …`, `password for the wifi: …`, `password_2=…`. */
const ABOUT = `(?:\\s?\\([^()\\n]{1,40}\\)|\\s(?:${tables.PREPOSITIONS})\\s[^\\n:=|]{1,40}?|[_-]?\\d{1,2})?`;
const between = (source: string) => new RegExp(`^${MARKS}${ABOUT}${MARKS}${source}`, 'iu');
const ASSIGNED = between(`(?:[ \\t]{0,3}(?::=|=>|[:=]{1,2})\\s{0,3}|>(?=\\S))(?!\`\`\`|~~~)${MARKS}\\s{0,8}`);
const SAID = between(`\\s{1,3}(?:${tables.COPULAS})${ENDS}:?\\s{0,3}`);
const SAID_OTHERWISE = between(
  `\\s{0,3}(?:(?:${tables.OTHER_COPULAS})${ENDS}|${tables.UNSPACED_COPULAS}):?\\s{0,3}`,
);
const BESIDE = new RegExp(`^${MARKS}(?:[ \\t]{1,8}|\\s{1,3})`, 'u');
const BESIDE_UNSPACED = new RegExp(`^${MARKS}[ \\t]{0,8}`, 'u');
/** Maximum distance between a name and the end of its value. */
const REACH = 300;

function named(text: string): FoundSecret[] {
  return [...text.matchAll(NAMES)].flatMap((name) => {
    const end = name.index + name[0].length;
    const rest = text.slice(end, end + REACH);
    const { key, ambiguousKey, password } = name.groups ?? {};
    const isKey = key !== undefined || ambiguousKey !== undefined;
    const beside = /[\p{Lo}\p{Lm}]$/u.test(name[0]) ? BESIDE_UNSPACED : BESIDE;
    const assigned = ASSIGNED.exec(rest)?.[0];
    const said = assigned ?? SAID.exec(rest)?.[0];
    const joint = said ?? SAID_OTHERWISE.exec(rest)?.[0] ?? beside.exec(rest)?.[0];
    const value = joint === undefined ? null : valueAt(rest, joint.length);
    if (joint === undefined || value === null) return [];
    // A heading with the value alone on the line below; not a sentence that continues there.
    if (said === undefined && joint.includes('\n') && !value.alone) return [];
    const certain = key !== undefined || password !== undefined || assigned?.includes('=') === true;
    const secret = { kind: isKey ? 'a key or token' : 'a password', at: end + value.at, value: value.text };
    if (isKey) {
      const shortest = assigned === undefined ? (key !== undefined ? 12 : 16) : certain ? 8 : 16;
      return looksLikeKey(value.text, shortest) ? [secret] : [];
    }
    // A plain word counts only if unambiguous: on the same line, with nothing after it.
    const mayBePlain =
      certain && said !== undefined && (value.quoted || (value.alone && !said.includes('\n')));
    const { text: word } = value;
    const couldBeOne = mayBePlain && word.length >= 4 && !isNoValue(word) && !PARTICIPLE.test(word);
    return couldBeOne || looksLikePassword(word) ? [secret] : [];
  });
}

interface Value {
  text: string;
  at: number;
  /** In quotes, backticks or a fence. */
  quoted: boolean;
  /** The line, sentence or field ends after it. */
  alone: boolean;
}

const FENCE = /^(?:```|~~~)[^\n]*\n\s*/;
const LIST_MARK = /^(?:[-*+>]|\d{1,2}[.)])\s+/;
const CLOSERS = new Map(
  Object.entries({ '"': '"', "'": "'", '`': '`', '“': '”', '„': '“”', '«': '»', '‘': '’' }),
);
/** Up to a space, a quote, a URL's next field, a closing tag, or a script without capitals (prose). */
const WORD = /^(?:(?![;&][\w .-]{1,30}=|<\/)[^\s"`\p{Lo}\p{Lm}、。」])+/u;

/** The value after a name, and the text that joins the two. */
function valueAt(rest: string, from: number): Value | null {
  const fence = FENCE.exec(rest.slice(from))?.[0];
  const at = from + (fence ?? LIST_MARK.exec(rest.slice(from))?.[0] ?? '').length;
  // The name's match may have included the opening quote.
  const inside = CLOSERS.has(rest.charAt(at)) ? at + 1 : at;
  const closers = CLOSERS.get(rest.charAt(inside - 1));
  const line = rest.slice(inside).split('\n', 1)[0] ?? '';
  const close = closers === undefined ? -1 : line.search(new RegExp(`[${closers}]`));
  const quotation = line.slice(0, Math.max(0, close)).trim();
  if (quotation !== '') return { text: quotation, at: inside, quoted: true, alone: true };
  return bareValueAt(rest, at, fence !== undefined);
}

function bareValueAt(rest: string, at: number, quoted: boolean): Value | null {
  const line = rest.slice(at).split('\n', 1)[0] ?? '';
  const word = WORD.exec(line)?.[0] ?? '';
  const text = word.replace(/^[*_]+|(?<![*_.,:;'’”»)\]}])[*_.,:;'’”»)\]}]+$/g, '');
  const after = line.slice(word.length);
  const alone =
    /^\s*$|^\s*[;&|<>"`/(*]/.test(after) ||
    /\.$/.test(word) ||
    (/,$/.test(word) && /^\s*[\w ]{1,30}[:=]/.test(after));
  return text === '' ? null : { text, at, quoted, alone };
}

/** A heading, bold words, or a line that ends with a colon. */
const HEADING = new RegExp(`^(?=\\s*#|\\s*\\*\\*|.*:[\\s*_]*$).{0,60}${PASSWORD_NAME}[\\s:*_]*$`, 'iu');
const ITEM = /^\s*(?:[-*+]|\d{1,2}[.)])\s+(?=\S).*?[:=–—-]\s+(?<value>\S+)/u;

/** `## Passwords`, then `- router: …`. */
function underHeadings(text: string): FoundSecret[] {
  let under = false;
  return linesOf(text).flatMap(({ line, at }) => {
    if (line.trim() === '') return [];
    const item = ITEM.exec(line);
    if (item === null) under = HEADING.test(line);
    const value = unquoted(item?.groups?.value ?? '');
    return under && looksLikePassword(value) ? [{ kind: 'a password', at, value }] : [];
  });
}

/** In a Markdown table a value is below its name or to the right; both are read as `name: value`. */
function inTables(text: string): FoundSecret[] {
  let header: string[] | null = null;
  let above: string[] = [];
  return linesOf(text).flatMap(({ line, at }) => {
    const cells = line.includes('|') ? cellsOf(line) : [];
    const isRule = cells.length > 0 && line.includes('-') && /^[\s|:-]+$/.test(line);
    if (cells.length === 0) header = null;
    else if (isRule) header = above;
    above = cells;
    if (isRule || cells.length === 0) return [];
    // Outside a table's body, adjacent cells need not be a name and its value.
    const joint = header === null ? ' ' : ': ';
    const pairs = cells.flatMap((cell, column) => [
      { name: header?.[column] ?? '', value: cell },
      { name: cells[column - 1] ?? '', value: cell },
    ]);
    return pairs
      .filter(({ name, value }) => name !== '' && value !== '')
      .flatMap(({ name, value }) => named(`${name}${joint}${value}`))
      .map((secret) => ({ ...secret, at }));
  });
}

function cellsOf(line: string): string[] {
  const cells = line.trim().replace(/^\||\|$/g, '');
  return cells.split(/(?<!\\)\|/).map((cell) => cell.trim());
}

function unquoted(value: string): string {
  return value.replace(/^["'`*]+|(?<!["'`*.,;])["'`*.,;]+$/g, '');
}

/** Words in a password's place that are none: `password: unknown`. */
const NOT_A_VALUE = new Set(
  `unknown none null nil undefined empty blank missing required optional hidden secret private confidential redacted
  removed deleted changed unchanged updated rotated expired reset set unset new old same yes no true false ok okay
  never always here there below above see ask asked later soon today tomorrow tbd todo n/a na wip string text str
  char varchar boolean number int integer field input type value values rules rule policy manager hint hints tips
  forgotten lost wrong correct incorrect invalid valid secure insecure safe unsafe strong weak long short simple easy
  hard complex complicated different public encrypted hashed stored saved kept shared needed pending working broken
  gone fine good great bad tricky ready silly funny lengthy handy weekly monthly yearly daily quarterly important
  sensitive classified case-sensitive vault keychain keepass bitwarden 1password lastpass dashlane keeper
  unbekannt keine keins keines leer fehlt geheim vergessen geändert erneuert abgelaufen falsch richtig sicher
  unsicher stark schwach neu alt gleich siehe ja nein nötig erforderlich später morgen
  desconocida desconocido ninguna ninguno cambiada olvidada secreta segura nueva vacía pendiente
  inconnu aucun changé oublié nouveau vide desconhecida nenhuma alterada esquecida sconosciuta nessuna cambiata
  dimenticata nuova vuota неизвестен неизвестно забыт изменён изменен сменён секрет новый старый
  onbekend geen vergeten gewijzigd`.split(/\s+/),
);
/** Stars and other masks; variables and template placeholders; paths and addresses; dates; file names. */
const NOT_A_VALUE_PATTERNS = [
  /[*•●·]{3}|\.{3}|^(\D)\1*$|^%\w+%$|^\$?[<{[(]|^(?:process\.)?env[.(]|^os\.environ|^(?:~|\.{1,2})?\/|^[A-Za-z]:\\|:\/\/|^www\.|^your[-_]|redacted/i,
  // Case-sensitive, to tell it from a password that begins alike.
  /^\$(?:[A-Z][A-Z0-9_]+|[a-z_]+)$/,
  /^(?:\d{4}-\d{1,2}(?:-\d{1,2})?(?:t[\d:.]+z?)?|\d{1,2}[./]\d{1,2}[./](?:\d{2}|\d{4})|\d{1,2}:\d{2}(?::\d{2})?(?:am|pm)?)$/i,
  /^[\w.+-]+@[\w-]+(?:\.[\w-]+)+$/,
  /^[\w./-]+\.(?:json|ya?ml|toml|env|ini|txt|md|pem|key|pub|p12|kdbx?|pdf|docx?|js|ts|py|sh|com|org|net|io)$/i,
];
/** Names with digits: methods, standards, programs; amounts with units. */
const NAME_WITH_DIGITS =
  /^(?:(?:1password|2fa|mfa|otp|wpa[23]?|aes|sha|md5|rsa|ed25519|[hr]s|base|utf|oauth|argon2\w{0,2}|pbkdf2|ipv[46]|p12|pkcs|iso|rfc|win|office365|microsoft365|o365|wi-?fi|keepass2?|v|q)(?:-?\d{1,5}|-\w{1,10})?|v\d[\d.]*|\d{1,4}-?(?:st|nd|rd|th|x|h|d|min|[kmgt]b|(?:char|character|digit|word|hour|day|week|month|year|time)s?|zeichen|stellig\w{0,2}))$/i;
/** Words that describe a password. */
const PARTICIPLE = /^[a-z]{2,}(?:ed|ing|able|ible|less|ful|ous|ive|iert|ändert|setzt|lich|bar)$|ть?ся$/i;

/** Visa, Mastercard, Discover, JCB, UnionPay: 16 digits. American Express: 15. Diners: 14. */
const CARD_NUMBER =
  /^(?:4\d{15}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|6(?:011|5\d\d|4[4-9]\d)\d{12}|35[2-8]\d{13}|62\d{14}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11})$/;

function isNoValue(value: string): boolean {
  const patterns = [NAME_WITH_DIGITS, ...NOT_A_VALUE_PATTERNS];
  return NOT_A_VALUE.has(value.toLowerCase()) || patterns.some((pattern) => pattern.test(value));
}

/** Unlike any word: letters and digits, a sign between letters, or at least six digits. */
function looksLikePassword(value: string): boolean {
  if (value.length < 5 || isNoValue(value)) return false;
  if (/^\d{6,}$/.test(value)) return true;
  return /\p{L}/u.test(value) && (/\d/.test(value) || /[\p{L}\p{N}][!@$%^&?]+[\p{L}\p{N}]/u.test(value));
}

/** Has a run of letters and digits of at least this length, unlike any name. */
function looksLikeKey(value: string, shortest: number): boolean {
  if (isNoValue(value) || !/^[A-Za-z0-9][\w.~+/=:-]*$/.test(value)) return false;
  if (/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value)) return true;
  const runs = value.split(/[-_.:=/+~]/).filter((run) => run.length >= shortest);
  return runs.some((run) => /\d/.test(run) && /[A-Za-z]/.test(run) && !NAME_WITH_DIGITS.test(run));
}

/** Luhn check: every second digit from the right counts double. */
function isCardNumber(digits: string): boolean {
  if (!CARD_NUMBER.test(digits)) return false;
  const sum = [...digits].reverse().reduce((total, digit, n) => {
    const counted = n % 2 === 0 ? Number(digit) : Number(digit) * 2;
    return total + (counted > 9 ? counted - 9 : counted);
  }, 0);
  return sum % 10 === 0;
}
