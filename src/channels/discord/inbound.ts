/**
 * Discord's events as the gateway's. Pure and total: any payload becomes an event or nothing. Our own
 * messages (also via webhooks), other bots' unless enabled, and Discord's announcements become nothing.
 */

import * as Discord from 'discord-api-types/v10';
import type {
  Attachment,
  InboundChat,
  InboundChoice,
  InboundDeletion,
  InboundEvent,
  InboundMessage,
  InboundReaction,
  ReplyTo,
} from '../../core/message.js';
import { boundedEvent, bracketed, mentioning, text as textOf } from '../kit/incoming.js';
import { type ChannelPlace, type Directory, holdsManagement, type Me, nameOf, placeOf } from './directory.js';
import { attachmentOf } from './files.js';
import { typedForm } from './outbound.js';
import {
  fieldsOf,
  hasFlag,
  idOf,
  idsOf,
  listOf,
  type Told,
  type ToldInteraction,
  timeOf,
} from './payload.js';

type Message = Told<Discord.APIMessage & { guild_id: string; member: Discord.APIGuildMember }>;

interface OurSenders {
  me: Me;
  /** By its id. */
  isOurWebhook(id: string): boolean;
}

interface MessageSetting extends OurSenders {
  directory: Directory;
  place: ChannelPlace;
}

export interface Known extends OurSenders {
  directory: Directory;
  /** Whether messages of other bots and webhooks are accepted. */
  bots: boolean;
  /** Logs an event that cannot be read, and is skipped. */
  unreadable(error: unknown): void;
}

/** People's messages; the other types are Discord's own announcements. */
const SAID = new Set<unknown>([Discord.MessageType.Default, Discord.MessageType.Reply]);
const ANSWERED = new Set<unknown>([
  Discord.MessageType.ChatInputCommand,
  Discord.MessageType.ContextMenuCommand,
]);

export function inbound(kind: string, payload: unknown, known: Known): InboundEvent | null {
  try {
    const event = eventOf(kind, fieldsOf(payload), known);
    return event && boundedEvent(event);
  } catch (error) {
    known.unreadable(error);
    return null;
  }
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
    const text = typedForm(fieldsOf<Discord.APIChatInputApplicationCommandInteractionData>(data));
    const title = titleOf(place, known.directory, name, channel?.name);
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

/** null if nothing is visible. */
function saidIn(message: Message, around: MessageSetting): string | null {
  const typed = withoutOpeningMention(textOf(message.content) ?? '', around);
  const words = [
    ...shown({ ...message, content: typed }, around),
    ...forwardedIn(message).flatMap((content) => shown(content, around)),
  ];
  if (words.length === 0 && filesIn(message, message).length === 0) return null;
  return [...postTitle(message, around), ...words].join('\n');
}

/** Names in it for people, roles and channels. */
function mentionsIn(message: Message, around: MessageSetting): { mentions?: string[] } {
  const names = namesIn(message, around);
  return mentioning(
    [...(textOf(message.content) ?? '').matchAll(MARKUP)].flatMap(
      ({ groups: { user, role, channel } = {} }) =>
        (user && names.user(user)) ?? (role && names.role(role)) ?? (channel && names.channel(channel)) ?? [],
    ),
  );
}

/** Whether it forwards another message; Discord does not tell the author. */
function isForward({ message_reference: reference }: Message): boolean {
  return reference?.type === Discord.MessageReferenceType.Forward;
}

/** The message that this one answers, as far as Discord included it. */
function replyOf(message: Message, around: MessageSetting): ReplyTo | null {
  if (message.type !== Discord.MessageType.Reply || isForward(message)) return null;
  const reference = message.message_reference;
  const replied = message.referenced_message ?? null;
  const platformMessageId = idOf(replied?.id) ?? idOf(reference?.message_id);
  if (platformMessageId === undefined) return null;
  const isElsewhere = reference?.channel_id !== undefined && reference.channel_id !== message.channel_id;
  return {
    platformMessageId,
    senderName: nameOf(replied?.author),
    text: replied === null ? '' : repliedText(replied, around),
    // Discord does not tell their author.
    ...(replied !== null && forwardedIn(replied).length > 0 ? { forwardedFrom: '' } : {}),
    ...(isElsewhere ? { elsewhere: true } : {}),
    ours: !isElsewhere && replied !== null && isOurs(replied, around),
  };
}

function repliedText(replied: Message, around: MessageSetting): string {
  return [replied, ...forwardedIn(replied)]
    .flatMap((content) => [
      ...shown(content, around),
      ...listOf(content.attachments).map(({ filename }) => label('file', filename)),
    ])
    .join('\n');
}

/** By our bot, or through a webhook of ours, even one of an earlier process or one since deleted. */
export function isOurs({ author, webhook_id, application_id }: Message, ours: OurSenders): boolean {
  if (author?.id === ours.me.id) return true;
  return !!webhook_id && (application_id === ours.me.applicationId || ours.isOurWebhook(webhook_id));
}

/** Includes those of a forwarded message. `from`: the message to ask for a fresh link. */
function filesIn(message: Message, from: Message): Attachment[] {
  return [message, ...forwardedIn(message)].flatMap(({ attachments, flags }) => {
    const isVoice = hasFlag(flags, Discord.MessageFlags.IsVoiceMessage);
    return listOf(attachments).flatMap(
      (told) => attachmentOf(told, from.channel_id ?? '', from.id ?? '', isVoice) ?? [],
    );
  });
}

function filesOfReply(message: Message): Attachment[] {
  const { type, referenced_message: replied, channel_id } = message;
  if (!replied || type !== Discord.MessageType.Reply || isForward(message)) return [];
  const files = filesIn(replied, { id: replied.id, channel_id });
  return files.map((file) => ({ ...file, ofReply: true as const }));
}

/** By name, or by our bot's own role; @everyone does not count. */
function mentionsUs(message: Message, around: MessageSetting): boolean {
  return (
    listOf(message.mentions).some(({ id }) => id === around.me.id) ||
    idsOf(message.mention_roles).some((role) => isOurRole(role, around))
  );
}

function isOurRole(role: string, { me, directory, place }: MessageSetting): boolean {
  return directory.role(place.guildId, role)?.tags?.bot_id === me.id;
}

/** A forum post begins with its title, which is usually the question. */
function postTitle({ id }: Message, { directory, place }: MessageSetting): string[] {
  if (place.threadId === null || id !== place.threadId) return [];
  const title = directory.channel(place.threadId)?.name;
  return title ? [bracketed(`post: ${title}`)] : [];
}

function forwardedIn(message: Message): Message[] {
  return isForward(message) ? listOf(message.message_snapshots).map((each) => fieldsOf(each.message)) : [];
}

function shown(content: Message, around: MessageSetting): string[] {
  const { flags, poll } = content;
  const names = namesIn(content, around);
  const isBuilt = hasFlag(flags, Discord.MessageFlags.IsComponentsV2);
  const isSpoken =
    hasFlag(flags, Discord.MessageFlags.IsVoiceMessage) && listOf(content.attachments).length === 0;
  return [
    inWords(textOf(content.content) ?? '', names),
    isBuilt ? inWords(componentsText(content.components), names) || '[message]' : '',
    isSpoken ? '[voice message]' : '',
    ...listOf(content.sticker_items).map(({ name }) => label('sticker', name)),
    poll ? pollText(poll) : '',
    // Embeds of bots and webhooks; link previews are of another type.
    ...listOf(content.embeds)
      .filter(({ type }) => type === 'rich')
      .map(({ title, description }) => [textOf(title), textOf(description)].filter(Boolean).join('\n')),
  ].filter((part) => part !== '');
}

function label(kind: string, name: unknown): string {
  return bracketed(`${kind} ${textOf(name) ?? ''}`);
}

function pollText({ question, answers }: Told<Discord.APIPoll>): string {
  const choices = listOf(answers).flatMap(({ poll_media }) => textOf(poll_media?.text) || []);
  const asked = `poll ${textOf(question?.text) ?? ''}`.trim();
  return bracketed(choices.length === 0 ? asked : `${asked}: ${choices.join(' / ')}`);
}

/** Discord nests components three deep. */
const DEEPEST = 10;

/** The text of a message made of components, which has no text of its own. */
function componentsText(components: unknown, depth = 0): string {
  if (depth > DEEPEST) return '';
  return listOf(components as (Discord.APITextDisplayComponent & Discord.APIContainerComponent)[])
    .map(({ type, content, components: inner }) => {
      const kind: unknown = type;
      if (kind === Discord.ComponentType.TextDisplay) return textOf(content) ?? '';
      if (kind === Discord.ComponentType.MediaGallery) return '[pictures]';
      if (kind === Discord.ComponentType.File) return '[file]';
      return componentsText(inner, depth + 1);
    })
    .filter((words) => words !== '')
    .join('\n');
}

type Mentioned = Discord.APIUser & { member?: { nick?: string } };

/** Looks up names by id; undefined keeps the markup. */
function namesIn({ mentions }: Message, { me, directory, place }: MessageSetting) {
  const users = new Map(listOf<Mentioned>(mentions).map((each) => [each.id, each]));
  return {
    user(id: string): string | undefined {
      if (id === me.id) return me.name;
      const user = users.get(id);
      return user && nameOf(user, user.member?.nick);
    },
    role: (id: string) => directory.role(place.guildId, id)?.name ?? undefined,
    channel: (id: string) => directory.channel(id)?.name ?? undefined,
  };
}

const MARKUP =
  /<(?:@!?(?<user>\d{1,20})|@&(?<role>\d{1,20})|#(?<channel>\d{1,20})|a?:(?<emoji>\w{2,32}):\d{1,20}|\/(?<command>[^<>:]{1,100}):\d{1,20}|t:(?<time>-?\d{1,13})(?::[A-Za-z])?)>/g;

/** Replaces Discord's markup for names (`<@123>`) by what people see. */
function inWords(text: string, names: ReturnType<typeof namesIn>): string {
  return text.replace(MARKUP, (markup, ...rest) => {
    const { user, role, channel, emoji, command, time } = rest.at(-1) as Record<string, string | undefined>;
    if (user !== undefined) return withSign('@', names.user(user)) ?? markup;
    if (role !== undefined) return withSign('@', names.role(role)) ?? markup;
    if (channel !== undefined) return withSign('#', names.channel(channel)) ?? markup;
    if (emoji !== undefined) return `:${emoji}:`;
    if (command !== undefined) return `/${command}`;
    return moment(Number(time) * 1000) ?? markup;
  });
}

function withSign(sign: string, name: string | undefined): string | undefined {
  return name === undefined ? undefined : sign + name;
}

/** Discord shows a time in the reader's zone; here it is in UTC. */
function moment(ms: number): string | undefined {
  if (!(Math.abs(ms) <= 8.64e15)) return undefined;
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

/** Removes our mention before a command: `<@bot> /reset` becomes `/reset`. */
function withoutOpeningMention(text: string, around: MessageSetting): string {
  const match = /^\s*<@([!&]?)(\d{1,20})>\s*(?=[/\uff0f])/.exec(text);
  if (match === null) return text;
  const [opening, kind, id = ''] = match;
  const isOur = kind === '&' ? isOurRole(id, around) : id === around.me.id;
  return isOur ? text.slice(opening.length) : text;
}
