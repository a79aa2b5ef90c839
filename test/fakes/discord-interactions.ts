/** Slash commands and autocompletion on the fake Discord: how people use them, and how our bot may answer. */
import { buttonOf } from './discord-components.js';
import { isPayload, type UploadedFile } from './discord-form.js';
import type { Event } from './discord-gateway.js';
import type { Ledger } from './discord-ledger.js';
import { pingedBy, refusalOf, shownContent, uploadBytesAt } from './discord-limits.js';
import type { Messages, Origin } from './discord-messages.js';
import {
  ALREADY_ANSWERED,
  invalid,
  NOTHING,
  type Outcome,
  ok,
  TOKEN_EXPIRED,
  UNKNOWN_INTERACTION,
  UNKNOWN_MESSAGE,
  UNKNOWN_WEBHOOK,
} from './discord-outcome.js';
import { channelOf, memberOf, userOf } from './discord-payloads.js';
import type {
  Interaction,
  Invocation,
  Payload,
  Pressing,
  SentMessage,
  Settings,
  User,
} from './discord-words.js';
import { type Channel, EPHEMERAL, LOADING, type StoredMessage, type World } from './discord-world.js';

export interface Interactions {
  begin(kind: 'command' | 'autocomplete', invocation: Invocation): Interaction;
  /** Somebody presses a button below a message of ours: the one with this label, or the n-th from 0. */
  press(pressing: Pressing): Interaction;
  /** The event of an interaction once more. */
  again(interaction: Interaction): void;
  callback(id: string, token: string, json: Payload, files: UploadedFile[], withAnswer: boolean): Outcome;
  followUp(token: string, json: Payload, files: UploadedFile[]): Outcome;
  /** `which` is a message's id or `@original`. */
  read(token: string, which: string): Outcome;
  change(token: string, which: string, json: Payload, files: UploadedFile[]): Outcome;
  remove(token: string, which: string): Outcome;
}

interface InteractionParts {
  world: World;
  messages: Messages;
  ledger: Ledger;
  settings: Settings;
  newId(): string;
  now(): number;
  commandId(name: string): string;
  dispatch(event: Event): void;
}

/** One that waits for its answer, or had it. */
interface Pending {
  shown: Interaction;
  kind: keyof typeof TYPES;
  name: string;
  /** What it is about, beside the place. */
  data: Payload;
  from: User;
  channel: Channel;
  original: StoredMessage | null;
}

const SLASH_COMMAND_MESSAGE = 20;
/** By the kind of an interaction. */
const TYPES = { command: 2, component: 3, autocomplete: 4 };

export function createInteractions(parts: InteractionParts): Interactions {
  const { world, messages, ledger, settings, newId, now, dispatch } = parts;
  const byToken = new Map<string, Pending>();

  const mostIn = ({ guild }: Channel) => settings.uploadBytes ?? uploadBytesAt(guild?.premiumTier ?? 0);

  function payloadOf({ shown, kind, data, from, channel, original }: Pending): Payload {
    const { guild } = channel;
    const who =
      guild === null
        ? { user: userOf(from), context: 1, authorizing_integration_owners: { 0: '0' } }
        : {
            member: {
              ...memberOf(guild.members.get(from.id) ?? { user: from }),
              permissions: String(world.permissions(from.id, channel)),
            },
            guild_id: guild.id,
            guild: { id: guild.id, locale: 'en-US', features: [] },
            guild_locale: 'en-US',
            context: 0,
            authorizing_integration_owners: { 0: guild.id },
          };
    return {
      id: shown.id,
      token: shown.token,
      application_id: world.bot.id,
      version: 1,
      type: TYPES[kind],
      data,
      ...(kind === 'component' && original !== null ? { message: messages.shown(original) } : {}),
      channel_id: channel.id,
      channel: channelOf(channel),
      app_permissions: String(world.permissions(world.bot.id, channel)),
      locale: 'en-US',
      entitlements: [],
      attachment_size_limit: mostIn(channel),
      ...who,
    };
  }

  function originOf(pending: Pending, via: SentMessage['via'], ephemeral: boolean): Origin {
    const { shown, from, name, kind } = pending;
    const type = via === 'followup' ? 0 : SLASH_COMMAND_MESSAGE;
    const metadata = { id: shown.id, type: 2, user: userOf(from), authorizing_integration_owners: {} };
    const extra = {
      webhook_id: world.bot.id,
      application_id: world.bot.id,
      interaction_metadata: metadata,
      ...(kind === 'command' ? { interaction: { id: shown.id, type: 2, name, user: userOf(from) } } : {}),
    };
    return { via, interactionId: shown.id, ephemeral, type, extra };
  }

  function answer(pending: Pending): void {
    pending.shown.answered = true;
    pending.shown.answeredAt = now();
  }

  function say(pending: Pending, json: Payload, files: UploadedFile[], via: SentMessage['via']): SentMessage {
    const ephemeral = (Number(json.flags ?? 0) & EPHEMERAL) !== 0;
    const taken = messages.put(pending.channel, json, files, originOf(pending, via, ephemeral));
    pending.shown.messages.push(taken);
    return taken;
  }

  /** The interaction that a token still speaks for. */
  function live(token: string): Pending | Outcome {
    const pending = byToken.get(token);
    if (pending === undefined || !pending.shown.answered || pending.kind === 'autocomplete')
      return UNKNOWN_WEBHOOK;
    return now() - pending.shown.at > settings.interactionTokenMs ? TOKEN_EXPIRED : pending;
  }

  function messageOf(pending: Pending, which: string): StoredMessage | undefined {
    if (which === '@original') return pending.original ?? undefined;
    const own = pending.shown.messages.some(({ id }) => id === which) || pending.original?.id === which;
    return own ? messages.stored(which) : undefined;
  }

  /** What a deferred answer comes to: the place that was kept for it is filled. */
  function fill(pending: Pending, place: StoredMessage, json: Payload, files: UploadedFile[]): Outcome {
    const refusal = messages.change(place, json, files);
    if (refusal !== null) return refusal;
    const taken = ledger.take({
      id: place.id,
      channelId: place.channel.id,
      content: shownContent(json),
      nonce: null,
      voiceSeconds: null,
      replyTo: null,
      files: files.map(({ name, bytes }) => ({ name, bytes })),
      pinged: pingedBy(json, null),
      allowedMentions: isPayload(json.allowed_mentions) ? json.allowed_mentions : null,
      via: 'edit',
      interactionId: pending.shown.id,
      ephemeral: (place.flags & EPHEMERAL) !== 0,
      webhookId: null,
      username: null,
      avatar: null,
    });
    pending.shown.messages.push(taken);
    return { ...ok(messages.shown(place)), taken };
  }

  function open(opening: Omit<Pending, 'shown'>): Interaction {
    const { from, channel } = opening;
    world.meet(from, channel.guild);
    const id = newId();
    const shown: Interaction = {
      id,
      token: `interaction-token-${id}`,
      at: now(),
      answered: false,
      answeredAt: null,
      deferred: false,
      choices: null,
      messages: [],
    };
    const pending: Pending = { ...opening, shown };
    byToken.set(shown.token, pending);
    dispatch({ name: 'INTERACTION_CREATE', data: payloadOf(pending) });
    return shown;
  }

  function placeWith(id: string): Channel {
    const channel = world.channels.get(id);
    if (channel === undefined) throw new Error(`the fake Discord has no channel ${id}`);
    return channel;
  }

  return {
    begin(kind, { from, channelId, name, options, files = [] }) {
      const given = options === undefined || options.length === 0 ? {} : { options };
      const attachments = Object.fromEntries(files.map((file) => [file.id, { ...file, ephemeral: true }]));
      const resolved = files.length === 0 ? {} : { resolved: { attachments } };
      const data = { id: parts.commandId(name), name, type: 1, ...given, ...resolved };
      return open({ kind, name, data, from, channel: placeWith(channelId), original: null });
    },
    press({ from, messageId, which }) {
      const original = messages.stored(messageId);
      if (original === undefined) throw new Error(`the fake Discord has no message ${messageId} of ours`);
      const button = buttonOf(original.components, which);
      const data = { custom_id: button.id, component_type: 2, id: 1 };
      return open({ kind: 'component', name: '', data, from, channel: original.channel, original });
    },
    again(interaction) {
      const pending = byToken.get(interaction.token);
      if (pending !== undefined) dispatch({ name: 'INTERACTION_CREATE', data: payloadOf(pending) });
    },

    callback(id, token, json, files, withAnswer) {
      const pending = byToken.get(token);
      if (pending === undefined || pending.shown.id !== id) return UNKNOWN_INTERACTION;
      if (pending.shown.answered) return ALREADY_ANSWERED;
      if (now() - pending.shown.at > settings.interactionAnswerMs) return UNKNOWN_INTERACTION;
      const data = isPayload(json.data) ? json.data : {};
      let taken: SentMessage | undefined;
      if (pending.kind === 'autocomplete' && json.type === 8) {
        const choices = choicesOf(data);
        if ('status' in choices) return choices;
        pending.shown.choices = choices.list;
      } else if (pending.kind === 'component' && json.type === 6) {
        pending.shown.deferred = true;
      } else if (pending.kind === 'component' && json.type === 7 && pending.original !== null) {
        const refusal = messages.change(pending.original, data, files);
        if (refusal !== null) return refusal;
      } else if (pending.kind !== 'autocomplete' && json.type === 4) {
        const refusal = refusalOf(data, files, mostIn(pending.channel));
        if (refusal !== null) return refusal;
        taken = say(pending, data, files, 'callback');
        pending.original = messages.stored(taken.id) ?? null;
      } else if (pending.kind !== 'autocomplete' && json.type === 5) {
        const ephemeral = (Number(data.flags ?? 0) & EPHEMERAL) !== 0;
        pending.shown.deferred = true;
        pending.original = messages.keepPlace(pending.channel, originOf(pending, 'edit', ephemeral));
      } else {
        return invalid('type', 'BASE_TYPE_CHOICES', 'Not an answer to this kind of interaction.');
      }
      answer(pending);
      const { original } = pending;
      if (!withAnswer) return taken === undefined ? NOTHING : { ...NOTHING, taken };
      const interaction = {
        id,
        type: TYPES[pending.kind],
        response_message_id: original?.id,
        response_message_loading: pending.shown.deferred,
        response_message_ephemeral: ((original?.flags ?? 0) & EPHEMERAL) !== 0,
      };
      const resource = original === null ? {} : { type: json.type, message: messages.shown(original) };
      const body = { interaction, resource };
      return taken === undefined ? ok(body) : { ...ok(body), taken };
    },

    followUp(token, json, files) {
      const pending = live(token);
      if ('status' in pending) return pending;
      const { original } = pending;
      // Discord's old ways: the first one after a deferral is the answer that was promised.
      if (original !== null && (original.flags & LOADING) !== 0) return fill(pending, original, json, files);
      const refusal = refusalOf(json, files, mostIn(pending.channel));
      if (refusal !== null) return refusal;
      const taken = say(pending, json, files, 'followup');
      const message = messages.stored(taken.id);
      return message === undefined ? UNKNOWN_MESSAGE : { ...ok(messages.shown(message)), taken };
    },

    read(token, which) {
      const pending = live(token);
      if ('status' in pending) return pending;
      const message = messageOf(pending, which);
      return message === undefined ? UNKNOWN_MESSAGE : ok(messages.shown(message));
    },

    change(token, which, json, files) {
      const pending = live(token);
      if ('status' in pending) return pending;
      const message = messageOf(pending, which);
      if (message === undefined) return UNKNOWN_MESSAGE;
      if ((message.flags & LOADING) !== 0) return fill(pending, message, json, files);
      return messages.change(message, json, files) ?? ok(messages.shown(message));
    },

    remove(token, which) {
      const pending = live(token);
      if ('status' in pending) return pending;
      const message = messageOf(pending, which);
      if (message === undefined) return UNKNOWN_MESSAGE;
      if (message === pending.original) pending.original = null;
      return (message.flags & EPHEMERAL) === 0 ? messages.remove(message.channel, message.id) : NOTHING;
    },
  };
}

function choicesOf({ choices }: Payload): { list: { name: string; value: unknown }[] } | Outcome {
  if (!Array.isArray(choices) || choices.length > 25) {
    return invalid('data.choices', 'BASE_TYPE_MAX_LENGTH', 'Must be 25 or fewer in length.');
  }
  const list: { name: string; value: unknown }[] = [];
  for (const [index, choice] of choices.entries()) {
    const { name, value } = isPayload(choice) ? choice : {};
    const fits = (text: unknown) => String(text ?? '').length >= 1 && [...String(text)].length <= 100;
    if (!fits(name) || !fits(value)) {
      const field = `data.choices.${index}.name`;
      return invalid(field, 'BASE_TYPE_BAD_LENGTH', 'Must be between 1 and 100 in length.');
    }
    list.push({ name: String(name), value });
  }
  return { list };
}
