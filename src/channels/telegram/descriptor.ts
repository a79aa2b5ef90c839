/** Telegram, for the list of channels. */
import { describeChannel } from '../kit/descriptor.js';
import { telegramIds } from './ids.js';
import { telegramOptions } from './options.js';

export const telegram = describeChannel({
  name: 'telegram',
  label: 'Telegram',
  options: telegramOptions,
  secrets: ['token', 'webhookSecret', 'personaTokens'],
  ids: telegramIds,
  streaming: ['edit', 'draft', 'off'],
  create: async (host) => (await import('./channel.js')).createTelegram(host, await host.recorded()),
});
