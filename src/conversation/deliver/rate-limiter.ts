/** Step 7 of the route: outbound rate limits of one account, in total and per chat. Replies wait for a slot; typing does not. */
import type { ChannelLimits } from '../../core/channel.js';
import type { ChatId } from '../../core/ids.js';

export type RateLimiter = ReturnType<typeof createRateLimiter>;

/** Above this many chats, full buckets are dropped; a new bucket is full, too. */
const FORGET_ABOVE = 5_000;

export function createRateLimiter(limits: ChannelLimits) {
  const account = createBucket(limits.messagesPerSecond, limits.messagesPerSecond);
  const chats = new Map<ChatId, Bucket>();

  function bucketOf(chat: ChatId, kind: 'direct' | 'group', now: number): Bucket {
    const known = chats.get(chat);
    if (known) return known;
    if (chats.size >= FORGET_ABOVE) for (const [id, each] of chats) if (each.isFull(now)) chats.delete(id);
    const bucket = createBucket(limits.perChatBurst, limits.perChatPerSecond[kind]);
    chats.set(chat, bucket);
    return bucket;
  }

  function takeIf(chat: Bucket, now: number, wait: 'wait' | 'waitForSpare'): boolean {
    if (chat[wait](now) > 0 || account[wait](now) > 0) return false;
    chat.reserve(now);
    account.reserve(now);
    return true;
  }

  return {
    /** Reserves one message; returns the wait in ms. Call `reserveAccount` only after it: a slot held for a slow chat delays all others. */
    reserveChat: (chat: ChatId, kind: 'direct' | 'group', now: number) =>
      bucketOf(chat, kind, now).reserve(now),
    /** Reserves one message of the account's budget; first come, first served. Returns the wait in ms. */
    reserveAccount: (now: number) => account.reserve(now),
    /** Takes a slot if one is free right now and no reply is waiting; otherwise false. */
    takeLeftOver: (chat: ChatId, kind: 'direct' | 'group', now: number) =>
      takeIf(bucketOf(chat, kind, now), now, 'wait'),
    /** The same for repeated actions: leaves half of the burst to replies. */
    takeSpare: (chat: ChatId, kind: 'direct' | 'group', now: number) =>
      takeIf(bucketOf(chat, kind, now), now, 'waitForSpare'),
  };
}

type Bucket = ReturnType<typeof createBucket>;

/** A token bucket kept as one number, the time at which it will be full again (generic cell rate algorithm). */
function createBucket(burst: number, perSecond: number) {
  const interval = 1000 / perSecond;
  const tolerance = (Math.max(1, burst) - 1) * interval;
  let fullAt = 0;
  let last = 0;
  function wait(now: number, kept = 0): number {
    // A clock that was set back would make everybody wait for the time that it had shown.
    if (now < last) fullAt -= last - now;
    last = now;
    return Math.max(0, Math.max(fullAt, now) - tolerance + kept - now);
  }
  return {
    wait,
    waitForSpare: (now: number) => wait(now, Math.ceil(burst / 2) * interval),
    reserve(now: number) {
      const delay = wait(now);
      fullAt = Math.max(fullAt, now) + interval;
      return delay;
    },
    isFull: (now: number) => fullAt <= now,
  };
}
