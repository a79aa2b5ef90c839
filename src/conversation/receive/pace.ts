/**
 * Step 1 of the route: the rate limit per person (`limits.messages_per_minute`). Messages beyond it are heard but not answered.
 * Commands, owners, edits and, in a group, messages that cannot call the bot are not counted; an album counts once.
 */
import { LRUCache } from 'lru-cache';
import type { ChatId } from '../../core/ids.js';
import type { InboundMessage } from '../../core/message.js';
import { type AccessCheck, isOwner } from '../access.js';
import { calledOf, fold } from '../rooms/names.js';
import type { Services } from '../services.js';

const MINUTE_MS = 60_000;
const MOST_PEOPLE = 10_000;

const SENTENCE =
  'That is more than I may answer in one minute. I hear what you write until then, but do not answer it.';

/** The messages of a person's last minute with their times, and the last one over the limit. */
interface Minute {
  taken: Map<string, number>;
  refused: { id: string; at: number } | null;
}

export type Pace = NonNullable<ReturnType<typeof createPace>>;

export function createPace(most: number | null) {
  if (most === null) return null;
  const people = new LRUCache<ChatId, Minute>({ max: MOST_PEOPLE });
  // A clock may be set back.
  const isWithin = (then: number, at: number) => Math.abs(at - then) < MINUTE_MS;
  return {
    /** Counts a message; everything with the same `id` counts as one. */
    count(personId: ChatId, id: string, at: number): 'in time' | 'too much' | 'too much, for the first time' {
      const minute = people.get(personId) ?? { taken: new Map<string, number>(), refused: null };
      people.set(personId, minute);
      const { taken, refused } = minute;
      for (const [each, then] of taken) if (!isWithin(then, at)) taken.delete(each);
      if (refused?.id === id) return 'too much';
      if (taken.has(id)) return 'in time';
      if (taken.size < most) {
        taken.set(id, at);
        return 'in time';
      }
      minute.refused = { id, at };
      return refused && isWithin(refused.at, at) ? 'too much' : 'too much, for the first time';
    },
  };
}

/** Whether a message is only heard, not answered. Tells the person once. */
export async function isTooMuch(
  services: Services,
  pace: Pace,
  channel: string,
  message: InboundMessage,
  { chatId, senderId }: AccessCheck,
  at: number,
): Promise<boolean> {
  const { store, rulesFor, metrics, deliver } = services;
  const approval = await store.approvalOf({ chatId, senderId });
  if (isOwner(rulesFor(channel), senderId, approval)) return false;
  if (!(await mayCallUs(services, message, chatId, channel))) return false;
  const { album, dedupeKey, platformMessageId, threadId } = message;
  const id = album === undefined ? (dedupeKey ?? platformMessageId) : `album ${album}`;
  const verdict = pace.count(senderId, `${chatId} ${id}`, at);
  if (verdict === 'in time') return false;
  metrics.count('limited_total', { limit: 'messages_per_minute' });
  if (verdict === 'too much') return true;
  const { address, kind } = message.chat;
  const to = { chat: { id: chatId, channel, address, kind }, threadId };
  await deliver.say(to, `pace:${chatId}:${platformMessageId}`, SENTENCE, platformMessageId);
  return true;
}

async function mayCallUs(
  { rulesFor, media, personas, channels }: Services,
  { chat, mentionsBot, replyTo, addresses = [], attachments = [], text }: InboundMessage,
  chatId: ChatId,
  channel: string,
): Promise<boolean> {
  if (chat.kind === 'direct' || !rulesFor(channel).requireMention) return true;
  if (mentionsBot || replyTo?.ours || addresses.length > 0 || media.mayAddress(attachments)) return true;
  const here = (await personas.list(chatId)).flatMap((persona) => calledOf(persona).names);
  const words = fold(text);
  return [...here, ...(channels.get(channel)?.names?.() ?? [])].some((name) => words.includes(fold(name)));
}
