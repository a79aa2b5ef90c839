/**
 * Markdown to plain text with marks, which `cut.ts` splits and each platform writes in its syntax. Pure. No visible
 * character is lost: unknown HTML and reference definitions (`[Luna]: hello` is dialogue) are shown as text,
 * excessive nesting as its source.
 */
import { createRequire } from 'node:module';
import type { default as MarkdownIt, StateInline, Token } from 'markdown-it';
import withCjkEmphasis from 'markdown-it-cjk-friendly';
import type { Part } from '../../core/channel.js';
import { once } from '../../core/concurrency.js';
import { putAside, putBack } from './formulas.js';
import { render } from './render.js';

/** Deeper lists and quotes are shown as written: limits the parser's recursion. */
const MAX_DEPTH = 60;

/** Tables wider than `tableWidth` are written row by row, as `header: value`; others aligned in a fence. */
export function parse(written: string, { tableWidth = Number.POSITIVE_INFINITY } = {}): Part {
  // Platforms refuse lone surrogates.
  const source = written.replace(/\p{Surrogate}/gu, '\ufffd');
  const { source: marked, env } = putAside(source);
  const tokens = parser().parse(marked, env);
  if (tokens.some((token) => token.level >= MAX_DEPTH - 1)) return asWritten(source);
  const styled = render(tokens, tableWidth);
  return styled.text.trim() === '' ? asWritten(source) : styled;
}

/** Also for markup without text (such as an empty fence): no reply may become empty. */
function asWritten(source: string): Part {
  return { text: source.replace(/\r\n?/g, '\n').trim(), marks: [] };
}

/** Created on first use. `require` loads the bundled build: 14 ms instead of 43 ms for the modules. */
const parser = once(() => {
  const create = createRequire(import.meta.url)('markdown-it') as typeof MarkdownIt;
  const markdown = create({ html: false, linkify: true, typographer: false, maxNesting: MAX_DEPTH });
  markdown.disable('reference');
  markdown.core.ruler.push('formulas', putBack);
  markdown.inline.ruler.before('autolink', 'tags', readTag);
  markdown.inline.ruler.before('emphasis', 'times', readTimes);
  // CommonMark does not end emphasis between wide punctuation and a letter, as in unspaced Chinese.
  markdown.use(withCjkEmphasis);
  // Bare addresses are excluded from emphasis: `_` and `*` belong to them.
  markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
  // `render` decides which links are links; here all pass, and keep their spelling.
  markdown.validateLink = () => true;
  markdown.normalizeLinkText = (url) => url;
  return markdown;
});

/** The few HTML elements that models use where Markdown has no syntax; others are text. */
const TAG = /<br[ \t]{0,8}\/?>[ \t]*\n?[ \t]*|<(sub|sup|kbd)>([^<>\n]{1,200})<\/\1>/iy;

/** An inline rule: makes tokens of type `hardbreak`, `sub`, `sup` and `kbd`. */
function readTag(state: StateInline, silent: boolean): boolean {
  const found = matchAt(TAG, state);
  if (found === null) return false;
  const [all, name, inner = ''] = found;
  if (!silent) {
    const token = state.push(name === undefined ? 'hardbreak' : name.toLowerCase(), name ? '' : 'br', 0);
    token.content = name === undefined ? '' : innerText(state, inner);
  }
  state.pos += all.length;
  return true;
}

function matchAt(pattern: RegExp, { src, pos }: StateInline): RegExpExecArray | null {
  pattern.lastIndex = pos;
  return pattern.exec(src);
}

function innerText({ md, env }: StateInline, inner: string): string {
  const tokens: Token[] = [];
  md.inline.parse(inner, md, env, tokens);
  return tokens.map(({ content }) => content).join('');
}

/** `2*3*4`: CommonMark would read the stars as emphasis, and show another number. */
const TIMES = /(?<=\d)\*{1,2}(?=\d)/y;

function readTimes(state: StateInline, silent: boolean): boolean {
  const found = matchAt(TIMES, state);
  if (found === null) return false;
  if (!silent) state.pending += found[0];
  state.pos += found[0].length;
  return true;
}
