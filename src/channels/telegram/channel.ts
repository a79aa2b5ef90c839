/**
 * Telegram: the first and the last step of the route. What comes in is put into our words (`inbound.ts`) and
 * stored before Telegram hears that we have it; what goes out is cut and marked up (`outbound.ts`) and said by the
 * bot whose it is (`speaking.ts`). This file joins the parts, and holds no rule of its own.
 */
import type { Channel, Receive } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { Fault } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { InboundBatch } from '../../core/message.js';
import { createState } from '../state.js';
import { createAdministrators } from './administrators.js';
import type { Bot } from './bot.js';
import { createBots } from './bots.js';
import { check } from './check.js';
import { createEar } from './ear.js';
import { fetchFile } from './fetch.js';
import { readFileId } from './message-id.js';
import type { TelegramOptions } from './options.js';
import { compose } from './outbound.js';
import { poll } from './polling.js';
import { createPresence } from './presence.js';
import { createSpeaking } from './speaking.js';
import { answerCall, keepWebhook, WEBHOOK_PATH } from './webhook.js';

export interface TelegramParts {
  options: TelegramOptions;
  clock: Clock;
  log: Log;
  /** The cursor of the last batch of a bot's that was stored, by the bot's id; null before the first. */
  initialCursor(bot: string): Promise<string | null>;
  /** Whether personas are to know what is said in groups between the messages for them. */
  wantsQuietListening: boolean;
}

interface Webhook {
  path: string;
  /** Takes one update; answers with the HTTP status. Never rejects. */
  handle(body: unknown, secret: string | null): Promise<number>;
}

/** `webhook` is there in that mode, for the HTTP listener. */
export type Telegram = Channel & Required<Pick<Channel, Capability>> & { webhook?: Webhook };

type Capability =
  | 'edit'
  | 'remove'
  | 'preview'
  | 'setTyping'
  | 'fetch'
  | 'isAdministrator'
  | 'announceCommands'
  | 'check';

export function createTelegram({
  options,
  clock,
  log,
  initialCursor,
  wantsQuietListening,
}: TelegramParts): Telegram {
  const { webhookUrl, webhookSecret } = options;
  const bots = createBots(options, { clock, log });
  const { main } = bots;
  const state = createState(clock);
  const presence = createPresence(clock);
  const administrators = createAdministrators(bots.all, clock);
  const speaking = createSpeaking({ bots, presence, log });
  const stopping = new AbortController();
  let receive: Receive | null = null;
  let intake: Promise<unknown> = Promise.resolve();
  const storing = new Set<Promise<unknown>>();

  async function store(batch: Omit<InboundBatch, 'channel'>): Promise<void> {
    if (receive === null) throw new Error('taking in has not begun');
    const stored = receive({ channel: 'telegram', ...batch });
    storing.add(stored);
    try {
      await stored;
    } finally {
      storing.delete(stored);
    }
  }

  const earOf = (bot: Bot) => createEar({ bot, bots, presence, store });
  const ear = earOf(main);

  /** What the channel says of itself is what its main bot says. */
  function listen(bot: Bot): Promise<void> {
    const { api, personaId } = bot;
    const isMain = bot === main;
    const common = { api, clock, log, signal: stopping.signal };
    const parts = { ...common, ...(isMain ? ear : earOf(bot)), state: isMain ? state : createState(clock) };
    return isMain && options.mode === 'webhook' && webhookUrl !== null && webhookSecret !== null
      ? keepWebhook({ ...parts, url: webhookUrl, secret: webhookSecret })
      : poll({ ...parts, personaId, initialCursor });
  }

  /** For calls whose errors go out of here. */
  async function orFault<T>(what: string, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      throw new Fault('internal', `${what}: ${main.api.failure(error).reason}`);
    }
  }

  const channel: Telegram = {
    ...speaking,
    name: 'telegram',
    limits: {
      messagesPerSecond: options.messagesPerSecond,
      perChatBurst: options.perChatBurst,
      perChatPerSecond: { direct: 1, group: 20 / 60 },
    },
    compose,
    status: state.status,

    async start(to, signal) {
      receive = to;
      signal.addEventListener('abort', () => stopping.abort(), { once: true });
      if (signal.aborted) stopping.abort();
      intake = Promise.all(bots.all.map(listen));
    },

    async fetch(attachment, ask) {
      const { bot: id, file } = readFileId(attachment.source);
      const bot = id === null ? main : bots.withId(id);
      if (bot === undefined) return { kind: 'gone', reason: 'the bot that was told of it is none of ours' };
      return fetchFile(bot.api, { source: file }, ask);
    },

    async stop() {
      stopping.abort();
      await intake;
      await Promise.allSettled(storing);
      bots.close();
    },

    isAdministrator: (chat, sender) =>
      orFault(`Telegram could not be asked who manages the group ${chat}`, () =>
        administrators.has(chat, sender),
      ),

    async announceCommands(commands) {
      const list = commands.map(({ name, description }) => ({ command: name, description }));
      const announce = ({ api }: Bot) =>
        api.call((raw, ended) => raw.setMyCommands({ commands: list }, ended));
      await orFault('The chat commands could not be made known to Telegram', () => announce(main));
      for (const bot of bots.personas) {
        await announce(bot).catch((error: unknown) => {
          const fields = { channel: 'telegram', persona: bot.personaId };
          const { reason } = bot.api.failure(error);
          log.warn({ ...fields, reason }, "the chat commands could not be made known to a persona's bot");
        });
      }
    },

    check: () =>
      orFault(`Telegram does not let the bot of channels.telegram.token in`, () =>
        check(bots, options, wantsQuietListening),
      ),
  };
  if (options.mode !== 'webhook' || webhookSecret === null) return channel;

  return {
    ...channel,
    webhook: {
      path: WEBHOOK_PATH,
      handle: (body, secret) =>
        answerCall(body, secret, {
          secret: webhookSecret,
          read: (updates) => (stopping.signal.aborted ? null : ear.read(updates)),
          accept: ear.accept,
          log,
        }),
    },
  };
}
