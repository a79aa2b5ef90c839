/** Emoji of reactions: what is one, and which of those that a platform takes comes nearest to it. Pure. */

import { once } from '../core/once.js';

/** Not as a literal: the compiler takes this flag only for a later target. */
const SETS = 'v';
const one = once(() => new RegExp('^\\p{RGI_Emoji}$', SETS));
/** What only shapes or colours a sign. */
const SHAPING = /[\ufe0e\ufe0f]|\p{Emoji_Modifier}/gu;

/** Signs that say much the same, what says it best first. */
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

/** The one emoji that a text is, in full; null for anything else. */
export function emojiIn(text: string): string | null {
  const sign = text.trim();
  return [sign, `${sign}\ufe0f`].find((each) => one().test(each)) ?? null;
}

/** The emoji as it is allowed, or the nearest of those that are; null if none is near. */
export function nearestOf(allowed: readonly string[], emoji: string): string | null {
  const spelled = (sign: string) => allowed.find((each) => bare(each) === bare(sign));
  const near = ALIKE.filter((signs) => signs.some((sign) => bare(sign) === bare(emoji))).flat();
  return [emoji, ...near].map(spelled).find((found) => found !== undefined) ?? null;
}

function bare(emoji: string): string {
  return emoji.replace(SHAPING, '');
}
