/**
 * Discord's events as the gateway's. Pure and total: any payload becomes an event or nothing. Our own
 * messages (also via webhooks), other bots' unless enabled, and Discord's announcements become nothing.
 */

import * as Discord from 'discord-api-types/v10';
import type {
  InboundChat,
  InboundChoice,
  InboundDeletion,
  InboundEvent,
  InboundMessage,
  InboundReaction,
} from '../../core/message.js';
import { boundedEvent } from '../kit/incoming.js';
import {
  filesOf,
  filesOfReply,
  isForward,
  isOurs,
  type Message,
  mentionsIn,
  mentionsUs,
  type OurSenders,
  replyOf,
  saidIn,
} from './content.js';
import { type ChannelPlace, type Directory, holdsManagement, nameOf, placeOf } from './directory.js';
import { typedForm } from './outbound.js';
import { bitsOf, type Fields, fieldsOf, idOf, idsOf, textOf, timeOf } from './payload.js';

export interface Known extends OurSenders {
  directory: Directory;
  /** Whether messages of other bots and webhooks are accepted. */
  bots: boolean;
}

/** People's messages; the other types are Discord's own announcements. */
const SAID = new Set<unknown>([Discord.MessageType.Default, Discord.MessageType.Reply]);
const ANSWERED = new Set<unknown>([
  Discord.MessageType.ChatInputCommand,
  Discord.MessageType.ContextMenuCommand,
]);

export function inbound(kind: string, payload: unknown, known: Known): InboundEvent | null {
  const event = eventOf(kind, payload, known);
  return event && boundedEvent(event);
}

function eventOf(kind: string, payload: unknown, known: Known): InboundEvent | null {
  switch (kind) {
    case 'MESSAGE_CREATE':
      return messageOf(fieldsOf(payload), known);
    case 'MESSAGE_UPDATE':
      return editOf(fieldsOf(payload), known);
    case 'MESSAGE_DELETE':
    case 'MESSAGE_DELETE_BULK':
      return deletionOf(fieldsOf(payload), known);
    case 'MESSAGE_REACTION_ADD':
      return reactionOf(fieldsOf(payload), known);
    case 'INTERACTION_CREATE':
      return interactionOf(fieldsOf(payload), known);
    default:
      return null;
  }
}

/** The place of an accepted message; null for others. */
function heard(message: Message & { guild_id?: unknown }, known: Known) {
  const id = idOf(message.id);
  const channelId = idOf(message.channel_id);
  const author = fieldsOf<Discord.APIUser>(message.author);
  const authorId = idOf(author.id);
  if (id === undefined || channelId === undefined || authorId === undefined) return null;
  const isProgram = author.bot === true || idOf(message.webhook_id) !== undefined;
  const type = message.type ?? 0;
  const isHeard = SAID.has(type) ? known.bots || !isProgram : known.bots && ANSWERED.has(type);
  if (!isHeard || isOurs(message, known)) return null;
  const place = placeOf(known.directory, channelId, idOf(message.guild_id));
  return { id, author, authorId, isProgram, around: { ...known, place } };
}

function messageOf(message: Message & { member?: unknown }, known: Known): InboundMessage | null {
  const found = heard(message, known);
  const text = found && saidIn(message, found.around);
  if (found === null || text === null) return null;
  const { id, author, authorId, isProgram, around } = found;
  const { place, directory } = around;
  const member = fieldsOf<Discord.APIGuildMember>(message.member);
  const name = nameOf(author, member.nick);
  const attachments = [...filesOf(message), ...filesOfReply(message)];
  const isForwarded = isForward(message);
  return {
    kind: 'message',
    chat: { ...chatOf(place), title: titleOf(place, directory, name) },
    threadId: place.threadId,
    platformMessageId: id,
    sender: {
      address: authorId,
      name,
      administrator:
        place.guildId !== null &&
        Array.isArray(member.roles) &&
        directory.manages(place.guildId, authorId, idsOf(member.roles)) === true,
      ...(isProgram ? { bot: true as const } : {}),
    },
    text,
    ...(attachments.length === 0 ? {} : { attachments }),
    sentAt: millis(message.timestamp) ?? timeOf(id),
    ...mentionsIn(message, around),
    mentionsBot: !isForwarded && mentionsUs(message, around),
    replyTo: replyOf(message, around),
    ...(isForwarded ? { forwardedFrom: '' } : {}),
  };
}

/** Discord sends the same event for a preview and for a pin: then its edit time is absent or old. */
function editOf(message: Message, known: Known): InboundEvent | null {
  const editedAt = millis(message.edited_timestamp);
  const found = heard(message, known);
  const text = found && saidIn(message, found.around);
  if (editedAt === null || found === null || text === null) return null;
  const attachments = filesOf(message);
  return {
    kind: 'edit',
    chat: chatOf(found.around.place),
    sender: { address: found.authorId },
    platformMessageId: found.id,
    text,
    ...(attachments.length === 0 ? {} : { attachments }),
    ...mentionsIn(message, found.around),
    mentionsBot: mentionsUs(message, found.around),
    editedAt,
  };
}

function deletionOf(
  gone: Fields<Discord.GatewayMessageDeleteDispatchData & Discord.GatewayMessageDeleteBulkDispatchData>,
  { directory }: Known,
): InboundDeletion | null {
  const channelId = idOf(gone.channel_id);
  const platformMessageIds = Array.isArray(gone.ids) ? idsOf(gone.ids) : idsOf([gone.id]);
  if (channelId === undefined || platformMessageIds.length === 0) return null;
  const place = placeOf(directory, channelId, idOf(gone.guild_id));
  return { kind: 'deleted', chat: chatOf(place), platformMessageIds };
}

/** Discord does not always name the message's author: then the store knows whether it was ours. */
function reactionOf(
  reaction: Fields<Discord.GatewayMessageReactionAddDispatchData>,
  { me, directory, isOurWebhook }: Known,
): InboundReaction | null {
  const by = idOf(reaction.user_id);
  const channelId = idOf(reaction.channel_id);
  const id = idOf(reaction.message_id);
  const author = idOf(reaction.message_author_id);
  const member = fieldsOf<Discord.APIGuildMember>(reaction.member);
  const user = fieldsOf<Discord.APIUser>(member.user);
  if (by === undefined || channelId === undefined || id === undefined) return null;
  if (by === me.id || user.bot === true) return null;
  if (author !== undefined && author !== me.id && !isOurWebhook(author)) return null;
  const emoji = fieldsOf<Discord.APIEmoji>(reaction.emoji);
  const name = textOf(emoji.name);
  // Discord's own emoji have no id.
  const sign = idOf(emoji.id) === undefined ? name : `:${name ?? 'emoji'}:`;
  if (!sign) return null;
  return {
    kind: 'reaction',
    chat: chatOf(placeOf(directory, channelId, idOf(reaction.guild_id))),
    sender: { address: by, name: idOf(user.id) === undefined ? null : nameOf(user, member.nick) },
    platformMessageIds: [id],
    sign,
    sentAt: 0,
  };
}

/** A native command, as if it had been typed; or a pressed button. */
function interactionOf(
  told: Fields<Discord.APIInteraction>,
  { directory }: Known,
): InboundMessage | InboundChoice | null {
  const id = idOf(told.id);
  const channel = fieldsOf<Discord.APIThreadChannel>(told.channel);
  const channelId = idOf((told as { channel_id?: unknown }).channel_id);
  const member = fieldsOf<Discord.APIGuildMember & { permissions: string }>(told.member);
  const user = fieldsOf<Discord.APIUser>(member.user ?? told.user);
  const by = idOf(user.id);
  if (id === undefined || channelId === undefined || by === undefined) return null;
  if (textOf(told.token) === undefined || idOf(told.application_id) === undefined) return null;
  const place = placeOf(directory, channelId, idOf(told.guild_id), channel);
  const name = nameOf(user, member.nick);
  const sender = { address: by, name, administrator: holdsManagement(bitsOf(member.permissions) ?? 0n) };
  const said = { threadId: place.threadId, platformMessageId: id, sender, sentAt: timeOf(id) };
  const type: unknown = told.type;
  if (type === Discord.InteractionType.ApplicationCommand) {
    const text = typedForm(fieldsOf<Discord.APIChatInputApplicationCommandInteraction['data']>(told.data));
    const title = titleOf(place, directory, name, textOf(channel.name));
    if (text === null) return null;
    return {
      ...said,
      kind: 'message',
      chat: { ...chatOf(place), title },
      text,
      mentionsBot: true,
      replyTo: null,
    };
  }
  const value = textOf(fieldsOf<Discord.APIMessageComponentInteraction['data']>(told.data).custom_id);
  if (type !== Discord.InteractionType.MessageComponent || value === undefined) return null;
  return { ...said, kind: 'choice', chat: chatOf(place), value };
}

function chatOf({ address, guildId }: ChannelPlace): InboundChat {
  return guildId === null ? { address, kind: 'direct' } : { address, kind: 'group', within: guildId };
}

function titleOf(place: ChannelPlace, directory: Directory, sender: string, channelName?: string): string {
  const { address, threadId, guildId } = place;
  if (guildId === null) return sender;
  const name = directory.channel(address)?.name ?? (threadId === null ? channelName : undefined);
  return `#${name ?? address} (${directory.guildName(guildId) ?? guildId})`;
}

function millis(timestamp: unknown): number | null {
  const ms = typeof timestamp === 'string' ? Date.parse(timestamp) : Number.NaN;
  return Number.isNaN(ms) ? null : ms;
}
