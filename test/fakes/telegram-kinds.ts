/**
 * What people send on Telegram beside words and files, as the server puts it into a message. The forms are those of
 * https://core.telegram.org/bots/api (10.3), as `@grammyjs/types` has them.
 */
import type { Payload } from './telegram-body.js';
import type { Chat, Person } from './telegram-chats.js';

/** `MessageOrigin`: whose words a forward holds, or a message in another chat. */
export const origins = {
  user: (person: Person, date = LONG_AGO): Payload => ({
    ...{ type: 'user', date, sender_user: { is_bot: false, ...person } },
  }),
  /** Somebody whose account no forward may lead to: there is a name, and nothing else. */
  hiddenUser: (name: string, date = LONG_AGO): Payload => ({
    ...{ type: 'hidden_user', date, sender_user_name: name },
  }),
  /** A group that spoke itself: an anonymous administrator. */
  chat: (chat: Chat, date = LONG_AGO): Payload => ({ type: 'chat', date, sender_chat: chat }),
  channel: (chat: Chat, messageId: number, date = LONG_AGO): Payload => ({
    ...{ type: 'channel', date, chat, message_id: messageId },
  }),
};

const LONG_AGO = 1_700_000_000;

/** As a block of a rich message (10.1). Such a message has no `text`. */
export const paragraph = (text: unknown): Payload => ({ type: 'paragraph', text });

export const kinds = {
  richMessage: (...blocks: Payload[]): Payload => ({ rich_message: { blocks } }),
  poll: (question: string, options: string[]): Payload => ({
    poll: {
      ...{ id: '5', question, total_voter_count: 0, is_closed: false, is_anonymous: true, type: 'regular' },
      options: options.map((text, n) => ({ persistent_id: String(n), text, voter_count: 0 })),
      allows_multiple_answers: false,
    },
  }),
  /** `done` are the first so many of its tasks. */
  checklist: (title: string, tasks: string[], done = 0): Payload => ({
    checklist: {
      title,
      tasks: tasks.map((text, n) => ({
        id: n + 1,
        text,
        ...(n < done ? { completion_date: LONG_AGO } : {}),
      })),
    },
  }),
  location: (latitude: number, longitude: number): Payload => ({ location: { latitude, longitude } }),
  /** A service message to Telegram, a present to whoever sends it. */
  gift: (emoji: string, text: string): Payload => ({
    gift: { gift: { id: '7', sticker: { ...STICKER, emoji }, star_count: 15 }, text },
  }),
  sticker: (emoji: string): Payload => ({ sticker: { ...STICKER, emoji } }),
  /** Of a kind that no Bot API has yet. */
  future: (): Payload => ({ hologram: { file_id: 'hologram', depth: 3 } }),
};

const STICKER = {
  ...{ file_id: 'sticker', file_unique_id: 'sticker', type: 'regular', width: 512, height: 512 },
  ...{ is_animated: false, is_video: false },
};
