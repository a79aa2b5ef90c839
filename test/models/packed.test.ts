/** Answers that come packed though nobody asked for it, over a real connection. */

import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { createWindowList } from '../../src/models/window-list.js';
import { manualClock } from '../fakes/clock.js';
import type { ModelScript } from '../fakes/model.js';
import { straight } from '../harness/straight.js';
import { answered, ask, fault, LOOK_UP, openBench } from './helpers.js';

let close: (() => unknown)[] = [];
afterEach(async () => {
  for (const each of close) await each();
  close = [];
});

async function open(reply: ModelScript, options = {}) {
  const bench = await openBench(reply, options);
  close.push(() => bench.fake.close());
  return bench;
}

const FORMS = ['gzip', 'deflate', 'raw deflate', 'br'] as const;

describe.each(FORMS)('packed as %s', (packed) => {
  test('a stream is read as it comes', async () => {
    const { client, fake } = await open({ text: 'Tea is good', chunkSize: 3, stallAfter: 2, packed });
    let text = '';
    for await (const event of client.stream(ask('?'), new AbortController().signal)) {
      if (event.kind === 'text') text += event.delta;
      // The server will never say more: whoever waited for its end would wait for ever.
      if (text === 'Tea is') break;
    }
    expect(text).toBe('Tea is');
    await expect.poll(() => fake.requests[0]?.abandoned).toBe(true);
  });

  test('calls, usage, and the next request over the same connection', async () => {
    const { client, fake } = await open({ calls: [{ name: 'look_up', arguments: '{}' }], packed });
    for (let n = 0; n < 2; n++) {
      const event = await answered(client, ask('?', { tools: [LOOK_UP] }));
      expect(event.calls).toMatchObject([{ name: 'look_up' }]);
      expect(event.usage).not.toBeNull();
    }
    expect(fake.connections()).toBe(1);
  });

  test('one document, and a refusal', async () => {
    const { client, fake } = await open({ text: 'Tea.', nonStreaming: true, packed });
    expect((await answered(client, ask('?'))).text).toBe('Tea.');
    fake.reply({ status: 401, body: { error: { message: 'no such key' } }, packed });
    expect((await fault(client, ask('?'))).message).toContain('no such key');
  });

  test('an answer that breaks off is one that broke off', async () => {
    const script = { text: 'Tea is good', chunkSize: 3, cutAfter: 2, packed };
    const { client } = await open(script, { maxAttempts: 1 });
    expect((await fault(client, ask('?'))).code).toBe('model_unreachable');
  });
});

test('nothing packed is asked for', async () => {
  const { client, fake } = await open({ text: 'Tea.' });
  await answered(client, ask('?'));
  expect(fake.requests[0]?.headers['accept-encoding']).toBe('identity');
});

/** Answers every request with these bytes; `split`: the first by itself, a moment earlier. */
async function serving(form: string, bytes: Buffer, status = 200, split = false): Promise<string> {
  const server = createServer((request, response: ServerResponse) => {
    request.resume();
    response.writeHead(status, { 'content-encoding': form, 'content-type': 'application/json' });
    if (!split) return response.end(bytes);
    response.write(bytes.subarray(0, 1));
    return setTimeout(() => response.end(bytes.subarray(1)), 50);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  close.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

const PACK = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync };

test.each([
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['deflate', deflateRawSync],
  ['br', brotliCompressSync],
] as const)('the first byte of what is packed may come alone (%s)', async (form, pack) => {
  const text = 'data: {"choices": [{"delta": {"content": "Tea."}, "finish_reason": "stop"}]}\n\n';
  const baseUrl = await serving(form, pack(text), 200, true);
  const bench = await open({ text: 'never' });
  const client = bench.another({ server: { baseUrl, apiKey: null, name: 'm' }, maxAttempts: 1 });
  expect((await answered(client, ask('?'))).text).toBe('Tea.');
});

describe.each(['gzip', 'deflate', 'br'] as const)('what unpacks to much more (%s)', (form) => {
  test.each([
    ['a line', 200, `data: {"a": "${'x'.repeat(40_000_000)}"}`, 'model_endless'],
    [
      'a text',
      200,
      `data: ${JSON.stringify({ choices: [{ delta: { content: 'x'.repeat(9_000_000) } }] })}\n\n`,
      'model_endless',
    ],
    ['a refusal', 400, JSON.stringify({ error: { message: 'x'.repeat(40_000_000) } }), 'model_refused'],
  ])('%s is read no further than its bound', async (_, status, text, code) => {
    const baseUrl = await serving(form, PACK[form](text), status);
    const bench = await open({ text: 'never' });
    const client = bench.another({ server: { baseUrl, apiKey: null, name: 'm' }, maxAttempts: 1 });
    expect((await fault(client, ask('?'))).code).toBe(code);
  });
});

test('what a server tells of itself may come packed, and with a byte order mark', async () => {
  const list = { data: [{ id: 'm', max_model_len: 4_096 }] };
  const bytes = deflateRawSync(`\uFEFF${JSON.stringify(list)}`);
  const told = async (baseUrl: string) =>
    createWindowList({ baseUrl, apiKey: null }, straight, manualClock())('m');
  expect(await told(await serving('deflate', bytes))).toBe(4_096);
  const large = gzipSync(JSON.stringify({ ...list, more: 'x'.repeat(20_000_000) }));
  expect(await told(await serving('gzip', large))).toBe(null);
});
