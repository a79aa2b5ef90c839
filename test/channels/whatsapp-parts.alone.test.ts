/** The parts of the WhatsApp channel that need no server. */
import { createRequire } from 'node:module';
import { BufferJSON, proto } from '@whiskeysockets/baileys';
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { whatsappText } from '../../src/channels/markdown/whatsapp.js';
import {
  Acks,
  afterClosing,
  type Closing,
  closingOf,
  libraryLog,
  silenceLibsignal,
} from '../../src/channels/whatsapp/connection.js';
import { contentOf } from '../../src/channels/whatsapp/content.js';
import { isLinked, openCredentials } from '../../src/channels/whatsapp/credentials.js';
import { createSecrets } from '../../src/channels/whatsapp/directory.js';
import { openEdit } from '../../src/channels/whatsapp/inbound.js';
import { whatsappOptions } from '../../src/channels/whatsapp/options.js';
import { compose, messageContent } from '../../src/channels/whatsapp/outbound.js';
import type { Log } from '../../src/core/log.js';
import { sealedEdit } from '../fakes/whatsapp-edits.js';
import { memoryState, testClock } from './whatsapp-gateway.js';

function writtenLog() {
  const lines: { fields: object; message: string }[] = [];
  const say: Log['info'] = (fields, message) => void lines.push({ fields, message });
  return { lines, log: { debug: say, info: say, warn: say, error: say } };
}

describe('options', () => {
  test('what is left out, and what comes from the environment', () => {
    expect(whatsappOptions.parse({})).toEqual({
      enabled: false,
      web_socket_url: null,
      version: null,
      messages_per_second: 5,
      per_chat_burst: 10,
    });
    expect(whatsappOptions.parse({ enabled: 'true', per_chat_burst: '3' })).toMatchObject({
      enabled: true,
      per_chat_burst: 3,
    });
  });

  test.each([
    [{ enabled: 'perhaps' }, 'expected true or false'],
    [
      { web_socket_url: 'http://x' },
      'expected the address of a WhatsApp server, like wss://web.whatsapp.com/ws/chat',
    ],
    [{ version: 'the newest' }, 'expected a version of WhatsApp Web, like 2.3000.1043857760'],
    [{ messages_per_second: 0 }, 'expected a number of messages above 0'],
    [7, 'expected keys and values'],
  ])('%j is said to be wrong', (options, words) => {
    expect(whatsappOptions.safeParse(options).error?.issues.map(({ message }) => message)).toEqual([words]);
  });
});

describe('libsignal on the console', () => {
  const { console: own } = globalThis;
  const { info, warn, error } = own;
  afterEach(() => Object.assign(own, { info, warn, error }));

  test('is heard nowhere; what others say goes where it went', () => {
    const heard: unknown[][] = [];
    const ear = (...said: unknown[]) => void heard.push(said);
    Object.assign(own, { info: ear, warn: ear, error: ear });
    const SessionRecord = createRequire(import.meta.url)('libsignal/src/session_record.js') as new () => {
      closeSession(session: object): void;
    };
    const session = () => ({ indexInfo: { closed: -1 }, privKey: 'a private key' });
    const { lines, log } = writtenLog();

    const restore = silenceLibsignal(log);
    own.info('before', 1);
    new SessionRecord().closeSession(session());
    const closed = { indexInfo: { closed: 1 }, privKey: 'a private key' };
    new SessionRecord().closeSession(closed);
    own.warn('after');
    expect(heard).toEqual([['before', 1], ['after']]);
    expect(lines.length).toBeGreaterThanOrEqual(2);
    expect(JSON.stringify(lines)).not.toContain('private key');

    // Somebody stands before us, and we go first.
    const ours = own.error;
    own.error = (...said: unknown[]) => ours(...said);
    restore();
    own.error('still there');
    expect(heard.at(-1)).toEqual(['still there']);
    expect(own.info).toBe(ear);
    new SessionRecord().closeSession(session());
    expect(heard).toHaveLength(4);
  });
});

test("of the library's log, its sentences go on, and none of its objects", () => {
  const { lines, log } = writtenLog();
  const logger = libraryLog(log).child({ class: 'x' });
  const key = Buffer.from('a private key');
  logger.info({ key, creds: { me: 'secret' } }, 'logging in...');
  logger.error({ err: new Error('no route'), node: 'secret' }, 'it failed');
  logger.warn('only words');
  logger.debug({ secret: 1 }, 'secret');
  expect(lines.map(({ message }) => message)).toEqual([
    'baileys: logging in...',
    'baileys: it failed',
    'baileys: only words',
  ]);
  expect(lines[1]?.fields).toEqual({ channel: 'whatsapp', level: 'error', reason: 'no route' });
  expect(JSON.stringify(lines)).not.toMatch(/secret|private/);
});

describe('credentials', () => {
  test('are made anew where there are none, and are the same after a restart', async () => {
    const state = memoryState();
    const first = await openCredentials(state);
    expect(isLinked(first.auth.creds)).toBe(false);
    first.linked(17);
    await first.settled();
    const second = await openCredentials(memoryState(state.values));
    expect(second.pairedAt()).toBe(17);
    expect(JSON.stringify(second.auth.creds, BufferJSON.replacer)).toBe(
      JSON.stringify(first.auth.creds, BufferJSON.replacer),
    );
    expect(Buffer.isBuffer(second.auth.creds.noiseKey.private)).toBe(true);
  });

  test('keys of every type come back as they were; all that is set at once is one write', async () => {
    const state = memoryState();
    let writes = 0;
    const { set } = state;
    state.set = async (values) => {
      writes += 1;
      await set(values);
    };
    const { auth } = await openCredentials(state);
    const pair = { public: Buffer.from([1, 2]), private: Buffer.from([3, 4]) };
    const syncKey = proto.Message.AppStateSyncKeyData.fromObject({ keyData: Buffer.from([9]) });
    await auth.keys.set({
      'pre-key': { '1': pair, '2': pair },
      session: { '4917.0': Buffer.from('session') },
      'lid-mapping': { '4917': '2001' },
      'app-state-sync-key': { AAAA: syncKey },
      'sender-key-memory': { 'g@g.us': { '1@lid': true } },
    });
    expect(writes).toBe(1);
    expect([...state.values.keys()]).toContain('pre-key-1');
    const { auth: again } = await openCredentials(memoryState(state.values));
    expect(await again.keys.get('pre-key', ['1', '2', '3'])).toEqual({ '1': pair, '2': pair });
    expect(await again.keys.get('session', ['4917.0'])).toEqual({ '4917.0': Buffer.from('session') });
    expect(await again.keys.get('lid-mapping', ['4917'])).toEqual({ '4917': '2001' });
    const { AAAA } = await again.keys.get('app-state-sync-key', ['AAAA']);
    expect(Buffer.from(AAAA?.keyData ?? [])).toEqual(Buffer.from([9]));
    await again.keys.set({ 'pre-key': { '1': null } });
    expect(await again.keys.get('pre-key', ['1'])).toEqual({});
  });

  test('writes happen in order, and none after the end', async () => {
    const order: string[] = [];
    const state = memoryState();
    let slow = true;
    const { set } = state;
    state.set = async (values) => {
      if (slow) await new Promise((resolve) => setTimeout(resolve, 10));
      slow = false;
      order.push(...values.keys());
      await set(values);
    };
    const credentials = await openCredentials(state);
    const { keys } = credentials.auth;
    await Promise.all([
      keys.set({ session: { a: Buffer.from('1') } }),
      keys.set({ session: { b: Buffer.from('2') } }),
    ]);
    credentials.save();
    credentials.save();
    await credentials.settled();
    expect(order).toEqual(['session-a', 'session-b', 'creds', 'paired-at']);
    credentials.retire();
    await keys.set({ session: { c: Buffer.from('3') } });
    credentials.save();
    await credentials.settled();
    expect(order).toHaveLength(4);
  });

  test('what could not be saved is said, and saved when it is asked for again', async () => {
    const state = memoryState();
    const { set } = state;
    let broken = true;
    state.set = async (values) => {
      if (broken) throw new Error('the disk is full');
      await set(values);
    };
    const credentials = await openCredentials(state);
    credentials.save();
    await expect(credentials.settled()).rejects.toThrow('the disk is full');
    broken = false;
    credentials.save();
    await credentials.settled();
    expect(state.values.has('creds')).toBe(true);
  });
});

describe('secrets of messages', () => {
  const secretsAt = (time: { now: number }, state = memoryState()) => {
    const clock = { ...testClock(), now: () => time.now };
    return { secrets: createSecrets(state, clock), state };
  };
  const author = '4917@s.whatsapp.net';

  test('are kept for an hour, also over a restart', async () => {
    const time = { now: 1_779_000_000_000 };
    const { secrets, state } = secretsAt(time);
    const bytes = Buffer.alloc(32, 1);
    await secrets.keep('A', { author, bytes });
    const after = secretsAt(time, memoryState(state.values)).secrets;
    time.now += 3_600_000;
    expect(await after.of('A')).toEqual([{ author, bytes }]);
    expect(await after.of('B')).toEqual([]);
    time.now += 1;
    expect(await after.of('A')).toEqual([]);
  });

  test('are gone after an hour and a half at the latest, also where nobody writes any more', async () => {
    const time = { now: 1_779_000_000_000 };
    const { secrets, state } = secretsAt(time);
    await secrets.keep('A', { author, bytes: Buffer.alloc(32, 1) });
    time.now += 1_800_000;
    await secrets.keep('B', { author, bytes: Buffer.alloc(32, 2) });
    time.now += 1_800_001;
    const stopping = new AbortController();
    const after = memoryState(state.values);
    const left: number[] = [];
    async function sleep(ms: number) {
      left.push(after.values.size);
      time.now += ms;
      if (left.length === 2) stopping.abort();
    }
    const clock = { ...testClock(), now: () => time.now, sleep };
    await createSecrets(after, clock).prune(writtenLog().log, stopping.signal);
    // What is half an hour old at the start outlasts it.
    expect(left).toEqual([1, 0]);
  });

  test('of which there are never more than a few thousand, the newest', async () => {
    const { secrets, state } = secretsAt({ now: 1_779_000_000_000 });
    const ids = Array.from({ length: 6_000 }, (_, n) => `3A${n}`);
    for (const id of ids) await secrets.keep(id, { author, bytes: Buffer.alloc(32) });
    const kept = [...state.values.values()].flatMap((shelf) => JSON.parse(shelf));
    expect(state.values.size).toBeLessThanOrEqual(256);
    expect(kept.length).toBeLessThanOrEqual(4_096);
    for (const id of ids.slice(-500)) expect(await secrets.of(id)).toHaveLength(1);
  });

  test('open an edit of who wrote the message, in whichever forms of address; of nobody else', () => {
    const [anna, ben] = [
      { phone: '491@s.whatsapp.net', lid: '21@lid' },
      { phone: '492@s.whatsapp.net', lid: '22@lid' },
    ];
    const form = fc.constantFrom('phone' as const, 'lid' as const);
    const secret = fc.uint8Array({ minLength: 32, maxLength: 32 });
    const name = fc.stringMatching(/^3A[0-9A-F]{4,18}$/);
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }),
        name,
        secret,
        form,
        form,
        (text, id, bytes, one, other) => {
          const sealed = (by: typeof anna) =>
            contentOf(
              sealedEdit({
                ...{
                  key: { id, fromMe: true },
                  secret: bytes,
                  author: by[one],
                  editor: by[other],
                  text,
                  at: 17,
                },
              }),
            )?.secretEncryptedMessage as proto.Message.ISecretEncryptedMessage;
          const kept = [{ author: anna.phone, bytes: Buffer.from(bytes) }];
          const edit = openEdit(sealed(anna), anna, kept)?.protocolMessage;
          expect(edit).toMatchObject({ key: { id }, type: 14, timestampMs: 17 });
          expect(edit?.editedMessage?.conversation ?? '').toBe(text);
          // Ben knows the secret, as everybody in the group does.
          expect(openEdit(sealed(ben), ben, kept)).toBeNull();
          expect(openEdit(sealed(anna), ben, kept)).toBeNull();
          expect(
            openEdit(sealed(anna), anna, [{ author: anna.phone, bytes: Buffer.alloc(32, 255) }]),
          ).toBeNull();
          expect(openEdit({ ...sealed(anna), secretEncType: 1 }, anna, kept)).toBeNull();
        },
      ),
      { numRuns: 100 },
    );
  });
});

describe('closings', () => {
  const boom = (statusCode: number, message = 'x') =>
    Object.assign(new Error(message), { output: { statusCode } });

  test.each([
    [boom(515), 'restart'],
    [boom(408, 'QR refs attempts ended'), 'unlinked'],
    [boom(401), 'logged out'],
    [boom(440), 'replaced'],
    [boom(405), 'outdated'],
    [boom(403), 'refused'],
    [boom(411), 'refused'],
    [boom(428), 'interrupted'],
    [boom(599), 'interrupted'],
    [new Error('odd'), 'interrupted'],
    [undefined, 'interrupted'],
  ])('%s is %s', (error, kind) => {
    expect(closingOf(error).kind).toBe(kind);
    expect(closingOf(error).reason).not.toBe('');
  });

  test('pauses grow, up to a cap', () => {
    const pauseAfter = (closing: Closing, before: number) => afterClosing(closing, 0).pauseMs(before);
    const closing = closingOf(boom(503));
    const pauses = [0, 1, 2, 5, 6, 100].map((before) => pauseAfter(closing, before));
    expect(pauses).toEqual([1_000, 2_000, 4_000, 32_000, 60_000, 60_000]);
    expect(pauseAfter(closingOf(boom(440)), 50)).toBe(1_800_000);
    fc.assert(
      fc.property(fc.anything(), fc.nat(), (error, before) => {
        expect(pauseAfter(closingOf(error), before)).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});

test('an ack is for everybody who waits for it, once', async () => {
  const acks = new Acks();
  const [one, two, other, gone] = ['A', 'A', 'B', 'C'].map((id) => acks.expect(id));
  gone?.forget();
  acks.came('A', { kind: 'taken' });
  acks.came('A', { kind: 'refused', code: 463 });
  acks.came('C', { kind: 'refused', code: 500 });
  acks.cutOff();
  expect(await one?.ack).toEqual({ kind: 'taken' });
  expect(await two?.ack).toEqual({ kind: 'taken' });
  expect(await other?.ack).toEqual({ kind: 'cut off' });
});

describe('what goes out', () => {
  test('no part is longer on WhatsApp than 4,096 characters', () => {
    const words = 'some *words* of **a kind**, `code` and [a link](https://example.com/a)\n\n';
    const parts = compose(words.repeat(300));
    expect(parts.length).toBeGreaterThan(3);
    for (const part of parts) expect(whatsappText(part).length).toBeLessThanOrEqual(4096);
    fc.assert(
      fc.property(fc.string({ maxLength: 20_000 }), (markdown) => {
        for (const part of compose(markdown)) expect(whatsappText(part).length).toBeLessThanOrEqual(4096);
      }),
      { numRuns: 30 },
    );
  });

  test('a picture goes as one, everything else as a document with its name', () => {
    const part = (name: string) => ({ text: 'look', marks: [], file: { path: '/x', name } });
    const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1]);
    expect(messageContent(part('a.png'), png)).toEqual({
      image: png,
      mimetype: 'image/png',
      caption: 'look',
    });
    const jpeg = Buffer.from([0xff, 0xd8, 0xff, 0xe0]);
    expect(messageContent(part('a.bin'), jpeg)).toMatchObject({ image: jpeg, mimetype: 'image/jpeg' });
    const large = Buffer.concat([jpeg, Buffer.alloc(16_000_000)]);
    expect(Object.keys(messageContent(part('a.jpg'), large))).toContain('document');
    const text = Buffer.from('x');
    expect(messageContent({ ...part('a.MD'), text: ' ' }, text)).toEqual({
      document: text,
      fileName: 'a.MD',
      mimetype: 'text/markdown',
    });
    const empty = messageContent(part('none.txt'), Buffer.alloc(0));
    expect(empty).toMatchObject({ text: expect.stringMatching(/^look\n\n.*none\.txt is empty/) });
    expect(messageContent(part('odd'), text)).toMatchObject({ mimetype: 'application/octet-stream' });
    expect(messageContent({ text: 'hi', marks: [{ kind: 'bold', offset: 0, length: 2 }] }, null)).toEqual({
      text: '*hi*',
      linkPreview: null,
    });
  });
});
