/**
 * A reply as a rich message (Bot API 10.1): headings, tables and formulas as such. Only where there are any, and where
 * nothing in it leads anywhere: rich messages have no switch for link previews, and pictures in them are fetched. What a
 * model wrote is text to Telegram, never its markup. Pure.
 */
import { createRequire } from 'node:module';
import type { default as MarkdownIt, StateCore, Token } from 'markdown-it';
import withCjkEmphasis from 'markdown-it-cjk-friendly';
import type { Part } from '../../core/channel.js';
import { once } from '../../core/once.js';
import { readTimes } from '../markdown/arithmetic.js';
import { type Formula, formulaOf, putAside, putBack } from '../markdown/formulas.js';
import { readTag } from '../markdown/tags.js';
import { compose } from './outbound.js';

export interface RichMessage {
  html: string;
  /** Nothing in it becomes a link by itself. */
  skip_entity_detection: true;
}

const MOST_CHARACTERS = 32_768;
const MOST_BLOCKS = 500;
const MOST_LEVELS = 14;
const MOST_COLUMNS = 20;

/** Marks what a rich message would show better: the Markdown goes along with the text that was made of it. */
export function withSource(parts: Part[], markdown: string): Part[] {
  const [only] = parts;
  if (only === undefined || parts.length > 1 || htmlOf(markdown) === null) return parts;
  return [{ ...only, source: markdown }];
}

/**
 * null for a part that is to be sent as text. `name`: whose words it is, where that stands before them. A text that is
 * not what its source says (it was stopped, or is one of several) is only a text.
 */
export function richMessage(
  { source, text, note, file, choices }: Part,
  name: string | null,
): RichMessage | null {
  if (source === undefined || file !== undefined || choices !== undefined) return null;
  const said = note === undefined ? text : text.slice(0, note);
  const [only, ...others] = compose(source);
  if (only === undefined || others.length > 0 || only.text.trim() !== said.trim()) return null;
  const html = htmlOf(source);
  if (html === null) return null;
  const before = name === null ? '' : `<p><b>${escaped(name)}</b></p>`;
  const after = note === undefined ? '' : `<p>${escaped(text.slice(note).trim())}</p>`;
  const whole = before + html + after;
  return whole.length > MOST_CHARACTERS ? null : { html: whole, skip_entity_detection: true };
}

function htmlOf(markdown: string): string | null {
  // Looked at first: most replies hold none of it.
  if (!/^#|^[ \t]*\|.*\||\$|\\(?:[([]|begin\{)|```math/m.test(markdown)) return null;
  const { source, env } = putAside(markdown.replace(/\p{Surrogate}/gu, '\ufffd'));
  const tokens = parser().parse(source, env);
  const all = tokens.flatMap((token) => [token, ...(token.children ?? [])]);
  const has = (...types: string[]) => all.some(({ type }) => types.includes(type));
  if (has('link_open', 'image')) return null;
  const hasFormula = all.some(({ type, info }) => type === 'fence' && info.trim() === 'math');
  if (!hasFormula && !has('heading_open', 'table_open', 'math', 'math_block')) return null;
  const blocks = tokens.filter(({ nesting, type }) => nesting === 1 || type === 'fence' || type === 'hr');
  if (blocks.length > MOST_BLOCKS || tokens.some(({ level }) => level > MOST_LEVELS)) return null;
  return widestRow(tokens) > MOST_COLUMNS
    ? null
    : parser().renderer.render(tokens, parser().options, {}).trim();
}

function widestRow(tokens: Token[]): number {
  let widest = 0;
  let cells = 0;
  for (const { type } of tokens) {
    if (type === 'tr_open') cells = 0;
    if (type === 'th_open' || type === 'td_open') cells += 1;
    widest = Math.max(widest, cells);
  }
  return widest;
}

/** As in `markdown/parse.ts`, made when the first reply needs it. */
const parser = once(() => {
  const create = createRequire(import.meta.url)('markdown-it') as typeof MarkdownIt;
  const markdown = create({ html: false, linkify: true, breaks: true, maxNesting: 60 });
  markdown.disable('reference');
  markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
  markdown.validateLink = () => true;
  markdown.use(withCjkEmphasis);
  markdown.inline.ruler.before('autolink', 'tags', readTag);
  markdown.inline.ruler.before('emphasis', 'times', readTimes);
  markdown.core.ruler.push('formulas', putBack);
  markdown.core.ruler.push('math_block', ownParagraphs);
  const { rules } = markdown.renderer;
  for (const name of ['thead_open', 'thead_close', 'tbody_open', 'tbody_close']) rules[name] = () => '';
  for (const name of ['th_open', 'td_open']) {
    rules[name] = (tokens, at) => `<${tokens[at]?.tag} align="${alignmentOf(tokens[at])}">`;
  }
  rules.math = (tokens, at) => `<tg-math>${escaped(formulaOf(tokens[at])?.tex ?? '')}</tg-math>`;
  rules.math_block = (tokens, at) => `<tg-math-block>${escaped(texOf(tokens[at]))}</tg-math-block>\n`;
  for (const name of ['sub', 'sup']) {
    rules[name] = (tokens, at) => `<${name}>${escaped(tokens[at]?.content ?? '')}</${name}>`;
  }
  rules.kbd = (tokens, at) => `<code>${escaped(tokens[at]?.content ?? '')}</code>`;
  const fence = rules.fence;
  rules.fence = (tokens, at, ...rest) =>
    tokens[at]?.info.trim() === 'math'
      ? (rules.math_block?.(tokens, at, ...rest) ?? '')
      : (fence?.(tokens, at, ...rest) ?? '');
  return markdown;
});

/** Of a formula in its paragraph, or in a block of code that is called so. */
function texOf(token: Token | undefined): string {
  return token?.type === 'fence'
    ? token.content
    : String((token?.meta?.formula as Formula | undefined)?.tex ?? '');
}

function alignmentOf(token: Token | undefined): string {
  return /text-align:(center|right)/.exec(String(token?.attrGet('style') ?? ''))?.[1] ?? 'left';
}

/** A formula that is all of a paragraph is a block of its own. */
function ownParagraphs({ tokens }: StateCore): void {
  for (let at = tokens.length - 2; at > 0; at -= 1) {
    const [only, ...others] = tokens[at]?.children ?? [];
    const isAlone =
      tokens[at - 1]?.type === 'paragraph_open' && formulaOf(only)?.isDisplay === true && others.length === 0;
    if (!isAlone || only === undefined) continue;
    only.type = 'math_block';
    tokens.splice(at - 1, 3, only);
  }
}

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
