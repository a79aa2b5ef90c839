/**
 * What is known of guilds, their channels and their roles: only what it takes to say where something was said and by
 * whom. The gateway tells of them when a session begins; it outlives a connection, and a new session brings it up to date.
 */
import type { Address } from '../../core/message.js';
import { type ChannelPayload, type GuildPayload, read } from './payload.js';

export interface Place {
  /** The chat: the channel itself, or the one that a thread belongs to. */
  address: Address;
  /** The thread; null for the channel itself. */
  threadId: string | null;
  /** null for a direct chat. */
  guildId: string | null;
}

interface Channel extends Pick<ChannelPayload, 'type'> {
  name: string;
  /** null for a direct chat. */
  guildId: string | null;
  /** Of a thread, the channel it belongs to. */
  parentId: string | null;
  /** As this session told it at its begin; null where it did not. */
  lastMessageId: string | null;
}

interface Role {
  name: string;
  permissions: bigint;
  /** The bot it was made for, when that one was invited. */
  botId: string | null;
}

interface Guild {
  name: string;
  ownerId: string | null;
  /** How far it is boosted, which is how large its files may be. */
  premiumTier: number;
  roles: Map<string, Role>;
  /** What those members are called there of whom we are told: mostly only the bot itself. By person. */
  nicks: Map<string, string>;
}

const ADMINISTRATOR = 1n << 3n;
const MANAGE_GUILD = 1n << 5n;
/** Its members are others than those of its channel, so that it is a chat of its own. */
const PRIVATE_THREAD = 12;
const THREAD_TYPES = new Set([10, 11, PRIVATE_THREAD]);

export type Directory = ReturnType<typeof createDirectory>;

export function createDirectory() {
  const guilds = new Map<string, Guild>();
  const channels = new Map<string, Channel>();
  let awaited = new Set<string>();

  function noteChannel(payload: unknown, inGuild?: string): Channel | null {
    const told = read.channel(payload);
    if (told === undefined) return null;
    const channel = {
      name: told.name ?? told.id,
      type: told.type,
      guildId: inGuild ?? told.guild_id ?? null,
      parentId: parentOf(told),
      lastMessageId: told.last_message_id ?? null,
    };
    channels.set(told.id, channel);
    return channel;
  }

  function noteGuild(payload: unknown): void {
    const told = read.guild(payload);
    if (told === undefined || told.unavailable) return;
    awaited.delete(told.id);
    const known = guilds.get(told.id);
    guilds.set(told.id, {
      name: told.name ?? known?.name ?? told.id,
      ownerId: told.owner_id ?? known?.ownerId ?? null,
      premiumTier: told.premium_tier ?? known?.premiumTier ?? 0,
      nicks: told.members === undefined ? (known?.nicks ?? new Map()) : nicksOf(told.members),
      roles: told.roles === undefined ? (known?.roles ?? new Map()) : rolesOf(told.roles),
    });
    if (told.channels === undefined) return;
    forgetChannels((channel) => channel.guildId === told.id);
    for (const each of [...told.channels, ...(told.threads ?? [])]) noteChannel(each, told.id);
  }

  function forgetChannels(which: (channel: Channel, id: string) => boolean): void {
    for (const [id, channel] of channels) if (which(channel, id)) channels.delete(id);
  }

  function forgetGuild(id: string): void {
    guilds.delete(id);
    forgetChannels((channel) => channel.guildId === id);
  }

  function noteReady(payload: unknown): void {
    const told = read.ready(payload)?.guilds;
    if (told === undefined) return;
    awaited = new Set(told.map(({ id }) => id));
    for (const id of [...guilds.keys()]) if (!awaited.has(id)) forgetGuild(id);
    // What was said since is told with each guild; until then nobody knows.
    for (const channel of channels.values()) channel.lastMessageId = null;
  }

  function noteMember(payload: unknown): void {
    const told = read.memberChange(payload);
    const nicks = told === undefined ? undefined : guilds.get(told.guild_id)?.nicks;
    if (told === undefined || nicks === undefined) return;
    nicks.delete(told.user.id);
    for (const [id, nick] of nicksOf([told])) nicks.set(id, nick);
  }

  function noteRole(payload: unknown): void {
    const told = read.roleChange(payload);
    const roles = told === undefined ? undefined : guilds.get(told.guild_id)?.roles;
    if (told?.role !== undefined) for (const [id, role] of rolesOf([told.role])) roles?.set(id, role);
    if (told?.role_id !== undefined) roles?.delete(told.role_id);
  }

  /** Takes note of an event of the gateway; most say nothing of interest. */
  function note(kind: string, payload: unknown): void {
    switch (kind) {
      case 'READY':
        noteReady(payload);
        break;
      case 'GUILD_CREATE':
      case 'GUILD_UPDATE':
        noteGuild(payload);
        break;
      case 'GUILD_DELETE': {
        const told = read.guild(payload);
        // Unavailable: Discord has an outage, and we are still in it.
        if (told !== undefined && !told.unavailable) forgetGuild(told.id);
        if (told !== undefined) awaited.delete(told.id);
        break;
      }
      case 'GUILD_ROLE_CREATE':
      case 'GUILD_ROLE_UPDATE':
      case 'GUILD_ROLE_DELETE':
        noteRole(payload);
        break;
      case 'GUILD_MEMBER_UPDATE':
        noteMember(payload);
        break;
      case 'CHANNEL_CREATE':
      case 'CHANNEL_UPDATE':
      case 'THREAD_CREATE':
      case 'THREAD_UPDATE':
        noteChannel(payload);
        break;
      case 'THREAD_LIST_SYNC': {
        const told = read.threads(payload);
        for (const thread of told?.threads ?? []) noteChannel(thread, told?.guild_id);
        break;
      }
      case 'CHANNEL_DELETE':
      case 'THREAD_DELETE': {
        const gone = read.channel(payload)?.id;
        if (gone !== undefined) forgetChannels((channel, id) => id === gone || channel.parentId === gone);
        break;
      }
    }
  }

  return {
    note,
    /** Takes note of what the API said of a channel. Returns it; null where it is none. */
    noteChannel,
    noteGuild,
    channel: (id: string) => channels.get(id) ?? null,
    guildName: (id: string) => guilds.get(id)?.name ?? null,
    role: (guildId: string, roleId: string) => guilds.get(guildId)?.roles.get(roleId) ?? null,
    /** null for a channel of which nothing is known. */
    place(channelId: string): Place | null {
      const channel = channels.get(channelId);
      return channel === undefined ? null : placeIn(channelId, channel, channel.guildId);
    },
    /** The channel that a thread belongs to, also a private one; null for a channel, undefined where nothing is known. */
    parentOf: (id: string): string | null | undefined => channels.get(id)?.parentId,
    /** The threads of which we are told, private ones, too. */
    threads: (): { id: string; lastMessageId: string | null; guildId: string | null }[] =>
      [...channels]
        .filter(([, { parentId }]) => parentId !== null)
        .map(([id, { lastMessageId, guildId }]) => ({ id, lastMessageId, guildId })),
    /** 0 to 3; 0 also for a guild of which nothing is known. */
    premiumTier: (guildId: string): number => guilds.get(guildId)?.premiumTier ?? 0,
    /** What somebody is called in the guilds that call them something. */
    nicksOf: (userId: string): string[] => [
      ...new Set([...guilds.values()].flatMap(({ nicks }) => nicks.get(userId) ?? [])),
    ],
    /** Whether somebody with these roles manages a guild; null for a guild of which nothing is known. */
    manages(guildId: string, userId: string, memberRoles: readonly string[]): boolean | null {
      const guild = guilds.get(guildId);
      if (guild === undefined) return null;
      if (guild.ownerId === userId) return true;
      // What @everyone may has the guild's own id.
      return [guildId, ...memberRoles].some((id) => holdsManagement(guild.roles.get(id)?.permissions ?? 0n));
    },
    /** Guilds that were announced and not told of yet. */
    awaited: () => awaited.size,
  };
}

/** Of a set of permissions: Administrator or Manage Server. */
export function holdsManagement(permissions: bigint): boolean {
  return (permissions & (ADMINISTRATOR | MANAGE_GUILD)) !== 0n;
}

/**
 * Where something was said. What the event itself says of its channel counts where nobody has told us of that yet; and a
 * channel of which nobody says anything is a chat of its own.
 */
export function placeOf(
  directory: Pick<Directory, 'place'>,
  where: { channel_id: string; guild_id?: string | undefined; channel?: Told | undefined },
): Place {
  const { channel_id: id, guild_id: guildId = null, channel } = where;
  const told = { type: channel?.type, parentId: channel === undefined ? null : parentOf(channel) };
  return directory.place(id) ?? placeIn(id, told, guildId);
}

type Told = Pick<ChannelPayload, 'type' | 'parent_id'>;

/** The parent of any other channel than a thread is a category. */
function parentOf({ type, parent_id }: Told): string | null {
  return THREAD_TYPES.has(type ?? 0) ? (parent_id ?? null) : null;
}

function placeIn(
  id: string,
  { type, parentId }: Pick<Channel, 'type' | 'parentId'>,
  guildId: string | null,
): Place {
  return parentId === null || type === PRIVATE_THREAD
    ? { address: id, threadId: null, guildId }
    : { address: parentId, threadId: id, guildId };
}

function nicksOf(told: NonNullable<GuildPayload['members']>): Map<string, string> {
  return new Map(told.flatMap(({ user, nick }) => (nick ? [[user.id, nick]] : [])));
}

function rolesOf(told: NonNullable<GuildPayload['roles']>): Map<string, Role> {
  return new Map(
    told.map(({ id, name, permissions, tags }) => [
      id,
      { name: name ?? id, permissions: permissions ?? 0n, botId: tags?.bot_id ?? null },
    ]),
  );
}
