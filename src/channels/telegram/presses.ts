/** Answers presses of our buttons, which ends their spinner, and removes the buttons. Best effort. */
import type { CallbackQuery } from 'grammy/types';
import type { ChoiceOutcome, Reception } from '../../core/channel.js';
import type { Log } from '../../core/log.js';
import { PRESS_ANSWERS } from '../kit/outgoing.js';
import { type Bot, pressIdOf } from './bots.js';
import { readUpdate } from './update.js';

/** A press that takes longer to answer does not delay a stop, either. */
const PRESS_ANSWER_MS = 10_000;

export function createPresses(log: Log) {
  const underWay = new Set<Promise<void>>();

  async function answer(bot: Bot, press: CallbackQuery, outcome: ChoiceOutcome | undefined): Promise<void> {
    const { id, message } = press;
    const text = outcome === undefined ? null : PRESS_ANSWERS[outcome];
    const limits = { ms: PRESS_ANSWER_MS };
    const answered = { callback_query_id: id, ...(text === null ? {} : { text }) };
    await quietly(bot, () => bot.api.call((raw, ended) => raw.answerCallbackQuery(answered, ended), limits));
    if (message === undefined || outcome === undefined || outcome === 'not yours') return;
    const which = { chat_id: message.chat.id, message_id: message.message_id };
    const there = { ...limits, chat: String(message.chat.id) };
    await quietly(bot, () => bot.api.call((raw, ended) => raw.editMessageReplyMarkup(which, ended), there));
  }

  async function quietly(bot: Bot, call: () => Promise<unknown>): Promise<void> {
    try {
      await call();
    } catch (error) {
      const { reason } = bot.api.failure(error);
      log.debug({ ...bot.fields, reason }, 'could not answer the press of a button');
    }
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
    /** Resolves when all are answered. */
    async idle(): Promise<void> {
      await Promise.all(underWay);
    },
  };
}
