/** Messages that are there already: changed and taken back, each by the bot that sent it. */
import type { Channel, SendResult } from '../../core/channel.js';
import type { Log } from '../../core/log.js';
import type { Bot, Bots } from './bots.js';
import { isNotModified, sendResult } from './failure.js';
import { readMessageId } from './message-id.js';
import { chatId, sendRequest } from './outbound.js';
import { withNameUnlessOwn } from './send.js';

export function createEditing({
  bots,
  linkPreviews,
  log,
}: {
  bots: Bots;
  linkPreviews: boolean;
  log: Log;
}): Required<Pick<Channel, 'edit' | 'remove'>> {
  /** The bot that sent a message, and its number there. */
  function authorOf(platformMessageId: string): { bot: Bot; number: number } | null {
    const id = readMessageId(platformMessageId);
    const bot = id === null ? undefined : bots.withId(id.bot);
    return id === null || bot === undefined ? null : { bot, number: id.number };
  }

  return {
    async edit(to, platformMessageId, part, options) {
      const author = authorOf(platformMessageId);
      if (author === null) return { kind: 'refused', reason: 'no bot of ours has sent this message' };
      if (part.file !== undefined) return { kind: 'refused', reason: 'a message with a file is not edited' };
      const { bot, number } = author;
      const { signal } = options;
      const said = withNameUnlessOwn(bot, part, options);
      // Without buttons, those that were there go. A message stays in its topic: nothing names that.
      const request = {
        ...sendRequest({ ...to, threadId: null }, said, { linkPreviews }),
        message_id: number,
      };
      const sent: SendResult = { kind: 'sent', platformMessageId };
      const done = await bot.api.send(request, (raw, each, ended) => raw.editMessageText(each, ended), {
        signal,
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
  };
}

/** Telegram changes what nobody sees: white space, and characters without a form. */
function visible(text: string): string {
  return text.replace(/(?:[\s\p{Cc}\p{Cf}]|\u030a|\u0333|\u033f)+/gu, '');
}
