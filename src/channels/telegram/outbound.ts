/** Splits a reply into parts, and builds the request for each. Pure. */
import type { Choice, Mark, Part, Recipient } from '../../core/channel.js';
import { buttonLabel } from '../kit/outgoing.js';
import { cut } from '../markdown/cut.js';
import { parse } from '../markdown/parse.js';

/** The app cuts longer labels without showing it. */
const MOST_LABEL = 60;
const MOST_BUTTONS = 100;
const MOST_IN_A_ROW = 3;
const ROW_WIDTH = 24;

/** The payload of a message's buttons. */
interface Keyboard {
  inline_keyboard: { text: string; callback_data: string }[][];
}

/** Short labels share a row, as far as there is room. */
export function keyboardOf(choices: readonly Choice[]): Keyboard {
  const rows: Keyboard['inline_keyboard'] = [];
  for (const choice of choices.slice(0, MOST_BUTTONS)) {
    const button = { text: buttonLabel(choice.label, MOST_LABEL), callback_data: choice.value };
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
  return cut(parse(markdown, { tableWidth: TABLE_WIDTH }), { limit: MAX_TEXT - spare, maxMarks });
}

/** `linkPreviews`: whether Telegram's servers may fetch the links in it. */
export function sendRequest(
  to: Recipient,
  part: Part,
  { replyTo = null, linkPreviews }: { replyTo?: string | null; linkPreviews: boolean },
): SendRequest {
  const entities = entitiesOf(part.marks);
  const request: SendRequest = { chat_id: chatId(to.address), text: part.text };
  if (!linkPreviews) request.link_preview_options = { is_disabled: true };
  if (entities.length > 0) request.entities = entities;
  if (part.choices !== undefined) request.reply_markup = keyboardOf(part.choices);
  const thread = topicOf(to);
  if (thread !== null) request.message_thread_id = thread;
  const answered = numeric(replyTo);
  if (answered !== null) {
    request.reply_parameters = { message_id: answered, allow_sending_without_reply: true };
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

function entitiesOf(marks: Mark[]): Entity[] {
  const entities: Entity[] = [];
  let quoteEnd = 0;
  for (const mark of marks) {
    // Telegram's quotes do not nest: the outermost includes them all.
    if (mark.kind === 'quote') {
      if (mark.offset < quoteEnd) continue;
      quoteEnd = mark.offset + mark.length;
    }
    entities.push(entityOf(mark));
  }
  return entities;
}

function entityOf(mark: Mark): Entity {
  const { offset, length } = mark;
  if (mark.kind === 'link') return { type: 'text_link', offset, length, url: mark.url };
  if (mark.kind !== 'pre') return { type: TYPES[mark.kind], offset, length };
  return { type: 'pre', offset, length, ...(mark.language === '' ? {} : { language: mark.language }) };
}
