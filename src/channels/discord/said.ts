/** What a message shows, in our words: its text with names for ids, in brackets what is neither words nor a file. Pure. */
import type { Attachment, ReplyTo } from '../../core/message.js';
import { bracketed, mentioning } from '../kit/incoming.js';
import { componentsText } from './components.js';
import type { Directory, Place } from './directory.js';
import { attachmentOf, IS_VOICE_MESSAGE } from './files.js';
import type { Me } from './identity.js';
import type { Content, Message, Shown, User } from './payload.js';
import { inWords, type Names, namesFor, withoutOpeningMention } from './text.js';

/** What is known where the message was said. */
export interface Around {
  me: Me;
  directory: Directory;
  /** By its id. */
  isOurWebhook(id: string): boolean;
  place: Place;
}

const REPLY = 19;
/** The kind of `message_reference` that quotes a whole message instead of answering it. */
const FORWARD = 1;
/** A message that is made of components and has no text of its own. */
const IS_BUILT = 1 << 15;

/** null where nothing can be seen. */
export function saidIn(message: Message, around: Around): string | null {
  const isOurs = (role: string) => isOurRole(role, around);
  const typed = withoutOpeningMention(message.content ?? '', around.me, isOurs);
  const words = [
    ...shown({ ...message, content: typed }, around),
    ...forwardedIn(message).flatMap((content) => shown(content, around)),
  ];
  if (words.length === 0 && filesOf(message).length === 0) return null;
  return [...postTitle(message, around), ...words].join('\n');
}

/** Names that stand in it for people, roles and channels. */
export function mentionsIn(message: Message, around: Around): { mentions?: string[] } {
  return mentioning(namesFor(message.content ?? '', namesIn(message, around)));
}

/** Whether it passes on what somebody else said; Discord does not say who. */
export function isForward({ message_reference: reference }: Message): boolean {
  return reference?.type === FORWARD;
}

/** The message that this one answers, as far as Discord sent it along. */
export function replyOf(message: Message, around: Around): ReplyTo | null {
  const { message_reference: reference, referenced_message: replied } = message;
  if (message.type !== REPLY || isForward(message)) return null;
  const platformMessageId = replied?.id ?? reference?.message_id;
  if (platformMessageId === undefined) return null;
  const { author } = replied ?? {};
  const isElsewhere = ![undefined, message.channel_id].includes(reference?.channel_id);
  return {
    platformMessageId,
    senderName: author === undefined ? '' : nameOf(author),
    text: replied === undefined ? '' : repliedText(replied, around),
    // Discord does not say whose words they were.
    ...(replied && forwardedIn(replied).length > 0 ? { forwardedFrom: '' } : {}),
    ...(isElsewhere ? { elsewhere: true } : {}),
    ours: !isElsewhere && replied !== undefined && isOurs(replied, around),
  };
}

function repliedText(replied: Shown, around: Around): string {
  return [replied, ...forwardedIn(replied)]
    .flatMap((content) => [
      ...shown(content, around),
      ...(content.attachments ?? []).map(({ filename }) => bracketed(filename ? `file ${filename}` : 'file')),
    ])
    .join('\n');
}

/** Said by our bot, or through a webhook of ours, also one that an earlier process used or that is gone by now. */
export function isOurs(
  { author, webhook_id, application_id }: Pick<Message, 'author' | 'webhook_id' | 'application_id'>,
  { me, isOurWebhook }: Pick<Around, 'me' | 'isOurWebhook'>,
): boolean {
  if (author?.id === me.id) return true;
  return webhook_id !== undefined && (application_id === me.applicationId || isOurWebhook(webhook_id));
}

/** Also those of a message that is forwarded with it. */
export function filesOf(message: Message): Attachment[] {
  return filesIn(message, message);
}

/** Those of the message that it answers. */
export function filesOfReply(message: Message): Attachment[] {
  const { channel_id, referenced_message: replied } = message;
  if (replied === undefined || message.type !== REPLY || isForward(message)) return [];
  return filesIn(replied, { id: replied.id, channel_id }).map((file) => ({
    ...file,
    ofReply: true as const,
  }));
}

function filesIn(shown: Shown, { id: messageId, channel_id: channelId }: Pick<Message, 'id' | 'channel_id'>) {
  return [shown, ...forwardedIn(shown)].flatMap(({ attachments = [], flags = 0 }) =>
    attachments.map((told) => attachmentOf(told, { channelId, messageId, flags })),
  );
}

/** By name, or by the role that was made for our bot; not with everyone else. */
export function mentionsUs({ mentions = [], mention_roles = [] }: Content, around: Around): boolean {
  return (
    mentions.some(({ id }) => id === around.me.id) || mention_roles.some((role) => isOurRole(role, around))
  );
}

/** As it is shown in a guild, else everywhere, else the name of the account. */
export function nameOf(user: Pick<User, 'id' | 'username' | 'global_name'>, nick?: string): string {
  return nick || user.global_name || user.username || user.id;
}

function isOurRole(role: string, { me, directory, place }: Around): boolean {
  return place.guildId !== null && directory.role(place.guildId, role)?.botId === me.id;
}

/** A post in a forum begins with its title, which mostly is the question. */
function postTitle({ id }: Message, { directory, place }: Around): string[] {
  if (place.threadId === null || id !== place.threadId) return [];
  const title = directory.channel(place.threadId)?.name;
  return title === undefined ? [] : [bracketed(`post: ${title}`)];
}

function forwardedIn({ message_reference, message_snapshots = [] }: Shown): Content[] {
  return message_reference?.type === FORWARD ? message_snapshots.map(({ message }) => message) : [];
}

function shown(content: Content, around: Around): string[] {
  const { sticker_items = [], poll, embeds = [], components = [], attachments = [], flags = 0 } = content;
  const names = namesIn(content, around);
  const built = (flags & IS_BUILT) === 0 ? [] : [inWords(componentsText(components), names) || '[message]'];
  const isSpoken = (flags & IS_VOICE_MESSAGE) !== 0 && attachments.length === 0;
  return [
    inWords(content.content ?? '', names),
    ...built,
    ...(isSpoken ? ['[voice message]'] : []),
    ...sticker_items.map(({ name }) => bracketed(name ? `sticker ${name}` : 'sticker')),
    ...(poll === undefined ? [] : [pollText(poll)]),
    // What bots and webhooks say in boxes; a preview of a link is of another type.
    ...embeds
      .filter(({ type }) => type === 'rich')
      .map(({ title, description }) => [title, description].filter(Boolean).join('\n')),
  ].filter((part) => part !== '');
}

function pollText({ question, answers = [] }: NonNullable<Content['poll']>): string {
  const choices = answers.flatMap(({ poll_media }) => poll_media?.text || []);
  const asked = question?.text ? `poll ${question.text}` : 'poll';
  return bracketed(choices.length === 0 ? asked : `${asked}: ${choices.join(' / ')}`);
}

function namesIn({ mentions = [] }: Content, { me, directory, place }: Around): Names {
  const { guildId } = place;
  return {
    user(id) {
      if (id === me.id) return me.name;
      const user = mentions.find((each) => each.id === id);
      return user === undefined ? undefined : nameOf(user, user.member?.nick);
    },
    role: (id) => (guildId === null ? undefined : directory.role(guildId, id)?.name),
    channel: (id) => directory.channel(id)?.name,
  };
}
