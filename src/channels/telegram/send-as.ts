/**
 * What goes out, sent by the bot whose words it is. Where that bot is not allowed to, another of ours sends it, with
 * the speaker's name before the text where several may speak.
 */
import type { Channel, Part, Recipient, SendOptions, SendResult } from '../../core/channel.js';
import type { PersonaId } from '../../core/ids.js';
import type { Log } from '../../core/log.js';
import { named } from '../kit/named.js';
import { type Bot, type Bots, logFields } from './bots.js';
import { createDrafts } from './drafts.js';
import { type Failure, isLockedOut, isNotThere } from './failure.js';
import { messageIdOf, numberFor, readMessageId } from './message-id.js';
import { chatId, numeric } from './outbound.js';
import type { Presence } from './presence.js';
import { deleteMessage, editPart, type Sent, sendPart } from './send.js';

type Sending = Required<Pick<Channel, 'send' | 'edit' | 'remove' | 'preview' | 'setTyping'>>;
type Speaker = Pick<SendOptions, 'speaker' | 'appearance' | 'leads'>;

export function createSending(parts: { bots: Bots; presence: Presence; log: Log }): Sending {
  const { bots, presence, log } = parts;
  const drafts = createDrafts(log);

  /**
   * Best first, never empty: the persona's own bot; for the gateway's own words in a direct chat the one that was
   * spoken to; the main bot; and where that is not there either, whichever is.
   */
  function botsFor({ address, kind }: Recipient, speaker: PersonaId | undefined): Bot[] {
    const own = speaker === undefined ? undefined : bots.ofPersona(speaker);
    const lastToHear = presence.lastToHear(address);
    const first = speaker === undefined && kind === 'direct' ? lastToHear : own;
    const order = [first, bots.main, lastToHear, ...bots.personas].filter((bot) => bot !== undefined);
    const each = [...new Set(order)];
    const present = each.filter((bot) => !presence.isAbsent(bot, address));
    return present.length > 0 ? present : each;
  }

  /** Whether another bot may do better; then this one is remembered as absent. */
  function isElsewhere(bot: Bot, to: Recipient, failure: Failure | undefined): boolean {
    if (failure === undefined) return false;
    // Without a persona's bot that has a broken token, the main one speaks for it; without the main one nobody does.
    const lockedOut = bot.personaId !== null && isLockedOut(failure);
    if (!lockedOut && !isNotThere(failure)) return false;
    presence.absent(bot, to.address);
    return true;
  }

  async function sendBy(bot: Bot, to: Recipient, part: Part, options: SendOptions): Promise<Sent> {
    const our = bot.our();
    const { replyTo, signal } = options;
    const number = replyTo === null ? null : numberFor(our ?? { id: 0 }, to.address, replyTo);
    const said = await sendPart({ api: bot.api, log }, to, withNameUnlessOwn(bot, part, options), {
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
      for (const bot of botsFor(to, speakerOf(options))) {
        const said = await sendBy(bot, to, part, options);
        if (!isElsewhere(bot, to, said.failure)) return said.result;
        // What the main bot was told says most.
        if (refused === null || bot.personaId === null) refused = said.result;
        if (bots.personas.length === 0) continue;
        const { reason } = said.failure ?? {};
        log.debug({ ...logFields(bot.personaId), reason }, 'a bot is not allowed to speak in a chat');
      }
      return refused ?? { kind: 'refused', reason: 'no bot of ours is there' };
    },

    async edit(to, platformMessageId, part, options) {
      const author = authorOf(platformMessageId);
      if (author === null) return { kind: 'refused', reason: 'no bot of ours has sent this message' };
      const { bot, number } = author;
      const shown = withNameUnlessOwn(bot, part, options);
      const { signal } = options;
      return editPart({ api: bot.api, log }, to, shown, { number, platformMessageId, signal });
    },

    async remove(to, platformMessageId, { signal }) {
      const author = authorOf(platformMessageId);
      if (author === null) return;
      const { bot, number } = author;
      try {
        await deleteMessage(bot.api, to, { number, signal });
      } catch (error) {
        const { reason } = bot.api.failure(error);
        log.debug({ channel: 'telegram', reason }, 'a message was not taken back');
      }
    },

    async preview(to, part, options) {
      for (const bot of botsFor(to, speakerOf(options))) {
        const shown = await drafts.show(bot, to, withNameUnlessOwn(bot, part, options), options);
        if (typeof shown === 'boolean') return shown;
        if (!isElsewhere(bot, to, shown.failure)) return false;
      }
      return false;
    },

    async setTyping(to, personaId?: PersonaId) {
      const [bot = bots.main] = botsFor(to, personaId);
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

function speakerOf({ speaker, appearance }: Speaker): PersonaId | undefined {
  return speaker ?? appearance?.personaId;
}

/** A persona's own bot has its name already; another bot puts the name before the text, where it is to be seen. */
function withNameUnlessOwn(bot: Bot, part: Part, speaker: Speaker): Part {
  const isOwn = bot.personaId !== null && bot.personaId === speakerOf(speaker);
  return isOwn ? part : named(part, speaker);
}
