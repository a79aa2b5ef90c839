/** What somebody said, in words: one OpenAI-compatible transcription server, asked before a voice note is read. */
import type OpenAI from 'openai';
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { Transcriber } from '../core/media.js';
import { record } from './json.js';
import { createRedactor, shownUrl } from './redact.js';
import { plainWords } from './server-error.js';

export interface TranscriptionServer {
  baseUrl: string;
  /** null where the server wants none. */
  apiKey: string | null;
  /** The model's name there. */
  model: string;
}

/** A server that is busy is asked again once; who waits for it has a deadline of their own. */
const RETRIES = 1;

export function createTranscriber(parts: {
  server: TranscriptionServer;
  timeoutSeconds: number;
  log: Log;
}): Transcriber {
  const { server, timeoutSeconds, log } = parts;
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
          timeout: timeoutSeconds * 1000,
          maxRetries: RETRIES,
        }),
    );
    return loading;
  }

  async function ask(bytes: Buffer, name: string, mimeType: string, signal: AbortSignal): Promise<unknown> {
    try {
      const { audio } = await client();
      const file = new File([new Uint8Array(bytes)], name, { type: mimeType });
      return await audio.transcriptions.create({ file, model, response_format: 'json' }, { signal });
    } catch (error) {
      throw failed(signal.aborted ? 'was not waited for' : plainWords(redact(describe(error))));
    }
  }

  function failed(words: string): Fault {
    return new Fault(
      'model_unreachable',
      `The transcription server at ${place} (model "${model}"): ${words}`,
    );
  }

  return {
    async transcribe(bytes, { name, mimeType, signal }) {
      const answer = await ask(bytes, name, mimeType, signal);
      // Some servers answer with the bare words.
      const text = typeof answer === 'string' ? answer : record(answer)?.text;
      if (typeof text !== 'string') throw failed('its answer holds no text');
      if (text.trim() === '') log.info({ server: place, model }, 'a recording was transcribed to nothing');
      return text.trim();
    },
  };
}
