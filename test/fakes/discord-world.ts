/** The guilds, channels and messages of the fake Discord, and who may do what there. Plain data and questions to it. */
import { PERMISSION, permissionsOf } from './discord-permissions.js';
import { byId } from './discord-snowflake.js';
import type { ChannelSetup, MemberSetup, Overwrite, Payload, RoleSetup, User } from './discord-words.js';

export interface Guild {
  id: string;
  name: string;
  ownerId: string;
  roles: Map<string, RoleSetup>;
  members: Map<string, MemberSetup>;
  premiumTier: number;
  /** The bot was kicked. */
  left: boolean;
  unavailable: boolean;
}

export const TEXT = 0;
export const DM = 1;
export const PUBLIC_THREAD = 11;
export const PRIVATE_THREAD = 12;

/** Flags of a message: only one person sees it; its text is yet to come. */
export const EPHEMERAL = 1 << 6;
export const LOADING = 1 << 7;

export interface Channel {
  id: string;
  type: number;
  guild: Guild | null;
  name: string;
  /** Of a thread. */
  parent: Channel | null;
  ownerId: string | null;
  /** Of a direct chat. */
  recipient: User | null;
  overwrites: Overwrite[];
  messages: Map<string, StoredMessage>;
  /** The newest that ever was here, be it deleted. */
  lastMessageId: string | null;
  /** The code that messages of ours are refused with. */
  refusal: number | null;
  /** Of a thread. */
  archived: boolean;
  locked: boolean;
}

export interface StoredMessage {
  id: string;
  channel: Channel;
  author: User;
  content: string;
  type: number;
  /** The id of the message that it answers, perhaps of one that is gone. */
  replyTo: string | null;
  /** Whether the answered one's author is told. */
  pingsReplied: boolean;
  attachments: unknown[];
  components: unknown;
  flags: number;
  nonce: string | null;
  editedAt: number | null;
  /** Over the rest of its payload. */
  extra: Payload;
}

export interface World {
  readonly bot: User;
  readonly guilds: Map<string, Guild>;
  readonly channels: Map<string, Channel>;
  readonly users: Map<string, User>;
  addChannel(setup: ChannelSetup, more: Partial<Channel>): Channel;
  /** Everybody who was seen can be mentioned. */
  meet(user: User, guild?: Guild | null): void;
  dmWith(userId: string): Channel | undefined;
  channelsOf(guild: Guild): Channel[];
  store(message: StoredMessage): void;
  /** The history of a channel as the API pages it, the newest first. */
  history(channel: Channel, page: { after?: string; before?: string; limit: number }): StoredMessage[];
  permissions(userId: string, channel: Channel): bigint;
  permissionsIn(guild: Guild, userId: string): bigint;
  /** Whether our bot may do it there, and can get there at all. */
  may(permission: keyof typeof PERMISSION, channel: Channel): boolean;
  /** The channel is where our bot still is. */
  reachable(channel: Channel): boolean;
}

export function createWorld(bot: User): World {
  const guilds = new Map<string, Guild>();
  const channels = new Map<string, Channel>();
  const users = new Map<string, User>([[bot.id, bot]]);

  function rightsIn(guild: Guild) {
    return {
      guildId: guild.id,
      ownerId: guild.ownerId,
      permissionsOfRole: (id: string) => guild.roles.get(id)?.permissions ?? 0n,
    };
  }

  const world: World = {
    bot,
    guilds,
    channels,
    users,

    addChannel({ id, name, type = TEXT, overwrites = [] }, more) {
      const channel: Channel = {
        id,
        name,
        type,
        overwrites,
        guild: null,
        parent: null,
        ownerId: null,
        recipient: null,
        messages: new Map(),
        lastMessageId: null,
        refusal: null,
        archived: false,
        locked: false,
        ...more,
      };
      channels.set(id, channel);
      return channel;
    },

    meet(user, guild = null) {
      if (user.id !== bot.id) users.set(user.id, user);
      if (guild !== null && !guild.members.has(user.id)) guild.members.set(user.id, { user });
    },

    dmWith: (userId) => [...channels.values()].find(({ recipient }) => recipient?.id === userId),
    channelsOf: (guild) => [...channels.values()].filter((channel) => channel.guild === guild),

    store(message) {
      const { channel } = message;
      channel.messages.set(message.id, message);
      if (channel.lastMessageId === null || byId(channel.lastMessageId, message.id) < 0) {
        channel.lastMessageId = message.id;
      }
    },

    history(channel, { after, before, limit }) {
      const newestFirst = [...channel.messages.values()].sort((one, other) => byId(other.id, one.id));
      if (after !== undefined) {
        const later = newestFirst.filter(({ id }) => byId(id, after) > 0);
        return later.slice(Math.max(0, later.length - limit));
      }
      const earlier = newestFirst.filter(({ id }) => before === undefined || byId(id, before) < 0);
      return earlier.slice(0, limit);
    },

    permissions(userId, { guild, parent, overwrites }) {
      if (guild === null) return (1n << 53n) - 1n;
      const roles = guild.members.get(userId)?.roles ?? [];
      return permissionsOf(userId, roles, rightsIn(guild), parent?.overwrites ?? overwrites);
    },
    permissionsIn: (guild, userId) =>
      permissionsOf(userId, guild.members.get(userId)?.roles ?? [], rightsIn(guild)),
    may: (permission, channel) =>
      world.reachable(channel) && (world.permissions(bot.id, channel) & PERMISSION[permission]) !== 0n,
    reachable: ({ guild }) => guild === null || !guild.left,
  };
  return world;
}
