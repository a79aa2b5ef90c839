/** Reads what an embedding server answered. Pure. */
import { asVector } from './outcome.js';
import type { Posted } from './post.js';

export type Answer =
  /** One for each text, in order; null where it is none that can be used. */
  | { kind: 'vectors'; vectors: (number[] | null)[] }
  /** It will not have these texts. `passing`: perhaps only this time. */
  | { kind: 'refused'; words: string; tooLong: boolean; passing: boolean }
  /** It has too much to do. */
  | { kind: 'busy'; words: string; waitMs: number | null }
  /** It does not work, whatever the texts. */
  | { kind: 'broken'; words: string };

/** What servers say of a text that is longer than their model reads, some of them with status 400. */
const TOO_LONG = /context.?length|too (?:long|large|many)|maximum.{0,40}(?:token|length)|exceed|longer than/i;

export function readAnswer(posted: Posted, count: number, now: number): Answer {
  const { status, text } = posted;
  if (status === 200) return readVectors(text, count);
  const words = `${status}: ${reasonIn(text)}`;
  if (status === 429 || status === 503) {
    return { kind: 'busy', words, waitMs: waitOf(posted.retryAfter, now) };
  }
  if (status === 413) return { kind: 'refused', words, tooLong: true, passing: false };
  if (status === 400 || status === 422) {
    return { kind: 'refused', words, tooLong: TOO_LONG.test(text), passing: false };
  }
  // So a backend fails on one text: Ollama with 500 when it makes NaN, text-embeddings-inference with 424.
  if (status === 500 || status === 424) {
    return { kind: 'refused', words, tooLong: TOO_LONG.test(text), passing: true };
  }
  return { kind: 'broken', words };
}

function readVectors(text: string, count: number): Answer {
  const body = parsed(text);
  const data = isRecord(body) ? body.data : undefined;
  if (!Array.isArray(data)) return { kind: 'broken', words: 'an answer without "data"' };
  if (data.length !== count) {
    return { kind: 'broken', words: `${data.length} vectors for ${count} texts` };
  }
  const vectors = new Array<number[] | null>(count).fill(null);
  const seen = new Set<number>();
  for (const [place, entry] of data.entries()) {
    if (!isRecord(entry)) return { kind: 'broken', words: 'an answer whose "data" holds no objects' };
    const index = typeof entry.index === 'number' ? entry.index : place;
    if (!(index in vectors) || seen.has(index)) {
      return { kind: 'broken', words: 'an answer whose indexes do not fit the texts' };
    }
    seen.add(index);
    vectors[index] = asVector(entry.embedding);
  }
  return { kind: 'vectors', vectors };
}

/** Python writes NaN and Infinity into its JSON; they become what they are: no number. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    if (!/NaN|Infinity/.test(text)) return undefined;
  }
  try {
    return JSON.parse(text.replace(/-?\b(?:NaN|Infinity)\b/g, 'null'));
  } catch {
    return undefined;
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Servers word their errors in different fields; a page of a proxy is told without its tags. */
function reasonIn(text: string): string {
  const body = parsed(text);
  const found = [body, isRecord(body) ? body.error : undefined].filter(isRecord);
  const fields = found.flatMap((part) => [part.message, part.error, part.detail]);
  const words =
    fields.find((field) => typeof field === 'string') ??
    (body === undefined ? text.replace(/<[^>]*>/g, ' ') : text);
  return String(words).replace(/\s+/g, ' ').trim().slice(0, 300) || 'no reason given';
}

/** Seconds or a date. */
function waitOf(retryAfter: string | null, now: number): number | null {
  if (retryAfter === null) return null;
  const ms = /^\s*\d+(\.\d+)?\s*$/.test(retryAfter)
    ? Number(retryAfter) * 1000
    : Date.parse(retryAfter) - now;
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}
