import { expect, it } from 'vitest';
import { discordPlatform } from '../harness/discord.js';
import type { Platform } from '../harness/platform.js';
import { telegramPlatform } from '../harness/telegram-platform.js';
import { whatsappPlatform } from '../harness/whatsapp.js';
import { killAtRandom, PHASES } from './kills.js';

const seed = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);
const KILLS = 60;

/** A reply that was taken just before the end may stand twice, but hardly ever several for one end of the process. */
const MOST_TWICE_PER_KILL = 3;

const PLATFORMS: [string, () => Promise<Platform>][] = [
  ['Telegram', telegramPlatform],
  ['Discord', discordPlatform],
  ['WhatsApp', whatsappPlatform],
];

it.each(PLATFORMS)(
  'answers every message on %s in order after sixty ends of the process, at least five in each step',
  async (_name, platform) => {
    const report = await killAtRandom(await platform(), { kills: KILLS, seed });
    for (const phase of PHASES) expect(report.kills[phase], `kills while ${phase}`).toBeGreaterThanOrEqual(5);
    expect(report.twice).toBeLessThan(KILLS * MOST_TWICE_PER_KILL);
  },
  900_000,
);
