/** Telegram as a channel: combines receiving (`intake.ts`), sending (`send.ts`) and look-ups. */
import type { Channel, ChannelHost, CommandDescription } from '../../core/channel.js';
import { onAbort } from '../../core/clock.js';
import { Fault } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import { createState } from '../kit/supervise.js';
import { type Bot, type Bots, createBots, logFields } from './bots.js';
import { fetchFile } from './files.js';
import { createPresses, createWebhook, poll } from './intake.js';
import type { TelegramOptions } from './options.js';
import { compose } from './outbound.js';
import { createChanges, createDrafts, createSending } from './send.js';
import { createDeliveryCheck } from './was-delivered.js';

export type Telegram = ReturnType<typeof createTelegram>;

/** Has a `webhook` in that mode, and shows drafts if the operator enabled them. */
/** For calls whose errors leave the channel. */
async function orFault<T>({ api }: Bot, what: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw new Fault('internal', `${what}: ${api.failure(error).reason}`);
  }
}

export function createTelegram(
  host: Pick<ChannelHost<TelegramOptions>, 'options' | 'state' | 'cursor' | 'outward' | 'clock' | 'log'>,
  recorded: Awaited<ReturnType<ChannelHost<TelegramOptions>['recorded']>> = [],
) {
  const { options, outward, clock, log } = host;
  const { mode, webhookUrl, webhookSecret } = options;
  const bots = createBots(options, host);
  const { main } = bots;
  const delivered = createDeliveryCheck(bots, clock, recorded);
  const senders = { bots, delivered, linkPreviews: options.linkPreviews, clock, log };
  const state = createState(clock);
  const presses = createPresses(log);
  const isWebhook = mode === 'webhook' && webhookUrl !== null && webhookSecret !== null;
  const webhook = isWebhook ? createWebhook(webhookUrl, webhookSecret) : null;
  const stopping = new AbortController();
  const { signal } = stopping;
  let receiving: Promise<unknown> = Promise.resolve();

  const channel = {
    ...createSending(senders),
    ...createChanges(senders),
    name: 'telegram',
    voiceNotes: true as const,
    buttons: true as const,
    typedAtMost: [4_096],
    limits: {
      messagesPerSecond: options.messagesPerSecond,
      perChatBurst: options.perChatBurst,
      perChatPerSecond: { direct: 1, group: 20 / 60 },
    },
    compose,
    status: state.status,
    watermark: delivered.watermark,
    wasDelivered: delivered.wasDelivered,
    fetch: ({ source }, ask) => fetchFile(bots, source, { ...ask, outward }),

    async start(receive, until) {
      onAbort(until, () => stopping.abort());
      const running = bots.all.map((bot) => {
        const isMain = bot === main;
        // The channel's status is the main bot's; the other bots' is only logged.
        const status = isMain ? state : createState(clock);
        const intake = { host, bot, bots, receive, presses, delivered, state: status, signal };
        return isMain && webhook !== null ? webhook.keep(intake) : poll(intake);
      });
      receiving = Promise.all(running);
    },

    async stop() {
      stopping.abort();
      await receiving;
      await presses.idle();
      bots.close();
    },

    // A persona's bot has the persona's name, which addresses the persona.
    names: () => [main.name()].filter((name) => name !== ''),

    isAdministrator: (chat, sender) =>
      orFault(main, `Could not ask Telegram who manages the group ${chat}`, () =>
        bots.isAdministrator(chat, sender),
      ),

    announceCommands: (commands) =>
      orFault(main, 'Could not register the chat commands with Telegram', () =>
        announce(bots, commands, log),
      ),

    check: () =>
      orFault(main, 'Telegram refused the token of channels.telegram.token', () => check(bots, options)),
  } satisfies Channel;
  return {
    ...channel,
    ...(options.streaming === 'draft' ? createDrafts(senders) : {}),
    ...(webhook === null ? {} : { webhook: webhook.webhook }),
  };
}

/** Rejects if the main bot's menu is refused. */
async function announce(bots: Bots, commands: CommandDescription[], log: Log): Promise<void> {
  const list = commands.map(({ name, description }) => ({ command: name, description }));
  for (const { api, personaId } of bots.all) {
    try {
      await api.call((raw, ended) => raw.setMyCommands({ commands: list }, ended));
    } catch (error) {
      if (personaId === null) throw error;
      const fields = { ...logFields(personaId), reason: api.failure(error).reason };
      log.warn(fields, "could not register the chat commands for a persona's bot");
    }
  }
}

/** For `doctor`: logs in, and warns of settings at Telegram that get in the way. */
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
    warnings.push(`${waiting} ${waiting === 1 ? 'update waits' : 'updates wait'} to be received`);
  }
  const others = await Promise.all(personas.map((bot) => checkPersona(bot, servesGroups)));
  const names = others.map(({ identity }) => identity).filter((name) => name !== null);
  return {
    identity: [`@${me.username} (${me.first_name}, id ${me.id})`, ...names].join(', '),
    warnings: [...warnings, ...others.flatMap((other) => other.warnings)],
  };
}

/** A faulty persona's bot is only a warning: the main bot speaks for the persona instead. */
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

/** The rest of a webhook's address may be a secret. */
function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : 'an address that is not one';
}
