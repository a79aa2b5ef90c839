/** Drafts, edits, deletions, reactions and answers to presses, each by the bot that sent the message or knows it. */
import { createHash } from 'node:crypto';
import type { CallbackQuery, ReactionTypeEmoji } from 'grammy/types';
import { LRUCache } from 'lru-cache';
import type { Channel, ChoiceOutcome, Reception, SendResult } from '../../core/channel.js';
import type { Log } from '../../core/log.js';
import { PRESS_ANSWERS } from '../kit/outgoing.js';
import { type Bot, numberFor, pressIdOf, readMessageId } from './bots.js';
import { type CallFailure, isLockedOut, isMethodUnknown, isNotModified, sendResult } from './failure.js';
import { chatId, sendRequest } from './outbound.js';
import { isAbsent, isElsewhere, type Senders, speakerOf, withNameUnlessOwn } from './send.js';
import { readUpdate } from './update.js';

const MOST_CHATS = 10_000;

type TelegramEmoji = ReactionTypeEmoji['emoji'];

/** https://core.telegram.org/bots/api#reactiontypeemoji; a group may allow fewer. */
export const REACTIONS: readonly TelegramEmoji[] = [
  ...(['👍', '👎', '❤', '🔥', '🥰', '👏', '😁', '🤔', '🤯', '😱', '🤬', '😢', '🎉', '🤩', '🤮'] as const),
  ...(['💩', '🙏', '👌', '🕊', '🤡', '🥱', '🥴', '😍', '🐳', '❤‍🔥', '🌚', '🌭', '💯', '🤣', '⚡'] as const),
  ...(['🍌', '🏆', '💔', '🤨', '😐', '🍓', '🍾', '💋', '🖕', '😈', '😴', '😭', '🤓', '👻', '👨‍💻'] as const),
  ...(['👀', '🎃', '🙈', '😇', '😨', '🤝', '✍', '🤗', '🫡', '🎅', '🎄', '☃', '💅', '🤪', '🗿'] as const),
  ...(['🆒', '💘', '🙉', '🦄', '😘', '💊', '🙊', '😎', '👾', '🤷‍♂', '🤷', '🤷‍♀', '😡'] as const),
];

/** Drafts show in a private chat what a persona is writing, with a button to stop it. */
export function createDrafts({ bots, linkPreviews, log }: Senders) {
  const withoutDrafts = new LRUCache<string, true>({ max: MOST_CHATS });
  let areKnownToServer = true;

  const preview: NonNullable<Channel['preview']> = async (to, part, options) => {
    if (to.kind !== 'direct' || part.file !== undefined) return false;
    for (const bot of bots.senders(to, speakerOf(options))) {
      const where = `${bot.id}/${to.address}`;
      const { chat_id, ...said } = sendRequest(to, withNameUnlessOwn(bot, part, options), linkPreviews);
      if (typeof chat_id !== 'number' || !areKnownToServer || withoutDrafts.has(where)) return false;
      const request = { chat_id, draft_id: draftIdOf(options.key), can_stop: true as const, ...said };
      const done = await bot.api.send(request, (raw, draft, ended) => raw.sendMessageDraft(draft, ended), {
        signal: options.signal,
      });
      if (!('failure' in done)) return true;
      const { reason, code } = done.failure;
      log.debug({ channel: 'telegram', reason }, 'could not show a draft');
      // A rate limit or an outage passes, and the next draft makes up for this one.
      if (code === null || code === 429 || code >= 500) return true;
      if (isElsewhere(bots, bot, to, done.failure)) continue;
      if (isMethodUnknown(done.failure)) areKnownToServer = false;
      else if (!isLockedOut(done.failure)) withoutDrafts.set(where, true);
      return false;
    }
    return false;
  };
  return { preview };
}

export function createChanges({ bots, linkPreviews, log }: Senders) {
  /** The bot that sent a message, and the message's number there. */
  function authorOf(platformMessageId: string): { bot: Bot; number: number } | null {
    const id = readMessageId(platformMessageId);
    const bot = id && bots.withId(id.bot);
    return id && bot ? { bot, number: id.number } : null;
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
      const asText = sendRequest({ ...to, threadId: null }, said, linkPreviews);
      const request = { ...asText, message_id: number };
      const done = await bot.api.send(request, (raw, each, ended) => raw.editMessageText(each, ended), {
        signal: options.signal,
      });
      if ('failure' in done) {
        return isNotModified(done.failure) ? { kind: 'sent', platformMessageId } : sendResult(done.failure);
      }
      const { answer } = done;
      const text: unknown = typeof answer === 'object' && 'text' in answer ? answer.text : undefined;
      if (typeof text === 'string' && visible(text) === visible(done.request.text)) {
        return { kind: 'sent', platformMessageId };
      }
      return { kind: 'refused', reason: 'Telegram shows another text than it was given' };
    },

    async remove(to, platformMessageId, { signal }) {
      const author = authorOf(platformMessageId);
      if (author === null) return false;
      const { api } = author.bot;
      const request = { chat_id: chatId(to.address), message_id: author.number };
      const limits = { signal, chat: to.address };
      const done = await api.attempt((raw, ended) => raw.deleteMessage(request, ended), limits);
      if ('answer' in done) return true;
      log.debug({ channel: 'telegram', reason: done.failure.reason }, 'could not delete a message');
      return false;
    },

    async react(to, platformMessageId, sign, { speaker, signal }) {
      const emoji = REACTIONS.find((each) => each === sign);
      if (emoji === undefined) return { kind: 'refused', reason: `Telegram has no reaction ${sign}` };
      let refused: SendResult = { kind: 'refused', reason: 'no bot of ours knows this message' };
      for (const bot of bots.senders(to, speaker)) {
        const number = numberFor(bot, to.address, platformMessageId);
        if (number === null) continue;
        const reaction = [{ type: 'emoji' as const, emoji }];
        const request = { chat_id: chatId(to.address), message_id: number, reaction };
        const limits = { signal, chat: to.address };
        const done = await bot.api.attempt((raw, ended) => raw.setMessageReaction(request, ended), limits);
        if ('answer' in done) return { kind: 'sent', platformMessageId };
        refused = sendResult(done.failure);
        if (!isAbsent(bot, done.failure)) return refused;
      }
      return refused;
    },
  } satisfies Partial<Channel>;
}

/** Any number but zero, the same for the same key. */
function draftIdOf(key: string): number {
  return createHash('sha256').update(key).digest().readUInt32BE() >>> 1 || 1;
}

/** Telegram strips invisible text: white space, and characters without a glyph. */
function visible(text: string): string {
  return text.replace(/(?:[\s\p{Cc}\p{Cf}]|\u030a|\u0333|\u033f)+/gu, '');
}

/** A press that takes longer to answer does not delay a stop, either. */
const PRESS_ANSWER_MS = 10_000;

/** Answers presses of our buttons, which ends their spinner, and removes the buttons. Best effort. */
export function createPresses(log: Log) {
  const underWay = new Set<Promise<void>>();

  async function answer(bot: Bot, press: CallbackQuery, outcome: ChoiceOutcome | undefined): Promise<void> {
    const { id, message } = press;
    const text = outcome === undefined ? null : PRESS_ANSWERS[outcome];
    const limits = { ms: PRESS_ANSWER_MS };
    const answered = { callback_query_id: id, ...(text === null ? {} : { text }) };
    note(bot, await bot.api.attempt((raw, ended) => raw.answerCallbackQuery(answered, ended), limits));
    if (message === undefined || outcome === undefined || outcome === 'not yours' || outcome === 'kept')
      return;
    const which = { chat_id: message.chat.id, message_id: message.message_id };
    const there = { ...limits, chat: String(message.chat.id) };
    note(bot, await bot.api.attempt((raw, ended) => raw.editMessageReplyMarkup(which, ended), there));
  }

  function note(bot: Bot, done: object | { failure: CallFailure }): void {
    if (!('failure' in done)) return;
    log.debug({ ...bot.fields, reason: done.failure.reason }, 'could not answer the press of a button');
  }

  return {
    /** Answers the press in an update that is already stored. Returns at once. */
    answer(bot: Bot, update: unknown, { choices }: Partial<Reception>): void {
      const press = readUpdate(update).callback_query;
      if (press === undefined) return;
      const answering = answer(bot, press, choices?.get(pressIdOf(bot, press)));
      underWay.add(answering);
      void answering.finally(() => underWay.delete(answering));
    },
    async idle(): Promise<void> {
      await Promise.all(underWay);
    },
  };
}
