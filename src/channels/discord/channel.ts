/**
 * Discord: the first and the last step of the route. Gateway events are converted (`inbound.ts`) and passed
 * on in order (`listen.ts`); replies are cut and marked up (`outbound.ts`).
 */

import * as Discord from 'discord-api-types/v10';
import type { Channel, ChannelHost, ChannelStatus, Connection, Recipient } from '../../core/channel.js';
import { onAbort } from '../../core/clock.js';
import { describe, Fault } from '../../core/errors.js';
import type { DiscordApi } from './api.js';
import { createAdministrators, nameOf } from './directory.js';
import { failureOf } from './failure.js';
import { fetchFile } from './files.js';
import { listen, listenTo, mayReadContent, NO_CONTENT } from './listen.js';
import type { DiscordOptions } from './options.js';
import { applicationCommands, compose, roomOf } from './outbound.js';
import { createParts, type DiscordParts } from './parts.js';
import { edit, react, remove, send } from './send.js';

const OF_THE_LIBRARY = /[\\/]node_modules[\\/]@discordjs[\\/]/;

export function createDiscord(host: ChannelHost<DiscordOptions>) {
  const { options, outward } = host;
  const parts = createParts(host);
  const { api, identity, directory, answers, presses, states, running } = parts;
  const isAdministrator = createAdministrators(parts, directory);
  const stopping = new AbortController();
  let listening: Promise<void> = Promise.resolve();

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
      const me = identity.me;
      return me === null ? [] : [...new Set([me.name, me.username ?? me.name, ...directory.nicksOf(me.id)])];
    },
    buttons: true,
    // Accounts with Nitro may write twice as much.
    typedAtMost: [2_000, 4_000],
    status: () => statusOf(host.spread ? states.slice(0, 1) : states),

    async start(receive, signal) {
      onAbort(signal, () => stopping.abort());
      listening = listen(parts, receive, stopping.signal);
    },

    voiceNotes: true,
    send: (to, part, sending) => send(parts, to, part, sending),
    react: (to, id, emoji, { signal }) => react(parts, to, id, emoji, signal),
    edit: (to, id, part, sending) => edit(parts, to, id, part, sending),
    remove: (to, id, sending) => remove(parts, to, id, sending),

    async stop() {
      stopping.abort();
      await listening;
      answers.close();
      await presses.close();
      api.close();
    },

    setTyping: (to) => showTyping(parts, to),

    fetch: (attachment, { maxBytes, signal }) =>
      fetchFile(parts, attachment, { maxBytes, signal, apiRoot: options.apiRoot, outward }),

    awaitsAnswer: (id) => answers.awaits(id),

    ...(host.spread ? { connections: () => furtherConnections(parts, stopping.signal) } : {}),

    isAdministrator: (chat, sender) =>
      orFault(`Discord could not be asked who manages the server of the channel ${chat}`, () =>
        isAdministrator(chat, sender),
      ),

    announceCommands: (commands) =>
      orFault('The chat commands could not be made known to Discord', async () => {
        const { id } = await api.get<Discord.APIApplication>('/oauth2/applications/@me');
        if (!id) throw new Error('Discord does not say which application this is');
        const body = applicationCommands(commands);
        await api.call({ method: 'PUT', path: `/applications/${id}/commands`, body });
      }),

    survives(error) {
      if (!(error instanceof Error) || !OF_THE_LIBRARY.test(error.stack ?? '')) return false;
      for (const { fail } of running.values()) fail(`the library for Discord failed: ${describe(error)}`);
      return true;
    },

    check: () => orFault('Discord does not let the bot of channels.discord.token in', () => check(api)),
  } satisfies Channel;
}

async function showTyping({ api, host: { log } }: DiscordParts, to: Recipient): Promise<void> {
  try {
    await api.call({ method: 'POST', path: `/channels/${roomOf(to)}/typing` });
  } catch (error) {
    log.debug({ channel: 'discord', reason: failureOf(error).reason }, 'showing typing failed');
  }
}

export type DiscordChannel = ReturnType<typeof createDiscord>;

/** Those of all shards but the first, which is the channel's own. */
async function furtherConnections(parts: DiscordParts, ending: AbortSignal): Promise<Connection[]> {
  const { shards, states } = parts;
  await shards.load();
  const further = [...Array(shards.count ?? 1).keys()].slice(1);
  return further.map((shard) => {
    const stopping = new AbortController();
    let listening: Promise<void> = Promise.resolve();
    return {
      account: String(shard),
      async start(receive, signal) {
        for (const each of [signal, ending]) onAbort(each, () => stopping.abort());
        listening = listenTo(parts, shard, receive, stopping.signal);
      },
      async stop() {
        stopping.abort();
        await listening;
      },
      status: () => statusOf(states.slice(shard, shard + 1)),
    };
  });
}

/** Connected only if all shards are. */
function statusOf(states: DiscordParts['states']): ChannelStatus {
  const all = states.map(({ storing, connecting }) =>
    storing.status().connected ? connecting.status() : storing.status(),
  );
  const [first] = all;
  if (first !== undefined && all.length === 1) return first;
  const shard = all.findIndex(({ connected }) => !connected);
  const { connected, since, lastError } = all[shard] ?? all.reduce((a, b) => (a.since > b.since ? a : b));
  const told = lastError !== null && !connected ? `shard ${shard}: ${lastError}` : lastError;
  return { connected, since, lastError: told };
}

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
async function check(api: DiscordApi): Promise<{ identity: string; warnings: string[]; invite: string }> {
  const [me, application, gateway] = await Promise.all([
    api.get<Discord.APIUser>('/users/@me'),
    api.get<Discord.APIApplication>('/oauth2/applications/@me'),
    api.get<Discord.APIGatewayBotInfo>('/gateway/bot'),
  ]);
  if (!me.id) throw new Error('Discord does not say which bot this is');
  const warnings: string[] = [];
  if (!mayReadContent(application.flags)) warnings.push(NO_CONTENT);
  const left = gateway.session_start_limit.remaining;
  if (left < FEW_SESSIONS) {
    warnings.push(`only ${left} new sessions are left today; something begins one again and again`);
  }
  try {
    const guilds = await api.get<unknown[]>('/users/@me/guilds');
    if (guilds.length === 0) {
      warnings.push(`the bot is in no server yet; this link invites it: ${inviteLink(application.id)}`);
    }
  } catch (error) {
    warnings.push(`the bot's servers could not be listed: ${failureOf(error).reason}`);
  }
  const invite = inviteLink(application.id);
  return { identity: `${nameOf(me) || 'the bot'} (id ${me.id})`, warnings, invite };
}
