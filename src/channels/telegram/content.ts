/** A message's content: the speaker, the words and whom they mention, the files, or a label. Pure. */
import type { Chat, Checklist, Location, MessageEntity, User } from 'grammy/types';
import { sizeInWords } from '../../core/cut.js';
import type { InboundMessage } from '../../core/message.js';
import { bracketed, mentioning } from '../kit/incoming.js';
import { messageIdOf, type OurBot, type Receiver } from './bots.js';
import { filesIn, titleOf } from './files.js';
import { markdownOf } from './rich.js';
import type { ForwardOrigin, ShownContent } from './update.js';

/** The sender; null for bots. A post as a chat names Telegram's own bot, with the chat next to it. */
export function senderOf(
  { from, sender_chat: as, author_signature: signature }: ShownContent,
  chat: { id: number },
  { ours }: Receiver,
): InboundMessage['sender'] | null {
  if (as !== undefined) {
    const administrator = as.id === chat.id;
    const name = (administrator && signature) || nameOf(as);
    return { address: String(as.id), name, administrator };
  }
  if (from === undefined || from.is_bot || ours.some(({ id }) => id === from.id)) return null;
  return { address: String(from.id), name: nameOf(from), administrator: false };
}

export function nameOf(one: User | Chat): string {
  const { title, first_name, last_name, username }: Partial<Record<string, unknown>> = { ...one };
  const name = [first_name, last_name].filter(Boolean).join(' ').trim();
  return String(title || name || username || one.id);
}

/** Empty if Telegram does not say. A hidden account is only a name. */
export function originName({ sender_user, sender_user_name, sender_chat, chat }: ForwardOrigin): string {
  const known = sender_user ?? sender_chat ?? chat;
  return known === undefined ? (sender_user_name ?? '') : nameOf(known);
}

/** The writer of words that the sender did not write; empty if unknown, undefined for the sender's own. */
export function foreignWriterOf(message: ShownContent): string | undefined {
  if (message.forward_origin !== undefined) return originName(message.forward_origin as ForwardOrigin);
  if (message.via_bot !== undefined) return nameOf(message.via_bot);
  return message.is_automatic_forward ? '' : undefined;
}

// A label replaces content that is neither text nor a file, so that a persona knows what was sent.

/** Fields next to the content: nobody expects an answer to these. */
const BESIDE = new Set(
  `from sender_chat chat direct_messages_topic receiver_user sender_business_bot forward_origin forward_from
  forward_from_chat reply_to_message external_reply quote reply_to_story via_bot guest_bot_caller_user
  guest_bot_caller_chat link_preview_options reply_markup entities caption_entities suggested_post_info
  origin`.split(/\s+/),
);

/** Service messages: nobody expects an answer to these. */
const SERVICE = new Set(
  `new_chat_members new_chat_member new_chat_participant left_chat_member left_chat_participant chat_owner_left
  chat_owner_changed new_chat_title new_chat_photo delete_chat_photo group_chat_created supergroup_chat_created
  channel_chat_created message_auto_delete_timer_changed pinned_message migrate_to_chat_id migrate_from_chat_id
  community_chat_added community_chat_removed community_chat_joined managed_bot_created
  suggested_post_approved suggested_post_approval_failed suggested_post_declined suggested_post_paid
  suggested_post_refunded successful_payment refunded_payment users_shared user_shared chat_shared connected_website
  write_access_allowed passport_data proximity_alert_triggered boost_added chat_background_set forum_topic_created
  forum_topic_edited forum_topic_closed forum_topic_reopened general_forum_topic_hidden general_forum_topic_unhidden
  giveaway_created giveaway_completed gift_upgrade_sent poll_option_added poll_option_deleted
  paid_message_price_changed direct_message_price_changed video_chat_scheduled video_chat_started video_chat_ended
  video_chat_participants_invited web_app_data`.split(/\s+/),
);

/** null for a service message or an empty one. */
export function labelOf(content: ShownContent): string | null {
  const label = tellingLabelOf(content);
  if (label !== null) return label;
  const words = showingWords(content) ?? unknownWords(content);
  return words === null ? null : bracketed(words);
}

/** Only for content that people communicate with, worth hearing in a group; null otherwise. */
function tellingLabelOf(content: ShownContent): string | null {
  const { checklist } = content;
  if (checklist) return [bracketed(`checklist ${checklist.title ?? ''}`), ...tasksOf(checklist)].join('\n');
  const words = tellingWords(content);
  return words === null ? null : bracketed(words);
}

function tellingWords(content: ShownContent): string | null {
  const { venue, location, contact, poll, giveaway, giveaway_winners: drawn } = content;
  // A venue also comes with a location.
  if (venue) {
    const where = [venue.address, coordinates(venue.location) || coordinates(location)];
    return words('place', venue.title, ...where);
  }
  if (location) return words(location.live_period ? 'live location' : 'location', coordinates(location));
  if (contact) {
    const name = [contact.first_name, contact.last_name].filter(Boolean).join(' ');
    return words('contact', name, contact.phone_number);
  }
  if (poll) {
    const options = (poll.options ?? []).map(({ text }) => text).join('; ');
    return `${words('poll', poll.question)}${options && `: ${options}`}`;
  }
  if (giveaway) return words('giveaway', '', winners(giveaway.winner_count), giveaway.prize_description);
  if (drawn) return words('result of a giveaway', '', winners(drawn.winner_count), drawn.prize_description);
  return changeOfTasks(content);
}

function changeOfTasks({
  checklist_tasks_done: done,
  checklist_tasks_added: added,
}: ShownContent): string | null {
  const checklist = (done ?? added)?.checklist_message?.checklist;
  const named = (ids: number[] | undefined, how: string) => {
    const tasks = (checklist?.tasks ?? []).filter(({ id }) => id !== undefined && ids?.includes(id));
    return tasks.length === 0 ? '' : `${how}: ${tasks.map(({ text }) => text).join('; ')}`;
  };
  if (done) {
    const now = named(done.marked_as_done_task_ids, 'done');
    return words('checklist', checklist?.title, now, named(done.marked_as_not_done_task_ids, 'not done'));
  }
  const tasks = added?.tasks?.map(({ text }) => text).join('; ');
  return added ? words('checklist', checklist?.title, tasks && `added: ${tasks}`) : null;
}

function tasksOf({ tasks = [] }: Checklist): string[] {
  return tasks.map(({ text, completion_date: done }) => `- [${done ? 'x' : ' '}] ${text}`);
}

function showingWords(content: ShownContent): string | null {
  const { voice, video, video_note, audio, document, sticker, dice, game, story, paid_media: paid } = content;
  // A live photo also comes with a photo, an animation with a document.
  if (content.live_photo) return 'live photo';
  if (content.photo) return 'photo';
  if (voice) return words('voice message', '', seconds(voice.duration));
  if (video_note) return words('round video message', '', seconds(video_note.duration));
  if (video) return words('video', '', seconds(video.duration));
  if (content.animation) return 'animation';
  if (audio) return words('audio', titleOf(audio), seconds(audio.duration));
  if (document) {
    const { file_name: name, file_size: bytes } = document;
    return words('document', name, bytes === undefined ? '' : sizeInWords(bytes));
  }
  if (sticker) return words('sticker', sticker.emoji);
  if (dice) return words('dice', dice.emoji, dice.value === undefined ? '' : `shows ${dice.value}`);
  if (game) return words('game', game.title);
  if (story) return words('story', story.chat && `of ${nameOf(story.chat)}`);
  if (paid) return words('paid media', '', paid.star_count === undefined ? '' : `${paid.star_count} Stars`);
  return giftWords(content);
}

function giftWords({ gift, unique_gift: unique, invoice }: ShownContent): string | null {
  if (gift) return words('gift', gift.gift?.sticker?.emoji, gift.text);
  if (unique) {
    const { base_name: name, number } = unique.gift ?? {};
    return words('unique gift', `${name ?? ''}${number === undefined ? '' : ` #${number}`}`, unique.text);
  }
  return invoice ? words('invoice', invoice.title) : null;
}

/** Message kinds newer than this code still get an answer. */
function unknownWords(content: ShownContent): string | null {
  const fields = Object.entries(content).flatMap(([name, value]) =>
    typeof value === 'object' ? [name] : [],
  );
  if (fields.some((field) => SERVICE.has(field))) return null;
  const kind = fields.find((field) => !BESIDE.has(field) && /^\w{1,64}$/.test(field));
  return kind === undefined ? null : `a message of a kind I do not know: ${kind}`;
}

/** Uses the name and further details as far as there are any. */
function words(kind: string, name?: string, ...more: (string | undefined)[]): string {
  return [name ? `${kind} ${name}` : kind, ...more.filter(Boolean)].join(', ');
}

function coordinates(place: Partial<Location> = {}): string {
  const { latitude, longitude } = place;
  return Number.isFinite(latitude) && Number.isFinite(longitude) ? `${latitude}, ${longitude}` : '';
}

function winners(count: number | undefined): string {
  return count === undefined ? '' : count === 1 ? '1 winner' : `${count} winners`;
}

function seconds(duration: number | undefined): string {
  if (duration === undefined) return '';
  return duration < 60 ? `${duration} s` : `${Math.floor(duration / 60)} min ${duration % 60} s`;
}

/** `/cmd@SomeBot` at the start of a message: the command, and the handle. */
const OPENING_COMMAND = /^(\/\w{1,64})(@\w+)(?=\s|$)/;

type Said = Pick<
  InboundMessage,
  'text' | 'attachments' | 'mentions' | 'mentionsBot' | 'addresses' | 'forwardedFrom'
>;

/**
 * Words and files, as `bot` received them; `replied`: the message this one answers. Other content gets a
 * label: always in a direct chat, since an answer is expected; in a group if worth hearing. null: nothing.
 */
export function saidIn(
  message: ShownContent,
  replied: ShownContent,
  receiver: Receiver & { direct: boolean },
): Said | null {
  const { bot, direct } = receiver;
  const own = filesIn(message);
  const words = wordsOf(message);
  const said = words || (own.length > 0 ? '' : (direct ? labelOf : tellingLabelOf)(message));
  if (said === null) return null;
  const others = filesIn(replied).map((file) => ({ ...file, ofReply: true as const }));
  // Only the bot that received a file may fetch it.
  const attachments = [...own, ...others].map((file) => ({ ...file, source: messageIdOf(bot, file.source) }));
  return { ...spoken(said, message, receiver), ...(attachments.length === 0 ? {} : { attachments }) };
}

/** The words and the bots they address. Words that somebody else wrote address none of us. */
function spoken(
  words: string,
  message: ShownContent,
  { bot, ours, direct }: Receiver & { direct: boolean },
): Said {
  // A message to a persona's own bot in a direct chat is for that persona.
  const own = direct && bot.personaId !== undefined ? [bot] : [];
  const forwardedFrom = foreignWriterOf(message);
  if (forwardedFrom !== undefined) {
    return { text: words, mentionsBot: false, ...addressing(own), forwardedFrom };
  }
  const { text, bots, called } = mentionsIn(words, message, ours);
  const mentioned = [...own, ...bots];
  // Where personas have bots, addressing the main one excludes them, even if the words name them.
  const isForMain = !direct && ours.length > 1 && called.some(({ personaId }) => personaId === undefined);
  return {
    text,
    ...mentioning(namesIn(words, message)),
    mentionsBot: mentioned.length > 0,
    ...(isForMain ? { addresses: [] } : {}),
    ...addressing(mentioned),
  };
}

function addressing(bots: OurBot[]): { addresses?: string[] } {
  const personas = new Set(bots.map(({ personaId }) => personaId).filter((id) => id !== undefined));
  return personas.size === 0 ? {} : { addresses: [...personas] };
}

export function wordsOf({ text, caption, rich_message: rich }: ShownContent): string {
  return text || caption || (rich === undefined ? '' : markdownOf(rich));
}

function entitiesOf({ text, entities, caption_entities }: ShownContent): MessageEntity[] {
  return (text ? entities : caption_entities) ?? [];
}

/** Mentions by name, for accounts without a handle. */
function namesIn(words: string, message: ShownContent): string[] {
  return entitiesOf(message).flatMap(({ type, offset, length }) =>
    type === 'text_mention' ? [words.slice(offset, offset + length)] : [],
  );
}

/**
 * Our bots mentioned, in order (by username, by mention, after a command); which of these are addressed, at
 * the start or the end; and the words without our names on commands (`/cmd@OurBot` becomes `/cmd`; another
 * bot's stays).
 */
function mentionsIn(words: string, message: ShownContent, ours: readonly OurBot[]) {
  let text = words;
  const found = new Map<OurBot, number>();
  const mention = (bot: OurBot, at: number) => found.set(bot, Math.min(at, found.get(bot) ?? at));
  // Telegram marks mentions and commands, but a bridge or an older server may not; the words are equivalent.
  const lower = words.toLowerCase();
  for (const bot of ours) {
    const at = positionOf(lower, handleOf(bot));
    if (at >= 0) mention(bot, at);
  }
  const entities = entitiesOf(message);
  // Backwards, so that the offsets before a shortened command stay valid.
  for (const entity of entities.toSorted((one, other) => other.offset - one.offset)) {
    const { type, offset, length } = entity;
    const end = offset + length;
    const said = words.slice(offset, end).toLowerCase();
    for (const bot of ours) {
      if (type === 'text_mention' && entity.user?.id === bot.id) mention(bot, offset);
      const handle = handleOf(bot);
      if (type !== 'bot_command' || handle === '' || !said.endsWith(handle)) continue;
      mention(bot, offset);
      text = text.slice(0, end - handle.length) + text.slice(end);
    }
  }
  const [opening, command = '', handle = ''] = OPENING_COMMAND.exec(text) ?? [''];
  const commanded = ours.find((bot) => handle !== '' && handleOf(bot) === handle.toLowerCase());
  if (commanded !== undefined) {
    mention(commanded, 0);
    text = command + text.slice(opening.length);
  }
  const inOrder = [...found].toSorted(([, one], [, other]) => one - other);
  const called = inOrder.filter(([, at]) => isFirstOrLast(words, at));
  return { text, bots: inOrder.map(([bot]) => bot), called: called.map(([bot]) => bot) };
}

/** After at most a greeting, or with nothing after it. */
function isFirstOrLast(words: string, at: number): boolean {
  return /^\s*(?:\S+\s+){0,2}$/u.test(words.slice(0, at)) || /^\S+\s*$/u.test(words.slice(at));
}

function handleOf({ username }: OurBot): string {
  return username === '' ? '' : `@${username.toLowerCase()}`;
}

/** Position of the name as a word of its own; -1 if absent. */
function positionOf(text: string, name: string): number {
  if (name === '') return -1;
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    if (!/[\w@/]/.test(text[at - 1] ?? ' ') && !/\w/.test(text[at + name.length] ?? ' ')) return at;
  }
  return -1;
}
