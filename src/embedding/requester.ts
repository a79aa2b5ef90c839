/**
 * `embeddings.backend: redis`: pushes jobs to the queue, takes the replies from one list of its own and matches them
 * by `task_id`. What nobody waits for any more is taken out of the queue, and its reply dropped.
 */
import { type Clock, OVER } from '../core/clock.js';
import { Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { Embedder } from '../core/recall.js';
import {
  createEmbedder,
  fitting,
  type GivenRecipe,
  HARMLESS,
  type Outcome,
  recipeOf,
  type VectorAsk,
  type VectorSource,
} from './embedder.js';
import { type EmbeddingMetrics, openRedis, type RedisConnection, readReply, writeJob } from './redis.js';

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
interface VectorRequest {
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
  return createEmbedder(new Requester(options), { ...options, recipe: recipeOf(options) });
}

class Requester implements VectorSource {
  readonly place: string;
  private readonly replyTo: string;
  private readonly commands: RedisConnection;
  private readonly replies: RedisConnection;
  private readonly closing = new AbortController();
  private readonly limit = createQueueLimit();
  /** In the order in which they were pushed. */
  private readonly pushed = new Map<string, VectorRequest>();
  /** Documents that wait for room in the queue. */
  private waiting: VectorRequest[] = [];
  private reading: Promise<void> | null = null;
  private isWatching = false;
  /** Jobs in the queue when it was last heard of. */
  private queued = Number.POSITIVE_INFINITY;
  /** What the workers call their model: the first reply says it. */
  private workersModel: string | null = null;

  constructor(private readonly options: RequesterOptions) {
    const { redisUrl, queue, clock, newId } = options;
    this.replyTo = options.replyTo ?? `temp:req:${newId()}`;
    this.commands = openRedis(redisUrl, 'coterie embeddings', clock);
    this.replies = openRedis(redisUrl, 'coterie embedding replies', clock);
    this.place = `${queue} at ${this.commands.place}`;
    for (const connection of [this.replies, this.commands]) {
      connection.redis.on('close', () => this.failAll(connection.fault()));
    }
  }

  /**
   * A worker does not say whether the text is at fault or its server. So those with an error are asked for once more
   * beside a harmless text: what fails again while that one is answered is at fault itself.
   */
  async embed(texts: string[], ask: VectorAsk): Promise<Outcome[]> {
    const outcomes = await this.request(texts, ask);
    const refused = outcomes.flatMap((outcome, n) => ('refused' in outcome ? [n] : []));
    if (refused.length === 0) return outcomes;
    const again = await this.request([...refused.map((n) => texts[n] ?? ''), HARMLESS], ask);
    const harmless = again.at(-1);
    if (harmless === undefined || 'refused' in harmless) {
      throw fault(`The workers behind ${this.place} answer with an error: ${harmless?.refused ?? 'nothing'}`);
    }
    for (const [position, n] of refused.entries()) outcomes[n] = again[position] ?? harmless;
    return outcomes;
  }

  async close(): Promise<void> {
    this.closing.abort(OVER);
    this.failAll(this.stopped());
    if (this.commands.isReady()) await this.commands.redis.del(this.replyTo).catch(() => {});
    this.replies.close();
    await this.reading;
    this.commands.close();
  }

  /** An outcome for each text. Rejects as soon as one is known to get none, and gives up the others. */
  private async request(texts: string[], { purpose, signal, as }: VectorAsk): Promise<Outcome[]> {
    const { queue, model, newId } = this.options;
    if (signal.aborted || this.closing.signal.aborted) throw this.stopped();
    if (as !== undefined && as.model !== model)
      throw fault(`The workers behind ${queue} have one model only.`);
    await Promise.all([this.commands.connected(), this.replies.connected()]);
    this.reading ??= this.readReplies();
    const requests: VectorRequest[] = [];
    const answers = texts.map(
      (text) =>
        new Promise<Outcome>((resolve, reject) => {
          const taskId = newId();
          const job = writeJob({ taskId, content: fitting(text), replyTo: this.replyTo });
          const isDocument = purpose === 'document';
          requests.push({ taskId, job, isDocument, pushedAt: null, settled: false, resolve, reject });
        }),
    );
    const all = Promise.all(answers);
    const stop = () => this.giveUp(requests, this.stopped());
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    else if (purpose === 'query') void this.push(requests);
    else {
      this.waiting.push(...requests);
      this.pushDocuments();
    }
    try {
      return await all;
    } catch (error) {
      this.giveUp(requests, error);
      throw error;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  private pushDocuments(): void {
    const free = this.limit.free();
    if (free > 0 && this.waiting.length > 0) void this.push(this.waiting.splice(0, free));
  }

  private async push(requests: VectorRequest[]): Promise<void> {
    const { queue, clock, mostQueued = MOST_QUEUED } = this.options;
    const { redis } = this.commands;
    for (const request of requests) {
      request.pushedAt = clock.now();
      // Before it is pushed: the reply may be quicker than the answer to the push.
      this.pushed.set(request.taskId, request);
      if (request.isDocument) this.limit.pushed(1);
    }
    void this.watchTime();
    try {
      if (this.queued > mostQueued) this.queued = await redis.llen(queue);
      if (this.queued > mostQueued) {
        throw fault(
          `${this.queued} jobs wait in ${this.place}, more than ${mostQueued}: nothing is added until a worker ` +
            'has caught up. Run more workers, or a quicker model.',
        );
      }
      const jobs = requests.filter(({ settled }) => !settled).map(({ job }) => job);
      if (jobs.length > 0) this.queued = await redis.rpush(queue, ...jobs);
    } catch (error) {
      this.queued = Number.POSITIVE_INFINITY;
      this.giveUp(requests, error instanceof Fault ? error : this.commands.fault(error));
    }
  }

  /** One timer for all. */
  private async watchTime(): Promise<void> {
    if (this.isWatching) return;
    this.isWatching = true;
    const { clock, timeoutSeconds } = this.options;
    const timeoutMs = timeoutSeconds * 1000;
    while (!this.closing.signal.aborted) {
      const [oldest] = this.pushed.values();
      if (oldest === undefined) break;
      const now = clock.now();
      // A clock that was set back must not make anybody wait longer.
      oldest.pushedAt = Math.min(oldest.pushedAt ?? now, now);
      const left = oldest.pushedAt + timeoutMs - now;
      const isOverdue = (each: VectorRequest) => (each.pushedAt ?? now) + timeoutMs <= now;
      if (left > 0) await clock.sleep(left, this.closing.signal);
      else this.giveUp([...this.pushed.values()].filter(isOverdue), this.unanswered());
    }
    this.isWatching = false;
  }

  /** Nobody waits for these any more. What no worker has taken yet leaves the queue. */
  private giveUp(requests: VectorRequest[], error: unknown): void {
    const unsettled = requests.filter(({ settled }) => !settled);
    if (unsettled.length === 0) return;
    const inQueue = unsettled.filter(({ taskId }) => this.pushed.has(taskId));
    for (const request of unsettled) {
      this.settle(request);
      request.reject(error);
    }
    this.waiting = this.waiting.filter(({ settled }) => !settled);
    if (inQueue.length > 0 && this.commands.isReady()) {
      const removal = this.commands.redis.pipeline();
      for (const { job } of inQueue) removal.lrem(this.options.queue, 1, job);
      // If that fails, the connection is lost, and a worker does these jobs for nothing.
      removal.exec().catch(() => {});
    }
    this.pushDocuments();
  }

  private settle(request: VectorRequest): void {
    const now = this.options.clock.now();
    request.settled = true;
    if (!this.pushed.delete(request.taskId) || !request.isDocument) return;
    this.limit.answered(now - (request.pushedAt ?? now));
  }

  private failAll(error: Fault): void {
    this.queued = Number.POSITIVE_INFINITY;
    this.giveUp([...this.pushed.values(), ...this.waiting], error);
  }

  /** Goes on until it is closed, also while nothing is asked, so that late replies do not pile up in Redis. */
  private async readReplies(): Promise<void> {
    const { signal } = this.closing;
    const { redis } = this.replies;
    while (!signal.aborted) {
      try {
        await this.replies.connectedAgain(signal);
        const first = await redis.blpop(this.replyTo, BLOCK_SECONDS);
        let some: string[] | null = first === null ? null : [first[1]];
        while (some !== null) {
          for (const reply of some) this.take(reply);
          this.pushDocuments();
          some = await redis.lpop(this.replyTo, REPLIES_AT_ONCE);
        }
      } catch (error) {
        if (signal.aborted) return;
        this.failAll(this.replies.fault(error));
        // Redis refuses the command itself: not again at once.
        if (this.replies.isReady()) await this.options.clock.sleep(REFUSED_PAUSE_MS, signal);
      }
    }
  }

  private take(text: string): void {
    const { log, metrics } = this.options;
    const reply = readReply(text);
    const request = reply === null ? undefined : this.pushed.get(reply.taskId);
    const outcome = reply === null ? 'malformed' : request === undefined ? 'late' : reply.kind;
    metrics.count('embedding_replies_total', { outcome });
    if (reply === null) {
      log.warn({ place: this.place, reply_to: this.replyTo }, 'embedding reply was malformed; dropped');
      return;
    }
    if (request === undefined) {
      log.debug({ task_id: reply.taskId }, 'embedding reply came too late; dropped');
      return;
    }
    this.settle(request);
    const otherModel = reply.kind === 'vector' ? this.checkModel(reply.model) : null;
    if (otherModel !== null) request.reject(otherModel);
    else if (reply.kind === 'vector') request.resolve({ vector: reply.vector });
    // Of one worker's server: another worker may well answer a harmless text, and this one is not at fault.
    else if (reply.isServers)
      request.reject(fault(`A worker behind ${this.place} answers with an error: ${reply.words}`));
    else request.resolve({ refused: reply.words });
  }

  /** Vectors of two models are never compared. A worker need not say which one it uses. */
  private checkModel(name: string | null): Fault | null {
    const { log, model } = this.options;
    if (name === null || name === this.workersModel) return null;
    if (this.workersModel !== null) {
      return fault(
        `A worker uses the model "${name}", and "${this.workersModel}" answered before: let all workers use one, set ` +
          'embeddings.model to it, and start again.',
      );
    }
    this.workersModel = name;
    if (name !== model) {
      log.warn(
        { workers: name, configured: model },
        'embedding workers name another model than embeddings.model; if it is another, set embeddings.model to it',
      );
    }
    return null;
  }

  private unanswered(): Fault {
    return fault(
      `No worker answered in ${this.place} within ${this.options.timeoutSeconds} s. ` +
        'Check that `coterie worker` runs beside the GPU and reaches this Redis.',
    );
  }

  private stopped(): Fault {
    return fault(`The workers behind ${this.options.queue} were not waited for.`);
  }
}

function fault(message: string): Fault {
  return new Fault('embedding_unavailable', message);
}

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
