/** Recognising commands, pure: what a person typed to the name and argument of a command, or to nothing. */
import type { NewCommand } from '../../core/store.js';

/** Signs that phones and copied text put before a slash without anybody seeing them. */
const INVISIBLE = /[\u200b-\u200f\u202a-\u202e\u2060\ufeff]/g;

/**
 * null for anything that is not one of the known commands: unknown slash text is conversation. A bot's own name
 * behind the command is the channel's to remove; where there is none, it is ours. Where our account was named, its name
 * may stand before the command.
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

/** Whether a person said no more than yes; where our account was named, its name may stand around it. */
export function isYes(text: string, mentionsBot: boolean): boolean {
  const said = visible(text);
  const words = mentionsBot ? said.replace(/^@\S+\s+|\s+@\S+$/u, '') : said;
  return /^yes[\s.!]*$/i.test(words);
}

function visible(text: string): string {
  return text.replaceAll(INVISIBLE, '').trim();
}

/** What stands behind the first word, as it was written, and that word in lower case. */
export function verbAndRest(argument: string): { verb: string; rest: string } {
  const match = /^(\S*)\s*([\s\S]*)$/.exec(argument.trim());
  return { verb: (match?.[1] ?? '').toLowerCase(), rest: match?.[2] ?? '' };
}

/** A text that stands in quotes as a whole is meant without them. */
export function unquoted(text: string): string {
  const inner = /^(?:"([^"]*)"|'([^']*)'|[“„”]([^“„”]*)[“”]|«([^»]*)»)$/u.exec(text.trim());
  return (inner?.slice(1).find((group) => group !== undefined) ?? text).trim();
}

/** Splits an argument into words; what stands in quotes (of a phone, too) is one word. */
export function words(argument: string): string[] {
  return Array.from(
    argument.matchAll(/"([^"]*)"|'([^']*)'|[“„”]([^“”]*)[“”]|«([^»]*)»|(\S+)/gu),
    (match) => match.slice(1).find((group) => group !== undefined) ?? '',
  );
}
