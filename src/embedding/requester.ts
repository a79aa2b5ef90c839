/** `embeddings.backend: redis`: pushes jobs and matches replies by `task_id`. Abandoned jobs leave the queue; late replies are dropped. */
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
  queue: string;
  /** The list for replies, used by this process only. With the same name after a restart, late replies are cleared. */
  replyTo?: string;
  timeoutSeconds: number;
  /** Pushes fail while the queue is longer than this. */
  mostQueued?: number;
  newId: () => string;
  clock: Clock;
  log: Log;
  metrics: EmbeddingMetrics;
}

interface VectorRequest {
  taskId: string;
  job: string;
  isDocument: boolean;
  /** null: not yet pushed. */
  pushedAt: number | null;
  settled: boolean;
  resolve(outcome: Outcome): void;
  reject(error: unknown): void;
}

const MOST_QUEUED = 2_000;
const BLOCK_SECONDS = 5;
/** Replies parsed per round trip: a few milliseconds that block the event loop. */
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
  /** In push order. */
  private readonly pushed = new Map<string, VectorRequest>();
  /** Documents waiting for room in the queue. */
  private waiting: VectorRequest[] = [];
  private reading: Promise<void> | null = null;
  private isWatching = false;
  /** Last known length of the queue. */
  private queued = Number.POSITIVE_INFINITY;
  /** The model named in the first reply. */
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

  /** Refused texts are sent again with a harmless one: if that succeeds, they are at fault, and not the worker's server. */
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

  /** One outcome per text. Rejects as soon as one is known to fail, and abandons the others. */
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
      // Before the push, because the reply may arrive first.
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

  private async watchTime(): Promise<void> {
    if (this.isWatching) return;
    this.isWatching = true;
    const { clock, timeoutSeconds } = this.options;
    const timeoutMs = timeoutSeconds * 1000;
    while (!this.closing.signal.aborted) {
      const [oldest] = this.pushed.values();
      if (oldest === undefined) break;
      const now = clock.now();
      // If the clock was set back, nobody waits longer.
      oldest.pushedAt = Math.min(oldest.pushedAt ?? now, now);
      const left = oldest.pushedAt + timeoutMs - now;
      const isOverdue = (each: VectorRequest) => (each.pushedAt ?? now) + timeoutMs <= now;
      if (left > 0) await clock.sleep(left, this.closing.signal);
      else this.giveUp([...this.pushed.values()].filter(isOverdue), this.unanswered());
    }
    this.isWatching = false;
  }

  /** Rejects these, and removes jobs that no worker has taken from the queue. */
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
      // If that fails, the connection is lost, and a worker does these jobs in vain.
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

  /** Runs until closed, even without requests, so that late replies do not pile up in Redis. */
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
        // Redis refused the command: pause before the next try.
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
    // The worker's server failed: another worker might embed the harmless text, and these would wrongly count as at fault.
    else if (reply.isServers)
      request.reject(fault(`A worker behind ${this.place} answers with an error: ${reply.words}`));
    else request.resolve({ refused: reply.words });
  }

  /** Vectors of two models are never compared. A worker need not name its model. */
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

/** Adapts how many documents may be queued: about as many as are answered within a second, because queries wait behind them. */
const FEWEST = 8;
const BEGIN = 64;
const MOST = 512;
const QUICK_MS = 300;
const SLOW_MS = 1_000;

export function createQueueLimit() {
  let most = BEGIN;
  let inQueue = 0;
  /** Documents queued before the last decrease; their times are outdated. */
  let stale = 0;

  return {
    free: () => Math.max(0, most - inQueue),
    pushed(count: number): void {
      inQueue += count;
    },
    /** `ms`: time until the answer or until it was given up. */
    answered(ms: number): void {
      // Raising only helps if the limit was reached.
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
