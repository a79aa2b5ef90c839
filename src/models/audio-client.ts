/** The client of an OpenAI-compatible server for sound: transcription, and speech. */
import type OpenAI from 'openai';
import { LONGEST_TIMER_MS } from '../core/clock.js';
import type { Outward } from '../core/outward.js';

export interface AudioServer {
  baseUrl: string;
  /** null where the server wants none. */
  apiKey: string | null;
  /** The model's name there. */
  model: string;
}

/** A server that is busy is asked again once; who waits for it has a deadline of their own. */
const RETRIES = 1;

/** The package is loaded with the first voice note. `timeout` in ms; left out: the package's own. */
export function createAudioClient(
  { baseUrl, apiKey }: AudioServer,
  { outward, timeout }: { outward: Outward; timeout?: number },
): () => Promise<OpenAI> {
  let loading: Promise<OpenAI> | undefined;
  return () => {
    loading ??= import('openai').then(
      ({ default: Client }) =>
        new Client({
          baseURL: baseUrl,
          // The package insists on a key; a server without one gets no Authorization header at all.
          apiKey: apiKey || 'none',
          defaultHeaders: apiKey ? {} : { Authorization: null },
          // Else these would come from the environment and go to whichever server this is.
          organization: null,
          project: null,
          maxRetries: RETRIES,
          fetch: outward.fetch(),
          // It sets a timer of Node's own.
          ...(timeout === undefined ? {} : { timeout: Math.min(timeout, LONGEST_TIMER_MS) }),
        }),
    );
    return loading;
  };
}
