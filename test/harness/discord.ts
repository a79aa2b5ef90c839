/** The fake Discord as one of the platforms that the conversation script and the kills run on. */
import { startFakeDiscord } from '../fakes/discord.js';
import { invocationOf } from '../fakes/discord-commands.js';
import { isPayload } from '../fakes/discord-form.js';
import { PERMISSION } from '../fakes/discord-permissions.js';
import type { FakeDiscord, User } from '../fakes/discord-words.js';
import type { Image, Person, Place, Platform, Saying } from './platform.js';

const GUILD = '400000000000000000';

export async function discordPlatform(): Promise<Platform & { discord: FakeDiscord }> {
  const discord = await startFakeDiscord({ answerDelayMs: 3 });
  discord.guild({
    id: GUILD,
    name: 'The guild',
    channels: [],
    // What docs/discord.md asks for beyond what everybody may.
    roles: [
      {
        id: '400000000000000001',
        name: 'Coterie',
        permissions: PERMISSION.manageWebhooks,
        botId: discord.bot.id,
      },
    ],
  });
  const channels = new Set<string>();
  const removed = new Set<string>();
  const listeners: ((event: 'sent' | 'intake') => void)[] = [];

  function tell(event: 'sent' | 'intake'): void {
    for (const listener of listeners) listener(event);
  }

  /** The channel of a place, made when somebody goes there for the first time. */
  function enter(place: Place): string {
    const id = channelOf(place);
    if (!channels.has(id)) {
      channels.add(id);
      if (place.kind === 'group') discord.channel(GUILD, { id, name: `channel-${place.number}` });
      else discord.dm(userOf({ number: place.number, name: `Person ${place.number}` }), id);
    }
    return id;
  }

  function say({ from, in: place, text, mention, replyTo }: Saying, images: Image[]): string {
    const { id } = discord.say({
      from: userOf(from),
      channelId: enter(place),
      content: mention ? `<@${discord.bot.id}> ${text}` : text,
      ...(replyTo === undefined ? {} : { replyTo }),
      ...(images.length === 0 ? {} : { attachments: images.map((image) => attached(discord, image)) }),
    });
    return id;
  }

  discord.onEvent((event) => {
    tell(event === 'sent' ? 'sent' : 'intake');
  });

  return {
    discord,
    name: 'discord',
    recognisesResends: true,
    hasFaces: true,
    environment: {},
    config: {
      token: discord.token,
      api_root: discord.url,
      messages_per_second: 1000,
      per_chat_burst: 1000,
    },
    connected: () => discord.until(() => discord.sessions().connected > 0, 'the gateway is connected'),

    say: (saying) => say(saying, saying.image === undefined ? [] : [saying.image]),
    album: (saying, images) => [say(saying, images)],
    edit: (place, id, text) => discord.edit(channelOf(place), id, text),
    react(from, place, id, sign) {
      const channel_id = channelOf(place);
      const { author } = discord.message(channel_id, id) ?? {};
      const author_id = isPayload(author) ? { message_author_id: author.id } : {};
      const where = place.kind === 'direct' ? {} : { guild_id: GUILD, member: { user: userOf(from) } };
      discord.dispatch('MESSAGE_REACTION_ADD', {
        user_id: userOf(from).id,
        channel_id,
        message_id: id,
        ...author_id,
        ...where,
        emoji: { id: null, name: sign },
        burst: false,
        type: 0,
      });
    },
    remove(place, id) {
      removed.add(id);
      discord.remove(channelOf(place), id);
    },

    command(from, place, text) {
      const channelId = enter(place);
      // People choose from the commands that Discord knows; that there is no such one ends the test run.
      discord
        .until(() => discord.commands() !== null, 'the commands are made known')
        .then(() => {
          const invocation = invocationOf(discord.commands() ?? [], text);
          discord.command({ from: userOf(from), channelId, ...invocation });
        });
    },

    knowsCommand(text) {
      const [, name] = /^\/(\S+)/.exec(text) ?? [];
      return (discord.commands() ?? []).some((command) => command.name === name);
    },

    shown: (place) =>
      discord.sent
        .filter(({ channelId, id }) => channelId === channelOf(place) && !removed.has(id))
        .filter(({ channelId, id, ephemeral }) => ephemeral || discord.message(channelId, id) !== null)
        .map(({ id, content, files, replyTo, at, cut, answered, username }) => ({
          id,
          text: content,
          files: files.map(({ name }) => name),
          replyTo,
          at,
          cut: cut || !answered,
          speaker: username,
          heading: /^\*\*([^*\n]+)\*\*(?:\n|$)/.exec(content)?.[1] ?? null,
        })),
    typing: (place) => discord.typing.filter((channelId) => channelId === channelOf(place)).length,
    onEvent: (listener) => void listeners.push(listener),
    chatId: (place) => `discord_${channelOf(place)}`,
    personId: (person) => `discord_${userOf(person).id}`,
    close: () => discord.close(),
  };
}

function attached(discord: FakeDiscord, { bytes, mimeType }: Image) {
  return discord.attachment(`picture.${mimeType.split('/')[1]}`, bytes, mimeType);
}

function userOf({ number, name }: Person): User {
  return {
    id: String(100_000_000_000_000_000n + BigInt(number)),
    username: `person${number}`,
    global_name: name,
  };
}

function channelOf({ kind, number }: Place): string {
  const first = kind === 'direct' ? 200_000_000_000_000_000n : 300_000_000_000_000_000n;
  return String(first + BigInt(number));
}
