/** What our bot does with messages: sends, changes and deletes them within Discord's rules, and reads them back. */
import type { Cdn } from './discord-cdn.js';
import { isPayload, type UploadedFile } from './discord-form.js';
import type { Event } from './discord-gateway.js';
import { withoutContent } from './discord-intents.js';
import type { Ledger } from './discord-ledger.js';
import { pingedBy, refusalOf, shownContent, uploadBytesAt } from './discord-limits.js';
import {
  EMPTY_MESSAGE,
  invalid,
  MISSING_ACCESS,
  MISSING_PERMISSIONS,
  NO_HISTORY_TO_REPLY_TO,
  NO_TEXT_CHANNEL,
  NOT_THE_AUTHOR,
  NOTHING,
  type Outcome,
  ok,
  refused,
  THREAD_ARCHIVED,
  UNKNOWN_CHANNEL,
  UNKNOWN_MESSAGE,
  VOICE_IS_NOT_EDITED,
} from './discord-outcome.js';
import { dispatchedMessage, messageOf } from './discord-payloads.js';
import { isSnowflake } from './discord-snowflake.js';
import { detailsOf, isVoice, voiceRefusal } from './discord-voice.js';
import type { Payload, SentMessage, Settings, User } from './discord-words.js';
import {
  type Channel,
  EPHEMERAL,
  LOADING,
  PRIVATE_THREAD,
  PUBLIC_THREAD,
  type StoredMessage,
  type World,
} from './discord-world.js';

/** No preview is made of links in it. */
const SUPPRESS_EMBEDS = 1 << 2;

interface MessageParts {
  world: World;
  ledger: Ledger;
  cdn: Cdn;
  settings: Settings;
  newId(): string;
  now(): number;
  dispatch(event: Event): void;
}

/** How a message of ours came to be. */
export interface Origin {
  via: SentMessage['via'];
  interactionId: string | null;
  ephemeral: boolean;
  type: number;
  /** Left out: our bot. */
  author?: User;
  webhookId?: string;
  avatar?: string | null;
  extra: Payload;
}

export interface Messages {
  post(channel: Channel | undefined, json: Payload, files: UploadedFile[]): Outcome;
  /** Into the channel and the ledger; whether it may be is settled. */
  put(channel: Channel, json: Payload, files: UploadedFile[], origin: Origin): SentMessage;
  /** A place in the channel that is filled later. */
  keepPlace(channel: Channel, origin: Origin): StoredMessage;
  patch(channel: Channel | undefined, id: string, json: Payload, files: UploadedFile[]): Outcome;
  /** Also what only one person sees, which is in no channel. */
  change(message: StoredMessage, json: Payload, files: UploadedFile[]): Outcome | null;
  remove(channel: Channel | undefined, id: string): Outcome;
  /** It is taken back; whether it may be is settled. */
  vanish(message: StoredMessage): void;
  /** A message that is none of our bot's: it is not in the ledger. Its id. */
  tell(message: Pick<StoredMessage, 'channel' | 'author' | 'content' | 'extra'>): { id: string };
  list(channel: Channel | undefined, query: URLSearchParams): Outcome;
  get(channel: Channel | undefined, id: string): Outcome;
  /** As a client may read it. */
  shown(message: StoredMessage): Payload;
  /** Addresses that were fetched for previews. */
  links: string[];
  stored(id: string): StoredMessage | undefined;
}

const CATEGORY = 4;
const ORDINARY: Origin = { via: 'message', interactionId: null, ephemeral: false, type: 0, extra: {} };

export function createMessages(parts: MessageParts): Messages {
  const { world, ledger, cdn, settings, newId, now, dispatch } = parts;
  const nonces = new Map<string, { id: string; at: number }>();
  /** Every message of ours, in a channel or not. */
  const ours = new Map<string, StoredMessage>();
  const links: string[] = [];

  /**
   * Discord fetches the links in a message as soon as it has it, unless a flag forbids it or they stand in `<>`, and tells
   * of the previews with an update that leaves `edited_timestamp` as it is (reality.md 4.4).
   */
  function unfurl(message: StoredMessage): void {
    if ((message.flags & (SUPPRESS_EMBEDS | LOADING)) !== 0) return;
    const found = [...message.content.matchAll(/(?<!<)https?:\/\/[^\s<>)]+/g)].map(([url]) => url);
    if (found.length === 0) return;
    links.push(...found);
    message.extra = { ...message.extra, embeds: found.map((url) => ({ type: 'link', url })) };
    if ((message.flags & EPHEMERAL) !== 0) return;
    dispatch({ name: 'MESSAGE_UPDATE', data: dispatchedMessage(message, world) });
  }

  function shown(message: StoredMessage): Payload {
    const payload = messageOf(message, world, { nonce: settings.noncesInHistory });
    const { guild } = message.channel;
    if (settings.messageContentGranted || guild === null) return payload;
    const { guild_id: _only, ...seen } = withoutContent({ ...payload, guild_id: guild.id }, world.bot.id);
    return seen;
  }

  const mostIn = ({ guild }: Channel) => settings.uploadBytes ?? uploadBytesAt(guild?.premiumTier ?? 0);

  function created(message: StoredMessage): void {
    ours.set(message.id, message);
    if ((message.flags & EPHEMERAL) !== 0) return;
    world.store(message);
    dispatch({ name: 'MESSAGE_CREATE', data: dispatchedMessage(message, world) });
  }

  function attach(json: Payload, files: UploadedFile[]): unknown[] {
    return files.map((file) => {
      const { name, bytes, type } = file;
      const { filename = name, duration_secs, waveform } = detailsOf(json, file);
      const extra = isVoice(json) ? { duration_secs, waveform } : {};
      return cdn.add(shownName(String(filename)), bytes, type === '' ? null : type, { extra });
    });
  }

  function mayNotSend(channel: Channel, json: Payload, files: UploadedFile[]): Outcome | null {
    const thread = channel.type === PUBLIC_THREAD || channel.type === PRIVATE_THREAD;
    if (!world.may('viewChannel', channel)) return MISSING_ACCESS;
    if (channel.refusal !== null) return refused(403, channel.refusal, 'As the test wants it.');
    if (!world.may(thread ? 'sendMessagesInThreads' : 'sendMessages', channel)) return MISSING_PERMISSIONS;
    const asVoice = isVoice(json);
    if (files.length > 0 && !asVoice && !world.may('attachFiles', channel)) return MISSING_PERMISSIONS;
    if (channel.type === CATEGORY) return NO_TEXT_CHANNEL;
    if (channel.archived && channel.locked) return THREAD_ARCHIVED;
    const refusal =
      refusalOf(json, files, mostIn(channel)) ??
      (asVoice ? voiceRefusal(json, files, { world, channel }) : null);
    if (refusal !== null) return refusal;
    const reference = referenceOf(json);
    if (reference === null) return null;
    if (!world.may('readMessageHistory', channel)) return NO_HISTORY_TO_REPLY_TO;
    const answered = channel.messages.get(reference.id);
    const wrong = (code: string, message: string) => invalid('message_reference', code, message);
    if (answered === undefined) {
      return reference.mustExist ? wrong('REPLIES_UNKNOWN_MESSAGE', 'Unknown message') : null;
    }
    return [0, 19, 20, 23].includes(answered.type)
      ? null
      : wrong('REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE', 'Cannot reply to a system message');
  }

  /** The message that a nonce made before, as the answer to making it again. */
  function madeBefore({ nonce, enforce_nonce: enforced }: Payload): Outcome | null {
    const before = nonce === undefined ? undefined : nonces.get(String(nonce));
    if (before === undefined || enforced !== true) return null;
    if (now() - before.at >= settings.nonceMemoryMs) return null;
    const message = ours.get(before.id);
    const taken = ledger.find(before.id);
    if (message === undefined || taken === undefined) return UNKNOWN_MESSAGE;
    return { ...ok(messageOf(message, world, { nonce: true })), taken };
  }

  function put(channel: Channel, json: Payload, files: UploadedFile[], origin: Origin): SentMessage {
    const reference = referenceOf(json);
    const answered = reference === null ? undefined : channel.messages.get(reference.id);
    const id = newId();
    const nonce = json.nonce === undefined ? null : String(json.nonce);
    const allowed = isPayload(json.allowed_mentions) ? json.allowed_mentions : null;
    const pinged = pingedBy(json, answered?.author.id ?? null);
    channel.archived = false;
    const taken = ledger.take({
      id,
      channelId: channel.id,
      content: shownContent(json),
      nonce,
      replyTo: answered?.id ?? null,
      files: files.map(({ name, bytes }) => ({ name, bytes })),
      voiceSeconds: isVoice(json) && files[0] ? Number(detailsOf(json, files[0]).duration_secs) : null,
      allowedMentions: allowed,
      pinged,
      via: origin.via,
      interactionId: origin.interactionId,
      ephemeral: origin.ephemeral,
      webhookId: origin.webhookId ?? null,
      username: origin.author?.username ?? null,
      avatar: origin.avatar ?? null,
    });
    // Answers to interactions are not told apart by it.
    if (nonce !== null && origin.via === 'message') nonces.set(nonce, { id, at: now() });
    const message: StoredMessage = {
      id,
      channel,
      content: taken.content,
      replyTo: taken.replyTo,
      nonce,
      author: origin.author ?? world.bot,
      type: answered === undefined ? origin.type : 19,
      pingsReplied: answered !== undefined && pinged.includes(answered.author.id),
      attachments: attach(json, files),
      components: json.components ?? [],
      editedAt: null,
      extra: origin.extra,
      flags: Number(json.flags ?? 0) | (origin.ephemeral ? EPHEMERAL : 0),
    };
    created(message);
    unfurl(message);
    return taken;
  }

  function change(message: StoredMessage, json: Payload, files: UploadedFile[]): Outcome | null {
    if (isVoice({ flags: message.flags })) return VOICE_IS_NOT_EDITED;
    const content = json.content === undefined ? message.content : json.content;
    const refusal = refusalOf({ ...json, content }, files, mostIn(message.channel));
    // With its files it is not empty.
    if (refusal !== null && (refusal !== EMPTY_MESSAGE || message.attachments.length === 0)) return refusal;
    if (json.content !== undefined) message.content = shownContent(json);
    if (json.flags !== undefined) {
      message.flags = (message.flags & ~SUPPRESS_EMBEDS) | (Number(json.flags) & SUPPRESS_EMBEDS);
    }
    if (json.components !== undefined) message.components = json.components;
    if (files.length > 0) message.attachments = [...message.attachments, ...attach(json, files)];
    if ((message.flags & LOADING) !== 0) message.flags &= ~LOADING;
    else message.editedAt = now();
    const taken = ledger.find(message.id);
    if (taken !== undefined) {
      taken.content = message.content;
      taken.edits += 1;
      taken.changes.push({ content: message.content, at: now() });
    }
    if ((message.flags & EPHEMERAL) === 0) {
      dispatch({ name: 'MESSAGE_UPDATE', data: dispatchedMessage(message, world) });
    }
    unfurl(message);
    return null;
  }

  /** The message, or why our bot cannot have it. */
  function found(channel: Channel | undefined, id: string): StoredMessage | Outcome {
    if (channel === undefined) return UNKNOWN_CHANNEL;
    if (!world.may('viewChannel', channel)) return MISSING_ACCESS;
    return channel.messages.get(id) ?? UNKNOWN_MESSAGE;
  }

  function vanish({ id, channel }: StoredMessage): void {
    channel.messages.delete(id);
    ours.delete(id);
    const { guild } = channel;
    const where = { channel_id: channel.id, ...(guild === null ? {} : { guild_id: guild.id }) };
    dispatch({ name: 'MESSAGE_DELETE', data: { id, ...where } });
  }

  return {
    put,
    change,
    vanish,
    tell(message) {
      const id = newId();
      created({
        ...message,
        id,
        type: 0,
        replyTo: null,
        pingsReplied: false,
        attachments: [],
        components: [],
        flags: 0,
        nonce: null,
        editedAt: null,
      });
      return { id };
    },
    shown,
    links,
    stored: (id) => ours.get(id),

    post(channel, json, files) {
      if (channel === undefined) return UNKNOWN_CHANNEL;
      const refusal = mayNotSend(channel, json, files);
      if (refusal !== null) return refusal;
      const before = madeBefore(json);
      if (before !== null) return before;
      const taken = put(channel, json, files, ORDINARY);
      const message = ours.get(taken.id);
      return message === undefined
        ? UNKNOWN_MESSAGE
        : { ...ok(messageOf(message, world, { nonce: true })), taken };
    },

    keepPlace(channel, { ephemeral, type, extra }) {
      const place: StoredMessage = {
        id: newId(),
        channel,
        author: world.bot,
        content: '',
        type,
        replyTo: null,
        nonce: null,
        pingsReplied: false,
        attachments: [],
        components: [],
        editedAt: null,
        extra,
        flags: LOADING | (ephemeral ? EPHEMERAL : 0),
      };
      created(place);
      return place;
    },

    patch(channel, id, json, files) {
      const message = found(channel, id);
      if ('status' in message) return message;
      if (message.author.id !== world.bot.id) return NOT_THE_AUTHOR;
      return change(message, json, files) ?? ok(shown(message));
    },

    remove(channel, id) {
      const message = found(channel, id);
      if ('status' in message) return message;
      if (message.author.id !== world.bot.id && !world.may('manageMessages', message.channel)) {
        return MISSING_PERMISSIONS;
      }
      vanish(message);
      return NOTHING;
    },

    list(channel, query) {
      if (channel === undefined) return UNKNOWN_CHANNEL;
      if (!world.may('viewChannel', channel)) return MISSING_ACCESS;
      const limit = Number(query.get('limit') ?? 50);
      if (!Number.isInteger(limit) || limit < 1 || limit > 100) {
        return invalid('limit', 'NUMBER_TYPE_MAX', 'int value should be between 1 and 100.');
      }
      const page: { after?: string; before?: string; limit: number } = { limit };
      for (const name of ['after', 'before'] as const) {
        const id = query.get(name);
        if (id === null) continue;
        if (!isSnowflake(id)) return invalid(name, 'NUMBER_TYPE_COERCE', `Value "${id}" is not snowflake.`);
        page[name] = id;
      }
      if (!world.may('readMessageHistory', channel)) return ok([]);
      return ok(world.history(channel, page).map(shown));
    },

    get(channel, id) {
      const message = found(channel, id);
      return 'status' in message ? message : ok(shown(message));
    },
  };
}

/** Discord takes out of a file's name what it does not like in addresses. */
function shownName(name: string): string {
  return name.replace(/\s/g, '_').replace(/[^\w.-]/g, '');
}

function referenceOf({ message_reference: reference }: Payload): { id: string; mustExist: boolean } | null {
  if (!isPayload(reference) || reference.message_id === undefined) return null;
  return { id: String(reference.message_id), mustExist: reference.fail_if_not_exists !== false };
}
