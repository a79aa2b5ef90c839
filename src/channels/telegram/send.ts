/**
 * The end of the route: a message is sent by its speaker's bot. Where that bot may not write, another of ours
 * does, prefixing the speaker's name where several may speak.
 */
import { InputFile } from 'grammy/web';
import { LRUCache } from 'lru-cache';
import type {
  Channel,
  OutgoingFile,
  Part,
  Recipient,
  SendOptions,
  SendResult,
  ShownSpeaker,
} from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import type { PersonaId } from '../../core/ids.js';
import type { Log } from '../../core/log.js';
import { readOutgoing, withEmptyNote, withSpeakerName } from '../kit/outgoing.js';
import type { BotApi, Ended, RawApi } from './api.js';
import { type Bot, type Bots, messageIdOf, numberFor } from './bots.js';
import {
  type CallFailure,
  isKindRefused,
  isLockedOut,
  isNotThere,
  isUnwanted,
  sendResult,
} from './failure.js';
import { chatId, MOST_CAPTION, type SendRequest, sendRequest, topicOf } from './outbound.js';
import type { Photos } from './photos.js';

/** A send's outcome; the failure tells whether another of our bots may succeed. */
type Sent = { result: SendResult; failure?: CallFailure };

export interface Senders {
  bots: Bots;
  /** Whether Telegram's servers may fetch links in messages. */
  linkPreviews: boolean;
  clock: Clock;
  log: Log;
}

export function createSending({ bots, linkPreviews, clock, log }: Senders, photos: Photos) {
  const sendWithFile = createFileSending();

  function sendBy(bot: Bot, to: Recipient, part: Part, options: SendOptions): Promise<Sent> {
    const answered = options.replyTo === null ? null : numberFor(bot, to.address, options.replyTo);
    const request = sendRequest(to, withNameUnlessOwn(bot, part, options), linkPreviews, answered);
    if (part.file !== undefined) return sendWithFile(bot, request, part.file, options);
    return sendText(bot, request, options.signal);
  }

  return {
    async send(to, part, options) {
      const begunAt = clock.now();
      let refused: SendResult | null = null;
      for (const bot of bots.senders(to, speakerOf(options))) {
        const { result, failure } = await sendBy(bot, to, part, options);
        if (result.kind === 'sent') {
          bots.sent(to.address, result.platformMessageId, begunAt);
          void photos.refresh(bot, to.address);
        }
        if (failure === undefined || !isElsewhere(bots, bot, to, failure)) return result;
        // The main bot's error says most.
        if (refused === null || bot.personaId === null) refused = result;
        if (bots.personas.length === 0) continue;
        const fields = { ...bot.fields, reason: failure.reason };
        log.debug(fields, 'a bot may not speak in a chat; trying the next one');
      }
      return refused ?? { kind: 'refused', reason: 'no bot of ours is there' };
    },

    async setTyping(to: Recipient, personaId?: PersonaId) {
      const [bot = bots.main] = bots.senders(to, personaId);
      const thread = topicOf(to);
      const topic = thread === null ? {} : { message_thread_id: thread };
      const request = { chat_id: chatId(to.address), action: 'typing' as const, ...topic };
      const done = await bot.api.attempt((raw, ended) => raw.sendChatAction(request, ended), {
        chat: to.address,
      });
      if ('answer' in done) return;
      isElsewhere(bots, bot, to, done.failure);
      log.debug({ channel: 'telegram', reason: done.failure.reason }, 'could not show the typing indicator');
    },
  } satisfies Partial<Channel>;
}

async function sendText(bot: Bot, request: SendRequest, signal: AbortSignal): Promise<Sent> {
  return outcomeOf(
    bot,
    await bot.api.send(request, (raw, each, ended) => raw.sendMessage(each, ended), { signal }),
  );
}

function outcomeOf(bot: Bot, done: { answer: { message_id?: unknown } } | { failure: CallFailure }): Sent {
  if ('failure' in done) return { result: sendResult(done.failure), failure: done.failure };
  const id = done.answer?.message_id;
  if (typeof id === 'number') return { result: { kind: 'sent', platformMessageId: messageIdOf(bot, id) } };
  const reason = 'Telegram answered without a message';
  return { result: { kind: 'unreachable', reason, taken: 'unknown' } };
}

/**
 * Whether a bot is not in the chat, or may not write there. If a persona's bot has a broken token, the main one
 * speaks for it; nobody stands in for the main one.
 */
export function isAbsent({ personaId }: Bot, failure: CallFailure): boolean {
  return isNotThere(failure) || (personaId !== null && isLockedOut(failure));
}

/** Whether another bot may succeed; if so, this one is marked as absent. */
export function isElsewhere(bots: Bots, bot: Bot, to: Recipient, failure: CallFailure): boolean {
  const absent = isAbsent(bot, failure);
  if (absent) bots.absent(bot, to.address);
  return absent;
}

export function speakerOf({ speaker, appearance }: ShownSpeaker): PersonaId | undefined {
  return speaker ?? appearance?.personaId;
}

/** A persona's own bot already has its name; another bot puts the name before the text, if shown. */
export function withNameUnlessOwn(bot: Bot, part: Part, speaker: ShownSpeaker): Part {
  if (speaker.appearance === undefined) return part;
  const isOwn = bot.personaId !== null && bot.personaId === speakerOf(speaker);
  return isOwn ? part : withSpeakerName(part, speaker);
}

/** For how many messages it is remembered that their text went out before their file. */
const MOST_SAID = 1_000;
/** Telegram's upload limit for bots. */
const UPLOADS = { bytes: 50_000_000, platform: 'Telegram' };
const MOST_PHOTO_BYTES = 10_000_000;

/** The text becomes the file's caption. If too long for that, it goes first, as a message of its own. */
function createFileSending() {
  const wordsSaid = new LRUCache<string, true>({ max: MOST_SAID });

  return async (
    bot: Bot,
    request: SendRequest,
    file: OutgoingFile,
    { key, signal }: SendOptions,
  ): Promise<Sent> => {
    const read = await readOutgoing(file, UPLOADS, signal);
    if (read.kind !== 'read') return { result: read };
    let below = request;
    if (request.text.length > MOST_CAPTION) {
      if (!wordsSaid.has(key)) {
        const said = await sendText(bot, request, signal);
        if (said.result.kind !== 'sent') return said;
        // If the file fails now, a retry sends only the file; after a crash it sends both.
        wordsSaid.set(key, true);
      }
      const { entities: _e, reply_markup: _m, reply_parameters: _r, ...where } = request;
      below = { ...where, text: '' };
    }
    if (read.bytes.length === 0) {
      return sendText(bot, { ...below, text: withEmptyNote(below.text, file) }, signal);
    }
    return outcomeOf(bot, await sendFile(bot.api, below, file, read.bytes, signal));
  };
}

/** In its own kind where Telegram accepts that (voice note, photo), else as a document. Never rejects. */
async function sendFile(
  api: BotApi,
  request: SendRequest,
  file: OutgoingFile,
  bytes: Buffer,
  signal: AbortSignal,
) {
  const limits = { signal, bytes: bytes.length, mostText: MOST_CAPTION };
  const upload = (run: (raw: RawApi, said: Caption, ended: Ended) => Promise<{ message_id: number }>) =>
    api.send(request, (raw, each, ended) => run(raw, captionRequest(each), ended), limits);
  // Each upload needs its own.
  const input = (name = formName(file.name)) => new InputFile(bytes, name);
  if (file.voiceSeconds !== undefined) {
    const duration = Math.max(1, Math.round(file.voiceSeconds));
    const spoken = await upload((raw, said, ended) =>
      raw.sendVoice({ ...said, voice: input(file.name), duration }, ended),
    );
    if (!('failure' in spoken) || !isKindRefused(spoken.failure)) return spoken;
    // A receiver who blocks voice notes blocks them from every bot; but a caption must not be lost.
    if (isUnwanted(spoken.failure) && request.text.trim() === '') return spoken;
  } else if (isPhoto(bytes)) {
    const shown = await upload((raw, said, ended) => raw.sendPhoto({ ...said, photo: input() }, ended));
    if (!('failure' in shown && isKindRefused(shown.failure))) return shown;
  }
  return upload((raw, said, ended) => raw.sendDocument({ ...said, document: input() }, ended));
}

type Caption = ReturnType<typeof captionRequest>;

/** By its first bytes, whatever its name. An animated WebP would lose its motion. */
function isPhoto(bytes: Buffer): boolean {
  const head = bytes.toString('latin1', 0, 16);
  const isWebp = head.startsWith('RIFF') && head.startsWith('WEBP', 8);
  const isAnimated = head.startsWith('VP8X', 12) && ((bytes[20] ?? 0) & 0x02) !== 0;
  const isPicture =
    head.startsWith('\xff\xd8\xff') || head.startsWith('\x89PNG\r\n') || (isWebp && !isAnimated);
  return isPicture && bytes.length <= MOST_PHOTO_BYTES;
}

/** The payload without the file: the text is its caption, for which Telegram shows no link previews. */
function captionRequest({ text, entities, link_preview_options: _, ...rest }: SendRequest) {
  if (text.trim() === '') return rest;
  return { ...rest, caption: text, ...(entities && { caption_entities: entities }) };
}

/** A file's name for a form: Telegram decodes percent signs there, and cuts at semicolons. */
function formName(name: string): string {
  return name.trim().replace(/[\p{Cc}%;"\\]/gu, encodeURIComponent);
}
