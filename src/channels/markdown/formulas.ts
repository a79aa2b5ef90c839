/**
 * LaTeX in a reply: `$…$`, `$$…$$`, `\(…\)`, `\[…\]`, `\begin{…}…\end{…}`, and a formula that is still being written at
 * the end. Markdown would read its characters as markup, so each is replaced before parsing and restored
 * afterwards. Code, addresses and amounts in dollars are no formulas. Linear time.
 */
import type { StateCore, Token } from 'markdown-it';

interface Formula {
  /** As in the source, with delimiters. */
  raw: string;
  /** As `raw`, without the line prefixes of quotes and lists. */
  text: string;
  type: 'math' | 'display_math';
}

/** The parser's environment, passed along with the source. */
type FormulaEnv = Record<PropertyKey, unknown> & { formulas?: Formula[] };

/** Noncharacters, which no text contains, around a formula's number. */
const MARK = /\ufdd0(\d{1,9})\ufdd1/;
const ENCODED_MARK = /%EF%B7%90(\d{1,9})%EF%B7%91/g;

/** Replaces each formula in the source by a placeholder. */
export function putAside(source: string): { source: string; env: FormulaEnv } {
  if (!/\$|\\[([]|\\begin\{/.test(source)) return { source, env: {} };
  const clean = source.replace(/[\ufdd0\ufdd1]/g, '\ufffd');
  const formulas: Formula[] = [];
  let marked = '';
  let copied = 0;
  let passed = 0;
  for (const sign of signsIn(clean)) {
    if (sign.at < passed) continue;
    if (sign.kind.startsWith('`')) {
      if (sign.isWithin) passed = sign.closing?.end ?? passed;
      continue;
    }
    const end = endOfFormula(clean, sign);
    if (end === null) continue;
    marked += `${clean.slice(copied, sign.at)}\ufdd0${formulas.length}\ufdd1`;
    const raw = clean.slice(sign.at, end);
    const text = withoutMargin(raw, clean.slice(sign.lineStart, sign.at)).trimEnd();
    formulas.push({ raw, text, type: isInline(sign) ? 'math' : 'display_math' });
    copied = end;
    passed = end;
  }
  return { source: marked + clean.slice(copied), env: { formulas } };
}

/** The parser's last step: formulas in words become tokens of their type, others get their source back. */
export function putBack({ tokens, env, Token }: StateCore): void {
  const { formulas = [] } = env as FormulaEnv;
  if (formulas.length === 0) return;
  const everyMark = new RegExp(MARK, 'g');
  const raw = (text: string) =>
    text
      .replace(everyMark, (all, number: string) => formulas[Number(number)]?.raw ?? all)
      .replace(ENCODED_MARK, (all, number: string) => encodeURI(formulas[Number(number)]?.raw ?? all));

  function restored(token: Token): Token[] {
    token.attrs = token.attrs?.map(([name, value]) => [name, raw(String(value))]) ?? null;
    token.info = raw(token.info);
    token.children = token.children?.flatMap(restored) ?? null;
    if (token.type === 'text') return split(token);
    token.content = raw(token.content);
    return [token];
  }

  function split(token: Token): Token[] {
    if (!MARK.test(token.content)) return [token];
    // With a capturing group, every second piece is a number.
    return token.content.split(MARK).flatMap((piece, at) => {
      const formula = at % 2 === 1 ? formulas[Number(piece)] : undefined;
      if (formula === undefined && piece === '') return [];
      const part = new Token(formula?.type ?? 'text', '', 0);
      part.content = formula?.text ?? piece;
      return [part];
    });
  }

  tokens.forEach(restored);
}

/** Removes the line prefixes of quotes and lists. `before`: the text before the first line. */
function withoutMargin(raw: string, before: string): string {
  const depth = /^(?:[ \t]*>)*/.exec(before)?.[0].replaceAll(/[ \t]/g, '').length ?? 0;
  const quotes = new RegExp(`^(?:[ \\t]{0,3}>[ \\t]?){0,${depth}}`);
  const [first = '', ...rest] = raw.split('\n');
  const lines = rest.map((line) => line.replace(quotes, ''));
  const indents = lines.flatMap((line) => (line.trim() === '' ? [] : line.length - line.trimStart().length));
  const indent = indents.reduce((least, each) => Math.min(least, each), Number.POSITIVE_INFINITY);
  return [first, ...lines.map((line) => line.slice(Math.min(indent, line.length)))].join('\n');
}

interface Sign {
  /** A delimiter, or a run of backticks. */
  kind: string;
  at: number;
  end: number;
  lineStart: number;
  /** The next sign that may end the formula or code which this one begins. */
  closing: Sign | undefined;
  paragraphEnd: number;
  /** Closed in its paragraph. */
  isWithin: boolean;
}

/** Prefixes of quotes and list items. */
const MARGIN = '(?:[ \\t>]|[-*+][ \\t]|\\d{1,9}[.)][ \\t])*';

/** A block of code: a line with the fence, then all lines up to the one that closes it. */
const FENCE_START = `(?:^|\\n)${MARGIN}(?<fence>\`{3,}(?![^\\n]*\`)|~{3,})[^\\n]*`;
const FENCE_END = `\\n${MARGIN}\\k<fence>[\`~]*[ \\t\\r]*(?=\\n|$)`;
const FENCE = `${FENCE_START}(?:(?!${FENCE_END})\\n[^\\n]*)*(?:${FENCE_END})?`;

/** All relevant signs. Escapes, addresses and link targets match whole, hiding any signs inside. */
const SIGN =
  /\\(?:begin|end)\{[A-Za-z]{1,30}\*?\}|\\[^\n]|`+|\$+|https?:\/\/[^\s<>\\`]+|\]\([^()\s]*\)|\n[ \t>]*(?=\n|$)/;
const SIGNS = new RegExp(`${FENCE}|${SIGN.source}`, 'g');
const LONGEST = 4_000;

function closerOf(kind: string): string | undefined {
  const closers: Record<string, string> = { $: '$', $$: '$$', '\\(': '\\)', '\\[': '\\]' };
  if (kind.startsWith('`')) return kind;
  return kind.startsWith('\\begin{') ? kind.replace('\\begin', '\\end') : closers[kind];
}

/** Those that may begin a formula or code. */
function signsIn(source: string): Sign[] {
  let lineStart = 0;
  let looked = 0;
  const found = Array.from(source.matchAll(SIGNS), ({ 0: kind, index: at, groups }) => {
    const lineEnd = source.slice(looked, at).lastIndexOf('\n');
    if (lineEnd >= 0) lineStart = looked + lineEnd + 1;
    looked = at;
    return { kind, at, end: at + kind.length, lineStart, isFence: groups?.fence !== undefined };
  });
  const signs: Sign[] = [];
  const next = new Map<string, Sign>();
  let paragraphEnd = source.length;
  for (const { isFence, ...sign } of found.reverse()) {
    if (isFence || sign.kind.startsWith('\n')) paragraphEnd = sign.at;
    if (isFence) next.clear();
    const closer = isFence ? undefined : closerOf(sign.kind);
    const closing = closer === undefined ? undefined : next.get(closer);
    const isBroken = sign.kind === '$' && (next.get('$$')?.at ?? source.length) < (closing?.at ?? 0);
    const isWithin = closing !== undefined && closing.at < paragraphEnd && !isBroken;
    const whole = { ...sign, closing, paragraphEnd, isWithin };
    next.set(sign.kind, whole);
    if (closer !== undefined) signs.push(whole);
  }
  return signs.reverse();
}

function endOfFormula(source: string, sign: Sign): number | null {
  const { closing, isWithin, paragraphEnd } = sign;
  const mayBeWhole = closing !== undefined && closing.end - sign.at <= LONGEST;
  if (mayBeWhole && (isWithin || mayCross(source, sign, closing)) && isWhole(source, sign, closing)) {
    return closing.end;
  }
  return !isWithin && paragraphEnd - sign.at <= LONGEST && isHalf(source, sign) ? paragraphEnd : null;
}

/** Only a formula that begins a line and cannot be anything else may contain blank lines. */
function mayCross(source: string, opening: Sign, closing: Sign): boolean {
  return (
    !isInline(opening) && beginsLine(source, opening) && isCertain(source.slice(opening.end, closing.at))
  );
}

function isInline({ kind }: Sign): boolean {
  return kind === '$' || kind === '\\(';
}

const MOST_INDENT = 100;
const ONLY_MARGIN = new RegExp(`^${MARGIN}$`);

function beginsLine(source: string, { at, lineStart }: Sign): boolean {
  return at - lineStart <= MOST_INDENT && ONLY_MARGIN.test(source.slice(lineStart, at));
}

function isWhole(source: string, opening: Sign, closing: Sign): boolean {
  if (opening.kind.startsWith('\\begin')) return true;
  const content = source.slice(opening.end, closing.at);
  if (content.trim() === '') return false;
  const [before, after] = [source[opening.at - 1] ?? '', source[closing.end] ?? ''];
  if (opening.kind === '$') {
    return isInDollars(content, before, after) && !crossesCells(source, opening, content);
  }
  return opening.kind === '$$' ? isMath(content) : isInBrackets(opening.kind, content, before, after);
}

/** A formula without an end in its paragraph; an inline one must be on the last line. */
function isHalf(source: string, opening: Sign): boolean {
  const { kind, at, end, paragraphEnd } = opening;
  const content = source.slice(end, paragraphEnd);
  if (content.includes('](')) return false;
  const isLast = source.slice(paragraphEnd, paragraphEnd + LONGEST).trim() === '';
  if (content.trim() === '') return isLast && kind.startsWith('\\');
  if (isInline(opening)) {
    if (!isLast || content.includes('\n')) return false;
    const before = source[at - 1] ?? '';
    if (kind === '\\(') return isInBrackets(kind, content, before, '');
    return isCertain(content) && isInDollars(content.trim(), before, '');
  }
  if (isCertain(content)) return true;
  return isLast && isMath(content) && (kind === '\\[' || beginsLine(source, opening));
}

/** Commands, exponents, braces: never found in prose. */
function isCertain(content: string): boolean {
  return /\\[A-Za-z]|[\^{}]/.test(content);
}

/** Has the signs of a formula, or is too short for prose. */
function isMath(content: string): boolean {
  if (isCertain(content)) return true;
  if (/`|\*\*|__|~~|\p{sc=Han}|\p{sc=Hiragana}|\p{sc=Katakana}|\p{sc=Hangul}/u.test(content)) return false;
  return /[\\_=<>+*/|]/.test(content) || !/\s/.test(content.trim()) || !/\p{L}{4}/u.test(content);
}

/** Dollars are mostly money: no space just inside and, if it could be prose, no letter or digit outside. */
function isInDollars(content: string, before: string, after: string): boolean {
  if (/^\s|\s$/.test(content)) return false;
  // `${a}/${b}` and `$(a)/$(b)` are variables.
  if (after === '{' || (after === '(' && content.startsWith('('))) return false;
  if (isCertain(content)) return true;
  if (/[A-Za-z0-9]/.test(before) || /[A-Za-z0-9]/.test(after) || content.includes('\n')) return false;
  return !(/^\d/.test(content) && /\s\S*\p{L}{2}/u.test(content)) && isMath(content);
}

/** A formula in a table row ends with its cell. */
function crossesCells(source: string, { lineStart }: Sign, content: string): boolean {
  if (!/\s\|\s/.test(content)) return false;
  return /^[ \t>]{0,100}\|/.test(source.slice(lineStart, lineStart + MOST_INDENT + 1));
}

/** `\[1\]` and `\[label\](address)` are brackets escaped so as not to be links; `plural\(s\)` is prose. */
function isInBrackets(kind: string, content: string, before: string, after: string): boolean {
  if (kind === '\\[' && (after === '(' || /^[\d\s,;–-]*$/.test(content))) return false;
  if (/[A-Za-z0-9]/.test(before) && !isCertain(content) && !/[_=<>+*/|]/.test(content)) return false;
  return isMath(content);
}
