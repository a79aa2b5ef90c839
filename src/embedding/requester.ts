/** `embeddings.backend: redis`: pushes jobs and matches replies by `task_id`. Abandoned jobs leave the queue; late replies are dropped. */
import { type Clock, OVER } from '../core/clock.js';
import { Fault } from '../core/errors.js';
import type { Log, Metrics } from '../core/log.js';
import type { Embedder, EmbeddingQueue } from '../core/recall.js';
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
import { openRedis, queueKeys, type RedisConnection, readReply, writeJob } from './redis.js';

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
  metrics: Metrics;
}

/** A job that was pushed. */
interface VectorRequest {
  resolve(outcome: Outcome): void;
  /** Rejects the whole batch. */
  fail(error: unknown): void;
}

const MOST_QUEUED = 2_000;
const BLOCK_SECONDS = 5;
/** Replies parsed per round trip: a few milliseconds that block the event loop. */
const REPLIES_AT_ONCE = 32;
const REFUSED_PAUSE_MS = 1_000;
/** Texts pushed at once: about as many as are answered within a second, because queries wait behind them. */
const FEWEST = 8;
const BEGIN = 64;
const MOST = 512;
const QUICK_MS = 300;
const SLOW_MS = 1_000;

export function createRedisEmbedder(options: RequesterOptions): Embedder {
  return createEmbedder(new Requester(options), { ...options, recipe: recipeOf(options) });
}

class Requester implements VectorSource {
  readonly place: string;
  private readonly replyTo: string;
  private readonly commands: RedisConnection;
  private readonly replies: RedisConnection;
  private readonly closing = new AbortController();
  /** By task id. */
  private readonly pushed = new Map<string, VectorRequest>();
  private reading: Promise<void> | null = null;
  /** Last known length of the queue. */
  private queued = Number.POSITIVE_INFINITY;
  private atOnce = BEGIN;
  /** The model named in the first reply. */
  private workersModel: string | null = null;
  private answeredAt: number | null = null;

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
    const outcomes = await this.requestAll(texts, ask);
    const refused = outcomes.flatMap((outcome, n) => ('refused' in outcome ? [n] : []));
    if (refused.length === 0) return outcomes;
    const again = await this.requestAll([...refused.map((n) => texts[n] ?? ''), HARMLESS], ask);
    const harmless = again.at(-1);
    if (harmless === undefined || 'refused' in harmless) {
      throw fault(`The workers behind ${this.place} answer with an error: ${harmless?.refused ?? 'nothing'}`);
    }
    for (const [position, n] of refused.entries()) outcomes[n] = again[position] ?? harmless;
    return outcomes;
  }

  async queue(): Promise<EmbeddingQueue | null> {
    if (!this.commands.isReady()) return null;
    const { redis } = this.commands;
    const keys = queueKeys(this.options.queue);
    const [waiting, parked, workers] = await Promise.all([
      redis.llen(keys.queue),
      redis.llen(keys.dead),
      redis.smembers(keys.workers),
    ]);
    const alive = workers.length === 0 ? 0 : await redis.exists(workers.map(keys.alive));
    return { waiting, parked, workers: alive, model: this.workersModel, answeredAt: this.answeredAt };
  }

  async close(): Promise<void> {
    this.closing.abort(OVER);
    this.failAll(this.stopped());
    if (this.commands.isReady()) await this.commands.redis.del(this.replyTo).catch(() => {});
    this.replies.close();
    await this.reading;
    this.commands.close();
  }

  private async requestAll(texts: string[], ask: VectorAsk): Promise<Outcome[]> {
    const { clock } = this.options;
    const outcomes: Outcome[] = [];
    while (outcomes.length < texts.length) {
      const until = outcomes.length + this.atOnce;
      const begun = clock.now();
      try {
        outcomes.push(...(await this.request(texts.slice(outcomes.length, until), ask)));
      } finally {
        const took = clock.now() - begun;
        // More only help if as many as allowed were answered.
        if (took > SLOW_MS) this.atOnce = Math.max(FEWEST, this.atOnce >> 1);
        else if (took < QUICK_MS && outcomes.length === until) this.atOnce = Math.min(MOST, this.atOnce * 2);
      }
    }
    return outcomes;
  }

  /** One outcome per text. Rejects as soon as one is known to fail, and removes from the queue what no worker has taken. */
  private async request(texts: string[], { signal, as }: VectorAsk): Promise<Outcome[]> {
    const { queue, model, newId, clock, timeoutSeconds } = this.options;
    if (as !== undefined && as.model !== model)
      throw fault(`The workers behind ${queue} have one model only.`);
    await Promise.all([this.commands.connected(), this.replies.connected()]);
    if (signal.aborted || this.closing.signal.aborted) throw this.stopped();
    this.reading ??= this.readReplies();
    const jobs = new Map(
      texts.map((text) => {
        const taskId = newId();
        return [taskId, writeJob({ taskId, content: fitting(text), replyTo: this.replyTo })];
      }),
    );
    let fail: (error: unknown) => void = () => {};
    const failed = new Promise<never>((_, reject) => {
      fail = reject;
    });
    const answers = [...jobs.keys()].map(
      (taskId) => new Promise<Outcome>((resolve) => this.pushed.set(taskId, { resolve, fail })),
    );
    const stop = () => fail(this.stopped());
    signal.addEventListener('abort', stop, { once: true });
    const stopTimer = clock.after(timeoutSeconds * 1000, () => fail(this.unanswered()));
    try {
      await Promise.race([failed, this.push(jobs)]);
      return await Promise.race([failed, Promise.all(answers)]);
    } finally {
      stopTimer();
      signal.removeEventListener('abort', stop);
      const removal = this.commands.redis.pipeline();
      for (const [taskId, job] of jobs) if (this.pushed.delete(taskId)) removal.lrem(queue, 1, job);
      // If that fails, the connection is lost; a worker then does jobs that nobody waits for.
      if (removal.length > 0 && this.commands.isReady()) removal.exec().catch(() => {});
    }
  }

  private async push(jobs: Map<string, string>): Promise<void> {
    const { queue, mostQueued = MOST_QUEUED } = this.options;
    const { redis } = this.commands;
    try {
      if (this.queued > mostQueued) this.queued = await redis.llen(queue);
      if (this.queued > mostQueued) {
        throw fault(
          `${this.queued} jobs wait in ${this.place}, more than ${mostQueued}: nothing is added until a worker ` +
            'has caught up. Run more workers, or a quicker model.',
        );
      }
      const wanted = [...jobs].flatMap(([taskId, job]) => (this.pushed.has(taskId) ? job : []));
      if (wanted.length > 0) this.queued = await redis.rpush(queue, ...wanted);
    } catch (error) {
      this.queued = Number.POSITIVE_INFINITY;
      throw error instanceof Fault ? error : this.commands.fault(error);
    }
  }

  private failAll(error: Fault): void {
    this.queued = Number.POSITIVE_INFINITY;
    for (const { fail } of this.pushed.values()) fail(error);
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
    this.pushed.delete(reply.taskId);
    this.answeredAt = this.options.clock.now();
    const otherModel = reply.kind === 'vector' ? this.checkModel(reply.model) : null;
    if (otherModel !== null) request.fail(otherModel);
    else if (reply.kind === 'vector') request.resolve({ vector: reply.vector });
    // The worker's server failed: another worker might embed the harmless text, and these would wrongly count as at fault.
    else if (reply.isServers)
      request.fail(fault(`A worker behind ${this.place} answers with an error: ${reply.words}`));
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
