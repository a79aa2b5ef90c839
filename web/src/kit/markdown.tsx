/**
 * Markdown of messages and files as elements, made from the parser's tokens: no HTML string exists. While a text grows, its
 * finished blocks stay as they are and only the last one is made anew.
 */
import MarkdownIt, { type Token } from 'markdown-it';
import withCjkEmphasis from 'markdown-it-cjk-friendly';
import { type ComponentChild, createElement, type VNode } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { useTexts } from '../app.ts';
import { filled } from '../texts/texts.ts';
import { CodeBlock } from './code.tsx';
import { languageOfPage, sizeInWords } from './words.ts';

/** A longer text is folded: it costs a phone seconds. */
const MOST_CHARS = 20_000;
const FOLDED_CHARS = 4_000;
/** Deeper lists and quotes are shown as written. */
const MAX_DEPTH = 60;
/** Of one text. What comes beyond them is shown as written, because each costs the page an element. */
const MOST_TOKENS = 60_000;

const parser = new MarkdownIt({ html: false, linkify: true, typographer: false, maxNesting: MAX_DEPTH });
// `[Luna]: hello` is dialogue. Without references, every block can be read by itself.
parser.disable('reference');
parser.use(withCjkEmphasis);
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
// `linkOf` decides which are links.
parser.validateLink = () => true;

/** `isGrowing`: more of it will come. `level`: of the heading that it stands under. */
export function Markdown({
  text,
  isGrowing = false,
  level = 2,
}: {
  text: string;
  isGrowing?: boolean;
  level?: number;
}) {
  // A text that was seen growing is not folded under the eyes of its reader.
  const { shown, button } = useFold(text, isGrowing);
  const finished = useRef<Finished>(NOTHING);
  const [next, blocks] = grown(finished.current, shown, isGrowing, level);
  finished.current = next;
  return (
    <div class="markdown">
      {blocks}
      {button}
    </div>
  );
}

/** Plain words, folded like Markdown. */
export function PlainText({ text }: { text: string }) {
  const { shown, button } = useFold(text, false);
  return (
    <div class="plain">
      {shown}
      {button}
    </div>
  );
}

/** The beginning of a long text, and the button that shows all of it. */
function useFold(text: string, isWhole: boolean) {
  const { kit } = useTexts();
  const [isOpen, setOpen] = useState(isWhole);
  if (text.length <= MOST_CHARS || isOpen || isWhole) return { shown: text, button: null };
  const end = text.lastIndexOf('\n', FOLDED_CHARS);
  const button = (
    <button type="button" class="quiet" onClick={() => setOpen(true)}>
      {filled(kit.showAll, { size: sizeInWords(text.length, languageOfPage()) })}
    </button>
  );
  return { shown: `${text.slice(0, end > FOLDED_CHARS / 2 ? end : FOLDED_CHARS)}…`, button };
}

/** Blocks at the beginning of a text that will not change any more, and where they end. */
export interface Finished {
  source: string;
  blocks: VNode[];
  tokens: number;
}

export const NOTHING: Finished = { source: '', blocks: [], tokens: 0 };

/** The blocks of a text, of which those of `finished` are not made again. */
export function grown(
  finished: Finished,
  text: string,
  isGrowing: boolean,
  level: number,
): [next: Finished, blocks: VNode[]] {
  const known = text.startsWith(finished.source) ? finished : NOTHING;
  const rest = text.slice(known.source.length);
  const cut = isGrowing ? lastBlockIn(rest) : 0;
  const next = cut === 0 ? known : withBlocks(known, rest.slice(0, cut), level);
  const last = rest.slice(cut);
  // One endless paragraph: reading it again for every word would cost more and more.
  if (isGrowing && last.length > MOST_CHARS) return [next, [...next.blocks, <p class="plain">{last}</p>]];
  return [next, withBlocks(next, last, level, isGrowing).blocks];
}

/** Where the last block begins; all before it are closed for good. */
function lastBlockIn(source: string): number {
  const starts = parser
    .parse(source, {})
    .flatMap(({ level, nesting, map }) => (level === 0 && nesting >= 0 && map ? [map[0]] : []));
  const line = starts.length > 1 ? (starts.at(-1) ?? 0) : 0;
  return source.split('\n', line).reduce((at, { length }) => at + length + 1, 0);
}

/** `isOpen`: the last one still grows. */
function withBlocks(known: Finished, more: string, level: number, isOpen = false): Finished {
  const found = parser.parse(more, {});
  const tokens = found.reduce((sum, { children }) => sum + 1 + (children?.length ?? 0), known.tokens);
  const isTooMuch = tokens > MOST_TOKENS || found.some((token) => token.level >= MAX_DEPTH - 1);
  const made = isTooMuch ? [<p class="plain">{more}</p>] : (elementsOf(found, level, isOpen) as VNode[]);
  for (const [n, block] of made.entries()) block.key = known.blocks.length + n;
  return { source: known.source + more, blocks: [...known.blocks, ...made], tokens };
}

/** Elements of tokens, which open and close in pairs. */
function elementsOf(tokens: Token[], level: number, isOpen: boolean): ComponentChild[] {
  const stack: { token: Token | null; children: ComponentChild[] }[] = [{ token: null, children: [] }];
  for (const [n, token] of tokens.entries()) {
    const top = stack.at(-1);
    if (top === undefined) break;
    if (token.nesting === 1) stack.push({ token, children: [] });
    else if (token.nesting === -1) {
      stack.pop();
      const made = top.token && elementOf(top.token, top.children, level);
      stack.at(-1)?.children.push(made);
    } else top.children.push(...leafOf(token, level, isOpen && n === tokens.length - 1));
  }
  return stack[0]?.children ?? [];
}

const PLAIN_TAGS = new Set(['ul', 'ol', 'li', 'blockquote', 'thead', 'tbody', 'tr', 'strong', 'em', 's']);

function elementOf(token: Token, children: ComponentChild[], level: number): ComponentChild {
  const { tag, hidden } = token;
  if (tag === 'p') return hidden ? createElement('span', null, children) : createElement('p', null, children);
  if (/^h[1-6]$/.test(tag)) {
    return createElement(`h${Math.min(6, Number(tag[1]) + level)}`, null, children);
  }
  if (tag === 'table') {
    return (
      <div class="scrolls">
        <table>{children}</table>
      </div>
    );
  }
  if (tag === 'th' || tag === 'td') {
    const isRight = `${token.attrGet('style')}`.includes('right');
    return createElement(tag, isRight ? { class: 'number' } : null, children);
  }
  if (tag === 'a') return linkOf(textOf(token, 'href'), children);
  if (tag === 'ol') return createElement('ol', { start: Number(token.attrGet('start') ?? 1) }, children);
  return createElement(PLAIN_TAGS.has(tag) ? tag : 'span', null, children);
}

function leafOf(token: Token, level: number, isOpen: boolean): ComponentChild[] {
  const { type, content, info, children } = token;
  if (type === 'inline') return elementsOf(children ?? [], level, false);
  if (type === 'fence' || type === 'code_block') {
    const language = info.trim().split(/\s+/)[0] ?? '';
    return [<CodeBlock code={content.replace(/\n$/, '')} language={language} isOpen={isOpen} />];
  }
  if (type === 'code_inline') return [<code>{content}</code>];
  if (type === 'hr') return [<hr />];
  // In a chat, a line that ends is meant to end.
  if (type === 'hardbreak' || type === 'softbreak') return [<br />];
  // A picture would tell its server who reads this: it is a link.
  if (type === 'image') return [linkOf(textOf(token, 'src'), [content || textOf(token, 'src')])];
  return [content];
}

function textOf(token: Token, attribute: 'href' | 'src'): string {
  return String(token.attrGet(attribute) ?? '');
}

/** Plain words where the address leads anywhere but to the web, a mailbox, or below this page. */
function linkOf(address: string, children: ComponentChild[]): ComponentChild {
  if (!mayLead(address)) return <span>{children}</span>;
  return (
    <a href={address} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

export function mayLead(address: string): boolean {
  if (!URL.canParse(address, 'https://page.invalid/')) return false;
  return ['http:', 'https:', 'mailto:'].includes(new URL(address, 'https://page.invalid/').protocol);
}
