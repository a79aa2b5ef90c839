/**
 * Our own bot, the guilds, their channels and roles. The gateway lists them at the start of a session; they
 * outlive a connection, and a new session updates them. Missing ones are looked up.
 */
import * as Discord from 'discord-api-types/v10';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../core/clock.js';
import type { Address } from '../../core/message.js';
import { text as textOf } from '../kit/incoming.js';
import { createLookupCache, isAdministrator as isYes } from '../kit/lookup-cache.js';
import { backoffMs } from '../kit/supervise.js';
import type { Base, DiscordApi } from './api.js';
import { failureOf, isRefusal, MOST_NOTED } from './failure.js';
import { fieldsOf, idOf, idsOf, isSnowflake, listOf, type Told } from './payload.js';

export interface Me {
  id: string;
  name: string;
  /** The account's name. */
  username?: string | undefined;
  /** The bot's application, usually with the same id: messages of its webhooks carry it. */
  applicationId: string;
}

export class Identity {
  /** null before the first login. */
  me: Me | null = null;

  constructor(private readonly base: Base) {}

  note(user: Told<Discord.APIUser> | null | undefined, applicationId?: string): Me | null {
    const id = idOf(user?.id);
    if (!user || id === undefined) return null;
    const username = user.username ?? undefined;
    this.me = { id, name: nameOf(user) || id, username, applicationId: applicationId ?? id };
    return this.me;
  }

  /** Asks Discord if unknown. Rejects when Discord cannot be asked. */
  async ask(signal?: AbortSignal): Promise<Me> {
    const found = this.me ?? this.note(await this.base.api.get<Discord.APIUser>('/users/@me', signal));
    if (found === null) throw new Error('Discord does not say which bot this is');
    return found;
  }
}

/** The nickname in the guild, else the display name, else the account's name. */
export function nameOf(user: Told<Discord.APIUser> | null | undefined, nick?: string | null): string {
  const names = [nick, user?.global_name, user?.username, user?.id].map(textOf);
  return names.find(Boolean) ?? '';
}

export interface ChannelPlace {
  /** The chat: the channel itself, or the one that a thread belongs to. */
  address: Address;
  /** The thread; null for the channel itself. */
  threadId: string | null;
  /** null for a direct chat. */
  guildId: string | null;
}

/** `last_message_id` is as listed at the start of this session; null if it was not. */
export type KnownChannel = Told<Discord.APIThreadChannel> & { id: string };

interface Guild {
  name: string;
  ownerId: string | null;
  /** Boost level, which determines the maximum file size. */
  premiumTier: number;
  roles: Map<string, Told<Discord.APIRole>>;
  /** Nicknames by person; Discord usually sends only the bot's own. */
  nicks: Map<string, string>;
}

const THREADS = new Set<unknown>([
  Discord.ChannelType.AnnouncementThread,
  Discord.ChannelType.PublicThread,
  Discord.ChannelType.PrivateThread,
]);
const MANAGEMENT = Discord.PermissionFlagsBits.Administrator | Discord.PermissionFlagsBits.ManageGuild;

/** Which servers a shard hears of; null: direct chats. */
interface Hearing {
  hears: (guildId: string | null) => boolean;
}

const EVERYWHERE: Hearing = { hears: () => true };

/** So long what Discord told of a server holds whose changes another gateway hears of. */
const FRESH_MS = 300_000;

export class Directory {
  /** When servers and channels were noted. */
  readonly #notedAt = new Map<string, number>();
  readonly #guilds = new Map<string, Guild>();
  readonly #channels = new Map<string, KnownChannel>();
  /** Guilds announced but not yet received. */
  readonly #awaited = new Set<string>();

  /** `partly`: only some servers' changes are heard of here. null: all are. */
  constructor(
    private readonly partly: { clock: Clock; isHeard: (guildId: string | null) => boolean } | null = null,
  ) {}

  /** Learns from an event of the gateway; most contain nothing relevant. */
  note(kind: string, payload: unknown, shard: Hearing = EVERYWHERE): void {
    if (kind === 'READY') this.#noteReady(payload, shard);
    else if (kind === 'GUILD_CREATE' || kind === 'GUILD_UPDATE') this.noteGuild(payload);
    else if (kind === 'GUILD_DELETE') this.#noteGuildGone(payload);
    else if (kind.startsWith('GUILD_ROLE_')) this.#noteRole(payload);
    else if (kind === 'GUILD_MEMBER_UPDATE') this.#noteMember(payload);
    else if (kind === 'THREAD_LIST_SYNC') this.#noteThreads(payload);
    else if (kind === 'CHANNEL_DELETE' || kind === 'THREAD_DELETE') {
      const gone = fieldsOf<Discord.APIChannel>(payload).id;
      this.#forgetChannels((channel) => channel.id === gone || parentOf(channel) === gone);
    } else if (/^(CHANNEL|THREAD)_(CREATE|UPDATE)$/.test(kind)) this.noteChannel(payload);
  }

  /** Learns from the API's description of a channel, and returns it; null if it is none. */
  noteChannel(payload: unknown, inGuild?: string): KnownChannel | null {
    const told = fieldsOf<Discord.APIThreadChannel>(payload);
    const id = idOf(told.id);
    if (id === undefined) return null;
    const { type, guild_id = inGuild, parent_id } = told;
    const [name, last_message_id] = [textOf(told.name), idOf(told.last_message_id)];
    const channel = { id, type, name, guild_id, parent_id, last_message_id } as KnownChannel;
    this.#channels.set(id, channel);
    this.#stamp(id);
    return channel;
  }

  noteGuild(payload: unknown): void {
    const told = fieldsOf<Discord.APIGuild & Discord.GatewayGuildCreateDispatchData>(payload);
    const id = idOf(told.id);
    if (id === undefined || told.unavailable === true) return;
    this.#awaited.delete(id);
    const known = this.#guilds.get(id);
    this.#stamp(id);
    this.#guilds.set(id, {
      name: textOf(told.name) ?? id,
      ownerId: told.owner_id ?? null,
      premiumTier: told.premium_tier ?? 0,
      roles: new Map(listOf(told.roles).map((role) => [role.id ?? '', role])),
      nicks: told.members ? nicksOf(listOf(told.members)) : (known?.nicks ?? new Map()),
    });
    if (!told.channels) return;
    this.#forgetChannels(({ guild_id }) => guild_id === id);
    for (const each of [...listOf(told.channels), ...listOf(told.threads)]) this.noteChannel(each, id);
  }

  channel(id: string): KnownChannel | null {
    const channel = this.#channels.get(id);
    return channel && this.#isFresh(id, idOf(channel.guild_id) ?? null) ? channel : null;
  }

  /** Asks Discord for a channel that is unknown; rejects when it cannot be asked. */
  async ask(api: DiscordApi, id: string, signal?: AbortSignal): Promise<KnownChannel | null> {
    return this.channel(id) ?? this.noteChannel(await api.get(`/channels/${id}`, signal));
  }

  /** Asks also for the server. */
  async askAround(api: DiscordApi, id: string, signal?: AbortSignal): Promise<void> {
    const guildId = idOf((await this.ask(api, id, signal))?.guild_id);
    if (guildId !== undefined && this.guildName(guildId) === null) {
      this.noteGuild(await api.get(`/guilds/${guildId}`, signal));
    }
  }

  guildName(id: string): string | null {
    return this.#guild(id)?.name ?? null;
  }

  role(guildId: string | null, roleId: string): Told<Discord.APIRole> | undefined {
    return this.#guild(guildId ?? '')?.roles.get(roleId);
  }

  /** null for an unknown channel. */
  place(channelId: string): ChannelPlace | null {
    const channel = this.channel(channelId);
    return channel && placeOf(channel);
  }

  /** All known threads, including private ones. */
  threads(): KnownChannel[] {
    return [...this.#channels.values()].filter((channel) => parentOf(channel) !== null);
  }

  /** 0 to 3; 0 also for an unknown guild. */
  premiumTier(guildId: string): number {
    return this.#guild(guildId)?.premiumTier ?? 0;
  }

  /** A person's nicknames in all guilds. */
  nicksOf(userId: string): string[] {
    return [...new Set([...this.#guilds.values()].flatMap(({ nicks }) => nicks.get(userId) ?? []))];
  }

  /** Whether somebody with these roles manages a guild; null for an unknown guild. */
  manages(guildId: string, userId: string, memberRoles: readonly string[]): boolean | null {
    const guild = this.#guild(guildId);
    if (guild === undefined) return null;
    if (guild.ownerId === userId) return true;
    // The role of @everyone has the guild's own id.
    return [guildId, ...memberRoles].some((id) => holdsManagement(guild.roles.get(id)?.permissions));
  }

  hasAllGuilds(shard: Hearing): boolean {
    return ![...this.#awaited].some((id) => shard.hears(id));
  }

  #noteReady(payload: unknown, { hears }: Hearing): void {
    const { guilds } = fieldsOf<Discord.GatewayReadyDispatchData>(payload);
    if (!guilds) return;
    // Other shards tell of the others.
    for (const id of this.#awaited) if (hears(id)) this.#awaited.delete(id);
    for (const { id } of listOf(guilds)) if (idOf(id) !== undefined) this.#awaited.add(String(id));
    for (const id of [...this.#guilds.keys()]) {
      if (hears(id) && !this.#awaited.has(id)) this.#forgetGuild(id);
    }
    // Each guild sends it again; until then newer messages may be missing.
    for (const channel of this.#channels.values()) {
      if (hears(idOf(channel.guild_id) ?? null)) channel.last_message_id = null;
    }
  }

  #noteGuildGone(payload: unknown): void {
    const { id, unavailable } = fieldsOf<Discord.APIUnavailableGuild>(payload);
    // Unavailable: Discord has an outage, and we are still in the guild.
    if (id && unavailable !== true) this.#forgetGuild(id);
    if (id) this.#awaited.delete(id);
  }

  #noteThreads(payload: unknown): void {
    const { threads, guild_id } = fieldsOf<Discord.GatewayThreadListSyncDispatchData>(payload);
    for (const thread of listOf(threads)) this.noteChannel(thread, idOf(guild_id));
  }

  #noteRole(payload: unknown): void {
    const { guild_id, role, role_id } = fieldsOf<
      Discord.GatewayGuildRoleCreateDispatchData & Discord.GatewayGuildRoleDeleteDispatchData
    >(payload);
    const roles = this.#guilds.get(guild_id ?? '')?.roles;
    if (role?.id) roles?.set(role.id, role);
    roles?.delete(role_id ?? '');
  }

  #noteMember(payload: unknown): void {
    const member = fieldsOf<Discord.GatewayGuildMemberUpdateDispatchData>(payload);
    const nicks = this.#guilds.get(member.guild_id ?? '')?.nicks;
    nicks?.delete(member.user?.id ?? '');
    for (const [id, nick] of nicksOf([member])) nicks?.set(id, nick);
  }

  #guild(id: string): Guild | undefined {
    const guild = this.#guilds.get(id);
    return guild && this.#isFresh(id, id) ? guild : undefined;
  }

  #stamp(id: string): void {
    if (this.partly !== null) this.#notedAt.set(id, this.partly.clock.now());
  }

  #isFresh(id: string, guildId: string | null): boolean {
    const { partly } = this;
    if (partly === null || guildId === null || partly.isHeard(guildId)) return true;
    return Math.abs(partly.clock.now() - (this.#notedAt.get(id) ?? Number.NEGATIVE_INFINITY)) < FRESH_MS;
  }

  #forgetGuild(id: string): void {
    this.#guilds.delete(id);
    this.#notedAt.delete(id);
    this.#forgetChannels(({ guild_id }) => guild_id === id);
  }

  #forgetChannels(isGone: (channel: KnownChannel) => boolean): void {
    for (const [id, channel] of this.#channels) {
      if (!isGone(channel)) continue;
      this.#channels.delete(id);
      this.#notedAt.delete(id);
    }
  }
}

/** Whether a set of permissions includes managing the guild. */
export function holdsManagement(permissions: string | null | undefined): boolean {
  return /^\d{1,40}$/.test(permissions ?? '') && (BigInt(permissions ?? 0) & MANAGEMENT) !== 0n;
}

/** A thread's channel. The parent of a channel that is no thread is a category. */
export function parentOf({ type, parent_id }: Told<Discord.APIThreadChannel>): string | null {
  return THREADS.has(type) ? (idOf(parent_id) ?? null) : null;
}

/** A private thread has members of its own, so it is a chat of its own. */
export function placeOf(channel: KnownChannel): ChannelPlace {
  const { id, type } = channel;
  const parent = parentOf(channel);
  const guildId = idOf(channel.guild_id) ?? null;
  return parent === null || type === Discord.ChannelType.PrivateThread
    ? { address: id, threadId: null, guildId }
    : { address: parent, threadId: id, guildId };
}

function nicksOf(members: Told<Pick<Discord.APIGuildMember, 'user' | 'nick'>>[]): Map<string, string> {
  return new Map(members.flatMap(({ user, nick }) => (user?.id && nick ? [[user.id, nick] as const] : [])));
}

/** More than ten minutes. Newer messages should not wait longer. */
const MOST_TRIES = 15;

/** Retries all failures except refusals; null if it never worked. Never rejects. */
export async function persistently<Result>(
  { clock, log }: Base,
  signal: AbortSignal,
  failed: string,
  act: () => Promise<Result>,
): Promise<Result | null> {
  for (let tries = 0; !signal.aborted; tries += 1) {
    try {
      return await act();
    } catch (error) {
      if (signal.aborted) break;
      const failure = failureOf(error);
      const { reason } = failure;
      if (isRefusal(failure) || tries >= MOST_TRIES) {
        log.warn({ channel: 'discord', reason }, `${failed}; continuing without`);
        return null;
      }
      log.debug({ channel: 'discord', reason }, `${failed}; retrying`);
      await clock.sleep(Math.max(failure.retryAfterMs ?? 0, backoffMs(tries)), signal);
    }
  }
  return null;
}

/** Looks up guilds and channels that the gateway did not send: a resumed session sends none. */
export function createLookup(base: Base, directory: Directory, signal: AbortSignal) {
  const { api } = base;
  const guilds = new LRUCache<string, Promise<unknown>>({ max: MOST_NOTED });

  function findGuild(id: string): Promise<unknown> {
    return persistently(base, signal, 'looking up a Discord server failed', async () => {
      const [guild, channels] = await Promise.all([
        api.get(`/guilds/${id}`, signal),
        api.get<Discord.APIChannel[]>(`/guilds/${id}/channels`, signal),
      ]);
      directory.noteGuild(guild);
      for (const channel of listOf(channels)) directory.noteChannel(channel, id);
    });
  }

  /** Then both are known, as far as Discord tells. An interaction itself tells its channel's parent. Never rejects. */
  return async function lookUp(kind: string, room: string, guildId: string): Promise<void> {
    if (directory.guildName(guildId) === null) {
      const asked = guilds.get(guildId) ?? findGuild(guildId);
      guilds.set(guildId, asked);
      await asked;
    }
    if (kind === 'INTERACTION_CREATE' || directory.channel(room) !== null) return;
    await persistently(base, signal, 'looking up a Discord channel failed', () =>
      directory.ask(api, room, signal),
    );
    // Then it is a chat of its own.
    if (directory.channel(room) === null) directory.noteChannel({ id: room, guild_id: guildId });
  };
}

/** Whether somebody manages a guild: "yes" is cached for minutes, "no" for seconds. May reject. */
export function createAdministrators({ api, clock }: Base, directory: Directory) {
  /** By guild and person. */
  const asked = createLookupCache(ask, { most: MOST_NOTED, clock });

  async function ask(key: string): Promise<boolean> {
    const [guildId = '', sender = ''] = key.split('/');
    const path = `/guilds/${guildId}/members/${sender}`;
    const member = await api.get<Discord.APIGuildMember>(path).catch((error) => {
      if (failureOf(error).status === 404) return null;
      throw error;
    });
    if (member === null) return false;
    if (directory.guildName(guildId) === null) directory.noteGuild(await api.get(`/guilds/${guildId}`));
    return directory.manages(guildId, sender, idsOf(member.roles)) ?? false;
  }

  return async function isAdministrator(chat: Address, sender: Address): Promise<boolean> {
    if (!isSnowflake(chat) || !isSnowflake(sender)) return false;
    const guildId = (await directory.ask(api, chat))?.guild_id;
    return !!guildId && isYes(asked, `${guildId}/${sender}`, (manages) => manages);
  };
}
