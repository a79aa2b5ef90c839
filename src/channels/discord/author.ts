/**
 * How a persona is shown on Discord, where several speak: as the author of a webhook's message, with its own name and
 * picture; else by the bot, with the name in bold before the text. `default` always speaks as the bot itself. Pure.
 */
import type { Part, Recipient, SendOptions } from '../../core/channel.js';
import { DEFAULT_PERSONA } from '../../core/ids.js';
import { withSpeakerName } from '../kit/outgoing.js';
import { fits } from './outbound.js';

/** The name of our webhooks, and of whoever speaks through one under a name that Discord does not take. */
export const NEUTRAL_NAME = 'Coterie';

const LONGEST_NAME = 80;
const LONGEST_LINK = 2_048;
/** A space too thin to be seen, which Discord keeps. */
const HAIR = '\u200a';
/** Discord lets nobody speak who has the first two in their name, or whose whole name is one of the others. */
const WITHIN_FORBIDDEN = /(?<=d)(?=iscord)|(?<=c)(?=lyde)|(?<=^e)(?=veryone$)|(?<=^h)(?=ere$)/gi;
/** Signs that Discord keeps for itself, and the wide form in which they may stand. */
const WIDE: Record<string, string> = { '@': '＠', '#': '＃', ':': '：' };

/** The author of a message that goes through a webhook. */
export interface Author {
  username: string;
  avatar_url?: string;
}

type Shown = Pick<SendOptions, 'appearance' | 'leads'>;

/** null where the bot itself speaks: direct chats have no webhooks. */
export function authorOf({ kind }: Recipient, { appearance }: Shown): Author | null {
  if (kind === 'direct' || appearance === undefined || appearance.personaId === DEFAULT_PERSONA) return null;
  const { name, avatar } = appearance;
  return { username: acceptable(name), ...(isPicture(avatar) ? { avatar_url: avatar } : {}) };
}

/** The part as it is shown where the author's name does not say whose it is. */
export function withName(part: Part, { appearance, leads }: Shown): Part {
  if (appearance === undefined || !leads || appearance.personaId === DEFAULT_PERSONA) return part;
  const shown = withSpeakerName(part, { appearance, leads });
  // What does not fit would not be taken: better without its name than not at all.
  return fits(shown) || !fits(part) ? shown : part;
}

/** A name that reads the same and that Discord takes. */
export function acceptable(name: string): string {
  const plain = name
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
    .replace(/[@#:]/g, (sign) => WIDE[sign] ?? sign)
    .replace(/``(?=`)/g, `\`${HAIR}\`${HAIR}`);
  return shortened(plain.replace(WITHIN_FORBIDDEN, HAIR)) || NEUTRAL_NAME;
}

/** Whether two names read the same: Discord may change what cannot be seen in one. */
export function readsAs(one: string, other: string): boolean {
  return visible(one) === visible(other);
}

function visible(name: string): string {
  return name.replace(/[\s\p{Cf}]/gu, '');
}

function shortened(name: string): string {
  if (Array.from(name).length <= LONGEST_NAME) return name;
  let kept = '';
  let length = 1;
  for (const { segment } of new Intl.Segmenter().segment(name)) {
    length += Array.from(segment).length;
    if (length > LONGEST_NAME) break;
    kept += segment;
  }
  return `${kept.trimEnd()}…`;
}

function isPicture(address: string | null): address is string {
  return (
    address !== null &&
    address.length <= LONGEST_LINK &&
    URL.canParse(address) &&
    /^https?:$/.test(new URL(address).protocol)
  );
}
