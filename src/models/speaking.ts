/** A text, spoken: one OpenAI-compatible speech server, asked for voice notes. */
import { describe, Fault } from '../core/errors.js';
import type { Speaker } from '../core/media.js';
import type { Outward } from '../core/network.js';
import { type AudioServer, createAudioClient } from './audio-client.js';
import { createRedactor, shownUrl } from './redact.js';
import { plainWords } from './server-error.js';

/** Hours of speech: whatever is larger is none. */
const MOST_BYTES = 20_000_000;

export function createSpeaker({ server, outward }: { server: AudioServer; outward: Outward }): Speaker {
  const { model } = server;
  const redact = createRedactor(server);
  const place = shownUrl(server.baseUrl);
  const client = createAudioClient(server, { outward, mostBytes: MOST_BYTES });

  return {
    async speak({ text, voice, signal }) {
      try {
        const { audio } = await client();
        const ask = { model, voice, input: text, response_format: 'opus' } as const;
        const spoken = await audio.speech.create(ask, { signal });
        return Buffer.from(await spoken.arrayBuffer());
      } catch (error) {
        const words = signal.aborted ? 'was not waited for' : plainWords(redact(describe(error)));
        const at = `at ${place} (model "${model}", voice "${voice}")`;
        throw new Fault('model_unreachable', `The speech server ${at}: ${words}`);
      }
    },
  };
}
