/** A message's text, with names instead of ids and labels for other content. Pure, total. */
import * as Discord from 'discord-api-types/v10';
import type { Attachment, ReplyTo } from '../../core/message.js';
import { bracketed, mentioning } from '../kit/incoming.js';
import { type ChannelPlace, type Directory, type Me, nameOf } from './directory.js';
import { attachmentOf } from './files.js';
import { type Fields, fieldsOf, hasFlag, idOf, idsOf, itemsOf, listOf, textOf } from './payload.js';

export type Message = Fields<Discord.APIMessage>;

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
  if (words.length === 0 && filesOf(message).length === 0) return null;
  return [...postTitle(message, around), ...words].join('\n');
}

/** Names in it for people, roles and channels. */
export function mentionsIn(message: Message, around: MessageSetting): { mentions?: string[] } {
  const { user, role, channel } = namesIn(message, around);
  const named = (found: Markup) =>
    (found.user && user(found.user)) ??
    (found.role && role(found.role)) ??
    (found.channel && channel(found.channel)) ??
    [];
  return mentioning(
    [...(textOf(message.content) ?? '').matchAll(MARKUP)].flatMap(({ groups = {} }) => named(groups)),
  );
}

/** Whether it forwards another message; Discord does not tell the author. */
export function isForward(message: Message): boolean {
  return (
    fieldsOf<Discord.APIMessageReference>(message.message_reference).type ===
    Discord.MessageReferenceType.Forward
  );
}

/** The message that this one answers, as far as Discord included it. */
export function replyOf(message: Message, around: MessageSetting): ReplyTo | null {
  if (message.type !== Discord.MessageType.Reply || isForward(message)) return null;
  const reference = fieldsOf<Discord.APIMessageReference>(message.message_reference);
  const replied = repliedIn(message);
  const platformMessageId = idOf(replied?.id) ?? idOf(reference.message_id);
  if (platformMessageId === undefined) return null;
  const channelId = idOf(reference.channel_id);
  const isElsewhere = channelId !== undefined && channelId !== message.channel_id;
  return {
    platformMessageId,
    senderName: nameOf(fieldsOf(replied?.author)),
    text: replied === null ? '' : repliedText(replied, around),
    // Discord does not tell their author.
    ...(replied !== null && forwardedIn(replied).length > 0 ? { forwardedFrom: '' } : {}),
    ...(isElsewhere ? { elsewhere: true } : {}),
    ours: !isElsewhere && replied !== null && isOurs(replied, around),
  };
}

function repliedIn({ referenced_message: told }: Message): Message | null {
  const replied = fieldsOf<Discord.APIMessage>(told);
  return idOf(replied.id) === undefined ? null : replied;
}

function repliedText(replied: Message, around: MessageSetting): string {
  return [replied, ...forwardedIn(replied)]
    .flatMap((content) => [
      ...shown(content, around),
      ...listOf<Discord.APIAttachment>(content.attachments).map(({ filename }) =>
        bracketed(textOf(filename) ? `file ${textOf(filename)}` : 'file'),
      ),
    ])
    .join('\n');
}

/** By our bot, or through a webhook of ours, even one of an earlier process or one since deleted. */
export function isOurs(message: Message, { me, isOurWebhook }: OurSenders): boolean {
  if (fieldsOf<Discord.APIUser>(message.author).id === me.id) return true;
  const webhook = idOf(message.webhook_id);
  return webhook !== undefined && (message.application_id === me.applicationId || isOurWebhook(webhook));
}

/** Includes those of a forwarded message. */
export function filesOf(message: Message): Attachment[] {
  return filesIn(message, idOf(message.id) ?? '', idOf(message.channel_id) ?? '');
}

export function filesOfReply(message: Message): Attachment[] {
  const replied = repliedIn(message);
  if (replied === null || message.type !== Discord.MessageType.Reply || isForward(message)) return [];
  const files = filesIn(replied, idOf(replied.id) ?? '', idOf(message.channel_id) ?? '');
  return files.map((file) => ({ ...file, ofReply: true as const }));
}

function filesIn(message: Message, messageId: string, channelId: string): Attachment[] {
  return [message, ...forwardedIn(message)].flatMap(({ attachments, flags }) => {
    const isVoice = hasFlag(flags, Discord.MessageFlags.IsVoiceMessage);
    return listOf<Discord.APIAttachment>(attachments).flatMap(
      (told) => attachmentOf(told, { channelId, messageId, isVoice }) ?? [],
    );
  });
}

/** By name, or by our bot's own role; @everyone does not count. */
export function mentionsUs(message: Message, around: MessageSetting): boolean {
  return (
    listOf<Discord.APIUser>(message.mentions).some(({ id }) => id === around.me.id) ||
    idsOf(message.mention_roles).some((role) => isOurRole(role, around))
  );
}

function isOurRole(role: string, { me, directory, place }: MessageSetting): boolean {
  return place.guildId !== null && directory.role(place.guildId, role)?.botId === me.id;
}

/** A forum post begins with its title, which is usually the question. */
function postTitle({ id }: Message, { directory, place }: MessageSetting): string[] {
  if (place.threadId === null || id !== place.threadId) return [];
  const title = directory.channel(place.threadId)?.name;
  return title === undefined ? [] : [bracketed(`post: ${title}`)];
}

function forwardedIn(message: Message): Message[] {
  if (!isForward(message)) return [];
  return listOf<Discord.APIMessageSnapshot>(message.message_snapshots).map((snapshot) =>
    fieldsOf<Discord.APIMessage>(snapshot.message),
  );
}

function shown(content: Message, around: MessageSetting): string[] {
  const { flags, poll } = content;
  const names = namesIn(content, around);
  const isBuilt = hasFlag(flags, Discord.MessageFlags.IsComponentsV2);
  const isSpoken =
    hasFlag(flags, Discord.MessageFlags.IsVoiceMessage) && itemsOf(content.attachments).length === 0;
  return [
    inWords(textOf(content.content) ?? '', names),
    isBuilt ? inWords(componentsText(content.components), names) || '[message]' : '',
    isSpoken ? '[voice message]' : '',
    ...listOf<Discord.APISticker>(content.sticker_items).map(({ name }) =>
      bracketed(textOf(name) ? `sticker ${textOf(name)}` : 'sticker'),
    ),
    typeof poll === 'object' && poll !== null ? pollText(poll) : '',
    // Embeds of bots and webhooks; link previews are of another type.
    ...listOf<Discord.APIEmbed>(content.embeds)
      .filter(({ type }) => type === 'rich')
      .map(({ title, description }) => [textOf(title), textOf(description)].filter(Boolean).join('\n')),
  ].filter((part) => part !== '');
}

function pollText(told: object): string {
  const { question, answers } = fieldsOf<Discord.APIPoll>(told);
  const wordsOf = (media: unknown) => textOf(fieldsOf<Discord.APIPoll['question']>(media).text) ?? '';
  const choices = listOf<Discord.APIPoll['answers'][number]>(answers)
    .map(({ poll_media }) => wordsOf(poll_media))
    .filter(Boolean);
  const asked = `poll ${wordsOf(question)}`.trim();
  return bracketed(choices.length === 0 ? asked : `${asked}: ${choices.join(' / ')}`);
}

/** Discord nests them three deep. */
const DEEPEST = 10;

/** The text of a message made of components, which has no text of its own. */
function componentsText(components: unknown, depth = 0): string {
  if (depth > DEEPEST) return '';
  return listOf<Discord.APITextDisplayComponent & Discord.APIContainerComponent>(components)
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

/** Names by id; undefined keeps the markup. */
interface Names {
  user(id: string): string | undefined;
  role(id: string): string | undefined;
  channel(id: string): string | undefined;
}

type Mentioned = Discord.APIUser & { member?: { nick?: string } };

function namesIn({ mentions }: Message, { me, directory, place }: MessageSetting): Names {
  const { guildId } = place;
  return {
    user(id) {
      if (id === me.id) return me.name;
      const user = listOf<Mentioned>(mentions).find((each) => each.id === id);
      return user && nameOf(user, fieldsOf<{ nick: string }>(user.member).nick);
    },
    role: (id) => (guildId === null ? undefined : directory.role(guildId, id)?.name),
    channel: (id) => directory.channel(id)?.name,
  };
}

type Markup = Record<string, string | undefined>;
const MARKUP =
  /<(?:@!?(?<user>\d{1,20})|@&(?<role>\d{1,20})|#(?<channel>\d{1,20})|a?:(?<emoji>\w{2,32}):\d{1,20}|\/(?<command>[^<>:]{1,100}):\d{1,20}|t:(?<time>-?\d{1,13})(?::[A-Za-z])?)>/g;

/** Replaces Discord's markup for names (`<@123>`) by what people see. */
function inWords(text: string, names: Names): string {
  return text.replace(MARKUP, (markup, ...rest) => {
    const { user, role, channel, emoji, command, time } = rest.at(-1) as Markup;
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
