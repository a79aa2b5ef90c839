import { afterAll, beforeAll, it } from 'vitest';
import { discordPlatform } from '../harness/discord.js';
import type { Platform } from '../harness/platform.js';
import { describeWithPostgres, type PostgresServer, startPostgres } from '../harness/postgres.js';
import { telegramPlatform } from '../harness/telegram-platform.js';
import { whatsappPlatform } from '../harness/whatsapp.js';
import { converse } from './script.js';

const PLATFORMS: [string, () => Promise<Platform>][] = [
  ['Telegram', telegramPlatform],
  ['Discord', discordPlatform],
  ['WhatsApp', whatsappPlatform],
];

it.each(PLATFORMS)('the same conversation passes on %s', async (_name, platform) => {
  await converse(await platform());
});

describeWithPostgres('on PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());

  it.each(PLATFORMS)('the same conversation passes on %s', async (_name, platform) => {
    await converse(await platform(), { url: await server.emptyDatabase() });
  });
});
