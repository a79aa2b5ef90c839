/** Records of turns as files: little is written, nothing is lost but what was torn off, and what is forgotten goes. */
import { mkdtemp, readdir, readFile, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Fault } from '../../src/core/errors.js';
import type { ModelClient, ModelEvent, ModelMessage, ModelRequest } from '../../src/core/model.js';
import { createRedactor } from '../../src/operating/log.js';
import { recordsOf } from '../../src/replay/record-files.js';
import { createRecords, type RecordsParts } from '../../src/replay/records.js';
import { manualClock } from '../fakes/clock.js';
import { quietLog } from '../harness/quiet.js';

const CHAT = 'test_1';
const DAY = 86_400_000;
const going = new AbortController().signal;

async function setUp(more: Partial<RecordsParts> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'coterie-records-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const clock = manualClock();
  const warned: string[] = [];
  let ids = 0;
  const records = createRecords({
    ...{ folder: join(folder, 'replay'), bytes: 1_000_000, days: 30, clean: (text) => text, clock },
    newId: () => `f${++ids}`,
    log: { ...quietLog, warn: (_, what) => void warned.push(what) },
    ...more,
  });
  const place = { chatId: CHAT, personaId: 'luna' };
  /** One run of a turn with these requests; each is answered with its number. */
  async function turn(turnId: string, requests: ModelRequest[], { chatId = CHAT, personaId = 'luna' } = {}) {
    const run = records.open({ turnId, chatId, room: chatId, personaId }, going);
    const model = run.watch(answering());
    for (const request of requests) for await (const _ of model.stream(request, going));
    run.end();
    await written();
  }
  /** Whatever waits is written; the clock that would give up waiting stands still. */
  const written = () => records.idle();
  const filesOf = async (chatId = CHAT, personaId = 'luna') => {
    const at = join(folder, 'replay', chatId, personaId);
    return (await readdir(at).catch(() => [])).sort().map((name) => join(at, name));
  };
  const read = (turnId: string) => recordsOf(join(folder, 'replay'), { ...place, turnId });
  return { folder, records, clock, warned, turn, filesOf, read, written };
}

function answering(end?: ModelEvent): ModelClient {
  return {
    async *stream({ messages }): AsyncGenerator<ModelEvent> {
      yield { kind: 'text', delta: 'x' };
      const usage = { inputTokens: 7, outputTokens: 3 };
      const text = `answer ${messages.length}`;
      yield end ?? { kind: 'done', text, calls: [], usage, model: 'm', truncated: false };
    },
    contextTokens: () => 1000,
    check: async () => ({ identity: '', warnings: [] }),
  };
}

const TOOLS = [{ name: 'look', description: 'Looks.', parameters: { type: 'object' } }];
const user = (content: string): ModelMessage => ({ role: 'user', content });
const asked = (...messages: ModelMessage[]): ModelRequest => ({ messages, tools: TOOLS });

describe('a record', () => {
  it('comes back as it was sent, with what came of it', async () => {
    const { turn, read } = await setUp();
    const call = { id: 'c1', name: 'look', arguments: '{"at":1}' };
    const messages: ModelMessage[] = [
      { role: 'system', content: 'be kind' },
      {
        role: 'user',
        content: 'hi 😀',
        images: [{ mimeType: 'image/png', bytes: Buffer.from('12345') }],
      },
      { role: 'assistant', content: '', calls: [call], echo: { server: 's', model: 'm' } },
      { role: 'tool', callId: 'c1', content: 'seen' },
    ];
    await turn('t1', [{ ...asked(...messages), temperature: 0.5, model: 'other', mayCall: false }]);
    const { records, torn } = await read('t1');
    expect(torn).toBe(0);
    expect(records).toHaveLength(1);
    expect(records[0]).toMatchObject({ turnId: 't1', room: CHAT, personaId: 'luna', sight: null });
    expect(records[0]?.requests).toEqual([
      {
        ...{ at: expect.any(Number), ms: 0, temperature: 0.5, model: 'other', mayCall: false, tools: TOOLS },
        messages: [
          messages[0],
          { role: 'user', content: 'hi 😀', images: [{ mimeType: 'image/png', bytes: 5 }] },
          { role: 'assistant', content: '', calls: [call] },
          messages[3],
        ],
        end: {
          ...{ kind: 'done', text: 'answer 4', calls: [], usage: { inputTokens: 7, outputTokens: 3 } },
          ...{ model: 'm', truncated: false },
        },
      },
    ]);
  });

  it('is small where a request begins like the one before, also that of an earlier turn', async () => {
    const { turn, read, filesOf } = await setUp();
    const long = user(`long ${'word '.repeat(2_000)}`);
    await turn('t1', [asked(long, user('one')), asked(long, user('one'), user('result'))]);
    // Built anew, but of the same words.
    await turn('t2', [asked(user(long.content), user('one'), user('two'))]);
    await turn('t3', [asked(long, user('other'))]);
    const [file = '', ...others] = await filesOf();
    expect(others).toEqual([]);
    const text = gunzipSync(await readFile(file)).toString();
    expect(text.split('long word')).toHaveLength(2);
    expect(text.split('Looks.')).toHaveLength(2);
    expect((await read('t2')).records[0]?.requests[0]?.messages).toEqual([long, user('one'), user('two')]);
    expect((await read('t3')).records[0]?.requests[0]?.messages).toEqual([long, user('other')]);
    expect((await read('t3')).records[0]?.requests[0]?.tools).toEqual(TOOLS);
    expect((await read('t1')).records[0]?.requests.map(({ messages }) => messages.length)).toEqual([2, 3]);
  });

  it('tells apart what has the same words: who says them, with which calls and pictures', async () => {
    const { turn, read } = await setUp();
    const call = { id: 'c1', name: 'look', arguments: '{}' };
    const picture = { mimeType: 'image/png' as const, bytes: Buffer.from('1') };
    const alike: ModelMessage[] = [
      user('x'),
      { role: 'system', content: 'x' },
      { role: 'assistant', content: 'x', calls: [] },
      { role: 'assistant', content: 'x', calls: [call] },
      { role: 'tool', callId: 'c1', content: 'x' },
      { role: 'tool', callId: 'c2', content: 'x' },
      { role: 'user', content: 'x', images: [picture] },
      { role: 'user', content: 'x', images: [picture, picture] },
    ];
    for (const [n, message] of alike.entries()) await turn(`t${n}`, [asked(message)]);
    for (const [n, message] of alike.entries()) {
      const { role, content } = message;
      const [found] = (await read(`t${n}`)).records[0]?.requests[0]?.messages ?? [];
      expect(found).toMatchObject({ role, content });
      expect(found?.role === 'assistant' ? found.calls : []).toEqual(
        message.role === 'assistant' ? message.calls : [],
      );
      expect(found?.role === 'user' ? found.images?.length : undefined).toBe(
        message.role === 'user' ? message.images?.length : undefined,
      );
      expect(found?.role === 'tool' ? found.callId : '').toBe(message.role === 'tool' ? message.callId : '');
    }
  });

  it('of a turn that went on later is one for each run, oldest first', async () => {
    const { turn, read, clock } = await setUp();
    await turn('t1', [asked(user('a'))]);
    await clock.advance(2 * DAY);
    await turn('t1', [asked(user('b'))]);
    const { records } = await read('t1');
    expect(records.map(({ requests }) => requests[0]?.messages)).toEqual([[user('a')], [user('b')]]);
  });

  it('of a request that failed says why', async () => {
    const { records, read, written } = await setUp();
    const run = records.open({ turnId: 't', chatId: CHAT, room: CHAT, personaId: 'luna' }, going);
    const failed = { kind: 'failed', fault: new Fault('model_silent', 'it slept') } as const;
    for await (const _ of run.watch(answering(failed)).stream(asked(user('a')), going));
    run.end();
    await written();
    const end = (await read('t')).records[0]?.requests[0]?.end;
    expect(end).toEqual({ kind: 'failed', code: 'model_silent', why: 'it slept' });
  });

  it('is readable for its owner alone, and holds no secret', async () => {
    const { turn, read, filesOf } = await setUp({ clean: createRedactor(['hunter2hunter2']) });
    await turn('t', [asked(user('my key is "hunter2hunter2", and sk-abcdefghijklmnop, mind it'))]);
    const [file = ''] = await filesOf();
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(join(file, '..'))).mode & 0o777).toBe(0o700);
    expect(gunzipSync(await readFile(file)).toString()).not.toMatch(/hunter2|sk-abc/);
    expect((await read('t')).records[0]?.requests[0]?.messages).toEqual([
      user('my key is "[redacted]", and [redacted], mind it'),
    ]);
  });

  it('is not made of a run that was stopped, that asked nothing, or where nothing is to be kept', async () => {
    const { records, written, filesOf } = await setUp();
    const over = new AbortController();
    const run = records.open({ turnId: 't', chatId: CHAT, room: CHAT, personaId: 'luna' }, over.signal);
    for await (const _ of run.watch(answering()).stream(asked(user('a')), over.signal));
    over.abort();
    run.end();
    records.open({ turnId: 'u', chatId: CHAT, room: CHAT, personaId: 'luna' }, going).end();
    await written();
    expect(await filesOf()).toEqual([]);
    const off = await setUp({ bytes: 0 });
    await off.turn('t', [asked(user('a'))]);
    expect(await off.filesOf()).toEqual([]);
  });
});

describe('a file that is not as it was written', () => {
  it('gives what stands before the place where it was torn off', async () => {
    const { turn, read, filesOf } = await setUp();
    await turn('t1', [asked(user('a'))]);
    const [file = ''] = await filesOf();
    const whole = (await stat(file)).size;
    await turn('t2', [asked(user('a'), user('b'))]);
    await truncate(file, Math.floor((whole + (await stat(file)).size) / 2));
    expect(await read('t1')).toMatchObject({ torn: 1, records: [{ turnId: 't1' }] });
    expect(await read('t2')).toEqual({ torn: 1, records: [] });
    await truncate(file, whole);
    expect((await read('t1')).torn).toBe(0);
  });

  it.each([
    ['nothing', ''],
    ['no gzip', 'plain words\n'],
    ['no JSON', gzipSync('words\n')],
    ['another form of JSON', gzipSync('{"v":1,"turnId":"t1","requests":[null]}\n')],
    ['a newer version', gzipSync('{"v":2}\n')],
    ['no end of line', gzipSync('{"v":1,"turnId":"t1","requests":[]}')],
  ])('is passed over: %s', async (_, bytes) => {
    const { turn, read, filesOf } = await setUp();
    await turn('t1', [asked(user('a'))]);
    const [file = ''] = await filesOf();
    await writeFile(join(file, '..', '0.jsonl.gz'), bytes);
    const found = await read('t1');
    expect(found.records).toHaveLength(1);
    expect(found.torn).toBe(1);
  });

  it('that has gone is begun anew, whole', async () => {
    const { turn, read, filesOf } = await setUp();
    await turn('t1', [asked(user('a'))]);
    for (const file of await filesOf()) await rm(file);
    await turn('t2', [asked(user('a'), user('b'))]);
    expect((await read('t2')).records[0]?.requests[0]?.messages).toEqual([user('a'), user('b')]);
  });
});

describe('what ends at about the same time', () => {
  it('is written seconds later, one file after the other, each to its persona, and read as it was sent', async () => {
    const { records, clock, filesOf, read } = await setUp();
    for (const [n, personaId] of ['luna', 'sol', 'luna', 'luna'].entries()) {
      const run = records.open({ turnId: `t${n}`, chatId: CHAT, room: CHAT, personaId }, going);
      for await (const _ of run.watch(answering()).stream(asked(user('a'), user(`b${n}`)), going));
      run.end();
    }
    await clock.advance(4_999);
    expect(await filesOf()).toEqual([]);
    await clock.advance(1);
    // Whatever was begun then.
    await records.trim(going);
    const [file = '', ...others] = await filesOf();
    expect([others, await filesOf(CHAT, 'sol')]).toEqual([[], []]);
    await clock.advance(2_000);
    await records.trim(going);
    expect(await filesOf(CHAT, 'sol')).toHaveLength(1);
    expect(
      gunzipSync(await readFile(file))
        .toString()
        .split('\n'),
    ).toHaveLength(4);
    for (const n of [0, 2, 3]) {
      const { records: found, torn } = await read(`t${n}`);
      expect([torn, found.length]).toEqual([0, 1]);
      expect(found[0]?.requests[0]?.messages).toEqual([user('a'), user(`b${n}`)]);
    }
  });

  it('is written at once where many wait, until they are fewer', async () => {
    const { records, clock, filesOf } = await setUp();
    const chats = Array.from({ length: 25 }, (_, n) => `test_${n}`);
    for (let n = 0; n < 600; n++) {
      const chatId = chats[n % chats.length] ?? '';
      const run = records.open({ turnId: `t${n}`, chatId, room: chatId, personaId: 'luna' }, going);
      for await (const _ of run.watch(answering()).stream(asked(user(`b${n}`)), going));
      run.end();
    }
    await setImmediate();
    // Each file takes 24 of them.
    while ((await filesOf(chats[4])).length === 0) await setImmediate();
    expect(await filesOf(chats[5])).toEqual([]);
    for (const _ of chats) await clock.advance(4_000 / chats.length);
    await records.trim(going);
    expect(await filesOf(chats.at(-1))).toHaveLength(1);
  });

  it('one whose line the secrets in it have spoilt takes no other along', async () => {
    const spoil = (line: string) => (line.includes('spoilt') ? line.replace('"v":1', '"v":') : line);
    const { records, read, warned, written } = await setUp({ clean: spoil });
    for (const words of ['first', 'spoilt', 'last']) {
      const run = records.open({ turnId: words, chatId: CHAT, room: CHAT, personaId: 'luna' }, going);
      for await (const _ of run.watch(answering()).stream(asked(user('a'), user(words)), going));
      run.end();
    }
    await written();
    for (const words of ['first', 'last']) {
      expect((await read(words)).records[0]?.requests[0]?.messages).toEqual([user('a'), user(words)]);
    }
    expect(await read('spoilt')).toEqual({ torn: 0, records: [] });
    expect(warned).toEqual([expect.stringContaining('cannot be recorded')]);
  });
});

describe('what is forgotten', () => {
  it('goes with its persona, and with its chat', async () => {
    const { records, turn, filesOf } = await setUp();
    await turn('a', [asked(user('a'))]);
    await turn('b', [asked(user('b'))], { personaId: 'sol' });
    await turn('c', [asked(user('c'))], { chatId: 'test_12' });
    await records.forget(CHAT, 'luna');
    expect([await filesOf(), (await filesOf(CHAT, 'sol')).length]).toEqual([[], 1]);
    await records.forget(CHAT, null);
    expect([await filesOf(CHAT, 'sol'), (await filesOf('test_12')).length]).toEqual([[], 1]);
  });

  it('is not written afterwards, by a turn that was under way or had just ended', async () => {
    const { records, filesOf, written, turn, read } = await setUp();
    const runs = ['t1', 't2'].map((turnId) =>
      records.open({ turnId, chatId: CHAT, room: CHAT, personaId: 'luna' }, going),
    );
    for (const run of runs) for await (const _ of run.watch(answering()).stream(asked(user('a')), going));
    runs[0]?.end();
    await records.forget(CHAT, 'luna');
    runs[1]?.end();
    await written();
    expect(await filesOf()).toEqual([]);
    await turn('t3', [asked(user('a'), user('b'))]);
    expect((await read('t3')).records[0]?.requests[0]?.messages).toHaveLength(2);
  });

  it('is nobody else’s folder', async () => {
    const { records, folder } = await setUp();
    await writeFile(join(folder, 'kept'), '');
    for (const id of ['..', '../..', '', 'a/b', '.hidden']) {
      await expect(records.forget(id, null)).rejects.toThrow('names no folder');
      await expect(records.forget(CHAT, id)).rejects.toThrow('names no folder');
    }
    expect(await readFile(join(folder, 'kept'), 'utf8')).toBe('');
  });
});

describe('what is kept', () => {
  it('is as old, and as much, as is configured', async () => {
    const { records, turn, filesOf, clock } = await setUp({ bytes: 3_000 });
    const noise = () => user(Array.from({ length: 1_500 }, () => Math.random().toString(36)[3]).join(''));
    for (const [n, personaId] of ['old', 'a', 'b', 'c'].entries()) {
      await turn(`t${n}`, [asked(noise())], { personaId });
      for (const file of await filesOf(CHAT, personaId)) {
        const at = personaId === 'old' ? clock.now() - 31 * DAY : clock.now() + n * 1_000;
        await utimes(file, at / 1000, at / 1000);
      }
    }
    await records.trim(going);
    const kept = await Promise.all(
      ['old', 'a', 'b', 'c'].map(async (id) => (await filesOf(CHAT, id)).length),
    );
    expect(kept).toEqual([0, 0, 1, 1]);
  });

  it('begins another file after a day, and after many turns', async () => {
    const { turn, filesOf, clock } = await setUp();
    await turn('t1', [asked(user('a'))]);
    await clock.advance(DAY + 1);
    await turn('t2', [asked(user('a'))]);
    expect(await filesOf()).toHaveLength(2);
  });
});

it('never fails a turn: a disk that takes nothing is told once', async () => {
  const { turn, folder, warned, read } = await setUp();
  await writeFile(join(folder, 'replay'), 'not a folder');
  await turn('t1', [asked(user('a'))]);
  await turn('t2', [asked(user('a'))]);
  expect(warned).toEqual([expect.stringContaining('cannot be recorded')]);
  await rm(join(folder, 'replay'));
  await turn('t3', [asked(user('a'))]);
  expect((await read('t3')).records).toHaveLength(1);
});

it('does not pile up what a stuck disk does not take', async () => {
  const { records, warned, filesOf, written, read } = await setUp();
  for (let n = 0; n < 2_100; n++) {
    const run = records.open(
      { turnId: n === 0 ? 'first' : `t${n}`, chatId: CHAT, room: CHAT, personaId: 'luna' },
      going,
    );
    for await (const _ of run.watch(answering()).stream(asked(user('a')), going));
    run.end();
  }
  await written();
  expect(warned).toEqual([expect.stringContaining('does not keep up')]);
  // Three hundred turns a file.
  expect(await filesOf()).toHaveLength(7);
  expect((await read('first')).records).toHaveLength(1);
  expect((await read('t1999')).records).toHaveLength(1);
  expect((await read('t2000')).records).toEqual([]);
});

it('never ends the process: a line that cannot be made is told of, and the next one is', async () => {
  const clean = (line: string) => {
    if (line.includes('broken')) throw new Error('no line of this');
    return line;
  };
  const { turn, warned, read } = await setUp({ clean });
  await turn('t1', [asked(user('broken'))]);
  expect(warned).toEqual([expect.stringContaining('cannot be recorded')]);
  await turn('t2', [asked(user('a'))]);
  expect((await read('t2')).records).toHaveLength(1);
});
