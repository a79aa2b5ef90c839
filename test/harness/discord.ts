/** The fake Discord as a `Platform`, for the conversation script and the kill tests. */
import { startFakeDiscord } from '../fakes/discord.js';
import { invocationOf } from '../fakes/discord-commands.js';
import { buttonsIn } from '../fakes/discord-components.js';
import { PERMISSION } from '../fakes/discord-permissions.js';
import type { FakeDiscord, Interaction, User } from '../fakes/discord-words.js';
import { type Image, type Person, type Place, type Platform, type Saying, voiceNoteOf } from './platform.js';

const GUILD = '400000000000000000';
/** Reference type of a forwarded message. */
const FORWARD = 1;
/** The quotation above a webhook's message that replies to another. */
const QUOTE =
  /^> (?:<@\d+>|\*\*.*?\*\*) \[.*\]\(<https:\/\/discord\.com\/channels\/\d+\/\d+\/(?<id>\d+)>\)\n/;

export async function discordPlatform(): Promise<Platform & { discord: FakeDiscord }> {
  const discord = await startFakeDiscord({ answerDelayMs: 3 });
  discord.guild({
    id: GUILD,
    name: 'The guild',
    channels: [],
    // The permissions in docs/discord.md beyond the defaults.
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
  const presses: Interaction[] = [];
  const listeners: ((event: 'sent' | 'intake') => void)[] = [];

  function tell(event: 'sent' | 'intake'): void {
    for (const listener of listeners) listener(event);
  }

  /** The channel of a place, created on first use. */
  function enter(place: Place): string {
    const id = channelOf(place);
    if (!channels.has(id)) {
      channels.add(id);
      if (place.kind === 'group') discord.channel(GUILD, { id, name: `channel-${place.number}` });
      else discord.dm(userOf({ number: place.number, name: `Person ${place.number}` }), id);
    }
    return id;
  }

  function say(
    { from, in: place, text, mention, replyTo }: Saying,
    images: Image[],
    extra: Record<string, unknown> = {},
  ): string {
    const { id } = discord.say({
      from: userOf(from),
      channelId: enter(place),
      content: mention ? `<@${discord.bot.id}> ${text}` : text,
      ...(replyTo === undefined ? {} : { replyTo }),
      ...(images.length === 0 ? {} : { attachments: images.map((image) => attached(discord, image)) }),
      extra,
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

    say: (saying) =>
      say(
        saying,
        [saying.image, saying.file].filter((each) => each !== undefined),
      ),
    album: (saying, images) => [say(saying, images)],
    // Discord does not name the original author: the words are in a snapshot, and the text is empty.
    forward: (saying) =>
      say({ ...saying, text: '' }, [], {
        message_reference: { type: FORWARD, message_id: '1' },
        message_snapshots: [{ message: { content: saying.text } }],
      }),
    edit: (place, id, text) => discord.edit(channelOf(place), id, text),
    react: (from, place, id, sign) => discord.react(userOf(from), channelOf(place), id, sign),
    press(from, _place, id, label) {
      presses.push(discord.press({ from: userOf(from), messageId: id, which: label }));
    },
    unanswered: () => presses.filter(({ answered }) => !answered).length,
    remove(place, id) {
      removed.add(id);
      discord.remove(channelOf(place), id);
    },

    command(from, place, text) {
      const channelId = enter(place);
      // People choose from the registered commands; an unregistered one ends the test run.
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
        .map(({ id, channelId, content, files, voiceSeconds, replyTo, at, cut, answered, username }) => ({
          id,
          text: content.replace(QUOTE, ''),
          files: voiceSeconds === null ? files.map(({ name }) => name) : [voiceNoteOf(voiceSeconds)],
          replyTo: replyTo ?? QUOTE.exec(content)?.groups?.id ?? null,
          at,
          cut: cut || !answered,
          speaker: username,
          buttons: buttonsIn(discord.message(channelId, id)?.components).map(({ label }) => label),
          heading: /^\*\*([^*\n]+)\*\*(?:\n|$)/.exec(content)?.[1] ?? null,
        })),
    signs: (place) =>
      discord.reactions
        .filter(({ channelId }) => channelId === channelOf(place))
        .map(({ messageId, emoji }) => ({ on: messageId, emoji })),
    typing: (place) => discord.typing.filter((channelId) => channelId === channelOf(place)).length,
    onEvent: (listener) => void listeners.push(listener),
    chatId: (place) => `discord_${channelOf(place)}`,
    personId: (person) => `discord_${userOf(person).id}`,
    async close() {
      await discord.close();
      // Previews are off: no text of a model may make Discord fetch an address.
      if (discord.links.length > 0) throw new Error(`Discord has fetched ${discord.links.join(', ')}`);
    },
  };
}

function attached(discord: FakeDiscord, { bytes, mimeType, name }: Image & { name?: string }) {
  return discord.attachment(name ?? `picture.${mimeType.split('/')[1]}`, bytes, mimeType);
}

export function userOf({ number, name }: Person): User {
  return {
    id: String(100_000_000_000_000_000n + BigInt(number)),
    username: `person${number}`,
    global_name: name,
  };
}

export function channelOf({ kind, number }: Place): string {
  const first = kind === 'direct' ? 200_000_000_000_000_000n : 300_000_000_000_000_000n;
  return String(first + BigInt(number));
}
