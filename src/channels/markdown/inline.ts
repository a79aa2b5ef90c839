/** Inline content of a paragraph, heading or table cell: emphasis, code, links with their addresses, images. */
import type { Token } from 'markdown-it';
import type { Mark, Part } from '../../core/channel.js';

type Style = Mark extends infer Each ? (Each extends Mark ? Omit<Each, 'offset' | 'length'> : never) : never;

export class Writer {
  text = '';
  readonly #marks: Mark[] = [];

  /** Marks the text since `start`. A mark replaces those of its kind within it, but quotes may nest. */
  mark(start: number, style: Style): void {
    const marks = this.#marks;
    const where = { offset: start, length: this.text.length - start };
    if (where.length === 0) return;
    if (style.kind !== 'quote') {
      for (let at = marks.length - 1; (marks[at]?.offset ?? -1) >= start; at -= 1) {
        if (marks[at]?.kind === style.kind) marks.splice(at, 1);
      }
    }
    marks.push(Object.assign(where, style));
  }

  done(): Part {
    const marks = this.#marks.sort((one, other) => one.offset - other.offset || other.length - one.length);
    return { text: this.text, marks };
  }
}

const CODE = new Set(['code_inline', 'kbd', 'math', 'display_math']);

/** `newline` replaces each line end: it carries the indentation of a list. */
export function writeInline(writer: Writer, tokens: Token[], newline: string): void {
  const open: { start: number; token: Token }[] = [];
  const shown = tokens.slice(0, tokens.findLastIndex((token) => !isBreak(token)) + 1);
  for (const [index, token] of shown.entries()) {
    const start = writer.text.length;
    if (token.nesting === 1) open.push({ start, token });
    else if (token.nesting === -1) close(writer, open.pop());
    else if (isBreak(token)) writer.text += newline;
    else if (CODE.has(token.type)) {
      writer.text += token.content.replaceAll('\n', newline);
      const isBlock = newline === '\n' && open.length === 0 && isOnLinesOfItsOwn(shown, index);
      writer.mark(start, isBlock ? { kind: 'pre', language: '' } : { kind: 'code' });
    } else if (token.type === 'sub' || token.type === 'sup') {
      writer.text += scripted(token.type, token.content);
    } else if (token.type === 'image') {
      // Its label, linked to the image.
      writer.text += inlineText(token.children ?? []);
      writeTarget(writer, start, String(token.attrGet('src') ?? ''));
    } else writer.text += token.content;
  }
}

function close(writer: Writer, opened: { start: number; token: Token } | undefined): void {
  if (opened === undefined) return;
  const { start, token } = opened;
  if (token.type === 'link_open') {
    // An autolink's text already is its address.
    if (token.info !== 'auto') writeTarget(writer, start, String(token.attrGet('href') ?? ''));
  } else {
    writer.mark(start, { kind: token.tag === 'strong' ? 'bold' : token.tag === 'em' ? 'italic' : 'strike' });
  }
}

/** A formula on lines of its own, even without blank lines around it. */
function isOnLinesOfItsOwn(tokens: Token[], index: number): boolean {
  if (tokens[index]?.type !== 'display_math') return false;
  return [tokens[index - 1], tokens[index + 1]].every((beside) => beside === undefined || isBreak(beside));
}

export function isBreak({ type }: Token): boolean {
  return type === 'softbreak' || type === 'hardbreak';
}

/** The same in bold: for headings and column titles. */
export function writeBold(writer: Writer, tokens: Token[], newline: string): void {
  const start = writer.text.length;
  writeInline(writer, tokens, newline);
  writer.mark(start, { kind: 'bold' });
}

export function inlineText(tokens: Token[], newline = ' '): string {
  const writer = new Writer();
  writeInline(writer, tokens, newline);
  const { text, marks } = writer.done();
  return withAddresses(text, marks).trim();
}

/** The text with the addresses of its links in brackets after their labels. */
export function withAddresses(
  text: string,
  marks: readonly { offset: number; length: number; url?: string }[],
): string {
  let shown = '';
  let from = 0;
  for (const { offset, length, url } of marks) {
    if (url === undefined) continue;
    shown += `${text.slice(from, offset + length)} (${url})`;
    from = offset + length;
  }
  return shown + text.slice(from);
}

/** Links the text since `start` to `url`, or shows the address where it cannot be a link. */
function writeTarget(writer: Writer, start: number, url: string): void {
  const label = writer.text.slice(start).trim();
  const shown = decoded(url);
  if (label === '') writer.text += shown;
  if (mayBeHidden(url)) {
    if (label !== shown) writer.mark(start, { kind: 'link', url });
  } else if (label !== '' && label !== shown && shown !== '') {
    writer.text += ` (${shown})`;
  }
}

/** In Unicode's small letters if all exist, else with a sign in front. */
function scripted(kind: 'sub' | 'sup', content: string): string {
  const small = [...content].map((letter) => SMALL[kind].get(letter));
  if (!small.includes(undefined)) return small.join('');
  const sign = kind === 'sub' ? '_' : '^';
  const isOne = /^[\p{L}\p{N}\p{M}]+$/u.test(content) || /^[([].*[)\]]$/su.test(content);
  return isOne ? sign + content : `${sign}(${content})`;
}

const SMALL = {
  sub: lettersOf('0123456789+-−=()aehijklmnoprstuvxβγρφχ ', '₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ '),
  sup: lettersOf(
    '0123456789+-−=()abcdefghijklmnoprstuvwxyzABDEGHIJKLMNOPRTUVWβγδθφχ ',
    '⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂᵝᵞᵟᶿᵠᵡ ',
  ),
};

function lettersOf(letters: string, small: string): Map<string, string> {
  const forms = [...small];
  return new Map([...letters].map((letter, at) => [letter, forms[at] ?? letter]));
}

/** Other schemes cannot, or should not, be opened from a chat: they are shown as text. */
const LINKABLE = /^(?:https?|tg|mailto):/i;

/** Characters in an address that some platform takes for markup. */
const MARKUP = /[\s()[\]<>\\*~|`]|@(?=everyone|here)/g;

/** Longer addresses are shown in the text: a link must fit twice into one message, encoded. */
const MAX_HIDDEN = 800;

function mayBeHidden(url: string): boolean {
  return LINKABLE.test(url) && withMarkupEncoded(url).length <= MAX_HIDDEN;
}

export function isWeb(url: string): boolean {
  return /^https?:\/\/[^\s/]/i.test(url);
}

export function withMarkupEncoded(url: string): string {
  return url.replace(MARKUP, (sign) => Array.from(Buffer.from(sign), asPercent).join(''));
}

function asPercent(byte: number): string {
  return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}

export function shownAddress(url: string): string {
  return url.replace(/^mailto:/i, '');
}

/** Whether the label is the address itself, ignoring `https://` and a trailing slash. */
export function isOwnLabel(label: string, url: string): boolean {
  return bare(label) === bare(url);
}

function bare(address: string): string {
  return decoded(address.replace(/^<?(?:https?:\/\/|mailto:)?/i, '').replace(/\/?>?$/, ''));
}

function decoded(url: string): string {
  try {
    return decodeURI(url);
  } catch {
    return url; // Not encoded.
  }
}
