/**
 * What stands in the place of words for what is neither words nor a file: a line in brackets, so that a persona knows
 * what somebody sent, even if it cannot see it. Pure.
 */
import { sizeInWords } from '../../core/bytes.js';
import { bracketed } from '../kit/incoming.js';
import { nameOf } from './author.js';
import { titleOf } from './files.js';
import type { Content } from './update.js';

/** Fields beside the content, and what is said in the place of people: of these a person expects no answer. */
const BESIDE = new Set(
  `from sender_chat chat direct_messages_topic receiver_user sender_business_bot forward_origin forward_from
  forward_from_chat reply_to_message external_reply quote reply_to_story via_bot guest_bot_caller_user
  guest_bot_caller_chat link_preview_options reply_markup entities caption_entities suggested_post_info
  origin`.split(/\s+/),
);

/** Service messages: of these nobody expects that they are heard. */
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

/** null for a service message, and for what holds nothing at all. */
export function labelOf(content: Content): string | null {
  const label = tellingLabelOf(content);
  if (label !== null) return label;
  const words = showingWords(content) ?? unknownWords(content);
  return words === null ? null : bracketed(words);
}

/** Only of what people tell with it, so that it is worth hearing in a group; null for anything else. */
export function tellingLabelOf(content: Content): string | null {
  const { checklist } = content;
  if (checklist) return [bracketed(`checklist ${checklist.title ?? ''}`), ...tasksOf(checklist)].join('\n');
  const words = tellingWords(content);
  return words === null ? null : bracketed(words);
}

function tellingWords(content: Content): string | null {
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

function changeOfTasks({ checklist_tasks_done: done, checklist_tasks_added: added }: Content): string | null {
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

function tasksOf({ tasks = [] }: NonNullable<Content['checklist']>): string[] {
  return tasks.map(({ text, completion_date: done }) => `- [${done ? 'x' : ' '}] ${text}`);
}

function showingWords(content: Content): string | null {
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

function giftWords({ gift, unique_gift: unique, invoice }: Content): string | null {
  if (gift) return words('gift', gift.gift?.sticker?.emoji, gift.text);
  if (unique) {
    const { base_name: name, number } = unique.gift ?? {};
    return words('unique gift', `${name ?? ''}${number === undefined ? '' : ` #${number}`}`, unique.text);
  }
  return invoice ? words('invoice', invoice.title) : null;
}

/** Telegram goes on: nobody who sends something new is met with silence. */
function unknownWords({ holds = [] }: Content): string | null {
  if (holds.some((field) => SERVICE.has(field))) return null;
  const kind = holds.find((field) => !BESIDE.has(field) && /^\w{1,64}$/.test(field));
  return kind === undefined ? null : `a message of a kind I do not know: ${kind}`;
}

/** As far as there is a name, and more to say. */
function words(kind: string, name?: string, ...more: (string | undefined)[]): string {
  return [name ? `${kind} ${name}` : kind, ...more.filter(Boolean)].join(', ');
}

function coordinates({ latitude, longitude }: NonNullable<Content['location']> = {}): string {
  return latitude === undefined || longitude === undefined ? '' : `${latitude}, ${longitude}`;
}

function winners(count: number | undefined): string {
  return count === undefined ? '' : count === 1 ? '1 winner' : `${count} winners`;
}

function seconds(duration: number | undefined): string {
  if (duration === undefined) return '';
  return duration < 60 ? `${duration} s` : `${Math.floor(duration / 60)} min ${duration % 60} s`;
}
