/**
 * One batch of jobs in a worker's hands: sorted, embedded, answered. A job leaves the list of those in hand in the
 * same transaction that pushes its reply, so that none is lost and none stays.
 */
import type { Redis } from 'ioredis';
import type { Clock } from '../core/clock.js';
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { type Done, doneWith, sortJob, type Wanted } from './jobs.js';
import type { EmbeddingMetrics } from './metrics.js';
import type { VectorSource } from './outcome.js';
import type { Maker } from './protocol.js';
import type { QueueKeys } from './queue-keys.js';
import { digest, REPLY_KEPT_SECONDS, type Roster } from './roster.js';
import { HARMLESS, inBatches } from './texts.js';

export interface HandsOptions {
  redis: Redis;
  /** Resolves when Redis can be reached again, or when the signal aborts. */
  redisBack(signal: AbortSignal): Promise<void>;
  keys: QueueKeys;
  roster: Roster;
  server: VectorSource;
  maker: Maker;
  batchSize: number;
  /** No new tries: what is not answered stays in hand, to be given back. */
  stopping: AbortSignal;
  /** What is under way is cut off, too. */
  cut: AbortSignal;
  clock: Clock;
  log: Log;
  metrics: EmbeddingMetrics;
}

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

export function createHands(options: HandsOptions) {
  const { redis, keys, roster, server, maker, clock, log, metrics, stopping, cut } = options;
  let serverFails = false;

  /** Ends when all is answered, or when the worker stops. */
  async function work(texts: string[]): Promise<void> {
    const wanted: Wanted[] = [];
    const settled: Done[] = [];
    for (const text of texts) {
      const sorted = sortJob(text, keys, maker);
      if ('content' in sorted) wanted.push(sorted);
      else settled.push(sorted);
    }
    for (const { text } of settled.filter(({ outcome }) => outcome === 'malformed')) {
      log.warn({ queue: keys.queue, length: text.length }, 'a job that is not JSON was dropped');
    }
    await answer(settled);
    // One that may have killed a worker takes no others with it.
    const suspects = await untilRedisWorks(() => roster.suspects(wanted.map(({ text }) => text)));
    const innocent = wanted.filter(({ text }) => !suspects?.has(text));
    const groups = inBatches(innocent, ({ content }) => content, options.batchSize);
    for (const group of groups) await embed(group, 0);
    for (const one of wanted) if (suspects?.has(one.text)) await embed([one], 0);
  }

  /** Waits out a server that is down. One that is well, but fails on these, gets them in halves. */
  async function embed(group: Wanted[], failuresBefore: number): Promise<void> {
    for (let failures = failuresBefore + 1; !stopping.aborted; failures++) {
      const begun = clock.now();
      try {
        const ask = { purpose: 'document', signal: cut } as const;
        const outcomes = await server.embed(
          group.map(({ content }) => content),
          ask,
        );
        serverAnswered();
        metrics.observe('embedding_seconds', (clock.now() - begun) / 1000);
        return await answer(group.map((wanted, n) => doneWith(wanted, outcomes[n], maker)));
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
        if (stopping.aborted) return;
        if (failures >= 2 && (await serverIsWell())) {
          if (group.length > 1) return await inHalves(group);
          return await answer(group.map((wanted) => doneWith(wanted, { refused: describe(error) }, maker)));
        }
        serverFailed(error);
        await clock.sleep(Math.min(FIRST_WAIT_MS * 2 ** (failures - 1), LONGEST_WAIT_MS), stopping);
      }
    }
  }

  async function inHalves(group: Wanted[]): Promise<void> {
    const middle = group.length >> 1;
    await embed(group.slice(0, middle), 1);
    await embed(group.slice(middle), 1);
  }

  async function serverIsWell(): Promise<boolean> {
    try {
      const [outcome] = await server.embed([HARMLESS], { purpose: 'query', signal: cut });
      return outcome !== undefined && 'vector' in outcome;
    } catch {
      // That it fails is the answer; why, the caller has just been told.
      return false;
    }
  }

  async function answer(done: Done[]): Promise<void> {
    if (done.length === 0) return;
    const results = await untilRedisWorks(async () => {
      const transaction = redis.multi();
      for (const { text, reply } of done) {
        if (reply) transaction.rpush(reply.to, reply.body).expire(reply.to, REPLY_KEPT_SECONDS);
        transaction.lrem(keys.inHand(maker.worker), 1, text);
      }
      if (done.length === 1) for (const { text } of done) transaction.hdel(keys.deaths, digest(text));
      return transaction.exec();
    });
    if (results === undefined) return;
    for (const { outcome } of done) metrics.count('embedding_jobs_total', { outcome });
    const undelivered = results?.find(([error]) => error !== null)?.[0];
    if (undelivered) {
      log.warn({ err: undelivered }, 'a reply could not be pushed to the list that its job names');
    }
  }

  /** undefined: the worker stops, and Redis still does not answer. */
  async function untilRedisWorks<Result>(run: () => Promise<Result>): Promise<Result | undefined> {
    for (let wait = FIRST_WAIT_MS; ; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
      await options.redisBack(stopping);
      try {
        return await run();
      } catch (error) {
        if (stopping.aborted) return undefined;
        log.warn({ err: error }, 'Redis does not take the answers of this worker; they wait');
        await clock.sleep(wait, stopping);
      }
    }
  }

  function serverAnswered(): void {
    if (serverFails) log.info({ place: server.place }, 'the embedding server works again');
    serverFails = false;
  }

  function serverFailed(error: unknown): void {
    if (!serverFails) {
      log.warn({ place: server.place, reason: describe(error) }, 'the embedding server fails; the jobs wait');
    }
    serverFails = true;
  }

  return { work };
}
