/**
 * One JSON request to an embedding server over Node's own HTTP client, with a connection kept open, and what its
 * answer means.
 */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { NOT_PACKED, type Outward, unpacked, wholeOf } from '../core/network.js';
import { asVector, isRecord, parsed } from './vectors.js';

export interface Posted {
  status: number;
  /** The header Retry-After, as it came. */
  retryAfter: string | null;
  text: string;
}

/** Shorter than the five seconds for which common servers keep an unused connection. */
const IDLE_MS = 4_000;
/** Of a vector: one of 10,000 numbers takes less. */
const BYTES_A_VECTOR = 250_000;
/** What is said of an error. */
const LEAST_BOUND = 1_000_000;

export function createHttpClient(baseUrl: string, apiKey: string | null, outward: Outward) {
  const base = baseUrl.replace(/(?<!\/)\/+$/, '');
  const secure = base.startsWith('https:');
  const agent = outward.agent(secure, { idleMs: IDLE_MS });
  const request = secure ? httpsRequest : httpRequest;
  const authorization = apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };

  /**
   * Rejects with Node's own errors, whose messages name neither headers nor key. `vectors`: how many are asked for, which
   * bounds what is read.
   */
  const post = (path: string, body: object, { vectors, signal }: { vectors: number; signal: AbortSignal }) =>
    new Promise<Posted>((resolve, reject) => {
      const payload = Buffer.from(JSON.stringify(body));
      const headers = {
        'content-type': 'application/json',
        'content-length': payload.length,
        accept: 'application/json',
        ...NOT_PACKED,
        ...authorization,
      };
      const sent = request(`${base}${path}`, { method: 'POST', agent, headers, signal }, (response) => {
        const most = Math.max(LEAST_BOUND, vectors * BYTES_A_VECTOR);
        wholeOf(unpacked(response), most).then(
          (bytes) =>
            resolve({
              status: response.statusCode ?? 0,
              retryAfter: response.headers['retry-after'] ?? null,
              text: bytes.toString('utf8'),
            }),
          (error) => {
            sent.destroy();
            reject(error);
          },
        );
      });
      sent.on('error', reject);
      sent.end(payload);
    });
  return { post, close: () => agent.destroy() };
}

export type Answer =
  /** One for each text, in order; null where it is none that can be used. */
  | { kind: 'vectors'; vectors: (number[] | null)[]; model: string | null }
  /** It does not accept these texts. `transient`: perhaps only this time. */
  | { kind: 'refused'; words: string; tooLong: boolean; transient: boolean }
  /** It has too much to do. */
  | { kind: 'busy'; words: string; waitMs: number | null }
  /** It does not work, whatever the texts. `lasting`: nor will it, asked the same way. */
  | { kind: 'broken'; words: string; lasting?: true };

/** What servers say of a text that is longer than their model reads, some of them with status 400. */
const TOO_LONG =
  /context.?length|batch size|too (?:long|large|many)|maximum.{0,40}(?:token|length)|exceed|longer than/i;

/** A key that is missing or wrong; an address or a model that there is not. */
const LASTING = [401, 403, 404];

export function readAnswer(posted: Posted, count: number, now: number): Answer {
  const { status, text } = posted;
  if (status === 200) return readVectors(text, count);
  const words = `${status}: ${reasonIn(text)}`;
  if (status === 429 || status === 503) {
    return { kind: 'busy', words, waitMs: waitOf(posted.retryAfter, now) };
  }
  if (status === 413) return { kind: 'refused', words, tooLong: true, transient: false };
  if (status === 400 || status === 422) {
    return { kind: 'refused', words, tooLong: TOO_LONG.test(text), transient: false };
  }
  // How servers fail on a single text: Ollama with 500 when it makes NaN, text-embeddings-inference with 424.
  if (status === 500 || status === 424) {
    return { kind: 'refused', words, tooLong: TOO_LONG.test(text), transient: true };
  }
  return { kind: 'broken', words, ...(LASTING.includes(status) && { lasting: true }) };
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
  for (const [position, entry] of data.entries()) {
    if (!isRecord(entry)) return { kind: 'broken', words: 'an answer whose "data" holds no objects' };
    const index = typeof entry.index === 'number' ? entry.index : position;
    if (!(index in vectors) || seen.has(index)) {
      return { kind: 'broken', words: 'an answer whose indexes do not fit the texts' };
    }
    seen.add(index);
    vectors[index] = asVector(entry.embedding);
  }
  const model = isRecord(body) && typeof body.model === 'string' ? body.model : null;
  return { kind: 'vectors', vectors, model };
}

/** Servers word their errors in different fields; of a proxy's HTML page the text is left. */
function reasonIn(text: string): string {
  const body = parsed(text);
  const found = [body, isRecord(body) ? body.error : undefined].filter(isRecord);
  const fields = found.flatMap((part) => [part.message, part.error, part.detail]);
  const words =
    fields.find((field) => typeof field === 'string') ??
    (body === undefined ? text.replace(/<[^<>]*>/g, ' ') : text);
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
