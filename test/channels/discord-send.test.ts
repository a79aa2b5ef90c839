import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Part, Recipient, SendOptions, SendResult } from '../../src/core/channel.js';
import type { RestFault } from '../fakes/discord-words.js';
import { sendOptions } from '../harness/sending.js';
import { ANNA, CHANNEL, GUILD, garden, openStage, type Stage } from './discord-stage.js';

const GROUP: Recipient = { address: CHANNEL, threadId: null, kind: 'group' };
const plain = (text: string): Part => ({ text, marks: [] });
const POST = { method: 'POST', path: /messages$/ };

let stage: Stage;

beforeEach(async () => {
  stage = await openStage();
  garden(stage.fake);
});
afterEach(() => stage.close());

const send = (part: Part | string, options: Partial<SendOptions> = {}, to = GROUP): Promise<SendResult> =>
  stage.channel.send(
    to,
    typeof part === 'string' ? plain(part) : part,
    sendOptions({ createdAt: stage.clock.now(), ...options }),
  );

describe('sending', () => {
  test('into a channel, a thread and a direct chat', async () => {
    const thread = stage.fake.thread(CHANNEL);
    const dm = stage.fake.dm(ANNA);
    const result = await send('one');
    await send('two', { key: '2' }, { ...GROUP, threadId: thread });
    await send('three', { key: '3' }, { address: dm, threadId: null, kind: 'direct' });
    expect(stage.fake.sent).toMatchObject([
      { channelId: CHANNEL, content: 'one', nonce: expect.stringMatching(/^1\./), replyTo: null },
      { channelId: thread, content: 'two' },
      { channelId: dm, content: 'three' },
    ]);
    expect(result).toEqual({ kind: 'sent', platformMessageId: stage.fake.sent[0]?.id });
  });

  test('in reply to a message calls nobody but whose it is', async () => {
    const { id } = stage.fake.say({ from: ANNA, channelId: CHANNEL, content: 'hello' });
    await send('@everyone <@100000000000000101> hi', { replyTo: id });
    expect(stage.fake.sent).toMatchObject([{ replyTo: id, pinged: [ANNA.id] }]);
  });

  test('in reply to what is gone, or to what never was a message, goes without', async () => {
    const { id } = stage.fake.say({ from: ANNA, channelId: CHANNEL, content: 'hello' });
    stage.fake.remove(CHANNEL, id);
    await send('one', { replyTo: id });
    await send('two', { key: '2', replyTo: 'from-elsewhere' });
    const joined = stage.fake.say({ from: ANNA, channelId: CHANNEL, type: 7 });
    await send('three', { key: '3', replyTo: joined.id });
    expect(stage.fake.sent.map(({ replyTo }) => replyTo)).toEqual([null, null, null]);
  });

  test('in reply where the history may not be read goes without', async () => {
    const { id } = stage.fake.say({ from: ANNA, channelId: CHANNEL, content: 'hello' });
    stage.fake.fail(POST, { status: 403, body: { code: 160002, message: 'Cannot reply without history' } });
    expect(await send('hi', { replyTo: id })).toMatchObject({ kind: 'sent' });
    expect(stage.fake.sent).toMatchObject([{ replyTo: null }]);
  });

  test('what a model wrote, as Discord shows it', async () => {
    for (const [n, part] of stage.channel
      .compose('**a** and `b`\n\n| x | y |\n|---|---|\n| 1 | 2 |')
      .entries()) {
      await send(part, { key: String(n) });
    }
    expect(stage.fake.sent[0]?.content).toContain('**a** and `b`');
  });
});

describe('what comes back', () => {
  const answers: [string, RestFault, object][] = [
    [
      'missing permissions',
      { status: 403, body: { code: 50013, message: 'Missing Permissions' } },
      { kind: 'refused' },
    ],
    [
      'missing access',
      { status: 403, body: { code: 50001, message: 'Missing Access' } },
      { kind: 'refused' },
    ],
    [
      'an unknown channel',
      { status: 404, body: { code: 10003, message: 'Unknown Channel' } },
      { kind: 'refused' },
    ],
    [
      'closed direct messages',
      { status: 403, body: { code: 50007, message: 'Cannot send' } },
      { kind: 'refused' },
    ],
    [
      'a locked thread',
      { status: 400, body: { code: 50083, message: 'Thread is archived' } },
      { kind: 'refused' },
    ],
    [
      'too much',
      { status: 413, body: { code: 40005, message: 'Request entity too large' } },
      { kind: 'refused' },
    ],
    [
      'a refused token',
      { status: 401, body: { code: 0, message: '401: Unauthorized' } },
      { kind: 'unreachable' },
    ],
    [
      'an unknown route',
      { status: 404, body: { code: 0, message: '404: Not Found' } },
      { kind: 'unreachable' },
    ],
    ['a page of a proxy', { html: 403 }, { kind: 'unreachable' }],
    ['a page that says all is well', { html: 200 }, { kind: 'unreachable' }],
    ['a fault of the server', { status: 500 }, { kind: 'unreachable' }],
    ['a connection that breaks before', { drop: 'before' }, { kind: 'unreachable' }],
    ['a connection that breaks after', { drop: 'after' }, { kind: 'unreachable' }],
    [
      'a limit',
      {
        status: 429,
        headers: { 'retry-after': '7' },
        body: { message: 'limited', retry_after: 7, global: false },
      },
      { kind: 'unreachable', retryAfterMs: expect.closeTo(7_000, -3) },
    ],
    ['a limit that tells no time', { status: 429 }, { kind: 'unreachable' }],
  ];
  test.each(answers)('%s', async (_name, fault, result) => {
    stage.fake.fail(POST, fault);
    const createdAt = stage.clock.now();
    const failed = await send('hi');
    expect(failed).toMatchObject(result);
    // It is known again by its key.
    if (failed.kind === 'unreachable') expect(failed.taken).toBe('no');
    // And all is well again, once what may not be done is asked for again.
    await stage.clock.advance(60_000);
    expect(await send('hi', { earlierTries: 1, createdAt })).toMatchObject({ kind: 'sent' });
    expect(stage.fake.sent).toHaveLength(1);
  });

  test('a global limit is told at once, also of what is sent next', async () => {
    stage.fake.rateLimit({ global: true, retryAfter: 30 });
    expect(await send('one')).toMatchObject({
      kind: 'unreachable',
      retryAfterMs: expect.closeTo(30_000, -3),
    });
    expect(await send('two', { key: '2' })).toMatchObject({
      kind: 'unreachable',
      reason: expect.stringMatching(/all calls/),
    });
    expect(stage.fake.callsTo('POST', /messages$/)).toHaveLength(1);
  });

  test('a short limit is waited for', async () => {
    stage.fake.rateLimit({ ...POST, retryAfter: 0.05 });
    expect(await send('one')).toMatchObject({ kind: 'sent' });
  });

  test.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])(
    'a limit on every %s is nothing that throws',
    async (method) => {
      stage.fake.rateLimit({ method, path: /./, retryAfter: 60, times: Number.POSITIVE_INFINITY });
      const { channel } = stage;
      await channel.setTyping(GROUP);
      await send('hi');
      await channel
        .isAdministrator(CHANNEL, ANNA.id)
        .catch((error) => expect(String(error)).toContain('limits the rate'));
      await channel.announceCommands([]).catch((error) => expect(String(error)).toContain('limits the rate'));
      await channel.check().catch((error) => expect(String(error)).toContain('limits the rate'));
    },
  );

  test('a bot that was kicked out', async () => {
    stage.fake.leave(GUILD);
    expect(await send('hi')).toMatchObject({
      kind: 'refused',
      reason: expect.stringContaining('Missing Access'),
    });
  });

  test('an address that is none of Discord’s', async () => {
    const to: Recipient = { address: '../users', threadId: null, kind: 'direct' };
    expect(await send('hi', {}, to)).toMatchObject({ kind: 'refused' });
    expect(stage.fake.calls).toEqual([]);
  });

  test('a reason that repeats the token does not give it away', async () => {
    stage.fake.fail(POST, { status: 403, body: { code: 50013, message: `Bot ${stage.fake.token} may not` } });
    expect(await send('hi')).toMatchObject({ reason: expect.stringContaining('Bot [token] may not') });
  });

  test('a message that is never answered is given up, by time or by signal', async () => {
    stage.fake.fail(POST, { stall: 'before' }, { times: 2 });
    const first = send('one');
    await stage.passes(30_000);
    expect(await first).toMatchObject({ kind: 'unreachable', taken: 'no' });
    const over = new AbortController();
    const second = send('two', { key: '2', signal: over.signal });
    await stage.fake.until(() => stage.fake.calls.length === 2);
    over.abort();
    expect(await second).toMatchObject({ kind: 'unreachable' });
  });
});

describe('sending again', () => {
  test('what was taken before the connection broke: Discord knows it by its key', async () => {
    stage.fake.fail(POST, { drop: 'after' });
    expect(await send('once')).toMatchObject({ kind: 'unreachable', taken: 'no' });
    const result = await send('once', { earlierTries: 1 });
    expect(result).toEqual({ kind: 'sent', platformMessageId: stage.fake.sent[0]?.id });
    expect(stage.fake.sent).toHaveLength(1);
  });

  test('what the gateway has brought meanwhile is not even sent', async () => {
    await stage.listen();
    stage.fake.fail(POST, { drop: 'after' });
    await send('once');
    stage.fake.say({ from: ANNA, channelId: CHANNEL, content: 'behind it' });
    await stage.until(() => stage.texts().length === 1);
    expect(await send('once', { earlierTries: 1 })).toMatchObject({ kind: 'sent' });
    expect(stage.fake.callsTo('POST', /messages$/)).toHaveLength(1);
  });

  describe('after more than two minutes, when Discord has forgotten the key', () => {
    const again = async (part: Part | string = 'once', options: Partial<SendOptions> = {}) => {
      const createdAt = stage.clock.now();
      stage.fake.fail(POST, { drop: 'after' });
      await send(part, { createdAt, ...options });
      stage.fake.settings.nonceMemoryMs = 0;
      await stage.clock.advance(121_000);
      return send(part, { createdAt, earlierTries: 1, ...options });
    };

    test('it is looked for among the newest messages', async () => {
      expect(await again()).toEqual({ kind: 'sent', platformMessageId: stage.fake.sent[0]?.id });
      expect(stage.fake.sent).toHaveLength(1);
    });

    test('with marks, and white space that Discord takes away', async () => {
      expect(await again({ text: ' bold ', marks: [{ kind: 'bold', offset: 1, length: 4 }] })).toMatchObject({
        kind: 'sent',
      });
      expect(stage.fake.sent).toHaveLength(1);
    });

    test('behind 60 messages of others', async () => {
      const createdAt = stage.clock.now();
      stage.fake.fail(POST, { drop: 'after' });
      await send('once', { createdAt });
      stage.fake.settings.nonceMemoryMs = 0;
      for (let n = 0; n < 60; n++) stage.fake.say({ from: ANNA, channelId: CHANNEL, content: 'once' });
      await stage.clock.advance(121_000);
      expect(await send('once', { createdAt, earlierTries: 1 })).toMatchObject({
        platformMessageId: stage.fake.sent[0]?.id,
      });
      expect(stage.fake.sent).toHaveLength(1);
    });

    test('the same words of another message are another message', async () => {
      await send('Yes.', { key: 'first' });
      stage.fake.fail(POST, { drop: 'before' });
      const createdAt = stage.clock.now();
      await send('Yes.', { key: 'second', createdAt });
      await stage.clock.advance(121_000);
      await send('Yes.', { key: 'second', createdAt, earlierTries: 1 });
      expect(stage.fake.sent.map(({ nonce }) => nonce)).toMatchObject(
        [/^first\./, /^second\./].map((key) => expect.stringMatching(key)),
      );
    });

    test('what is not there is sent', async () => {
      const createdAt = stage.clock.now();
      stage.fake.say({ from: ANNA, channelId: CHANNEL, content: 'once' });
      stage.fake.fail(POST, { drop: 'before' });
      await send('once', { createdAt });
      await stage.clock.advance(121_000);
      expect(await send('once', { createdAt, earlierTries: 1 })).toMatchObject({ kind: 'sent' });
      expect(stage.fake.sent).toHaveLength(1);
    });

    test('where it cannot be looked for now, it waits; where it never may be, it is sent', async () => {
      const createdAt = stage.clock.now() - 200_000;
      const history = { method: 'GET', path: /messages$/ };
      stage.fake.fail(history, { status: 500 });
      expect(await send('once', { createdAt, earlierTries: 1 })).toMatchObject({
        kind: 'unreachable',
        taken: 'no',
      });
      stage.fake.fail(history, { status: 403, body: { code: 50001, message: 'Missing Access' } });
      expect(await send('once', { createdAt, earlierTries: 1 })).toMatchObject({ kind: 'sent' });
    });
  });

  test('after an end of the process, which forgot its tries, it is looked for at once', async () => {
    const createdAt = stage.clock.now();
    await send('once', { createdAt });
    const next = await openStage({ apiRoot: stage.fake.url, token: stage.fake.token });
    stage.fake.settings.nonceMemoryMs = 0;
    const result = await next.channel.send(GROUP, plain('once'), sendOptions({ createdAt, earlierTries: 1 }));
    expect(result).toEqual({ kind: 'sent', platformMessageId: stage.fake.sent[0]?.id });
    expect(stage.fake.sent).toHaveLength(1);
    await next.close();
  });
});

describe('files', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'coterie-discord-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  async function withFile(text: string, name: string, bytes: Buffer): Promise<Part> {
    const path = join(folder, 'some-file');
    await writeFile(path, bytes);
    return { ...plain(text), file: { path, name } };
  }

  test('go with their text', async () => {
    const bytes = Buffer.from([0, 1, 2, 255]);
    const result = await send(await withFile('look', 'ä "b".bin', bytes));
    expect(stage.fake.sent).toMatchObject([
      { content: 'look', files: [{ name: 'ä "b".bin' }], nonce: expect.stringMatching(/^1\./) },
    ]);
    expect(stage.fake.sent[0]?.files[0]?.bytes.equals(bytes)).toBe(true);
    expect(result).toEqual({ kind: 'sent', platformMessageId: stage.fake.sent[0]?.id });
  });

  test('follow a text that is too long, which is cut', async () => {
    const words = 'word '.repeat(900);
    await send(await withFile(words, 'a.txt', Buffer.from('x')));
    expect(stage.fake.sent).toHaveLength(4);
    expect(stage.fake.sent.map(({ files }) => files.length)).toEqual([0, 0, 0, 1]);
    expect(new Set(stage.fake.sent.map(({ nonce }) => nonce)).size).toBe(4);
    expect(
      stage.fake.sent
        .map(({ content }) => content)
        .join(' ')
        .trim(),
    ).toBe(words.trim());
  });

  test('that are sent again are there once', async () => {
    const part = await withFile('', 'a.txt', Buffer.from('some words'));
    const createdAt = stage.clock.now();
    stage.fake.fail(POST, { drop: 'after' });
    await send(part, { createdAt });
    stage.fake.settings.nonceMemoryMs = 0;
    await stage.clock.advance(121_000);
    expect(await send(part, { createdAt, earlierTries: 1 })).toMatchObject({ kind: 'sent' });
    expect(stage.fake.sent).toHaveLength(1);
  });

  test('of nothing are told of in words', async () => {
    await send(await withFile('Here:', 'empty.txt', Buffer.alloc(0)));
    expect(stage.fake.sent).toMatchObject([
      { files: [], content: expect.stringMatching(/^Here:\n+\(The file .*empty/) },
    ]);
  });

  test('of 30 MB are refused before anything is sent', async () => {
    const part = await withFile('look', 'huge.bin', Buffer.alloc(30_000_000));
    expect(await send(part)).toMatchObject({
      kind: 'refused',
      reason: expect.stringContaining('at most 10.5 MB'),
    });
    expect(stage.fake.calls).toEqual([]);
  });

  test('that are gone', async () => {
    const part = { ...plain('look'), file: { path: join(folder, 'nowhere'), name: 'a.txt' } };
    expect(await send(part)).toMatchObject({
      kind: 'refused',
      reason: expect.stringContaining('not there any more'),
    });
  });
});
