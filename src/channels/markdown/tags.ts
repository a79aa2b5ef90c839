/** The few elements of HTML that models write where Markdown has nothing: `<br>`, `<sub>`, `<sup>`, `<kbd>`. Others are text. */
import type { StateInline, Token } from 'markdown-it';

const BREAK = /<br[ \t]{0,8}\/?>[ \t]*\n?[ \t]*/iy;
const ELEMENT = /<(sub|sup|kbd)>([^<>\n]{1,200})<\/\1>/iy;

/** A rule for the inside of paragraphs: tokens of type `hardbreak`, `sub`, `sup` and `kbd`. */
export function readTag(state: StateInline, silent: boolean): boolean {
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

/** In Unicode's small letters where there are all of them, else with a sign before it. */
export function scripted(kind: 'sub' | 'sup', content: string): string {
  const small = [...content].map((letter) => SMALL[kind].get(letter));
  if (!small.includes(undefined)) return small.join('');
  const sign = kind === 'sub' ? '_' : '^';
  const isOne = /^[\p{L}\p{N}\p{M}]+$/u.test(content) || /^[([].*[)\]]$/su.test(content);
  return isOne ? sign + content : `${sign}(${content})`;
}

function table(letters: string, small: string): Map<string, string> {
  const forms = [...small];
  return new Map([...letters].map((letter, at) => [letter, forms[at] ?? letter]));
}

const SMALL = {
  sub: table('0123456789+-−=()aehijklmnoprstuvxβγρφχ ', '₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ '),
  sup: table(
    '0123456789+-−=()abcdefghijklmnoprstuvwxyzABDEGHIJKLMNOPRTUVWβγδθφχ ',
    '⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂᵝᵞᵟᶿᵠᵡ ',
  ),
};
