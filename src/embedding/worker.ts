/**
 * `coterie worker`: runs beside the GPU, takes jobs from the queue in Redis, has them embedded a batch at a time, and
 * pushes the replies. Several may work on one queue. A job is kept in a list of its own until it is answered.
 */
import { hostname } from 'node:os';
import { type Clock, OVER } from '../core/clock.js';
import type { Log } from '../core/log.js';
import { createHands } from './hands.js';
import type { EmbeddingMetrics } from './metrics.js';
import { createProgress } from './progress.js';
import { queueKeys } from './queue-keys.js';
import { openRedis } from './redis-link.js';
import { refuseOldRedis } from './redis-version.js';
import { createRoster, ROSTER_EVERY_MS } from './roster.js';
import { createEmbeddingServer } from './server.js';
import { createSteady } from './steady.js';

export interface WorkerOptions {
  redisUrl: string;
  /** `queue:gpu_heavy` */
  queue: string;
  /** The embedding server. */
  baseUrl: string;
  apiKey: string | null;
  model: string;
  /** For one request to the server. */
  timeoutSeconds: number;
  batchSize: number;
  batchWindowMs: number;
  /** After `signal`, for the batches in hand to be finished; what is not goes back to the queue. */
  shutdownSeconds: number;
  newId: () => string;
  clock: Clock;
  log: Log;
  metrics: EmbeddingMetrics;
}

/** Batches at the server at once: one is computed while the next is on its way. */
const BATCHES_IN_HAND = 2;
/** Nothing else ends a wait for jobs, so this is how long a worker without any takes to stop. */
const BLOCK_SECONDS = 0.25;

/** Takes up to so many more, in order, in one round trip. */
const TAKE = `local jobs = {}
for n = 1, tonumber(ARGV[1]) do
  local job = redis.call('LMOVE', KEYS[1], KEYS[2], 'LEFT', 'RIGHT')
  if not job then break end
  jobs[n] = job
end
return jobs`;

/** Works until the signal aborts. Throws Fault when it can never work: a Redis that is too old. */
export async function runWorker(options: WorkerOptions, signal: AbortSignal): Promise<void> {
  const { queue, batchSize, clock, log } = options;
  const maker = { worker: `${hostname()}-${options.newId()}`, model: options.model };
  const keys = queueKeys(queue);
  const commands = openRedis(options.redisUrl, 'coterie worker');
  const taking = openRedis(options.redisUrl, 'coterie worker, taking jobs');
  const server = createEmbeddingServer(options);
  const stop = new AbortController();
  const cut = new AbortController();
  const { metrics, tellProgress } = createProgress(options.metrics, log, clock);
  const roster = createRoster({ redis: commands.redis, keys, maker, log, metrics });
  const hands = createHands({
    ...{ redis: commands.redis, redisBack: commands.back, keys, roster, server, maker, batchSize },
    ...{ stopping: stop.signal, cut: cut.signal, clock, log, metrics },
  });
  const inHand = new Set<Promise<void>>();
  const crashes: unknown[] = [];

  const onAndOn = createSteady({ place: commands.place, clock, log, stopping: stop.signal });

  const begin = () => stop.abort(OVER);
  signal.addEventListener('abort', begin, { once: true });
  if (signal.aborted) begin();

  async function takeBatch(): Promise<undefined> {
    while (inHand.size >= BATCHES_IN_HAND && !stop.signal.aborted) await Promise.race(inHand);
    if (stop.signal.aborted) return;
    await taking.usable();
    const mine = keys.inHand(maker.worker);
    const first = await taking.redis.blmove(queue, mine, 'LEFT', 'RIGHT', BLOCK_SECONDS);
    if (first === null) return;
    const jobs = [first, ...(await more(batchSize - 1))];
    if (jobs.length < batchSize && options.batchWindowMs > 0) {
      await clock.sleep(options.batchWindowMs, stop.signal);
      jobs.push(...(await more(batchSize - jobs.length)));
    }
    const work = hands
      .work(jobs)
      .catch((error: unknown) => {
        // Nothing that is foreseen ends here. As after any death, others take the jobs over, and count it.
        crashes.push(error);
        begin();
      })
      .finally(() => inHand.delete(work));
    inHand.add(work);
  }

  async function more(most: number): Promise<string[]> {
    if (most <= 0) return [];
    return (await taking.redis.eval(TAKE, 2, queue, keys.inHand(maker.worker), most)) as string[];
  }

  /** Jobs whose taking was cut off lie in our list and nobody knows of them. */
  async function recover(): Promise<void> {
    await Promise.all(inHand);
    await commands.back(stop.signal);
    if (!stop.signal.aborted) await roster.giveBack();
  }

  async function showPresence(): Promise<undefined> {
    await commands.usable();
    await roster.present();
    await roster.takeBack();
  }

  async function start(): Promise<'done'> {
    await commands.usable();
    await refuseOldRedis(commands);
    await roster.present();
    log.info(
      { worker: maker.worker, redis: commands.place, server: server.place, model: maker.model },
      `the worker takes jobs from ${queue}`,
    );
    return 'done';
  }

  async function finish(): Promise<void> {
    const allDone = new AbortController();
    void clock.sleep(options.shutdownSeconds * 1000, allDone.signal).then(() => cut.abort(OVER));
    await Promise.all(inHand);
    allDone.abort(OVER);
    const left =
      commands.redis.status === 'ready' && crashes.length === 0
        ? await roster.leave().catch(() => null)
        : null;
    // Else another worker finds them, when this one is seen to be gone.
    if (left !== null) log.info({ given_back: left }, 'the worker has stopped');
    else
      log.warn({ place: commands.place }, 'the worker has stopped; jobs in hand stay in its list in Redis');
    commands.close();
    taking.close();
    await server.close();
  }

  try {
    await onAndOn('start', start);
    await Promise.all([
      onAndOn('take jobs', takeBatch, { mend: recover }),
      onAndOn('show that it lives', showPresence, { everyMs: ROSTER_EVERY_MS }),
      tellProgress(() => commands.redis.llen(queue), stop.signal),
    ]);
  } finally {
    begin();
    await finish();
    signal.removeEventListener('abort', begin);
  }
  if (crashes.length > 0) throw crashes[0];
}
