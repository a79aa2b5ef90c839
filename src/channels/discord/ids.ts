/** What a Discord id tells by its form. Pure. */
import type { IdForms } from '../kit/descriptor.js';

/**
 * From https://discord.com/developers/docs/reference#snowflakes: people, channels and servers are all numbers of 64 bits
 * that begin with the time at which they were made, so the form does not tell which of them one is.
 */
export const discordIds: IdForms = {
  expected: 'discord_112233445566778899, the id of a person, a channel or a server',
  kindOf: (address) => (/^\d{15,20}$/.test(address) ? 'unknown' : null),
};
