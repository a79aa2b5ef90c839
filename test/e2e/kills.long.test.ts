import { afterAll, expect, it } from 'vitest';
import { discordPlatform } from '../harness/discord.js';
import type { Platform } from '../harness/platform.js';
import { describeWithPostgres, startPostgres } from '../harness/postgres.js';
import { telegramPlatform } from '../harness/telegram-platform.js';
import { whatsappPlatform } from '../harness/whatsapp.js';
import { killWhileSaidAnew } from './anew.js';
import { crashTable, type KillReport, killAtRandom, NONE, PHASES } from './kills.js';

const seed = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);
const KILLS = 60;
/** The places in which an answer said anew can be cut are few: three platforms come through all of them in sixty. */
const KILLS_ANEW = 20;

const reports: KillReport[] = [];
afterAll(() => void process.stdout.write(`\n${crashTable(reports)}\n`));

const PLATFORMS: [string, () => Promise<Platform>][] = [
  ['Telegram', telegramPlatform],
  ['Discord', discordPlatform],
  ['WhatsApp', whatsappPlatform],
];

it.concurrent.each(PLATFORMS)(
  'answers every message on %s once and in order after sixty ends of the process, at least five in each step',
  async (_name, platform) => endsAll(await platform()),
  1_200_000,
);

it.concurrent.each(PLATFORMS)(
  'shows one version of each answer on %s, which is its history, after twenty ends of the process while it is said anew',
  async (_name, platform) => killWhileSaidAnew(await platform(), { kills: KILLS_ANEW, seed }),
  1_200_000,
);

describeWithPostgres('on PostgreSQL', () => {
  it.concurrent('the same on Telegram', async () => {
    const server = await startPostgres();
    try {
      await endsAll(await telegramPlatform(), { url: await server.emptyDatabase() });
    } finally {
      await server.close();
    }
  }, 1_200_000);
});

async function endsAll(platform: Platform, store?: { url: string }): Promise<void> {
  // On Discord half of the chats are groups, of a server; WhatsApp's phones know direct chats best.
  const groups = platform.name === 'discord';
  const report = await killAtRandom(platform, { kills: KILLS, seed, groups, ...(store && { store }) });
  reports.push(report);
  for (const phase of PHASES) expect(report.aimed[phase], `kills while ${phase}`).toBeGreaterThanOrEqual(5);
  expect(report).toMatchObject(NONE);
}
