/**
 * Within step 1 of the route: how many messages of one person are answered in a minute (`limits.messages_per_minute`), over
 * all chats of a channel. What is more is stored as heard, not answered; the person is told once, until a minute has
 * passed in which nothing was too much. It is counted in memory: a restart only begins the minute anew.
 *
 * Commands do not count and are always obeyed, and owners are not counted. In a group where the bot must be called, only
 * what may call it counts. An album is one message; an edit is none.
 */
import type { ChatId } from '../../core/ids.js';
import type { InboundMessage } from '../../core/message.js';
import { type AccessCheck, isOwner } from '../access.js';
import { calledOf, fold } from '../rooms/names.js';
import type { Services } from '../services.js';

export type Verdict = 'in time' | 'too much' | 'too much, for the first time';

export interface Pace {
  /** Counts a message; `id` is the same for what counts as one. */
  count(personId: ChatId, id: string, at: number): Verdict;
}

interface Minute {
  /** What was in time, and when. */
  taken: Map<string, number>;
  refused: { id: string; at: number } | null;
}

const MINUTE_MS = 60_000;
/** Beyond that whoever has not written for longest is forgotten. */
const MOST_PEOPLE = 10_000;

/** `most` is null without a limit. */
export function createPace(most: number | null): Pace | null {
  if (most === null) return null;
  const people = new Map<ChatId, Minute>();

  function minuteOf(personId: ChatId, at: number): Minute {
    const minute = people.get(personId) ?? { taken: new Map(), refused: null };
    people.delete(personId);
    people.set(personId, minute);
    for (const oldest of people.keys()) {
      if (people.size <= MOST_PEOPLE) break;
      people.delete(oldest);
    }
    // A clock may be set back.
    for (const [id, then] of minute.taken) if (!isWithin(then, at)) minute.taken.delete(id);
    return minute;
  }

  return {
    count(personId, id, at) {
      const minute = minuteOf(personId, at);
      const { taken, refused } = minute;
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

function isWithin(then: number, at: number): boolean {
  return Math.abs(at - then) < MINUTE_MS;
}

const SENTENCE =
  'That is more than I may answer in one minute. I hear what you write until then, but do not answer it.';

/** Whether a message is heard, but not to be answered. The person is told once. */
export async function isTooMuch(
  services: Services,
  pace: Pace,
  message: InboundMessage,
  { chatId, senderId }: AccessCheck,
  channel: string,
  at: number,
): Promise<boolean> {
  const standing = await services.store.approvalOf({ chatId, senderId });
  if (isOwner(services.rulesFor(channel), senderId, standing)) return false;
  if (!(await mayCallUs(services, message, chatId, channel))) return false;
  const { album, twin, platformMessageId, threadId } = message;
  const id = album === undefined ? (twin ?? platformMessageId) : `album ${album}`;
  const verdict = pace.count(senderId, `${chatId} ${id}`, at);
  if (verdict === 'in time') return false;
  services.metrics.count('limited_total', { limit: 'messages_per_minute' });
  if (verdict === 'too much') return true;
  const { address, kind } = message.chat;
  const where = { chat: { id: chatId, channel, address, kind }, threadId };
  await services.deliver.say(where, `pace:${chatId}:${platformMessageId}`, SENTENCE, platformMessageId);
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
  const here = await personas.list(chatId);
  const names = [
    ...here.flatMap((persona) => calledOf(persona).names),
    ...(channels.get(channel)?.names?.() ?? []),
  ];
  const words = fold(text);
  return names.some((name) => words.includes(fold(name)));
}
