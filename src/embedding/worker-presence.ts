/**
 * Which workers there are. Each says again and again that it lives, and gives the jobs of those that died back to
 * the queue, to be taken next and in their old order. A job that killed several workers is given up.
 */
import { createHash } from 'node:crypto';
import type { ChainableCommander, Redis } from 'ioredis';
import type { Log } from '../core/log.js';
import {
  type EmbeddingMetrics,
  type QueueKeys,
  REPLIES_EXPIRE_SECONDS,
  type Replier,
  readJob,
  writeError,
} from './protocol.js';

/** How often `show` and `takeOver` are due. With the time a worker counts as alive: well below 15 s. */
export const SHOW_EVERY_MS = 2_000;
const ALIVE_MS = 8_000;
const LOOKING_MS = 5_000;
/** Many: whoever restarts workers, or their machine, ends them with jobs in hand that are not at fault. */
const MOST_DEATHS = 10;
const DEATHS_KEPT_SECONDS = 3_600;
const MOST_DEAD = 1_000;

export function createWorkerPresence(
  redis: Redis,
  keys: QueueKeys,
  replier: Replier,
  log: Log,
  metrics: EmbeddingMetrics,
) {
  const { worker } = replier;

  /** The jobs of workers that died go back to the queue. */
  async function takeOver(): Promise<void> {
    const others = (await redis.smembers(keys.workers)).filter((name) => name !== worker);
    if (others.length === 0) return;
    const alive = await redis.mget(others.map(keys.alive));
    const dead = others.filter((_, n) => alive[n] === null);
    if (dead.length === 0) return;
    if ((await redis.set(keys.looking, worker, 'PX', LOOKING_MS, 'NX')) === null) return;
    try {
      for (const name of dead) await takeOverFrom(name);
    } finally {
      await redis.del(keys.looking);
    }
  }

  async function takeOverFrom(name: string): Promise<void> {
    const list = keys.taken(name);
    const texts = await redis.lrange(list, 0, -1);
    const deaths = texts.length === 0 ? [] : await redis.hmget(keys.deaths, ...texts.map(digest));
    const isFatal = (n: number) => Number(deaths[n] ?? 0) + 1 >= MOST_DEATHS;
    const change = redis.multi();
    for (const [n, text] of texts.entries()) {
      if (isFatal(n)) giveUp(change, list, text);
      else change.hincrby(keys.deaths, digest(text), 1);
    }
    const given = texts.filter((_, n) => !isFatal(n)).length;
    moveBack(change, list, given);
    await change.expire(keys.deaths, DEATHS_KEPT_SECONDS).srem(keys.workers, name).exec();
    metrics.count('embedding_jobs_total', { outcome: 'taken_back' }, given);
    metrics.count('embedding_jobs_total', { outcome: 'given_up' }, texts.length - given);
    log.warn({ worker: name, jobs: given }, 'an embedding worker died; the jobs it had taken are done again');
  }

  function giveUp(change: ChainableCommander, list: string, text: string): void {
    const job = readJob(text);
    const words = `Given up: ${MOST_DEATHS} workers died with this job in hand`;
    if (job?.replyTo && !keys.isOwn(job.replyTo)) {
      change.rpush(job.replyTo, writeError(job.taskId, words, replier));
      change.expire(job.replyTo, REPLIES_EXPIRE_SECONDS);
    }
    change.rpush(keys.dead, text).ltrim(keys.dead, -MOST_DEAD, -1);
    change.lrem(list, 1, text).hdel(keys.deaths, digest(text));
    log.error(
      { task_id: job?.taskId, list: keys.dead },
      `a job is given up: ${MOST_DEATHS} workers died of it`,
    );
  }

  /** To the front of the queue, in their old order; in one transaction, because other workers wait there. */
  function moveBack(change: ChainableCommander, list: string, jobs: number): void {
    for (let n = 0; n < jobs; n++) change.lmove(list, keys.queue, 'RIGHT', 'LEFT');
  }

  /** What this worker has taken goes back to the queue. */
  async function giveBack(): Promise<number> {
    const list = keys.taken(worker);
    const jobs = await redis.llen(list);
    const change = redis.multi();
    moveBack(change, list, jobs);
    await change.exec();
    return jobs;
  }

  return {
    takeOver,
    giveBack,

    async show(): Promise<void> {
      await redis.multi().sadd(keys.workers, worker).set(keys.alive(worker), '1', 'PX', ALIVE_MS).exec();
    },

    async leave(): Promise<number> {
      const jobs = await giveBack();
      await redis.multi().srem(keys.workers, worker).del(keys.alive(worker)).exec();
      return jobs;
    },
  };
}

/** Of these jobs, those that a worker had taken when it died. */
export async function jobsWithDeaths<Job extends { text: string }>(
  redis: Redis,
  keys: QueueKeys,
  jobs: Job[],
): Promise<Set<Job>> {
  if (jobs.length === 0 || (await redis.exists(keys.deaths)) === 0) return new Set();
  const deaths = await redis.hmget(keys.deaths, ...jobs.map(({ text }) => digest(text)));
  return new Set(jobs.filter((_, n) => deaths[n] !== null));
}

/** Names a job where deaths are counted: ids may be missing, or used twice. */
export function digest(text: string): string {
  return createHash('sha1').update(text).digest('base64');
}
