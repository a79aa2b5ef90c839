import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WAMessage, WASocket } from '@whiskeysockets/baileys';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fetchFile } from '../../src/channels/whatsapp/media.js';
import type { FetchResult } from '../../src/core/channel.js';
import type { Attachment } from '../../src/core/message.js';
import { startFakeWhatsApp } from '../fakes/whatsapp.js';
import type { Enclosure, FakeWhatsApp, Peer, Saying } from '../fakes/whatsapp-words.js';
import { straight } from '../harness/straight.js';
import { eventually, type Gateway, linked, messages, testClock } from './whatsapp-gateway.js';

/** One link for all: each test talks to people of its own. */
let fake: FakeWhatsApp;
let gateway: Gateway;
let undo: () => void;
let folder: string;
let people = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-whatsapp-'));
  fake = await startFakeWhatsApp();
  undo = await fake.serveMediaHere();
  gateway = await linked(fake);
});

afterAll(async () => {
  await gateway.stop();
  undo();
  await fake.close();
  await rm(folder, { recursive: true });
});

function somebody(): Peer {
  people += 1;
  return fake.peer(people);
}

async function told(saying: Omit<Saying, 'from'>): Promise<{ text: string; attachment: Attachment }> {
  const from = somebody();
  fake.say({ from, ...saying });
  const theirs = () => messages(gateway).find(({ sender }) => sender.address === from.pn);
  await eventually(() => theirs() !== undefined, 'the message');
  const { text = '', attachments = [] } = theirs() ?? {};
  expect(attachments).toHaveLength(1);
  return { text, attachment: attachments[0] as Attachment };
}

function fetched(
  attachment: Attachment,
  { maxBytes = 1_000_000, signal = new AbortController().signal } = {},
): Promise<FetchResult> {
  return gateway.channel.fetch(attachment, { maxBytes, signal });
}

const bytes = Buffer.from('not really a picture '.repeat(500));
const picture: Enclosure = { bytes, mimeType: 'image/jpeg' };

describe('files that come', () => {
  test('a picture with its words, a voice note, a document', async () => {
    const photo = await told({ text: 'look', image: picture });
    expect(photo).toMatchObject({
      text: 'look',
      attachment: { kind: 'image', mimeType: 'image/jpeg', bytes: bytes.length },
    });
    expect(await fetched(photo.attachment)).toEqual({ kind: 'fetched', bytes });
    const voice = await told({ voice: { bytes, mimeType: 'audio/ogg; codecs=opus', seconds: 4 } });
    expect(voice).toMatchObject({ text: '', attachment: { kind: 'voice', seconds: 4 } });
    expect(await fetched(voice.attachment)).toEqual({ kind: 'fetched', bytes });
    const paper = await told({ document: { bytes, mimeType: 'text/plain', fileName: '../../a.txt' } });
    expect(paper.attachment).toMatchObject({ kind: 'document', name: '../../a.txt', mimeType: 'text/plain' });
    expect(await fetched(paper.attachment)).toEqual({ kind: 'fetched', bytes });
  });

  test('a document of 30 MB: no more is read than was asked for, whatever its sender claims', async () => {
    const large = { bytes: Buffer.alloc(30_000_000, 7), mimeType: 'application/pdf', claimedSize: 1_000 };
    const { attachment } = await told({ document: large });
    expect(attachment.bytes).toBe(1_000);
    expect(await fetched(attachment, { maxBytes: 20_000_000 })).toEqual({ kind: 'too large' });
    expect(await fetched(attachment, { maxBytes: 30_000_000 })).toMatchObject({ kind: 'fetched' });
    expect(await fetched(attachment, { maxBytes: 29_999_999 })).toEqual({ kind: 'too large' });
  });

  test('a link that never answers is given up; whoever asked may give up before', async () => {
    const { attachment } = await told({ image: picture });
    const asked = async (signal?: AbortSignal) => {
      fake.cdn.fail('download', 'stall');
      const before = fake.cdn.requests.length;
      const result = fetched(attachment, signal && { signal });
      await eventually(() => fake.cdn.requests.length > before, 'the request');
      return { result };
    };
    const stalled = await asked();
    gateway.clock.expire(20_000);
    expect(await stalled.result).toEqual({
      kind: 'unreachable',
      reason: 'the media server did not answer in time, or was not waited for',
    });
    const ending = new AbortController();
    const given = await asked(ending.signal);
    ending.abort();
    expect(await given.result).toMatchObject({ kind: 'unreachable' });
    expect(await fetched(attachment)).toMatchObject({ kind: 'fetched' });
  });

  test('damaged, cut off, refused, and not there for now', async () => {
    const { attachment } = await told({ image: picture });
    fake.cdn.fail('download', 'garbage');
    expect(await fetched(attachment)).toEqual({ kind: 'gone', reason: 'the file is damaged' });
    fake.cdn.fail('download', 'half');
    expect(await fetched(attachment)).toMatchObject({ kind: 'unreachable' });
    fake.cdn.fail('download', 503);
    expect(await fetched(attachment)).toMatchObject({
      kind: 'unreachable',
      reason: expect.stringContaining('503'),
    });
    fake.cdn.fail('download', 400);
    expect(await fetched(attachment)).toMatchObject({ kind: 'gone', reason: expect.stringContaining('400') });
    expect(await fetched(attachment)).toMatchObject({ kind: 'fetched' });
  });

  test.each([404, 410])(
    '%i: the phone of its sender is asked to put it there again, once',
    async (status) => {
      const { attachment } = await told({ image: picture });
      const again = await told({ image: picture });
      const { path } = JSON.parse(again.attachment.source) as { path: string };
      fake.cdn.fail('download', status);
      const asked: WAMessage[] = [];
      const socket = {
        async updateMediaMessage(message: WAMessage) {
          asked.push(message);
          return {
            ...message,
            message: { imageMessage: { ...message.message?.imageMessage, directPath: path } },
          };
        },
      } as unknown as WASocket;
      const { source } = attachment;
      const { signal } = new AbortController();
      // It lies elsewhere now, sealed with another key: what counts is that it is looked for there.
      const ask = { source, maxBytes: 1_000_000, signal, socket, outward: straight, clock: testClock() };
      expect(await fetchFile(ask)).toEqual({ kind: 'gone', reason: 'the file is damaged' });
      expect(asked).toHaveLength(1);
      expect(fake.cdn.requests.at(-1)).toMatchObject({ path: path.split('?')[0] });
      // Its sender does not answer.
      fake.cdn.fail('download', status);
      expect(await fetched(attachment)).toMatchObject({
        kind: 'gone',
        reason: expect.stringContaining(String(status)),
      });
    },
  );

  test('no server but those of WhatsApp is asked', async () => {
    const { attachment } = await told({ image: picture });
    const source = JSON.parse(attachment.source) as Record<string, unknown>;
    const from = (changed: object) =>
      fetched({ ...attachment, source: JSON.stringify({ ...source, ...changed }) });
    const before = fake.cdn.requests.length;
    expect(await from({ path: undefined, url: 'https://127.0.0.1/a' })).toMatchObject({ kind: 'gone' });
    expect(await from({ path: '@127.0.0.1/a', url: undefined })).toMatchObject({ kind: 'gone' });
    expect(await from({ path: undefined, url: 'https://evilwhatsapp.net/a' })).toMatchObject({
      kind: 'gone',
    });
    expect(await from({ key: '' })).toMatchObject({ kind: 'gone' });
    expect(await fetched({ ...attachment, source: 'nonsense' })).toMatchObject({ kind: 'gone' });
    expect(fake.cdn.requests).toHaveLength(before);
    expect(await from({ url: 'https://example.com/a' })).toMatchObject({ kind: 'fetched' });
  });
});

describe('files that go', () => {
  const file = async (name: string, content: Buffer) => {
    const path = join(folder, name);
    await writeFile(path, content);
    return { path, name };
  };
  const PNG = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  );

  test('a document and a picture, with words below', async () => {
    const anna = somebody();
    const words = { text: 'read this', marks: [{ kind: 'bold' as const, offset: 0, length: 4 }] };
    const paper = { ...words, file: await file('paper.txt', bytes) };
    expect(await gateway.send(anna.pn, paper, { key: '1' })).toMatchObject({ kind: 'sent' });
    const photo = { text: '', marks: [], file: await file('dot.png', PNG) };
    expect(await gateway.send(anna.pn, photo, { key: '2' })).toMatchObject({ kind: 'sent' });
    expect(fake.sentTo(anna)).toMatchObject([
      { kind: 'document', text: '*read* this', file: { name: 'paper.txt', mimeType: 'text/plain' } },
      { kind: 'image', text: '', file: { mimeType: 'image/png' } },
    ]);
    expect(fake.sentTo(anna)[0]?.file?.bytes).toEqual(bytes);
    expect(fake.sentTo(anna)[1]?.file?.bytes).toEqual(PNG);
  });

  test('a picture that is none goes all the same', async () => {
    const anna = somebody();
    const corrupt = Buffer.concat([PNG.subarray(0, 20), Buffer.alloc(100, 1)]);
    const photo = { text: 'x', marks: [], file: await file('corrupt.png', corrupt) };
    expect(await gateway.send(anna.pn, photo, { key: '3' })).toMatchObject({ kind: 'sent' });
    expect(fake.sentTo(anna)[0]?.file?.bytes).toEqual(corrupt);
  });

  test('one that is gone, or larger than WhatsApp is asked to take, is refused', async () => {
    const anna = somebody();
    const gone = { text: 'x', marks: [], file: { path: join(folder, 'gone'), name: 'gone' } };
    expect(await gateway.send(anna.pn, gone, { key: '4' })).toMatchObject({ kind: 'refused' });
    const huge = await file('huge.bin', Buffer.alloc(0));
    await truncate(huge.path, 100_000_001);
    const result = await gateway.send(anna.pn, { text: 'x', marks: [], file: huge }, { key: '5' });
    expect(result).toMatchObject({
      kind: 'refused',
      reason: expect.stringContaining('WhatsApp takes at most 100 MB'),
    });
  });

  test('media servers that fail for now', async () => {
    const anna = somebody();
    const paper = { text: 'x', marks: [], file: await file('later.txt', bytes) };
    // One for each of the two servers.
    fake.cdn.fail('upload', 503, 2);
    const first = await gateway.send(anna.pn, paper, { key: '6' });
    expect(first).toMatchObject({ kind: 'unreachable', taken: 'no' });
    expect(await gateway.send(anna.pn, paper, { key: '6' })).toMatchObject({ kind: 'sent' });
    fake.cdn.fail('upload', 'stall');
    const before = fake.cdn.requests.length;
    const stalled = gateway.send(anna.pn, paper, { key: '7' });
    // Given up sooner, it would still upload, and the next test's upload could stall in its place.
    await eventually(() => fake.cdn.requests.length > before, 'the upload');
    gateway.clock.expire(300_000);
    expect(await stalled).toMatchObject({ kind: 'unreachable', taken: 'no' });
  });

  test('what a phone could not read is uploaded again after a restart', async () => {
    const anna = somebody();
    const paper = { text: 'x', marks: [], file: await file('again.txt', bytes) };
    await gateway.send(anna.pn, paper, { key: '8' });
    const [sent] = fake.sentTo(anna);
    await gateway.stop();
    gateway = await linked(fake, { before: gateway, sentPart: async () => paper });
    const uploads = fake.cdn.requests.length;
    fake.faults.requestRetry(sent?.id ?? '');
    await fake.until(() => sent?.times === 2, 'again');
    expect(fake.cdn.requests.slice(uploads).map(({ method }) => method)).toContain('POST');
  });
});
