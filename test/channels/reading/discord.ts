/**
 * Discord's markup as its clients read it, in both ways that are known of them: what emphasis is, which of two rules
 * wins, how code and labels end. Signs are looked for at every place, so that it finds rather too many than too few.
 * What must not come of a text (a mention, an emoji, a heading, an underline) is a style of its own.
 */
import type { Letter } from './seen.js';
import { letters } from './seen.js';

export type Client = 'desktop' | 'telephone';

interface Context {
  client: Client;
  styles: readonly string[];
  /** Nothing but whitespace since the line began. */
  atFront: boolean;
  inQuote: boolean;
  depth: number;
}

interface Found {
  length: number;
  seen: Letter[];
}

type Rule = (rest: string, context: Context) => Found | null;

const BULLETS = ['•', '◦', '▪'];

export function readDiscord(markup: string, client: Client): Letter[] {
  return read(markup, { client, styles: [], atFront: true, inQuote: false, depth: 0 });
}

function read(markup: string, context: Context): Letter[] {
  const seen: Letter[] = [];
  const state = { ...context };
  for (let at = 0; at < markup.length; ) {
    const rest = markup.slice(at);
    const found = firstOf(rest, state) ?? plain(rest, state);
    for (const letter of found.seen) seen.push(letter);
    at += found.length;
    const taken = markup.slice(0, at);
    const line = taken.slice(taken.lastIndexOf('\n') + 1);
    state.atFront = line.trim() === '' && (context.atFront || taken.includes('\n'));
  }
  return seen;
}

function firstOf(rest: string, context: Context): Found | null {
  for (const rule of RULES) {
    const found = rule(rest, context);
    if (found !== null) return found;
  }
  return null;
}

function plain(rest: string, { styles }: Context): Found {
  const letter = String.fromCodePoint(rest.codePointAt(0) ?? 0);
  return { length: letter.length, seen: letters(letter, styles) };
}

/** A rule of what is shown in a style, inside and all. */
function styled(pattern: RegExp, style: string): Rule {
  return (rest, context) => {
    const found = pattern.exec(rest);
    if (found === null) return null;
    const inner = found.slice(1).find((group) => group !== undefined) ?? '';
    return {
      length: found[0].length,
      seen: read(inner, { ...context, styles: [...context.styles, style] }),
    };
  };
}

/** A rule of what is shown as it stands. */
function literal(pattern: RegExp, style: string | null): Rule {
  return (rest, { styles }) => {
    const found = pattern.exec(rest);
    if (found === null) return null;
    const text = found.slice(1).find((group) => group !== undefined) ?? found[0];
    return { length: found[0].length, seen: letters(text, style === null ? styles : [...styles, style]) };
  };
}

const bold = styled(/^\*\*([\s\S]+?)\*\*(?!\*)/, 'bold');
const underline = styled(/^__([\s\S]+?)__(?!_)/, 'underline');
const ITALIC = {
  desktop: styled(
    /^_((?:__|\\[\s\S]|[^\\_])+?)_\b|^\*(?=\S)((?:\*\*|\\[\s\S]|\s+(?:\\[\s\S]|[^\s*\\]|\*\*)|[^\s*\\])+?)\*(?!\*)/,
    'italic',
  ),
  telephone: styled(
    /^_((?:__|\\[\s\S]|[^\\_])+?)_\b|^\*(?=\S)((?:\\\*|\*\*|\s+(?:[^*\s]|\\\*|\*\*)|[^\s*])+?)(?<!\\)\*(?!\*)/,
    'italic',
  ),
};

/** The one takes the longest of the three, the other the first. */
const emphasis: Rule = (rest, context) => {
  const found = [bold, underline, ITALIC[context.client]].map((rule) => rule(rest, context));
  const some = found.filter((each) => each !== null);
  if (context.client === 'desktop') some.sort((one, other) => other.length - one.length);
  return some[0] ?? null;
};

const strike: Rule = (rest, context) => {
  const pattern = context.client === 'desktop' ? /^~~([\s\S]+?)~~(?!_)/ : /^~~([\s\S]+?)~~/;
  return styled(pattern, 'strike')(rest, context);
};

const fence: Rule = (rest, { styles }) => {
  const found = /^```(?:([\w+\-.]+?)?(\s*\n))?([^\n][\s\S]*?)\n*```/.exec(rest);
  const code = found?.[3];
  if (found === null || code === undefined || !/[^`]/.test(code)) return null;
  return { length: found[0].length, seen: letters(code, [...styles, `pre ${found[1] ?? ''}`]) };
};

const codeSpan: Rule = (rest, { client, styles }) => {
  const found =
    client === 'desktop' ? /^(`+)([\s\S]*?[^`])\1(?!`)/.exec(rest) : /^(``?)([\s\S]*?)\1/.exec(rest);
  const code = found?.[2];
  if (found === null || code === undefined || !/[^`]/.test(code)) return null;
  const bare = code.replace(/^ (?= *`)|(` *) $/g, '$1');
  return { length: found[0].length, seen: letters(bare, [...styles, 'code']) };
};

const link: Rule = (rest, context) => {
  const pattern =
    context.client === 'desktop'
      ? /^\[((?:\[[^\]]*\]|[^[\]]|\](?=[^[]*\]))*)\]\(\s*<?((?:\([^)]*\)|[^\s\\]|\\.)*?)>?(?:\s+['"]([\s\S]*?)['"])?\s*\)/
      : /^\[((?:\\.|[^\]\\])*)\]\((\s*<?https?:\/\/.*?(?:\\[^[\]]|[^)[\]\\\n])*)\)/;
  const found = pattern.exec(rest);
  const [whole, label = '', target = ''] = found ?? [];
  const address = target.trim().replace(/^<|>$/g, '');
  // Else the brackets are shown, and what is in them is read on its own.
  if (whole === undefined || /https?:\/\/\S/.test(label) || !/^https?:\/\/\S+$/.test(address)) return null;
  return {
    length: whole.length,
    seen: read(label, { ...context, styles: [...context.styles, `link ${address}`] }),
  };
};

/** What is a block wherever only whitespace, or the sign of another block, stands before it in its line. */
function block(pattern: RegExp, style: string): Rule {
  return (rest, context) => {
    if (!context.atFront || (style === 'quote' && context.inQuote)) return null;
    const found = pattern.exec(rest);
    if (found === null) return null;
    const inner = found.slice(1).find((group) => group !== undefined) ?? '';
    const inside = { ...context, inQuote: style === 'quote' || context.inQuote, atFront: true };
    return {
      length: found[0].length,
      seen: read(inner, { ...inside, styles: [...context.styles, style] }),
    };
  };
}

const quote: Rule = (rest, context) => {
  const pattern =
    context.client === 'desktop'
      ? /^ *>>> ([\s\S]+)|^ *>(?!>>) ([^\n]+\n?)/
      : /^ *>>> ?([\s\S]+)|^ *>(?!>>) ?([^\n]+\n?)/;
  return block(pattern, 'quote')(rest, context);
};

const ITEM = /^( *)([+*-]|(\d+)\.) +([^\n]+(?:\n\1 {2}[^\n]+)*\n?)/;

/** A list is bullets or numbers as its first item is, and counts from there. */
const list: Rule = (rest, context) => {
  if (!context.atFront || !ITEM.test(rest)) return null;
  const bullet = BULLETS[Math.min(context.depth, BULLETS.length - 1)] ?? '';
  const seen: Letter[] = [];
  let length = 0;
  let number: number | null | undefined;
  for (let found = ITEM.exec(rest); found !== null; found = ITEM.exec(rest.slice(length))) {
    if (number === undefined) number = found[3] === undefined ? null : Number(found[3]);
    else if (number !== null) number += 1;
    seen.push(...letters(`${found[1]}${number === null ? bullet : `${number}.`} `, context.styles));
    seen.push(...read(found[4] ?? '', { ...context, atFront: true, depth: context.depth + 1 }));
    length += found[0].length;
  }
  return { length, seen };
};

const RULES: Rule[] = [
  literal(/^\\([^0-9A-Za-z\s])/, null),
  literal(/^<([^: >]+:\/[^ >]+)>/, null),
  literal(/^(?:https?|steam|discord):\/\/[^\s<]+[^<.,:;"'\]\s]/, null),
  emphasis,
  strike,
  styled(/^\|\|([\s\S]+?)\|\|/, 'spoiler'),
  fence,
  codeSpan,
  quote,
  block(/^-# (?!-#) *([^\n]+\n?)/, 'small'),
  block(/^#{1,3} (?!#) *([^\n]+\n?)/, 'heading'),
  link,
  list,
  literal(/^<(?:@[!&]?|#)\d+>/, 'mention'),
  literal(/^<(?:a?:\w+:\d+|t:-?\d+(?::\w)?|\/[\w -]+:\d+|id:\w+)>/, 'mention'),
  literal(/^@(?:everyone|here)/, 'mention'),
  literal(/^:[\w+-]+:/, 'emoji'),
];
