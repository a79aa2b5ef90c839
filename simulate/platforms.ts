/** The platforms that there are fakes of. */
import { discordPlatform } from '../test/harness/discord.js';
import type { Platform } from '../test/harness/platform.js';
import { telegramPlatform } from '../test/harness/telegram-platform.js';
import { whatsappPlatform } from '../test/harness/whatsapp.js';

export type PlatformName = Platform['name'];

/** `personaBots`: names of personas that have a bot of their own, where a platform has that. */
export const PLATFORMS: Record<PlatformName, (personaBots: string[]) => Promise<Platform>> = {
  telegram: (names) =>
    telegramPlatform({ personaBots: Object.fromEntries(names.map((name) => [name.toLowerCase(), name])) }),
  discord: () => discordPlatform(),
  whatsapp: () => whatsappPlatform(),
};

export function isPlatformName(word: string): word is PlatformName {
  return Object.hasOwn(PLATFORMS, word);
}
