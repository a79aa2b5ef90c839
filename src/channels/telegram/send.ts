/**
 * What goes out, sent by the bot whose words it is. Where that bot is not allowed to, another of ours sends it, with
 * the speaker's name before the text where several may speak.
 */
import { InputFile } from 'grammy/web';
import type { Channel, Part, Recipient, SendOptions, SendResult } from '../../core/channel.js';
import type { PersonaId } from '../../core/ids.js';
import type { Log } from '../../core/log.js';
import { named } from '../kit/named.js';
import { readOutgoing, withEmptyNote } from '../kit/outgoing.js';
import { type Bot, type Bots, logFields } from './bots.js';
import { createDrafts } from './drafts.js';
import { type Failure, isLockedOut, isNotModified, isNotThere, sendResult } from './failure.js';
import { messageIdOf, numberFor, readMessageId } from './message-id.js';
import {
  captionRequest,
  chatId,
  editRequest,
  formName,
  MAX_CAPTION,
  numeric,
  type SendRequest,
  sendRequest,
} from './outbound.js';
import { isVoiceNote, voiceRequest } from './voice-note.js';

/** What Telegram takes from bots. */
const UPLOADS = { bytes: 50_000_000, platform: 'Telegram' };

type Sending = Required<Pick<Channel, 'send' | 'edit' | 'remove' | 'preview' | 'setTyping'>>;
type Speaker = Pick<SendOptions, 'speaker' | 'appearance' | 'leads'>;

/** What became of a message; with the failure, by which it is seen whether another of our bots may do better. */
type Sent = { result: SendResult; failure?: Failure };

export function createSending({ bots, log }: { bots: Bots; log: Log }): Sending {
  const showDraft = createDrafts(log);

  /** Whether another bot may do better; then this one is remembered as absent. */
  function isElsewhere(bot: Bot, to: Recipient, failure: Failure | undefined): boolean {
    if (failure === undefined) return false;
    // Without a persona's bot that has a broken token, the main one speaks for it; without the main one nobody does.
    const lockedOut = bot.personaId !== null && isLockedOut(failure);
    if (!lockedOut && !isNotThere(failure)) return false;
    bots.absent(bot, to.address);
    return true;
  }

  /** The bot that sent a message, and its number there. */
  function authorOf(platformMessageId: string): { bot: Bot; number: number } | null {
    const id = readMessageId(platformMessageId);
    const bot = id === null ? undefined : bots.withId(id.bot);
    return id === null || bot === undefined ? null : { bot, number: id.number };
  }

  return {
    async send(to, part, options) {
      let refused: SendResult | null = null;
      for (const bot of bots.senders(to, speakerOf(options))) {
        const { result, failure } = await sendBy(bot, to, withNameUnlessOwn(bot, part, options), options);
        if (!isElsewhere(bot, to, failure)) return result;
        // What the main bot was told says most.
        if (refused === null || bot.personaId === null) refused = result;
        if (bots.personas.length === 0) continue;
        const fields = { ...logFields(bot.personaId), reason: failure?.reason };
        log.debug(fields, 'a bot is not allowed to speak in a chat');
      }
      return refused ?? { kind: 'refused', reason: 'no bot of ours is there' };
    },

    async edit(to, platformMessageId, part, options) {
      const author = authorOf(platformMessageId);
      if (author === null) return { kind: 'refused', reason: 'no bot of ours has sent this message' };
      if (part.file !== undefined) return { kind: 'refused', reason: 'a message with a file is not edited' };
      const { bot, number } = author;
      const done = await bot.api.send(
        editRequest(to, number, withNameUnlessOwn(bot, part, options)),
        (raw, request, ended) => raw.editMessageText(request, ended),
        { signal: options.signal },
      );
      const sent: SendResult = { kind: 'sent', platformMessageId };
      if ('failure' in done) return isNotModified(done.failure) ? sent : sendResult(done.failure);
      const { answer, request } = done;
      const text: unknown = typeof answer === 'object' && 'text' in answer ? answer.text : undefined;
      if (typeof text === 'string' && visible(text) === visible(request.text)) return sent;
      return { kind: 'refused', reason: 'Telegram shows another text than it was given' };
    },

    async remove(to, platformMessageId, { signal }) {
      const author = authorOf(platformMessageId);
      if (author === null) return;
      const { api } = author.bot;
      const request = { chat_id: chatId(to.address), message_id: author.number };
      try {
        await api.call((raw, ended) => raw.deleteMessage(request, ended), { signal });
      } catch (error) {
        const { reason } = api.failure(error);
        log.debug({ channel: 'telegram', reason }, 'a message was not taken back');
      }
    },

    async preview(to, part, options) {
      for (const bot of bots.senders(to, speakerOf(options))) {
        const shown = await showDraft(bot, to, withNameUnlessOwn(bot, part, options), options);
        if (typeof shown === 'boolean') return shown;
        if (!isElsewhere(bot, to, shown.failure)) return false;
      }
      return false;
    },

    async setTyping(to, personaId) {
      const [bot = bots.main] = bots.senders(to, personaId);
      const thread = numeric(to.threadId);
      const topic = thread === null ? {} : { message_thread_id: thread };
      const request = { chat_id: chatId(to.address), action: 'typing' as const, ...topic };
      try {
        await bot.api.call((raw, ended) => raw.sendChatAction(request, ended));
      } catch (error) {
        const failure = bot.api.failure(error);
        isElsewhere(bot, to, failure);
        log.debug({ channel: 'telegram', reason: failure.reason }, 'typing was not shown');
      }
    },
  };
}

function speakerOf({ speaker, appearance }: Speaker): PersonaId | undefined {
  return speaker ?? appearance?.personaId;
}

/** A persona's own bot has its name already; another bot puts the name before the text, where it is to be seen. */
function withNameUnlessOwn(bot: Bot, part: Part, speaker: Speaker): Part {
  const isOwn = bot.personaId !== null && bot.personaId === speakerOf(speaker);
  return isOwn ? part : named(part, speaker);
}

/** One message, by this bot. */
async function sendBy(
  bot: Bot,
  to: Recipient,
  { file, ...words }: Part,
  { replyTo, signal }: Pick<SendOptions, 'replyTo' | 'signal'>,
): Promise<Sent> {
  const answered = replyTo === null ? null : numberFor(bot.our(), to.address, replyTo);
  let request = sendRequest(to, words, answered === null ? null : String(answered));
  if (file === undefined) return sendText(bot, request, signal);

  const read = await readOutgoing(file, UPLOADS, signal);
  if (read.kind !== 'read') return { result: read };
  const { bytes } = read;
  // The text goes below the file. One that is too long for that goes before it, as a message of its own.
  if (words.text.length > MAX_CAPTION) {
    const said = await sendText(bot, request, signal);
    // If the file then does not get through, both go once more: said twice is better than not at all.
    if (said.result.kind !== 'sent') return said;
    request = sendRequest(to, { text: '', marks: [] }, null);
  }
  if (bytes.length === 0) {
    return sendText(bot, { ...request, text: withEmptyNote(request.text, file) }, signal);
  }
  if (isVoiceNote(file)) {
    const sent = await bot.api.send(
      request,
      (raw, each, ended) => raw.sendVoice(voiceRequest(each, bytes, file), ended),
      { signal, bytes: bytes.length, mostText: MAX_CAPTION },
    );
    // A chat, or a person, that wants no voice notes wants them of no other bot either.
    return { result: sentBy(bot, sent).result };
  }
  const done = await bot.api.send(
    request,
    (raw, each, ended) => {
      const document = new InputFile(bytes, formName(file.name));
      return raw.sendDocument({ ...captionRequest(each), document }, ended);
    },
    { signal, bytes: bytes.length, mostText: MAX_CAPTION },
  );
  return sentBy(bot, done);
}

async function sendText(bot: Bot, request: SendRequest, signal: AbortSignal): Promise<Sent> {
  const send = bot.api.send(request, (raw, each, ended) => raw.sendMessage(each, ended), { signal });
  return sentBy(bot, await send);
}

function sentBy(bot: Bot, done: { answer: { message_id?: unknown } } | { failure: Failure }): Sent {
  if ('failure' in done) return { result: sendResult(done.failure), failure: done.failure };
  const id = done.answer?.message_id;
  if (typeof id === 'number') {
    return { result: { kind: 'sent', platformMessageId: messageIdOf(bot.our(), id) } };
  }
  const reason = 'Telegram answers without a message';
  return { result: { kind: 'unreachable', reason, taken: 'unknown' } };
}

/** Telegram changes what nobody sees: white space, and characters without a form. */
function visible(text: string): string {
  return text.replace(/(?:[\s\p{Cc}\p{Cf}]|\u030a|\u0333|\u033f)+/gu, '');
}
