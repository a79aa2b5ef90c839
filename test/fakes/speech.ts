/**
 * A speech server on loopback, as OpenAI has one (https://platform.openai.com/docs/api-reference/audio/createSpeech): it
 * refuses an unknown model or voice, an empty input or one of more than 4096 characters, and formats that it does not
 * have; what it sends is OGG with Opus where that was asked for.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { breakOff, listen } from './http-server.js';
import { recording } from './ogg.js';
import { createWatch } from './watch.js';

export interface Spoken {
  model: string;
  voice: string;
  input: string;
  format: string;
  authorization: string | undefined;
}

/** What happens instead of an answer. */
export type SpeechFault =
  | { status: number; message: string }
  | { body: Buffer | string; type: string }
  | { drop: true }
  /** No answer until it is healed or closed. */
  | { stall: true };

export interface FakeSpeech {
  /** For `speech.base_url`. */
  url: string;
  /** Every request that was well formed, refused or not. */
  asked: Spoken[];
  models: string[];
  voices: string[];
  /** Null: it speaks. */
  fault: SpeechFault | null;
  /** How long a text takes to be spoken, seconds. */
  secondsOf(input: string): number;
  until(condition: () => boolean, what?: string): Promise<void>;
  close(): Promise<void>;
}

const FORMATS = ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'];
const LONGEST = 4096;

export async function startFakeSpeech(): Promise<FakeSpeech> {
  const { look, until } = createWatch('the fake speech server');

  function refuse(response: ServerResponse, status: number, message: string, param: string | null): void {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message, type: 'invalid_request_error', param, code: null } }));
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST' || request.url !== '/v1/audio/speech') {
      return refuse(response, 404, `Invalid URL (${request.method} ${request.url})`, null);
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const asked = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Record<string, unknown>;
    const { model, voice, input, response_format: format = 'mp3' } = asked;
    const spoken = {
      model: String(model),
      voice: String(voice),
      input: String(input),
      format: String(format),
    };
    fake.asked.push({ ...spoken, authorization: request.headers.authorization });
    look();
    const { fault } = fake;
    if (fault !== null && 'stall' in fault) return;
    if (fault !== null && 'drop' in fault) return void request.socket.destroy();
    if (fault !== null && 'status' in fault) return refuse(response, fault.status, fault.message, null);
    if (fault !== null) {
      response.writeHead(200, { 'content-type': fault.type });
      return void response.end(fault.body);
    }
    if (!fake.models.includes(spoken.model))
      return refuse(response, 404, `The model \`${spoken.model}\` does not exist`, 'model');
    if (!fake.voices.includes(spoken.voice)) {
      const known = fake.voices.map((name) => `'${name}'`).join(', ');
      return refuse(response, 400, `Input should be ${known}`, 'voice');
    }
    if (spoken.input === '') return refuse(response, 400, 'String should have at least 1 character', 'input');
    if (spoken.input.length > LONGEST)
      return refuse(response, 400, `String should have at most ${LONGEST} characters`, 'input');
    if (!FORMATS.includes(spoken.format)) {
      return refuse(response, 400, `Input should be ${FORMATS.join(', ')}`, 'response_format');
    }
    const isOpus = spoken.format === 'opus';
    const bytes = isOpus
      ? recording(fake.secondsOf(spoken.input))
      : Buffer.from(`not Opus: ${spoken.format}`);
    response.writeHead(200, { 'content-type': isOpus ? 'audio/opus' : 'audio/mpeg' });
    response.end(bytes);
  }

  const server = createServer((request, response) => {
    serve(request, response).catch(breakOff(request));
  });
  const { url, close } = await listen(server);
  const fake: FakeSpeech = {
    ...{ url: `${url}/v1`, asked: [], models: ['speaker'], voices: ['alloy', 'nova'], fault: null },
    ...{ secondsOf: (input: string) => input.length / 15, until, close },
  };
  return fake;
}
