/** What people do on the fake Discord, and what becomes of its guilds, as the events that our bot gets of it. */
import type { Event } from './discord-gateway.js';
import {
  channelOf,
  dispatchedMessage,
  guildOf,
  memberOf,
  messageOf,
  wholeGuildOf,
} from './discord-payloads.js';
import { EVERYONE } from './discord-permissions.js';
import type { FakeDiscord, MemberSetup } from './discord-words.js';
import {
  type Channel,
  DM,
  type Guild,
  PRIVATE_THREAD,
  PUBLIC_THREAD,
  type StoredMessage,
  type World,
} from './discord-world.js';

type People = Pick<
  FakeDiscord,
  | 'guild'
  | 'dm'
  | 'channel'
  | 'thread'
  | 'post'
  | 'react'
  | 'leave'
  | 'outage'
  | 'removeChannel'
  | 'archive'
  | 'boost'
  | 'permit'
  | 'setRoles'
  | 'refuseIn'
  | 'say'
  | 'tellAgain'
  | 'edit'
  | 'unfurl'
  | 'remove'
  | 'message'
>;

/** The flag of a message that is a voice note. */
const VOICE = 1 << 13;
const SOMEBODY_ELSE = '900000000000000001';

export function createPeople(parts: {
  world: World;
  newId(at?: number): string;
  now(): number;
  dispatch(event: Event): void;
}): People {
  const { world, newId, now, dispatch } = parts;

  /** To our bot, if it can see what happens there. */
  function tell(channel: Channel, name: string, data: Event['data']): void {
    const { guild } = channel;
    if (guild?.unavailable !== true && world.may('viewChannel', channel)) dispatch({ name, data });
  }

  function the<Thing>(thing: Thing | undefined, what: string): Thing {
    if (thing === undefined) throw new Error(`the fake Discord has no ${what}`);
    return thing;
  }
  const theGuild = (id: string) => the(world.guilds.get(id), `guild ${id}`);
  const theChannel = (id: string) => the(world.channels.get(id), `channel ${id}`);
  const theMessage = (channelId: string, id: string) =>
    the(theChannel(channelId).messages.get(id), `message ${id} in channel ${channelId}`);

  function where({ id, guild }: Channel): Event['data'] {
    return { channel_id: id, ...(guild === null ? {} : { guild_id: guild.id }) };
  }

  function changed(message: StoredMessage): void {
    tell(message.channel, 'MESSAGE_UPDATE', dispatchedMessage(message, world));
  }

  return {
    guild({ id, name, channels, roles = [], members = [], ownerId = SOMEBODY_ELSE }) {
      const guild: Guild = {
        id,
        name,
        ownerId,
        roles: new Map(),
        members: new Map<string, MemberSetup>(),
        premiumTier: 0,
        left: false,
        unavailable: false,
      };
      world.guilds.set(id, guild);
      for (const role of [{ id, name: '@everyone', permissions: EVERYONE }, ...roles]) {
        guild.roles.set(role.id, role);
      }
      const ofOurBot = roles.filter(({ botId }) => botId === world.bot.id);
      guild.members.set(world.bot.id, { user: world.bot, roles: ofOurBot.map((role) => role.id) });
      for (const member of members) {
        world.meet(member.user);
        guild.members.set(member.user.id, member);
      }
      for (const channel of channels) world.addChannel(channel, { guild });
      dispatch({ name: 'GUILD_CREATE', data: wholeGuildOf(guild, world) });
    },

    dm(user, channelId) {
      world.meet(user);
      const known = world.dmWith(user.id);
      if (known !== undefined) return known.id;
      // Of its making our bot is told nothing: it hears of it by the first message.
      const setup = { id: channelId ?? newId(), name: '', type: DM };
      return world.addChannel(setup, { recipient: user }).id;
    },

    channel(guildId, setup) {
      const channel = world.addChannel(setup, { guild: theGuild(guildId) });
      dispatch({ name: 'CHANNEL_CREATE', data: channelOf(channel) });
    },

    thread(parentChannelId, { id = newId(), name = 'A thread', owner, private: closed = false } = {}) {
      const parent = theChannel(parentChannelId);
      const type = closed ? PRIVATE_THREAD : PUBLIC_THREAD;
      const { guild } = parent;
      const thread = world.addChannel(
        { id, name, type },
        { guild, parent, ownerId: owner?.id ?? SOMEBODY_ELSE },
      );
      tell(thread, 'THREAD_CREATE', { ...channelOf(thread), newly_created: true });
      return id;
    },

    post(forumId, { name, from, content, messageFirst = false }) {
      const parent = theChannel(forumId);
      const id = newId();
      const setup = { id, name, type: PUBLIC_THREAD };
      const thread = world.addChannel(setup, { guild: parent.guild, parent, ownerId: from.id });
      world.meet(from, parent.guild);
      const message: StoredMessage = {
        ...{ id, channel: thread, author: from, content, attachments: [], nonce: null, editedAt: null },
        ...{ type: 0, replyTo: null, pingsReplied: false, flags: 0, extra: {}, components: [] },
      };
      world.store(message);
      const tellOfThread = () => tell(thread, 'THREAD_CREATE', { ...channelOf(thread), newly_created: true });
      if (!messageFirst) tellOfThread();
      tell(thread, 'MESSAGE_CREATE', dispatchedMessage(message, world));
      if (messageFirst) tellOfThread();
      return id;
    },

    react(from, channelId, messageId, emoji) {
      const { channel, author, extra } = theMessage(channelId, messageId);
      const { guild } = channel;
      tell(channel, 'MESSAGE_REACTION_ADD', {
        user_id: from.id,
        ...where(channel),
        message_id: messageId,
        // Of a webhook's message it is left out (discord/discord-api-docs#6102).
        ...(extra.webhook_id === undefined ? { message_author_id: author.id } : {}),
        ...(guild === null ? {} : { member: memberOf(guild.members.get(from.id) ?? { user: from }) }),
        emoji: { id: null, name: emoji },
        burst: false,
        type: 0,
      });
    },

    leave(guildId) {
      const guild = theGuild(guildId);
      guild.left = true;
      dispatch({ name: 'GUILD_DELETE', data: { id: guildId } });
    },

    outage(guildId, on) {
      const guild = theGuild(guildId);
      guild.unavailable = on;
      if (on) dispatch({ name: 'GUILD_DELETE', data: { id: guildId, unavailable: true } });
      else dispatch({ name: 'GUILD_CREATE', data: wholeGuildOf(guild, world) });
    },

    removeChannel(channelId) {
      const channel = theChannel(channelId);
      tell(channel, 'CHANNEL_DELETE', channelOf(channel));
      world.channels.delete(channelId);
    },

    archive(threadId, { locked = false } = {}) {
      const thread = theChannel(threadId);
      thread.archived = true;
      thread.locked = locked;
      tell(thread, 'THREAD_UPDATE', channelOf(thread));
    },

    boost(guildId, tier) {
      const guild = theGuild(guildId);
      guild.premiumTier = tier;
      dispatch({ name: 'GUILD_UPDATE', data: guildOf(guild) });
    },

    permit(channelId, overwrites) {
      const channel = theChannel(channelId);
      const wasSeen = world.may('viewChannel', channel);
      channel.overwrites = overwrites;
      tell(channel, 'CHANNEL_UPDATE', channelOf(channel));
      const { guild } = channel;
      if (wasSeen || guild === null || !world.may('viewChannel', channel)) return;
      // Whoever gains access to a channel is told of the threads in it.
      const threads = world
        .channelsOf(guild)
        .filter(({ parent, archived }) => parent === channel && !archived);
      const data = {
        guild_id: guild.id,
        channel_ids: [channelId],
        threads: threads.map(channelOf),
        members: [],
      };
      dispatch({ name: 'THREAD_LIST_SYNC', data });
    },

    setRoles(guildId, userId, roles) {
      const guild = theGuild(guildId);
      const member = the(guild.members.get(userId), `member ${userId} in guild ${guildId}`);
      member.roles = roles;
      dispatch({ name: 'GUILD_MEMBER_UPDATE', data: { ...memberOf(member), guild_id: guildId } });
    },

    refuseIn(channelId, code) {
      theChannel(channelId).refusal = code;
    },

    say({ from, channelId, content = '', replyTo, pingsReplied = true, at, ...more }) {
      const { attachments = [], stickers = [], type, extra = {} } = more;
      const channel = theChannel(channelId);
      world.meet(from, channel.guild);
      const sticker_items = stickers.map((name) => ({ id: newId(), name, format_type: 1 }));
      const message: StoredMessage = {
        id: newId(at),
        channel,
        author: from,
        content,
        attachments,
        components: [],
        nonce: null,
        editedAt: null,
        type: type ?? (replyTo === undefined ? 0 : 19),
        replyTo: replyTo ?? null,
        pingsReplied,
        flags: attachments.some((each) => each.duration_secs !== undefined) ? VOICE : 0,
        extra: { ...(stickers.length === 0 ? {} : { sticker_items }), ...extra },
      };
      world.store(message);
      tell(channel, 'MESSAGE_CREATE', dispatchedMessage(message, world));
      return { id: message.id };
    },

    tellAgain(channelId, id) {
      const message = theMessage(channelId, id);
      tell(message.channel, 'MESSAGE_CREATE', dispatchedMessage(message, world));
    },

    edit(channelId, id, content) {
      const message = theMessage(channelId, id);
      message.content = content;
      message.editedAt = now();
      changed(message);
    },

    unfurl(channelId, id) {
      const message = theMessage(channelId, id);
      message.extra = { ...message.extra, embeds: [{ type: 'link', url: 'https://example.org/' }] };
      changed(message);
    },

    remove(channelId, ...ids) {
      const channel = theChannel(channelId);
      for (const id of ids) channel.messages.delete(id);
      if (ids.length === 1) tell(channel, 'MESSAGE_DELETE', { id: ids[0], ...where(channel) });
      else tell(channel, 'MESSAGE_DELETE_BULK', { ids, ...where(channel) });
    },

    message(channelId, id) {
      const message = world.channels.get(channelId)?.messages.get(id);
      return message === undefined ? null : messageOf(message, world, { nonce: false });
    },
  };
}
