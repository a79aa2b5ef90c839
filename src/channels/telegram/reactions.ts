/** Reactions of our bots: those that Telegram lets bots choose from, set by the bot of the persona that reacts. */
import type { ReactionTypeEmoji } from 'grammy/types';
import type { Channel, SendResult } from '../../core/channel.js';
import type { Bots } from './bots.js';
import { isLockedOut, isNotThere, sendResult } from './failure.js';
import { numberFor } from './message-id.js';
import { chatId } from './outbound.js';

type TelegramEmoji = ReactionTypeEmoji['emoji'];

/** https://core.telegram.org/bots/api#reactiontypeemoji; a group may allow fewer of them. */
export const REACTIONS: readonly TelegramEmoji[] = [
  ...(['👍', '👎', '❤', '🔥', '🥰', '👏', '😁', '🤔', '🤯', '😱', '🤬', '😢', '🎉', '🤩', '🤮'] as const),
  ...(['💩', '🙏', '👌', '🕊', '🤡', '🥱', '🥴', '😍', '🐳', '❤‍🔥', '🌚', '🌭', '💯', '🤣', '⚡'] as const),
  ...(['🍌', '🏆', '💔', '🤨', '😐', '🍓', '🍾', '💋', '🖕', '😈', '😴', '😭', '🤓', '👻', '👨‍💻'] as const),
  ...(['👀', '🎃', '🙈', '😇', '😨', '🤝', '✍', '🤗', '🫡', '🎅', '🎄', '☃', '💅', '🤪', '🗿'] as const),
  ...(['🆒', '💘', '🙉', '🦄', '😘', '💊', '🙊', '😎', '👾', '🤷‍♂', '🤷', '🤷‍♀', '😡'] as const),
];

export function createReacting(bots: Bots): Required<Pick<Channel, 'react' | 'reactions'>> {
  return {
    reactions: REACTIONS,

    async react(to, platformMessageId, sign, { speaker, signal }) {
      const emoji = REACTIONS.find((each) => each === sign);
      if (emoji === undefined) return { kind: 'refused', reason: `Telegram has no reaction ${sign}` };
      let refused: SendResult = { kind: 'refused', reason: 'no bot of ours knows this message' };
      for (const bot of bots.senders(to, speaker)) {
        const number = numberFor(bot.our(), to.address, platformMessageId);
        if (number === null) continue;
        const request = { chat_id: chatId(to.address), message_id: number };
        const reaction = [{ type: 'emoji' as const, emoji }];
        try {
          await bot.api.call((raw, ended) => raw.setMessageReaction({ ...request, reaction }, ended), {
            signal,
            chat: to.address,
          });
          return { kind: 'sent', platformMessageId };
        } catch (error) {
          const failure = bot.api.failure(error);
          refused = sendResult(failure);
          if (!isNotThere(failure) && !(bot.personaId !== null && isLockedOut(failure))) return refused;
        }
      }
      return refused;
    },
  };
}
