/**
 * LaTeX in a reply: `$…$`, `$$…$$`, `\(…\)`, `\[…\]`, `\begin{…}…\end{…}`. Markdown would read its characters
 * as escapes, emphasis, lists and columns, so each formula is replaced before parsing and restored unchanged
 * afterwards. Code, addresses and amounts in dollars are no formulas; an unfinished formula at the end of the
 * text, still being written, is one. Pure; linear time.
 */
import type { StateCore, Token } from 'markdown-it';

interface Formula {
  /** As in the source, with delimiters. */
  raw: string;
  /** As `raw`, without the line prefixes of quotes and lists. */
  text: string;
  isDisplay: boolean;
}

/** The parser's environment, passed along with the source. */
type FormulaEnv = Record<PropertyKey, unknown> & { formulas?: Formula[] };

/** Noncharacters, which no text contains, around a formula's number. */
const MARK = /\ufdd0(\d{1,9})\ufdd1/g;
const ENCODED_MARK = /%EF%B7%90(\d{1,9})%EF%B7%91/g;
const HOLDS_MARK = /\ufdd0|%EF%B7%90/;

/** Replaces each formula in the source by a placeholder. */
export function putAside(source: string): { source: string; env: FormulaEnv } {
  if (!/\$|\\[([]|\\begin\{/.test(source)) return { source, env: {} };
  const clean = source.replace(/[\ufdd0\ufdd1]/g, '\ufffd');
  const formulas: Formula[] = [];
  let marked = '';
  let from = 0;
  for (const span of spansIn(clean)) {
    marked += `${clean.slice(from, span.start)}\ufdd0${formulas.length}\ufdd1`;
    formulas.push(formulaAt(clean, span));
    from = span.end;
  }
  return { source: marked + clean.slice(from), env: { formulas } };
}

/** The parser's last step: formulas in words become `math` tokens, others get their source back. */
export function putBack({ tokens, env, Token }: StateCore): void {
  const { formulas = [] } = env as FormulaEnv;
  if (formulas.length === 0) return;
  const raw = (text: string) =>
    HOLDS_MARK.test(text)
      ? text
          .replace(MARK, (all, number: string) => formulas[Number(number)]?.raw ?? all)
          .replace(ENCODED_MARK, (all, number: string) => encodeURI(formulas[Number(number)]?.raw ?? all))
      : text;

  function restored(token: Token): Token[] {
    token.attrs = token.attrs?.map(([name, value]) => [name, raw(String(value))]) ?? null;
    token.info = raw(token.info);
    token.children = token.children?.flatMap(restored) ?? null;
    if (token.type !== 'text') token.content = raw(token.content);
    return token.type === 'text' && HOLDS_MARK.test(token.content) ? split(token.content) : [token];
  }

  function split(content: string): Token[] {
    // With a capturing group, every second piece is a number.
    return content.split(/\ufdd0(\d{1,9})\ufdd1/).flatMap((piece, at) => {
      const formula = at % 2 === 1 ? formulas[Number(piece)] : undefined;
      if (formula === undefined && piece === '') return [];
      const token = new Token(formula === undefined ? 'text' : 'math', '', 0);
      token.content = formula?.text ?? piece;
      if (formula !== undefined) token.meta = { formula };
      return [token];
    });
  }

  for (const token of tokens) restored(token);
}

export function formulaOf(token: Token | undefined): Formula | null {
  return token?.type === 'math' ? ((token.meta?.formula as Formula | undefined) ?? null) : null;
}

function formulaAt(source: string, { start, end, isDisplay, lineStart }: FormulaSpan): Formula {
  const raw = source.slice(start, end);
  const text = raw.includes('\n') ? withoutMargin(raw, source.slice(lineStart, start)) : raw;
  return { raw, text: text.trimEnd(), isDisplay };
}

/** Removes the line prefixes of quotes and lists. `before`: the text before the first line. */
function withoutMargin(raw: string, before: string): string {
  const depth = /^(?:[ \t]*>)*/.exec(before)?.[0].replaceAll(/[ \t]/g, '').length ?? 0;
  const quotes = new RegExp(`^(?:[ \\t]{0,3}>[ \\t]?){0,${depth}}`);
  const [first = '', ...rest] = raw.split('\n');
  const lines = rest.map((line) => line.replace(quotes, ''));
  const indents = lines
    .filter((line) => line.trim() !== '')
    .map((line) => line.length - line.trimStart().length);
  const indent = indents.reduce((least, each) => Math.min(least, each), Number.POSITIVE_INFINITY);
  return [first, ...lines.map((line) => line.slice(Math.min(indent, line.length)))].join('\n');
}

interface FormulaSpan {
  start: number;
  end: number;
  isDisplay: boolean;
  lineStart: number;
}

interface Sign {
  /** A delimiter, a run of backticks, or `\n` for a blank line. */
  kind: string;
  at: number;
  end: number;
  lineStart: number;
}

/** All relevant signs. Escapes, addresses and link targets match whole, hiding any signs inside. */
const SIGN =
  /\\(?:begin|end)\{[A-Za-z]{1,30}\*?\}|\\[^\n]|`+|\$+|https?:\/\/[^\s<>\\`]+|\]\([^()\s]*\)|\n[ \t>]*(?=\n|$)/g;
const CLOSERS: Readonly<Record<string, string>> = { $: '$', $$: '$$', '\\(': '\\)', '\\[': '\\]' };
const LONGEST = 4_000;

function spansIn(source: string): FormulaSpan[] {
  return outsideOfFences(source).flatMap(([from, to]) => spansBetween(source, from, to));
}

function spansBetween(source: string, from: number, to: number): FormulaSpan[] {
  const signs = signsBetween(source, from, to);
  const next = followers(signs);
  const spans: FormulaSpan[] = [];
  for (let at = 0; at < signs.length; at += 1) {
    const sign = signs[at];
    if (sign === undefined) break;
    const blank = next('\n', at);
    const paragraph = signs[blank]?.at ?? to;
    if (sign.kind.startsWith('`')) {
      const end = next(sign.kind, at);
      if (end < blank) at = end;
      continue;
    }
    const closer = CLOSERS[sign.kind] ?? environmentEnd(sign.kind);
    if (closer === null) continue;
    const end = next(closer, at);
    const closing = signs[end];
    const isWithin = closing !== undefined && end < blank && !(closer === '$' && next('$$', at) < end);
    const span = isWithin || mayCross(source, sign, closing) ? closed(source, sign, closing) : null;
    const found = span ?? (isWithin ? null : halfFormula(source, sign, paragraph));
    if (found === null) continue;
    spans.push(found);
    while ((signs[at + 1]?.at ?? found.end) < found.end) at += 1;
  }
  return spans;
}

function signsBetween(source: string, from: number, to: number): Sign[] {
  let lineStart = from;
  let looked = from;
  return [...source.slice(from, to).matchAll(SIGN)].map(({ 0: text, index }): Sign => {
    const at = from + index;
    const lineEnd = source.slice(looked, at).lastIndexOf('\n');
    if (lineEnd >= 0) lineStart = looked + lineEnd + 1;
    looked = at;
    return { kind: text.startsWith('\n') ? '\n' : text, at, end: at + text.length, lineStart };
  });
}

/** Number of the next sign of a kind after a position. Call in order: each position is passed once. */
function followers(signs: readonly Sign[]): (kind: string, at: number) => number {
  const places = new Map<string, { all: number[]; passed: number }>();
  for (const [at, { kind }] of signs.entries()) {
    const known = places.get(kind);
    if (known === undefined) places.set(kind, { all: [at], passed: 0 });
    else known.all.push(at);
  }
  return (kind, at) => {
    const found = places.get(kind);
    if (found === undefined) return Number.POSITIVE_INFINITY;
    while ((found.all[found.passed] ?? Number.POSITIVE_INFINITY) <= at) found.passed += 1;
    return found.all[found.passed] ?? Number.POSITIVE_INFINITY;
  };
}

function environmentEnd(kind: string): string | null {
  return kind.startsWith('\\begin{') ? kind.replace('\\begin', '\\end') : null;
}

function closed(source: string, opening: Sign, closing: Sign | undefined): FormulaSpan | null {
  if (closing === undefined || closing.end - opening.at > LONGEST) return null;
  const span = spanOf(opening, closing.end);
  const content = source.slice(opening.end, closing.at);
  if (opening.kind.startsWith('\\begin')) return span;
  if (content.trim() === '') return null;
  const [before, after] = [source[opening.at - 1] ?? '', source[closing.end] ?? ''];
  const isOne =
    opening.kind === '$'
      ? isInDollars(content, before, after) && !crossesCells(source, opening, content)
      : opening.kind === '$$'
        ? isMath(content)
        : isInBrackets(opening.kind, content, before, after);
  return isOne ? span : null;
}

function spanOf({ kind, at, lineStart }: Sign, end: number): FormulaSpan {
  return { start: at, end, lineStart, isDisplay: kind !== '$' && kind !== '\\(' };
}

/** Only a formula that begins a line and cannot be anything else may contain blank lines. */
function mayCross(source: string, opening: Sign, closing: Sign | undefined): boolean {
  if (closing === undefined || opening.kind === '$' || opening.kind === '\\(') return false;
  if (!beginsLine(source, opening)) return false;
  return closing.end - opening.at <= LONGEST && isCertain(source.slice(opening.end, closing.at));
}

const MOST_INDENT = 100;

/** Prefixes of quotes and list items. */
const MARGIN = /^(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*$/;

function beginsLine(source: string, { at, lineStart }: Sign): boolean {
  return at - lineStart <= MOST_INDENT && MARGIN.test(source.slice(lineStart, at));
}

/** A formula without an end in its paragraph; an inline one must be on the last line. */
function halfFormula(source: string, opening: Sign, paragraph: number): FormulaSpan | null {
  if (paragraph - opening.at > LONGEST) return null;
  const content = source.slice(opening.end, paragraph);
  if (content.includes('](')) return null;
  const isLast = source.slice(paragraph, paragraph + LONGEST).trim() === '';
  if (content.trim() === '') {
    return isLast && opening.kind.startsWith('\\') ? spanOf(opening, opening.end) : null;
  }
  const before = source[opening.at - 1] ?? '';
  const isOne =
    opening.kind === '$'
      ? isLast && isCertain(content) && !content.includes('\n') && isInDollars(content.trim(), before, '')
      : opening.kind === '\\('
        ? isLast && !content.includes('\n') && isInBrackets(opening.kind, content, before, '')
        : isCertain(content) || (isLast && isBegun(source, opening, content));
  return isOne ? spanOf(opening, paragraph) : null;
}

function isBegun(source: string, opening: Sign, content: string): boolean {
  return isMath(content) && (opening.kind === '\\[' || beginsLine(source, opening));
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

const FENCE = /^(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*(`{3,}|~{3,})(.*)$/;

/** Start and end of each stretch between code blocks. */
function outsideOfFences(source: string): [number, number][] {
  if (!source.includes('```') && !source.includes('~~~')) return [[0, source.length]];
  const stretches: [number, number][] = [];
  let from = 0;
  let fence: string | null = null;
  let at = 0;
  for (const line of source.split('\n')) {
    const [, run = '', rest = ''] = FENCE.exec(line) ?? [];
    const end = at + line.length + 1;
    if (fence === null && run !== '' && !(run.startsWith('`') && rest.includes('`'))) {
      fence = run;
      stretches.push([from, at]);
    } else if (fence !== null && run.startsWith(fence) && rest.trim() === '') {
      fence = null;
      from = end;
    }
    at = end;
  }
  if (fence === null) stretches.push([Math.min(from, source.length), source.length]);
  return stretches;
}
