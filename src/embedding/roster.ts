/**
 * Which workers there are. Each says again and again that it lives, and gives the jobs of those that died back to
 * the queue, to be taken next and in their old order. A job that was in hand at several deaths is given up.
 */
import { createHash } from 'node:crypto';
import type { ChainableCommander, Redis } from 'ioredis';
import type { Log } from '../core/log.js';
import type { EmbeddingMetrics } from './metrics.js';
import { type Maker, readJob, writeError } from './protocol.js';
import type { QueueKeys } from './queue-keys.js';

/** How often `present` and `takeBack` are due. With the time a worker stays alive: well below 15 s. */
export const ROSTER_EVERY_MS = 2_000;
const ALIVE_MS = 8_000;
const LOOKING_MS = 5_000;
const MOST_DEATHS = 3;
const DEATHS_KEPT_SECONDS = 3_600;
const MOST_DEAD = 1_000;
export const REPLY_KEPT_SECONDS = 300;

export function createRoster(options: {
  redis: Redis;
  keys: QueueKeys;
  maker: Maker;
  log: Log;
  metrics: EmbeddingMetrics;
}) {
  const { redis, keys, maker, log, metrics } = options;
  const { worker } = maker;

  async function present(): Promise<void> {
    await redis.multi().sadd(keys.workers, worker).set(keys.alive(worker), '1', 'PX', ALIVE_MS).exec();
  }

  async function takeBack(): Promise<void> {
    const others = (await redis.smembers(keys.workers)).filter((name) => name !== worker);
    if (others.length === 0) return;
    const alive = await redis.mget(others.map(keys.alive));
    const dead = others.filter((_, n) => alive[n] === null);
    if (dead.length === 0) return;
    if ((await redis.set(keys.looking, worker, 'PX', LOOKING_MS, 'NX')) === null) return;
    try {
      for (const name of dead) await takeBackFrom(name);
    } finally {
      await redis.del(keys.looking);
    }
  }

  async function takeBackFrom(name: string): Promise<void> {
    const list = keys.inHand(name);
    const texts = await redis.lrange(list, 0, -1);
    const before = texts.length === 0 ? [] : await redis.hmget(keys.deaths, ...texts.map(digest));
    const isFatal = (n: number) => Number(before[n] ?? 0) + 1 >= MOST_DEATHS;
    const change = redis.multi();
    for (const [n, text] of texts.entries()) {
      if (isFatal(n)) bury(change, list, text);
      else change.hincrby(keys.deaths, digest(text), 1);
    }
    const given = texts.filter((_, n) => !isFatal(n)).length;
    moveBack(change, list, given);
    await change.expire(keys.deaths, DEATHS_KEPT_SECONDS).srem(keys.workers, name).exec();
    metrics.count('embedding_jobs_total', { outcome: 'taken_back' }, given);
    metrics.count('embedding_jobs_total', { outcome: 'given_up' }, texts.length - given);
    log.warn({ worker: name, jobs: given }, 'an embedding worker died; what it had in hand is done again');
  }

  function bury(change: ChainableCommander, list: string, text: string): void {
    const job = readJob(text);
    const words = `Given up: ${MOST_DEATHS} workers died with this job in hand`;
    if (job?.replyTo && !keys.isOwn(job.replyTo)) {
      change.rpush(job.replyTo, writeError(job.taskId, words, maker));
      change.expire(job.replyTo, REPLY_KEPT_SECONDS);
    }
    change.rpush(keys.dead, text).ltrim(keys.dead, -MOST_DEAD, -1);
    change.lrem(list, 1, text).hdel(keys.deaths, digest(text));
    log.error(
      { task_id: job?.taskId, list: keys.dead },
      `a job is given up: ${MOST_DEATHS} workers died of it`,
    );
  }

  /** Back to the front, the first in front again. In one go: others wait at the queue and take what comes first. */
  function moveBack(change: ChainableCommander, list: string, jobs: number): void {
    for (let n = 0; n < jobs; n++) change.lmove(list, keys.queue, 'RIGHT', 'LEFT');
  }

  async function giveBack(): Promise<number> {
    const list = keys.inHand(worker);
    const jobs = await redis.llen(list);
    const change = redis.multi();
    moveBack(change, list, jobs);
    await change.exec();
    return jobs;
  }

  return {
    present,
    takeBack,
    /** What this worker has in hand, or nobody knows of. */
    giveBack,

    /** Of these jobs, those that were in hand when a worker died. */
    async suspects(texts: string[]): Promise<Set<string>> {
      if (texts.length === 0 || (await redis.exists(keys.deaths)) === 0) return new Set();
      const deaths = await redis.hmget(keys.deaths, ...texts.map(digest));
      return new Set(texts.filter((_, n) => deaths[n] !== null));
    },

    async leave(): Promise<number> {
      const jobs = await giveBack();
      await redis.multi().srem(keys.workers, worker).del(keys.alive(worker)).exec();
      return jobs;
    },
  };
}

export type Roster = ReturnType<typeof createRoster>;

/** Names a job in the book of deaths: ids may be missing, or used twice. */
export function digest(text: string): string {
  return createHash('sha1').update(text).digest('base64');
}
