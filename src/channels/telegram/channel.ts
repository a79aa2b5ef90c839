/** For `doctor`: logs in, and warns of settings at Telegram that are in the way. */

import type { Channel, ChannelHost } from '../../core/channel.js';
import { Fault } from '../../core/errors.js';
import { onAbort } from '../kit/abort.js';
import { createState } from '../kit/supervise.js';
import { type Bot, type Bots, createAdministrators, createBots } from './bots.js';
import { fetchFile } from './files.js';
import { numberCopies } from './inbound.js';
import { createPresses, createWebhook, poll } from './intake.js';
import type { TelegramOptions } from './options.js';
import { compose } from './outbound.js';
import { createEditing, createReacting, createSending } from './send.js';
import { createDeliveryCheck } from './was-delivered.js';

async function check(
  { main: { api }, personas }: Bots,
  { mode, webhookUrl, access }: TelegramOptions,
): Promise<{ identity: string; warnings: string[] }> {
  const servesGroups = access.groups !== 'closed';
  const [me, hook] = await Promise.all([
    api.call((raw, ended) => raw.getMe(ended)),
    api.call((raw, ended) => raw.getWebhookInfo(ended)),
  ]);
  const warnings: string[] = [];
  if (servesGroups && !me.can_read_all_group_messages) {
    warnings.push(
      'privacy mode is on: in groups the bot sees only commands, replies to it and messages that name it, so personas do not know what was said in between. ' +
        'Turn it off with /setprivacy at @BotFather, then take the bot out of each group and add it again (or make it an administrator there)',
    );
  }
  if (servesGroups && me.can_join_groups === false) {
    warnings.push('the bot cannot be added to groups; /setjoingroups at @BotFather allows it');
  }
  if (hook.url && mode === 'polling') {
    warnings.push(
      `a webhook is set (at ${hostOf(hook.url)}); the gateway removes it when it starts, and keeps what waits`,
    );
  }
  if (hook.url && mode === 'webhook' && hook.url !== webhookUrl) {
    warnings.push(`another webhook is set (at ${hostOf(hook.url)}); the gateway replaces it when it starts`);
  }
  if (mode === 'webhook' && hook.url === webhookUrl && hook.last_error_message) {
    warnings.push(`Telegram's last call of the webhook failed: ${hook.last_error_message}`);
  }
  if (hook.pending_update_count > 0) {
    const waiting = hook.pending_update_count;
    warnings.push(`${waiting} ${waiting === 1 ? 'update waits' : 'updates wait'} to be taken in`);
  }
  const others = await Promise.all(personas.map((bot) => checkPersona(bot, servesGroups)));
  const names = others.map(({ identity }) => identity).filter((name) => name !== null);
  return {
    identity: [`@${me.username} (${me.first_name}, id ${me.id})`, ...names].join(', '),
    warnings: [...warnings, ...others.flatMap((other) => other.warnings)],
  };
}

/** A fault of a persona's bot is only a warning: without it the main bot speaks for the persona. */
async function checkPersona(
  { api, personaId }: Bot,
  servesGroups: boolean,
): Promise<{ identity: string | null; warnings: string[] }> {
  try {
    const me = await api.call((raw, ended) => raw.getMe(ended));
    const warnings =
      servesGroups && me.can_join_groups === false
        ? [`@${me.username}, the bot of ${personaId}, cannot be added to groups; /setjoingroups allows it`]
        : [];
    return { identity: `@${me.username} as ${personaId}`, warnings };
  } catch (error) {
    const { reason } = api.failure(error);
    return { identity: null, warnings: [`the bot of the persona ${personaId} is not let in: ${reason}`] };
  }
}

/** The rest of somebody's webhook address may be a secret. */
function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : 'an address that is not one';
}

// Telegram: the first and the last step of the route. What comes in is put into our words (`inbound.ts`) and stored
// before Telegram hears that we have it (`intake.ts`); what goes out is cut and marked up (`outbound.ts`) and sent by
// the bot whose words it is (`send.ts`). This file joins the parts, and holds no rule of its own.

type Capability =
  | 'edit'
  | 'remove'
  | 'watermark'
  | 'wasDelivered'
  | 'react'
  | 'setTyping'
  | 'fetch'
  | 'names'
  | 'isAdministrator'
  | 'announceCommands'
  | 'check';

/** Has a `webhook` in that mode, and shows drafts where the operator wants them. */
export type Telegram = Channel & Required<Pick<Channel, Capability>>;

export function createTelegram(
  host: Pick<ChannelHost<TelegramOptions>, 'options' | 'state' | 'cursor' | 'outward' | 'clock' | 'log'>,
  recorded: Awaited<ReturnType<ChannelHost<TelegramOptions>['recorded']>> = [],
): Telegram {
  const { options, state: kept, cursor, outward, clock, log } = host;
  const { mode, webhookUrl, webhookSecret, linkPreviews } = options;
  const bots = createBots(options, { clock, log, outward });
  const { main } = bots;
  const delivered = createDeliveryCheck(bots, clock, recorded);
  const { preview, ...sending } = createSending({ bots, delivered, linkPreviews, clock, log });
  const state = createState(clock);
  const presses = createPresses(log);
  const isAdministrator = createAdministrators(bots, clock);
  const isCalled = mode === 'webhook' && webhookUrl !== null && webhookSecret !== null;
  const called = isCalled ? createWebhook(webhookUrl, webhookSecret) : null;
  const stopping = new AbortController();
  const { signal } = stopping;
  let receiving: Promise<unknown> = Promise.resolve();

  /** For calls whose errors go out of here. */
  async function orFault<T>(what: string, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      throw new Fault('internal', `${what}: ${main.api.failure(error).reason}`);
    }
  }

  const channel: Telegram = {
    ...sending,
    ...createEditing({ bots, linkPreviews, log }),
    ...createReacting(bots),
    watermark: delivered.watermark,
    wasDelivered: delivered.wasDelivered,
    ...(options.streaming === 'draft' ? { preview } : {}),
    name: 'telegram',
    voiceNotes: true,
    limits: {
      messagesPerSecond: options.messagesPerSecond,
      perChatBurst: options.perChatBurst,
      perChatPerSecond: { direct: 1, group: 20 / 60 },
    },
    buttons: true,
    typedAtMost: [4_096],
    compose,
    status: state.status,
    fetch: ({ source }, ask) => fetchFile(bots, source, { ...ask, outward }),

    async start(receive, until) {
      onAbort(until, () => stopping.abort());
      const running = bots.all.map((bot) => {
        const isMain = bot === main;
        // The channel's status is that of its main bot; the other bots' is in the log alone.
        const status = isMain ? state : createState(clock);
        const taking = { bot, bots, receive, numbered: numberCopies(), presses, delivered };
        const intake = { ...taking, state: status, kept, clock, log, signal };
        return isMain && called !== null ? called.keep(intake) : poll(intake, cursor);
      });
      receiving = Promise.all(running);
    },

    async stop() {
      stopping.abort();
      await receiving;
      await presses.idle();
      bots.close();
    },

    // A persona's bot goes by the persona's name, which calls the persona.
    names: () => [main.name()].filter((name) => name !== ''),

    isAdministrator: (chat, sender) =>
      orFault(`Telegram could not be asked who manages the group ${chat}`, () =>
        isAdministrator(chat, sender),
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
      orFault(`Telegram does not let the bot of channels.telegram.token in`, () => check(bots, options)),
  };
  return called === null ? channel : { ...channel, webhook: called.webhook };
}
