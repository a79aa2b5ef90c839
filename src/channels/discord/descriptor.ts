/** Discord, for the list of channels. */
import { describeChannel } from '../kit/descriptor.js';
import { discordIds } from './ids.js';
import { discordOptions } from './options.js';

export const discord = describeChannel({
  name: 'discord',
  label: 'Discord',
  options: discordOptions,
  secrets: ['token'],
  ids: discordIds,
  streaming: ['edit', 'off'],
  create: async (host) => (await import('./channel.js')).createDiscord(host),
});
