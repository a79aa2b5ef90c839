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
import { boundedEvent, text as textOf } from '../kit/incoming.js';
import {
  filesIn,
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
import { fieldsOf, idOf, idsOf, type Told, type ToldInteraction, timeOf } from './payload.js';

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
  const event = eventOf(kind, fieldsOf(payload), known);
  return event && boundedEvent(event);
}

function eventOf(kind: string, told: object, known: Known): InboundEvent | null {
  switch (kind) {
    case 'MESSAGE_CREATE':
      return messageOf(told, known);
    case 'MESSAGE_UPDATE':
      return editOf(told, known);
    case 'MESSAGE_DELETE':
    case 'MESSAGE_DELETE_BULK':
      return deletionOf(told, known);
    case 'MESSAGE_REACTION_ADD':
      return reactionOf(told, known);
    case 'INTERACTION_CREATE':
      return interactionOf(told, known);
    default:
      return null;
  }
}

/** Sender and place of an accepted message; null for others. */
function heard(message: Message, known: Known) {
  const { author, type = 0 } = message;
  const [id, channelId, authorId] = [idOf(message.id), idOf(message.channel_id), idOf(author?.id)];
  if (id === undefined || channelId === undefined || authorId === undefined) return null;
  const isProgram = author?.bot === true || idOf(message.webhook_id) !== undefined;
  const isHeard = SAID.has(type) ? known.bots || !isProgram : known.bots && ANSWERED.has(type);
  if (!isHeard || isOurs(message, known)) return null;
  const place = placeIn(known, channelId, message.guild_id);
  return { id, author, authorId, isProgram, around: { ...known, place } };
}

/** A channel that Discord does not describe counts as a chat of its own. */
function placeIn({ directory }: Known, id: string, guild_id: string | null | undefined): ChannelPlace {
  return directory.place(id) ?? placeOf({ id, guild_id });
}

function messageOf(message: Message, known: Known): InboundMessage | null {
  const found = heard(message, known);
  const text = found && saidIn(message, found.around);
  if (found === null || text === null) return null;
  const { id, author, authorId, isProgram, around } = found;
  const { place, directory } = around;
  const { member } = message;
  const name = nameOf(author, member?.nick);
  const attachments = [...filesIn(message, message), ...filesOfReply(message)];
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
        member?.roles !== undefined &&
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
  const attachments = filesIn(message, message);
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
  gone: Told<Discord.GatewayMessageDeleteDispatchData & Discord.GatewayMessageDeleteBulkDispatchData>,
  known: Known,
): InboundDeletion | null {
  const channelId = idOf(gone.channel_id);
  const platformMessageIds = idsOf(gone.ids ?? [gone.id]);
  if (channelId === undefined || platformMessageIds.length === 0) return null;
  return { kind: 'deleted', chat: chatOf(placeIn(known, channelId, gone.guild_id)), platformMessageIds };
}

/** Discord does not always name the message's author: then the store knows whether it was ours. */
function reactionOf(
  { member, emoji, ...reaction }: Told<Discord.GatewayMessageReactionAddDispatchData>,
  known: Known,
): InboundReaction | null {
  const { me, isOurWebhook } = known;
  const by = idOf(reaction.user_id);
  const channelId = idOf(reaction.channel_id);
  const id = idOf(reaction.message_id);
  const author = reaction.message_author_id;
  if (by === undefined || channelId === undefined || id === undefined) return null;
  if (by === me.id || member?.user?.bot === true) return null;
  if (author && author !== me.id && !isOurWebhook(author)) return null;
  // Discord's own emoji have no id.
  const sign = emoji?.id ? `:${emoji.name ?? 'emoji'}:` : textOf(emoji?.name);
  if (!sign) return null;
  return {
    kind: 'reaction',
    chat: chatOf(placeIn(known, channelId, reaction.guild_id)),
    sender: { address: by, name: member?.user ? nameOf(member.user, member.nick) : null },
    platformMessageIds: [id],
    sign,
    sentAt: 0,
  };
}

/** A native command, as if it had been typed; or a pressed button. */
function interactionOf(told: ToldInteraction, known: Known): InboundMessage | InboundChoice | null {
  const { type, token, channel, member, data, guild_id } = told;
  const user = member?.user ?? told.user;
  const [id, channelId, by] = [idOf(told.id), idOf(told.channel_id), idOf(user?.id)];
  if (id === undefined || channelId === undefined || by === undefined) return null;
  if (!token || !told.application_id) return null;
  const place =
    known.directory.place(channelId) ??
    placeOf({ ...fieldsOf<Discord.APIThreadChannel>(channel), id: channelId, guild_id });
  const name = nameOf(user, member?.nick);
  const sender = { address: by, name, administrator: holdsManagement(member?.permissions) };
  const said = { threadId: place.threadId, platformMessageId: id, sender, sentAt: timeOf(id) };
  if (type === Discord.InteractionType.ApplicationCommand) {
    const given = fieldsOf<Discord.APIChatInputApplicationCommandInteractionData>(data);
    const text = typedForm(given);
    const uploads = { attachments: Object.values(given.resolved?.attachments ?? {}) };
    const attachments = filesIn(uploads, { id, channel_id: channelId });
    const title = titleOf(place, known.directory, name, channel?.name);
    if (text === null) return null;
    return {
      ...said,
      kind: 'message',
      chat: { ...chatOf(place), title },
      text,
      ...(attachments.length === 0 ? {} : { attachments }),
      mentionsBot: true,
      replyTo: null,
    };
  }
  const value = textOf(fieldsOf<Discord.APIMessageComponentInteraction['data']>(data).custom_id);
  if (type !== Discord.InteractionType.MessageComponent || value === undefined) return null;
  return { ...said, kind: 'choice', chat: chatOf(place), value };
}

function chatOf({ address, guildId }: ChannelPlace): InboundChat {
  return guildId === null ? { address, kind: 'direct' } : { address, kind: 'group', within: guildId };
}

function titleOf(
  { address, threadId, guildId }: ChannelPlace,
  directory: Directory,
  sender: string,
  channelName?: string | null,
): string {
  if (guildId === null) return sender;
  const name = directory.channel(address)?.name ?? (threadId === null ? channelName : undefined);
  return `#${name ?? address} (${directory.guildName(guildId) ?? guildId})`;
}

function millis(timestamp: string | null | undefined): number | null {
  const ms = Date.parse(textOf(timestamp) ?? '');
  return Number.isNaN(ms) ? null : ms;
}
