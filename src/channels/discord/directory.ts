/**
 * Our own bot, the guilds, their channels and roles. The gateway lists them at the start of a session; they
 * outlive a connection, and a new session updates them. Missing ones are looked up.
 */
import * as Discord from 'discord-api-types/v10';
import { LRUCache } from 'lru-cache';
import type { Address } from '../../core/message.js';
import { createLookupCache, isAdministrator as isYes } from '../kit/lookup-cache.js';
import { backoffMs } from '../kit/supervise.js';
import type { Base } from './api.js';
import { failureOf, isRefusal, MOST_NOTED } from './failure.js';
import {
  bitsOf,
  type Fields,
  fieldsOf,
  idOf,
  idsOf,
  isSnowflake,
  listOf,
  numberOf,
  textOf,
} from './payload.js';

export interface Me {
  id: string;
  name: string;
  /** The account's name, if different. */
  username?: string;
  /** The bot's application, usually with the same id: messages of its webhooks carry it. */
  applicationId: string;
}

export type Identity = ReturnType<typeof createIdentity>;

export function createIdentity({ api }: Base) {
  let me: Me | null = null;

  function note(payload: unknown, applicationId?: string): Me | null {
    const user = fieldsOf<Discord.APIUser>(payload);
    const id = idOf(user.id);
    if (id === undefined) return null;
    const username = textOf(user.username);
    const name = nameOf(user) || id;
    me = {
      id,
      name,
      ...(username === undefined || username === name ? {} : { username }),
      applicationId: applicationId ?? id,
    };
    return me;
  }

  return {
    /** null before the first login. */
    known: () => me,
    note,
    /** As stored by an earlier process. */
    restore(known: Me): void {
      me = known;
    },
    /** Asks Discord if unknown. Rejects when Discord cannot be asked. */
    async ask(signal?: AbortSignal): Promise<Me> {
      const found = me ?? note(await api.get('/users/@me', signal));
      if (found === null) throw new Error('Discord does not say which bot this is');
      return found;
    },
  };
}

/** The nickname in the guild, else the display name, else the account's name. */
export function nameOf(user: Fields<Discord.APIUser>, nick?: unknown): string {
  return textOf(nick) || textOf(user.global_name) || textOf(user.username) || idOf(user.id) || '';
}

export interface ChannelPlace {
  /** The chat: the channel itself, or the one that a thread belongs to. */
  address: Address;
  /** The thread; null for the channel itself. */
  threadId: string | null;
  /** null for a direct chat. */
  guildId: string | null;
}

interface KnownChannel {
  type: number;
  name: string;
  /** null for a direct chat. */
  guildId: string | null;
  /** A thread's channel. */
  parentId: string | null;
  /** As listed at the start of this session; null if it was not. */
  lastMessageId: string | null;
}

interface Role {
  name: string;
  permissions: bigint;
  /** The bot for which the role was created on invitation. */
  botId: string | null;
}

interface Guild {
  name: string;
  ownerId: string | null;
  /** Boost level, which determines the maximum file size. */
  premiumTier: number;
  roles: Map<string, Role>;
  /** Nicknames by person; Discord usually sends only the bot's own. */
  nicks: Map<string, string>;
}

type GuildFields = Fields<Discord.APIGuild & Discord.GatewayGuildCreateDispatchData>;

const THREADS = new Set<number>([
  Discord.ChannelType.AnnouncementThread,
  Discord.ChannelType.PublicThread,
  Discord.ChannelType.PrivateThread,
]);
const MANAGEMENT = Discord.PermissionFlagsBits.Administrator | Discord.PermissionFlagsBits.ManageGuild;

export class Directory {
  readonly #guilds = new Map<string, Guild>();
  readonly #channels = new Map<string, KnownChannel>();
  #awaited = new Set<string>();

  /** Learns from an event of the gateway; most contain nothing relevant. */
  note(kind: string, payload: unknown): void {
    if (kind === 'READY') this.#noteReady(payload);
    else if (kind === 'GUILD_CREATE' || kind === 'GUILD_UPDATE') this.noteGuild(payload);
    else if (kind === 'GUILD_DELETE') this.#noteGuildGone(payload);
    else if (kind.startsWith('GUILD_ROLE_')) this.#noteRole(payload);
    else if (kind === 'GUILD_MEMBER_UPDATE') this.#noteMember(payload);
    else if (kind === 'THREAD_LIST_SYNC') this.#noteThreads(payload);
    else if (kind === 'CHANNEL_DELETE' || kind === 'THREAD_DELETE') this.#noteChannelGone(payload);
    else if (/^(CHANNEL|THREAD)_(CREATE|UPDATE)$/.test(kind)) this.noteChannel(payload);
  }

  /** Learns from the API's description of a channel, and returns it; null if it is none. */
  noteChannel(payload: unknown, inGuild?: string): KnownChannel | null {
    const told = fieldsOf<Discord.APIThreadChannel>(payload);
    const id = idOf(told.id);
    if (id === undefined) return null;
    const channel = {
      name: textOf(told.name) ?? id,
      type: numberOf(told.type) ?? 0,
      guildId: inGuild ?? idOf(told.guild_id) ?? null,
      parentId: parentOf(told),
      lastMessageId: idOf(told.last_message_id) ?? null,
    };
    this.#channels.set(id, channel);
    return channel;
  }

  noteGuild(payload: unknown): void {
    const told: GuildFields = fieldsOf(payload);
    const id = idOf(told.id);
    if (id === undefined || told.unavailable === true) return;
    this.#awaited.delete(id);
    const known = this.#guilds.get(id);
    this.#guilds.set(id, {
      name: textOf(told.name) ?? known?.name ?? id,
      ownerId: idOf(told.owner_id) ?? known?.ownerId ?? null,
      premiumTier: numberOf(told.premium_tier) ?? known?.premiumTier ?? 0,
      nicks: Array.isArray(told.members) ? nicksOf(told.members) : (known?.nicks ?? new Map()),
      roles: Array.isArray(told.roles) ? rolesOf(told.roles) : (known?.roles ?? new Map()),
    });
    if (!Array.isArray(told.channels)) return;
    this.#forgetChannels(({ guildId }) => guildId === id);
    for (const each of [...told.channels, ...listOf(told.threads)]) this.noteChannel(each, id);
  }

  channel(id: string): KnownChannel | null {
    return this.#channels.get(id) ?? null;
  }

  guildName(id: string): string | null {
    return this.#guilds.get(id)?.name ?? null;
  }

  role(guildId: string, roleId: string): Role | null {
    return this.#guilds.get(guildId)?.roles.get(roleId) ?? null;
  }

  /** null for an unknown channel. */
  place(channelId: string): ChannelPlace | null {
    const channel = this.#channels.get(channelId);
    return channel === undefined ? null : placeIn(channelId, channel, channel.guildId);
  }

  /** All known threads, including private ones. */
  threads(): { id: string; lastMessageId: string | null; guildId: string | null }[] {
    return [...this.#channels].flatMap(([id, { parentId, lastMessageId, guildId }]) =>
      parentId === null ? [] : [{ id, lastMessageId, guildId }],
    );
  }

  /** 0 to 3; 0 also for an unknown guild. */
  premiumTier(guildId: string): number {
    return this.#guilds.get(guildId)?.premiumTier ?? 0;
  }

  /** A person's nicknames in all guilds. */
  nicksOf(userId: string): string[] {
    return [...new Set([...this.#guilds.values()].flatMap(({ nicks }) => nicks.get(userId) ?? []))];
  }

  /** Whether somebody with these roles manages a guild; null for an unknown guild. */
  manages(guildId: string, userId: string, memberRoles: readonly string[]): boolean | null {
    const guild = this.#guilds.get(guildId);
    if (guild === undefined) return null;
    if (guild.ownerId === userId) return true;
    // The role of @everyone has the guild's own id.
    return [guildId, ...memberRoles].some((id) => holdsManagement(guild.roles.get(id)?.permissions ?? 0n));
  }

  /** Number of guilds announced but not yet received. */
  awaited(): number {
    return this.#awaited.size;
  }

  #noteReady(payload: unknown): void {
    const { guilds } = fieldsOf<Discord.GatewayReadyDispatchData>(payload);
    if (!Array.isArray(guilds)) return;
    this.#awaited = new Set(listOf<Discord.APIGuild>(guilds).flatMap(({ id }) => idOf(id) ?? []));
    for (const id of [...this.#guilds.keys()]) if (!this.#awaited.has(id)) this.#forgetGuild(id);
    // Each guild sends it again; until then newer messages may be missing.
    for (const channel of this.#channels.values()) channel.lastMessageId = null;
  }

  #noteGuildGone(payload: unknown): void {
    const { id: told, unavailable } = fieldsOf<Discord.APIGuild & { unavailable: boolean }>(payload);
    const id = idOf(told);
    if (id === undefined) return;
    // Unavailable: Discord has an outage, and we are still in the guild.
    if (unavailable !== true) this.#forgetGuild(id);
    this.#awaited.delete(id);
  }

  #noteThreads(payload: unknown): void {
    const told = fieldsOf<Discord.GatewayThreadListSyncDispatchData>(payload);
    for (const thread of listOf(told.threads)) this.noteChannel(thread, idOf(told.guild_id));
  }

  #noteChannelGone(payload: unknown): void {
    const gone = idOf(fieldsOf<Discord.APIChannel>(payload).id);
    if (gone !== undefined) this.#forgetChannels(({ parentId }, id) => id === gone || parentId === gone);
  }

  #noteRole(payload: unknown): void {
    const told = fieldsOf<
      Discord.GatewayGuildRoleCreateDispatchData & Discord.GatewayGuildRoleDeleteDispatchData
    >(payload);
    const roles = this.#guilds.get(idOf(told.guild_id) ?? '')?.roles;
    for (const [id, role] of rolesOf([told.role])) roles?.set(id, role);
    roles?.delete(idOf(told.role_id) ?? '');
  }

  #noteMember(payload: unknown): void {
    const told = fieldsOf<Discord.GatewayGuildMemberUpdateDispatchData>(payload);
    const nicks = this.#guilds.get(idOf(told.guild_id) ?? '')?.nicks;
    nicks?.delete(idOf(fieldsOf<Discord.APIUser>(told.user).id) ?? '');
    for (const [id, nick] of nicksOf([told])) nicks?.set(id, nick);
  }

  #forgetGuild(id: string): void {
    this.#guilds.delete(id);
    this.#forgetChannels(({ guildId }) => guildId === id);
  }

  #forgetChannels(which: (channel: KnownChannel, id: string) => boolean): void {
    for (const [id, channel] of this.#channels) if (which(channel, id)) this.#channels.delete(id);
  }
}

/** Whether a set of permissions includes managing the guild. */
export function holdsManagement(permissions: bigint): boolean {
  return (permissions & MANAGEMENT) !== 0n;
}

/** Where a message is. A channel that Discord does not describe counts as a chat of its own. */
export function placeOf(
  directory: Directory,
  channelId: string,
  guildId: string | undefined,
  told: Fields<Discord.APIThreadChannel> = {},
): ChannelPlace {
  const channel = { type: numberOf(told.type) ?? 0, parentId: parentOf(told) };
  return directory.place(channelId) ?? placeIn(channelId, channel, guildId ?? null);
}

/** The parent of a channel that is no thread is a category. */
function parentOf({ type, parent_id }: Fields<Discord.APIThreadChannel>): string | null {
  return THREADS.has(numberOf(type) ?? 0) ? (idOf(parent_id) ?? null) : null;
}

/** A private thread has members of its own, so it is a chat of its own. */
function placeIn(
  id: string,
  { type, parentId }: { type: number; parentId: string | null },
  guildId: string | null,
): ChannelPlace {
  return parentId === null || type === Discord.ChannelType.PrivateThread
    ? { address: id, threadId: null, guildId }
    : { address: parentId, threadId: id, guildId };
}

function nicksOf(members: unknown[]): Map<string, string> {
  return new Map(
    listOf<Discord.APIGuildMember>(members).flatMap((member) => {
      const id = idOf(fieldsOf<Discord.APIUser>(member.user).id);
      const nick = textOf(member.nick);
      return id === undefined || !nick ? [] : [[id, nick] as const];
    }),
  );
}

function rolesOf(roles: unknown[]): Map<string, Role> {
  return new Map(
    listOf<Discord.APIRole>(roles).flatMap((role) => {
      const id = idOf(role.id);
      if (id === undefined) return [];
      const botId = idOf(fieldsOf<NonNullable<Discord.APIRole['tags']>>(role.tags).bot_id) ?? null;
      return [
        [id, { name: textOf(role.name) ?? id, permissions: bitsOf(role.permissions) ?? 0n, botId }] as const,
      ];
    }),
  );
}

/** More than ten minutes. Newer messages should not wait longer. */
const MOST_TRIES = 15;

/** Retries all failures except refusals. Never rejects. */
export async function persistently(
  { clock, log }: Base,
  signal: AbortSignal,
  failed: string,
  act: () => Promise<void>,
): Promise<void> {
  for (let tries = 0; !signal.aborted; tries += 1) {
    try {
      return await act();
    } catch (error) {
      if (signal.aborted) return;
      const failure = failureOf(error);
      const { reason } = failure;
      if (isRefusal(failure) || tries >= MOST_TRIES) {
        log.warn({ channel: 'discord', reason }, `${failed}; continuing without`);
        return;
      }
      log.debug({ channel: 'discord', reason }, `${failed}; retrying`);
      await clock.sleep(Math.max(failure.retryAfterMs ?? 0, backoffMs(tries)), signal);
    }
  }
}

/** Looks up guilds and channels that the gateway did not send: a resumed session sends none. */
export function createLookup(base: Base, directory: Directory, signal: AbortSignal) {
  const { api } = base;
  const guilds = new LRUCache<string, Promise<void>>({ max: MOST_NOTED });

  function findGuild(id: string): Promise<void> {
    return persistently(base, signal, 'looking up a Discord server failed', async () => {
      const [guild, channels] = await Promise.all([
        api.get(`/guilds/${id}`, signal),
        api.get(`/guilds/${id}/channels`, signal),
      ]);
      directory.noteGuild(guild);
      for (const channel of listOf(channels)) directory.noteChannel(channel, id);
    });
  }

  return {
    isNeeded(kind: string, room: string, guildId: string): boolean {
      if (directory.guildName(guildId) === null) return true;
      // An interaction itself tells its channel's parent.
      return kind !== 'INTERACTION_CREATE' && directory.place(room) === null;
    },
    /** Then both are known, as far as Discord tells. Never rejects. */
    async find(room: string, guildId: string): Promise<void> {
      if (directory.guildName(guildId) === null) {
        const asked = guilds.get(guildId) ?? findGuild(guildId);
        guilds.set(guildId, asked);
        await asked;
      }
      if (directory.place(room) !== null) return;
      await persistently(base, signal, 'looking up a Discord channel failed', async () => {
        directory.noteChannel(await api.get(`/channels/${room}`, signal));
      });
      // Then it is a chat of its own.
      if (directory.place(room) === null) directory.noteChannel({ id: room, guild_id: guildId });
    },
  };
}

/** Whether somebody manages a guild: "yes" is cached for minutes, "no" for seconds. May reject. */
export function createAdministrators({ api, clock }: Base, directory: Directory) {
  /** By guild and person. */
  const asked = createLookupCache(ask, { most: MOST_NOTED, clock });

  async function ask(key: string): Promise<boolean> {
    const [guildId = '', sender = ''] = key.split('/');
    const member = await api.get(`/guilds/${guildId}/members/${sender}`).catch((error) => {
      if (failureOf(error).status === 404) return null;
      throw error;
    });
    if (member === null) return false;
    const roles = idsOf(fieldsOf<Discord.APIGuildMember>(member).roles);
    if (directory.guildName(guildId) === null) directory.noteGuild(await api.get(`/guilds/${guildId}`));
    return directory.manages(guildId, sender, roles) ?? false;
  }

  return async function isAdministrator(chat: Address, sender: Address): Promise<boolean> {
    if (!isSnowflake(chat) || !isSnowflake(sender)) return false;
    const channel = directory.channel(chat) ?? directory.noteChannel(await api.get(`/channels/${chat}`));
    const guildId = channel?.guildId ?? null;
    return guildId !== null && isYes(asked, `${guildId}/${sender}`, (manages) => manages);
  };
}
