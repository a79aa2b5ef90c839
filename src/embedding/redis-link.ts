/** A connection to Redis that opens when it is first needed, says at once that it is lost, and comes back by itself. */
import { Redis } from 'ioredis';
import { Fault } from '../core/errors.js';
import { placeOf } from './server.js';

export interface RedisLink {
  /** Its commands reject at once while there is no connection; what was under way when it was lost rejects too. */
  readonly redis: Redis;
  readonly place: string;
  /** Resolves when commands can be sent; throws at once when the latest try to connect failed. */
  usable(): Promise<void>;
  /** Resolves when commands can be sent, however long that takes, or when the signal aborts. */
  back(signal: AbortSignal): Promise<void>;
  lost(error?: unknown): Fault;
  close(): void;
}

const LONGEST_RETRY_MS = 2_000;
const CONNECT_MS = 5_000;
/** Longer than any command blocks. A connection on which nothing comes for this long is dead. */
const SILENCE_MS = 15_000;

export function openRedis(url: string, name: string): RedisLink {
  let lastError: unknown;
  let connecting: Promise<void> | null = null;
  const redis = new Redis(url, {
    connectionName: name,
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_MS,
    socketTimeout: SILENCE_MS,
    retryStrategy: (times) => Math.min(100 * 2 ** (times - 1), LONGEST_RETRY_MS),
  });
  redis.on('error', (error: unknown) => {
    lastError = error;
  });
  const place = placeOf(url);

  function lost(error: unknown = lastError): Fault {
    const words = error instanceof Error && error.message ? error.message : 'the connection was lost';
    return new Fault(
      'embedding_unavailable',
      `Redis at ${place} cannot be used: ${words}. Check embeddings.redis_url and that Redis runs.`,
      error,
    );
  }

  /** Until it is connected, or the try that is under way has failed: for all who ask meanwhile. */
  function settled(): Promise<void> {
    connecting ??= new Promise((resolve) => {
      const events = ['ready', 'close', 'end'] as const;
      const done = () => {
        for (const event of events) redis.off(event, done);
        connecting = null;
        resolve();
      };
      for (const event of events) redis.on(event, done);
    });
    return connecting;
  }

  function isReady(): boolean {
    return redis.status === 'ready';
  }

  function begin(): void {
    // How it went is heard through the events.
    if (redis.status === 'wait') redis.connect().catch(() => {});
  }

  return {
    redis,
    place,
    lost,

    async usable() {
      begin();
      if (redis.status === 'connecting' || redis.status === 'connect') await settled();
      if (!isReady()) throw lost();
    },

    async back(signal) {
      begin();
      if (isReady()) return;
      let stop = () => {};
      const aborted = new Promise<void>((resolve) => {
        stop = resolve;
      });
      signal.addEventListener('abort', stop, { once: true });
      while (!isReady() && redis.status !== 'end' && !signal.aborted) {
        await Promise.race([settled(), aborted]);
      }
      signal.removeEventListener('abort', stop);
    },

    close: () => redis.disconnect(),
  };
}
