/** Telegram as a channel: combines receiving (`intake.ts`), sending (`send.ts`) and look-ups. */

import { createHash, timingSafeEqual } from 'node:crypto';
import type { Channel, ChannelHost, CommandDescription, Receive, Webhook } from '../../core/channel.js';
import { type Clock, onAbort } from '../../core/clock.js';
import { describe, Fault } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { Address } from '../../core/message.js';
import { createLookupCache, isAdministrator } from '../kit/lookup-cache.js';
import { createState } from '../kit/supervise.js';
import { type Bot, type Bots, createBots } from './bots.js';
import { createChanges, createDrafts, createPresses } from './changes.js';
import { CallError, isNotThere } from './failure.js';
import { fetchFile } from './files.js';
import { type BotIntake, createStoring, keepReceiving, poll } from './intake.js';
import type { TelegramOptions } from './options.js';
import { chatId, compose } from './outbound.js';
import { Photos } from './photos.js';
import { createSending } from './send.js';
import { ALLOWED_UPDATES } from './update.js';
import { createDeliveryCheck } from './was-delivered.js';

/** Size of the cache of administrators, in groups. */
const MOST_GROUPS = 1_000;

export type Telegram = ReturnType<typeof createTelegram>;

/** For calls whose errors leave the channel. */
async function orFault<T>({ api }: Bot, what: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw new Fault('internal', `${what}: ${api.failure(error).reason}`);
  }
}

/** Has a `webhook` in that mode, and shows drafts if the operator enabled them. */
export function createTelegram(
  host: Pick<
    ChannelHost<TelegramOptions>,
    'options' | 'state' | 'cursor' | 'recorded' | 'portrait' | 'outward' | 'clock' | 'log'
  >,
) {
  const { options, outward, clock, log } = host;
  const { mode, webhookUrl, webhookSecret } = options;
  const bots = createBots(options, host);
  const { main } = bots;
  const senders = { bots, linkPreviews: options.linkPreviews, clock, log };
  const state = createState(clock);
  const presses = createPresses(log);
  const isHooked = mode === 'webhook' && webhookUrl !== null && webhookSecret !== null;
  const webhook = isHooked ? createWebhook(webhookUrl, webhookSecret) : null;
  const stopping = new AbortController();
  const { signal } = stopping;
  const photos = new Photos(host, signal);
  let receiving: Promise<unknown> = Promise.resolve();

  const channel = {
    ...createSending(senders, photos),
    ...createChanges(senders),
    name: 'telegram',
    voiceNotes: true as const,
    buttons: true as const,
    introduces: (personaId) => options.personaTokens[personaId] === undefined,
    typedAtMost: [4_096],
    limits: {
      messagesPerSecond: options.messagesPerSecond,
      perChatBurst: options.perChatBurst,
      perChatPerSecond: { direct: 1, group: 20 / 60 },
    },
    compose,
    status: state.status,
    names: bots.names,
    watermark: bots.watermark,
    wasDelivered: createDeliveryCheck(bots, clock),
    fetch: ({ source }, ask) => fetchFile(bots, source, { ...ask, outward }),
    isAdministrator: createAdministration(bots, clock),

    prepare: async () => bots.recall(await host.recorded()),

    async start(receive, until) {
      onAbort(until, () => stopping.abort());
      const running = bots.all.map((bot) => {
        const isMain = bot === main;
        // The channel's status is the main bot's; the other bots' is only logged.
        const status = isMain ? state : createState(clock);
        const intake = { host, bot, bots, receive, presses, state: status, signal };
        return isMain && webhook !== null ? webhook.keep(intake) : poll(intake);
      });
      receiving = Promise.all([...running, ...bots.personas.map((bot) => photos.begin(bot))]);
    },

    async stop() {
      stopping.abort();
      await receiving;
      await Promise.all([webhook?.idle(), photos.idle(), presses.idle()]);
      bots.close();
    },

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
    ...(webhook && {
      webhook: webhook.webhook,
      listen: async (receive: Receive) =>
        webhook.take({ host, bot: main, bots, receive, presses, state: createState(clock), signal }),
    }),
  };
}

function createAdministration(bots: Bots, clock: Clock) {
  /** Asks Telegram through the first of our bots that is in the group. */
  async function administratorsOf(chat: Address): Promise<Set<Address>> {
    const group = { chat_id: chatId(chat) };
    for (const bot of bots.all) {
      const done = await bot.api.attempt((raw, ended) => raw.getChatAdministrators(group, ended));
      if ('answer' in done) return new Set(done.answer.map((member) => String(member.user.id)));
      if (bot === bots.all.at(-1) || !isNotThere(done.failure)) throw new CallError(done.failure);
    }
    return new Set();
  }
  const administrators = createLookupCache(administratorsOf, { most: MOST_GROUPS, clock });

  /** A sender posting as the group is its anonymous administrator. */
  return async (chat: Address, sender: Address): Promise<boolean> =>
    sender === chat ||
    orFault(bots.main, `Could not ask Telegram who manages the group ${chat}`, () =>
      isAdministrator(administrators, chat, (known) => known.has(sender)),
    );
}

/** Rejects if the main bot's menu is refused. */
async function announce(bots: Bots, commands: CommandDescription[], log: Log): Promise<void> {
  const list = commands.map(({ name, description }) => ({ command: name, description }));
  for (const { api, personaId, fields } of bots.all) {
    const done = await api.attempt((raw, ended) => raw.setMyCommands({ commands: list }, ended));
    if ('answer' in done) continue;
    if (personaId === null) throw new CallError(done.failure);
    const { reason } = done.failure;
    log.warn({ ...fields, reason }, "could not register the chat commands for a persona's bot");
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
  const waiting = hook.pending_update_count;
  const where = hook.url && (URL.canParse(hook.url) ? new URL(hook.url).host : 'an address that is not one');
  const warnings = [
    servesGroups &&
      !me.can_read_all_group_messages &&
      'privacy mode is on: in groups the bot sees only commands, replies to it and messages that name it, so personas do not know what was said in between. ' +
        'Turn it off with /setprivacy at @BotFather, then take the bot out of each group and add it again (or make it an administrator there)',
    servesGroups &&
      me.can_join_groups === false &&
      'the bot cannot be added to groups; /setjoingroups at @BotFather allows it',
    // Only its host: the rest of a webhook's address may be a secret.
    where &&
      mode === 'polling' &&
      `a webhook is set (at ${where}); the gateway removes it when it starts, and keeps what waits`,
    where &&
      mode === 'webhook' &&
      hook.url !== webhookUrl &&
      `another webhook is set (at ${where}); the gateway replaces it when it starts`,
    mode === 'webhook' &&
      hook.url === webhookUrl &&
      hook.last_error_message &&
      `Telegram's last call of the webhook failed: ${hook.last_error_message}`,
    waiting > 0 && `${waiting} ${waiting === 1 ? 'update waits' : 'updates wait'} to be received`,
  ].filter((warning) => typeof warning === 'string' && warning !== '') as string[];
  const others = await Promise.all(personas.map((bot) => checkPersona(bot, servesGroups)));
  const names = others.flatMap(({ identity }) => identity ?? []);
  return {
    identity: [`@${me.username} (${me.first_name}, id ${me.id})`, ...names].join(', '),
    warnings: [...warnings, ...others.flatMap((other) => other.warning ?? [])],
  };
}

/** A faulty persona's bot is only a warning: the main bot speaks for the persona instead. */
async function checkPersona(
  { api, personaId }: Bot,
  servesGroups: boolean,
): Promise<{ identity?: string; warning?: string }> {
  const done = await api.attempt((raw, ended) => raw.getMe(ended));
  if ('failure' in done) {
    return { warning: `the bot of the persona ${personaId} is not let in: ${done.failure.reason}` };
  }
  const me = done.answer;
  const identity = `@${me.username} as ${personaId}`;
  if (!servesGroups || me.can_join_groups !== false) return { identity };
  const warning = `@${me.username}, the bot of ${personaId}, cannot be added to groups; /setjoingroups allows it`;
  return { identity, warning };
}

/** Checked regularly: somebody else may set another webhook. */
const CHECK_MS = 300_000;

/** Telegram calls us, and repeats an update until it gets 200. */
function createWebhook(url: string, secret: string) {
  let receiving: (ReturnType<typeof createStoring> & BotIntake) | null = null;
  const underWay = new Set<Promise<void>>();

  /** Takes the updates that arrive here from now on; the account is asked for its name with the first one. */
  function take(intake: BotIntake, storing = createStoring(intake)): void {
    receiving = { ...intake, ...storing };
  }

  /** Keeps the webhook set. Ends when the signal aborts and received updates are stored. Never rejects. */
  async function keep(intake: BotIntake): Promise<void> {
    const { host, signal } = intake;
    const { api } = intake.bot;
    const storing = createStoring(intake);
    let isSet = false;
    await keepReceiving(intake, async () => {
      await storing.logIn();
      take(intake, storing);
      if (!isSet) {
        const wanted = { url, secret_token: secret, allowed_updates: ALLOWED_UPDATES };
        await api.call((raw, ended) => raw.setWebhook(wanted, ended), { signal });
        isSet = true;
      }
      intake.state.up();
      await host.clock.sleep(CHECK_MS, signal);
      if (signal.aborted) return;
      const info = await api.call((raw, ended) => raw.getWebhookInfo(ended), { signal });
      if (info.url === url) return;
      isSet = false;
      host.log.warn({ channel: 'telegram' }, "the bot's webhook was removed or replaced; setting it again");
    });
    await idle();
  }

  async function idle(): Promise<void> {
    await Promise.allSettled(underWay);
  }

  const admits = (given: string | null) => given !== null && isSame(given, secret);

  async function handle(body: unknown, givenSecret: string | null): Promise<number> {
    if (!admits(givenSecret)) return 401;
    if (typeof body !== 'object' || body === null || !('update_id' in body)) return 400;
    // Not started, not logged in, or stopping: Telegram keeps the update and retries.
    if (receiving === null || receiving.signal.aborted) return 503;
    const id = String(body.update_id);
    const stored = receiving.storeGuarded(id, id, [body]);
    underWay.add(stored);
    try {
      await stored;
      return 200;
    } catch (error) {
      const fields = { channel: 'telegram', reason: describe(error) };
      receiving.host.log.error(fields, 'could not store an update; Telegram will send it again');
      return 500;
    } finally {
      underWay.delete(stored);
    }
  }

  const secretHeader = 'x-telegram-bot-api-secret-token';
  const webhook: Webhook = { path: '/telegram/webhook', secretHeader, admits, handle };
  return { webhook, take, keep, idle };
}

/** Compares digests, so that timing reveals neither content nor length. */
function isSame(given: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}
