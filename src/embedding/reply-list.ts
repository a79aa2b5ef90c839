/** Takes the replies out of a gateway's list in Redis, as they come. */
import type { Clock } from '../core/clock.js';
import type { Fault } from '../core/errors.js';
import type { RedisLink } from './redis-link.js';

const BLOCK_SECONDS = 5;
/** Replies read in one go: a few milliseconds of reading JSON, in which nothing else runs. */
const AT_ONCE = 32;
const REFUSED_PAUSE_MS = 1_000;

/** Goes on until `closing`, also while nothing is asked, so that late replies do not pile up in Redis. */
export async function readReplies(options: {
  link: RedisLink;
  list: string;
  take(reply: string): void;
  afterSome(): void;
  /** Whoever waits for a reply will not get it. */
  lost(fault: Fault): void;
  clock: Clock;
  closing: AbortSignal;
}): Promise<void> {
  const { link, list, take, clock, closing } = options;
  while (!closing.aborted) {
    try {
      await link.back(closing);
      const first = await link.redis.blpop(list, BLOCK_SECONDS);
      let replies: string[] | null = first === null ? null : [first[1]];
      while (replies !== null) {
        for (const reply of replies) take(reply);
        options.afterSome();
        replies = await link.redis.lpop(list, AT_ONCE);
      }
    } catch (error) {
      if (closing.aborted) return;
      options.lost(link.lost(error));
      // Redis refuses the command itself: not again at once.
      if (link.redis.status === 'ready') await clock.sleep(REFUSED_PAUSE_MS, closing);
    }
  }
}
