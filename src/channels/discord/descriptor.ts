/** Discord's entry in the list of channels. */
import type { ChannelDescriptor } from '../kit/descriptor.js';
import { discordOptions } from './options.js';

export const discord: ChannelDescriptor<'discord', typeof discordOptions> = {
  name: 'discord',
  label: 'Discord',
  options: discordOptions,
  secrets: ['token'],
  // https://discord.com/developers/docs/reference#snowflakes: people, channels and servers share a form.
  ids: {
    expected: 'discord_112233445566778899, the id of a person, a channel or a server',
    kindOf: (address) => (/^\d{15,20}$/.test(address) ? 'unknown' : null),
  },
  streaming: ['edit', 'off'],
  create: async (host) => (await import('./channel.js')).createDiscord(host),
};
