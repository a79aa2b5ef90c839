/** OpenAI-compatible servers for audio: transcription of voice notes, and spoken replies. */
import { type Clock, withDeadline } from '../core/clock.js';
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { Speaker, Transcriber } from '../core/media.js';
import { addressOf, MOST_DOCUMENT_BYTES, type Outward } from '../core/network.js';
import { wholeAnswer } from '../core/response-body.js';
import { classify, connectionError, plainWords, refusalOf, ServerError } from './failures.js';
import { parse, record } from './json.js';
import { redactorFor, shownUrl } from './redact.js';

interface AudioServer {
  baseUrl: string;
  /** null if the server needs none. */
  apiKey: string | null;
  model: string;
}

/** More than half an hour of speech. */
const MOST_SPEECH_BYTES = 8_000_000;
/** Pause before the only retry, in ms; the caller has its own time limit. */
const RETRY_MS = 500;

export function createSpeaker(server: AudioServer, outward: Outward, clock: Clock): Speaker {
  const ask = createAsk(server, '/audio/speech', outward, clock, MOST_SPEECH_BYTES);
  const redact = redactorFor(server);
  return {
    async speak({ text, voice, signal }) {
      const asked = { model: server.model, voice, input: text, response_format: 'opus' };
      try {
        return await ask(JSON.stringify(asked), signal);
      } catch (error) {
        const words = signal.aborted ? 'was not waited for' : plainWords(redact(describe(error)));
        const at = `at ${shownUrl(server.baseUrl)} (model "${server.model}", voice "${voice}")`;
        throw new Fault('model_unreachable', `The speech server ${at}: ${words}`);
      }
    },
  };
}

export function createTranscriber({
  server,
  timeoutSeconds,
  outward,
  mostBytes = MOST_DOCUMENT_BYTES,
  clock,
  log,
}: {
  server: AudioServer;
  timeoutSeconds: number;
  outward: Outward;
  /** Maximum size of an answer, in bytes. Default: 16 MB. */
  mostBytes?: number;
  clock: Clock;
  log: Log;
}): Transcriber {
  const { model } = server;
  const ask = createAsk(server, '/audio/transcriptions', outward, clock, mostBytes);
  const redact = redactorFor(server);
  const place = shownUrl(server.baseUrl);
  const failed = (words: string) =>
    new Fault('model_unreachable', `The transcription server at ${place} (model "${model}"): ${words}`);

  async function answerTo(bytes: Buffer, name: string, type: string, signal: AbortSignal): Promise<string> {
    const form = new FormData();
    form.append('file', new File([new Uint8Array(bytes)], name, { type }));
    form.append('model', model);
    form.append('response_format', 'json');
    return withDeadline(clock, timeoutSeconds * 1000, signal, async (ended) => {
      try {
        return (await ask(form, ended)).toString('utf8');
      } catch (error) {
        if (signal.aborted) throw failed('was not waited for');
        throw failed(ended.aborted ? 'the request timed out' : plainWords(redact(describe(error))));
      }
    });
  }

  return {
    async transcribe(bytes, { name, mimeType, signal }) {
      const answer = await answerTo(bytes, name, mimeType, signal);
      const text = textIn(answer);
      if (text === null) {
        const isJson = parse(answer) !== undefined;
        throw failed(isJson ? 'its answer holds no text' : `answered: ${plainWords(answer)}`);
      }
      if (text.trim() === '') log.info({ server: place, model }, 'recording transcribed to nothing');
      return text.trim();
    },
  };
}

/** Resolves with the body of a successful response; rejects with ServerError. */
function createAsk(
  server: AudioServer,
  path: string,
  outward: Outward,
  clock: Clock,
  mostBytes: number,
): (body: string | FormData, signal: AbortSignal) => Promise<Buffer> {
  const { url, headers } = addressOf(server.baseUrl, path);
  if (server.apiKey) headers.authorization = `Bearer ${server.apiKey}`;

  async function once(body: string | FormData, signal: AbortSignal): Promise<Buffer> {
    const encoded = new Response(body);
    const type = typeof body === 'string' ? 'application/json' : (encoded.headers.get('content-type') ?? '');
    const bytes = Buffer.from(await encoded.arrayBuffer());
    const sent = {
      method: 'POST',
      headers: { ...headers, 'content-type': type },
      body: bytes,
      signal,
    } as const;
    const answer = await wholeAnswer(outward, url, sent, mostBytes).catch((error) => {
      throw connectionError(error);
    });
    if (answer.status >= 200 && answer.status < 300) return answer.bytes;
    throw refusalOf(answer, answer.bytes.toString('utf8'), clock.now());
  }

  return async (body, signal) => {
    try {
      return await once(body, signal);
    } catch (error) {
      const mayRetry = error instanceof ServerError && classify(error.details, 0).retry;
      if (!mayRetry || signal.aborted) throw error;
      await clock.sleep(RETRY_MS, signal);
      return once(body, signal);
    }
  };
}

/** The beginning of a page, as proxies and log-ins send with status 200, or of an event stream. */
const NO_WORDS =
  /^\s*(<!doctype\b|<!--|<\?xml\b|<\/?(html|head|body|title|meta|style|script|center|div|h[1-6]|hr|p|pre|table)\b|(event|data): ?[{[]|event: ?\S+[\r\n])/i;

/** Some servers answer with the bare words, some with JSON labelled as text. null if there are none. */
function textIn(answer: string): string | null {
  const document = record(parse(answer));
  if (document !== null) return typeof document.text === 'string' ? document.text : null;
  return NO_WORDS.test(answer.slice(0, 1_000)) ? null : answer;
}
