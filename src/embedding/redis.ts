/** The connection to Redis and the queue's protocol, which must not change: other workers and requesters speak it, too. */
import { Redis } from 'ioredis';
import type { Clock } from '../core/clock.js';
import { Fault } from '../core/errors.js';
import { backoff } from '../core/retry.js';
import { asVector, isRecord, parsed } from './embedder.js';
import { placeOf } from './server.js';

export interface EmbeddingJob {
  /** Returned unchanged in the reply. */
  taskId: string | number;
  type: string;
  /** null if there is nothing to embed. */
  content: string | null;
  /** null if no reply is wanted. */
  replyTo: string | null;
}

type Reply =
  | { kind: 'vector'; taskId: string; vector: number[]; model: string | null }
  /** `isServers`: the server refuses all texts at the moment. Other workers do not set it. */
  | { kind: 'error'; taskId: string; words: string; isServers: boolean };

export interface Replier {
  worker: string;
  model: string;
}

/** Prefix of an error that is not the text's fault. */
export const SERVER_FAILS = 'Not embedded just now';

/** Expiry of reply lists, set by the worker. */
export const REPLIES_EXPIRE_SECONDS = 300;

/** The keys of a queue. Only `queue` is part of the protocol; the others belong to our workers. */
export function queueKeys(queue: string) {
  const taken = (worker: string) => `${queue}:proc:${worker}`;
  const alive = (worker: string) => `${queue}:alive:${worker}`;
  const others = {
    /** All workers that may have taken jobs. */
    workers: `${queue}:workers`,
    /** By job: how many workers died after taking it. */
    deaths: `${queue}:deaths`,
    /** Jobs given up, for an operator to inspect. */
    dead: `${queue}:dead`,
    /** Lock of the worker that takes over from dead ones. */
    looking: `${queue}:looking`,
  };
  const single = new Set([queue, ...Object.values(others)]);
  return {
    queue,
    /** Jobs that a worker has taken and not answered. */
    taken,
    /** Exists while the worker lives. */
    alive,
    ...others,
    /** Reply lists must not be one of these: a reply would become a job or corrupt the workers' data. */
    isOwn: (key: string) => single.has(key) || [taken(''), alive('')].some((start) => key.startsWith(start)),
  };
}

export type QueueKeys = ReturnType<typeof queueKeys>;

export function writeJob({ taskId, content, replyTo }: { taskId: string; content: string; replyTo: string }) {
  return JSON.stringify({ task_id: taskId, type: 'embed', content, reply_to: replyTo });
}

/** null if it is not a JSON object. */
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

export function writeReply(
  taskId: EmbeddingJob['taskId'],
  content: { vector: number[] } | { error: string },
  { worker, model }: Replier,
): string {
  const status = 'vector' in content ? 'success' : 'error';
  const event = { type: 'GUPPIEvent', event: 'ScribeResult', task_id: taskId, status, content };
  return JSON.stringify({ ...event, meta: { worker, model } });
}

/** null if it does not name its job. */
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
/** Longer than any blocking command; a connection silent for this long is dead. */
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

  /** The error for an operator. */
  function fault(error: unknown = lastError): Fault {
    const words = error instanceof Error && error.message ? error.message : 'the connection was lost';
    return new Fault(
      'embedding_unavailable',
      `Redis at ${place} cannot be used: ${words}. Check embeddings.redis_url and that Redis runs.`,
      error,
    );
  }

  function begin(): void {
    // The outcome is reported by events.
    if (redis.status === 'wait') redis.connect().catch(() => {});
  }

  /** One promise shared by all who wait for the current attempt. */
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
    /** Commands reject at once while disconnected; those in flight reject when the connection breaks. */
    redis,
    place,
    isReady,
    fault,

    /** Resolves when commands can be sent; throws as soon as a connection attempt fails. */
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
