/**
 * Step 7 of the route: the outbound rate limits of one account: messages per second in total, and per chat a burst that refills
 * slowly. Replies reserve a slot and wait for it; typing indicators only use free slots.
 */
import type { ChannelLimits } from '../../core/channel.js';
import type { ChatId } from '../../core/ids.js';

export interface RateLimiter {
  /**
   * Reserves one message of a chat's budget and returns the wait in ms. Call `reserveAccount` only after that wait: an account slot
   * held for a slow chat would delay all others.
   */
  reserveChat(chat: ChatId, kind: 'direct' | 'group', now: number): number;
  /** Reserves one message of the account's budget; first come, first served. Returns the wait in ms. */
  reserveAccount(now: number): number;
  /** Takes a slot if one is free right now and no reply is waiting; otherwise false. */
  takeLeftOver(chat: ChatId, kind: 'direct' | 'group', now: number): boolean;
  /** The same for repeated actions: leaves half of the burst to replies. */
  takeSpare(chat: ChatId, kind: 'direct' | 'group', now: number): boolean;
}

/** Above this many chats, full buckets are dropped; a new bucket is full, too. */
const FORGET_ABOVE = 5_000;

export function createRateLimiter(limits: ChannelLimits): RateLimiter {
  const account = createBucket(limits.messagesPerSecond, limits.messagesPerSecond);
  const chats = new Map<ChatId, Bucket>();

  function bucketOf(chat: ChatId, kind: 'direct' | 'group', now: number): Bucket {
    let bucket = chats.get(chat);
    if (!bucket) {
      if (chats.size >= FORGET_ABOVE) for (const [id, b] of chats) if (b.isFull(now)) chats.delete(id);
      bucket = createBucket(limits.perChatBurst, limits.perChatPerSecond[kind]);
      chats.set(chat, bucket);
    }
    return bucket;
  }

  function takeIf(chat: Bucket, now: number, wait: 'wait' | 'waitForSpare'): boolean {
    if (chat[wait](now) > 0 || account[wait](now) > 0) return false;
    chat.reserve(now);
    account.reserve(now);
    return true;
  }

  return {
    reserveChat: (chat, kind, now) => bucketOf(chat, kind, now).reserve(now),
    reserveAccount: (now) => account.reserve(now),
    takeLeftOver: (chat, kind, now) => takeIf(bucketOf(chat, kind, now), now, 'wait'),
    takeSpare: (chat, kind, now) => takeIf(bucketOf(chat, kind, now), now, 'waitForSpare'),
  };
}

interface Bucket {
  wait(now: number): number;
  /** The wait until one can go with half of the burst left. */
  waitForSpare(now: number): number;
  reserve(now: number): number;
  isFull(now: number): boolean;
}

/**
 * A token bucket kept as one number (generic cell rate algorithm): the time at which it will be full again. A reservation moves
 * that time by one interval and waits for the part beyond the burst.
 */
function createBucket(burst: number, perSecond: number): Bucket {
  const interval = 1000 / perSecond;
  const tolerance = (Math.max(1, burst) - 1) * interval;
  let fullAt = 0;
  const waitWith = (kept: number, now: number) => Math.max(0, Math.max(fullAt, now) - tolerance + kept - now);
  const wait = (now: number) => waitWith(0, now);
  return {
    wait,
    waitForSpare: (now) => waitWith(Math.ceil(burst / 2) * interval, now),
    reserve(now) {
      const delay = wait(now);
      fullAt = Math.max(fullAt, now) + interval;
      return delay;
    },
    isFull: (now) => fullAt <= now,
  };
}
