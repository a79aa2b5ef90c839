/**
 * `coterie worker`: runs beside the GPU, takes jobs from the queue in Redis, embeds them in batches and pushes the replies. Several
 * workers may share a queue. Each job stays in the worker's own list until it is answered.
 */
import { hostname } from 'node:os';
import { OVER } from '../core/clock.js';
import { describe, Fault } from '../core/errors.js';
import type { Log, Metrics } from '../core/log.js';
import type { VectorSource } from './embedder.js';
import { openRedis, type QueueKeys, queueKeys, type RedisConnection, type Replier } from './redis.js';
import { EmbeddingServer, type EmbeddingServerOptions } from './server.js';
import { createWorkerPresence, SHOW_EVERY_MS, WorkerJobs } from './worker-jobs.js';

export interface WorkerOptions extends EmbeddingServerOptions {
  redisUrl: string;
  queue: string;
  batchSize: number;
  batchWindowMs: number;
  /** Time after `signal` to finish batches; unfinished jobs return to the queue. */
  shutdownSeconds: number;
  newId: () => string;
  log: Log;
  metrics: Metrics;
}

/** Concurrent batches: one is computed while the next is sent. */
const BATCHES_AT_ONCE = 2;
/** A blocked wait cannot be cancelled, so an idle worker takes this long to stop. */
const BLOCK_SECONDS = 0.25;
const PAUSE_AFTER_TROUBLE_MS = 500;

/** Takes up to ARGV[1] more jobs, in order, in one round trip. */
const TAKE = `local jobs = {}
for n = 1, tonumber(ARGV[1]) do
  local job = redis.call('LMOVE', KEYS[1], KEYS[2], 'LEFT', 'RIGHT')
  if not job then break end
  jobs[n] = job
end
return jobs`;

/** Works until the signal aborts. Throws Fault if it can never work (Redis too old). */
export async function runWorker(options: WorkerOptions, signal: AbortSignal): Promise<void> {
  await new Worker(options).run(signal);
}

class Worker {
  private readonly replier: Replier;
  private readonly keys: QueueKeys;
  private readonly commands: RedisConnection;
  private readonly taking: RedisConnection;
  private readonly server: VectorSource;
  private readonly presence: ReturnType<typeof createWorkerPresence>;
  private readonly jobs: WorkerJobs;
  private readonly stop = new AbortController();
  private readonly cut = new AbortController();
  private readonly batches = new Set<Promise<void>>();
  private readonly crashes: unknown[] = [];
  /** Taking was interrupted: our list may hold jobs that we never received. */
  private mayHaveLost = false;

  constructor(private readonly options: WorkerOptions) {
    const { model, queue, redisUrl, clock, log, newId, metrics } = options;
    this.replier = { worker: `${hostname()}-${newId()}`, model };
    this.keys = queueKeys(queue);
    this.commands = openRedis(redisUrl, 'coterie worker', clock);
    this.taking = openRedis(redisUrl, 'coterie worker, taking jobs', clock);
    this.server = new EmbeddingServer(options);
    this.presence = createWorkerPresence(this.commands.redis, this.keys, this.replier, log, metrics);
    this.jobs = new WorkerJobs({
      ...options,
      connection: this.commands,
      keys: this.keys,
      server: this.server,
      replier: this.replier,
      stopping: this.stop.signal,
      cutOff: this.cut.signal,
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const beginToStop = () => this.stop.abort(OVER);
    signal.addEventListener('abort', beginToStop, { once: true });
    if (signal.aborted) beginToStop();
    try {
      await this.repeat('start', null, () => this.start());
      await Promise.all([
        this.repeat('take jobs', 0, () => this.takeBatch()),
        this.repeat('show that it lives', SHOW_EVERY_MS, () => this.showPresence()),
      ]);
    } finally {
      beginToStop();
      await this.finish();
      signal.removeEventListener('abort', beginToStop);
    }
    if (this.crashes.length > 0) throw this.crashes[0];
  }

  private async start(): Promise<void> {
    const { queue, model, log } = this.options;
    await this.commands.connected();
    await refuseOldRedis(this.commands);
    await this.presence.show();
    const fields = {
      worker: this.replier.worker,
      redis: this.commands.place,
      server: this.server.place,
      model,
    };
    log.info(fields, `embedding worker started; taking jobs from ${queue}`);
  }

  private async takeBatch(): Promise<void> {
    const { batches } = this;
    const stopping = this.stop.signal;
    while (batches.size >= BATCHES_AT_ONCE && !stopping.aborted) await Promise.race(batches);
    if (stopping.aborted) return;
    await this.taking.connected();
    if (this.mayHaveLost) {
      await Promise.all(batches);
      await this.commands.connected();
      await this.presence.giveBack();
    }
    this.mayHaveLost = true;
    const taken = await this.take();
    this.mayHaveLost = false;
    if (taken.length === 0) return;
    const batch = this.jobs
      .work(taken)
      .catch((error: unknown) => {
        // Only a defect gets here. The worker stops; others take over its jobs and count it as a death.
        this.crashes.push(error);
        this.stop.abort(OVER);
      })
      .finally(() => batches.delete(batch));
    batches.add(batch);
  }

  private async take(): Promise<string[]> {
    const { queue, batchSize, batchWindowMs, clock } = this.options;
    const { redis } = this.taking;
    const mine = this.keys.taken(this.replier.worker);
    const more = async (most: number) =>
      most <= 0 ? [] : ((await redis.eval(TAKE, 2, queue, mine, most)) as string[]);
    const first = await redis.blmove(queue, mine, 'LEFT', 'RIGHT', BLOCK_SECONDS);
    if (first === null) return [];
    const taken = [first, ...(await more(batchSize - 1))];
    if (taken.length < batchSize && batchWindowMs > 0) {
      await clock.sleep(batchWindowMs, this.stop.signal);
      taken.push(...(await more(batchSize - taken.length)));
    }
    return taken;
  }

  private async showPresence(): Promise<void> {
    await this.commands.connected();
    await this.presence.show();
    await this.presence.takeOver();
  }

  /** Repeats until the worker stops, or until one success (null). Logs when errors begin and end. Throws only Fault `configuration`. */
  private async repeat(what: string, everyMs: number | null, run: () => Promise<void>): Promise<void> {
    const { clock, log } = this.options;
    const { place } = this.commands;
    const stopping = this.stop.signal;
    let isTroubled = false;
    while (!stopping.aborted) {
      try {
        await run();
        if (isTroubled) log.info({ place }, `Redis works again: the worker can ${what}`);
        isTroubled = false;
        if (everyMs === null) return;
        await clock.sleep(everyMs, stopping);
      } catch (error) {
        if (error instanceof Fault && error.code === 'configuration') throw error;
        if (stopping.aborted) return;
        if (!isTroubled)
          log.warn({ place, reason: describe(error) }, `Redis fails: the worker cannot ${what}`);
        isTroubled = true;
        await clock.sleep(PAUSE_AFTER_TROUBLE_MS, stopping);
      }
    }
  }

  private async finish(): Promise<void> {
    const { clock, log, shutdownSeconds } = this.options;
    const stopTimer = clock.after(shutdownSeconds * 1000, () => this.cut.abort(OVER));
    await Promise.all(this.batches);
    stopTimer();
    const mayLeave = this.commands.isReady() && this.crashes.length === 0;
    const left = mayLeave ? await this.presence.leave().catch(() => null) : null;
    // Otherwise another worker takes them over.
    if (left !== null) log.info({ given_back: left }, 'embedding worker stopped');
    else
      log.warn(
        { place: this.commands.place },
        'embedding worker stopped; its jobs stay in its list in Redis',
      );
    this.commands.close();
    this.taking.close();
    await this.server.close();
  }
}

/** BLMOVE and LMOVE came with 6.2. */
async function refuseOldRedis({ redis, place, isReady }: RedisConnection): Promise<void> {
  const info = await redis.info('server').catch((error: unknown) => {
    // INFO may be forbidden; the first job will show.
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
