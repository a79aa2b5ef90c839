/** What bots have sent on the fake Telegram, as it stands now: edited, taken back, or only a draft. */
import type { Payload } from './telegram-body.js';
import type { FakeBot } from './telegram-bots.js';
import type { UploadedFile } from './telegram-form.js';
import { isUpload, UPLOADS } from './telegram-limits.js';

export interface SentMessage {
  /** As the bot that sent it knows it. */
  messageId: number;
  chatId: number;
  /** The id of the bot that sent it. */
  bot: number;
  threadId: number | null;
  /** With a document, what stands below it. */
  text: string;
  entities: Payload[];
  document: UploadedFile | null;
  /** Its buttons. */
  markup: unknown;
  /** As what the file was sent. */
  as: 'document' | 'photo' | 'voice' | null;
  /** https://core.telegram.org/bots/api#sendvoice: OGG with Opus; of another form it becomes a document. */
  voice: { bytes: Buffer; seconds: number } | null;
  replyTo: number | null;
  /** When it was taken, ms. */
  at: number;
  /** Taken back, or deleted by somebody. */
  gone: boolean;
  /** The answer was written to the connection. */
  answered: boolean;
  /** The connection ended between taking it and answering: the sender cannot know that it was taken. */
  cut: boolean;
}

export interface Edit
  extends Pick<SentMessage, 'messageId' | 'chatId' | 'bot' | 'text' | 'entities' | 'at'> {}

export interface Draft extends Pick<SentMessage, 'chatId' | 'bot' | 'threadId' | 'text' | 'entities' | 'at'> {
  draftId: number;
  canStop: boolean;
}

type Refusal = { status: number; description: string };

export interface Ledger {
  sent: SentMessage[];
  edits: Edit[];
  drafts: Draft[];
  take(bot: FakeBot, messageId: number, payload: Payload): SentMessage;
  edit(bot: FakeBot, payload: Payload): SentMessage | Refusal;
  /** Puts other buttons below a message, or none. `isThere`: whether anybody has written a message of this number. */
  editMarkup(bot: FakeBot, payload: Payload, isThere: boolean): SentMessage | Refusal;
  remove(bot: FakeBot, payload: Payload): Refusal | null;
  draft(bot: FakeBot, payload: Payload): void;
}

const SAME =
  'message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message';

export function createLedger(): Ledger {
  const sent: SentMessage[] = [];
  const edits: Edit[] = [];
  const drafts: Draft[] = [];
  const refuse = (description: string) => ({ status: 400, description: `Bad Request: ${description}` });
  const entitiesOf = (payload: Payload) =>
    ((payload.entities ?? payload.caption_entities) as Payload[] | undefined) ?? [];
  const textOf = (payload: Payload) => String(payload.text ?? payload.caption ?? '');
  const threadOf = ({ message_thread_id: thread }: Payload) => (thread === undefined ? null : Number(thread));

  /** In a supergroup bots may name each other's messages, since they all have one number. */
  function find(bot: FakeBot, { chat_id: chat, message_id: id }: Payload): SentMessage | undefined {
    const there = sent.filter(
      (one) => !one.gone && one.chatId === Number(chat) && one.messageId === Number(id),
    );
    return there.find((one) => one.bot === bot.id) ?? there[0];
  }

  return {
    sent,
    edits,
    drafts,

    take(bot, messageId, payload) {
      const answered = payload.reply_parameters as { message_id?: number } | undefined;
      const as = Object.values(UPLOADS).find((field) => isUpload(payload[field])) ?? null;
      const message: SentMessage = {
        messageId,
        chatId: Number(payload.chat_id),
        bot: bot.id,
        threadId: threadOf(payload),
        text: textOf(payload),
        entities: entitiesOf(payload),
        ...fileIn(payload),
        as,
        markup: payload.reply_markup ?? null,
        replyTo: answered?.message_id ?? null,
        at: Date.now(),
        gone: false,
        answered: false,
        cut: false,
      };
      sent.push(message);
      return message;
    },

    edit(bot, payload) {
      const message = find(bot, payload);
      if (message === undefined) return refuse('message to edit not found');
      if (message.bot !== bot.id) return refuse("message can't be edited");
      if (message.document !== null || message.voice !== null)
        return refuse('there is no text in the message to edit');
      const text = textOf(payload);
      const entities = entitiesOf(payload);
      // Without buttons in the edit, those that were there go.
      const markup = payload.reply_markup ?? null;
      const now = JSON.stringify([text, entities, markup]);
      const before = [message.text, message.entities, message.markup];
      if (now === JSON.stringify(before)) return refuse(SAME);
      message.text = text;
      message.markup = markup;
      message.entities = entities;
      const { messageId, chatId } = message;
      edits.push({ messageId, chatId, bot: bot.id, text, entities, at: Date.now() });
      return message;
    },

    // As the server answers for bots (reality.md 3.7; td MessagesManager.cpp, telegram-bot-api Client.cpp).
    editMarkup(bot, payload, isThere) {
      const message = find(bot, payload);
      if (message === undefined) {
        const wasOurs = sent.some(
          (one) =>
            one.gone &&
            one.chatId === Number(payload.chat_id) &&
            one.messageId === Number(payload.message_id),
        );
        return refuse(isThere && !wasOurs ? "message can't be edited" : 'message to edit not found');
      }
      if (message.bot !== bot.id) return refuse("message can't be edited");
      const markup = payload.reply_markup ?? null;
      if (JSON.stringify(markup) === JSON.stringify(message.markup)) return refuse(SAME);
      message.markup = markup;
      return message;
    },

    remove(bot, payload) {
      const message = find(bot, payload);
      if (message === undefined) return refuse('message to delete not found');
      if (message.bot !== bot.id) return refuse("message can't be deleted");
      message.gone = true;
      return null;
    },

    draft(bot, payload) {
      drafts.push({
        chatId: Number(payload.chat_id),
        bot: bot.id,
        threadId: threadOf(payload),
        draftId: Number(payload.draft_id),
        canStop: payload.can_stop === true,
        text: String(payload.text ?? ''),
        entities: entitiesOf(payload),
        at: Date.now(),
      });
    },
  };
}

function fileIn({ document, photo, voice, duration }: Payload): Pick<SentMessage, 'document' | 'voice'> {
  const file = isUpload(document) ? document : photo;
  if (!isUpload(voice)) return { document: isUpload(file) ? file : null, voice: null };
  const isOpus = voice.bytes.toString('latin1', 0, 4) === 'OggS' && voice.bytes.includes('OpusHead');
  if (!isOpus) return { document: voice, voice: null };
  return { document: null, voice: { bytes: voice.bytes, seconds: Number(duration ?? 0) } };
}
