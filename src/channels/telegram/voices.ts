/** By which of our bots something is said, and what then stands in the text. */
import type { Part, Recipient, SendOptions } from '../../core/channel.js';
import type { PersonaId } from '../../core/ids.js';
import { named } from '../named.js';
import type { Bot } from './bot.js';
import type { Bots } from './bots.js';
import type { Presence } from './presence.js';

export type Speaking = Pick<SendOptions, 'speaker' | 'face' | 'leads'>;

export function speakerOf({ speaker, face }: Speaking): PersonaId | undefined {
  return speaker ?? face?.personaId;
}

/**
 * Best first, never empty: the persona's own bot; for the gateway's own words in a direct chat the one that was
 * spoken to; the main bot; and where that is not there either, whichever is.
 */
export function voicesFor(
  { bots, presence }: { bots: Bots; presence: Presence },
  { address, kind }: Recipient,
  speaker: PersonaId | undefined,
): Bot[] {
  const own = speaker === undefined ? undefined : bots.ofPersona(speaker);
  const heard = presence.lastToHear(address);
  const first = speaker === undefined && kind === 'direct' ? heard : own;
  const order = [first, bots.main, heard, ...bots.personas].filter((bot) => bot !== undefined);
  const voices = [...new Set(order)];
  const there = voices.filter((bot) => !presence.isAbsent(bot, address));
  return there.length > 0 ? there : voices;
}

/** A persona's own bot has its name; another one tells it where it is to be seen. */
export function inVoiceOf(bot: Bot, part: Part, speaking: Speaking): Part {
  const isOwn = bot.personaId !== null && bot.personaId === speakerOf(speaking);
  return isOwn ? part : named(part, speaking);
}
