/** `react`: puts an emoji on a message, with an answer or instead of one. Sent through the outbox. */
import * as z from 'zod';
import { once } from '../core/concurrency.js';
import type { Reaction } from '../core/tool.js';
import { reactionText } from '../core/transcript.js';
import { defineTool } from './authorise.js';
import { done, failed, keyOf } from './results.js';

/** `post` adds a reaction to the outbox, once per key; `emojiOn`: a channel's allowed emoji, if limited. */
export function react({
  post,
  emojiOn,
}: {
  post(reaction: Reaction): Promise<'posted' | 'unknown message'>;
  emojiOn(channel: string): readonly string[] | undefined;
}) {
  return defineTool({
    name: 'react',
    description:
      "Puts an emoji to somebody's message, as people do who have nothing to add: a thank you, a joke, good news. " +
      'Where it says enough, let it be your whole answer and write nothing.',
    hint: 'put an emoji to a message, also instead of an answer',
    parameters: z.object({
      emoji: z.string().describe('One emoji.'),
      message_id: z.coerce
        .string()
        .optional()
        .describe('The id of a message, as in <user_message id="…">. Left out: the newest that you answer.'),
    }),
    risk: 'medium',
    isSend: true,
    async execute({ emoji: asked, message_id }, { room, signal, cause: { turnId } }, { caller }) {
      if (turnId === null) return failed('There are reactions only while somebody is being answered.');
      const sign = emojiIn(asked);
      if (sign === null)
        return failed(`${JSON.stringify(asked)} is not one emoji. Nothing was done; give one, like 👍.`);
      const allowed = emojiOn(caller.channel);
      const emoji = allowed === undefined ? sign : nearestOf(allowed, sign);
      if (emoji === null)
        return failed(`Nobody can react with ${sign} here. What can be had: ${allowed?.join(' ')}`);
      const messageId = message_id ? Number(message_id) : null;
      if (signal.aborted) return failed('Stopped: nothing was done.');
      const key = keyOf(turnId, String(messageId), emoji);
      const outcome = await post({ room, personaId: caller.personaId, turnId, key, messageId, emoji });
      if (outcome === 'unknown message') {
        return failed('Nothing was done: there is no such message of a person in this conversation.');
      }
      const result = done(`${emoji} is on its way. If that says enough, end here without a word.`);
      return { ...result, said: reactionText(emoji) };
    },
  });
}

/** Not a regex literal: the compiler accepts this flag only for a later target. */
const SETS = 'v';
const one = once(() => new RegExp('^\\p{RGI_Emoji}$', SETS));
/** Characters that only modify the shape or colour of an emoji. */
const SHAPING = /[\ufe0e\ufe0f]|\p{Emoji_Modifier}/gu;

/** Emoji of similar meaning, best first. */
const ALIKE = [
  '👍 ✅ ✔ ☑ 👌 🆗',
  '👎 ❌ ✖ 🚫',
  '❤ ♥ 🩷 🧡 💛 💚 💙 🩵 💜 🤎 🖤 🤍 💕 💞 💓 💗 💖 💝 🥰 😍',
  '🤣 😂 😆 😹 😁',
  '😁 😄 😃 😀 🙂 😊 ☺ 😺 😅 🤗',
  '😢 😿 🥺 😞 😔 🙁 ☹ 😭',
  '😱 😮 😲 😯 🙀 🤯 😨',
  '😡 😠 👿 🤬',
  '🎉 🥳 🎊 🎈 🍾',
  '🔥 💪 🚀',
  '👏 🙌',
  '🤩 ⭐ 🌟 ✨ 💫',
  '🤔 💭 🧐 🤨',
  '😎 🕶',
  '😘 😗 😙 😚 💋',
  '😴 💤 🥱 🛌',
  '👀 👁',
  '🙏 🤲',
  '🤝 🫱‍🫲',
  '🤗 🫂',
  '😇 👼',
  '🤮 🤢',
  '🏆 🥇 🏅 🎖',
  '✍ 📝 🖊',
  '🎄 🎅',
].map((signs) => signs.split(' '));

/** The single emoji that makes up a text, in full; null for anything else. */
export function emojiIn(text: string): string | null {
  const sign = text.trim();
  return [sign, `${sign}\ufe0f`].find((each) => one().test(each)) ?? null;
}

/** The emoji if allowed, else the nearest allowed one; null if none is near. */
export function nearestOf(allowed: readonly string[], emoji: string): string | null {
  const spelled = (sign: string) => allowed.find((each) => bare(each) === bare(sign));
  const near = ALIKE.filter((signs) => signs.some((sign) => bare(sign) === bare(emoji))).flat();
  return [emoji, ...near].map(spelled).find((found) => found !== undefined) ?? null;
}

function bare(emoji: string): string {
  return emoji.replace(SHAPING, '');
}
