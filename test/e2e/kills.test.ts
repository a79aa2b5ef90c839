import { expect, it } from 'vitest';
import { discordPlatform } from '../harness/discord.js';
import type { Platform } from '../harness/platform.js';
import { telegramPlatform } from '../harness/telegram-platform.js';
import { whatsappPlatform } from '../harness/whatsapp.js';
import { killAtRandom, NONE } from './kills.js';

/** COTERIE_SEED repeats a run. The full number is in the long tests. */
const seed = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);

const PLATFORMS: [string, number, () => Promise<Platform>][] = [
  ['Telegram', 4, telegramPlatform],
  ['Discord', 2, discordPlatform],
  ['WhatsApp', 2, whatsappPlatform],
];

it.each(PLATFORMS)(
  'answers every message on %s once and in order after %d ends of the process at random moments',
  async (_name, kills, platform) => {
    const report = await killAtRandom(await platform(), { kills, seed });
    const reached = Object.values(report.aimed).reduce((sum, count) => sum + count, 0);
    expect(report).toMatchObject(NONE);
    expect(reached, 'kills in the moment they were meant for').toBeGreaterThanOrEqual(kills / 2);
  },
  240_000,
);
