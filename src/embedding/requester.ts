import { type Clock, OVER } from '../core/clock.js';
import { Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { Embedder } from '../core/recall.js';
import { createEmbedder } from './embedder.js';
import { type EmbeddingMetrics, openRedis, readReply, writeJob } from './redis.js';
import {
  fitting,
  type GivenRecipe,
  HARMLESS,
  type Outcome,
  recipeOf,
  type VectorAsk,
  type VectorSource,
} from './vectors.js';

/**
 * How many documents a requester may have in the queue at once. The queue is first in, first out, and somebody's
 * question stands behind all of them: so as many as come back within about a second, few from a slow GPU, many from a
 * fast one.
 */
const FEWEST = 8;
const BEGIN = 64;
const MOST = 512;
const QUICK_MS = 300;
const SLOW_MS = 1_000;

export function createQueueLimit() {
  let most = BEGIN;
  let inQueue = 0;
  /** Those that were in the queue when it was last lowered say nothing new. */
  let stale = 0;

  return {
    /** How many more may be pushed now. */
    free: () => Math.max(0, most - inQueue),
    pushed(count: number): void {
      inQueue += count;
    },
    /** One was answered or given up after so long. */
    answered(ms: number): void {
      // More only helps when all of it was used.
      const full = inQueue >= most;
      inQueue -= 1;
      if (stale > 0) stale -= 1;
      else if (ms > SLOW_MS) {
        most = Math.max(FEWEST, most >> 1);
        stale = inQueue;
      } else if (ms < QUICK_MS && full) most = Math.min(MOST, most + 8);
    },
  };
}

// `embeddings.backend: redis`: pushes jobs to the queue, takes the replies from one list of its own and matches them
// by `task_id`. What nobody waits for any more is taken out of the queue, and its reply dropped.

interface RequesterOptions extends GivenRecipe {
  redisUrl: string;
  /** `queue:gpu_heavy` */
  queue: string;
  /** The list for replies. No other process may use it; the same name after a restart clears what came too late. */
  replyTo?: string;
  timeoutSeconds: number;
  /** Nothing is pushed behind more jobs than this. */
  mostQueued?: number;
  newId: () => string;
  clock: Clock;
  log: Log;
  metrics: EmbeddingMetrics;
}

/** One text. */
interface Request {
  taskId: string;
  job: string;
  isDocument: boolean;
  /** null: not yet. */
  pushedAt: number | null;
  settled: boolean;
  resolve(outcome: Outcome): void;
  reject(error: unknown): void;
}

const MOST_QUEUED = 2_000;
const BLOCK_SECONDS = 5;
/** Replies read in one go: a few milliseconds of parsing JSON, in which nothing else runs. */
const REPLIES_AT_ONCE = 32;
const REFUSED_PAUSE_MS = 1_000;

export function createRedisEmbedder(options: RequesterOptions): Embedder {
  return createEmbedder(createRequester(options), { ...options, recipe: recipeOf(options) });
}

function createRequester(options: RequesterOptions): VectorSource {
  const { queue, clock, log, metrics, model } = options;
  const replyTo = options.replyTo ?? `temp:req:${options.newId()}`;
  const mostQueued = options.mostQueued ?? MOST_QUEUED;
  const commands = openRedis(options.redisUrl, 'coterie embeddings', clock);
  const replies = openRedis(options.redisUrl, 'coterie embedding replies', clock);
  const place = `${queue} at ${commands.place}`;
  const closing = new AbortController();
  const timeoutMs = options.timeoutSeconds * 1000;
  const limit = createQueueLimit();
  /** In the order in which they were pushed. */
  const pushed = new Map<string, Request>();
  /** Documents that wait for room in the queue. */
  let waiting: Request[] = [];
  let reading: Promise<void> | null = null;
  let watching = false;
  /** Jobs in the queue when it was last heard of. */
  let queued = Number.POSITIVE_INFINITY;
  /** What the workers call their model: the first reply says it. */
  let workersModel: string | null = null;

  replies.redis.on('close', () => failAll(replies.fault()));
  commands.redis.on('close', () => failAll(commands.fault()));

  /**
   * A worker does not say whether the text is at fault or its server. So those with an error are asked for once more
   * beside a harmless text: what fails again while that one is answered is at fault itself.
   */
  async function embed(texts: string[], ask: VectorAsk): Promise<Outcome[]> {
    const outcomes = await request(texts, ask);
    const refused = outcomes.flatMap((outcome, n) => ('refused' in outcome ? [n] : []));
    if (refused.length === 0) return outcomes;
    const again = await request([...refused.map((n) => texts[n] ?? ''), HARMLESS], ask);
    const harmless = again.at(-1);
    if (harmless === undefined || 'refused' in harmless) {
      throw fault(`The workers behind ${place} answer with an error: ${harmless?.refused ?? 'nothing'}`);
    }
    for (const [position, n] of refused.entries()) outcomes[n] = again[position] ?? harmless;
    return outcomes;
  }

  /** An outcome for each text. Rejects as soon as one is known to get none, and gives up the others. */
  async function request(texts: string[], { purpose, signal, as }: VectorAsk): Promise<Outcome[]> {
    if (signal.aborted || closing.signal.aborted) throw stopped();
    if (as !== undefined && as.model !== model)
      throw fault(`The workers behind ${queue} have one model only.`);
    await Promise.all([commands.connected(), replies.connected()]);
    reading ??= readReplies();
    const requests: Request[] = [];
    const answers = texts.map(
      (text) =>
        new Promise<Outcome>((resolve, reject) => {
          const taskId = options.newId();
          const job = writeJob({ taskId, content: fitting(text), replyTo });
          const isDocument = purpose === 'document';
          requests.push({ taskId, job, isDocument, pushedAt: null, settled: false, resolve, reject });
        }),
    );
    const all = Promise.all(answers);
    const stop = () => giveUp(requests, stopped());
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    else if (purpose === 'query') void push(requests);
    else {
      waiting.push(...requests);
      pushDocuments();
    }
    try {
      return await all;
    } catch (error) {
      giveUp(requests, error);
      throw error;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  function pushDocuments(): void {
    const free = limit.free();
    if (free > 0 && waiting.length > 0) void push(waiting.splice(0, free));
  }

  async function push(requests: Request[]): Promise<void> {
    for (const request of requests) {
      request.pushedAt = clock.now();
      // Before it is pushed: the reply may be quicker than the answer to the push.
      pushed.set(request.taskId, request);
      if (request.isDocument) limit.pushed(1);
    }
    void watchTime();
    try {
      if (queued > mostQueued) queued = await commands.redis.llen(queue);
      if (queued > mostQueued) throw tooMany(queued);
      const jobs = requests.filter(({ settled }) => !settled).map(({ job }) => job);
      if (jobs.length > 0) queued = await commands.redis.rpush(queue, ...jobs);
    } catch (error) {
      queued = Number.POSITIVE_INFINITY;
      giveUp(requests, error instanceof Fault ? error : commands.fault(error));
    }
  }

  /** One timer for all. */
  async function watchTime(): Promise<void> {
    if (watching) return;
    watching = true;
    while (!closing.signal.aborted) {
      const [oldest] = pushed.values();
      if (oldest === undefined) break;
      const now = clock.now();
      // A clock that was set back must not make anybody wait longer.
      oldest.pushedAt = Math.min(oldest.pushedAt ?? now, now);
      const left = oldest.pushedAt + timeoutMs - now;
      const overdue = () => [...pushed.values()].filter((each) => (each.pushedAt ?? now) + timeoutMs <= now);
      if (left > 0) await clock.sleep(left, closing.signal);
      else giveUp(overdue(), unanswered());
    }
    watching = false;
  }

  /** Nobody waits for these any more. What no worker has taken yet leaves the queue. */
  function giveUp(requests: Request[], error: unknown): void {
    const unsettled = requests.filter(({ settled }) => !settled);
    if (unsettled.length === 0) return;
    const inQueue = unsettled.filter(({ taskId }) => pushed.has(taskId));
    for (const request of unsettled) {
      settle(request);
      request.reject(error);
    }
    waiting = waiting.filter(({ settled }) => !settled);
    if (inQueue.length > 0 && commands.isReady()) {
      const removal = commands.redis.pipeline();
      for (const { job } of inQueue) removal.lrem(queue, 1, job);
      // If that fails, the connection is lost, and a worker does these jobs for nothing.
      removal.exec().catch(() => {});
    }
    pushDocuments();
  }

  function settle(request: Request): void {
    request.settled = true;
    if (!pushed.delete(request.taskId) || !request.isDocument) return;
    limit.answered(clock.now() - (request.pushedAt ?? clock.now()));
  }

  function failAll(error: Fault): void {
    queued = Number.POSITIVE_INFINITY;
    giveUp([...pushed.values(), ...waiting], error);
  }

  /** Goes on until it is closed, also while nothing is asked, so that late replies do not pile up in Redis. */
  async function readReplies(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        await replies.connectedAgain(closing.signal);
        const first = await replies.redis.blpop(replyTo, BLOCK_SECONDS);
        let some: string[] | null = first === null ? null : [first[1]];
        while (some !== null) {
          for (const reply of some) take(reply);
          pushDocuments();
          some = await replies.redis.lpop(replyTo, REPLIES_AT_ONCE);
        }
      } catch (error) {
        if (closing.signal.aborted) return;
        failAll(replies.fault(error));
        // Redis refuses the command itself: not again at once.
        if (replies.isReady()) await clock.sleep(REFUSED_PAUSE_MS, closing.signal);
      }
    }
  }

  function take(text: string): void {
    const reply = readReply(text);
    const request = reply === null ? undefined : pushed.get(reply.taskId);
    if (reply === null)
      log.warn({ place, reply_to: replyTo }, 'a malformed reply of an embedding worker was dropped');
    else if (request === undefined)
      log.debug({ task_id: reply.taskId }, 'a reply that nobody waits for was dropped');
    const outcome = reply === null ? 'malformed' : request === undefined ? 'late' : reply.kind;
    metrics.count('embedding_replies_total', { outcome });
    if (reply === null || request === undefined) return;
    settle(request);
    const otherModel = reply.kind === 'vector' ? checkModel(reply.model) : null;
    if (otherModel !== null) request.reject(otherModel);
    else if (reply.kind === 'vector') request.resolve({ vector: reply.vector });
    // Of one worker's server: another worker may well answer a harmless text, and this one is not at fault.
    else if (reply.isServers) request.reject(serverFails(reply.words));
    else request.resolve({ refused: reply.words });
  }

  /** Vectors of two models are never compared. A worker need not say which one it uses. */
  function checkModel(name: string | null): Fault | null {
    if (name === null || name === workersModel) return null;
    if (workersModel !== null) {
      return fault(
        `A worker uses the model "${name}", and "${workersModel}" answered before: let all workers use one, set ` +
          'embeddings.model to it, and start again.',
      );
    }
    workersModel = name;
    if (name !== model) {
      log.warn(
        { workers: name, configured: model },
        'the embedding workers call their model by another name than embeddings.model; if it is another model, ' +
          'set embeddings.model to it',
      );
    }
    return null;
  }

  function serverFails(words: string): Fault {
    return fault(`A worker behind ${place} answers with an error: ${words}`);
  }

  function unanswered(): Fault {
    return fault(
      `No worker answered in ${place} within ${options.timeoutSeconds} s. ` +
        'Check that `coterie worker` runs beside the GPU and reaches this Redis.',
    );
  }

  function tooMany(count: number): Fault {
    return fault(
      `${count} jobs wait in ${place}, more than ${mostQueued}: nothing is added until a worker ` +
        'has caught up. Run more workers, or a quicker model.',
    );
  }

  function stopped(): Fault {
    return fault(`The workers behind ${queue} were not waited for.`);
  }

  async function close(): Promise<void> {
    closing.abort(OVER);
    failAll(stopped());
    if (commands.isReady()) await commands.redis.del(replyTo).catch(() => {});
    replies.close();
    await reading;
    commands.close();
  }

  return { place, embed, close };
}

function fault(message: string): Fault {
  return new Fault('embedding_unavailable', message);
}
