import { it } from 'vitest';
import { discordPlatform } from '../harness/discord.js';
import type { Platform } from '../harness/platform.js';
import { telegramPlatform } from '../harness/telegram-platform.js';
import { whatsappPlatform } from '../harness/whatsapp.js';
import { share } from './room.js';

const PERSONA_BOTS = { luna: 'Luna', max: 'Max', iris: 'Iris' };

const PLATFORMS: [string, () => Promise<Platform>][] = [
  ['Telegram, with one bot', () => telegramPlatform()],
  ['Telegram, with a bot for each persona', () => telegramPlatform({ personaBots: PERSONA_BOTS })],
  ['Discord', discordPlatform],
  ['WhatsApp', whatsappPlatform],
];

it.each(PLATFORMS)('three personas share a room on %s', async (_name, platform) => {
  await share(await platform());
});
