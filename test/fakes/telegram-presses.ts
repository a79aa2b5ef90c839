/**
 * Buttons below messages on the fake Telegram. A press reaches the bot whose message it is, only if that asks for
 * `callback_query` (core.telegram.org/bots/api#getting-updates), and the button spins until it is answered
 * (reality.md 3.6). After some time the answer is refused: "query is too old".
 */
import type { Payload } from './telegram-body.js';
import type { FakeBot } from './telegram-bots.js';
import type { Person } from './telegram-chats.js';
import type { SentMessage } from './telegram-ledger.js';

export interface Press {
  id: string;
  /** What the button sends. */
  data: string;
  by: Person;
  message: SentMessage;
  at: number;
  /** The button spins until then. */
  answered: boolean;
  /** What whoever pressed is shown for a moment; null for nothing. */
  text: string | null;
}

interface Button {
  text: string;
  data: string;
}

interface Presses {
  all: Press[];
  /** A press with this label, or on the n-th button. Throws where there is none. */
  press(bot: FakeBot, by: Person, message: SentMessage, which: string | number, shown: Payload): Press;
  /** The platform brings a press again that a bot did not confirm. */
  repeat(bot: FakeBot, press: Press): void;
  answer(payload: Payload): { status: number; description: string } | null;
}

const TOO_OLD = 'Bad Request: query is too old and response timeout expired or query ID is invalid';
const MOST_DATA_BYTES = 64;
const MOST_BUTTONS = 100;
const MOST_TEXT = 200;

export function createPresses(settings: { pressAnswerMs: number }): Presses {
  const all: Press[] = [];
  const updates = new Map<Press, Payload>();

  function bring(bot: FakeBot, press: Press): void {
    const asksFor = bot.polls.lastPayload.allowed_updates;
    if (bot.updates.webhook() === null && Array.isArray(asksFor) && !asksFor.includes('callback_query'))
      return;
    bot.updates.push({ callback_query: updates.get(press) ?? {} });
  }

  return {
    all,
    press(bot, by, message, which, shown) {
      const buttons = buttonsOf(message);
      const button = typeof which === 'number' ? buttons[which] : buttons.find(({ text }) => text === which);
      if (button === undefined) {
        const there = buttons.map(({ text }) => text).join(', ') || 'none';
        throw new Error(`there is no button ${which} below message ${message.messageId}: ${there}`);
      }
      const id = String(4_382_000_000_000_000_000n + BigInt(all.length));
      const { data } = button;
      const press = { id, data, by, message, at: Date.now(), answered: false, text: null };
      all.push(press);
      const thread = message.threadId;
      const topic = thread === null ? {} : { message_thread_id: thread, is_topic_message: true };
      updates.set(press, {
        ...{ id, from: { ...by, is_bot: false }, chat_instance: `${message.chatId}`, data },
        message: { ...shown, ...topic, reply_markup: message.markup },
      });
      bring(bot, press);
      return press;
    },
    repeat: bring,
    answer({ callback_query_id: id, text }) {
      const press = all.find((each) => each.id === id);
      if (press === undefined || press.answered || Date.now() - press.at > settings.pressAnswerMs) {
        return { status: 400, description: TOO_OLD };
      }
      if (String(text ?? '').length > MOST_TEXT) {
        return { status: 400, description: 'Bad Request: MESSAGE_TOO_LONG' };
      }
      press.answered = true;
      press.text = text === undefined || text === '' ? null : String(text);
      return null;
    },
  };
}

export function buttonsOf({ markup }: Pick<SentMessage, 'markup'>): Button[] {
  return buttonsIn(markup).map(({ text, callback_data: data }) => ({
    text: String(text),
    data: String(data),
  }));
}

/** What is wrong with the buttons that a message is to have; null for nothing. */
export function markupRefusalOf({ reply_markup: markup }: Payload): string | null {
  if (markup === undefined) return null;
  const buttons = buttonsIn(markup);
  const rows = (markup as { inline_keyboard?: unknown }).inline_keyboard;
  if (!Array.isArray(rows) || rows.some((row) => !Array.isArray(row) || row.length === 0)) {
    return "Bad Request: can't parse inline keyboard";
  }
  if (buttons.length > MOST_BUTTONS) return 'Bad Request: REPLY_MARKUP_TOO_LONG';
  for (const { text, callback_data: data } of buttons) {
    if (typeof text !== 'string' || text.trim() === '' || /\p{Surrogate}/u.test(text)) {
      return 'Bad Request: BUTTON_TEXT_INVALID';
    }
    const bytes = typeof data === 'string' ? Buffer.byteLength(data) : 0;
    if (bytes < 1 || bytes > MOST_DATA_BYTES) return 'Bad Request: BUTTON_DATA_INVALID';
  }
  return null;
}

function buttonsIn(markup: unknown): Payload[] {
  const rows = (markup as { inline_keyboard?: unknown } | null | undefined)?.inline_keyboard;
  return Array.isArray(rows) ? (rows.flat() as Payload[]) : [];
}
