/** Files that came with messages, fetched from the fake Telegram over real connections. */
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Telegram } from '../../src/channels/telegram/channel.js';
import type { FetchResult } from '../../src/core/channel.js';
import type { Attachment, InboundMessage } from '../../src/core/message.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { type FakeTelegram, type Fault, startFakeTelegram } from '../fakes/telegram.js';
import { group, type Saying } from '../fakes/telegram-chats.js';
import { ALL_LET_IN } from '../harness/sending.js';
import { channelOn } from './telegram-stage.js';

const MAX = 20_000_000;
const FILE: Attachment = {
  ...{ kind: 'document', source: 'file-id-1', name: null, mimeType: null, bytes: null, seconds: null },
};

let fake: FakeTelegram;
let clock: ManualClock;
let channel: Telegram;
let logged: string[];

beforeEach(async () => {
  fake = await startFakeTelegram();
  clock = manualClock();
  logged = [];
  channel = create(fake.url);
});

afterEach(async () => {
  await channel.stop();
  await fake.close();
  expect(logged.join('\n')).not.toContain(fake.token.split(':')[1]);
});

const create = (apiRoot: string) => channelOn(fake, apiRoot, { clock, logged });

/** Another server in Telegram's place; the channel is one that talks to it. */
async function inPlaceOfTelegram(answer: RequestListener): Promise<void> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await channel.stop();
  channel = create(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

/** The attachments of what is said, as the channel takes it in. */
async function takenIn(...sayings: Saying[]): Promise<InboundMessage[]> {
  const messages: InboundMessage[] = [];
  let taken: () => void = () => {};
  const all = new Promise<void>((resolve) => {
    taken = resolve;
  });
  const intake = new AbortController();
  onTestFinished(() => intake.abort());
  await channel.start(async ({ events }) => {
    messages.push(...events.filter((event) => event.kind === 'message'));
    if (messages.length >= sayings.length) taken();
    return ALL_LET_IN;
  }, intake.signal);
  for (const saying of sayings) fake.say(saying);
  await all;
  return messages;
}

async function fetched(
  attachment: Attachment = FILE,
  { maxBytes = MAX, signal = new AbortController().signal } = {},
): Promise<FetchResult> {
  const result = await channel.fetch(attachment, { maxBytes, signal });
  if (result.kind !== 'fetched') expect(JSON.stringify(result)).not.toContain(fake.token.split(':')[1]);
  return result;
}

describe('a file', () => {
  test('of each kind is told with its message, and fetched to the last byte', async () => {
    const bytes = Buffer.alloc(300_000, 'to the last byte ');
    const messages = await takenIn(
      { photo: { bytes } },
      { voice: { bytes, seconds: 7 }, chat: group(-1001) },
      { document: { bytes, name: 'notes.txt', mimeType: 'text/plain' }, caption: 'my notes' },
    );
    const kinds = messages.map(({ attachments, text }) => [attachments?.[0]?.kind, text]);
    expect(kinds).toEqual([
      ['image', ''],
      ['voice', ''],
      ['document', 'my notes'],
    ]);
    for (const { attachments = [] } of messages) {
      const [attachment = FILE] = attachments;
      expect(attachment).toMatchObject({ bytes: bytes.length });
      const result = await fetched(attachment);
      expect(result.kind === 'fetched' && result.bytes.equals(bytes)).toBe(true);
    }
  });

  test('an empty one is fetched, too', async () => {
    fake.say({ document: { bytes: Buffer.alloc(0) } });
    expect(await fetched()).toEqual({ kind: 'fetched', bytes: Buffer.alloc(0) });
  });

  test('is fetched after a restart, by what was stored of it', async () => {
    const [{ attachments = [] } = { attachments: [] }] = await takenIn({
      photo: { bytes: Buffer.from('x') },
    });
    const stored = JSON.parse(JSON.stringify(attachments)) as Attachment[];
    await channel.stop();
    channel = create(fake.url);
    expect(await fetched(stored[0])).toEqual({ kind: 'fetched', bytes: Buffer.from('x') });
  });
});

describe("an operator's own server with --local", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'coterie-local-'));
    fake.settings.local = folder;
  });
  afterEach(() => rm(folder, { recursive: true }));

  test('gives the file on its disk, of any size', async () => {
    const bytes = Buffer.alloc((20 << 20) + 1, 'x');
    fake.say({ document: { bytes } });
    const result = await fetched(FILE, { maxBytes: 50_000_000 });
    expect(result.kind === 'fetched' && result.bytes.equals(bytes)).toBe(true);
    expect(fake.callsOf('file')).toEqual([]);
    expect(await fetched(FILE, { maxBytes: 1_000 })).toEqual({ kind: 'too large' });
  });

  test('on another machine says what to do', async () => {
    await inPlaceOfTelegram((_request, response) => {
      const result = { file_id: '1', file_unique_id: '1', file_path: join(folder, 'not/here') };
      response.end(JSON.stringify({ ok: true, result }));
    });
    expect(await fetched()).toMatchObject({
      kind: 'unreachable',
      reason: expect.stringContaining(`${join(folder, 'not/here')}; that folder must be readable`),
    });
  });
});

describe('what is too large', () => {
  test('for Telegram itself', async () => {
    fake.say({ document: { bytes: Buffer.alloc((20 << 20) + 1) } });
    expect(await fetched(FILE, { maxBytes: 50_000_000 })).toEqual({ kind: 'too large' });
  });

  test('for us, by what Telegram says: not one byte of it is fetched', async () => {
    fake.say({ document: { bytes: Buffer.alloc(1_001) } });
    expect(await fetched(FILE, { maxBytes: 1_000 })).toEqual({ kind: 'too large' });
    expect(fake.callsOf('file')).toEqual([]);
  });

  test.each([
    ['told before it', true],
    ['told by nobody', false],
  ])('for us, %s: the rest is not read', async (_name, told) => {
    let written = 0;
    await inPlaceOfTelegram((request, response) => {
      if (!request.url?.startsWith('/file/')) {
        response.end(JSON.stringify({ ok: true, result: { file_id: 'x', file_path: 'documents/x' } }));
        return;
      }
      if (told) response.setHeader('content-length', 1_000_000_000);
      const more = () => {
        if (response.destroyed) return;
        written += 65_536;
        response.write(Buffer.alloc(65_536), () => setImmediate(more));
      };
      more();
    });
    expect(await fetched(FILE, { maxBytes: 1_000_000 })).toEqual({ kind: 'too large' });
    expect(written).toBeLessThan(100_000_000);
  });
});

describe('trouble', () => {
  const troubles: [string, string, Fault, FetchResult['kind'], string][] = [
    [
      'an id that Telegram does not know',
      'getFile',
      { status: 400, description: 'Bad Request: wrong file_id' },
      'gone',
      'wrong file_id',
    ],
    ['a flood', 'getFile', { status: 429, parameters: { retry_after: 3 } }, 'unreachable', '429'],
    ['a page of a proxy', 'getFile', { html: 502 }, 'unreachable', '502'],
    ['a break before the answer', 'getFile', { drop: 'before' }, 'unreachable', 'broke'],
    ['a file that is not there any more', 'file', { status: 404 }, 'gone', '404'],
    ['a server that fails', 'file', { status: 500 }, 'unreachable', '500'],
    ['a page instead of the file', 'file', { html: 503 }, 'unreachable', '503'],
    ['a break before the first byte', 'file', { drop: 'before' }, 'unreachable', 'Telegram'],
    ['a break in the middle', 'file', { drop: 'after' }, 'unreachable', 'Telegram'],
  ];
  test.each(troubles)('%s', async (_name, method, fault, kind, words) => {
    fake.say({ document: { bytes: Buffer.alloc(100_000, 'x') } });
    fake.fail(method, fault);
    expect(await fetched()).toMatchObject({ kind, reason: expect.stringContaining(words) });
    expect(await fetched()).toMatchObject({ kind: 'fetched' });
  });

  test('half a file without a word about its length', async () => {
    await inPlaceOfTelegram((request, response) => {
      if (request.url?.startsWith('/file/')) response.end('half');
      else response.end(JSON.stringify({ ok: true, result: { file_size: 8, file_path: 'documents/x' } }));
    });
    expect(await fetched()).toEqual({ kind: 'unreachable', reason: 'only 4 of 8 bytes arrived' });
  });

  test('an answer without a path', async () => {
    await inPlaceOfTelegram((_request, response) => response.end(JSON.stringify({ ok: true, result: {} })));
    expect(await fetched()).toMatchObject({ kind: 'gone' });
  });

  test('nobody there', async () => {
    await fake.shut();
    expect(await fetched()).toMatchObject({
      kind: 'unreachable',
      reason: expect.stringContaining('reached'),
    });
    await fake.open();
  });

  test.each(['before', 'after'] as const)(
    'a link that never answers (%s its first byte): given up when told',
    async (when) => {
      fake.say({ document: { bytes: Buffer.alloc(100_000, 'x') } });
      fake.fail('file', { stall: when });
      const caller = new AbortController();
      const fetching = fetched(FILE, { signal: caller.signal });
      await fake.until(() => fake.callsOf('file').length === 1);
      caller.abort();
      expect(await fetching).toMatchObject({
        kind: 'unreachable',
        reason: expect.stringContaining('in time'),
      });
      expect(await fetched(FILE, { signal: caller.signal })).toMatchObject({ kind: 'unreachable' });
    },
  );

  test('and by itself, when it has had as long as the largest file takes on a slow line', async () => {
    fake.say({ document: { bytes: Buffer.alloc(100_000, 'x') } });
    fake.fail('file', { stall: 'before' });
    const fetching = fetched();
    await fake.until(() => fake.callsOf('file').length === 1);
    await clock.advance(400_000);
    expect(await Promise.race([fetching, Promise.resolve('still waiting')])).toBe('still waiting');
    await clock.advance(60_000);
    expect(await fetching).toMatchObject({ kind: 'unreachable' });
  });
});
