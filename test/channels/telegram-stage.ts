/** A Telegram channel on the fake, with what it hands in and logs: for tests of several bots and of edits. */

import { createTelegram, type Telegram } from '../../src/channels/telegram/channel.js';
import type { TelegramOptions } from '../../src/channels/telegram/options.js';
import type { ChannelState, ChoiceOutcome } from '../../src/core/channel.js';
import type { InboundBatch, InboundMessage } from '../../src/core/message.js';
import type { Portrait } from '../../src/core/persona.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { type FakeTelegram, startFakeTelegram } from '../fakes/telegram.js';
import type { FakeBot } from '../fakes/telegram-bots.js';
import { letIn } from '../harness/sending.js';
import { straight } from '../harness/straight.js';

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
  parts: {
    store(batch: InboundBatch): Promise<void>;
    cursors: Map<string, string>;
    kept: Map<string, string>;
    /** By chat (null: of the library) and persona. */
    portraits: Map<string, Portrait>;
    became: ChoiceOutcome;
  };
  start(): Promise<void>;
  /** Ends the channel and starts another, which knows these messages from the store. */
  restart(recorded: { address: string; platformMessageId: string }[]): Promise<void>;
  /** The process ends at once: the channel does nothing more, and another one starts on what was stored. */
  crash(): Promise<void>;
  /** Resolves when that many messages were handed in, by all bots together. */
  heard(count: number): Promise<InboundMessage[]>;
  close(): Promise<void>;
}

/** What an operator gets who names a token and an address alone. */
export const OPTIONS: Omit<TelegramOptions, 'token' | 'apiRoot'> = {
  ...{ mode: 'polling', webhookUrl: null, webhookSecret: null, personaTokens: {} },
  ...{ messagesPerSecond: 30, perChatBurst: 20, access: { groups: 'listed' } },
  ...{ linkPreviews: false, streaming: 'edit' },
};

/** A channel of one bot that polls, with its log as lines. */
export function channelOn(
  fake: Pick<FakeTelegram, 'token'>,
  apiRoot: string,
  { clock, logged }: { clock: ManualClock; logged: string[] },
): Telegram {
  const write = (fields: object, message: string) => void logged.push(`${message} ${JSON.stringify(fields)}`);
  return createTelegram({
    outward: straight,
    options: {
      ...OPTIONS,
      ...{ token: fake.token, apiRoot, access: { groups: 'closed' } },
    },
    clock,
    log: { debug: write, info: write, warn: write, error: write },
    cursor: async () => null,
    recorded: async () => [],
    portrait: async () => null,
    state: stateIn(new Map()),
  });
}

export const LUNA = { id: 555001, username: 'luna_moon_bot', token: '555001:token-of-the-bot-of-luna' };
export const ARIA = { id: 555002, username: 'aria_song_bot', token: '555002:token-of-the-bot-of-aria' };

/** What a channel keeps in the store, here in memory. */
export function stateIn(kept: Map<string, string>): ChannelState {
  return {
    get: async (names) => new Map([...kept].filter(([name]) => names.includes(name))),
    async set(values) {
      for (const [name, value] of values) value === null ? kept.delete(name) : kept.set(name, value);
    },
    clear: async () => kept.clear(),
  };
}

/** `oneClock`: Telegram's seconds are the channel's, too. */
export async function stage(
  options: Partial<TelegramOptions> = {},
  { oneClock = false }: { oneClock?: boolean } = {},
): Promise<Stage> {
  const clock = manualClock();
  const fake = await startFakeTelegram(oneClock ? { clock } : {});
  const luna = fake.addBot(LUNA);
  const aria = fake.addBot(ARIA);
  const batches: InboundBatch[] = [];
  const logged: string[] = [];
  let intake = new AbortController();
  let changed: (() => void)[] = [];
  const parts: Stage['parts'] = {
    store: async () => {},
    cursors: new Map(),
    kept: new Map(),
    portraits: new Map(),
    became: 'taken',
  };
  const write = (level: string) => (fields: object, message: string) =>
    void logged.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const messages = () =>
    batches.flatMap(({ events }) => events.flatMap((event) => (event.kind === 'message' ? [event] : [])));

  const host: Parameters<typeof createTelegram>[0] = {
    options: {
      ...OPTIONS,
      ...{ token: fake.token, apiRoot: fake.url },
      personaTokens: { luna: LUNA.token, aria: ARIA.token },
      ...options,
    },
    outward: straight,
    clock,
    log: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') },
    cursor: async (bot: string) => parts.cursors.get(bot) ?? null,
    recorded: async () => noted,
    portrait: async (chat, personaId) => parts.portraits.get(`${chat}/${personaId}`) ?? null,
    state: stateIn(parts.kept),
  };
  let noted: { address: string; platformMessageId: string }[] = [];
  let channel = createTelegram(host);
  const crashed: Telegram[] = [];
  const start = () => {
    const life = channel;
    const stillLives = async () => {
      if (crashed.includes(life)) await new Promise(() => {});
    };
    return channel.start(async (batch) => {
      await stillLives();
      await parts.store(batch);
      await stillLives();
      if (batch.cursor !== undefined) parts.cursors.set(batch.cursorFor ?? batch.account, batch.cursor);
      batches.push(batch);
      for (const look of changed) look();
      return letIn(batch, parts.became);
    }, intake.signal);
  };

  return {
    ...{ fake, clock, luna, aria, batches, logged, parts, start },
    get channel() {
      return channel;
    },
    async restart(recorded) {
      intake.abort();
      await channel.stop();
      intake = new AbortController();
      noted = recorded ?? [];
      channel = createTelegram(host);
      await channel.prepare();
      await start();
    },
    async crash() {
      crashed.push(channel);
      intake = new AbortController();
      channel = createTelegram(host);
      await start();
    },
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
