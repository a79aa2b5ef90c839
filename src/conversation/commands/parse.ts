/** Recognises commands: parses typed text into a command's name and argument, or null. Pure. */
import type { NewCommand } from '../../core/receipt.js';

/** Invisible characters that phones and copied text put before a slash. */
const INVISIBLE = /[\u200b\u200e\u200f\u202a-\u202e\u2060\ufeff]/g;
/** Kept in arguments: many scripts and emoji need them. */
const JOINERS = /[\u200c\u200d]/g;
const COMMAND = /^[\u200c\u200d]*[/\uff0f][\u200c\u200d]*([A-Za-z_]+)([\s\S]*)$/;
const ARGUMENT = /^[\u200c\u200d]*(?:$|\s+([\s\S]*)$)/;

export interface CommandAddress {
  /** Our account was mentioned: its name may precede the command. */
  mentionsBot: boolean;
  isDirect: boolean;
  /** Names of our account, which may follow the command: `/reset@Name`. Some channels strip them. */
  names: readonly string[];
}

/** null for anything but a known command: unknown slash text is conversation. */
export function parseCommand(
  text: string,
  known: ReadonlySet<string>,
  { mentionsBot, ...addressed }: CommandAddress,
): NewCommand | null {
  const said = mentionsBot ? visible(text).replace(/^@\S+\s+/u, '') : visible(text);
  const [, word, rest = ''] = COMMAND.exec(said) ?? [];
  const name = word?.toLowerCase();
  if (!name || !known.has(name)) return null;
  const argument = ARGUMENT.exec(rest.startsWith('@') ? withoutName(rest, addressed) : rest);
  return argument === null ? null : { name, argument: (argument[1] ?? '').trim() };
}

/** The text after `@Name` if the name is ours; in a direct chat, any name is. */
function withoutName(text: string, { isDirect, names }: Omit<CommandAddress, 'mentionsBot'>): string {
  const named = text.replace(/^@+/, '');
  for (const name of [...names, 'coterie']) {
    const rest = named.slice(name.length);
    if (named.toLowerCase().startsWith(name.toLowerCase()) && ARGUMENT.test(rest)) return rest;
  }
  return isDirect ? named.replace(/^\S+/, '') : text;
}

/** Whether the text is just this word, possibly with our account's name around it. */
export function isJust(word: 'yes' | 'undo', text: string, mentionsBot: boolean): boolean {
  const said = withoutMention(text, mentionsBot).replace(/(?<![\s.!])[\s.!]+$/, '');
  return said.toLowerCase() === word;
}

/** The number, if the text is nothing else (`2`, `2.`, `2️⃣`), in the digits of any script; else null. */
export function numberIn(text: string, mentionsBot: boolean): number | null {
  const said = withoutMention(text, mentionsBot)
    .normalize('NFKC')
    .replace(/[\ufe0f\u20e3]/g, '');
  const [, digits] = /^(\p{Nd}{1,2})[.)]?$/u.exec(said) ?? [];
  return digits === undefined ? null : Number(Array.from(digits, digitValue).join(''));
}

/** The ten digits of a script have consecutive code points. */
function digitValue(digit: string): number {
  const at = digit.codePointAt(0) ?? 0;
  let value = 0;
  while (/\p{Nd}/u.test(String.fromCodePoint(at - value - 1))) value++;
  return value;
}

function withoutMention(text: string, mentionsBot: boolean): string {
  const said = visible(text).replaceAll(JOINERS, '');
  return mentionsBot ? said.replace(/^@\S+\s+|(?<!\s)\s+@\S+$/u, '') : said;
}

function visible(text: string): string {
  return text.replaceAll(INVISIBLE, '').trim();
}

/** The first word in lower case, and the rest as written. */
export function verbAndRest(argument: string): { verb: string; rest: string } {
  const match = /^(\S*)\s*([\s\S]*)$/.exec(argument.trim());
  return { verb: (match?.[1] ?? '').toLowerCase(), rest: match?.[2] ?? '' };
}

export function unquoted(text: string): string {
  const inner = /^(?:"([^"]*)"|'([^']*)'|[“„”]([^“„”]*)[“”]|«([^»]*)»)$/u.exec(text.trim());
  return (inner?.slice(1).find((group) => group !== undefined) ?? text).trim();
}

/** Splits an argument into words; text in quotes (also typographic ones) is one word. */
export function words(argument: string): string[] {
  return Array.from(
    argument.matchAll(/"([^"]*)"|'([^']*)'|[“„”]([^“”]*)[“”]|«([^»]*)»|(\S+)/gu),
    (match) => match.slice(1).find((group) => group !== undefined) ?? '',
  );
}
