/** A message's text, with names instead of ids; its mentions, its files, and the message that it answers. Pure. */
import * as Discord from 'discord-api-types/v10';
import type { Attachment, ReplyTo } from '../../core/message.js';
import { bracketed, mentioning, text as textOf } from '../kit/incoming.js';
import { type ChannelPlace, type Directory, type Me, nameOf } from './directory.js';
import { attachmentOf } from './files.js';
import { fieldsOf, hasFlag, idOf, idsOf, listOf, type Told } from './payload.js';

export type Message = Told<Discord.APIMessage & { guild_id: string; member: Discord.APIGuildMember }>;

export interface OurSenders {
  me: Me;
  /** By its id. */
  isOurWebhook(id: string): boolean;
}

export interface MessageSetting extends OurSenders {
  directory: Directory;
  place: ChannelPlace;
}

/** null if nothing is visible. */
export function saidIn(message: Message, around: MessageSetting): string | null {
  const typed = withoutOpeningMention(textOf(message.content) ?? '', around);
  const words = [
    ...shown({ ...message, content: typed }, around),
    ...forwardedIn(message).flatMap((content) => shown(content, around)),
  ];
  if (words.length === 0 && filesIn(message, message).length === 0) return null;
  return [...postTitle(message, around), ...words].join('\n');
}

/** Names in it for people, roles and channels. */
export function mentionsIn(message: Message, around: MessageSetting): { mentions?: string[] } {
  const names = namesIn(message, around);
  return mentioning(
    [...(textOf(message.content) ?? '').matchAll(MARKUP)].flatMap(
      ({ groups: { user, role, channel } = {} }) =>
        (user && names.user(user)) ?? (role && names.role(role)) ?? (channel && names.channel(channel)) ?? [],
    ),
  );
}

/** Whether it forwards another message; Discord does not tell the author. */
export function isForward({ message_reference: reference }: Message): boolean {
  return reference?.type === Discord.MessageReferenceType.Forward;
}

/** The message that this one answers, as far as Discord included it. */
export function replyOf(message: Message, around: MessageSetting): ReplyTo | null {
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
export function filesIn(message: Message, from: Message): Attachment[] {
  return [message, ...forwardedIn(message)].flatMap(({ attachments, flags }) => {
    const isVoice = hasFlag(flags, Discord.MessageFlags.IsVoiceMessage);
    return listOf(attachments).flatMap(
      (told) => attachmentOf(told, from.channel_id ?? '', from.id ?? '', isVoice) ?? [],
    );
  });
}

export function filesOfReply(message: Message): Attachment[] {
  const { type, referenced_message: replied, channel_id } = message;
  if (!replied || type !== Discord.MessageType.Reply || isForward(message)) return [];
  const files = filesIn(replied, { id: replied.id, channel_id });
  return files.map((file) => ({ ...file, ofReply: true as const }));
}

/** By name, or by our bot's own role; @everyone does not count. */
export function mentionsUs(message: Message, around: MessageSetting): boolean {
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
