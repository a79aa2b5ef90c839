/** A connection to Redis that opens when it is first needed, says at once that it is lost, and comes back by itself. */

import { Redis } from 'ioredis';
import type { Clock } from '../core/clock.js';
import { Fault } from '../core/errors.js';
import { backoff } from '../core/retry.js';
import { placeOf } from './server.js';

export type RedisConnection = ReturnType<typeof openRedis>;

const LONGEST_RETRY_MS = 2_000;
const CONNECT_MS = 5_000;
/** Longer than any command blocks. A connection on which nothing comes for this long is dead. */
const SILENCE_MS = 15_000;
const LOOK_AGAIN_MS = 100;

export function openRedis(url: string, name: string, clock: Clock) {
  let lastError: unknown;
  let attempt: Promise<void> | null = null;
  const redis = new Redis(url, {
    connectionName: name,
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_MS,
    socketTimeout: SILENCE_MS,
    retryStrategy: (times) => backoff(times, 100, LONGEST_RETRY_MS),
  });
  redis.on('error', (error: unknown) => {
    lastError = error;
  });
  const place = placeOf(url);
  const isReady = () => redis.status === 'ready';

  /** What a failure means to whoever runs this. */
  function fault(error: unknown = lastError): Fault {
    const words = error instanceof Error && error.message ? error.message : 'the connection was lost';
    return new Fault(
      'embedding_unavailable',
      `Redis at ${place} cannot be used: ${words}. Check embeddings.redis_url and that Redis runs.`,
      error,
    );
  }

  function begin(): void {
    // How it went is told by the events.
    if (redis.status === 'wait') redis.connect().catch(() => {});
  }

  /** One promise for all who wait for the attempt that is under way. */
  function attempted(): Promise<void> {
    attempt ??= new Promise((resolve) => {
      const events = ['ready', 'close', 'end'] as const;
      const done = () => {
        for (const event of events) redis.off(event, done);
        attempt = null;
        resolve();
      };
      for (const event of events) redis.on(event, done);
    });
    return attempt;
  }

  return {
    /** Its commands reject at once while there is no connection; what was under way when it was lost rejects too. */
    redis,
    place,
    isReady,
    fault,

    /** Resolves when commands can be sent; throws as soon as an attempt to connect has failed. */
    async connected(): Promise<void> {
      begin();
      if (redis.status === 'connecting' || redis.status === 'connect') await attempted();
      if (!isReady()) throw fault();
    },

    /** Resolves when commands can be sent, however long that takes, or when the signal aborts. */
    async connectedAgain(signal: AbortSignal): Promise<void> {
      begin();
      while (!isReady() && redis.status !== 'end' && !signal.aborted)
        await clock.sleep(LOOK_AGAIN_MS, signal);
    },

    close: () => redis.disconnect(),
  };
}
