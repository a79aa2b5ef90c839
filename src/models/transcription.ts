/** What somebody said, in words: one OpenAI-compatible transcription server, asked before a voice note is read. */
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { Transcriber } from '../core/media.js';
import type { Outward } from '../core/outward.js';
import { type AudioServer, createAudioClient } from './audio-client.js';
import { record } from './json.js';
import { createRedactor, shownUrl } from './redact.js';
import { plainWords } from './server-error.js';

export function createTranscriber(parts: {
  server: AudioServer;
  timeoutSeconds: number;
  outward: Outward;
  log: Log;
}): Transcriber {
  const { server, timeoutSeconds, outward, log } = parts;
  const { model } = server;
  const redact = createRedactor(server);
  const place = shownUrl(server.baseUrl);
  const client = createAudioClient(server, { outward, timeout: timeoutSeconds * 1000 });

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
