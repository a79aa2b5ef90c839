/**
 * Reactions of our bot on the fake Discord: to a message in a channel whose history it may read; a new sign also takes the
 * permission to add reactions; twenty signs a message at most; a sign is an emoji of Unicode, or one of a guild
 * (https://docs.discord.com/developers/resources/message#create-reaction). Twice is once.
 */
import {
  MISSING_ACCESS,
  MISSING_PERMISSIONS,
  NOTHING,
  type Outcome,
  TOO_MANY_REACTIONS,
  UNKNOWN_CHANNEL,
  UNKNOWN_EMOJI,
  UNKNOWN_MESSAGE,
} from './discord-outcome.js';
import type { Channel, World } from './discord-world.js';

const MOST_SIGNS = 20;
const SETS = 'v';
const UNICODE_EMOJI = new RegExp('^\\p{RGI_Emoji}$', SETS);

export interface BotReaction {
  channelId: string;
  messageId: string;
  emoji: string;
}

export interface Reactions {
  all: BotReaction[];
  add(channel: Channel | undefined, messageId: string, emoji: string): Outcome;
}

export function createReactions(world: World): Reactions {
  const all: BotReaction[] = [];
  return {
    all,
    add(channel, messageId, emoji) {
      if (channel === undefined) return UNKNOWN_CHANNEL;
      if (!world.may('viewChannel', channel)) return MISSING_ACCESS;
      if (!world.may('readMessageHistory', channel)) return MISSING_PERMISSIONS;
      if (!channel.messages.has(messageId)) return UNKNOWN_MESSAGE;
      if (!UNICODE_EMOJI.test(emoji) && !UNICODE_EMOJI.test(`${emoji}\ufe0f`)) return UNKNOWN_EMOJI;
      const there = all.filter((one) => one.messageId === messageId);
      if (there.some((one) => one.emoji === emoji)) return NOTHING;
      if (!world.may('addReactions', channel)) return MISSING_PERMISSIONS;
      if (there.length >= MOST_SIGNS) return TOO_MANY_REACTIONS;
      all.push({ channelId: channel.id, messageId, emoji });
      return NOTHING;
    },
  };
}
