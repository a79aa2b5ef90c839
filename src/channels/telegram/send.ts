/**
 * Where the route ends: what goes out, sent by the bot whose words it is. Where that bot is not allowed to, another of
 * ours sends it, with the speaker's name before the text where several may speak.
 */
import type { Channel, OutgoingFile, Part, Recipient, SendOptions, SendResult } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import type { PersonaId } from '../../core/ids.js';
import type { Log } from '../../core/log.js';
import { bounded } from '../kit/bounded.js';
import { readOutgoing, withEmptyNote, withSpeakerName } from '../kit/outgoing.js';
import { type Bot, type Bots, logFields } from './bots.js';
import { createDrafts } from './drafts.js';
import { type Failure, isLockedOut, isNotThere, sendResult } from './failure.js';
import { messageIdOf, type Newest, numberFor } from './message-id.js';
import { chatId, MAX_CAPTION, type SendRequest, sendRequest, topicOf } from './outbound.js';
import { sendFile } from './send-file.js';

/** Of how many messages it is remembered that their words went out before their file. */
const MOST_SAID = 1_000;

/** What Telegram takes from bots. */
const UPLOADS = { bytes: 50_000_000, platform: 'Telegram' };

type Speaker = Pick<SendOptions, 'speaker' | 'appearance' | 'leads'>;

/** What became of a message; with the failure, by which it is seen whether another of our bots may do better. */
type Sent = { result: SendResult; failure?: Failure };

export function createSending({
  bots,
  newest,
  linkPreviews,
  clock,
  log,
}: {
  bots: Bots;
  newest: Newest;
  linkPreviews: boolean;
  clock: Clock;
  log: Log;
}): Required<Pick<Channel, 'send' | 'preview' | 'setTyping'>> {
  const showDraft = createDrafts(log, linkPreviews);
  const wordsSaid = bounded<string, true>(MOST_SAID);

  /** Whether another bot may do better; then this one is remembered as absent. */
  function isElsewhere(bot: Bot, to: Recipient, failure: Failure): boolean {
    // Without a persona's bot that has a broken token, the main one speaks for it; without the main one nobody does.
    const lockedOut = bot.personaId !== null && isLockedOut(failure);
    if (!lockedOut && !isNotThere(failure)) return false;
    bots.absent(bot, to.address);
    return true;
  }

  /** One message, by this bot. */
  async function sendBy(bot: Bot, to: Recipient, part: Part, options: SendOptions): Promise<Sent> {
    const { replyTo, signal } = options;
    const said = withNameUnlessOwn(bot, part, options);
    const answered = replyTo === null ? null : numberFor(bot.our(), to.address, replyTo);
    const request = sendRequest(to, said, {
      linkPreviews,
      replyTo: answered === null ? null : String(answered),
    });
    if (part.file === undefined) return sendText(bot, request, signal);
    return sendWithFile(bot, to, { request, file: part.file }, options);
  }

  async function sendWithFile(
    bot: Bot,
    to: Recipient,
    { request, file }: { request: SendRequest; file: OutgoingFile },
    { key, signal }: SendOptions,
  ): Promise<Sent> {
    const read = await readOutgoing(file, UPLOADS, signal);
    if (read.kind !== 'read') return { result: read };
    const { bytes } = read;
    let below = request;
    // The text goes below the file. One that is too long for that goes before it, as a message of its own.
    if (request.text.length > MAX_CAPTION) {
      if (!wordsSaid.get(key)) {
        const said = await sendText(bot, request, signal);
        if (said.result.kind !== 'sent') return said;
        // If the file does not get through now, only the file goes once more; after a crash both do.
        wordsSaid.set(key, true);
      }
      below = sendRequest(to, { text: '', marks: [] }, { linkPreviews });
    }
    if (bytes.length === 0) {
      return sendText(bot, { ...below, text: withEmptyNote(below.text, file) }, signal);
    }
    return sentBy(bot, await sendFile(bot.api, below, file, { bytes, signal }));
  }

  return {
    async send(to, part, options) {
      const begunAt = clock.now();
      let refused: SendResult | null = null;
      for (const bot of bots.senders(to, speakerOf(options))) {
        const { result, failure } = await sendBy(bot, to, part, options);
        if (result.kind === 'sent') newest.sent(to.address, result.platformMessageId, begunAt);
        if (failure === undefined || !isElsewhere(bot, to, failure)) return result;
        // What the main bot was told says most.
        if (refused === null || bot.personaId === null) refused = result;
        if (bots.personas.length === 0) continue;
        const fields = { ...logFields(bot.personaId), reason: failure.reason };
        log.debug(fields, 'a bot is not allowed to speak in a chat');
      }
      return refused ?? { kind: 'refused', reason: 'no bot of ours is there' };
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

/** A persona's own bot has its name already; another bot puts the name before the text, where it is to be seen. */
export function withNameUnlessOwn(bot: Bot, part: Part, speaker: Speaker): Part {
  if (speaker.appearance === undefined) return part;
  const isOwn = bot.personaId !== null && bot.personaId === speakerOf(speaker);
  return isOwn ? part : withSpeakerName(part, speaker);
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
