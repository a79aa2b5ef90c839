/**
 * The requester's end of the queue: pushes jobs, takes the replies from one list of its own and matches them by
 * `task_id`. What nobody waits for any more is taken out of the queue, and its reply dropped.
 */
import { type Clock, OVER } from '../core/clock.js';
import { Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { createFlight } from './flight.js';
import type { EmbeddingMetrics } from './metrics.js';
import { createModelCheck } from './model-check.js';
import type { Outcome } from './outcome.js';
import { readReply, writeJob } from './protocol.js';
import { openRedis } from './redis-link.js';
import { readReplies } from './reply-list.js';
import { fitting } from './texts.js';

export interface RequestOptions {
  redisUrl: string;
  /** `queue:gpu_heavy` */
  queue: string;
  /** The list for replies. No other process may use it; the same name after a restart clears what came too late. */
  replyTo: string;
  model: string;
  timeoutSeconds: number;
  /** Nothing is pushed behind more jobs than this. */
  mostQueued: number;
  newId: () => string;
  clock: Clock;
  log: Log;
  metrics: EmbeddingMetrics;
}

/** One text on its way. */
interface Request {
  job: string;
  document: boolean;
  pushedAt: number;
  resolve(outcome: Outcome): void;
  reject(error: unknown): void;
}

export function createRequests(options: RequestOptions) {
  const { queue, replyTo, clock, log, metrics } = options;
  const commands = openRedis(options.redisUrl, 'coterie embeddings');
  const listening = openRedis(options.redisUrl, 'coterie embedding replies');
  const closing = new AbortController();
  const timeoutMs = options.timeoutSeconds * 1000;
  const flight = createFlight();
  const outstanding = new Map<string, Request>();
  /** Documents that wait for room in the queue. */
  let waiting: string[] = [];
  const notPushed = new Map<string, Request>();
  let reading: Promise<void> | null = null;
  let watching = false;
  /** Jobs in the queue when it was last heard of. */
  let queued = Number.POSITIVE_INFINITY;
  const place = commands.place;
  const otherModel = createModelCheck(options.model, log);

  listening.redis.on('close', () => failAll(listening.lost()));
  commands.redis.on('close', () => failAll(commands.lost()));

  /** An outcome for each text. Rejects as soon as one is known to get none, and gives up the others. */
  async function ask(
    texts: string[],
    { purpose, signal }: { purpose: 'query' | 'document'; signal: AbortSignal },
  ): Promise<Outcome[]> {
    if (signal.aborted) throw stopped();
    await connected();
    const ids: string[] = [];
    const answers = texts.map(
      (text) =>
        new Promise<Outcome>((resolve, reject) => {
          const taskId = options.newId();
          const job = writeJob({ taskId, content: fitting(text), replyTo });
          ids.push(taskId);
          notPushed.set(taskId, { job, document: purpose === 'document', pushedAt: 0, resolve, reject });
        }),
    );
    const all = Promise.all(answers);
    const stop = () => giveUp(ids, stopped());
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    else if (purpose === 'query') void push(ids);
    else {
      waiting.push(...ids);
      pushDocuments();
    }
    try {
      return await all;
    } catch (error) {
      giveUp(ids, error);
      throw error;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  async function connected(): Promise<void> {
    if (closing.signal.aborted) throw stopped();
    await Promise.all([commands.usable(), listening.usable()]);
    reading ??= readReplies({
      ...{ link: listening, list: replyTo, take, afterSome: pushDocuments, lost: failAll, clock },
      closing: closing.signal,
    });
  }

  function pushDocuments(): void {
    waiting = waiting.filter((id) => notPushed.has(id));
    const free = flight.free();
    if (free === 0 || waiting.length === 0) return;
    void push(waiting.splice(0, free));
  }

  async function push(ids: string[]): Promise<void> {
    const requests = new Map<string, Request>();
    for (const id of ids) {
      const request = notPushed.get(id);
      notPushed.delete(id);
      if (request === undefined) continue;
      request.pushedAt = clock.now();
      // Before it is pushed: the reply may be quicker than the answer to the push.
      outstanding.set(id, request);
      requests.set(id, request);
      if (request.document) flight.left(1);
    }
    if (requests.size === 0) return;
    void watchTheTime();
    try {
      if (queued > options.mostQueued) queued = await commands.redis.llen(queue);
      if (queued > options.mostQueued) throw tooMany(queued);
      const jobs = [...requests].filter(([id]) => outstanding.has(id)).map(([, { job }]) => job);
      if (jobs.length > 0) queued = await commands.redis.rpush(queue, ...jobs);
    } catch (error) {
      queued = Number.POSITIVE_INFINITY;
      giveUp([...requests.keys()], error instanceof Fault ? error : commands.lost(error));
    }
  }

  /** One timer for all: they are in the order in which they were pushed. */
  async function watchTheTime(): Promise<void> {
    if (watching) return;
    watching = true;
    while (!closing.signal.aborted) {
      const [oldest] = outstanding.values();
      if (oldest === undefined) break;
      const now = clock.now();
      // A clock that was set back must not make anybody wait longer.
      oldest.pushedAt = Math.min(oldest.pushedAt, now);
      const left = oldest.pushedAt + timeoutMs - now;
      if (left > 0) await clock.sleep(left, closing.signal);
      else giveUp(overdue(now), unanswered());
    }
    watching = false;
  }

  function overdue(now: number): string[] {
    return [...outstanding].filter(([, { pushedAt }]) => pushedAt + timeoutMs <= now).map(([id]) => id);
  }

  /** Nobody waits for these any more. What no worker has taken yet leaves the queue. */
  function giveUp(ids: string[], error: unknown): void {
    const jobs: string[] = [];
    for (const id of ids) {
      const request = notPushed.get(id) ?? outstanding.get(id);
      if (request === undefined) continue;
      if (outstanding.delete(id)) {
        jobs.push(request.job);
        if (request.document) flight.landed(clock.now() - request.pushedAt);
      }
      notPushed.delete(id);
      request.reject(error);
    }
    if (jobs.length > 0 && commands.redis.status === 'ready') {
      const removal = commands.redis.pipeline();
      for (const job of jobs) removal.lrem(queue, 1, job);
      // Lost with the connection: then a worker does them in vain.
      removal.exec().catch(() => {});
    }
    pushDocuments();
  }

  function failAll(error: Fault): void {
    queued = Number.POSITIVE_INFINITY;
    giveUp([...outstanding.keys(), ...notPushed.keys()], error);
  }

  function take(text: string): void {
    const reply = readReply(text);
    if (reply === null) {
      metrics.count('embedding_replies_total', { outcome: 'malformed' });
      log.warn({ place, reply_to: replyTo }, 'a reply of an embedding worker was malformed and dropped');
      return;
    }
    const request = outstanding.get(reply.taskId);
    if (request === undefined) {
      metrics.count('embedding_replies_total', { outcome: 'late' });
      log.debug({ task_id: reply.taskId }, 'a reply that nobody waits for was dropped');
      return;
    }
    outstanding.delete(reply.taskId);
    if (request.document) flight.landed(clock.now() - request.pushedAt);
    metrics.count('embedding_replies_total', { outcome: reply.kind });
    const mistaken = reply.kind === 'vector' ? otherModel(reply.model) : null;
    if (mistaken !== null) request.reject(mistaken);
    else if (reply.kind === 'vector') request.resolve({ vector: reply.vector });
    else request.resolve({ refused: reply.words });
  }

  function unanswered(): Fault {
    return new Fault(
      'embedding_unavailable',
      `No worker answered in ${queue} at ${place} within ${options.timeoutSeconds} s. ` +
        'Check that `coterie worker` runs beside the GPU and reaches this Redis.',
    );
  }

  function tooMany(count: number): Fault {
    return new Fault(
      'embedding_unavailable',
      `${count} jobs wait in ${queue} at ${place}, more than ${options.mostQueued}: nothing is added until a worker ` +
        'has caught up. Run more workers, or a quicker model.',
    );
  }

  function stopped(): Fault {
    return new Fault('embedding_unavailable', `The workers behind ${queue} were not waited for.`);
  }

  return {
    place: `${queue} at ${place}`,
    ask,
    async close(): Promise<void> {
      closing.abort(OVER);
      failAll(stopped());
      if (commands.redis.status === 'ready') await commands.redis.del(replyTo).catch(() => {});
      listening.close();
      await reading;
      commands.close();
    },
  };
}
