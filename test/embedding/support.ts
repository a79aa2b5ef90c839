/** Around the embedders and workers under test. */

import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { systemClock } from '../../src/core/clock.js';
import type { Log, Metrics } from '../../src/core/log.js';
import { createRedisEmbedder } from '../../src/embedding/requester.js';
import { runWorker, type WorkerOptions } from '../../src/embedding/worker.js';
import { type RedisServer, startRedis } from '../fakes/redis.js';
import { straight } from '../harness/straight.js';

export const KEY = 'key-not-for-anybody';

export function keptLog(): Log & { lines: string[] } {
  const lines: string[] = [];
  const note = (fields: object, message: string) => {
    // Like the real log: some errors of Redis hold themselves.
    const shown = (_: string, value: unknown) => (value instanceof Error ? value.message : value);
    lines.push(`${message} ${JSON.stringify(fields, shown)}`);
  };
  return { lines, debug: note, info: note, warn: note, error: note };
}

export function keptCounts(): Metrics & { of(outcome: string): number } {
  const counts = new Map<string, number>();
  return {
    count: (_, { outcome = '' } = {}, by = 1) => void counts.set(outcome, (counts.get(outcome) ?? 0) + by),
    observe: () => {},
    of: (outcome) => counts.get(outcome) ?? 0,
  };
}

/** A Redis of its own, and a client that looks on. */
export async function openRedis(): Promise<{ server: RedisServer; client: Redis; close(): Promise<void> }> {
  const server = await startRedis();
  const client = new Redis(server.url, { maxRetriesPerRequest: null });
  client.on('error', () => {});
  return {
    server,
    client,
    async close() {
      client.disconnect();
      await server.close();
    },
  };
}

export interface RunningWorker {
  log: ReturnType<typeof keptLog>;
  counts: ReturnType<typeof keptCounts>;
  /** It ended, by itself or because it was told to. */
  stopped(): boolean;
  stop(): Promise<void>;
}

export function startWorker(
  given: Pick<WorkerOptions, 'redisUrl' | 'queue' | 'baseUrl'> & Partial<WorkerOptions>,
): RunningWorker {
  const log = keptLog();
  const counts = keptCounts();
  const stopping = new AbortController();
  const running = runWorker(
    {
      outward: straight,
      apiKey: KEY,
      model: 'test-embed',
      timeoutSeconds: 1,
      batchSize: 64,
      batchWindowMs: 5,
      shutdownSeconds: 1,
      newId: randomUUID,
      clock: systemClock,
      log,
      metrics: counts,
      ...given,
    },
    stopping.signal,
  );
  let stopped = false;
  // How it ended is looked at when it is stopped.
  running
    .catch(() => {})
    .finally(() => {
      stopped = true;
    });
  return {
    log,
    counts,
    stopped: () => stopped,
    stop() {
      stopping.abort();
      return running;
    },
  };
}

export function openRedisEmbedder(
  given: { redisUrl: string; queue: string } & Partial<Parameters<typeof createRedisEmbedder>[0]>,
) {
  const log = keptLog();
  const counts = keptCounts();
  const embedder = createRedisEmbedder({
    model: 'test-embed',
    timeoutSeconds: 1,
    newId: randomUUID,
    clock: systemClock,
    log,
    metrics: counts,
    ...given,
  });
  return { embedder, log, counts };
}
