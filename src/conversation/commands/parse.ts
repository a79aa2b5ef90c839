/** Recognising commands, pure: what a person typed to the name and argument of a command, or to nothing. */
import type { NewCommand } from '../../core/store.js';

/** Signs that phones and copied text put before a slash without anybody seeing them. */
const INVISIBLE = /[\u200b-\u200f\u202a-\u202e\u2060\ufeff]/g;

/**
 * null for anything that is not one of the known commands: unknown slash text is conversation. A bot's own name
 * behind the command is the channel's to remove; where there is none, it is ours.
 */
export function parseCommand(text: string, known: ReadonlySet<string>): NewCommand | null {
  const plain = text.replaceAll(INVISIBLE, '').trim();
  const match = /^[/\uff0f]([A-Za-z_]+)(?:@coterie)?(?:\s+([\s\S]*))?$/i.exec(plain);
  const name = match?.[1]?.toLowerCase();
  if (!name || !known.has(name)) return null;
  return { name, argument: (match?.[2] ?? '').trim() };
}

/** Splits an argument into words; what stands in quotes (of a phone, too) is one word. */
export function words(argument: string): string[] {
  return Array.from(
    argument.matchAll(/"([^"]*)"|'([^']*)'|[“„”]([^“”]*)[“”]|«([^»]*)»|(\S+)/gu),
    (match) => match.slice(1).find((group) => group !== undefined) ?? '',
  );
}
