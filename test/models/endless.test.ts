/** Answers without an end, from all servers beside the chat, and what comes instead of words from one that transcribes. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createGzip, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { createApi } from '../../src/channels/discord/api.js';
import { createBotApi } from '../../src/channels/telegram/api.js';
import { systemClock } from '../../src/core/clock.js';
import { EmbeddingServer } from '../../src/embedding/server.js';
import { createSpeaker, createTranscriber } from '../../src/models/audio.js';
import { createWindowList } from '../../src/models/window-list.js';
import { straight } from '../harness/straight.js';
import { keptLog } from './helpers.js';

let open: Server[] = [];
afterEach(() => {
  for (const server of open) {
    server.closeAllConnections();
    server.close();
  }
  open = [];
});

async function served(answer: Parameters<typeof createServer>[1]): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push(server);
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** JSON that never ends, as fast as it is taken; how much of it was taken stands in `written`. */
async function endless({ status = 200, packed = false } = {}) {
  const written = { bytes: 0 };
  const piece = 'x'.repeat(65_536);
  const url = await served((request, response) => {
    request.resume();
    const head = { 'content-type': 'application/json', ...(packed && { 'content-encoding': 'gzip' }) };
    response.writeHead(status, head);
    const out = packed ? createGzip() : response;
    if (packed) (out as ReturnType<typeof createGzip>).pipe(response);
    out.write('{"text": "');
    const more = () => {
      do written.bytes += piece.length;
      while (!response.destroyed && written.bytes < 400_000_000 && out.write(piece));
    };
    out.on('drain', more);
    more();
  });
  return { url, written };
}

const aSignal = () => new AbortController().signal;
const log = keptLog();
const ASKED: Record<string, (url: string) => Promise<unknown>> = {
  'a transcription': (url) =>
    createTranscriber({
      server: { baseUrl: url, apiKey: null, model: 'm' },
      timeoutSeconds: 20,
      outward: straight,
      mostBytes: 4_000_000,
      clock: systemClock,
      log,
    }).transcribe(Buffer.from('a'), { name: 'a.ogg', mimeType: 'audio/ogg', signal: aSignal() }),
  'a voice': (url) =>
    createSpeaker({ baseUrl: url, apiKey: null, model: 'm' }, straight, systemClock).speak({
      ...{ text: 'Hello.', voice: 'v', signal: aSignal() },
    }),
  embeddings: (url) =>
    new EmbeddingServer({
      ...{
        baseUrl: url,
        apiKey: null,
        model: 'm',
        timeoutSeconds: 20,
        clock: systemClock,
        outward: straight,
      },
    }).embed(['a'], { purpose: 'query', signal: aSignal() } as never),
  Telegram: async (url) => {
    const bot = { token: '1:a', setting: '' };
    const api = createBotApi(url, bot, { clock: systemClock, log, outward: straight });
    return api.call((raw) => raw.getMe()).finally(() => api.close());
  },
  Discord: (url) => {
    const options = { token: 'a', apiRoot: url, messagesPerSecond: 5 } as never;
    const api = createApi(options, { clock: systemClock, outward: straight });
    return api.get('/users/@me').finally(() => api.close());
  },
};

/** Discord's library unpacks nothing. */
const UNPACKING = Object.keys(ASKED).filter((name) => name !== 'Discord');

describe.each(Object.keys(ASKED))('without an end, from %s', (name) => {
  test.each([
    ['an answer', 200, false] as const,
    ['a refusal', 400, false] as const,
    ...(UNPACKING.includes(name) ? [['an answer that is packed', 200, true] as const] : []),
  ])(
    '%s is cut',
    async (_, status, packed) => {
      const { url, written } = await endless({ status, packed });
      await expect(ASKED[name]?.(url)).rejects.toThrow();
      expect(written.bytes).toBeLessThan(120_000_000);
    },
    20_000,
  );
});

test('without an end, what a server tells of itself is cut', async () => {
  const { url, written } = await endless();
  const list = createWindowList({ baseUrl: url, apiKey: null }, straight, systemClock);
  expect(await list('m')).toBe(null);
  expect(written.bytes).toBeLessThan(60_000_000);
});

describe('an answer to a recording', () => {
  async function transcribed(body: string | Buffer, headers: Record<string, string>) {
    const url = await served((request, response) => {
      request.resume();
      response.writeHead(200, headers).end(body);
    });
    return ASKED['a transcription']?.(url);
  }

  test.each([
    ['<!DOCTYPE html><html><body>Please log in</body></html>', 'text/html'],
    ['\n <html lang="en"><h1>502 Bad Gateway</h1></html>', 'text/plain'],
    ['<h1>502 Bad Gateway</h1><hr>nginx', 'text/html'],
    ['<?xml version="1.0"?><Error>Denied</Error>', 'application/xml'],
    ['<!-- maintenance --><p>Back soon', 'text/html'],
    ['{"error": {"message": "busy"}}', 'text/plain'],
    ['event: error\ndata: {"message": "busy"}\n\n', 'text/event-stream'],
    ['data: {"type": "transcript.text.delta", "delta": "Hi"}\n\n', 'text/event-stream'],
  ])('that is no transcript is none: %j', async (body, type) => {
    await expect(transcribed(body, { 'content-type': type })).rejects.toThrow('The transcription server at');
  });

  test.each([
    ['{"text": "Hello there."}', 'application/json'],
    ['{"text": "Hello there."}', 'text/plain'],
    ['\uFEFF{"text": "Hello there."}', 'application/json'],
    // whisper.cpp says so of plain text.
    ['Hello there.', 'text/html'],
    ['Hello there.', 'text/plain'],
  ])('may have many forms: %j as %s', async (body, type) => {
    expect(await transcribed(body, { 'content-type': type })).toBe('Hello there.');
    const packed = { 'content-type': type, 'content-encoding': 'gzip' };
    expect(await transcribed(gzipSync(body), packed)).toBe('Hello there.');
  });

  test.each(['<unintelligible> yes', 'Data: it is all about data.', 'a < b'])('may say %j', async (said) => {
    expect(await transcribed(said, { 'content-type': 'text/plain' })).toBe(said);
  });
});
