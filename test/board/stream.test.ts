/** The stream of a task: what it says, when it ends, and what whoever does not read it costs. */
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Board, BoardOptions } from '../../src/board/listener.js';
import type { Tasks } from '../../src/core/task.js';
import { raw, startForTest } from './board-harness.js';
import { createTasks } from './stand-in.js';

let board: Board;
let stage: ReturnType<typeof createTasks>;
const sockets: Socket[] = [];
const RESULT = { text: 'Two sheep.', summary: 'Two.' };

beforeEach(async () => {
  stage = createTasks();
  await start();
  await stage.tasks.submit({
    ...{ goal: 'Count.', agent: null, idempotencyKey: null },
    request: { messages: [], plan: null, artifacts: [], memory: [] },
  });
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await board.close();
});

async function start(changed: Partial<BoardOptions> = {}): Promise<void> {
  if (board) await board.close();
  board = await startForTest({ tasks: stage.tasks, ...changed });
}

const address = () => `${board.url}/api/tasks/task-1/stream`;
const isFollowed = () => expect.poll(() => stage.counts.followers, { timeout: 20_000 }).toBe(1);
const isLeft = () => expect.poll(() => stage.counts.followers, { timeout: 20_000 }).toBe(0);

function eventsIn(text: string): [string, Record<string, unknown>][] {
  return [...text.matchAll(/^event: (.+)\ndata: (.+)$/gm)].map(([, name = '', data = '']) => [
    name,
    JSON.parse(data),
  ]);
}

/** The ids of a stream, and what it says behind the first so many events. */
const idsIn = (text: string) => [...text.matchAll(/^id: (.+)$/gm)].map(([, id = '']) => id);
const ask = (lastEventId: string) => fetch(address(), { headers: { 'last-event-id': lastEventId } });

const namesIn = (text: string) => eventsIn(text).map(([name]) => name);
const textIn = (text: string) =>
  eventsIn(text).reduce((all, [name, { text: more }]) => (name === 'text-delta' ? all + more : all), '');

describe('the stream of a task', () => {
  it('says what happens, in order, and ends with the task', async () => {
    const answer = await fetch(address());
    expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    await isFollowed();
    stage.run('task-1');
    stage.note('task-1', { at: 0, kind: 'tool-call', callId: 'c', tool: 'glob', arguments: '{}' });
    stage.note('task-1', {
      at: 0,
      kind: 'tool-result',
      callId: 'c',
      tool: 'glob',
      failed: false,
      content: 'a\nb',
    });
    stage.delta('task-1', 'Two ');
    stage.delta('task-1', 'sheep.');
    stage.complete('task-1', RESULT);
    const text = await answer.text();
    expect(namesIn(text)).toEqual([
      ...['status', 'tool-call', 'tool-result', 'text-delta', 'text-delta', 'status', 'completed'],
    ]);
    const at = '1970-01-01T00:00:00.000Z';
    expect(eventsIn(text).slice(2)).toEqual([
      ['tool-result', { at, call_id: 'c', tool: 'glob', failed: false, content: 'a\nb' }],
      ['text-delta', { text: 'Two ' }],
      ['text-delta', { text: 'sheep.' }],
      ['status', { at: '2026-01-31T08:20:00.000Z', status: 'completed' }],
      ['completed', { id: 'task-1', status: 'completed', result: RESULT }],
    ]);
    await isLeft();
  });

  it.each([
    ['nothing', []],
    ['its beginning', ['Two']],
  ])('makes the text whole where %s of it was said', async (_, said) => {
    const answer = await fetch(address());
    await isFollowed();
    for (const text of said) stage.delta('task-1', text);
    stage.complete('task-1', RESULT);
    expect(textIn(await answer.text())).toBe(RESULT.text);
  });

  it('gives the result to who comes late, and says how else a task ended', async () => {
    stage.run('task-1');
    stage.complete('task-1', RESULT);
    const late = await (await fetch(address())).text();
    expect(namesIn(late)).toEqual(['status', 'status', 'text-delta', 'completed']);
    expect(textIn(late)).toBe(RESULT.text);
    await isLeft();
  });

  it.each([
    ['error', 'error', () => stage.fail('task-1', 'No model.'), 'No model.'],
    ['stopped', 'stopped', () => stage.tasks.stop('task-1'), 'The task was stopped.'],
    ['interrupted', 'error', () => stage.interrupt('task-1'), 'The gateway ended.'],
  ] as const)('says that it is %s by the event %s', async (status, name, end, error) => {
    const live = await fetch(address());
    await isFollowed();
    await end();
    for (const answer of [live, await fetch(address())]) {
      expect(eventsIn(await answer.text()).at(-1)).toEqual([name, { id: 'task-1', status, error }]);
    }
  });

  it('loses nothing and tells nothing twice where something happens between two looks', async () => {
    const find: Tasks['find'] = async (id) => {
      const before = await stage.tasks.find(id);
      // Behind the look of the stream itself, and only once.
      if (stage.counts.followers > 0 && before?.task.status === 'pending') stage.run('task-1');
      return stage.tasks.find(id);
    };
    await start({ tasks: { ...stage.tasks, find } });
    const answer = await fetch(address());
    await isFollowed();
    await expect.poll(async () => (await stage.tasks.find('task-1'))?.task.status).toBe('running');
    stage.complete('task-1', RESULT);
    expect(namesIn(await answer.text())).toEqual(['status', 'status', 'text-delta', 'completed']);
  });

  it('goes on behind the event that was heard last, whichever it was, also in another process', async () => {
    const live = await fetch(address());
    await isFollowed();
    stage.run('task-1');
    stage.note('task-1', { at: 0, kind: 'tool-call', callId: 'c', tool: 'glob', arguments: '{}' });
    stage.delta('task-1', 'Two ');
    stage.delta('task-1', 'sheep.');
    stage.complete('task-1', RESULT);
    const whole = await live.text();
    expect(whole).toMatch(/^retry: \d{3,5}$/m);
    const [names, ids] = [namesIn(whole), idsIn(whole)];
    expect(ids).toHaveLength(names.length);
    expect(new Set(ids).size).toBe(ids.length);
    // Nothing that is in memory is needed for it.
    await start();
    for (const [at, id] of ids.slice(0, -1).entries()) {
      const answer = await ask(id);
      expect(answer.status).toBe(200);
      const rest = await answer.text();
      const heard = whole
        .split('\n\n')
        .slice(0, at + 2)
        .join('\n\n');
      expect(textIn(heard) + textIn(rest)).toBe(RESULT.text);
      expect(namesIn(rest).filter((name) => name.startsWith('tool'))).toEqual(at < 1 ? ['tool-call'] : []);
      expect(namesIn(rest).at(-1)).toBe('completed');
    }
  });

  it('tells a piece of the text that was heard not again, and none is left out', async () => {
    const first = await fetch(address());
    await isFollowed();
    stage.run('task-1');
    stage.delta('task-1', 'Two ');
    const reader = (first.body as ReadableStream<Uint8Array>).getReader();
    let heard = '';
    while (textIn(heard) === '') heard += Buffer.from((await reader.read()).value ?? []);
    await reader.cancel();
    await isLeft();
    const second = await ask(idsIn(heard).at(-1) ?? '');
    await isFollowed();
    stage.delta('task-1', 'eep.');
    stage.complete('task-1', RESULT);
    const rest = await second.text();
    expect(textIn(heard) + textIn(rest)).toBe(RESULT.text);
    expect(namesIn(rest)).toEqual(['status', 'text-delta', 'completed']);
  });

  it.each(['0123456789abcdef-0', '-7', '-999999', 'nonsense', '', 'x'.repeat(5_000), '-end'])(
    'tells all to whoever heard %j, which is no event of this task',
    async (id) => {
      const answer = await ask(id);
      await isFollowed();
      stage.run('task-1');
      stage.complete('task-1', { ...RESULT, text: 'Two.' });
      const text = await answer.text();
      expect(namesIn(text).at(0)).toBe('status');
      expect(namesIn(text).at(-1)).toBe('completed');
      expect(textIn(text)).toBe('Two.');
    },
  );

  it('has nothing more to say to whoever heard the end, so that a browser asks no more', async () => {
    stage.run('task-1');
    stage.complete('task-1', RESULT);
    const whole = await (await fetch(address())).text();
    const again = await ask(idsIn(whole).at(-1) ?? '');
    expect([again.status, await again.text()]).toEqual([204, '']);
    expect(stage.counts.followers).toBe(0);
    expect(namesIn(await (await fetch(address())).text()).at(-1)).toBe('completed');
  });

  it('tells all to whoever heard the end of another task', async () => {
    stage.run('task-1');
    stage.complete('task-1', RESULT);
    for (const id of ['0123456789abcdef-end', '-end']) {
      expect(namesIn(await (await ask(id)).text()).at(-1)).toBe('completed');
    }
  });

  it('shows with a comment that the line is there', async () => {
    await start({ streams: { streams: 8, quietMs: 5 } });
    const answer = await fetch(address());
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    let heard = '';
    while (!heard.includes(': alive\n\n: alive\n\n: alive'))
      heard += Buffer.from((await reader.read()).value ?? []);
    expect(namesIn(heard)).toEqual([]);
    await reader.cancel();
    await isLeft();
  });

  it('is of a task that is there, is not opened by a look at its head, and frees all when one leaves', async () => {
    expect((await fetch(`${board.url}/api/tasks/none/stream`)).status).toBe(404);
    expect((await fetch(address(), { method: 'HEAD' })).status).toBe(200);
    expect(stage.counts.followers).toBe(0);
    const leave = new AbortController();
    await fetch(address(), { signal: leave.signal });
    await isFollowed();
    leave.abort();
    await isLeft();
  });

  it('breaks off where the store cannot be read any more, and says nothing of the inside', async () => {
    const follow: Tasks['follow'] = async function* () {
      yield { kind: 'text-delta', text: 'Two' };
      throw new Error('the inside');
    };
    await start({ tasks: { ...stage.tasks, follow } });
    const said = await raw(board.port, 'GET /api/tasks/task-1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n');
    expect(said).not.toContain('inside');
    expect((await fetch(`${board.url}/health`)).status).toBe(200);
  });

  it('ends when the gateway stops, and keeps nobody waiting', async () => {
    const answer = await fetch(address());
    await isFollowed();
    const text = answer.text();
    await board.close();
    expect(namesIn(await text)).toEqual([]);
    await isLeft();
  });

  it('is open so often and no more, so that something else can be asked', async () => {
    await start({ streams: { streams: 2, quietMs: 1000 } });
    const leave = new AbortController();
    for (let n = 0; n < 2; n++) await fetch(address(), { signal: leave.signal });
    await expect.poll(() => stage.counts.followers, { timeout: 20_000 }).toBe(2);
    const third = await fetch(address());
    expect([third.status, third.headers.get('retry-after')]).toEqual([429, '5']);
    leave.abort();
    await isLeft();
    const again = await fetch(address(), { signal: AbortSignal.timeout(20_000) });
    expect(again.status).toBe(200);
    stage.complete('task-1', RESULT);
    await again.text();
  });

  it('costs no more where nobody reads it than what the line holds, and has its end all the same', async () => {
    const socket = connect(board.port, '127.0.0.1');
    sockets.push(socket);
    socket.pause();
    socket.write('GET /api/tasks/task-1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    await isFollowed();
    const piece = 'x'.repeat(100_000);
    for (let n = 0; n < 1_000; n++) {
      stage.delta('task-1', piece);
      if (n % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    // 100 MB were said: what was taken of it is what the buffers of the system hold, and a little.
    expect(stage.counts.read).toBeLessThan(300);
    stage.complete('task-1', RESULT);
    let tail = '';
    socket.on('data', (data) => {
      tail = (tail + data).slice(-2_000);
    });
    socket.resume();
    await new Promise((resolve) => socket.once('close', resolve));
    expect(eventsIn(tail).at(-1)?.[0]).toBe('completed');
    await isLeft();
  });

  it('is given up where it is not read for long', async () => {
    const limits = { headersMs: 300, requestMs: 700, idleMs: 300, silenceMs: 300, awayMs: 0 };
    await start({ limits, streams: { streams: 8, quietMs: 20 } });
    const socket = connect(board.port, '127.0.0.1');
    sockets.push(socket);
    socket.pause();
    socket.write('GET /api/tasks/task-1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await isFollowed();
    for (let n = 0; n < 100; n++) stage.delta('task-1', 'x'.repeat(200_000));
    await expect.poll(() => stage.counts.followers, { timeout: 20_000 }).toBe(0);
  });
});
