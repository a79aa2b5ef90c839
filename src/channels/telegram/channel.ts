/**
 * Telegram: the first and the last step of the route. What comes in is put into our words (`inbound.ts`) and
 * stored before Telegram hears that we have it; what goes out is cut and marked up (`outbound.ts`). This file
 * joins the parts, keeps who we are, and holds no rule of its own.
 */
import type { Channel, Receive } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { Fault } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { InboundBatch } from '../../core/message.js';
import { createState } from '../state.js';
import { createAdministrators } from './administrators.js';
import { createBotApi } from './api.js';
import { check } from './check.js';
import { failureOf } from './failure.js';
import { fetchFile } from './fetch.js';
import type { Me } from './inbound.js';
import type { TelegramOptions } from './options.js';
import { chatId, compose, numeric } from './outbound.js';
import { poll } from './polling.js';
import { send } from './send.js';
import { answerCall, keepWebhook, WEBHOOK_PATH } from './webhook.js';

export interface TelegramParts {
  options: TelegramOptions;
  clock: Clock;
  log: Log;
  /** The cursor of the last batch that was stored; null before the first. */
  initialCursor(account: string): Promise<string | null>;
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

type Capability = 'setTyping' | 'fetch' | 'isAdministrator' | 'announceCommands' | 'check';

type Accepted = Omit<InboundBatch, 'channel'>;

export function createTelegram({
  options,
  clock,
  log,
  initialCursor,
  wantsQuietListening,
}: TelegramParts): Telegram {
  const { token, webhookUrl, webhookSecret } = options;
  const api = createBotApi(options, clock);
  const state = createState(clock);
  const administrators = createAdministrators(api, clock);
  const stopping = new AbortController();
  let me: Me | null = null;
  let receive: Receive | null = null;
  let intake = Promise.resolve();
  const storing = new Set<Promise<unknown>>();

  async function identity(signal: AbortSignal): Promise<Me> {
    if (me === null) {
      const { id, username } = await api.call((raw, ended) => raw.getMe(ended), { signal });
      me = { id, username: username ?? '' };
      log.info({ channel: 'telegram', bot: `@${username}`, mode: options.mode }, 'logged in');
    }
    return me;
  }

  async function accept(batch: Accepted): Promise<void> {
    if (receive === null) throw new Error('taking in has not begun');
    const stored = receive({ channel: 'telegram', ...batch });
    storing.add(stored);
    try {
      await stored;
    } finally {
      storing.delete(stored);
    }
  }

  /** For calls whose errors go out of here. */
  async function orFault<T>(what: string, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      throw new Fault('internal', `${what}: ${failureOf(error, token).reason}`);
    }
  }

  const channel: Telegram = {
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
      const parts = { api, token, identity, state, clock, log, signal: stopping.signal };
      intake =
        options.mode === 'webhook' && webhookUrl !== null && webhookSecret !== null
          ? keepWebhook({ ...parts, url: webhookUrl, secret: webhookSecret })
          : poll({ ...parts, accept, initialCursor });
    },

    send: (to, part, { replyTo, signal }) => send({ api, token, log }, to, part, { replyTo, signal }),

    fetch: (attachment, ask) => fetchFile({ api, token }, attachment, ask),

    async stop() {
      stopping.abort();
      await intake;
      await Promise.allSettled(storing);
      api.close();
    },

    async setTyping(to) {
      const thread = numeric(to.threadId);
      const payload = { chat_id: chatId(to.address), action: 'typing' as const };
      try {
        await api.call((raw, ended) =>
          raw.sendChatAction(
            { ...payload, ...(thread === null ? {} : { message_thread_id: thread }) },
            ended,
          ),
        );
      } catch (error) {
        log.debug({ channel: 'telegram', reason: failureOf(error, token).reason }, 'typing was not shown');
      }
    },

    isAdministrator: (chat, sender) =>
      orFault(`Telegram could not be asked who manages the group ${chat}`, () =>
        administrators.has(chat, sender),
      ),

    async announceCommands(commands) {
      const list = commands.map(({ name, description }) => ({ command: name, description }));
      await orFault('The chat commands could not be made known to Telegram', () =>
        api.call((raw, ended) => raw.setMyCommands({ commands: list }, ended)),
      );
    },

    check: () =>
      orFault(`Telegram does not let the bot of channels.telegram.token in`, () =>
        check(api, options, wantsQuietListening),
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
          me: stopping.signal.aborted ? null : me,
          accept,
          log,
        }),
    },
  };
}
