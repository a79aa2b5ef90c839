/**
 * A worker's jobs: embedded in batches and answered. A job is removed from the taken list in the transaction that pushes its reply.
 * Jobs of dead workers return to the queue in order; a job that killed several workers is parked.
 */
import { createHash } from 'node:crypto';
import type { ChainableCommander, Redis } from 'ioredis';
import type { Clock } from '../core/clock.js';
import { describe, Fault } from '../core/errors.js';
import type { Log, Metrics } from '../core/log.js';
import { backoff, mayTry } from '../core/retry.js';
import { HARMLESS, inBatches, LastingFault, type Outcome, type VectorSource } from './embedder.js';
import {
  type EmbeddingJob,
  type QueueKeys,
  REPLIES_EXPIRE_SECONDS,
  type RedisConnection,
  type Replier,
  readJob,
  SERVER_FAILS,
  writeReply,
} from './redis.js';

/** How often `show` and `takeOver` run. With ALIVE_MS, a death is noticed well within 15 s. */
export const SHOW_EVERY_MS = 2_000;
const ALIVE_MS = 8_000;
const LOOKING_MS = 5_000;
const DEATHS_KEPT_SECONDS = 3_600;
const MOST_DEAD = 1_000;

export function createWorkerPresence(
  redis: Redis,
  keys: QueueKeys,
  replier: Replier,
  log: Log,
  metrics: Metrics,
) {
  const { worker } = replier;

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
    const isFatal = (n: number) => !mayTry(Number(deaths[n] ?? 0) + 1);
    const change = redis.multi();
    for (const [n, text] of texts.entries()) {
      if (isFatal(n)) giveUp(change, list, text);
      else change.hincrby(keys.deaths, digest(text), 1);
    }
    const given = texts.filter((_, n) => !isFatal(n)).length;
    moveBack(change, list, keys.queue, given);
    await change.expire(keys.deaths, DEATHS_KEPT_SECONDS).srem(keys.workers, name).exec();
    metrics.count('embedding_jobs_total', { outcome: 'taken_back' }, given);
    metrics.count('embedding_jobs_total', { outcome: 'given_up' }, texts.length - given);
    log.warn({ worker: name, jobs: given }, 'embedding worker died; its jobs are back in the queue');
  }

  function giveUp(change: ChainableCommander, list: string, text: string): void {
    const job = readJob(text);
    const words = 'Given up: the workers that took this job died';
    if (job?.replyTo && !keys.isOwn(job.replyTo)) {
      change.rpush(job.replyTo, writeReply(job.taskId, { error: words }, replier));
      change.expire(job.replyTo, REPLIES_EXPIRE_SECONDS);
    }
    change.rpush(keys.dead, text).ltrim(keys.dead, -MOST_DEAD, -1);
    change.lrem(list, 1, text).hdel(keys.deaths, digest(text));
    log.error({ task_id: job?.taskId, list: keys.dead }, 'embedding workers died of a job; job parked');
  }

  async function giveBack(): Promise<number> {
    const list = keys.taken(worker);
    const jobs = await redis.llen(list);
    const change = redis.multi();
    moveBack(change, list, keys.queue, jobs);
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

/** To the front of the queue, in order; in one transaction, because other workers wait there. */
function moveBack(change: ChainableCommander, list: string, queue: string, jobs: number): void {
  for (let n = 0; n < jobs; n++) change.lmove(list, queue, 'RIGHT', 'LEFT');
}

/** Identifies a job in the count of deaths: ids may be missing or used twice. */
export function digest(text: string): string {
  return createHash('sha1').update(text).digest('base64');
}

interface WorkerJobsOptions {
  connection: RedisConnection;
  keys: QueueKeys;
  server: VectorSource;
  replier: Replier;
  batchSize: number;
  /** No new attempts: unanswered jobs stay taken, to be returned. */
  stopping: AbortSignal;
  /** Also aborts requests in flight. */
  cutOff: AbortSignal;
  /** From taking a job until it is answered with the server's error. */
  timeoutSeconds: number;
  clock: Clock;
  log: Log;
  metrics: Metrics;
}

interface WantedVectors {
  text: string;
  content: string;
  taskId: EmbeddingJob['taskId'];
  replyTo: string;
}

/** `failed`: the server is down. */
interface Done {
  text: string;
  outcome: 'done' | 'refused' | 'failed' | 'invalid' | 'malformed' | 'unaddressed';
  reply: { to: string; body: string } | null;
}

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

function pauseAfter(failures: number): number {
  return backoff(failures, FIRST_WAIT_MS, LONGEST_WAIT_MS);
}

export class WorkerJobs {
  /** Why the server fails; null while it works. */
  private failing: string | null = null;
  /** How many times in a row all taken jobs were answered with that error. */
  private inVain = 0;

  constructor(private readonly options: WorkerJobsOptions) {}

  /** Resolves when all jobs are answered, or the worker stops. */
  async work(texts: string[]): Promise<void> {
    const { batchSize, stopping, clock, timeoutSeconds } = this.options;
    const timeoutMs = timeoutSeconds * 1000;
    const until = clock.now() + timeoutMs;
    const sorted = texts.map((text) => this.sortJob(text));
    const wanted = sorted.filter((job) => 'content' in job);
    await this.answer(sorted.filter((job) => 'outcome' in job));
    // A job that may have killed a worker is embedded alone.
    const suspects = await this.suspectsAmong(wanted);
    const others = wanted.filter((job) => !suspects.includes(job));
    const batches = inBatches(others, ({ content }) => content, batchSize);
    for (const batch of [...batches, ...suspects.map((job) => [job])]) await this.embed(batch, 0, until);
    this.inVain = this.failing === null ? 0 : this.inVain + 1;
    // Leaves jobs to workers whose server works, but not so long that requesters time out.
    if (this.inVain > 0) await clock.sleep(Math.min(pauseAfter(this.inVain), timeoutMs / 3), stopping);
  }

  private sortJob(text: string): WantedVectors | Done {
    const { keys, log } = this.options;
    const job = readJob(text);
    if (job === null) {
      log.warn({ queue: keys.queue, length: text.length }, 'embedding job was no JSON; dropped');
      return { text, outcome: 'malformed', reply: null };
    }
    const { taskId, type, content, replyTo } = job;
    if (replyTo === null || keys.isOwn(replyTo)) {
      log.warn(
        { queue: keys.queue, task_id: taskId, reply_to: replyTo },
        'embedding job named no list for its reply, or one of the workers; dropped',
      );
      return { text, outcome: 'unaddressed', reply: null };
    }
    if (type === 'embed' && content !== null) return { text, content, taskId, replyTo };
    const error = type === 'embed' ? 'No valid content provided for embed' : `Unknown task type: ${type}`;
    return this.done({ text, taskId, replyTo }, 'invalid', { error });
  }

  /** Those that a worker had taken when it died. */
  private async suspectsAmong(jobs: WantedVectors[]): Promise<WantedVectors[]> {
    const { redis } = this.options.connection;
    const { deaths } = this.options.keys;
    const counts = await this.whenRedisWorks(async () =>
      jobs.length === 0 || (await redis.exists(deaths)) === 0
        ? []
        : redis.hmget(deaths, ...jobs.map(({ text }) => digest(text))),
    );
    return jobs.filter((_, n) => typeof counts?.[n] === 'string');
  }

  /** Retries while the server is down and time is left. If it works but fails on this batch, the batch is halved. */
  private async embed(batch: WantedVectors[], failuresBefore: number, until: number): Promise<void> {
    const { server, stopping, cutOff, clock, log, metrics } = this.options;
    for (let failures = failuresBefore + 1; !stopping.aborted; failures++) {
      if (this.failing !== null && clock.now() >= until) return await this.fail(batch, this.failing);
      const begun = clock.now();
      try {
        const texts = batch.map(({ content }) => content);
        const outcomes = await server.embed(texts, { purpose: 'document', signal: cutOff });
        this.works();
        metrics.observe('embedding_seconds', (clock.now() - begun) / 1000);
        return await this.answer(
          batch.map((job, n) => this.doneWith(job, outcomes[n] ?? { refused: 'no answer' })),
        );
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
        if (stopping.aborted) return;
        const reason = describe(error);
        const isLasting = error instanceof LastingFault;
        const isOver = clock.now() >= until;
        if (!isLasting && (failures >= 2 || isOver) && (await this.serverWorks())) {
          if (batch.length > 1) {
            const middle = batch.length >> 1;
            await this.embed(batch.slice(0, middle), 1, until);
            return await this.embed(batch.slice(middle), 1, until);
          }
          if (failures >= 2)
            return await this.answer(batch.map((job) => this.doneWith(job, { refused: reason })));
          continue;
        }
        if (this.failing === null) {
          log.warn({ place: server.place, reason }, 'embedding server failed; answering jobs with an error');
        }
        this.failing = reason;
        if (isLasting || isOver) return await this.fail(batch, reason);
        await clock.sleep(Math.min(pauseAfter(failures), until - clock.now()), stopping);
      }
    }
  }

  private async serverWorks(): Promise<boolean> {
    const { server, cutOff } = this.options;
    try {
      const [outcome] = await server.embed([HARMLESS], { purpose: 'query', signal: cutOff });
      const does = outcome !== undefined && 'vector' in outcome;
      if (does) this.works();
      return does;
    } catch {
      // The caller already knows the reason.
      return false;
    }
  }

  private works(): void {
    const { log, server } = this.options;
    if (this.failing !== null) log.info({ place: server.place }, 'embedding server works again');
    this.failing = null;
  }

  private async fail(batch: WantedVectors[], reason: string): Promise<void> {
    const error = `${SERVER_FAILS}: ${reason}`;
    await this.answer(batch.map((job) => this.done(job, 'failed', { error })));
  }

  private doneWith(job: WantedVectors, outcome: Outcome): Done {
    if ('vector' in outcome) return this.done(job, 'done', outcome);
    return this.done(job, 'refused', { error: `The embedding server refused this text: ${outcome.refused}` });
  }

  private done(
    { text, taskId, replyTo }: Omit<WantedVectors, 'content'>,
    outcome: Done['outcome'],
    content: Parameters<typeof writeReply>[1],
  ): Done {
    return {
      text,
      outcome,
      reply: { to: replyTo, body: writeReply(taskId, content, this.options.replier) },
    };
  }

  private async answer(done: Done[]): Promise<void> {
    const { connection, keys, replier, log, metrics } = this.options;
    if (done.length === 0) return;
    const results = await this.whenRedisWorks(async () => {
      const transaction = connection.redis.multi();
      for (const { text, reply } of done) {
        if (reply) transaction.rpush(reply.to, reply.body).expire(reply.to, REPLIES_EXPIRE_SECONDS);
        transaction.lrem(keys.taken(replier.worker), 1, text);
      }
      if (done.length === 1) for (const { text } of done) transaction.hdel(keys.deaths, digest(text));
      return transaction.exec();
    });
    if (results === undefined) return;
    for (const { outcome } of done) metrics.count('embedding_jobs_total', { outcome });
    const undelivered = results?.find(([error]) => error !== null)?.[0];
    if (undelivered) log.warn({ err: undelivered }, 'pushing a reply to the list of its job failed; dropped');
  }

  /** undefined: the worker stops before Redis answers. */
  private async whenRedisWorks<Result>(run: () => Promise<Result>): Promise<Result | undefined> {
    const { connection, stopping, clock, log } = this.options;
    for (let failures = 1; ; failures++) {
      await connection.connectedAgain(stopping);
      try {
        return await run();
      } catch (error) {
        if (stopping.aborted) return undefined;
        log.warn({ err: error }, 'answering embedding jobs in Redis failed; retrying');
        await clock.sleep(pauseAfter(failures), stopping);
      }
    }
  }
}
