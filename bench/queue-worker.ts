/** The measured worker, with its embedding server in another process: `queue-worker KIND REDIS QUEUE`. */

import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { systemClock } from '../src/core/clock.js';
import { runWorker } from '../src/embedding/worker.js';
import { startPeerWorker } from '../test/fakes/redis-peers.js';
import { straight } from '../test/harness/straight.js';

const [kind, redisUrl = '', queue = ''] = process.argv.slice(2);
// Disconnected when the bench ends, however that happens.
process.once('disconnect', () => process.exit());

if (kind === 'one by one') {
  startPeerWorker({ url: redisUrl, queue, length: 768, model: 'bench' });
  process.send?.('ready');
} else {
  const server = fork(new URL('queue-server.js', import.meta.url), { stdio: 'inherit' });
  const baseUrl = await new Promise<string>((resolve) =>
    server.once('message', (url) => resolve(String(url))),
  );
  const nothing = () => {};
  process.send?.('ready');
  await runWorker(
    {
      redisUrl,
      queue,
      baseUrl,
      outward: straight,
      apiKey: null,
      model: 'bench',
      timeoutSeconds: 30,
      batchSize: 64,
      batchWindowMs: 5,
      shutdownSeconds: 1,
      newId: randomUUID,
      clock: systemClock,
      log: { debug: nothing, info: nothing, warn: console.warn, error: console.error },
      metrics: { count: nothing, observe: nothing },
    },
    new AbortController().signal,
  );
}
