/** Which events a bot asked for, and what of a message it sees without the intent for its content. */
import { isPayload } from './discord-form.js';
import type { Payload } from './discord-words.js';

export const INTENT = {
  guilds: 1 << 0,
  guildMembers: 1 << 1,
  guildMessages: 1 << 9,
  guildMessageReactions: 1 << 10,
  directMessages: 1 << 12,
  directMessageReactions: 1 << 13,
  messageContent: 1 << 15,
} as const;

/** The event as a session with these intents gets it; null where it gets none. */
export function seenWith(intents: number, name: string, data: Payload, botId: string): Payload | null {
  // Of itself a bot hears in any case.
  const isOwn = name === 'GUILD_MEMBER_UPDATE' && isOf(data.user, botId);
  const needed = isOwn ? 0 : intentFor(name, data);
  if (needed !== 0 && (intents & needed) === 0) return null;
  const hidden = /^MESSAGE_(CREATE|UPDATE)$/.test(name) && (intents & INTENT.messageContent) === 0;
  return hidden ? withoutContent(data, botId) : data;
}

/** Direct messages, mentions of the bot and its own messages are seen by it always. */
export function withoutContent(message: Payload, botId: string): Payload {
  const { author, mentions } = message;
  if (message.guild_id === undefined || isOf(author, botId)) return message;
  if (Array.isArray(mentions) && mentions.some((user) => isOf(user, botId))) return message;
  return { ...message, content: '', attachments: [], embeds: [], components: [] };
}

function isOf(user: unknown, id: string): boolean {
  return isPayload(user) && user.id === id;
}

function intentFor(name: string, data: Payload): number {
  if (name.startsWith('MESSAGE_REACTION_')) {
    return data.guild_id === undefined ? INTENT.directMessageReactions : INTENT.guildMessageReactions;
  }
  if (name.startsWith('MESSAGE_')) {
    return data.guild_id === undefined ? INTENT.directMessages : INTENT.guildMessages;
  }
  if (name.startsWith('GUILD_MEMBER_')) return INTENT.guildMembers;
  return /^(GUILD|CHANNEL|THREAD)_/.test(name) ? INTENT.guilds : 0;
}
