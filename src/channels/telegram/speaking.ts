/**
 * What goes out, by the bot that is to say it. Where that one is not let, another of ours says it: the name then
 * stands before the text, where it is to be seen who speaks.
 */
import type { Channel, Part, Recipient, SendOptions, SendResult } from '../../core/channel.js';
import type { PersonaId } from '../../core/ids.js';
import type { Log } from '../../core/log.js';
import type { Bot } from './bot.js';
import type { Bots } from './bots.js';
import { editText, removeMessage } from './edit.js';
import { type Failure, isLockedOut, isNotThere } from './failure.js';
import type { Sent } from './mend.js';
import { messageIdOf, numberFor, readMessageId } from './message-id.js';
import { chatId, numeric } from './outbound.js';
import type { Presence } from './presence.js';
import { createPreviews } from './preview.js';
import { send } from './send.js';
import { whose } from './supervise.js';
import { inVoiceOf, speakerOf, voicesFor } from './voices.js';

type Speaking = Required<Pick<Channel, 'send' | 'edit' | 'remove' | 'preview' | 'setTyping'>>;

export function createSpeaking(parts: { bots: Bots; presence: Presence; log: Log }): Speaking {
  const { bots, presence, log } = parts;
  const previews = createPreviews(log);

  /** Whether another bot may do better; remembered. */
  function isElsewhere(bot: Bot, to: Recipient, failure: Failure | undefined): boolean {
    if (failure === undefined) return false;
    // A persona's bot with a broken token takes nobody's voice; without the main one there is none.
    const lockedOut = bot.personaId !== null && isLockedOut(failure);
    if (!lockedOut && !isNotThere(failure)) return false;
    presence.absent(bot, to.address);
    return true;
  }

  async function sendBy(bot: Bot, to: Recipient, part: Part, options: SendOptions): Promise<Sent> {
    const our = bot.our();
    const { replyTo, signal } = options;
    const number = replyTo === null ? null : numberFor(our ?? { id: 0 }, to.address, replyTo);
    const said = await send({ api: bot.api, log }, to, inVoiceOf(bot, part, options), {
      replyTo: number === null ? null : String(number),
      signal,
    });
    if (said.result.kind !== 'sent' || our === null) return said;
    const platformMessageId = messageIdOf(our, said.result.platformMessageId);
    return { result: { kind: 'sent', platformMessageId } };
  }

  /** The bot that sent a message, and its number there. */
  function authorOf(platformMessageId: string): { bot: Bot; number: number } | null {
    const id = readMessageId(platformMessageId);
    const bot = id?.bot === null ? bots.main : bots.withId(id?.bot ?? Number.NaN);
    return id === null || bot === undefined ? null : { bot, number: id.number };
  }

  return {
    async send(to, part, options) {
      let refused: SendResult | null = null;
      for (const bot of voicesFor({ bots, presence }, to, speakerOf(options))) {
        const said = await sendBy(bot, to, part, options);
        if (!isElsewhere(bot, to, said.failure)) return said.result;
        // What the main bot was told says most.
        if (refused === null || bot.personaId === null) refused = said.result;
        const { reason } = said.failure ?? {};
        if (bots.personas.length === 0) continue;
        log.debug({ channel: 'telegram', ...whose(bot.personaId), reason }, 'a bot is not let speak there');
      }
      return refused ?? { kind: 'refused', reason: 'no bot of ours is there' };
    },

    async edit(to, platformMessageId, part, options) {
      const author = authorOf(platformMessageId);
      if (author === null) return { kind: 'refused', reason: 'no bot of ours has sent this message' };
      const { bot, number } = author;
      const { signal } = options;
      const shown = inVoiceOf(bot, part, options);
      return editText({ api: bot.api, log }, to, shown, { number, platformMessageId, signal });
    },

    async remove(to, platformMessageId, { signal }) {
      const author = authorOf(platformMessageId);
      if (author === null) return;
      const { bot, number } = author;
      try {
        await removeMessage(bot, to, { number, signal });
      } catch (error) {
        const { reason } = bot.api.failure(error);
        log.debug({ channel: 'telegram', reason }, 'a message was not taken back');
      }
    },

    async preview(to, part, options) {
      for (const bot of voicesFor({ bots, presence }, to, speakerOf(options))) {
        const shown = await previews.show(bot, to, inVoiceOf(bot, part, options), options);
        if (typeof shown === 'boolean') return shown;
        if (!isElsewhere(bot, to, shown.failure)) return false;
      }
      return false;
    },

    async setTyping(to, personaId?: PersonaId) {
      const [bot = bots.main] = voicesFor({ bots, presence }, to, personaId);
      const thread = numeric(to.threadId);
      const payload = { chat_id: chatId(to.address), action: 'typing' as const };
      const topic = thread === null ? {} : { message_thread_id: thread };
      try {
        await bot.api.call((raw, ended) => raw.sendChatAction({ ...payload, ...topic }, ended));
      } catch (error) {
        const failure = bot.api.failure(error);
        isElsewhere(bot, to, failure);
        log.debug({ channel: 'telegram', reason: failure.reason }, 'typing was not shown');
      }
    },
  };
}
