/** Inline content of a paragraph, heading or table cell: emphasis, code, links with their addresses, images. */
import type { Token } from 'markdown-it';
import type { Mark, Part } from '../../core/channel.js';
import { formulaOf } from './formulas.js';

type Style = Mark extends infer Each ? (Each extends Mark ? Omit<Each, 'offset' | 'length'> : never) : never;

export type Writer = ReturnType<typeof createWriter>;

export function createWriter() {
  let text = '';
  const marks: Mark[] = [];
  const depth = new Map<Mark['kind'], number>();

  return {
    length: () => text.length,
    write(more: string): void {
      text += more;
    },
    mark(start: number, style: Style): void {
      const where = { offset: start, length: text.length - start };
      if (where.length > 0) marks.push(Object.assign(where, style));
    },
    /** Begins emphasis of a kind, or a link. */
    enter(kind: Mark['kind']): void {
      depth.set(kind, (depth.get(kind) ?? 0) + 1);
    },
    /** Ends it. True if it was the outermost of its kind, the only one worth a mark. */
    leave(kind: Mark['kind']): boolean {
      const left = (depth.get(kind) ?? 1) - 1;
      depth.set(kind, left);
      return left === 0;
    },
    isInside: (kind: Mark['kind']) => (depth.get(kind) ?? 0) > 0,
    since: (start: number) => text.slice(start),
    done: (): Part => ({
      text,
      marks: marks.sort((one, other) => one.offset - other.offset || other.length - one.length),
    }),
  };
}

function emphasisOf({ tag }: Token): 'bold' | 'italic' | 'strike' {
  return tag === 'strong' ? 'bold' : tag === 'em' ? 'italic' : 'strike';
}

/** `newline` replaces each line end: it carries the indentation of a list. */
export function writeInline(writer: Writer, tokens: Token[], newline: string): void {
  /** Start of each open emphasis and link. */
  const starts: number[] = [];
  const links: string[] = [];

  const shown = withoutLastBreaks(tokens);
  for (const [index, token] of shown.entries()) {
    switch (token.type) {
      case 'softbreak':
      case 'hardbreak':
        writer.write(newline);
        break;
      case 'code_inline':
      case 'kbd':
      case 'math': {
        const start = writer.length();
        writer.write(token.content.replaceAll('\n', newline));
        const isBlock = newline === '\n' && starts.length === 0 && isOnLinesOfItsOwn(shown, index);
        writer.mark(start, isBlock ? { kind: 'pre', language: '' } : { kind: 'code' });
        break;
      }
      case 'sub':
      case 'sup':
        writer.write(scripted(token.type, token.content));
        break;
      case 'image':
        writeImage(writer, token);
        break;
      case 'link_open':
        starts.push(writer.length());
        // An autolink's text already is its address.
        links.push(token.info === 'auto' ? '' : String(token.attrGet('href') ?? ''));
        writer.enter('link');
        break;
      case 'link_close': {
        const [start, url] = [starts.pop() ?? 0, links.pop() ?? ''];
        writer.leave('link');
        if (url !== '') writeTarget(writer, start, url);
        break;
      }
      case 'strong_open':
      case 'em_open':
      case 's_open':
        starts.push(writer.length());
        writer.enter(emphasisOf(token));
        break;
      case 'strong_close':
      case 'em_close':
      case 's_close': {
        const start = starts.pop() ?? 0;
        const kind = emphasisOf(token);
        if (writer.leave(kind)) writer.mark(start, { kind });
        break;
      }
      default:
        writer.write(token.content);
    }
  }
}

/** A formula on lines of its own, even without blank lines around it. */
function isOnLinesOfItsOwn(tokens: Token[], index: number): boolean {
  if (formulaOf(tokens[index])?.isDisplay !== true) return false;
  return [tokens[index - 1], tokens[index + 1]].every(
    (beside) => beside === undefined || isBreak(beside.type),
  );
}

/** Drops trailing line breaks. */
function withoutLastBreaks(tokens: Token[]): Token[] {
  const last = tokens.findLastIndex(({ type }) => !isBreak(type));
  return last === tokens.length - 1 ? tokens : tokens.slice(0, last + 1);
}

export function isBreak(type: string): boolean {
  return type === 'softbreak' || type === 'hardbreak';
}

/** The same in bold: for headings and column titles. */
export function writeBold(writer: Writer, tokens: Token[], newline: string): void {
  const start = writer.length();
  writer.enter('bold');
  writeInline(writer, tokens, newline);
  if (writer.leave('bold')) writer.mark(start, { kind: 'bold' });
}

/** As plain text: no marks, addresses in brackets after their labels. */
export function inlineText(tokens: Token[], newline = ' '): string {
  const writer = createWriter();
  writeInline(writer, tokens, newline);
  const { text, marks } = writer.done();
  let shown = '';
  let from = 0;
  for (const mark of marks) {
    if (mark.kind !== 'link') continue;
    const end = mark.offset + mark.length;
    shown += `${text.slice(from, end)} (${mark.url})`;
    from = end;
  }
  return (shown + text.slice(from)).trim();
}

/** Writes its label, linked to the image. */
function writeImage(writer: Writer, image: Token): void {
  const start = writer.length();
  writer.write(inlineText(image.children ?? []));
  writeTarget(writer, start, String(image.attrGet('src') ?? ''));
}

/** Links the text since `start` to `url`, or shows the address where it cannot be a link. */
function writeTarget(writer: Writer, start: number, url: string): void {
  const label = writer.since(start).trim();
  const shown = decoded(url);
  if (label === '') writer.write(shown);
  if (mayBeHidden(url)) {
    if (label !== shown && !writer.isInside('link')) writer.mark(start, { kind: 'link', url });
  } else if (label !== '' && label !== shown && shown !== '') {
    writer.write(` (${shown})`);
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
  return url.replace(MARKUP, (character) => encodeURIComponent(character).replace(/^[()*~]$/, asPercent));
}

/** Encodes even characters that `encodeURIComponent` leaves alone. */
function asPercent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
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
