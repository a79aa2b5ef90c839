/** Downloads a file over HTTP: never more of it than was asked for, and never waiting for a server that is silent. */
import type { Clock } from '../../core/clock.js';
import { onAbort } from './abort.js';

export type Download =
  | { kind: 'fetched'; bytes: Buffer }
  /** Larger than `maxBytes`; the rest was not read. */
  | { kind: 'too large' }
  /** The server answered with an HTTP status that is no success. */
  | { kind: 'refused'; status: number }
  /** No answer in time, or the caller gave up. */
  | { kind: 'late' }
  /** `reason` does not hold the address, in which there may be a token. */
  | { kind: 'broken'; reason: string };

/** Never rejects. `silence`: how long the server may send nothing, before its answer and within it. */
export async function download(
  url: string,
  ask: {
    maxBytes: number;
    signal: AbortSignal;
    headers?: Record<string, string>;
    silence?: { ms: number; clock: Clock };
  },
): Promise<Download> {
  const { maxBytes, signal, headers = {}, silence } = ask;
  const over = new AbortController();
  const end = () => over.abort();
  const unlisten = onAbort(signal, end);
  const whenSilent = () => silence?.clock.after(silence.ms, end);
  let cancelSilence = whenSilent();
  try {
    const response = await fetch(url, { headers, signal: over.signal });
    if (!response.ok) return { kind: 'refused', status: response.status };
    if (Number(response.headers.get('content-length') ?? 0) > maxBytes) return { kind: 'too large' };
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of response.body ?? []) {
      cancelSilence?.();
      cancelSilence = whenSilent();
      size += chunk.length;
      if (size > maxBytes) return { kind: 'too large' };
      chunks.push(chunk);
    }
    return { kind: 'fetched', bytes: Buffer.concat(chunks) };
  } catch (error) {
    return over.signal.aborted ? { kind: 'late' } : { kind: 'broken', reason: reasonOf(error) };
  } finally {
    cancelSilence?.();
    unlisten();
    // What was not read is not wanted: the connection need not bring it.
    over.abort();
  }
}

/** `fetch` says only that it failed; its cause says why. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  return cause instanceof Error ? cause.message : String(cause);
}
