import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { FetchResult } from '../../src/core/channel.js';
import type { Attachment } from '../../src/core/message.js';
import type { AttachmentOptions, Attachment as Uploaded } from '../fakes/discord-words.js';
import { ANNA, CHANNEL, garden, openStage, type Stage } from './discord-stage.js';

const PNG = Buffer.from('not really a picture');

let stage: Stage;

beforeEach(async () => {
  stage = await openStage();
  garden(stage.fake);
  await stage.listen();
});
afterEach(() => stage.close());

/** Somebody sends a file, and we hear of it. */
async function sent(
  options: AttachmentOptions = {},
  bytes = PNG,
): Promise<{ file: Attachment; uploaded: Uploaded; id: string }> {
  const uploaded = stage.fake.attachment('cat.png', bytes, 'image/png', options);
  const { id } = stage.fake.say({ from: ANNA, channelId: CHANNEL, attachments: [uploaded] });
  await stage.until(() => stage.messages().length === 1);
  const file = stage.messages()[0]?.attachments?.[0];
  if (file === undefined) throw new Error('the file did not come');
  return { file, uploaded, id };
}

const fetchIt = (
  file: Attachment,
  { maxBytes = 1_000_000, signal = new AbortController().signal } = {},
): Promise<FetchResult> => stage.channel.fetch(file, { maxBytes, signal });

describe('a file that somebody sent', () => {
  test('is told of, and fetched', async () => {
    const { file } = await sent();
    expect(file).toMatchObject({ kind: 'image', name: 'cat.png', mimeType: 'image/png', bytes: PNG.length });
    const found = await fetchIt(file);
    expect(found).toEqual({ kind: 'fetched', bytes: PNG });
    // Nothing of ours goes to the file server.
    expect(stage.fake.callsTo('GET', /messages/)).toEqual([]);
  });

  test('is fetched, too, when its link has run out', async () => {
    const { file, uploaded, id } = await sent();
    stage.fake.expireLinks();
    expect(await fetchIt(file)).toEqual({ kind: 'fetched', bytes: PNG });
    expect(stage.fake.fetched(uploaded)).toBe(2);
    expect(stage.fake.callsTo('GET', /messages/)).toMatchObject([
      { path: `/channels/${CHANNEL}/messages/${id}` },
    ]);
  });

  test('after a restart', async () => {
    const { file } = await sent();
    stage.fake.expireLinks();
    const next = await openStage({ apiRoot: stage.fake.url, token: stage.fake.token });
    const ask = { maxBytes: 1_000_000, signal: new AbortController().signal };
    expect(await next.channel.fetch(file, ask)).toMatchObject({ kind: 'fetched' });
    await next.close();
  });

  test('is gone with its message', async () => {
    const { file, id } = await sent();
    stage.fake.expireLinks();
    stage.fake.remove(CHANNEL, id);
    expect(await fetchIt(file)).toEqual({ kind: 'gone', reason: expect.stringContaining('Unknown Message') });
  });

  test('is gone where the file server does not have it any more', async () => {
    const { file } = await sent({ served: 'gone' });
    expect(await fetchIt(file)).toEqual({ kind: 'gone', reason: expect.stringContaining('404') });
  });

  test('may be had later where the message cannot be asked for now', async () => {
    const { file } = await sent();
    stage.fake.expireLinks();
    stage.fake.fail({ path: /messages/ }, { status: 500 });
    expect(await fetchIt(file)).toMatchObject({ kind: 'unreachable' });
  });

  test('of 30 MB is not fetched, whatever is said of its size', async () => {
    const bytes = Buffer.alloc(30_000_000);
    const honest = await sent({}, bytes);
    expect(await fetchIt(honest.file, { maxBytes: 20_000_000 })).toEqual({ kind: 'too large' });
    expect(stage.fake.fetched(honest.uploaded)).toBe(0);
    expect(await fetchIt({ ...honest.file, bytes: 5 }, { maxBytes: 20_000_000 })).toEqual({
      kind: 'too large',
    });
    expect(await fetchIt({ ...honest.file, bytes: null }, { maxBytes: 20_000_000 })).toEqual({
      kind: 'too large',
    });
    expect(await fetchIt(honest.file, { maxBytes: 30_000_000 })).toMatchObject({ kind: 'fetched' });
  });

  test('whose link never answers is given up after a while, or when nobody waits any more', async () => {
    const { file } = await sent({ served: 'never' });
    const first = fetchIt(file);
    await stage.passes(20_000);
    expect(await first).toMatchObject({ kind: 'unreachable', reason: expect.stringContaining('in time') });
    const over = new AbortController();
    const second = fetchIt(file, { signal: over.signal });
    over.abort();
    expect(await second).toMatchObject({ kind: 'unreachable' });
    expect(await fetchIt(file, { signal: AbortSignal.abort() })).toMatchObject({ kind: 'unreachable' });
  });

  test.each(['says', 'leads to'])(
    'is not looked for beside the gateway, which is what its link %s',
    async (how) => {
      const asked: string[] = [];
      const inside = createServer((request, response) => {
        asked.push(request.url ?? '');
        response.end('what is meant for this machine alone');
      });
      await new Promise<void>((resolve) => inside.listen(0, '127.0.0.1', resolve));
      const address = `http://127.0.0.1:${(inside.address() as AddressInfo).port}/latest/meta-data`;
      const { file } = await sent(
        how === 'says' ? { extra: { url: address } } : { served: { sentOnTo: address } },
      );
      expect(await fetchIt(file)).toMatchObject({ kind: 'gone' });
      expect(asked).toEqual([]);
      await new Promise((resolve) => inside.close(resolve));
    },
  );

  test('whose link breaks off may be had later', async () => {
    const { file } = await sent({ served: 'half' });
    expect(await fetchIt(file)).toMatchObject({
      kind: 'unreachable',
      reason: expect.stringContaining('broke'),
    });
  });

  test.each([
    '',
    '{',
    '{"url":5}',
    'null',
    '{"channel":"1","message":"2","attachment":"3","url":"file:///etc/passwd"}',
  ])('of which nothing is known is gone: %s', async (source) => {
    const file = { kind: 'image', source, name: null, mimeType: null, bytes: null, seconds: null } as const;
    expect(await fetchIt(file)).toMatchObject({ kind: 'gone' });
  });
});

test('a voice note is one', async () => {
  const { file } = await sent({ voiceSeconds: 3.4, extra: { content_type: 'audio/ogg' } });
  expect(file).toMatchObject({ kind: 'voice', mimeType: 'audio/ogg', seconds: 3 });
});
