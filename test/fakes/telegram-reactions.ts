/**
 * Reactions of bots on the fake Telegram. The emoji are those of https://core.telegram.org/bots/api#reactiontypeemoji; a
 * group may allow fewer (https://core.telegram.org/bots/api#chatfullinfo, available_reactions). A bot has one reaction to
 * a message, and setting it again changes nothing. What else is there is refused with REACTION_INVALID.
 */
import type { Payload } from './telegram-body.js';

/** As the page has them, without signs that only shape them. */
const EMOJI =
  '👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡'.split(
    ' ',
  );

export interface SetReaction {
  chatId: number;
  messageId: number;
  /** The id of the bot. */
  bot: number;
  emoji: string;
}

export interface Reactions {
  /** As they stand now, in the order in which they were set first. */
  all: SetReaction[];
  /** What a chat allows; all, where nothing stands here. */
  allowed: Map<number, string[]>;
  set(bot: number, payload: Payload): { result: true } | { status: number; description: string };
}

export function createReactions(isThere: (bot: number, chatId: number, id: number) => boolean): Reactions {
  const all: SetReaction[] = [];
  const allowed = new Map<number, string[]>();
  const refuse = (description: string) => ({ status: 400, description: `Bad Request: ${description}` });

  return {
    all,
    allowed,
    set(bot, { chat_id: chat, message_id: message, reaction = [] }) {
      const [chatId, messageId] = [Number(chat), Number(message)];
      if (!isThere(bot, chatId, messageId)) return refuse('message to react not found');
      if (!Array.isArray(reaction)) return refuse("can't parse reaction types JSON array");
      if (reaction.length > 1) return refuse('REACTIONS_TOO_MANY');
      const [wanted] = reaction as { type?: unknown; emoji?: unknown }[];
      const emoji = String(wanted?.emoji);
      const isFit = wanted?.type === 'emoji' && (allowed.get(chatId) ?? EMOJI).includes(emoji);
      if (wanted !== undefined && !(isFit && EMOJI.includes(emoji))) return refuse('REACTION_INVALID');
      const before = all.findIndex(
        (one) => one.bot === bot && one.chatId === chatId && one.messageId === messageId,
      );
      if (wanted === undefined && before >= 0) all.splice(before, 1);
      else if (before >= 0) all[before] = { chatId, messageId, bot, emoji };
      else if (wanted !== undefined) all.push({ chatId, messageId, bot, emoji });
      return { result: true };
    },
  };
}
