/**
 * The queue's protocol: jobs in a Redis list, replies in the list that each job names. Pure. Workers and
 * requesters of others speak it too, so nothing may be added that they would have to know.
 */
import { isRecord, parsed } from './answer.js';
import { asVector } from './outcome.js';

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
  | { kind: 'error'; taskId: string; words: string };

/** Who replies. */
export interface Maker {
  worker: string;
  model: string;
}

export function writeJob(job: { taskId: string; content: string; replyTo: string }): string {
  return JSON.stringify({
    task_id: job.taskId,
    type: 'embed',
    content: job.content,
    reply_to: job.replyTo,
  });
}

/** null: no JSON, or no object. */
export function readJob(text: string): Job | null {
  const job = strictly(text);
  if (!isRecord(job)) return null;
  const { task_id: taskId, type, content, reply_to: replyTo } = job;
  return {
    taskId: isName(taskId) || typeof taskId === 'number' ? taskId : 'unknown',
    type: typeof type === 'string' ? type : JSON.stringify(type ?? null),
    content: typeof content === 'string' && content.trim() !== '' ? content : null,
    replyTo: isName(replyTo) ? replyTo : null,
  };
}

export function writeVector(taskId: Job['taskId'], vector: number[], maker: Maker): string {
  return writeReply(taskId, 'success', { vector }, maker);
}

export function writeError(taskId: Job['taskId'], error: string, maker: Maker): string {
  return writeReply(taskId, 'error', { error }, maker);
}

/** null: nothing that could be told whose it is. */
export function readReply(text: string): Reply | null {
  const reply = parsed(text);
  if (!isRecord(reply) || !isName(reply.task_id)) return null;
  const { task_id: taskId, status } = reply;
  const content = isRecord(reply.content) ? reply.content : {};
  const meta = isRecord(reply.meta) ? reply.meta : {};
  if (status !== 'success') {
    const words = typeof content.error === 'string' ? content.error : 'no reason given';
    return { kind: 'error', taskId, words: words.slice(0, 300) };
  }
  const vector = asVector(content.vector);
  if (vector === null) return { kind: 'error', taskId, words: 'a vector that cannot be used' };
  return { kind: 'vector', taskId, vector, model: isName(meta.model) ? meta.model : null };
}

function writeReply(
  taskId: Job['taskId'],
  status: 'success' | 'error',
  content: object,
  { worker, model }: Maker,
): string {
  return JSON.stringify({
    type: 'GUPPIEvent',
    event: 'ScribeResult',
    task_id: taskId,
    status,
    content,
    meta: { worker, model },
  });
}

function strictly(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
