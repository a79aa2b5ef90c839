/** What somebody said, in words: one OpenAI-compatible transcription server, asked before a voice note is read. */
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { Transcriber } from '../core/media.js';
import { MOST_DOCUMENT_BYTES, type Outward } from '../core/network.js';
import { type AudioServer, createAudioClient } from './audio-client.js';
import { parse, record } from './json.js';
import { createRedactor, shownUrl } from './redact.js';
import { plainWords } from './server-error.js';

export function createTranscriber(parts: {
  server: AudioServer;
  timeoutSeconds: number;
  outward: Outward;
  /** Of an answer; 16 MB. */
  mostBytes?: number;
  log: Log;
}): Transcriber {
  const { server, timeoutSeconds, outward, mostBytes = MOST_DOCUMENT_BYTES, log } = parts;
  const { model } = server;
  const redact = createRedactor(server);
  const place = shownUrl(server.baseUrl);
  const client = createAudioClient(server, { outward, mostBytes, timeout: timeoutSeconds * 1000 });

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
      const text = textIn(answer);
      if (text === null) {
        throw failed(
          typeof answer === 'string' ? `answered: ${plainWords(answer)}` : 'its answer holds no text',
        );
      }
      if (text.trim() === '') log.info({ server: place, model }, 'a recording was transcribed to nothing');
      return text.trim();
    },
  };
}

/** The beginning of a page, as proxies and log-ins send one with 200, or of a stream of events. */
const NO_WORDS =
  /^\s*(<!doctype\b|<!--|<\?xml\b|<\/?(html|head|body|title|meta|style|script|center|div|h[1-6]|hr|p|pre|table)\b|(event|data): ?[{[]|event: ?\S+[\r\n])/i;

/** Some servers answer with the bare words, and some say that JSON is text. null: there are none. */
function textIn(answer: unknown): string | null {
  const document = record(typeof answer === 'string' ? parse(answer) : answer);
  if (document !== null) return typeof document.text === 'string' ? document.text : null;
  return typeof answer === 'string' && !NO_WORDS.test(answer.slice(0, 1_000)) ? answer : null;
}
