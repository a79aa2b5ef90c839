/**
 * What somebody is told who pressed a button below a message of ours. Until a press is answered,
 * the button looks as if it were working; so it is answered as soon as it is stored, and then the buttons are taken away.
 */
import type { ChoiceOutcome, Reception } from '../../core/channel.js';
import type { Log } from '../../core/log.js';
import { PRESS_ANSWERS } from '../kit/outgoing.js';
import { type Bot, logFields } from './bots.js';
import { pressIdOf } from './message-id.js';
import { type Press, readUpdate } from './update.js';

/** A press that is not answered within this is not waited for at a stop, either. */
const ANSWER_MS = 10_000;

export type Presses = ReturnType<typeof createPresses>;

export function createPresses(log: Log) {
  const underWay = new Set<Promise<void>>();

  /** Best effort: what is lost of it costs whoever pressed a moment. */
  async function quietly(bot: Bot, call: Promise<unknown>): Promise<void> {
    try {
      await call;
    } catch (error) {
      const { reason } = bot.api.failure(error);
      log.debug({ ...logFields(bot.personaId), reason }, 'whoever pressed a button could not be answered');
    }
  }

  async function answer(bot: Bot, press: Press, became: ChoiceOutcome | undefined): Promise<void> {
    const { id, message } = press;
    const text = became === undefined ? null : PRESS_ANSWERS[became];
    const told = { callback_query_id: id, ...(text === null ? {} : { text }) };
    const { api } = bot;
    const limits = { ms: ANSWER_MS };
    await quietly(
      bot,
      api.call((raw, ended) => raw.answerCallbackQuery(told, ended), limits),
    );
    if (message === undefined || became === undefined || became === 'not yours') return;
    const which = { chat_id: message.chat.id, message_id: message.message_id };
    await quietly(
      bot,
      api.call((raw, ended) => raw.editMessageReplyMarkup(which, ended), {
        ...limits,
        chat: String(message.chat.id),
      }),
    );
  }

  return {
    /** Answers every press among the updates, which are stored. Returns at once. */
    answer(bot: Bot, updates: readonly unknown[], { choices }: Pick<Reception, 'choices'>): void {
      for (const update of updates) {
        const press = readUpdate(update)?.callback_query;
        if (press === undefined) continue;
        const answering = answer(bot, press, choices?.get(pressIdOf(bot.our(), press)));
        underWay.add(answering);
        void answering.finally(() => underWay.delete(answering));
      }
    },
    /** Resolves when all are answered. */
    async idle(): Promise<void> {
      await Promise.all(underWay);
    },
  };
}
