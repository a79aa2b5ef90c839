/** Webhooks on the fake Discord: who may make them, what is said through them, and what becomes of them. */
import { createHash } from 'node:crypto';
import type { UploadedFile } from './discord-form.js';
import { refusalOf, uploadBytesAt } from './discord-limits.js';
import type { Messages, Origin } from './discord-messages.js';
import {
  CANNOT_DO_IN_DM,
  INVALID_WEBHOOK_TOKEN,
  invalid,
  MISSING_ACCESS,
  MISSING_PERMISSIONS,
  NOTHING,
  type Outcome,
  ok,
  THREAD_ARCHIVED,
  TOO_MANY_WEBHOOKS,
  UNKNOWN_CHANNEL,
  UNKNOWN_MESSAGE,
  UNKNOWN_WEBHOOK,
  WRONG_KIND_OF_CHANNEL,
} from './discord-outcome.js';
import { userOf } from './discord-payloads.js';
import type { FakeDiscord, Payload, Settings, User } from './discord-words.js';
import type { Channel, StoredMessage, World } from './discord-world.js';

interface Webhook {
  id: string;
  token: string;
  name: string;
  channel: Channel;
  /** Who made it: our bot, or somebody else. */
  owner: User;
  picture: Picture | null;
}

interface Picture {
  hash: string;
  bytes: Buffer;
}

/** A call with a webhook's token in its path. */
export interface Through {
  id: string;
  token: string;
  query: URLSearchParams;
  json: Payload;
  files: UploadedFile[];
}

export interface Webhooks {
  byPeople: Pick<
    FakeDiscord,
    'webhook' | 'webhooks' | 'changeWebhook' | 'removeWebhook' | 'moveWebhook' | 'sayThrough'
  >;
  has(id: string): boolean;
  list(channel: Channel | undefined): Outcome;
  create(channel: Channel | undefined, json: Payload): Outcome;
  /** With its token, or (null) as our bot. */
  modify(id: string, token: string | null, json: Payload): Outcome;
  erase(id: string, token: string | null): Outcome;
  execute(through: Through): Outcome;
  read(through: Through, messageId: string): Outcome;
  change(through: Through, messageId: string): Outcome;
  remove(through: Through, messageId: string): Outcome;
}

const MOST_IN_A_CHANNEL = 15;
const INCOMING = 1;

export function createWebhooks(parts: {
  world: World;
  messages: Messages;
  settings: Settings;
  newId(): string;
}): Webhooks {
  const { world, messages, settings, newId } = parts;
  const all = new Map<string, Webhook>();

  const mostIn = ({ guild }: Channel) => settings.uploadBytes ?? uploadBytesAt(guild?.premiumTier ?? 0);
  const inChannel = (channel: Channel) => [...all.values()].filter((each) => each.channel === channel);

  function add(channel: Channel, name: string, owner: User): Webhook {
    const id = newId();
    const webhook = { id, token: `webhook-token-${id}`, name, channel, owner, picture: null };
    all.set(id, webhook);
    return webhook;
  }

  function shown({ id, token, name, channel, owner, picture }: Webhook): Payload {
    const isOurs = owner.id === world.bot.id;
    return {
      id,
      type: INCOMING,
      name,
      avatar: picture?.hash ?? null,
      channel_id: channel.id,
      guild_id: channel.guild?.id,
      application_id: isOurs ? world.bot.id : owner.bot ? owner.id : null,
      user: userOf(owner),
      // Those of other applications are shown without.
      ...(isOurs || !owner.bot ? { token, url: `https://discord.com/api/webhooks/${id}/${token}` } : {}),
    };
  }

  function mayNotManage(channel: Channel): Outcome | null {
    if (channel.guild === null) return CANNOT_DO_IN_DM;
    if (channel.parent !== null) return WRONG_KIND_OF_CHANNEL;
    if (!world.may('viewChannel', channel)) return MISSING_ACCESS;
    return world.may('manageWebhooks', channel) ? null : MISSING_PERMISSIONS;
  }

  function known({ id, token }: Through): Webhook | Outcome {
    const webhook = all.get(id);
    if (webhook === undefined) return UNKNOWN_WEBHOOK;
    return webhook.token === token ? webhook : INVALID_WEBHOOK_TOKEN;
  }

  /** One that may be changed: by its token, or by our bot, which needs the permission for that. */
  function changeable(id: string, token: string | null): Webhook | Outcome {
    const webhook = all.get(id);
    if (webhook === undefined) return UNKNOWN_WEBHOOK;
    if (token !== null) return webhook.token === token ? webhook : INVALID_WEBHOOK_TOKEN;
    return mayNotManage(webhook.channel) ?? webhook;
  }

  function changed(webhook: Webhook, { name, avatar }: Payload): Outcome | null {
    const refusal =
      (name === undefined ? null : nameRefusal('name', String(name ?? ''), settings.forbiddenNames)) ??
      pictureRefusal(avatar);
    if (refusal !== null) return refusal;
    if (name !== undefined) webhook.name = String(name);
    if (avatar !== undefined) webhook.picture = pictureIn(avatar);
    return null;
  }

  /** The channel of a webhook, or the thread in it that was named. */
  function roomOf({ channel }: Webhook, query: URLSearchParams): Channel | undefined {
    const id = query.get('thread_id');
    if (id === null) return channel;
    const thread = world.channels.get(id);
    return thread?.parent === channel ? thread : undefined;
  }

  function authorRefusal({ username, avatar_url: avatar }: Payload): Outcome | null {
    if (username !== undefined) {
      const refusal = nameRefusal('username', String(username), settings.forbiddenNames);
      if (refusal !== null) return refusal;
    }
    if (avatar === undefined || avatar === null) return null;
    if (!URL.canParse(String(avatar))) {
      return invalid('avatar_url', 'URL_TYPE_INVALID_URL', 'Not a well formed URL.');
    }
    if (!/^https?:$/.test(new URL(String(avatar)).protocol)) {
      const message = `Scheme "${new URL(String(avatar)).protocol.slice(0, -1)}" is not supported. Scheme must be one of ('http', 'https').`;
      return invalid('avatar_url', 'URL_TYPE_INVALID_SCHEME', message);
    }
    return settings.refusedAvatars.includes(String(avatar))
      ? invalid('avatar_url', 'URL_TYPE_INVALID_URL', 'Not a well formed URL.')
      : null;
  }

  function originOf(
    { id, owner, name, picture }: Webhook,
    { username, avatar_url: avatar }: Payload,
  ): Origin {
    const isOurs = owner.id === world.bot.id;
    const author = { id, username: username === undefined ? name : String(username), bot: true as const };
    return {
      via: 'webhook',
      interactionId: null,
      ephemeral: false,
      type: 0,
      author,
      webhookId: id,
      avatar: avatar === undefined || avatar === null ? (picture?.hash ?? null) : String(avatar),
      extra: { webhook_id: id, ...(isOurs ? { application_id: world.bot.id } : {}) },
    };
  }

  /** Buttons come back to an application: through a webhook that is nobody's, there are none. */
  function componentsOfOthers({ owner }: Webhook, { components }: Payload): Outcome | null {
    return owner.id === world.bot.id || !Array.isArray(components) || components.length === 0
      ? null
      : invalid('components', 'BASE_TYPE_BAD_LENGTH', 'Only webhooks of applications may have components.');
  }

  function ownMessage(through: Through, id: string): StoredMessage | Outcome {
    const webhook = known(through);
    if ('status' in webhook) return webhook;
    const room = roomOf(webhook, through.query);
    if (room === undefined) return UNKNOWN_CHANNEL;
    const message = room.messages.get(id);
    return message?.extra.webhook_id === webhook.id ? message : UNKNOWN_MESSAGE;
  }

  function theChannel(id: string): Channel {
    const channel = world.channels.get(id);
    if (channel === undefined) throw new Error(`the fake Discord has no channel ${id}`);
    return channel;
  }

  return {
    has: (id) => all.has(id),

    list(channel) {
      if (channel === undefined) return UNKNOWN_CHANNEL;
      return mayNotManage(channel) ?? ok(inChannel(channel).map(shown));
    },

    create(channel, json) {
      if (channel === undefined) return UNKNOWN_CHANNEL;
      const refusal =
        mayNotManage(channel) ??
        nameRefusal('name', String(json.name ?? ''), settings.forbiddenNames) ??
        pictureRefusal(json.avatar);
      if (refusal !== null) return refusal;
      if (inChannel(channel).length >= MOST_IN_A_CHANNEL) return TOO_MANY_WEBHOOKS;
      const made = add(channel, String(json.name), world.bot);
      made.picture = pictureIn(json.avatar);
      return ok(shown(made));
    },

    modify(id, token, json) {
      const webhook = changeable(id, token);
      if ('status' in webhook) return webhook;
      const refusal = changed(webhook, json);
      if (refusal !== null) return refusal;
      return ok(shown(webhook));
    },

    erase(id, token) {
      const webhook = changeable(id, token);
      if ('status' in webhook) return webhook;
      all.delete(id);
      return NOTHING;
    },

    execute(through) {
      const { query, json, files } = through;
      const webhook = known(through);
      if ('status' in webhook) return webhook;
      const room = roomOf(webhook, query);
      if (room === undefined) return UNKNOWN_CHANNEL;
      if (room.archived && room.locked) return THREAD_ARCHIVED;
      const refusal =
        authorRefusal(json) ?? refusalOf(json, files, mostIn(room)) ?? componentsOfOthers(webhook, json);
      if (refusal !== null) return refusal;
      // It answers nothing, and no key is kept of it.
      const { message_reference: _reference, nonce: _nonce, ...said } = json;
      const taken = messages.put(room, said, files, originOf(webhook, json));
      const message = messages.stored(taken.id);
      if (query.get('wait') !== 'true' || message === undefined) return { ...NOTHING, taken };
      return { ...ok(messages.shown(message)), taken };
    },

    read(through, id) {
      const message = ownMessage(through, id);
      return 'status' in message ? message : ok(messages.shown(message));
    },

    change(through, id) {
      const message = ownMessage(through, id);
      if ('status' in message) return message;
      return messages.change(message, through.json, through.files) ?? ok(messages.shown(message));
    },

    remove(through, id) {
      const message = ownMessage(through, id);
      if ('status' in message) return message;
      messages.vanish(message);
      return NOTHING;
    },

    byPeople: {
      webhook: (channelId, name, owner) => add(theChannel(channelId), name, owner).id,
      webhooks: (channelId) =>
        inChannel(theChannel(channelId)).map(({ id, name, owner, picture }) => ({
          ...{ id, name, owner: owner.id },
          ...{ avatar: picture?.hash ?? null, picture: picture?.bytes ?? null },
        })),
      changeWebhook(id, changes) {
        const webhook = all.get(id);
        const refusal = webhook === undefined ? UNKNOWN_WEBHOOK : changed(webhook, changes);
        if (refusal !== null) throw new Error(`the fake Discord refuses it: ${JSON.stringify(refusal.body)}`);
      },
      removeWebhook: (id) => void all.delete(id),
      moveWebhook(id, channelId) {
        const webhook = all.get(id);
        if (webhook === undefined) throw new Error(`the fake Discord has no webhook ${id}`);
        webhook.channel = theChannel(channelId);
      },
      sayThrough(id, content) {
        const webhook = all.get(id);
        if (webhook === undefined) throw new Error(`the fake Discord has no webhook ${id}`);
        const { owner, name, channel } = webhook;
        return messages.tell({
          channel,
          content,
          author: { id, username: name, bot: true },
          extra: { webhook_id: id, ...(owner.bot ? { application_id: owner.id } : {}) },
        });
      },
    },
  };
}

/** What Discord refuses of the name of a webhook, or of one who speaks through it. */
function nameRefusal(field: string, name: string, forbidden: string[]): Outcome | null {
  const length = Array.from(name.trim()).length;
  if (length < 1 || length > 80) {
    return invalid(field, 'BASE_TYPE_BAD_LENGTH', 'Must be between 1 and 80 in length.');
  }
  const held = ['clyde', 'discord', '@', '#', ':', '```'].find((word) => name.toLowerCase().includes(word));
  if (held !== undefined) {
    return invalid(field, 'USERNAME_INVALID_CONTAINS', `Username cannot contain "${held}"`);
  }
  const isForbidden = /^(everyone|here)$/i.test(name.trim()) || forbidden.includes(name);
  return isForbidden ? invalid(field, 'USERNAME_INVALID', `Username cannot be "${name.trim()}"`) : null;
}

const MOST_PICTURE_BYTES = 10_240 * 1024;
/** How JPEG, PNG, GIF and WebP begin. */
const BEGINNING = /^(?:ffd8ff|89504e470d0a1a0a|47494638|52494646.{8}57454250)/;

/**
 * A picture comes as a data URI (Discord's page "API Reference", "Image Data"; webhooks take WebP, too:
 * discord/discord-api-docs#378). Its bytes are looked at, not its name: discord.js calls every file `image/jpg`.
 */
function pictureRefusal(avatar: unknown): Outcome | null {
  if (avatar === undefined || avatar === null) return null;
  const text = String(avatar);
  const [head = ''] = /^data:image\/(?:jpe?g|png|gif|webp);base64,/.exec(text) ?? [];
  const data = text.slice(head.length);
  const isPicture = head !== '' && !/[^A-Za-z0-9+/=]|=[^=]/.test(data);
  const bytes = Buffer.from(isPicture ? data : '', 'base64');
  if (!BEGINNING.test(bytes.subarray(0, 16).toString('hex'))) {
    return invalid('avatar', 'IMAGE_INVALID', 'Invalid image');
  }
  return bytes.length > MOST_PICTURE_BYTES
    ? invalid('avatar', 'BINARY_TYPE_MAX_SIZE', 'File cannot be larger than 10240.0 kb.')
    : null;
}

function pictureIn(avatar: unknown): Picture | null {
  if (typeof avatar !== 'string') return null;
  const bytes = Buffer.from(avatar.slice(avatar.indexOf(',') + 1), 'base64');
  return { hash: createHash('md5').update(bytes).digest('hex'), bytes };
}
