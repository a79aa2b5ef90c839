/**
 * HTML as a browser shows it, for the few elements that are asked for; anything else throws. Also checks that what is
 * opened is closed, in order.
 */
import { type Letter, letters } from './seen.js';

const ENTITIES: Record<string, string> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
  '&nbsp;': ' ',
};

const STYLES: Record<string, string> = { strong: 'bold', em: 'italic', s: 'strike', blockquote: 'quote' };
const ANCHOR = /^a href="([^"<>]*)" target="_blank" rel="noopener noreferrer nofollow"$/;
const CODE = /^code(?: class="language-([^"<>]*)")?$/;

export function readHtml(html: string): Letter[] {
  const seen: Letter[] = [];
  const open: { tag: string; style: string | null }[] = [];
  const isInPre = () => open.some(({ tag }) => tag === 'pre');
  for (const [whole, tag] of html.matchAll(/<([^<>]*)>|[^<>]+|[<>]/g)) {
    if (tag === undefined) {
      if (whole === '<' || whole === '>') throw new Error(`a bare ${whole} in ${html}`);
      const styles = open.map(({ style }) => style).filter((style) => style !== null);
      seen.push(...letters(unescaped(whole), styles));
    } else if (tag === 'br') {
      seen.push(...letters('\n'));
    } else if (tag.startsWith('/')) {
      const last = open.pop();
      if (last?.tag !== tag.slice(1)) throw new Error(`</${last?.tag}> was to come, not <${tag}>: ${html}`);
    } else {
      open.push({ tag: /^\w+/.exec(tag)?.[0] ?? '', style: styleOf(tag, isInPre()) });
    }
  }
  if (open.length > 0) throw new Error(`open at the end: ${html}`);
  return seen;
}

function styleOf(tag: string, isInPre: boolean): string | null {
  if (tag === 'p' || tag === 'pre') return null;
  const anchor = ANCHOR.exec(tag);
  if (anchor !== null) return `link ${unescaped(anchor[1] ?? '')}`;
  const code = CODE.exec(tag);
  if (code !== null) return isInPre ? `pre ${unescaped(code[1] ?? '')}` : 'code';
  const style = STYLES[tag];
  if (style === undefined) throw new Error(`<${tag}> was not asked for`);
  return style;
}

function unescaped(text: string): string {
  return text.replace(/&[^;\s]*;?/g, (entity) => {
    const sign = ENTITIES[entity];
    if (sign === undefined) throw new Error(`${entity} was not asked for`);
    return sign;
  });
}
