/**
 * What goes out, sent by the bot whose words it is. Where that bot is not allowed to, another of ours sends it, with
 * the speaker's name before the text where several may speak.
 */
import { InputFile } from 'grammy/web';
import type { Channel, OutgoingFile, Part, Recipient, SendOptions, SendResult } from '../../core/channel.js';
import type { PersonaId } from '../../core/ids.js';
import type { Log } from '../../core/log.js';
import { type Bounded, bounded } from '../kit/bounded.js';
import { named } from '../kit/named.js';
import { readOutgoing, withEmptyNote } from '../kit/outgoing.js';
import { type Bot, type Bots, logFields } from './bots.js';
import { createDrafts } from './drafts.js';
import {
  type Failure,
  isKindRefused,
  isLockedOut,
  isNotModified,
  isNotThere,
  isUnwanted,
  sendResult,
} from './failure.js';
import { messageIdOf, numberFor, readMessageId } from './message-id.js';
import {
  captionRequest,
  chatId,
  editRequest,
  formName,
  MAX_CAPTION,
  type SendRequest,
  sendRequest,
  topicOf,
} from './outbound.js';
import { isPhoto } from './picture.js';
import { type RichMessage, richMessage } from './rich-reply.js';
import { createRichSending, type RichSending } from './rich-send.js';
import { isVoiceNote, voiceRequest } from './voice-note.js';

/** Of how many messages it is remembered that their words went out before their file. */
const MOST_SAID = 1_000;
type Said = Bounded<string, true>;

/** What Telegram takes from bots. */
const UPLOADS = { bytes: 50_000_000, platform: 'Telegram' };

type Sending = Required<Pick<Channel, 'send' | 'edit' | 'remove' | 'preview' | 'setTyping'>>;
type Speaker = Pick<SendOptions, 'speaker' | 'appearance' | 'leads'>;

/** What became of a message; with the failure, by which it is seen whether another of our bots may do better. */
type Sent = { result: SendResult; failure?: Failure };

export function createSending({
  bots,
  linkPreviews,
  log,
}: {
  bots: Bots;
  linkPreviews: boolean;
  log: Log;
}): Sending {
  const showDraft = createDrafts(log, linkPreviews);
  const rich = createRichSending(log);
  const wordsSaid = bounded<string, true>(MOST_SAID);

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
        const said = withNameUnlessOwn(bot, part, options);
        const asRich = richMessage(part, nameIn(said, part, options));
        const given = { ...options, linkPreviews, wordsSaid, rich, asRich };
        const { result, failure } = await sendBy(bot, to, said, given);
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
      const said = withNameUnlessOwn(bot, part, options);
      const request = editRequest(to, number, said, linkPreviews);
      const sent: SendResult = { kind: 'sent', platformMessageId };
      const asRich = richMessage(part, nameIn(said, part, options));
      const shown = asRich && (await rich.edit(bot.api, request, asRich, options.signal));
      if (shown) {
        return 'failure' in shown && !isNotModified(shown.failure) ? sendResult(shown.failure) : sent;
      }
      const done = await bot.api.send(request, (raw, each, ended) => raw.editMessageText(each, ended), {
        signal: options.signal,
      });
      if ('failure' in done) return isNotModified(done.failure) ? sent : sendResult(done.failure);
      const { answer } = done;
      const text: unknown = typeof answer === 'object' && 'text' in answer ? answer.text : undefined;
      if (typeof text === 'string' && visible(text) === visible(done.request.text)) return sent;
      return { kind: 'refused', reason: 'Telegram shows another text than it was given' };
    },

    async remove(to, platformMessageId, { signal }) {
      const author = authorOf(platformMessageId);
      if (author === null) return;
      const { api } = author.bot;
      const request = { chat_id: chatId(to.address), message_id: author.number };
      try {
        await api.call((raw, ended) => raw.deleteMessage(request, ended), { signal, chat: to.address });
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
      const thread = topicOf(to);
      const topic = thread === null ? {} : { message_thread_id: thread };
      const request = { chat_id: chatId(to.address), action: 'typing' as const, ...topic };
      try {
        await bot.api.call((raw, ended) => raw.sendChatAction(request, ended), { chat: to.address });
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

/** The name that stands before a part's text; null where none does. */
function nameIn(said: Part, part: Part, { appearance }: Speaker): string | null {
  return said === part ? null : (appearance?.name ?? null);
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
  {
    replyTo,
    signal,
    key,
    linkPreviews,
    wordsSaid,
    rich,
    asRich,
  }: Pick<SendOptions, 'replyTo' | 'signal' | 'key'> & {
    linkPreviews: boolean;
    wordsSaid: Said;
    rich: RichSending;
    asRich: RichMessage | null;
  },
): Promise<Sent> {
  const answered = replyTo === null ? null : numberFor(bot.our(), to.address, replyTo);
  let request = sendRequest(to, words, {
    linkPreviews,
    replyTo: answered === null ? null : String(answered),
  });
  const shown = asRich && (await rich.send(bot.api, request, asRich, signal));
  if (shown) return sentBy(bot, shown);
  if (file === undefined) return sendText(bot, request, signal);

  const read = await readOutgoing(file, UPLOADS, signal);
  if (read.kind !== 'read') return { result: read };
  const { bytes } = read;
  // The text goes below the file. One that is too long for that goes before it, as a message of its own.
  if (words.text.length > MAX_CAPTION) {
    if (!wordsSaid.get(key)) {
      const said = await sendText(bot, request, signal);
      if (said.result.kind !== 'sent') return said;
      // If the file does not get through now, only the file goes once more; after a crash both do.
      wordsSaid.set(key, true);
    }
    request = sendRequest(to, { text: '', marks: [] }, { linkPreviews });
  }
  if (bytes.length === 0) {
    return sendText(bot, { ...request, text: withEmptyNote(request.text, file) }, signal);
  }
  return sendFile(bot, request, file, { bytes, signal });
}

/** As what it is, where Telegram takes it so, else as a document. */
async function sendFile(
  bot: Bot,
  request: SendRequest,
  file: OutgoingFile,
  { bytes, signal }: { bytes: Buffer; signal: AbortSignal },
): Promise<Sent> {
  const limits = { signal, bytes: bytes.length, mostText: MAX_CAPTION };
  // Each upload needs its own.
  const input = () => new InputFile(bytes, formName(file.name));
  if (isVoiceNote(file)) {
    const spoken = await bot.api.send(
      request,
      (raw, each, ended) => raw.sendVoice(voiceRequest(each, bytes, file), ended),
      limits,
    );
    if (!('failure' in spoken)) return sentBy(bot, spoken);
    // Who wants no voice notes wants them of no other bot either; but the words below one are not lost with it.
    const isWordless = request.text.trim() === '';
    if (isUnwanted(spoken.failure) && isWordless) return { result: sendResult(spoken.failure) };
    if (!isKindRefused(spoken.failure)) return sentBy(bot, spoken);
  } else if (isPhoto(bytes)) {
    const shown = await bot.api.send(
      request,
      (raw, each, ended) => raw.sendPhoto({ ...captionRequest(each), photo: input() }, ended),
      limits,
    );
    if (!('failure' in shown && isKindRefused(shown.failure))) return sentBy(bot, shown);
  }
  const asDocument = await bot.api.send(
    request,
    (raw, each, ended) => raw.sendDocument({ ...captionRequest(each), document: input() }, ended),
    limits,
  );
  return sentBy(bot, asDocument);
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
