import { afterAll, beforeAll, it } from 'vitest';
import { discordPlatform } from '../harness/discord.js';
import type { Platform } from '../harness/platform.js';
import { describeWithPostgres, type PostgresServer, startPostgres } from '../harness/postgres.js';
import { telegramPlatform } from '../harness/telegram-platform.js';
import { whatsappPlatform } from '../harness/whatsapp.js';
import { converseOnTwo } from './script.js';

const PLATFORMS: [string, () => Promise<Platform>][] = [
  ['Telegram', telegramPlatform],
  ['Discord', discordPlatform],
  ['WhatsApp', whatsappPlatform],
];

describeWithPostgres('on two gateways', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());

  it.each(PLATFORMS)(
    'the same conversation passes on %s while the one that answers ends again and again',
    async (_name, platform) => converseOnTwo(await platform(), { url: await server.emptyDatabase() }),
    300_000,
  );
});
