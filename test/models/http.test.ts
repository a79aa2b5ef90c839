/** What a model server sends instead of an answer, over a socket. */
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createPost } from '../../src/models/attempt.js';
import { manualClock } from '../fakes/clock.js';
import { straight } from '../harness/straight.js';

let open: Server[] = [];
afterEach(() => {
  for (const server of open) {
    server.closeAllConnections();
    server.close();
  }
  open = [];
});

/** Posts to a server that answers so. */
async function posted(answer: (response: ServerResponse) => void): Promise<unknown> {
  const server = createServer((request, response) => {
    request.resume();
    answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push(server);
  const { port } = server.address() as AddressInfo;
  const post = createPost(
    { baseUrl: `http://127.0.0.1:${port}/v1`, apiKey: null },
    '/chat/completions',
    straight,
    manualClock(),
    1_000_000,
  );
  return post({ text: '{}', pictures: [] }, new AbortController().signal);
}

test('a success without a body can be read, and is over at once', async () => {
  const body = (await posted((response) => response.writeHead(204).end())) as AsyncIterable<Uint8Array>;
  expect(await body[Symbol.asyncIterator]().next()).toMatchObject({ done: true });
});

test('a refusal without end is not read to its end', async () => {
  const piece = 'x'.repeat(65_536);
  let written = 0;
  const refused = posted((response) => {
    response.writeHead(500);
    const write = () => {
      do written += piece.length;
      while (!response.destroyed && response.write(piece));
    };
    response.on('drain', write);
    write();
  });
  await expect(refused).rejects.toMatchObject({ details: { kind: 'answered', status: 500 } });
  expect(written).toBeLessThan(32_000_000);
});

test('a refusal that repeats a long request is understood', async () => {
  const body = JSON.stringify({ error: { message: 'no', code: 'bad', input: 'x'.repeat(2_000_000) } });
  const refused = posted((response) => response.writeHead(400).end(body));
  await expect(refused).rejects.toMatchObject({ details: { words: 'no', code: 'bad' } });
});

test.each(['<script ', '<', '<style><', '{"error":', ' '])(
  'a refusal of %j again and again is read at once',
  async (piece) => {
    const body = piece.repeat(4_000_000 / piece.length);
    const refused = posted((response) => response.writeHead(400).end(body));
    const began = performance.now();
    await expect(refused).rejects.toMatchObject({ details: { kind: 'answered', status: 400 } });
    expect(performance.now() - began).toBeLessThan(2_000);
  },
);

test('a refusal that is cut or breaks off says what had come of it', async () => {
  const cut = posted((response) => response.writeHead(400).end(`<p>Too busy</p>${'x'.repeat(9_000_000)}`));
  await expect(cut).rejects.toMatchObject({
    details: { words: expect.stringMatching(/^Too busy/), isBodyEmpty: false },
  });
  const broken = posted((response) => {
    response.writeHead(503, { 'content-length': 1_000 });
    response.write('<p>Too busy</p>', () => response.destroy());
  });
  await expect(broken).rejects.toMatchObject({ details: { status: 503, words: 'Too busy' } });
});
