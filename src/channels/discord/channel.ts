/**
 * Discord: the first and the last step of the route. Gateway events are converted (`inbound.ts`) and passed
 * on in order (`listen.ts`); replies are cut and marked up (`outbound.ts`). This file connects the parts.
 */

import * as Discord from 'discord-api-types/v10';
import type { Channel, ChannelHost } from '../../core/channel.js';
import { onAbort } from '../../core/clock.js';
import { describe, Fault } from '../../core/errors.js';
import { createState } from '../kit/supervise.js';
import { type Base, createApi } from './api.js';
import { createAdministrators, createIdentity, Directory, nameOf } from './directory.js';
import { failureOf } from './failure.js';
import { createUploads, fetchFile } from './files.js';
import { Answers, createPresses } from './interactions.js';
import { type Listening, listen, mayReadContent, NO_CONTENT } from './listen.js';
import type { DiscordOptions } from './options.js';
import { applicationCommands, compose, roomOf } from './outbound.js';
import { fieldsOf, idOf, numberOf } from './payload.js';
import { createResends } from './resend.js';
import { edit, react, remove, send } from './send.js';
import { createSession } from './session.js';
import { createQuotes, createWebhooks, WebhookSpeaker } from './webhooks.js';

const OF_THE_LIBRARY = /[\\/]node_modules[\\/]@discordjs[\\/]/;

export function createDiscord(host: ChannelHost<DiscordOptions>) {
  const { options, outward, clock, log } = host;
  const api = createApi(options, { clock, outward });
  const base = { api, clock, log };
  const connecting = createState(clock);
  const storing = createState(clock);
  storing.up();
  const identity = createIdentity(base);
  const session = createSession(base, host.state, host.cursor, identity, options.token);
  const directory = new Directory();
  const webhooks = createWebhooks(base, identity);
  const speaker = new WebhookSpeaker(base, identity, webhooks, directory);
  const resends = createResends(base, identity, webhooks);
  const answers = new Answers(base, resends);
  const presses = createPresses(base);
  const isAdministrator = createAdministrators(base, directory);
  const quotes = createQuotes(base, directory);
  const uploads = createUploads(directory);
  const sender = { ...base, options, answers, resends, speaker, quotes, uploads };
  const listener = { ...sender, host, identity, session, directory, presses, webhooks, connecting, storing };
  const stopping = new AbortController();
  let listening: Listening | null = null;

  return {
    name: 'discord',
    recognisesResends: true,
    ...(options.faces === 'always' ? { facesAlone: true as const } : {}),
    limits: {
      messagesPerSecond: options.messagesPerSecond,
      perChatBurst: options.perChatBurst,
      perChatPerSecond: { direct: 1, group: 1 },
    },
    compose,
    names() {
      const me = identity.known();
      return me === null ? [] : [...new Set([me.name, me.username ?? me.name, ...directory.nicksOf(me.id)])];
    },
    buttons: true,
    // Accounts with Nitro may write twice as much.
    typedAtMost: [2_000, 4_000],
    status: () => (storing.status().connected ? connecting.status() : storing.status()),

    async start(receive, signal) {
      onAbort(signal, () => stopping.abort());
      listening = listen(listener, receive, stopping.signal);
    },

    voiceNotes: true,
    send: (to, part, sending) => send(sender, to, part, sending),
    react: (to, id, emoji, { signal }) => react(base, to, id, emoji, signal),
    edit: (to, id, part, sending) => edit(sender, to, id, part, sending),
    remove: (to, id, sending) => remove(sender, to, id, sending),

    async stop() {
      stopping.abort();
      await listening?.done;
      answers.close();
      await presses.close();
      api.close();
    },

    async setTyping(to) {
      try {
        await api.call({ method: 'POST', path: `/channels/${roomOf(to)}/typing` });
      } catch (error) {
        log.debug({ channel: 'discord', reason: failureOf(error).reason }, 'showing typing failed');
      }
    },

    fetch: (attachment, { maxBytes, signal }) =>
      fetchFile(base, attachment, { maxBytes, signal, apiRoot: options.apiRoot, outward }),

    awaitsAnswer: (id) => answers.awaits(id),

    isAdministrator: (chat, sender) =>
      orFault(`Discord could not be asked who manages the server of the channel ${chat}`, () =>
        isAdministrator(chat, sender),
      ),

    announceCommands: (commands) =>
      orFault('The chat commands could not be made known to Discord', async () => {
        const application = fieldsOf<Discord.APIApplication>(await api.get('/oauth2/applications/@me'));
        const id = idOf(application.id);
        if (id === undefined) throw new Error('Discord does not say which application this is');
        const body = applicationCommands(commands);
        await api.call({ method: 'PUT', path: `/applications/${id}/commands`, body });
      }),

    survives(error) {
      if (!(error instanceof Error) || !OF_THE_LIBRARY.test(error.stack ?? '')) return false;
      listening?.fail(`the library for Discord failed: ${describe(error)}`);
      return true;
    },

    check: () => orFault('Discord does not let the bot of channels.discord.token in', () => check(base)),
  } satisfies Channel;
}

export type DiscordChannel = ReturnType<typeof createDiscord>;

/** For calls whose errors leave the channel. */
async function orFault<T>(failed: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw new Fault('internal', `${failed}: ${failureOf(error).reason}`);
  }
}

const PERMISSIONS =
  Discord.PermissionFlagsBits.ViewChannel |
  Discord.PermissionFlagsBits.SendMessages |
  Discord.PermissionFlagsBits.SendMessagesInThreads |
  Discord.PermissionFlagsBits.EmbedLinks |
  Discord.PermissionFlagsBits.AttachFiles |
  Discord.PermissionFlagsBits.ReadMessageHistory |
  Discord.PermissionFlagsBits.ManageWebhooks;
const FEW_SESSIONS = 50;

export function inviteLink(applicationId: string): string {
  const scope = `${Discord.OAuth2Scopes.Bot}+${Discord.OAuth2Scopes.ApplicationsCommands}`;
  return `https://discord.com/oauth2/authorize?client_id=${applicationId}&scope=${scope}&permissions=${PERMISSIONS}`;
}

/** For `doctor`: logs in, and reports what Discord's settings forbid. */
async function check({ api }: Base): Promise<{ identity: string; warnings: string[] }> {
  const [me, application, gateway] = await Promise.all([
    api.get('/users/@me').then((told) => fieldsOf<Discord.APIUser>(told)),
    api.get('/oauth2/applications/@me').then((told) => fieldsOf<Discord.APIApplication>(told)),
    api.get('/gateway/bot').then((told) => fieldsOf<Discord.APIGatewayBotInfo>(told)),
  ]);
  const id = idOf(me.id);
  if (id === undefined) throw new Error('Discord does not say which bot this is');
  const warnings: string[] = [];
  const applicationId = idOf(application.id);
  if (applicationId !== undefined && !mayReadContent(application.flags)) warnings.push(NO_CONTENT);
  const limit = fieldsOf<Discord.APIGatewayBotInfo['session_start_limit']>(gateway.session_start_limit);
  const left = numberOf(limit.remaining) ?? FEW_SESSIONS;
  if (left < FEW_SESSIONS) {
    warnings.push(`only ${left} new sessions are left today; something begins one again and again`);
  }
  const guilds = await api.get('/users/@me/guilds').catch((error) => {
    warnings.push(`the bot's servers could not be listed: ${failureOf(error).reason}`);
  });
  if (applicationId !== undefined && Array.isArray(guilds) && guilds.length === 0) {
    warnings.push(`the bot is in no server yet; this link invites it: ${inviteLink(applicationId)}`);
  }
  return { identity: `${nameOf(me) || 'the bot'} (id ${id})`, warnings };
}
