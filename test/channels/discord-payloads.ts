/**
 * Events as Discord's gateway sends them, written down from its documentation (reality.md part 4) and held against the
 * library's types, so that the compiler is a second opinion on what our fake believes.
 */
import {
  type APIInteraction,
  type APIMessage,
  type APIUser,
  ApplicationCommandOptionType,
  ApplicationCommandType,
  ApplicationIntegrationType,
  ChannelType,
  ComponentType,
  EmbedType,
  type GatewayMessageCreateDispatchData,
  type GatewayMessageReactionAddDispatchData,
  type GatewayMessageUpdateDispatchData,
  type GatewayThreadCreateDispatchData,
  type GatewayThreadListSyncDispatchData,
  InteractionContextType,
  InteractionType,
  Locale,
  MessageFlags,
  MessageReferenceType,
  MessageType,
  PollLayoutType,
  ReactionType,
  StickerFormatType,
  ThreadAutoArchiveDuration,
} from 'discord.js';

export const GUILD = '613425648685547541';
export const CHANNEL = '697138785317814292';
export const FORUM = '1072587226837221447';
export const POST = '1430000000000000001';
export const BOT = '424242424242424242';
export const MESSAGE = '1430000000000000777';

const anna: APIUser = {
  id: '80351110224678912',
  username: 'nelly.anna',
  discriminator: '0',
  global_name: 'Anna',
  avatar: '8342729096ea3675442027381ff50dfe',
  public_flags: 64,
};
const bot: APIUser = { ...anna, id: BOT, username: 'coterie', global_name: null, bot: true };

const said = {
  id: MESSAGE,
  channel_id: CHANNEL,
  author: anna,
  content: 'Supa Hot',
  timestamp: '2026-11-02T15:22:40.917000+00:00',
  edited_timestamp: null,
  tts: false,
  mention_everyone: false,
  mentions: [],
  mention_roles: [],
  attachments: [],
  embeds: [],
  components: [],
  pinned: false,
  type: MessageType.Default,
} satisfies APIMessage;

const inGuild = {
  guild_id: GUILD,
  channel_type: ChannelType.GuildText as const,
  member: {
    nick: 'Annie',
    avatar: null,
    roles: [],
    joined_at: '2024-03-01T10:00:00.000000+00:00',
    premium_since: null,
    deaf: false,
    mute: false,
    flags: 0,
    pending: false,
    communication_disabled_until: null,
  },
  mentions: [],
};

const picture = {
  id: '1430000000000000701',
  filename: 'IMG_4021.jpg',
  size: 2_483_112,
  url: 'https://cdn.discordapp.com/attachments/697/143/IMG_4021.jpg?ex=6908&is=6907&hm=ab12',
  proxy_url: 'https://media.discordapp.net/attachments/697/143/IMG_4021.jpg?ex=6908&is=6907&hm=ab12',
  width: 3024,
  height: 4032,
  content_type: 'image/jpeg',
  content_scan_version: 1,
  placeholder: 'WAgGDYKYeHiPiHdwh4iIeHCHCA==',
  placeholder_version: 1,
};

export const plain = { ...said, ...inGuild } satisfies GatewayMessageCreateDispatchData;

export const direct = {
  ...said,
  channel_id: '155117677105512449',
  channel_type: ChannelType.DM,
  mentions: [],
} satisfies GatewayMessageCreateDispatchData;

/** A reply of which Discord did not send along what it answers. */
export const replyAlone = {
  ...plain,
  type: MessageType.Reply,
  message_reference: {
    type: MessageReferenceType.Default,
    channel_id: CHANNEL,
    guild_id: GUILD,
    message_id: '1429',
  },
} satisfies GatewayMessageCreateDispatchData;

/** Somebody asks the bot about a picture in the message that they answer. */
export const aboutAPicture = {
  ...replyAlone,
  content: `<@${BOT}> what is this?`,
  mentions: [{ ...bot, member: inGuild.member }],
  referenced_message: { ...said, id: '1429', content: '', attachments: [picture] },
} satisfies GatewayMessageCreateDispatchData;

export const forward = {
  ...plain,
  content: '',
  flags: MessageFlags.HasSnapshot,
  message_reference: { type: MessageReferenceType.Forward, channel_id: '1', message_id: '2' },
  message_snapshots: [
    {
      message: {
        type: MessageType.Default,
        content: `<@${BOT}> /reset`,
        embeds: [],
        attachments: [picture],
        timestamp: '2026-11-01T09:00:00.000000+00:00',
        edited_timestamp: null,
        mentions: [bot],
        mention_roles: [],
        components: [],
      },
    },
  ],
} satisfies GatewayMessageCreateDispatchData;

export const voice = {
  ...direct,
  content: '',
  flags: MessageFlags.IsVoiceMessage,
  attachments: [
    {
      id: '1430000000000000702',
      filename: 'voice-message.ogg',
      size: 31_018,
      url: 'https://cdn.discordapp.com/attachments/697/143/voice-message.ogg?ex=6908&is=6907&hm=cd34',
      proxy_url: 'https://media.discordapp.net/attachments/697/143/voice-message.ogg',
      content_type: 'audio/ogg',
      duration_secs: 6.279,
      waveform: 'AAcaKCYkIA==',
    },
  ],
} satisfies GatewayMessageCreateDispatchData;

export const poll = {
  ...plain,
  content: '',
  poll: {
    question: { text: 'Lunch?' },
    answers: [
      { answer_id: 1, poll_media: { text: 'Soup' } },
      { answer_id: 2, poll_media: { text: 'Bread', emoji: { id: null, name: '🍞' } } },
    ],
    expiry: '2026-11-03T15:22:40.917000+00:00',
    allow_multiselect: false,
    layout_type: PollLayoutType.Default,
  },
} satisfies GatewayMessageCreateDispatchData;

export const sticker = {
  ...plain,
  content: '',
  sticker_items: [{ id: '749054660769218631', name: 'Wave', format_type: StickerFormatType.Lottie }],
} satisfies GatewayMessageCreateDispatchData;

export const builtByABot = {
  ...plain,
  author: { ...bot, id: '555', username: 'builds' },
  content: '',
  flags: MessageFlags.IsComponentsV2,
  components: [
    {
      type: ComponentType.Container,
      components: [
        { type: ComponentType.TextDisplay, content: '## Build 512\npassed' },
        { type: ComponentType.Separator },
        { type: ComponentType.TextDisplay, content: 'in 3 min' },
      ],
    },
  ],
} satisfies GatewayMessageCreateDispatchData;

/** A post's first message has the id of its thread. */
export const firstOfAPost = {
  ...plain,
  id: POST,
  channel_id: POST,
  channel_type: ChannelType.PublicThread,
  content: 'In April?',
} satisfies GatewayMessageCreateDispatchData;

const thread = {
  id: POST,
  guild_id: GUILD,
  parent_id: FORUM,
  owner_id: anna.id,
  name: 'When to sow?',
  last_message_id: POST,
  rate_limit_per_user: 0,
  message_count: 0,
  member_count: 1,
  total_message_sent: 0,
  applied_tags: [],
  flags: 0,
  thread_metadata: {
    archived: false,
    archive_timestamp: '2026-11-02T15:22:40.917000+00:00',
    auto_archive_duration: ThreadAutoArchiveDuration.ThreeDays,
    locked: false,
    create_timestamp: '2026-11-02T15:22:40.917000+00:00',
  },
};

export const postBegun = {
  ...thread,
  type: ChannelType.PublicThread,
  newly_created: true,
} satisfies GatewayThreadCreateDispatchData;

export const PRIVATE = '1430000000000000002';
export const threadsInView = {
  guild_id: GUILD,
  channel_ids: [CHANNEL],
  threads: [
    { ...thread, id: PRIVATE, parent_id: CHANNEL, name: 'Surprise', type: ChannelType.PrivateThread },
  ],
  members: [],
} satisfies GatewayThreadListSyncDispatchData;

export const inPrivate = {
  ...plain,
  channel_id: PRIVATE,
  channel_type: ChannelType.PrivateThread,
} satisfies GatewayMessageCreateDispatchData;

/** A preview was put below it: no edit. */
export const unfurled = {
  ...plain,
  content: 'https://example.org',
  embeds: [{ type: EmbedType.Link, url: 'https://example.org', title: 'Example Domain' }],
} satisfies GatewayMessageUpdateDispatchData;

export const edited = {
  ...plain,
  content: 'Supa Cold',
  edited_timestamp: '2026-11-02T15:23:00.000000+00:00',
} satisfies GatewayMessageUpdateDispatchData;

const reaction = {
  user_id: anna.id,
  channel_id: CHANNEL,
  message_id: MESSAGE,
  guild_id: GUILD,
  member: { ...inGuild.member, user: anna },
  emoji: { id: null, name: '🔥' },
  burst: false,
  type: ReactionType.Normal,
} satisfies GatewayMessageReactionAddDispatchData;

export const reactionToTheBot = {
  ...reaction,
  message_author_id: BOT,
} satisfies GatewayMessageReactionAddDispatchData;
/** Of a webhook's message Discord does not say whose it is (discord/discord-api-docs#6102). */
export const reactionToAPersona = reaction;

export const command = {
  id: '1430000000000000900',
  application_id: BOT,
  type: InteractionType.ApplicationCommand,
  token: 'aW50ZXJhY3Rpb246MTQzMDAwMDAwMDAwMDAwMDkwMA',
  version: 1,
  guild_id: GUILD,
  guild: { id: GUILD, locale: Locale.EnglishUS, features: [] },
  guild_locale: Locale.EnglishUS,
  channel_id: CHANNEL,
  channel: {
    id: CHANNEL,
    type: ChannelType.GuildText,
    name: 'talk',
    permissions: '2248473465835073',
  } as never,
  app_permissions: '275414895616',
  locale: Locale.German,
  entitlements: [],
  authorizing_integration_owners: { [ApplicationIntegrationType.GuildInstall]: GUILD },
  context: InteractionContextType.Guild,
  attachment_size_limit: 52_428_800,
  member: { ...inGuild.member, user: anna, permissions: '32' },
  data: {
    id: '1430000000000000901',
    name: 'persona',
    type: ApplicationCommandType.ChatInput,
    options: [
      {
        name: 'switch',
        type: ApplicationCommandOptionType.Subcommand,
        options: [{ name: 'name', type: ApplicationCommandOptionType.String, value: 'Luna' }],
      },
    ],
  },
} satisfies APIInteraction;
