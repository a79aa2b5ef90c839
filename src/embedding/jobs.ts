/** What a worker makes of a job: something to embed, or an answer that is clear already. Pure. */
import type { Outcome } from './outcome.js';
import { type Job, type Maker, readJob, writeError, writeVector } from './protocol.js';
import type { QueueKeys } from './queue-keys.js';

/** A job that asks for a vector, with the text that it came as. */
export interface Wanted {
  text: string;
  content: string;
  job: Job & { replyTo: string };
}

/** A job that can leave the worker's hands. */
export interface Done {
  text: string;
  outcome: 'done' | 'refused' | 'invalid' | 'malformed' | 'unaddressed';
  reply: { to: string; body: string } | null;
}

export function sortJob(text: string, keys: QueueKeys, maker: Maker): Wanted | Done {
  const job = readJob(text);
  if (job === null) return { text, outcome: 'malformed', reply: null };
  const { type, content, replyTo } = job;
  if (replyTo === null || keys.isOwn(replyTo)) return { text, outcome: 'unaddressed', reply: null };
  if (type === 'embed' && content !== null) return { text, content, job: { ...job, replyTo } };
  const words = type === 'embed' ? 'No valid content provided for embed' : `Unknown task type: ${type}`;
  const reply = { to: replyTo, body: writeError(job.taskId, words, maker) };
  return { text, outcome: 'invalid', reply };
}

export function doneWith({ text, job }: Wanted, outcome: Outcome | undefined, maker: Maker): Done {
  if (outcome !== undefined && 'vector' in outcome) {
    const body = writeVector(job.taskId, outcome.vector, maker);
    return { text, outcome: 'done', reply: { to: job.replyTo, body } };
  }
  const words = `The embedding server refused this text: ${outcome?.refused ?? 'no answer'}`;
  const body = writeError(job.taskId, words, maker);
  return { text, outcome: 'refused', reply: { to: job.replyTo, body } };
}
