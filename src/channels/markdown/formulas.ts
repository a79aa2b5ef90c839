/**
 * LaTeX in a reply: `$…$`, `$$…$$`, `\(…\)`, `\[…\]`, `\begin{…}…\end{…}`. Markdown would take its signs for escapes,
 * emphasis, lists and columns. So each formula is put aside before the parser reads, and comes back sign for sign after it.
 * What stands in code, in an address, or between dollars that are money is none. One that a model is still writing, at the
 * end of the text, counts already. Pure; takes time in proportion to the text.
 */
import type { StateCore, Token } from 'markdown-it';
import { type Span, spansIn } from './formula-spans.js';

export interface Formula {
  /** As it stands in the source, with its delimiters. */
  raw: string;
  /** The same without what a quote or a list puts before its lines. */
  text: string;
  /** Without delimiters. */
  tex: string;
  isDisplay: boolean;
}

/** What a parser is given along with the source. */
export type FormulaEnv = Record<PropertyKey, unknown> & { formulas?: Formula[] };

/** Code points that no text has: a formula is named by its number between them. */
const MARK = /\ufdd0(\d{1,9})\ufdd1/g;
const ENCODED_MARK = /%EF%B7%90(\d{1,9})%EF%B7%91/g;
const HOLDS_MARK = /\ufdd0|%EF%B7%90/;

/** The source with a mark in place of each formula. */
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

/** The parser's last step: formulas in words become tokens of type `math`, and in all else their source again. */
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
    // With a group in the expression every second piece is a number.
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

/** What `putBack` has made a token of. */
export function formulaOf(token: Token | undefined): Formula | null {
  return token?.type === 'math' ? ((token.meta?.formula as Formula | undefined) ?? null) : null;
}

function formulaAt(source: string, { start, end, opener, closer, lineStart }: Span): Formula {
  const raw = source.slice(start, end);
  const text = raw.includes('\n') ? withoutMargin(raw, source.slice(lineStart, start)) : raw;
  const opening = raw.slice(0, opener);
  return {
    raw,
    text: text.trimEnd(),
    tex: text.slice(opener, text.length - closer).trim(),
    isDisplay: opening !== '$' && opening !== '\\(',
  };
}

/** What stands before its lines belongs to a quote or a list. `before`: what stands before the first. */
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
