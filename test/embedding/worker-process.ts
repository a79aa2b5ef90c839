/** The worker as a process of its own, to be killed: `worker-process REDIS QUEUE SERVER`. */

import { randomUUID } from 'node:crypto';
import { systemClock } from '../../src/core/clock.js';
import { runWorker } from '../../src/embedding/worker.js';
import { straight } from '../harness/straight.js';

const [redisUrl = '', queue = '', baseUrl = ''] = process.argv.slice(2);
const nothing = () => {};
const stopping = new AbortController();
process.once('SIGTERM', () => stopping.abort());
await runWorker(
  {
    redisUrl,
    queue,
    baseUrl,
    outward: straight,
    apiKey: null,
    model: 'test-embed',
    timeoutSeconds: 30,
    batchSize: 64,
    batchWindowMs: 5,
    shutdownSeconds: 1,
    newId: randomUUID,
    clock: systemClock,
    log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    metrics: { count: nothing, observe: nothing },
  },
  stopping.signal,
);
// The channel to the test would keep it alive.
process.disconnect?.();
