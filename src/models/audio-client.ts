/** The client of an OpenAI-compatible server for sound: transcription, and speech. */
import type OpenAI from 'openai';
import { LONGEST_TIMER_MS } from '../core/clock.js';
import { NOT_PACKED, type Outward } from '../core/network.js';

export interface AudioServer {
  baseUrl: string;
  /** null where the server wants none. */
  apiKey: string | null;
  /** The model's name there. */
  model: string;
}

/** A server that is busy is asked again once; who waits for it has a deadline of their own. */
const RETRIES = 1;

/**
 * The package is loaded with the first voice note. `mostBytes`: of an answer, or what is said of an error. `timeout` in ms;
 * left out: the package's own.
 */
export function createAudioClient(
  { baseUrl, apiKey }: AudioServer,
  { outward, mostBytes, timeout }: { outward: Outward; mostBytes: number; timeout?: number },
): () => Promise<OpenAI> {
  let loading: Promise<OpenAI> | undefined;
  return () => {
    loading ??= import('openai').then(
      ({ default: Client }) =>
        new Client({
          baseURL: baseUrl,
          // The package insists on a key; a server without one gets no Authorization header at all.
          apiKey: apiKey || 'none',
          defaultHeaders: { ...NOT_PACKED, ...(apiKey ? {} : { Authorization: null }) },
          // Else these would come from the environment and go to whichever server this is.
          organization: null,
          project: null,
          maxRetries: RETRIES,
          fetch: upTo(mostBytes, outward.fetch()),
          // It sets a timer of Node's own.
          ...(timeout === undefined ? {} : { timeout: Math.min(timeout, LONGEST_TIMER_MS) }),
        }),
    );
    return loading;
  };
}

/** The package reads whatever comes to its end. What was packed is counted as it is unpacked. */
function upTo(mostBytes: number, ask: typeof fetch): typeof fetch {
  return async (input, init) => {
    const { body, status, statusText, headers } = await ask(input, init);
    const bounded = body === null ? null : (ReadableStream.from(pieces(body, mostBytes)) as ReadableStream);
    return new Response(bounded, { status, statusText, headers });
  };
}

async function* pieces(body: ReadableStream<Uint8Array>, most: number): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > most) throw new Error(`its answer is larger than ${most.toLocaleString('en')} bytes`);
    yield piece;
  }
}
