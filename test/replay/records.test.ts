/** Records of turns: one a run, read as it was sent; what is forgotten goes. */
import { mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Fault } from '../../src/core/errors.js';
import type { ModelClient, ModelEvent, ModelMessage, ModelRequest } from '../../src/core/model.js';
import { createRedactor } from '../../src/operating/redact.js';
import { recordsOf } from '../../src/replay/files.js';
import { Records } from '../../src/replay/records.js';
import { manualClock } from '../fakes/clock.js';
import { quietLog } from '../harness/quiet.js';

const CHAT = 'test_1';
const DAY = 86_400_000;
const going = new AbortController().signal;

async function setUp(more: Partial<ConstructorParameters<typeof Records>[0]> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'coterie-records-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const clock = manualClock();
  const warned: string[] = [];
  const records = new Records({
    ...{ folder: join(folder, 'replay'), bytes: 1_000_000, days: 30, clean: (text) => text, clock },
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

  it('of a turn that went on later is one for each run, oldest first', async () => {
    const { turn, read, clock } = await setUp();
    await turn('t1', [asked(user('a'))]);
    await clock.advance(2 * DAY);
    await turn('t1', [asked(user('b'))]);
    const { records } = await read('t1');
    expect(records.map(({ requests }) => requests[0]?.messages)).toEqual([[user('a')], [user('b')]]);
  });

  it('is read from the files of its time alone', async () => {
    const { turn, filesOf, folder, clock } = await setUp();
    const place = { chatId: CHAT, personaId: 'luna', turnId: 't1' };
    const at = clock.now();
    await turn('t1', [asked(user('a'))]);
    const [file = ''] = await filesOf();
    await utimes(file, at / 1000, at / 1000);
    const found = async (from: number, to: number) =>
      (await recordsOf(join(folder, 'replay'), place, { from, to })).records.length;
    expect(await found(at, at)).toBe(1);
    expect(await found(at - DAY, Number.MAX_SAFE_INTEGER)).toBe(1);
    expect(await found(at + DAY, at + DAY)).toBe(0);
    expect(await found(at - DAY, at - DAY)).toBe(0);
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
    const model = answering();
    expect(
      off.records.open({ turnId: 't', chatId: CHAT, room: CHAT, personaId: 'luna' }, going).watch(model),
    ).toBe(model);
    expect(await off.filesOf()).toEqual([]);
  });
});

describe('a file that is not as it was written', () => {
  it.each([
    ['nothing', ''],
    ['no gzip', 'plain words'],
    ['torn off', gzipSync('{"v":3,"turnId":"t1","requests":[]}\n').subarray(0, -12)],
    ['no JSON', gzipSync('words of t1\n')],
    ['another form of JSON', gzipSync('{"v":3,"turnId":"t1","requests":[null]}\n')],
    ['a newer version', gzipSync('{"v":4,"turnId":"t1","requests":[]}\n')],
  ])('is passed over: %s', async (_, bytes) => {
    const { turn, read, filesOf } = await setUp();
    await turn('t1', [asked(user('a'))]);
    const [file = ''] = await filesOf();
    await writeFile(join(file, '..', '0.turns.gz'), bytes);
    const found = await read('t1');
    expect(found.records).toHaveLength(1);
    expect(found.torn).toBe(bytes === '' ? 0 : 1);
  });

  it('gives the turns before its cut end', async () => {
    const { turn, read, filesOf } = await setUp();
    await turn('t1', [asked(user('a'))]);
    await turn('t2', [asked(user('b'))]);
    const [file = '', ...more] = await filesOf();
    expect(more).toEqual([]);
    await writeFile(file, (await readFile(file)).subarray(0, -30));
    expect((await read('t1')).records).toHaveLength(1);
    expect(await read('t2')).toEqual({ torn: 1, records: [] });
  });

  it('of an earlier version is not looked at, and goes with age', async () => {
    const { records, turn, read, filesOf, clock } = await setUp();
    await turn('t1', [asked(user('a'))]);
    const [file = ''] = await filesOf();
    const old = join(file, '..', '20250101T000000-f1.jsonl.gz');
    await writeFile(old, gzipSync('{"v":1,"turnId":"t1","requests":[]}\n'));
    expect(await read('t1')).toMatchObject({ torn: 0, records: [{ turnId: 't1' }] });
    await utimes(old, 0, (clock.now() - 31 * DAY) / 1000);
    await utimes(file, 0, clock.now() / 1000);
    await records.trim(going);
    expect(await filesOf()).toEqual([file]);
  });
});

it('one that the secrets in it have spoilt takes no other along', async () => {
  const spoil = (text: string) => (text.includes('spoilt') ? text.replace('"v":3', '"v":') : text);
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
  expect(warned).toEqual([expect.stringContaining('recording a turn')]);
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
});

it('begins a new file each day, and when one is a twentieth of all', async () => {
  const { turn, filesOf, clock, read } = await setUp({ bytes: 40_000 });
  const noise = () => user(Array.from({ length: 1_500 }, () => Math.random().toString(36)[3]).join(''));
  for (let n = 0; n < 4; n++) {
    await turn(`a${n}`, [asked(user('short'))]);
    await clock.advance(1);
  }
  expect(await filesOf()).toHaveLength(1);
  await turn('b', [asked(noise(), noise())]);
  await clock.advance(1);
  await turn('c', [asked(user('short'))]);
  expect(await filesOf()).toHaveLength(2);
  await clock.advance(DAY);
  await turn('d', [asked(user('short'))]);
  expect(await filesOf()).toHaveLength(3);
  for (const id of ['a0', 'a3', 'b', 'c', 'd']) expect((await read(id)).records).toHaveLength(1);
});

it('never fails a turn: a disk that takes nothing is told once', async () => {
  const { turn, folder, warned, read } = await setUp();
  await writeFile(join(folder, 'replay'), 'not a folder');
  await turn('t1', [asked(user('a'))]);
  await turn('t2', [asked(user('a'))]);
  expect(warned).toEqual([expect.stringContaining('recording a turn')]);
  await rm(join(folder, 'replay'));
  await turn('t3', [asked(user('a'))]);
  expect((await read('t3')).records).toHaveLength(1);
});

it('does not pile up what a stuck disk does not take', async () => {
  const { records, warned, filesOf, written, read } = await setUp();
  for (let n = 0; n < 550; n++) {
    const run = records.open({ turnId: `t${n}`, chatId: CHAT, room: CHAT, personaId: 'luna' }, going);
    for await (const _ of run.watch(answering()).stream(asked(user('a')), going));
    run.end();
  }
  await written();
  expect(warned).toEqual([expect.stringContaining('does not keep up')]);
  expect(await filesOf()).toHaveLength(1);
  expect((await read('t499')).records).toHaveLength(1);
  expect((await read('t500')).records).toEqual([]);
});

it('never ends the process: a record that cannot be made is told of, and the next one is', async () => {
  const clean = (line: string) => {
    if (line.includes('broken')) throw new Error('no line of this');
    return line;
  };
  const { turn, warned, read } = await setUp({ clean });
  await turn('t1', [asked(user('broken'))]);
  expect(warned).toEqual([expect.stringContaining('recording a turn')]);
  await turn('t2', [asked(user('a'))]);
  expect((await read('t2')).records).toHaveLength(1);
});
