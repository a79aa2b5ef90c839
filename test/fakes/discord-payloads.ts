/** The world of the fake Discord as its API and its gateway tell of it. */
import { timeOf } from './discord-snowflake.js';
import type { MemberSetup, Payload, RoleSetup, User } from './discord-words.js';
import type { StoredMessage, World } from './discord-world.js';
import { type Channel, DM, type Guild, PRIVATE_THREAD, PUBLIC_THREAD } from './discord-world.js';

const LONG_AGO = '2020-01-01T00:00:00.000000+00:00';

export function userOf({ id, username, global_name = null, bot = false }: User): Payload {
  return {
    id,
    username,
    global_name,
    bot,
    discriminator: bot ? '4242' : '0',
    avatar: null,
    public_flags: 0,
    system: false,
  };
}

export function memberOf({ user, roles = [], nick }: MemberSetup): Payload {
  return {
    user: userOf(user),
    roles,
    nick: nick ?? null,
    avatar: null,
    joined_at: LONG_AGO,
    premium_since: null,
    deaf: false,
    mute: false,
    flags: 0,
    pending: false,
    communication_disabled_until: null,
  };
}

export function roleOf({ id, name, permissions, botId }: RoleSetup): Payload {
  return {
    id,
    name,
    permissions: String(permissions),
    color: 0,
    hoist: false,
    icon: null,
    unicode_emoji: null,
    colors: { primary_color: 0, secondary_color: null, tertiary_color: null },
    position: 0,
    managed: botId !== undefined,
    mentionable: false,
    flags: 0,
    ...(botId === undefined ? {} : { tags: { bot_id: botId } }),
  };
}

export function channelOf(channel: Channel): Payload {
  const { id, type, name, guild, parent, recipient, lastMessageId, overwrites, ownerId } = channel;
  const common = { id, type, last_message_id: lastMessageId, flags: 0 };
  if (type === DM) return { ...common, recipients: recipient === null ? [] : [userOf(recipient)] };
  const named = { ...common, name, guild_id: guild?.id, parent_id: parent?.id ?? null };
  if (type !== PUBLIC_THREAD && type !== PRIVATE_THREAD) {
    const permission_overwrites = overwrites.map((overwrite) => ({
      id: overwrite.id,
      type: guild?.roles.has(overwrite.id) ? 0 : 1,
      allow: String(overwrite.allow ?? 0n),
      deny: String(overwrite.deny ?? 0n),
    }));
    return { ...named, permission_overwrites, position: 0, topic: null, nsfw: false, rate_limit_per_user: 0 };
  }
  return {
    ...named,
    owner_id: ownerId,
    message_count: channel.messages.size,
    member_count: 2,
    total_message_sent: channel.messages.size,
    rate_limit_per_user: 0,
    thread_metadata: {
      archived: channel.archived,
      locked: channel.locked,
      auto_archive_duration: 1440,
      archive_timestamp: LONG_AGO,
      create_timestamp: LONG_AGO,
    },
  };
}

/** As GET shows it. */
export function guildOf({ id, name, ownerId, roles, premiumTier }: Guild): Payload {
  return {
    id,
    name,
    owner_id: ownerId,
    roles: [...roles.values()].map(roleOf),
    emojis: [],
    stickers: [],
    features: [],
    icon: null,
    splash: null,
    discovery_splash: null,
    banner: null,
    description: null,
    afk_channel_id: null,
    afk_timeout: 300,
    system_channel_id: null,
    system_channel_flags: 0,
    rules_channel_id: null,
    public_updates_channel_id: null,
    safety_alerts_channel_id: null,
    verification_level: 0,
    default_message_notifications: 0,
    explicit_content_filter: 0,
    mfa_level: 0,
    premium_tier: premiumTier,
    premium_subscription_count: 0,
    preferred_locale: 'en-US',
    nsfw_level: 0,
    application_id: null,
    vanity_url_code: null,
    premium_progress_bar_enabled: false,
    max_members: 500_000,
    max_presences: null,
  };
}

/** As GUILD_CREATE brings it. */
export function wholeGuildOf(guild: Guild, world: World): Payload {
  const channels = world.channelsOf(guild);
  const me = guild.members.get(world.bot.id) ?? { user: world.bot };
  return {
    ...guildOf(guild),
    joined_at: LONG_AGO,
    large: false,
    unavailable: false,
    member_count: guild.members.size,
    channels: channels.filter(({ parent }) => parent === null).map(channelOf),
    threads: channels.filter(({ parent, archived }) => parent !== null && !archived).map(channelOf),
    // Without the intent for members a bot hears of itself only.
    members: [memberOf(me)],
    voice_states: [],
    presences: [],
    stage_instances: [],
    guild_scheduled_events: [],
    soundboard_sounds: [],
  };
}

/** As GET shows it. */
export function messageOf(message: StoredMessage, world: World, options: { nonce: boolean }): Payload {
  const { id, channel, author, content, type, replyTo, attachments, flags, editedAt } = message;
  const replied = replyTo === null ? null : (channel.messages.get(replyTo) ?? null);
  const mentioned = mentionedIn(message, replied, world);
  return {
    id,
    channel_id: channel.id,
    author: userOf(author),
    content,
    type,
    attachments,
    flags,
    timestamp: iso(timeOf(id)),
    edited_timestamp: editedAt === null ? null : iso(editedAt),
    tts: false,
    pinned: false,
    embeds: [],
    components: message.components,
    mentions: mentioned.map(userOf),
    mention_roles: [...content.matchAll(/<@&(\d+)>/g)].map((match) => match[1]),
    mention_everyone: /@(everyone|here)/.test(content),
    ...(replyTo === null ? {} : replyOf(channel, replyTo, replied, world)),
    ...(options.nonce && message.nonce !== null ? { nonce: message.nonce } : {}),
    ...message.extra,
  };
}

/** As the gateway brings it: with the guild and what its people are there. */
export function dispatchedMessage(message: StoredMessage, world: World): Payload {
  const payload = messageOf(message, world, { nonce: true });
  const { guild, type } = message.channel;
  if (guild === null) return { ...payload, channel_type: type };
  const partly = (userId: string) => {
    const { user: _known, ...member } = memberOf(guild.members.get(userId) ?? { user: message.author });
    return member;
  };
  const mentions = (payload.mentions as Payload[]).map((user) => ({
    ...user,
    member: partly(String(user.id)),
  }));
  return { ...payload, mentions, guild_id: guild.id, channel_type: type, member: partly(message.author.id) };
}

function replyOf(channel: Channel, id: string, replied: StoredMessage | null, world: World): Payload {
  const guild = channel.guild === null ? {} : { guild_id: channel.guild.id };
  if (replied === null) {
    return {
      message_reference: { type: 0, message_id: id, channel_id: channel.id, ...guild },
      referenced_message: null,
    };
  }
  const { referenced_message: _deeper, ...shown } = messageOf(replied, world, { nonce: false });
  return {
    message_reference: { type: 0, message_id: id, channel_id: channel.id, ...guild },
    referenced_message: shown,
  };
}

function mentionedIn(message: StoredMessage, replied: StoredMessage | null, { users }: World): User[] {
  const ids = [...message.content.matchAll(/<@!?(\d+)>/g)].map((match) => match[1] ?? '');
  if (replied !== null && message.pingsReplied) ids.push(replied.author.id);
  return [...new Set(ids)].flatMap((id) => users.get(id) ?? []);
}

export function iso(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000+00:00');
}
