/** Files to Telegram: real ones from a folder, over real connections, to the fake that reads forms strictly. */
import { mkdir, mkdtemp, open, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import sharp from 'sharp';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Telegram } from '../../src/channels/telegram/channel.js';
import type { Part, Recipient, SendResult } from '../../src/core/channel.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { type FakeTelegram, type Fault, startFakeTelegram } from '../fakes/telegram.js';
import { ANNA } from '../fakes/telegram-chats.js';
import { MalformedForm, parseForm } from '../fakes/telegram-form.js';
import { sendOptions } from '../harness/sending.js';
import { channelOn } from './telegram-stage.js';

const TO_ANNA: Recipient = { address: String(ANNA.id), threadId: null, kind: 'direct' };
const TOPIC: Recipient = { address: '-1001', threadId: '45', kind: 'group' };
const BOLD: Part['marks'] = [{ kind: 'bold', offset: 0, length: 4 }];

let fake: FakeTelegram;
let clock: ManualClock;
let channel: Telegram;
let folder: string;
let files: number;
let logged: string[];
let cleanUp: (() => Promise<unknown> | unknown)[];

beforeEach(async () => {
  fake = await startFakeTelegram();
  clock = manualClock();
  folder = await mkdtemp(join(tmpdir(), 'coterie-files-'));
  files = 0;
  logged = [];
  cleanUp = [];
  channel = create(fake.url);
});

afterEach(async () => {
  await channel.stop();
  for (const step of cleanUp) await step();
  await fake.close();
  await rm(folder, { recursive: true });
  expect(logged.join('\n')).not.toContain(fake.token.split(':')[1]);
});

const create = (apiRoot: string) => channelOn(fake, apiRoot, { clock, logged });

async function put(
  content: string | Uint8Array,
  name = 'MEMORY.md',
): Promise<{ path: string; name: string }> {
  const path = join(folder, `file-${++files}`);
  await writeFile(path, content);
  return { path, name };
}

async function send(part: Part, to = TO_ANNA, replyTo: string | null = null): Promise<SendResult> {
  const signal = new AbortController().signal;
  const result = await channel.send(to, part, sendOptions({ replyTo, signal }));
  expect(JSON.stringify(result)).not.toContain(fake.token);
  return result;
}

const withFile = (file: Part['file'] & object, text = ''): Part => ({ text, marks: [], file });

/** Another server in Telegram's place; the channel is one that talks to it. */
async function inPlaceOfTelegram(server: Server): Promise<void> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUp.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await channel.stop();
  channel = create(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

describe('a file with a text', () => {
  test('is one message: a document with a caption, in its topic, as a reply', async () => {
    const file = await put('# Memory\n', 'MEMORY.md');
    const result = await send({ text: 'Here you are', marks: BOLD, file }, TOPIC, '7');
    expect(result).toEqual({ kind: 'sent', platformMessageId: '1' });
    expect(fake.sent).toMatchObject([
      {
        chatId: -1001,
        threadId: 45,
        replyTo: 7,
        text: 'Here you are',
        entities: [{ type: 'bold', offset: 0, length: 4 }],
        document: { name: 'MEMORY.md', bytes: Buffer.from('# Memory\n') },
      },
    ]);
    expect(fake.calls.map((call) => call.method)).toEqual(['sendDocument']);
  });

  test('needs no text', async () => {
    expect(await send(withFile(await put('x'), ' \n'))).toMatchObject({ kind: 'sent' });
    expect(fake.callsOf('sendDocument')[0]).not.toHaveProperty('caption');
  });

  test.each([
    '"quoted".md',
    'two\nlines\r.md',
    'more\u2028lines\u2029.md',
    '日本語の記憶.md',
    'diary 🎉👩‍👩‍👧.md',
    'a;b=c.md',
    '100%25 "\\',
    "it's",
  ])('is called what it is called: %j', async (name) => {
    expect(await send(withFile(await put('x', name)))).toMatchObject({ kind: 'sent' });
    expect(fake.sent[0]?.document?.name).toBe(name);
  });

  test('arrives as it is, whatever its name, its text and its bytes are', async () => {
    const words = fc.oneof(fc.string({ unit: 'grapheme', maxLength: 30 }), fc.string({ unit: 'binary' }));
    const name = words.map((text) => text.trim()).filter((text) => text !== '');
    const bytes = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 300 }),
      fc
        .array(fc.constantFrom('\r\n', '--', '----------', 'x', '"'), { minLength: 1 })
        .map((all) => Buffer.from(all.join(''))),
    );
    await fc.assert(
      fc.asyncProperty(name, words, bytes, async (called, text, content) => {
        const result = await send(withFile(await put(content, called), text));
        expect(result).toMatchObject({ kind: 'sent' });
        const { document, text: below } = fake.sent.at(-1) ?? {};
        expect(document?.name).toBe(called);
        expect(document?.bytes.equals(content)).toBe(true);
        expect(below).toBe(text.trim() === '' ? '' : text);
      }),
      { numRuns: 60 },
    );
  });

  test('may hold a form, even the one that carried another file', async () => {
    const forms: { type: string; body: Buffer }[] = [];
    const keeping = createHttpServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      forms.push({ type: request.headers['content-type'] ?? '', body: Buffer.concat(chunks) });
      response.end(JSON.stringify({ ok: true, result: { message_id: forms.length } }));
    });
    await inPlaceOfTelegram(keeping);
    await send(withFile(await put('first'), 'one'));
    const [first] = forms;
    await send(withFile(await put(first?.body ?? ''), 'two'));
    const second = parseForm(forms[1]?.type ?? '', forms[1]?.body ?? Buffer.alloc(0));
    expect(second.fields.get('caption')).toBe('two');
    expect(
      [...second.files.values()].map((file) => file.bytes.equals(first?.body ?? Buffer.alloc(0))),
    ).toEqual([true]);
    expect(forms[1]?.type).not.toBe(first?.type);
  });

  test('of 5 MB, on the connection that messages use', async () => {
    const content = Buffer.alloc(5_000_000, 'All of it, to the last byte. ');
    const message: Part = { text: 'hello', marks: [] };
    for (const part of [message, withFile(await put(content)), message, withFile(await put('x'))]) {
      expect(await send(part)).toMatchObject({ kind: 'sent' });
    }
    expect(fake.sent[1]?.document?.bytes.equals(content)).toBe(true);
    expect(fake.connections()).toBe(1);
  });

  test('as large as Telegram takes it', async () => {
    expect(await send(withFile(await sparse(50_000_000)))).toMatchObject({ kind: 'sent' });
    expect(fake.sent[0]?.document?.bytes.length).toBe(50_000_000);
  });
});

async function sparse(size: number): Promise<{ path: string; name: string }> {
  const path = join(folder, 'large');
  const handle = await open(path, 'w');
  await handle.truncate(size);
  await handle.close();
  return { path, name: 'large.bin' };
}

describe('a text that is too long for a caption', () => {
  test('1,024 UTF-16 units are not', async () => {
    await send(withFile(await put('x'), '😀'.repeat(512)));
    expect(fake.sent).toMatchObject([{ text: '😀'.repeat(512), document: { name: 'MEMORY.md' } }]);
  });

  test('goes whole, before the file', async () => {
    const text = 'word '.repeat(300);
    const result = await send({ text, marks: BOLD, file: await put('x') }, TOPIC, '7');
    expect(result).toEqual({ kind: 'sent', platformMessageId: '2' });
    expect(fake.sent).toMatchObject([
      { text, entities: [{ type: 'bold' }], document: null, replyTo: 7, threadId: 45 },
      { text: '', document: { name: 'MEMORY.md' }, replyTo: null, threadId: 45 },
    ]);
  });

  test('and does not get through: the file waits for it', async () => {
    fake.fail('sendMessage', { drop: 'after' });
    const result = await send(withFile(await put('x'), 'y'.repeat(1025)));
    expect(result).toMatchObject({ kind: 'unreachable', taken: 'unknown' });
    expect(fake.callsOf('sendDocument')).toEqual([]);
  });

  test('without its file is not said', async () => {
    const file = await put('x');
    await unlink(file.path);
    expect(await send(withFile(file, 'y'.repeat(1025)))).toMatchObject({ kind: 'refused' });
    expect(fake.calls).toEqual([]);
  });
});

describe('what cannot be sent', () => {
  test('an empty file is told of, in its message', async () => {
    const file = await put('', '2026-01-01.md');
    expect(await send({ text: 'Your log', marks: BOLD, file }, TO_ANNA, '7')).toMatchObject({ kind: 'sent' });
    expect(await send(withFile(file))).toMatchObject({ kind: 'sent' });
    const note = '(The file 2026-01-01.md is empty, so it is not attached.)';
    expect(fake.sent).toMatchObject([
      {
        text: `Your log\n\n${note}`,
        entities: [{ type: 'bold', offset: 0, length: 4 }],
        replyTo: 7,
        document: null,
      },
      { text: note, document: null },
    ]);
  });

  const troubles: [string, () => Promise<{ path: string; name: string }>, string][] = [
    [
      'deleted before it is sent',
      async () => {
        const file = await put('x');
        await unlink(file.path);
        return file;
      },
      'ask for it again',
    ],
    [
      'a folder',
      async () => {
        await mkdir(join(folder, 'sub'));
        return { path: join(folder, 'sub'), name: 'sub' };
      },
      'is not a file',
    ],
    ['a device', async () => ({ path: '/dev/zero', name: 'zero' }), 'is not a file'],
    ['below what is no folder', async () => ({ path: `${(await put('x')).path}/y`, name: 'y' }), 'not there'],
    [
      'a link to itself',
      async () => {
        const path = join(folder, 'loop');
        await symlink(path, path);
        return { path, name: 'loop' };
      },
      'ELOOP',
    ],
    ['too large', () => sparse(50_000_001), '50 MB; make it smaller'],
  ];
  test.each(troubles)('%s: refused, with its name, its place and what to do', async (_name, make, words) => {
    const file = await make();
    const result = await send(withFile(file, 'Here it is'));
    expect(result).toMatchObject({ kind: 'refused', reason: expect.stringContaining(words) });
    expect(result).toMatchObject({ reason: expect.stringContaining(`"${file.name}" (${file.path})`) });
    expect(fake.calls).toEqual([]);
  });
});

describe('what becomes of it', () => {
  const outcomes: [string, Fault, object][] = [
    [
      'a flood',
      { status: 429, description: 'Too Many Requests', parameters: { retry_after: 3 } },
      { kind: 'unreachable', taken: 'no', retryAfterMs: 3000 },
    ],
    [
      'a blocked bot',
      { status: 403, description: 'Forbidden: bot was blocked by the user' },
      { kind: 'refused' },
    ],
    [
      'a moved chat',
      { status: 400, description: 'Bad Request: upgraded', parameters: { migrate_to_chat_id: -100777 } },
      { kind: 'moved', address: '-100777' },
    ],
    ['too large for Telegram', { status: 413, description: 'Request Entity Too Large' }, { kind: 'refused' }],
    ['too large for a proxy', { html: 413 }, { kind: 'refused' }],
    ['a page of a proxy', { html: 502 }, { kind: 'unreachable', taken: 'no' }],
    ['a cut before it is taken', { drop: 'before' }, { kind: 'unreachable', taken: 'unknown' }],
    ['a cut after it is taken', { drop: 'after' }, { kind: 'unreachable', taken: 'unknown' }],
  ];
  test.each(outcomes)('%s', async (_name, fault, expected) => {
    fake.fail('sendDocument', fault);
    expect(await send(withFile(await put('x'.repeat(100_000)), 'caption'))).toMatchObject(expected);
    if ('drop' in fault && fault.drop === 'after') await fake.until(() => fake.sent[0]?.cut === true);
    else expect(fake.sent).toEqual([]);
  });

  test('nobody there: not taken', async () => {
    await fake.shut();
    expect(await send(withFile(await put('x')))).toMatchObject({ kind: 'unreachable', taken: 'no' });
    await fake.open();
  });

  test('a cut in the middle: not taken, for Telegram never had all of it', async () => {
    await inPlaceOfTelegram(createServer((socket) => socket.once('data', () => socket.destroy())));
    const result = await send(withFile(await sparse(20_000_000)));
    expect(result).toMatchObject({
      kind: 'unreachable',
      taken: 'no',
      reason: expect.stringContaining('in the middle of an upload'),
    });
  });

  test('an answer before all was read counts, and the rest is not sent', async () => {
    const body = '{"ok":false,"error_code":429,"description":"Flood","parameters":{"retry_after":9}}';
    let read = 0;
    let goOn: () => void = () => {};
    let closed: () => void = () => {};
    const gone = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const impatient = createServer((socket) => {
      socket.once('data', () => {
        socket.pause();
        goOn = () => socket.resume();
        socket.write(`HTTP/1.1 429 Flood\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
      });
      socket.on('data', (chunk) => {
        read += chunk.length;
      });
      socket.on('close', closed);
    });
    await inPlaceOfTelegram(impatient);
    const result = await send(withFile(await sparse(20_000_000)));
    expect(result).toMatchObject({ kind: 'unreachable', taken: 'no', retryAfterMs: 9000 });
    goOn();
    await gone;
    expect(read).toBeLessThan(20_000_000);
  });

  test('a large file has more time than a message, and then is given up', async () => {
    fake.fail('sendDocument', { stall: 'after' });
    const sending = send(withFile(await put(Buffer.alloc(5_000_000, 'x'))));
    await fake.until(() => fake.sent.length === 1);
    expect(clock.sleeping()).toHaveLength(1);
    await clock.advance(125_000);
    expect(await Promise.race([sending, Promise.resolve('still waiting')])).toBe('still waiting');
    await clock.advance(10_000);
    expect(await sending).toMatchObject({ kind: 'unreachable', taken: 'unknown' });
  });

  test('given up by the caller, in the middle', async () => {
    let begun: () => void = () => {};
    const reading = new Promise<void>((resolve) => {
      begun = resolve;
    });
    await inPlaceOfTelegram(
      createServer((socket) =>
        socket.once('data', () => {
          socket.pause();
          begun();
        }),
      ),
    );
    const caller = new AbortController();
    const options = sendOptions({ signal: caller.signal });
    const sending = channel.send(TO_ANNA, withFile(await sparse(20_000_000)), options);
    await reading;
    caller.abort();
    expect(await sending).toMatchObject({ kind: 'unreachable', taken: 'no' });
    expect(await channel.send(TO_ANNA, withFile(await put('x')), options)).toMatchObject({
      kind: 'unreachable',
      taken: 'no',
    });
  });

  test('refused for its markup: plain, with the addresses of links, at once', async () => {
    fake.fail('sendDocument', { status: 400, description: "Bad Request: can't parse entities: oh" });
    const marks: Part['marks'] = [{ kind: 'link', offset: 0, length: 4, url: 'https://a.example' }];
    expect(await send({ text: 'here', marks, file: await put('x') })).toMatchObject({ kind: 'sent' });
    expect(fake.sent).toMatchObject([
      { text: 'here (https://a.example)', entities: [], document: { bytes: Buffer.from('x') } },
    ]);
  });

  test('no address makes a caption too long', async () => {
    fake.fail('sendDocument', { status: 400, description: "Bad Request: can't parse entities: oh" });
    const marks: Part['marks'] = [{ kind: 'link', offset: 0, length: 4, url: 'https://a.example' }];
    const text = 'here'.repeat(256);
    expect(await send({ text, marks, file: await put('x') })).toMatchObject({ kind: 'sent' });
    expect(fake.sent).toMatchObject([{ text, entities: [] }]);
  });

  test('a topic that is gone: to the chat, at once', async () => {
    fake.fail('sendDocument', { status: 400, description: 'Bad Request: message thread not found' });
    expect(await send({ text: 'here', marks: BOLD, file: await put('x') }, TOPIC)).toMatchObject({
      kind: 'sent',
    });
    expect(fake.sent).toMatchObject([
      { threadId: null, entities: [{ type: 'bold' }], document: { name: 'MEMORY.md' } },
    ]);
  });
});

describe('a picture', () => {
  const made = (width: number, height: number) =>
    sharp({ create: { width, height, channels: 3, background: '#2a9d8f' } });
  const sentAs = () => fake.sent.map(({ as, text }) => [as, text]);

  test.each<[string, () => Promise<Buffer>]>([
    ['PNG', () => made(640, 480).png().toBuffer()],
    ['JPEG', () => made(640, 480).jpeg().toBuffer()],
    ['progressive JPEG', () => made(640, 480).jpeg({ progressive: true }).withMetadata().toBuffer()],
    ['WebP', () => made(640, 480).webp().toBuffer()],
    ['lossless WebP', () => made(640, 480).webp({ lossless: true }).toBuffer()],
    ['long one', () => made(4_000, 200).png().toBuffer()],
  ])('goes out as a picture: a %s', async (_name, make) => {
    const file = await put(await make(), 'diagram');
    expect(await send({ text: 'here it is', marks: BOLD, file })).toMatchObject({ kind: 'sent' });
    expect(sentAs()).toEqual([['photo', 'here it is']]);
    expect(fake.calls.map(({ method }) => method)).toEqual(['sendPhoto']);
  });

  test.each<[string, () => Promise<Buffer>]>([
    ['longer than Telegram shows', () => made(4_001, 200).png().toBuffer()],
    ['larger than Telegram shows', () => made(9_000, 1_001).png().toBuffer()],
    [
      'heavier than Telegram shows',
      async () => Buffer.concat([await made(9, 9).png().toBuffer(), Buffer.alloc(10_000_000)]),
    ],
    ['moving', async () => Buffer.from('GIF89a and so on')],
    ['cut off', async () => (await made(640, 480).jpeg().toBuffer()).subarray(0, 30)],
    ['a drawing', async () => Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>')],
  ])('goes out as a document where it is %s', async (_name, make) => {
    expect(await send(withFile(await put(await make(), 'a.png')))).toMatchObject({ kind: 'sent' });
    expect(sentAs().map(([as]) => as)).toEqual(['document']);
    expect(fake.calls.at(-1)?.method).toBe('sendDocument');
  });

  test.each([
    [400, 'Bad Request: PHOTO_INVALID_DIMENSIONS'],
    [400, 'Bad Request: not enough rights to send photos to the chat'],
    [413, 'Request Entity Too Large'],
    [404, 'Not Found: method not found'],
  ])('that Telegram refuses as one goes out as a document: %i %s', async (status, description) => {
    fake.fail('sendPhoto', { status, description });
    const file = await put(await made(64, 48).png().toBuffer(), 'a.png');
    expect(await send({ text: 'here', marks: [], file })).toMatchObject({ kind: 'sent' });
    expect(sentAs()).toEqual([['document', 'here']]);
  });

  test('is sent once where nobody knows whether it was taken', async () => {
    fake.fail('sendPhoto', { drop: 'after' });
    const file = await put(await made(64, 48).png().toBuffer(), 'a.png');
    expect(await send(withFile(file))).toMatchObject({ kind: 'unreachable', taken: 'unknown' });
    expect(fake.sent).toHaveLength(1);
  });
});

describe('a voice note', () => {
  const spoken = async () => ({ ...(await put('OggS and so on', 'reply.ogg')), voiceSeconds: 7 });

  test('is one, with its length and its words below', async () => {
    expect(await send({ text: 'hello', marks: BOLD, file: await spoken() }, TOPIC, '7')).toMatchObject({
      kind: 'sent',
    });
    expect(fake.sent).toMatchObject([{ as: 'voice', text: 'hello', threadId: 45, replyTo: 7 }]);
    expect(fake.callsOf('sendVoice')).toMatchObject([{ duration: 7 }]);
  });

  test('that Telegram takes for none goes out as a file', async () => {
    fake.fail('sendVoice', { status: 400, description: 'Bad Request: wrong file type' });
    expect(await send({ text: 'hello', marks: [], file: await spoken() })).toMatchObject({ kind: 'sent' });
    expect(fake.sent).toMatchObject([{ as: 'document', text: 'hello', document: { name: 'reply.ogg' } }]);
  });
});

describe('the fake', () => {
  /** A form as other clients make it. */
  async function post(fields: Record<string, string>, file: Blob | null, name = 'a.txt') {
    const form = new FormData();
    for (const [key, value] of Object.entries(fields)) form.set(key, value);
    if (file !== null) form.set('document', file, name);
    const response = await fetch(`${fake.url}/bot${fake.token}/sendDocument`, { method: 'POST', body: form });
    return (await response.json()) as { ok: boolean; description?: string; result?: unknown };
  }

  test('answers with a message that has a document', async () => {
    const answer = await post(
      { chat_id: '5', caption: '12' },
      new Blob(['hello'], { type: 'text/plain' }),
      'q".txt',
    );
    expect(answer).toMatchObject({
      ok: true,
      result: {
        message_id: 1,
        caption: '12',
        document: { file_name: 'q".txt', file_size: 5, mime_type: 'text/plain' },
      },
    });
  });

  test('refuses what Telegram refuses', async () => {
    const some = new Blob(['x']);
    expect((await post({ chat_id: '5' }, null)).description).toContain('no document');
    expect((await post({ chat_id: '5' }, new Blob([]))).description).toContain('non-empty');
    expect((await post({ chat_id: '5', caption: 'x'.repeat(1025) }, some)).description).toContain('too long');
    const entities = JSON.stringify([{ type: 'bold', offset: 0, length: 9 }]);
    const bounds = await post({ chat_id: '5', caption: 'short', caption_entities: entities }, some);
    expect(bounds.description).toContain('ENTITY_BOUNDS_INVALID');
    expect(fake.sent).toEqual([]);
  });

  const head = 'content-disposition:form-data;name=a';
  test.each([
    ['', 'begin'],
    [`x--b\r\n${head}\r\n\r\n1\r\n--b--\r\n`, 'begin'],
    [`--b\r\n${head}\r\n\r\n1\r\n`, 'no end'],
    [`--b\r\n${head}\r\n\r\n1\r\n--bc\r\n`, 'goes on'],
    ['--b\r\ncontent-disposition:attachment;name=a\r\n\r\n1\r\n--b--\r\n', 'form-data'],
    ['--b\r\ncontent-disposition:form-data;name="a\r\n\r\n1\r\n--b--\r\n', 'headers'],
    [`--b\r\n${head}\r\n\r\n1\r\n--b\r\n${head}\r\n\r\n1\r\n--b--\r\n`, 'two parts'],
    [`--b\r\n${head}\r\n\r\n1\r\n--b--\r\nand more`, 'follows'],
  ])('takes no form that is none: %j', (body, words) => {
    const parse = () => parseForm('multipart/form-data; boundary=b', Buffer.from(body));
    expect(parse).toThrow(MalformedForm);
    expect(parse).toThrow(words);
  });

  test('finds the end of a part only where a line begins with the boundary', () => {
    const body = `--b\r\n${head};filename=f\r\n\r\n--b--b\n--b\r\n--b--\r\n`;
    const { files } = parseForm('multipart/form-data; boundary=b', Buffer.from(body));
    expect(files.get('a')?.bytes.toString()).toBe('--b--b\n--b');
  });
});
