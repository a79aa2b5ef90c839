/** Both backends keep the port's promise: the server called directly, and through Redis with a worker in between. */

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { createHttpEmbedder } from '../../src/embedding/server.js';
import { embedderContract } from '../contract/embedder.js';
import { type RedisServer, startRedis } from '../fakes/redis.js';
import { describeWithRedis } from '../harness/redis.js';
import { straight } from '../harness/straight.js';
import { KEY, keptLog, openRedisEmbedder, startWorker } from './support.js';

embedderContract('http', describe, async (server) => {
  const log = keptLog();
  const embedder = createHttpEmbedder({
    baseUrl: server.url,
    apiKey: KEY,
    outward: straight,
    model: 'test-embed',
    timeoutSeconds: 1,
    clock: systemClock,
    log,
  });
  return { embedder, lines: log.lines, close: () => embedder.close() };
});

describeWithRedis('with a real Redis and a worker', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.close());

  embedderContract('redis', describe, async (server) => {
    const queue = `queue:${randomUUID()}`;
    const worker = startWorker({ redisUrl: redis.url, queue, baseUrl: server.url, timeoutSeconds: 0.5 });
    const { embedder, log } = openRedisEmbedder({ redisUrl: redis.url, queue });
    return {
      embedder,
      lines: log.lines,
      async close() {
        await embedder.close();
        await worker.stop();
      },
    };
  });
});
