/**
 * Discord's events in our words. Pure, and total: whatever a payload holds, it becomes an event or nothing. Messages
 * of ours (also through our webhooks), of bots and webhooks, of Discord itself (somebody joined, pinned, boosted) are nothing.
 */
import type {
  Attachment,
  InboundChat,
  InboundChoice,
  InboundEvent,
  InboundMessage,
} from '../../core/message.js';
import { boundedEvent } from '../kit/incoming.js';
import { typedForm } from './commands.js';
import { type Directory, holdsManagement, type Place, placeOf } from './directory.js';
import type { Me } from './identity.js';
import { type Message, read } from './payload.js';
import {
  filesOf,
  filesOfReply,
  isForward,
  isOurs,
  mentionsIn,
  mentionsUs,
  nameOf,
  replyOf,
  saidIn,
} from './said.js';
import { timeOf } from './snowflake.js';

export interface Known {
  me: Me;
  directory: Directory;
  /** By its id. */
  isOurWebhook(id: string): boolean;
  /** Whether other bots and webhooks are heard. */
  bots: boolean;
}

/** A message and a reply; the other types are Discord's own announcements. */
const SAID = new Set([0, 19]);
/** What bots answer to commands. */
const ANSWERED = new Set([20, 23]);
/** The kinds of interaction that are a command and a pressed button. */
const COMMAND = 2;
const PRESS = 3;

export function inbound(kind: string, payload: unknown, known: Known): InboundEvent | null {
  const event = eventOf(kind, payload, known);
  return event && boundedEvent(event);
}

function eventOf(kind: string, payload: unknown, known: Known): InboundEvent | null {
  switch (kind) {
    case 'MESSAGE_CREATE':
      return messageOf(payload, known);
    case 'MESSAGE_UPDATE':
      return editOf(payload, known);
    case 'MESSAGE_DELETE':
    case 'MESSAGE_DELETE_BULK':
      return deletionOf(payload, known);
    case 'MESSAGE_REACTION_ADD':
      return reactionOf(payload, known);
    case 'INTERACTION_CREATE':
      return commandOf(payload, known) ?? choiceOf(payload, known);
    default:
      return null;
  }
}

function messageOf(payload: unknown, known: Known): InboundMessage | null {
  const message = read.message(payload);
  const author = message?.author;
  if (message === undefined || author === undefined || !isHeard(message, known)) return null;
  const { directory } = known;
  const place = placeOf(directory, message);
  const around = { ...known, place };
  const text = saidIn(message, around);
  if (text === null) return null;
  const name = nameOf(author, message.member?.nick);
  const roles = message.member?.roles;
  const isManager =
    place.guildId !== null && roles !== undefined && directory.manages(place.guildId, author.id, roles);
  return {
    kind: 'message',
    chat: { ...chatOf(place), title: titleOf(place, directory, name) },
    threadId: place.threadId,
    platformMessageId: message.id,
    sender: {
      address: author.id,
      name,
      administrator: isManager === true,
      ...(isProgram(message) ? { bot: true as const } : {}),
    },
    text,
    ...attached([...filesOf(message), ...filesOfReply(message)]),
    sentAt: millis(message.timestamp) ?? timeOf(message.id),
    ...mentionsIn(message, around),
    mentionsBot: !isForward(message) && mentionsUs(message, around),
    replyTo: replyOf(message, around),
    ...(isForward(message) ? { forwardedFrom: '' } : {}),
  };
}

/** Discord sends the same event for a preview below a message and for a pin: then it has no time of an edit, or an old one. */
function editOf(payload: unknown, known: Known): InboundEvent | null {
  const message = read.message(payload);
  const author = message?.author;
  const editedAt = millis(message?.edited_timestamp);
  if (message === undefined || author === undefined || editedAt === null) return null;
  const place = placeOf(known.directory, message);
  const around = { ...known, place };
  const text = isHeard(message, known) ? saidIn(message, around) : null;
  if (text === null) return null;
  return {
    kind: 'edit',
    chat: chatOf(place),
    sender: { address: author.id },
    platformMessageId: message.id,
    text,
    ...attached(filesOf(message)),
    ...mentionsIn(message, around),
    mentionsBot: mentionsUs(message, around),
    editedAt,
  };
}

function deletionOf(payload: unknown, { directory }: Known): InboundEvent | null {
  const gone = read.deletion(payload);
  const platformMessageIds = gone?.ids ?? (gone?.id === undefined ? [] : [gone.id]);
  if (gone === undefined || platformMessageIds.length === 0) return null;
  return { kind: 'deleted', chat: chatOf(placeOf(directory, gone)), platformMessageIds };
}

/** Discord says who wrote the message, but not always: then the store knows whether it was one of ours. */
function reactionOf(payload: unknown, known: Known): InboundEvent | null {
  const reaction = read.reaction(payload);
  if (reaction === undefined) return null;
  const { user_id: by, message_id: id, message_author_id: author, member, emoji } = reaction;
  const { me, directory, isOurWebhook } = known;
  if (by === me.id || member?.user?.bot === true) return null;
  if (author !== undefined && author !== me.id && !isOurWebhook(author)) return null;
  const sign = emoji.id === undefined ? emoji.name : `:${emoji.name ?? 'emoji'}:`;
  if (!sign) return null;
  const name = member?.user === undefined ? null : nameOf(member.user, member.nick);
  return {
    kind: 'reaction',
    chat: chatOf(placeOf(directory, reaction)),
    sender: { address: by, name },
    platformMessageIds: [id],
    sign,
    sentAt: 0,
  };
}

/** A native command, as if it had been typed. */
function commandOf(payload: unknown, { directory }: Known): InboundMessage | null {
  const interaction = read.interaction(payload);
  const user = interaction?.member?.user ?? interaction?.user;
  if (interaction?.type !== COMMAND || interaction.data === undefined || user === undefined) return null;
  const { id, data, member, channel } = interaction;
  const place = placeOf(directory, interaction);
  const name = nameOf(user, member?.nick);
  return {
    kind: 'message',
    chat: { ...chatOf(place), title: titleOf(place, directory, name, channel?.name) },
    threadId: place.threadId,
    platformMessageId: id,
    sender: {
      address: user.id,
      name,
      administrator: member?.permissions !== undefined && holdsManagement(member.permissions),
    },
    text: typedForm(data),
    sentAt: timeOf(id),
    mentionsBot: true,
    replyTo: null,
  };
}

function choiceOf(payload: unknown, { directory }: Known): InboundChoice | null {
  const press = read.press(payload);
  const user = press?.member?.user ?? press?.user;
  if (press?.type !== PRESS || user === undefined) return null;
  const { id, data, member } = press;
  const place = placeOf(directory, press);
  const permissions = member?.permissions;
  return {
    kind: 'choice',
    chat: chatOf(place),
    threadId: place.threadId,
    sender: {
      address: user.id,
      name: nameOf(user, member?.nick),
      administrator: permissions !== undefined && holdsManagement(permissions),
    },
    platformMessageId: id,
    value: data.custom_id,
    sentAt: timeOf(id),
  };
}

function isHeard(message: Message, known: Known): boolean {
  const { author, type = 0 } = message;
  if (author === undefined || isOurs(message, known)) return false;
  return SAID.has(type) ? known.bots || !isProgram(message) : known.bots && ANSWERED.has(type);
}

function isProgram({ author, webhook_id }: Message): boolean {
  return author?.bot === true || webhook_id !== undefined;
}

function chatOf({ address, guildId }: Place): InboundChat {
  return guildId === null ? { address, kind: 'direct' } : { address, kind: 'group', within: guildId };
}

function titleOf(place: Place, directory: Directory, sender: string, channelName?: string): string {
  const { address, threadId, guildId } = place;
  if (guildId === null) return sender;
  const name = directory.channel(address)?.name ?? (threadId === null ? channelName : undefined);
  return `#${name ?? address} (${directory.guildName(guildId) ?? guildId})`;
}

function attached(attachments: Attachment[]): { attachments?: Attachment[] } {
  return attachments.length === 0 ? {} : { attachments };
}

function millis(timestamp: string | undefined): number | null {
  const ms = timestamp === undefined ? Number.NaN : Date.parse(timestamp);
  return Number.isNaN(ms) ? null : ms;
}
