/** Splits a reply into parts, and builds the request for each. Pure. */
import type { Choice, Mark, Part, Recipient } from '../../core/channel.js';
import { shortLine } from '../kit/outgoing.js';
import { composed } from '../markdown/compose.js';

/** The app cuts longer labels without showing it. */
const MOST_LABEL = 60;
const MOST_BUTTONS = 100;
const MOST_IN_A_ROW = 3;
const ROW_WIDTH = 24;

interface Keyboard {
  inline_keyboard: { text: string; callback_data: string }[][];
}

/** Short labels share a row, as far as there is room. */
export function keyboardOf(choices: readonly Choice[]): Keyboard {
  const rows: Keyboard['inline_keyboard'] = [];
  for (const choice of choices.slice(0, MOST_BUTTONS)) {
    const button = { text: shortLine(choice.label, MOST_LABEL), callback_data: choice.value };
    const row = rows.at(-1) ?? [];
    const width = [...row, button].reduce((sum, { text }) => sum + text.length, 0);
    if (row.length > 0 && row.length < MOST_IN_A_ROW && width <= ROW_WIDTH) row.push(button);
    else rows.push([button]);
  }
  return { inline_keyboard: rows };
}

/** In columns. Wider tables are written row by row: a phone wraps longer fixed-width lines. */
export const TABLE_WIDTH = 38;
/** In UTF-16 units, without markup. */
export const MAX_TEXT = 4096;
/** The same for a file's caption. */
export const MOST_CAPTION = 1024;
const GENERAL_TOPIC = 1;
/** Telegram ignores more. */
const MAX_ENTITIES = 100;

type Entity = { offset: number; length: number } & (
  | { type: 'bold' | 'italic' | 'strikethrough' | 'code' | 'blockquote' }
  | { type: 'pre'; language?: string }
  | { type: 'text_link'; url: string }
);

export interface SendRequest {
  chat_id: number | string;
  text: string;
  entities?: Entity[];
  message_thread_id?: number;
  reply_parameters?: { message_id: number; allow_sending_without_reply: true };
  reply_markup?: Keyboard;
  link_preview_options?: { is_disabled: true };
}

/** Leaves room for `spare` characters and a mark before each part. */
export function compose(markdown: string, spare = 0): Part[] {
  const maxMarks = spare > 0 ? MAX_ENTITIES - 1 : MAX_ENTITIES;
  return composed(markdown, TABLE_WIDTH, { limit: MAX_TEXT - spare, maxMarks });
}

/** `linkPreviews`: whether Telegram's servers may fetch the links in it. */
export function sendRequest(
  to: Recipient,
  part: Part,
  linkPreviews: boolean,
  replyTo: number | null = null,
): SendRequest {
  const request: SendRequest = { chat_id: chatId(to.address), text: part.text };
  if (!linkPreviews) request.link_preview_options = { is_disabled: true };
  if (part.marks.length > 0) request.entities = entitiesOf(part.marks);
  if (part.choices !== undefined) request.reply_markup = keyboardOf(part.choices);
  const thread = topicOf(to);
  if (thread !== null) request.message_thread_id = thread;
  if (replyTo !== null) {
    request.reply_parameters = { message_id: replyTo, allow_sending_without_reply: true };
  }
  return request;
}

/** null outside of topics, and in the general one, which is the chat itself. */
export function topicOf({ threadId }: Recipient): number | null {
  const topic = numeric(threadId);
  return topic === GENERAL_TOPIC ? null : topic;
}

export function chatId(address: string): number | string {
  return numeric(address) ?? address;
}

function numeric(id: string | null): number | null {
  return id !== null && /^-?\d{1,15}$/.test(id) ? Number(id) : null;
}

const TYPES = {
  bold: 'bold',
  italic: 'italic',
  strike: 'strikethrough',
  code: 'code',
  quote: 'blockquote',
} as const;

function entitiesOf(marks: readonly Mark[]): Entity[] {
  let quoteEnd = 0;
  return marks.flatMap((mark): Entity[] => {
    const { offset, length } = mark;
    if (mark.kind === 'link') return [{ type: 'text_link', offset, length, url: mark.url }];
    if (mark.kind === 'pre') {
      return [{ type: 'pre', offset, length, ...(mark.language && { language: mark.language }) }];
    }
    if (mark.kind === 'quote') {
      // Telegram's quotes do not nest: the outermost includes them all.
      if (offset < quoteEnd) return [];
      quoteEnd = offset + length;
    }
    return [{ type: TYPES[mark.kind], offset, length }];
  });
}
