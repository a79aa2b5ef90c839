/**
 * The end of the route: a message is sent by its speaker's bot. Where that bot may not write, another of ours
 * does, prefixing the speaker's name where several may speak.
 */
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
import { withSpeakerName } from '../kit/outgoing.js';
import { type Bot, type Bots, messageIdOf, numberFor } from './bots.js';
import { type CallFailure, isLockedOut, isNotThere, sendResult } from './failure.js';
import { chatId, type SendRequest, sendRequest, topicOf } from './outbound.js';

/** A send's outcome; the failure tells whether another of our bots may succeed. */
export type Sent = { result: SendResult; failure?: CallFailure };

export interface Senders {
  bots: Bots;
  /** Whether Telegram's servers may fetch links in messages. */
  linkPreviews: boolean;
  clock: Clock;
  log: Log;
}

/** Sends a request together with a file. */
export type SendWithFile = (
  bot: Bot,
  request: SendRequest,
  file: OutgoingFile,
  options: SendOptions,
) => Promise<Sent>;

export function createSending({ bots, linkPreviews, clock, log }: Senders, sendWithFile: SendWithFile) {
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
        if (result.kind === 'sent') bots.sent(to.address, result.platformMessageId, begunAt);
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

export async function sendText(bot: Bot, request: SendRequest, signal: AbortSignal): Promise<Sent> {
  return outcomeOf(
    bot,
    await bot.api.send(request, (raw, each, ended) => raw.sendMessage(each, ended), { signal }),
  );
}

export function outcomeOf(
  bot: Bot,
  done: { answer: { message_id?: unknown } } | { failure: CallFailure },
): Sent {
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
