/** Downloads a file over HTTP: never more of it than was asked for, and never waiting for a server that is silent. */
import type { FetchResult } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { onAbort } from './abort.js';

/** No `reason` holds the address, in which there may be a token. */
export type Download =
  | Extract<FetchResult, { kind: 'fetched' | 'too large' | 'unreachable' }>
  /** The server answered with an HTTP status that is no success. */
  | { kind: 'refused'; status: number; reason: string };

/** Never rejects. `silence`: how long the server may send nothing, before its answer and within it. */
export async function download(
  url: string,
  ask: {
    /** The server as an operator knows it: "Telegram's file server". */
    server: string;
    maxBytes: number;
    signal: AbortSignal;
    headers?: Record<string, string>;
    silence?: { ms: number; clock: Clock };
  },
): Promise<Download> {
  const { server, maxBytes, signal, headers = {}, silence } = ask;
  const over = new AbortController();
  const end = () => over.abort();
  const unlisten = onAbort(signal, end);
  const whenSilent = () => silence?.clock.after(silence.ms, end);
  let cancelSilence = whenSilent();
  try {
    const response = await fetch(url, { headers, signal: over.signal });
    const { status } = response;
    if (!response.ok) return { kind: 'refused', status, reason: `${server} answers with HTTP ${status}` };
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
    const reason = over.signal.aborted
      ? `${server} did not answer in time, or was not waited for`
      : `the connection to ${server} broke: ${reasonOf(error)}`;
    return { kind: 'unreachable', reason };
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
