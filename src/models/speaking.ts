/** A text, spoken: one OpenAI-compatible speech server, asked for voice notes. */
import type OpenAI from 'openai';
import { describe, Fault } from '../core/errors.js';
import type { Speaker } from '../core/speech.js';
import { createRedactor, shownUrl } from './redact.js';
import { plainWords } from './server-error.js';

export interface SpeechServer {
  baseUrl: string;
  /** null where the server wants none. */
  apiKey: string | null;
  /** The model's name there. */
  model: string;
}

/** A server that is busy is asked again once; who waits for it has a deadline of their own. */
const RETRIES = 1;
/** Hours of speech: whatever is larger is none. */
const MOST_BYTES = 20_000_000;

export function createSpeaker({ server }: { server: SpeechServer }): Speaker {
  const { model } = server;
  const redact = createRedactor(server);
  const place = shownUrl(server.baseUrl);
  let loading: Promise<OpenAI> | undefined;

  /** The package is loaded with the first voice note. */
  function client(): Promise<OpenAI> {
    loading ??= import('openai').then(
      ({ default: Client }) =>
        new Client({
          baseURL: server.baseUrl,
          // The package insists on a key; a server without one gets no Authorization header at all.
          apiKey: server.apiKey || 'none',
          defaultHeaders: server.apiKey ? {} : { Authorization: null },
          // Else these would come from the environment and go to whichever server this is.
          organization: null,
          project: null,
          maxRetries: RETRIES,
        }),
    );
    return loading;
  }

  return {
    async speak({ text, voice, signal }) {
      try {
        const { audio } = await client();
        const ask = { model, voice, input: text, response_format: 'opus' } as const;
        return await bytesOf(await audio.speech.create(ask, { signal }));
      } catch (error) {
        const words = signal.aborted ? 'was not waited for' : plainWords(redact(describe(error)));
        const at = `at ${place} (model "${model}", voice "${voice}")`;
        throw new Fault('model_unreachable', `The speech server ${at}: ${words}`);
      }
    },
  };
}

async function bytesOf({ body }: Response): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) throw new Error('its answer is larger than any voice note');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
