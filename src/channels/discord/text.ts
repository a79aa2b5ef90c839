/** Discord's way of writing names into a text (`<@123>`), in words as people see them. Pure, and total. */
import type { Me } from './identity.js';

/** What names stand for; undefined leaves the markup as it is. */
export interface Names {
  user(id: string): string | undefined;
  role(id: string): string | undefined;
  channel(id: string): string | undefined;
}

const MARKUP =
  /<(?:@!?(?<user>\d{1,20})|@&(?<role>\d{1,20})|#(?<channel>\d{1,20})|a?:(?<emoji>\w{2,32}):\d{1,20}|\/(?<command>[^<>:]{1,100}):\d{1,20}|t:(?<time>-?\d{1,13})(?::[A-Za-z])?)>/g;

export function inWords(text: string, names: Names): string {
  return text.replace(MARKUP, (markup, ...rest) => {
    const found = rest.at(-1) as Record<string, string | undefined>;
    return wordsFor(found, names) ?? markup;
  });
}

/** The names of people, roles and channels in the words of a text, without their signs. */
export function namesFor(text: string, names: Names): string[] {
  const named = ({ user, role, channel }: Record<string, string | undefined>) =>
    (user && names.user(user)) ?? (role && names.role(role)) ?? (channel && names.channel(channel)) ?? [];
  return [...text.matchAll(MARKUP)].flatMap(({ groups }) => named(groups ?? {}));
}

function wordsFor(found: Record<string, string | undefined>, names: Names): string | undefined {
  const { user, role, channel, emoji, command, time } = found;
  if (user !== undefined) return withSign('@', names.user(user));
  if (role !== undefined) return withSign('@', names.role(role));
  if (channel !== undefined) return withSign('#', names.channel(channel));
  if (emoji !== undefined) return `:${emoji}:`;
  if (command !== undefined) return `/${command}`;
  return time === undefined ? undefined : moment(Number(time) * 1000);
}

function withSign(sign: string, name: string | undefined): string | undefined {
  return name === undefined ? undefined : sign + name;
}

/** Discord shows such a time to everybody in their own zone; here it is written in UTC. */
function moment(ms: number): string | undefined {
  if (Math.abs(ms) > 8.64e15) return undefined;
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

/**
 * Without the mention that stands before a command: `<@bot> /reset` is `/reset`. `roleIds` are those made for our bot.
 */
export function withoutOpeningMention(text: string, me: Me, isOurRole: (id: string) => boolean): string {
  const match = /^\s*<@([!&]?)(\d{1,20})>\s*(?=[/\uff0f])/.exec(text);
  if (match === null) return text;
  const [opening, kind, id = ''] = match;
  const ours = kind === '&' ? isOurRole(id) : id === me.id;
  return ours ? text.slice(opening.length) : text;
}
