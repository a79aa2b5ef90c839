/**
 * Markdown to plain text with marks: the one neutral form that is cut for every platform (`cut.ts`) and then written in its
 * syntax (`discord.ts`, `whatsapp.ts`; Telegram takes the marks as they are). Pure. No character of the visible text is lost,
 * whatever a model writes: HTML is shown as it is, save for a few elements, formulas as they are written (`formulas.ts`),
 * reference definitions stay text (`[Luna]: hello` is somebody speaking), and what is nested beyond reason is shown as its
 * source.
 */
import { createRequire } from 'node:module';
import type { default as MarkdownIt, StateInline, Token } from 'markdown-it';
import withCjkEmphasis from 'markdown-it-cjk-friendly';
import type { Part } from '../../core/channel.js';
import { once } from '../../core/concurrency.js';
import { putAside, putBack } from './formulas.js';
import { render } from './render.js';

/** Lists and quotes deeper than this are shown as written: a parser that descends must stop somewhere. */
const MAX_DEPTH = 60;

/** Tables with lines longer than `tableWidth` are written row by row, as `header: value`; others aligned in a fence. */
export function parse(written: string, { tableWidth = Number.POSITIVE_INFINITY } = {}): Part {
  // Half a surrogate pair is no letter, and platforms refuse it.
  const source = written.replace(/\p{Surrogate}/gu, '\ufffd');
  if (isPlain(source)) return { text: plain(source), marks: [] };
  const { source: marked, env } = putAside(source);
  const tokens = parser().parse(marked, env);
  if (tokens.some((token) => token.level >= MAX_DEPTH - 1)) return asWritten(source);
  const styled = render(tokens, tableWidth);
  return styled.text.trim() === '' ? asWritten(source) : styled;
}

/** Anything that could be markup: special characters, and line beginnings of lists, rules, headings and code. */
const MARKUP = /[*_~`[\]<>&\\|#$\r\0]|^[ \t]*(?:[-+=]|\d{1,9}[.)](?:[ \t]|$))|^(?: {4}| {0,3}\t)/m;

/** The short way for text without markup, which most chat replies are: it needs no parser. */
export function isPlain(source: string): boolean {
  return !MARKUP.test(source);
}

/** What the parser would give for it: lines without the space around them; one blank line between paragraphs. */
export function plain(source: string): string {
  const lines: string[] = [];
  for (const line of source.split('\n')) {
    const bare = line.trim();
    if (bare !== '' || (lines.length > 0 && lines.at(-1) !== '')) lines.push(bare);
  }
  if (lines.at(-1) === '') lines.pop();
  return lines.join('\n');
}

/** Also for markup without text, an empty fence say: no reply may become empty. */
function asWritten(source: string): Part {
  return { text: source.replace(/\r\n?/g, '\n').trim(), marks: [] };
}

/**
 * Made when the first reply needs it, so that a start does not wait for it. `require` takes the bundled build:
 * 14 ms instead of 43 ms for the modules.
 */
const parser = once(() => {
  const create = createRequire(import.meta.url)('markdown-it') as typeof MarkdownIt;
  const markdown = create({ html: false, linkify: true, typographer: false, maxNesting: MAX_DEPTH });
  markdown.disable('reference');
  markdown.core.ruler.push('formulas', putBack);
  markdown.inline.ruler.before('autolink', 'tags', readTag);
  markdown.inline.ruler.before('emphasis', 'times', readTimes);
  // CommonMark finds no end of emphasis between wide punctuation and a letter, where Chinese and Japanese have no space.
  markdown.use(withCjkEmphasis);
  // An address that stands in the text is kept from emphasis: `_` and `*` in it are part of it.
  markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
  // Which links are links is decided in `render`; here every one is let through, and shown as it was written.
  markdown.validateLink = () => true;
  markdown.normalizeLinkText = (url) => url;
  return markdown;
});

/** The few elements of HTML that models write where Markdown has nothing; others are text. */
const BREAK = /<br[ \t]{0,8}\/?>[ \t]*\n?[ \t]*/iy;
const ELEMENT = /<(sub|sup|kbd)>([^<>\n]{1,200})<\/\1>/iy;

/** A rule for the inside of paragraphs: tokens of type `hardbreak`, `sub`, `sup` and `kbd`. */
function readTag(state: StateInline, silent: boolean): boolean {
  if (state.src[state.pos] !== '<') return false;
  const found = matchAt(BREAK, state) ?? matchAt(ELEMENT, state);
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

/** Without its marks. */
function innerText({ md, env }: StateInline, inner: string): string {
  const tokens: Token[] = [];
  md.inline.parse(inner, md, env, tokens);
  return tokens.map(({ content }) => content).join('');
}

const STARS = /\*{1,2}(?=\d)/y;

/** `2*3*4`: CommonMark would take the stars for emphasis, and show another number. */
function readTimes(state: StateInline, silent: boolean): boolean {
  const { src, pos } = state;
  if (src[pos] !== '*' || !/\d/.test(src[pos - 1] ?? '')) return false;
  STARS.lastIndex = pos;
  const stars = STARS.exec(src)?.[0];
  if (stars === undefined) return false;
  if (!silent) state.pending += stars;
  state.pos += stars.length;
  return true;
}
