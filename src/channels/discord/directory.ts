/**
 * What the gateway has told of guilds, their channels and their roles: only what it takes to say where something was
 * said and by whom. It outlives a connection; a new session brings it up to date.
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

export interface Channel {
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
  roles: Map<string, Role>;
}

export interface Directory {
  /** Takes note of a packet of the gateway; most say nothing of interest. */
  note(kind: string, payload: unknown): void;
  /** Takes note of what the API said of a channel. Returns it; null where it is none. */
  noteChannel(payload: unknown, inGuild?: string): Channel | null;
  /** The same of a guild. */
  noteGuild(payload: unknown): void;
  channel(id: string): Channel | null;
  guildName(id: string): string | null;
  role(guildId: string, roleId: string): Role | null;
  /** null for a channel we were told nothing of. */
  place(channelId: string): Place | null;
  /** Whether somebody with these roles manages a guild; null for a guild we were told nothing of. */
  manages(guildId: string, userId: string, roles: readonly string[]): boolean | null;
  /** Guilds that were announced and not told of yet. */
  awaited(): number;
  guilds(): number;
}

/**
 * Where something was said. What the event itself says of its channel counts where nobody has told us of that yet; and a
 * channel of which nobody says anything is a chat of its own.
 */
export function placeOf(
  directory: Pick<Directory, 'place'>,
  where: { channel_id: string; guild_id?: string | undefined; channel?: Told | undefined },
): Place {
  const place = directory.place(where.channel_id);
  if (place !== null) return place;
  const { channel_id: id, guild_id: guildId = null, channel } = where;
  const parentId = channel === undefined ? null : parentOf(channel);
  return parentId === null
    ? { address: id, threadId: null, guildId }
    : { address: parentId, threadId: id, guildId };
}

type Told = Pick<ChannelPayload, 'type' | 'parent_id'>;

/** The parent of any other channel than a thread is a category. */
function parentOf({ type, parent_id }: Told): string | null {
  return THREAD_TYPES.has(type ?? 0) ? (parent_id ?? null) : null;
}

const ADMINISTRATOR = 1n << 3n;
const MANAGE_GUILD = 1n << 5n;
const THREAD_TYPES = new Set([10, 11, 12]);

/** Of a set of permissions: Administrator or Manage Server. */
export function holdsManagement(permissions: bigint): boolean {
  return (permissions & (ADMINISTRATOR | MANAGE_GUILD)) !== 0n;
}

export function createDirectory(): Directory {
  const guilds = new Map<string, Guild>();
  const channels = new Map<string, Channel>();
  let awaited = new Set<string>();

  function noteChannel(payload: unknown, inGuild?: string): Channel | null {
    const told = read.channel(payload);
    if (told === undefined) return null;
    const channel = channelOf(told, inGuild ?? told.guild_id ?? null);
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

  function noteRole(payload: unknown): void {
    const told = read.roleChange(payload);
    const roles = told === undefined ? undefined : guilds.get(told.guild_id)?.roles;
    if (told?.role !== undefined) for (const [id, role] of rolesOf([told.role])) roles?.set(id, role);
    if (told?.role_id !== undefined) roles?.delete(told.role_id);
  }

  return {
    note(kind, payload) {
      switch (kind) {
        case 'READY':
          return noteReady(payload);
        case 'GUILD_CREATE':
        case 'GUILD_UPDATE':
          return noteGuild(payload);
        case 'GUILD_DELETE': {
          const told = read.guild(payload);
          // Unavailable: Discord has an outage, and we are still in it.
          if (told !== undefined && !told.unavailable) forgetGuild(told.id);
          if (told !== undefined) awaited.delete(told.id);
          return;
        }
        case 'GUILD_ROLE_CREATE':
        case 'GUILD_ROLE_UPDATE':
        case 'GUILD_ROLE_DELETE':
          return noteRole(payload);
        case 'CHANNEL_CREATE':
        case 'CHANNEL_UPDATE':
        case 'THREAD_CREATE':
        case 'THREAD_UPDATE':
          noteChannel(payload);
          return;
        case 'THREAD_LIST_SYNC': {
          const told = read.threads(payload);
          for (const thread of told?.threads ?? []) noteChannel(thread, told?.guild_id);
          return;
        }
        case 'CHANNEL_DELETE':
        case 'THREAD_DELETE': {
          const gone = read.channel(payload)?.id;
          if (gone !== undefined) forgetChannels((channel, id) => id === gone || channel.parentId === gone);
          return;
        }
      }
    },
    noteChannel,
    noteGuild,
    channel: (id) => channels.get(id) ?? null,
    guildName: (id) => guilds.get(id)?.name ?? null,
    role: (guildId, roleId) => guilds.get(guildId)?.roles.get(roleId) ?? null,
    place(channelId) {
      const channel = channels.get(channelId);
      if (channel === undefined) return null;
      const { guildId, parentId } = channel;
      return parentId === null
        ? { address: channelId, threadId: null, guildId }
        : { address: parentId, threadId: channelId, guildId };
    },
    manages(guildId, userId, memberRoles) {
      const guild = guilds.get(guildId);
      if (guild === undefined) return null;
      if (guild.ownerId === userId) return true;
      // What @everyone may has the guild's own id.
      return [guildId, ...memberRoles].some((id) => holdsManagement(guild.roles.get(id)?.permissions ?? 0n));
    },
    awaited: () => awaited.size,
    guilds: () => guilds.size,
  };
}

function channelOf(told: ChannelPayload, guildId: string | null): Channel {
  return {
    name: told.name ?? told.id,
    guildId,
    parentId: parentOf(told),
    lastMessageId: told.last_message_id ?? null,
  };
}

function rolesOf(told: NonNullable<GuildPayload['roles']>): Map<string, Role> {
  return new Map(
    told.map(({ id, name, permissions, tags }) => [
      id,
      { name: name ?? id, permissions: permissions ?? 0n, botId: tags?.bot_id ?? null },
    ]),
  );
}
