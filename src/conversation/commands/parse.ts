/** Recognises commands: turns what a person typed into a command's name and argument, or null. Pure. */
import type { NewCommand } from '../../core/receipt.js';

/** Invisible characters that phones and copied text put before a slash. */
const INVISIBLE = /[\u200b-\u200f\u202a-\u202e\u2060\ufeff]/g;

/**
 * null for anything that is not a known command: unknown slash text is conversation. The channel removes the bot's name
 * after the command, so any that is left is ours. If our account was mentioned, its name may precede the command.
 */
export function parseCommand(
  text: string,
  known: ReadonlySet<string>,
  mentionsBot = false,
): NewCommand | null {
  const said = mentionsBot ? visible(text).replace(/^@\S+\s+/u, '') : visible(text);
  const match = /^[/\uff0f]([A-Za-z_]+)(?:@coterie)?(?:\s+([\s\S]*))?$/i.exec(said);
  const name = match?.[1]?.toLowerCase();
  if (!name || !known.has(name)) return null;
  return { name, argument: (match?.[2] ?? '').trim() };
}

/** Whether a person said just yes; if our account was mentioned, its name may surround it. */
export function isYes(text: string, mentionsBot: boolean): boolean {
  return isJust('yes', text, mentionsBot);
}

/** Whether a person said just undo. */
export function isUndo(text: string, mentionsBot: boolean): boolean {
  return isJust('undo', text, mentionsBot);
}

function isJust(word: string, text: string, mentionsBot: boolean): boolean {
  const said = visible(text);
  const words = mentionsBot ? said.replace(/^@\S+\s+|\s+@\S+$/u, '') : said;
  return words.replace(/[\s.!]+$/, '').toLowerCase() === word;
}

function visible(text: string): string {
  return text.replaceAll(INVISIBLE, '').trim();
}

/** The first word in lower case, and the text after it as written. */
export function verbAndRest(argument: string): { verb: string; rest: string } {
  const match = /^(\S*)\s*([\s\S]*)$/.exec(argument.trim());
  return { verb: (match?.[1] ?? '').toLowerCase(), rest: match?.[2] ?? '' };
}

/** Removes quotes that enclose the whole text. */
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
