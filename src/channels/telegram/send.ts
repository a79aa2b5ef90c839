/**
 * The end of the route: messages, edits, drafts and reactions, each by its speaker's bot. Where that bot may
 * not write, another of ours does, prefixing the speaker's name where several may speak.
 */
import { createHash } from 'node:crypto';
import type { ReactionTypeEmoji } from 'grammy/types';
import { LRUCache } from 'lru-cache';
import type { Channel, Part, Recipient, SendOptions, SendResult, ShownSpeaker } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import type { PersonaId } from '../../core/ids.js';
import type { Log } from '../../core/log.js';
import { readOutgoing, withEmptyNote, withSpeakerName } from '../kit/outgoing.js';
import { type Bot, type Bots, logFields, messageIdOf, numberFor, readMessageId } from './bots.js';
import {
  type CallFailure,
  isLockedOut,
  isMethodUnknown,
  isNotModified,
  isNotThere,
  sendResult,
} from './failure.js';
import { sendFile } from './files.js';
import { chatId, MOST_CAPTION, type SendRequest, sendRequest, topicOf } from './outbound.js';
import type { DeliveryCheck } from './was-delivered.js';

/** For how many messages it is remembered that their text went out before their file. */
const MOST_SAID = 1_000;
const MOST_CHATS = 10_000;
/** Telegram's upload limit for bots. */
const UPLOADS = { bytes: 50_000_000, platform: 'Telegram' };

type TelegramEmoji = ReactionTypeEmoji['emoji'];

/** https://core.telegram.org/bots/api#reactiontypeemoji; a group may allow fewer. */
export const REACTIONS: readonly TelegramEmoji[] = [
  ...(['👍', '👎', '❤', '🔥', '🥰', '👏', '😁', '🤔', '🤯', '😱', '🤬', '😢', '🎉', '🤩', '🤮'] as const),
  ...(['💩', '🙏', '👌', '🕊', '🤡', '🥱', '🥴', '😍', '🐳', '❤‍🔥', '🌚', '🌭', '💯', '🤣', '⚡'] as const),
  ...(['🍌', '🏆', '💔', '🤨', '😐', '🍓', '🍾', '💋', '🖕', '😈', '😴', '😭', '🤓', '👻', '👨‍💻'] as const),
  ...(['👀', '🎃', '🙈', '😇', '😨', '🤝', '✍', '🤗', '🫡', '🎅', '🎄', '☃', '💅', '🤪', '🗿'] as const),
  ...(['🆒', '💘', '🙉', '🦄', '😘', '💊', '🙊', '😎', '👾', '🤷‍♂', '🤷', '🤷‍♀', '😡'] as const),
];

/** A send's outcome; the failure tells whether another of our bots may succeed. */
type Sent = { result: SendResult; failure?: CallFailure };

interface Senders {
  bots: Bots;
  delivered: DeliveryCheck;
  /** Whether Telegram's servers may fetch links in messages. */
  linkPreviews: boolean;
  clock: Clock;
  log: Log;
}

export function createSending(senders: Senders) {
  const { bots, delivered, clock, log } = senders;
  const wordsSaid = new LRUCache<string, true>({ max: MOST_SAID });
  return {
    async send(to, part, options) {
      const begunAt = clock.now();
      let refused: SendResult | null = null;
      for (const bot of bots.senders(to, speakerOf(options))) {
        const { result, failure } = await sendBy(bot, to, part, options, senders, wordsSaid);
        if (result.kind === 'sent') delivered.sent(to.address, result.platformMessageId, begunAt);
        if (failure === undefined || !isElsewhere(bots, bot, to, failure)) return result;
        // The main bot's error says most.
        if (refused === null || bot.personaId === null) refused = result;
        if (bots.personas.length === 0) continue;
        const fields = { ...logFields(bot.personaId), reason: failure.reason };
        log.debug(fields, 'a bot may not speak in a chat; trying the next one');
      }
      return refused ?? { kind: 'refused', reason: 'no bot of ours is there' };
    },

    async setTyping(to: Recipient, personaId?: PersonaId) {
      const [bot = bots.main] = bots.senders(to, personaId);
      const thread = topicOf(to);
      const topic = thread === null ? {} : { message_thread_id: thread };
      const request = { chat_id: chatId(to.address), action: 'typing' as const, ...topic };
      try {
        await bot.api.call((raw, ended) => raw.sendChatAction(request, ended), { chat: to.address });
      } catch (error) {
        const failure = bot.api.failure(error);
        isElsewhere(bots, bot, to, failure);
        log.debug({ channel: 'telegram', reason: failure.reason }, 'could not show the typing indicator');
      }
    },
  } satisfies Partial<Channel>;
}

async function sendBy(
  bot: Bot,
  to: Recipient,
  part: Part,
  options: SendOptions,
  { linkPreviews }: Senders,
  wordsSaid: LRUCache<string, true>,
): Promise<Sent> {
  const { replyTo, key, signal } = options;
  const { file } = part;
  const answered = replyTo === null ? null : numberFor(bot.our(), to.address, replyTo);
  const request = sendRequest(to, withNameUnlessOwn(bot, part, options), {
    linkPreviews,
    replyTo: answered === null ? null : String(answered),
  });
  if (file === undefined) return sendText(bot, request, signal);
  const read = await readOutgoing(file, UPLOADS, signal);
  if (read.kind !== 'read') return { result: read };
  const { bytes } = read;
  let below = request;
  // The text becomes the file's caption. If too long for that, it goes first, as a message of its own.
  if (request.text.length > MOST_CAPTION) {
    if (!wordsSaid.has(key)) {
      const said = await sendText(bot, request, signal);
      if (said.result.kind !== 'sent') return said;
      // If the file fails now, a retry sends only the file; after a crash it sends both.
      wordsSaid.set(key, true);
    }
    below = sendRequest(to, { text: '', marks: [] }, { linkPreviews });
  }
  if (bytes.length === 0) {
    return sendText(bot, { ...below, text: withEmptyNote(below.text, file) }, signal);
  }
  return outcomeOf(bot, await sendFile(bot.api, below, file, bytes, signal));
}

/** Drafts show in a private chat what a persona is writing, with a button to stop it. */
export function createDrafts({ bots, linkPreviews, log }: Senders) {
  const withoutDrafts = new LRUCache<string, true>({ max: MOST_CHATS });
  let areKnownToServer = true;

  /** Whether this bot can show drafts in that chat; the failure, if another bot may. Never throws. */
  async function show(
    bot: Bot,
    to: Recipient,
    part: Part,
    { key, signal }: SendOptions,
  ): Promise<boolean | CallFailure> {
    const where = `${bot.our().id}/${to.address}`;
    const { chat_id, ...said } = sendRequest(to, part, { linkPreviews });
    if (to.kind !== 'direct' || typeof chat_id !== 'number' || part.file !== undefined) return false;
    if (!areKnownToServer || withoutDrafts.has(where)) return false;
    const request = { chat_id, draft_id: draftIdOf(key), can_stop: true as const, ...said };
    const done = await bot.api.send(request, (raw, draft, ended) => raw.sendMessageDraft(draft, ended), {
      signal,
    });
    if (!('failure' in done)) return true;
    const { failure } = done;
    const { reason, code } = failure;
    log.debug({ channel: 'telegram', reason }, 'could not show a draft');
    // A rate limit or an outage passes, and the next draft makes up for this one.
    if (code === null || code === 429 || code >= 500) return true;
    if (isMethodUnknown(failure)) areKnownToServer = false;
    else if (isLockedOut(failure) || isNotThere(failure)) return failure;
    else withoutDrafts.set(where, true);
    return false;
  }

  const preview: NonNullable<Channel['preview']> = async (to, part, options) => {
    for (const bot of bots.senders(to, speakerOf(options))) {
      const shown = await show(bot, to, withNameUnlessOwn(bot, part, options), options);
      if (typeof shown === 'boolean') return shown;
      if (!isElsewhere(bots, bot, to, shown)) return false;
    }
    return false;
  };
  return { preview };
}

/** Edits, each by the bot that sent the message or knows it. */
export function createChanges({ bots, linkPreviews, log }: Senders) {
  /** The bot that sent a message, and the message's number there. */
  function authorOf(platformMessageId: string): { bot: Bot; number: number } | null {
    const id = readMessageId(platformMessageId);
    const bot = id === null ? undefined : bots.withId(id.bot);
    return id === null || bot === undefined ? null : { bot, number: id.number };
  }

  return {
    reactions: REACTIONS,

    async edit(to, platformMessageId, part, options) {
      const author = authorOf(platformMessageId);
      if (author === null) return { kind: 'refused', reason: 'no bot of ours has sent this message' };
      if (part.file !== undefined) return { kind: 'refused', reason: 'a message with a file is not edited' };
      const { bot, number } = author;
      const said = withNameUnlessOwn(bot, part, options);
      // Without buttons, existing ones are removed. A message stays in its topic, so none is named.
      const asText = sendRequest({ ...to, threadId: null }, said, { linkPreviews });
      const request = { ...asText, message_id: number };
      const done = await bot.api.send(request, (raw, each, ended) => raw.editMessageText(each, ended), {
        signal: options.signal,
      });
      if ('failure' in done && !isNotModified(done.failure)) return sendResult(done.failure);
      if ('failure' in done) return { kind: 'sent', platformMessageId };
      const { answer } = done;
      const text: unknown = typeof answer === 'object' && 'text' in answer ? answer.text : undefined;
      if (typeof text === 'string' && visible(text) === visible(done.request.text)) {
        return { kind: 'sent', platformMessageId };
      }
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
        log.debug({ channel: 'telegram', reason: api.failure(error).reason }, 'could not delete a message');
      }
    },

    async react(to, platformMessageId, sign, { speaker, signal }) {
      const emoji = REACTIONS.find((each) => each === sign);
      if (emoji === undefined) return { kind: 'refused', reason: `Telegram has no reaction ${sign}` };
      let refused: SendResult = { kind: 'refused', reason: 'no bot of ours knows this message' };
      for (const bot of bots.senders(to, speaker)) {
        const number = numberFor(bot.our(), to.address, platformMessageId);
        if (number === null) continue;
        const reaction = [{ type: 'emoji' as const, emoji }];
        const request = { chat_id: chatId(to.address), message_id: number, reaction };
        try {
          const limits = { signal, chat: to.address };
          await bot.api.call((raw, ended) => raw.setMessageReaction(request, ended), limits);
          return { kind: 'sent', platformMessageId };
        } catch (error) {
          const failure = bot.api.failure(error);
          refused = sendResult(failure);
          if (!isNotThere(failure) && !(bot.personaId !== null && isLockedOut(failure))) return refused;
        }
      }
      return refused;
    },
  } satisfies Partial<Channel>;
}

/** Whether another bot may succeed; if so, this one is marked as absent. */
function isElsewhere(bots: Bots, bot: Bot, to: Recipient, failure: CallFailure): boolean {
  // If a persona's bot has a broken token, the main one speaks for it; nobody stands in for the main one.
  const lockedOut = bot.personaId !== null && isLockedOut(failure);
  if (!lockedOut && !isNotThere(failure)) return false;
  bots.absent(bot, to.address);
  return true;
}

function speakerOf({ speaker, appearance }: ShownSpeaker): PersonaId | undefined {
  return speaker ?? appearance?.personaId;
}

/** A persona's own bot already has its name; another bot puts the name before the text, if shown. */
function withNameUnlessOwn(bot: Bot, part: Part, speaker: ShownSpeaker): Part {
  if (speaker.appearance === undefined) return part;
  const isOwn = bot.personaId !== null && bot.personaId === speakerOf(speaker);
  return isOwn ? part : withSpeakerName(part, speaker);
}

async function sendText(bot: Bot, request: SendRequest, signal: AbortSignal): Promise<Sent> {
  const limits = { signal };
  return outcomeOf(
    bot,
    await bot.api.send(request, (raw, each, ended) => raw.sendMessage(each, ended), limits),
  );
}

function outcomeOf(bot: Bot, done: { answer: { message_id?: unknown } } | { failure: CallFailure }): Sent {
  if ('failure' in done) return { result: sendResult(done.failure), failure: done.failure };
  const id = done.answer?.message_id;
  if (typeof id === 'number') {
    return { result: { kind: 'sent', platformMessageId: messageIdOf(bot.our(), id) } };
  }
  const reason = 'Telegram answered without a message';
  return { result: { kind: 'unreachable', reason, taken: 'unknown' } };
}

/** Any number but zero, the same for the same key. */
function draftIdOf(key: string): number {
  return createHash('sha256').update(key).digest().readUInt32BE() >>> 1 || 1;
}

/** Telegram strips invisible text: white space, and characters without a glyph. */
function visible(text: string): string {
  return text.replace(/(?:[\s\p{Cc}\p{Cf}]|\u030a|\u0333|\u033f)+/gu, '');
}
