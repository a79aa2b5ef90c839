/**
 * The queue in Redis: its protocol (jobs in a list, replies in the list that each job names) and the connection. Workers and
 * requesters of others speak the protocol too, so nothing may be added that they would have to know.
 */
import { Redis } from 'ioredis';
import type { Clock } from '../core/clock.js';
import { Fault } from '../core/errors.js';
import { backoff } from '../core/retry.js';
import { asVector, isRecord, parsed } from './embedder.js';
import { placeOf } from './server.js';

export interface EmbeddingJob {
  /** As it came; goes back as it came. */
  taskId: string | number;
  type: string;
  /** null: nothing that could be embedded. */
  content: string | null;
  /** null: nobody waits for the reply. */
  replyTo: string | null;
}

type Reply =
  | { kind: 'vector'; taskId: string; vector: number[]; model: string | null }
  /** `isServers`: of all texts just then, not of this one. Workers of others do not say so. */
  | { kind: 'error'; taskId: string; words: string; isServers: boolean };

/** Who replies. */
export interface Replier {
  worker: string;
  model: string;
}

/** Begins the error of a job whose text is not at fault. */
export const SERVER_FAILS = 'Not embedded just now';

/** The worker lets a list of replies expire. */
export const REPLIES_EXPIRE_SECONDS = 300;

/** What both ends of the queue count, for `/metrics`. The gateway's own Metrics fit, once they know these names. */
export interface EmbeddingMetrics {
  /**
   * `embedding_jobs_total` (worker), `outcome`: done, refused, failed (the server does not work), invalid (blank,
   * unknown type), malformed, unaddressed, taken_back (from a worker that died), given_up. `embedding_replies_total` (gateway), `outcome`: vector, error,
   * late (also doubled, or somebody else's), malformed.
   */
  count(
    name: 'embedding_jobs_total' | 'embedding_replies_total',
    labels: { outcome: string },
    by?: number,
  ): void;
  /** One request of the worker to the embedding server. */
  observe(name: 'embedding_seconds', seconds: number): void;
}

/** The keys of a queue in Redis. Only the queue itself belongs to the protocol; the others are the workers' own. */
export function queueKeys(queue: string) {
  const taken = (worker: string) => `${queue}:proc:${worker}`;
  const alive = (worker: string) => `${queue}:alive:${worker}`;
  const others = {
    /** Every worker that may have taken jobs. */
    workers: `${queue}:workers`,
    /** How often a worker died that had taken the job. */
    deaths: `${queue}:deaths`,
    /** Jobs that were given up, for an operator to look at. */
    dead: `${queue}:dead`,
    /** Held by the one worker that looks after those that died. */
    looking: `${queue}:looking`,
  };
  const single = new Set([queue, ...Object.values(others)]);
  return {
    queue,
    /** The jobs that a worker has taken and not yet answered. */
    taken,
    /** There as long as the worker lives. */
    alive,
    ...others,
    /** A reply there would end up among the jobs, or break what workers keep. */
    isOwn: (key: string) => single.has(key) || [taken(''), alive('')].some((start) => key.startsWith(start)),
  };
}

export type QueueKeys = ReturnType<typeof queueKeys>;

export function writeJob({ taskId, content, replyTo }: { taskId: string; content: string; replyTo: string }) {
  return JSON.stringify({ task_id: taskId, type: 'embed', content, reply_to: replyTo });
}

/** null: no JSON, or no object. */
export function readJob(text: string): EmbeddingJob | null {
  let job: unknown;
  try {
    job = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isRecord(job)) return null;
  const { task_id: taskId, type, content, reply_to: replyTo } = job;
  return {
    taskId: isName(taskId) || typeof taskId === 'number' ? taskId : 'unknown',
    type: typeof type === 'string' ? type : JSON.stringify(type ?? null),
    content: typeof content === 'string' && content.trim() !== '' ? content : null,
    replyTo: isName(replyTo) ? replyTo : null,
  };
}

export function writeVector(taskId: EmbeddingJob['taskId'], vector: number[], replier: Replier): string {
  return writeReply(taskId, 'success', { vector }, replier);
}

export function writeError(taskId: EmbeddingJob['taskId'], error: string, replier: Replier): string {
  return writeReply(taskId, 'error', { error }, replier);
}

function writeReply(
  taskId: EmbeddingJob['taskId'],
  status: string,
  content: object,
  { worker, model }: Replier,
): string {
  const meta = { worker, model };
  return JSON.stringify({
    type: 'GUPPIEvent',
    event: 'ScribeResult',
    task_id: taskId,
    status,
    content,
    meta,
  });
}

/** null: nothing that says to which job it belongs. */
export function readReply(text: string): Reply | null {
  const reply = parsed(text);
  if (!isRecord(reply) || !isName(reply.task_id)) return null;
  const { task_id: taskId, status } = reply;
  const content = isRecord(reply.content) ? reply.content : {};
  const meta = isRecord(reply.meta) ? reply.meta : {};
  if (status !== 'success') {
    const words = typeof content.error === 'string' ? content.error : 'no reason given';
    return { kind: 'error', taskId, words: words.slice(0, 300), isServers: words.startsWith(SERVER_FAILS) };
  }
  const vector = asVector(content.vector);
  if (vector === null) {
    return { kind: 'error', taskId, words: 'a vector that cannot be used', isServers: false };
  }
  return { kind: 'vector', taskId, vector, model: isName(meta.model) ? meta.model : null };
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

export type RedisConnection = ReturnType<typeof openRedis>;

const LONGEST_RETRY_MS = 2_000;
const CONNECT_MS = 5_000;
/** Longer than any command blocks. A connection on which nothing comes for this long is dead. */
const SILENCE_MS = 15_000;
const LOOK_AGAIN_MS = 100;

export function openRedis(url: string, name: string, clock: Clock) {
  let lastError: unknown;
  let attempt: Promise<void> | null = null;
  const redis = new Redis(url, {
    connectionName: name,
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_MS,
    socketTimeout: SILENCE_MS,
    retryStrategy: (times) => backoff(times, 100, LONGEST_RETRY_MS),
  });
  redis.on('error', (error: unknown) => {
    lastError = error;
  });
  const place = placeOf(url);
  const isReady = () => redis.status === 'ready';

  /** What a failure means to whoever runs this. */
  function fault(error: unknown = lastError): Fault {
    const words = error instanceof Error && error.message ? error.message : 'the connection was lost';
    return new Fault(
      'embedding_unavailable',
      `Redis at ${place} cannot be used: ${words}. Check embeddings.redis_url and that Redis runs.`,
      error,
    );
  }

  function begin(): void {
    // How it went is told by the events.
    if (redis.status === 'wait') redis.connect().catch(() => {});
  }

  /** One promise for all who wait for the attempt that is under way. */
  function attempted(): Promise<void> {
    attempt ??= new Promise((resolve) => {
      const events = ['ready', 'close', 'end'] as const;
      const done = () => {
        for (const event of events) redis.off(event, done);
        attempt = null;
        resolve();
      };
      for (const event of events) redis.on(event, done);
    });
    return attempt;
  }

  return {
    /** Its commands reject at once while there is no connection; what was under way when it was lost rejects too. */
    redis,
    place,
    isReady,
    fault,

    /** Resolves when commands can be sent; throws as soon as an attempt to connect has failed. */
    async connected(): Promise<void> {
      begin();
      if (redis.status === 'connecting' || redis.status === 'connect') await attempted();
      if (!isReady()) throw fault();
    },

    /** Resolves when commands can be sent, however long that takes, or when the signal aborts. */
    async connectedAgain(signal: AbortSignal): Promise<void> {
      begin();
      while (!isReady() && redis.status !== 'end' && !signal.aborted)
        await clock.sleep(LOOK_AGAIN_MS, signal);
    },

    close: () => redis.disconnect(),
  };
}
