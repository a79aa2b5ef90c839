/**
 * `coterie worker`: runs beside the GPU, takes jobs from the queue in Redis, has them embedded a batch at a time, and
 * pushes the replies. Several may work on one queue. A job is kept in a list of its own until it is answered.
 */
import { hostname } from 'node:os';
import { OVER } from '../core/clock.js';
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { type EmbeddingMetrics, openRedis, queueKeys, type RedisConnection } from './redis.js';
import { createEmbeddingServer, type EmbeddingServerOptions } from './server.js';
import { createWorkerJobs, createWorkerPresence, SHOW_EVERY_MS } from './worker-jobs.js';

export interface WorkerOptions extends EmbeddingServerOptions {
  redisUrl: string;
  /** `queue:gpu_heavy` */
  queue: string;
  batchSize: number;
  batchWindowMs: number;
  /** After `signal`, for the batches under way to be finished; what is not goes back to the queue. */
  shutdownSeconds: number;
  newId: () => string;
  log: Log;
  metrics: EmbeddingMetrics;
}

/** Batches at the server at once: one is computed while the next is on its way. */
const BATCHES_AT_ONCE = 2;
/** Nothing else ends a wait for jobs, so this is how long a worker without any takes to stop. */
const BLOCK_SECONDS = 0.25;
const PAUSE_AFTER_TROUBLE_MS = 500;
const TELL_PROGRESS_EVERY_MS = 60_000;

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
  const { queue, model, batchSize, clock, log } = options;
  const replier = { worker: `${hostname()}-${options.newId()}`, model };
  const keys = queueKeys(queue);
  const mine = keys.taken(replier.worker);
  const commands = openRedis(options.redisUrl, 'coterie worker', clock);
  const taking = openRedis(options.redisUrl, 'coterie worker, taking jobs', clock);
  const { place } = commands;
  const server = createEmbeddingServer(options);
  const stop = new AbortController();
  const stopping = stop.signal;
  const cut = new AbortController();
  const progress = { done: 0, others: 0 };
  const metrics: EmbeddingMetrics = {
    count(name, labels, by = 1) {
      progress[labels.outcome === 'done' ? 'done' : 'others'] += by;
      options.metrics.count(name, labels, by);
    },
    observe: (name, seconds) => options.metrics.observe(name, seconds),
  };
  const presence = createWorkerPresence(commands.redis, keys, replier, log, metrics);
  const jobs = createWorkerJobs({
    connection: commands,
    keys,
    server,
    replier,
    batchSize,
    stopping,
    cutOff: cut.signal,
    timeoutSeconds: options.timeoutSeconds,
    clock,
    log,
    metrics,
  });
  const batches = new Set<Promise<void>>();
  const crashes: unknown[] = [];
  /** Taking was cut off: our list may hold jobs that we never received. */
  let mayHaveLost = false;

  const beginToStop = () => stop.abort(OVER);
  signal.addEventListener('abort', beginToStop, { once: true });
  if (signal.aborted) beginToStop();

  async function start(): Promise<void> {
    await commands.connected();
    await refuseOldRedis(commands);
    await presence.show();
    log.info(
      { worker: replier.worker, redis: place, server: server.place, model },
      `the worker takes jobs from ${queue}`,
    );
  }

  async function takeBatch(): Promise<void> {
    while (batches.size >= BATCHES_AT_ONCE && !stopping.aborted) await Promise.race(batches);
    if (stopping.aborted) return;
    await taking.connected();
    if (mayHaveLost) {
      await Promise.all(batches);
      await commands.connected();
      await presence.giveBack();
    }
    mayHaveLost = true;
    const taken = await take();
    mayHaveLost = false;
    if (taken.length === 0) return;
    const batch = jobs
      .work(taken)
      .catch((error: unknown) => {
        // Only a defect ends here. The worker stops; as after any death, others take over its jobs and count it.
        crashes.push(error);
        beginToStop();
      })
      .finally(() => batches.delete(batch));
    batches.add(batch);
  }

  async function take(): Promise<string[]> {
    const more = async (most: number) =>
      most <= 0 ? [] : ((await taking.redis.eval(TAKE, 2, queue, mine, most)) as string[]);
    const first = await taking.redis.blmove(queue, mine, 'LEFT', 'RIGHT', BLOCK_SECONDS);
    if (first === null) return [];
    const taken = [first, ...(await more(batchSize - 1))];
    if (taken.length < batchSize && options.batchWindowMs > 0) {
      await clock.sleep(options.batchWindowMs, stopping);
      taken.push(...(await more(batchSize - taken.length)));
    }
    return taken;
  }

  async function showPresence(): Promise<void> {
    await commands.connected();
    await presence.show();
    await presence.takeOver();
  }

  /**
   * Runs it again and again until the worker stops, or once until it succeeds (null). Trouble is waited out, and told
   * when it begins and when it ends. Throws only Fault `configuration`.
   */
  async function repeat(what: string, everyMs: number | null, run: () => Promise<void>): Promise<void> {
    let troubled = false;
    while (!stopping.aborted) {
      try {
        await run();
        if (troubled) log.info({ place }, `Redis works again: the worker can ${what}`);
        troubled = false;
        if (everyMs === null) return;
        await clock.sleep(everyMs, stopping);
      } catch (error) {
        if (error instanceof Fault && error.code === 'configuration') throw error;
        if (stopping.aborted) return;
        if (!troubled) log.warn({ place, reason: describe(error) }, `Redis fails: the worker cannot ${what}`);
        troubled = true;
        await clock.sleep(PAUSE_AFTER_TROUBLE_MS, stopping);
      }
    }
  }

  async function tellProgress(): Promise<void> {
    while (!stopping.aborted) {
      await clock.sleep(TELL_PROGRESS_EVERY_MS, stopping);
      const { done, others } = progress;
      if (done + others === 0) continue;
      const waiting = await commands.redis.llen(queue).catch(() => null);
      log.info({ done, others, waiting }, `embedded ${done} texts in the last minute`);
      Object.assign(progress, { done: 0, others: 0 });
    }
  }

  async function finish(): Promise<void> {
    const stopTimer = clock.after(options.shutdownSeconds * 1000, () => cut.abort(OVER));
    await Promise.all(batches);
    stopTimer();
    const mayLeave = commands.isReady() && crashes.length === 0;
    const left = mayLeave ? await presence.leave().catch(() => null) : null;
    // Else another worker finds them, when this one is seen to be gone.
    if (left !== null) log.info({ given_back: left }, 'the worker has stopped');
    else log.warn({ place }, 'the worker has stopped; the jobs it had taken stay in its list in Redis');
    commands.close();
    taking.close();
    await server.close();
  }

  try {
    await repeat('start', null, start);
    await Promise.all([
      repeat('take jobs', 0, takeBatch),
      repeat('show that it lives', SHOW_EVERY_MS, showPresence),
      tellProgress(),
    ]);
  } finally {
    beginToStop();
    await finish();
    signal.removeEventListener('abort', beginToStop);
  }
  if (crashes.length > 0) throw crashes[0];
}

/** Before it takes a job. BLMOVE and LMOVE came with 6.2. */
async function refuseOldRedis({ redis, place, isReady }: RedisConnection): Promise<void> {
  const info = await redis.info('server').catch((error: unknown) => {
    // Where asking is not allowed, the first job will tell.
    if (isReady()) return '';
    throw error;
  });
  const [, version, major, minor] = /redis_version:((\d+)\.(\d+)\S*)/.exec(info) ?? [];
  if (version === undefined || Number(major) > 6 || (Number(major) === 6 && Number(minor) >= 2)) return;
  throw new Fault(
    'configuration',
    `Redis at ${place} is ${version}; the worker needs 6.2 or newer, because it takes jobs with BLMOVE.`,
  );
}
