/**
 * The other two that speak the queue's protocol, as small as they can be: a worker that takes one job at a time and
 * lets its replies stay for ever, and a requester that asks for one thing and waits.
 */
import { Redis } from 'ioredis';
import { vectorFor } from './embeddings.js';

export interface PeerWorker {
  /** The jobs it took, in their order. */
  taken: Record<string, unknown>[];
  close(): Promise<void>;
}

/** `answer` may give another reply, several, or none, as text. */
export function startPeerWorker(options: {
  url: string;
  queue: string;
  length?: number;
  model?: string;
  answer?: (job: Record<string, unknown>, usual: string) => string[];
}): PeerWorker {
  const redis = new Redis(options.url, { maxRetriesPerRequest: null });
  redis.on('error', () => {});
  const taken: Record<string, unknown>[] = [];
  let closed = false;

  async function work() {
    while (!closed) {
      const popped = await redis.blpop(options.queue, 0);
      if (popped === null) continue;
      const job = JSON.parse(popped[1]);
      taken.push(job);
      if (typeof job.reply_to !== 'string') continue;
      const usual = JSON.stringify(replyTo(job));
      for (const text of options.answer?.(job, usual) ?? [usual]) await redis.lpush(job.reply_to, text);
    }
  }

  function replyTo(job: Record<string, unknown>): object {
    const blank = typeof job.content !== 'string' || job.content.trim() === '';
    const known = job.type === 'embed';
    const error = !known ? `Unknown task type: ${job.type}` : 'No valid content provided for embed';
    return {
      type: 'GUPPIEvent',
      event: 'ScribeResult',
      task_id: job.task_id ?? 'unknown',
      status: known && !blank ? 'success' : 'error',
      content: known && !blank ? { vector: vectorFor(String(job.content), options.length ?? 8) } : { error },
      meta: { worker: 'gpu_peer', model: options.model ?? 'nomic-embed-text' },
    };
  }

  const working = work().catch(() => {});
  return {
    taken,
    async close() {
      closed = true;
      redis.disconnect();
      await working;
    },
  };
}

/** Pushes one request to the front and waits for its reply in a list of its own. null: none came in time. */
export async function askAsPeer(
  url: string,
  queue: string,
  request: { taskId: string; content: string; seconds?: number },
): Promise<Record<string, unknown> | null> {
  const redis = new Redis(url);
  const replyTo = `temp:req:${request.taskId}`;
  const job = { task_id: request.taskId, type: 'embed', content: request.content, reply_to: replyTo };
  try {
    await redis.lpush(queue, JSON.stringify(job));
    const popped = await redis.blpop(replyTo, request.seconds ?? 30);
    return popped === null ? null : JSON.parse(popped[1]);
  } finally {
    redis.disconnect();
  }
}
