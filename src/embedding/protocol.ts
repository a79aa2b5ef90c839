/**
 * The queue's protocol: jobs in a Redis list, replies in the list that each job names. Pure. Workers and
 * requesters of others speak it too, so nothing may be added that they would have to know.
 */
import { asVector, isRecord, parsed } from './vectors.js';

export interface Job {
  /** As it came; goes back as it came. */
  taskId: string | number;
  type: string;
  /** null: nothing that could be embedded. */
  content: string | null;
  /** null: nobody waits for the reply. */
  replyTo: string | null;
}

export type Reply =
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
export function readJob(text: string): Job | null {
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

export function writeVector(taskId: Job['taskId'], vector: number[], replier: Replier): string {
  return writeReply(taskId, 'success', { vector }, replier);
}

export function writeError(taskId: Job['taskId'], error: string, replier: Replier): string {
  return writeReply(taskId, 'error', { error }, replier);
}

function writeReply(
  taskId: Job['taskId'],
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
