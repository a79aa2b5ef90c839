/** A Telegram channel on the fake, with what it hands in and logs: for tests of several bots and of edits. */
import { createTelegram, type Telegram } from '../../src/channels/telegram/channel.js';
import type { TelegramOptions } from '../../src/channels/telegram/options.js';
import type { InboundBatch, InboundMessage } from '../../src/core/message.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { type FakeTelegram, startFakeTelegram } from '../fakes/telegram.js';
import type { FakeBot } from '../fakes/telegram-bots.js';
import { ALL_LET_IN } from '../harness/sending.js';

export interface Stage {
  fake: FakeTelegram;
  clock: ManualClock;
  channel: Telegram;
  /** Of luna and of aria: in no chat yet. */
  luna: FakeBot;
  aria: FakeBot;
  batches: InboundBatch[];
  logged: string[];
  /** What `receive` does with a batch; may be changed. */
  parts: { store(batch: InboundBatch): Promise<void>; cursors: Map<string, string> };
  start(): Promise<void>;
  /** Resolves when that many messages were handed in, by all bots together. */
  heard(count: number): Promise<InboundMessage[]>;
  close(): Promise<void>;
}

/** A channel of one bot that polls, with its log as lines. */
export function channelOn(
  fake: Pick<FakeTelegram, 'token'>,
  apiRoot: string,
  { clock, logged }: { clock: ManualClock; logged: string[] },
): Telegram {
  const write = (fields: object, message: string) => void logged.push(`${message} ${JSON.stringify(fields)}`);
  return createTelegram({
    options: {
      ...{ token: fake.token, apiRoot, mode: 'polling', webhookUrl: null, webhookSecret: null },
      ...{
        personaTokens: {},
        messagesPerSecond: 30,
        perChatBurst: 20,
        access: { groups: 'closed' },
        linkPreviews: false,
      },
    },
    clock,
    log: { debug: write, info: write, warn: write, error: write },
    cursor: async () => null,
  });
}

export const LUNA = { id: 555001, username: 'luna_moon_bot', token: '555001:token-of-the-bot-of-luna' };
export const ARIA = { id: 555002, username: 'aria_song_bot', token: '555002:token-of-the-bot-of-aria' };

export async function stage(options: Partial<TelegramOptions> = {}): Promise<Stage> {
  const fake = await startFakeTelegram();
  const clock = manualClock();
  const luna = fake.addBot(LUNA);
  const aria = fake.addBot(ARIA);
  const batches: InboundBatch[] = [];
  const logged: string[] = [];
  const intake = new AbortController();
  let changed: (() => void)[] = [];
  const parts: Stage['parts'] = { store: async () => {}, cursors: new Map() };
  const write = (level: string) => (fields: object, message: string) =>
    void logged.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const messages = () =>
    batches.flatMap(({ events }) => events.flatMap((event) => (event.kind === 'message' ? [event] : [])));

  const channel = createTelegram({
    options: {
      ...{ token: fake.token, apiRoot: fake.url, mode: 'polling', webhookUrl: null, webhookSecret: null },
      ...{ messagesPerSecond: 30, perChatBurst: 20, access: { groups: 'listed' }, linkPreviews: false },
      personaTokens: { luna: LUNA.token, aria: ARIA.token },
      ...options,
    },
    clock,
    log: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') },
    cursor: async (bot) => parts.cursors.get(bot) ?? null,
  });

  return {
    ...{ fake, clock, channel, luna, aria, batches, logged, parts },
    start: () =>
      channel.start(async (batch) => {
        await parts.store(batch);
        batches.push(batch);
        for (const look of changed) look();
        return ALL_LET_IN;
      }, intake.signal),
    heard: (count) =>
      new Promise((resolve) => {
        const look = () => {
          if (messages().length < count) return;
          changed = changed.filter((other) => other !== look);
          resolve(messages());
        };
        changed.push(look);
        look();
      }),
    async close() {
      intake.abort();
      await channel.stop();
      await fake.close();
    },
  };
}
