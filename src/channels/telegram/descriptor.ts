/** Telegram's entry in the list of channels, and the forms of its ids. */
import type { ChannelDescriptor } from '../kit/descriptor.js';
import { telegramOptions } from './options.js';

export const telegram: ChannelDescriptor<'telegram', typeof telegramOptions> = {
  name: 'telegram',
  label: 'Telegram',
  options: telegramOptions,
  secrets: ['token', 'webhookSecret', 'personaTokens'],
  // https://core.telegram.org/api/bots/ids: people (and bots) are 1 to 1099511627775; negative ids, down to
  // -4000000000000, are groups, supergroups and channels. A chat with a person has the person's id.
  ids: {
    expected: 'telegram_123456789 for a person, telegram_-1001234567890 for a group',
    kindOf(address) {
      if (!/^-?[1-9]\d{0,12}$/.test(address)) return null;
      const id = Number(address);
      if (id < -4_000_000_000_000 || id > 1_099_511_627_775) return null;
      return id < 0 ? 'group' : 'sender';
    },
  },
  streaming: ['edit', 'draft', 'off'],
  create: async (host) => (await import('./channel.js')).createTelegram(host),
};
