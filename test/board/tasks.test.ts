/** Tasks over HTTP, with a real listener and tasks that happen as the test says. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Board, BoardOptions } from '../../src/board/listener.js';
import { Fault } from '../../src/core/errors.js';
import { postJson, raw, startForTest } from './board-harness.js';
import { createTasks } from './stand-in.js';

let board: Board;
let stage: ReturnType<typeof createTasks>;
const RESULT = { text: 'Done.', summary: 'It is done.' };

beforeEach(() => start());
afterEach(() => board.close());

async function start(changed: Partial<BoardOptions> = {}, bounds = {}): Promise<void> {
  if (board) await board.close();
  stage = createTasks(bounds);
  board = await startForTest({ tasks: stage.tasks, ...changed });
}

async function submit(body: unknown = { goal: 'Count the sheep.' }) {
  const answer = await postJson(`${board.url}/api/tasks`, body);
  return { status: answer.status, json: (await answer.json()) as Record<string, unknown> };
}

async function get(path: string) {
  const answer = await fetch(`${board.url}${path}`);
  return { status: answer.status, json: (await answer.json()) as Record<string, unknown> };
}

describe('a task', () => {
  it('is accepted, with what was said with it, and the same key is the same task', async () => {
    const body = {
      goal: 'Count the sheep.',
      messages: [{ role: 'user', content: 'All of them.' }],
      plan: { goal: 'Sheep', steps: [{ id: 's1', title: 'Count', status: 'pending' }] },
      artifacts: [{ id: 'list', type: 'text/plain', ref: 'artifacts/t/list.txt' }],
      ...{ memory: 'There are two meadows.', agent: 'utility', idempotency_key: 'k1' },
    };
    expect(await submit(body)).toEqual({ status: 202, json: { id: 'task-1', status: 'pending' } });
    stage.complete('task-1', RESULT);
    expect(await submit(body)).toEqual({ status: 202, json: { id: 'task-1', status: 'completed' } });
    expect(stage.wishOf('task-1')).toEqual({
      ...{ goal: body.goal, agent: 'utility', idempotencyKey: 'k1' },
      request: {
        ...{ messages: body.messages, plan: body.plan, artifacts: body.artifacts },
        memory: ['There are two meadows.'],
      },
    });
    const other = await submit({ ...body, goal: 'Count the goats.' });
    expect([other.status, other.json.path]).toEqual([409, 'idempotency_key']);
  });

  it('needs no more than its goal', async () => {
    expect((await submit({ goal: 'x', messages: [], memory: ['a', 'b'] })).status).toBe(202);
    expect(stage.wishOf('task-1')).toEqual({
      ...{ goal: 'x', agent: null, idempotencyKey: null },
      request: { messages: [], plan: null, artifacts: [], memory: ['a', 'b'] },
    });
  });

  it('is shown with its events, and listed without, newest first', async () => {
    await submit();
    await submit({ goal: 'Second.' });
    stage.run('task-1');
    stage.note('task-1', {
      at: 0,
      kind: 'tool-call',
      callId: 'c1',
      tool: 'glob',
      arguments: '{"pattern":"*"}',
    });
    stage.note('task-1', {
      at: 0,
      kind: 'tool-result',
      callId: 'c1',
      tool: 'glob',
      failed: false,
      content: 'a',
    });
    stage.complete('task-1', { ...RESULT, artifactRefs: [{ id: 'a', ref: 'artifacts/task-1/a.md' }] });
    const shown = {
      ...{ id: 'task-1', goal: 'Count the sheep.', status: 'completed', agent: 'utility' },
      ...{ created_at: '2026-01-31T08:20:00.000Z', completed_at: '2026-01-31T08:20:00.000Z' },
      result: { ...RESULT, artifactRefs: [{ id: 'a', ref: 'artifacts/task-1/a.md' }] },
    };
    const at = '1970-01-01T00:00:00.000Z';
    expect((await get('/api/tasks/task-1')).json).toEqual({
      ...shown,
      events: [
        { kind: 'status', at: '2026-01-31T08:20:00.000Z', status: 'running' },
        { kind: 'tool-call', at, call_id: 'c1', tool: 'glob', arguments: '{"pattern":"*"}' },
        { kind: 'tool-result', at, call_id: 'c1', tool: 'glob', failed: false, content: 'a' },
        { kind: 'status', at: '2026-01-31T08:20:00.000Z', status: 'completed' },
      ],
    });
    const { json } = await get('/api/tasks');
    expect(json).toEqual({ tasks: [expect.objectContaining({ id: 'task-2', status: 'pending' }), shown] });
    expect((await get('/api/tasks?limit=1')).json.tasks).toHaveLength(1);
    expect((await get('/api/tasks?limit=0')).json).toMatchObject({ path: 'limit' });
  });

  it('that failed or was interrupted says why', async () => {
    await submit();
    stage.fail('task-1', 'The model cannot be reached.');
    expect((await get('/api/tasks/task-1')).json).toMatchObject({
      status: 'error',
      error: 'The model cannot be reached.',
    });
  });

  it('can be stopped and told something until it has ended', async () => {
    await submit();
    const to = (what: string, body?: unknown) =>
      postJson(`${board.url}/api/tasks/task-1/${what}`, body ?? '');
    expect((await to('messages', { message: 'Hurry.', mode: 'steer' })).status).toBe(202);
    expect((await to('messages', { message: 'And the goats.' })).status).toBe(202);
    expect(stage.told).toEqual([
      { id: 'task-1', text: 'Hurry.', mode: 'steer' },
      { id: 'task-1', text: 'And the goats.', mode: 'followup' },
    ]);
    expect(await (await to('stop')).json()).toEqual({ id: 'task-1', status: 'stopped' });
    expect((await to('stop', {})).status).toBe(409);
    expect((await to('messages', { message: 'Again.' })).status).toBe(409);
    for (const what of ['stop', 'messages']) {
      const answer = await postJson(
        `${board.url}/api/tasks/none/${what}`,
        what === 'stop' ? '' : { message: 'x' },
      );
      expect(answer.status).toBe(404);
    }
  });
});

describe('what is wrong with a task is said with the place', () => {
  it.each([
    ['no object', [], undefined],
    ['null', null, undefined],
    ['no goal', {}, 'goal'],
    ['an empty goal', { goal: ' \n' }, 'goal'],
    ['a goal that is none', { goal: 7 }, 'goal'],
    ['an unknown key', { goal: 'x', gaol: 'y' }, 'gaol'],
    ['a prototype', '{"goal":"x","__proto__":{"a":1}}', '__proto__'],
    ['a message without a role', { goal: 'x', messages: [{ content: 'y' }] }, 'messages.0.role'],
    ['a role that is none', { goal: 'x', messages: [{ role: 'god', content: 'y' }] }, 'messages.0.role'],
    [
      'an unknown key in a message',
      { goal: 'x', messages: [{ role: 'user', content: 'y', name: 'z' }] },
      'messages.0.name',
    ],
    ['messages that are none', { goal: 'x', messages: 'hi' }, 'messages'],
    ['a plan that is none', { goal: 'x', plan: 7 }, 'plan'],
    [
      'a step without a title',
      { goal: 'x', plan: { goal: 'y', steps: [{ id: '1', status: 'pending' }] } },
      'plan.steps.0.title',
    ],
    ['an artifact that leads out', { goal: 'x', artifacts: [{ id: '../../x' }] }, 'artifacts.0.id'],
    ['memory that is none', { goal: 'x', memory: [7] }, 'memory.0'],
    ['an agent that is not there', { goal: 'x', agent: 'nobody' }, 'agent'],
    ['an empty key', { goal: 'x', idempotency_key: '' }, 'idempotency_key'],
    ['a key that is too long', { goal: 'x', idempotency_key: 'k'.repeat(201) }, 'idempotency_key'],
    ['null for what is left out', { goal: 'x', agent: null }, 'agent'],
  ])('%s', async (_, body, path) => {
    const { status, json } = await submit(body);
    expect({ status, path: json.path, error: typeof json.error }).toEqual({
      status: 400,
      path,
      error: 'string',
    });
  });

  it('a message, and its mode', async () => {
    await submit();
    const tell = async (body: unknown) =>
      (await postJson(`${board.url}/api/tasks/task-1/messages`, body)).json();
    expect(await tell({})).toMatchObject({ path: 'message', error: 'message: is missing' });
    expect(await tell({ message: 'x', mode: 'shout' })).toMatchObject({ path: 'mode' });
    expect(stage.told).toEqual([]);
  });
});

describe('a request', () => {
  it('with a body that is no JSON, no UTF-8, or compressed is refused', async () => {
    expect((await submit('{"goal":')).json).toEqual({ error: 'The body is not JSON.' });
    expect((await submit('')).status).toBe(400);
    const bytes = Buffer.concat([Buffer.from('{"goal":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]);
    const post = (headers: Record<string, string>, body: string | Buffer) =>
      fetch(`${board.url}/api/tasks`, { method: 'POST', headers, body });
    expect((await post({ 'content-type': 'application/json' }, bytes)).status).toBe(400);
    expect((await post({ 'content-type': 'application/json; charset=utf-8' }, '{"goal":"x"}')).status).toBe(
      202,
    );
    expect(
      (await post({ 'content-type': 'application/json', 'content-encoding': 'gzip' }, '{}')).status,
    ).toBe(415);
  });

  it('is not read where it is called anything but JSON: the form of another site could send it', async () => {
    for (const type of [
      'text/plain;charset=UTF-8',
      'application/x-www-form-urlencoded',
      'multipart/form-data',
      '',
    ]) {
      const headers = { 'content-type': type };
      const body = '{"goal":"x"}';
      expect((await fetch(`${board.url}/api/tasks`, { method: 'POST', body, headers })).status).toBe(415);
    }
    expect((await get('/api/tasks')).json).toEqual({ tasks: [] });
  });

  it('over two megabytes is refused, and one of a megabyte is not', async () => {
    expect((await submit({ goal: 'x'.repeat(1_000_000) })).status).toBe(202);
    expect((await submit({ goal: 'x'.repeat(2_000_000) })).status).toBe(413);
    const chunked = await raw(
      board.port,
      'POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n' +
        `1e8481\r\n${'x'.repeat(2_000_001)}\r\n0\r\n\r\n`,
    );
    expect(chunked).toMatch(/^HTTP\/1\.1 413/);
  });

  it('that comes a byte at a time, or not at all, is given up', async () => {
    const limits = { headersMs: 200, requestMs: 400, idleMs: 200, silenceMs: 300, awayMs: 0 };
    await start({ limits });
    const head =
      'POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n';
    const said = await Promise.all(['', '{"goal"'].map((begun) => raw(board.port, `${head}${begun}`)));
    for (const answer of said) expect(answer).toMatch(/^$|^HTTP\/1\.1 408/);
    expect((await get('/api/tasks')).json).toEqual({ tasks: [] });
  });

  it('deep in brackets is refused like any other', async () => {
    expect((await submit(`${'['.repeat(900_000)}${']'.repeat(900_000)}`)).status).toBe(400);
  });

  it('by another method is told which there are', async () => {
    const ask = async (method: string, path: string) => {
      const answer = await fetch(`${board.url}${path}`, { method });
      return [answer.status, answer.headers.get('allow')];
    };
    expect(await ask('DELETE', '/api/tasks')).toEqual([405, 'POST, GET, HEAD']);
    expect(await ask('PUT', '/api/tasks/task-1/stop')).toEqual([405, 'POST']);
    expect(await ask('POST', '/health')).toEqual([405, 'GET, HEAD']);
    expect(await ask('OPTIONS', '/api/tasks')).toEqual([405, 'POST, GET, HEAD']);
  });

  it('beyond what may wait is told when to come again', async () => {
    await start({}, { most: 1 });
    await submit();
    const answer = await postJson(`${board.url}/api/tasks`, { goal: 'x' });
    expect([answer.status, Number(answer.headers.get('retry-after'))]).toEqual([429, 5]);
    expect(await answer.json()).toEqual({ error: expect.stringContaining('try again') });
  });

  it('without the token, from a page of another site or under a foreign name gets nothing', async () => {
    await start({ token: 'correct horse' });
    expect((await submit()).status).toBe(401);
    const authorization = 'Bearer correct horse';
    const from = (headers: Record<string, string>) =>
      postJson(`${board.url}/api/tasks`, { goal: 'x' }, headers);
    expect((await from({ authorization })).status).toBe(202);
    expect((await from({ authorization, origin: 'https://evil.example' })).status).toBe(403);
    for (const path of [
      '/api/tasks',
      '/api/openapi.json',
      '/ws',
      '/api/tasks/task-1/stream',
      '/api/%74asks',
    ]) {
      expect((await fetch(`${board.url}${path}`)).status).toBe(401);
    }
    await start();
    const foreign = `POST /api/tasks HTTP/1.1\r\nHost: rebound.example:${board.port}\r\nContent-Length: 12\r\n\r\n{"goal":"x"}`;
    expect(await raw(board.port, foreign)).toMatch(/^HTTP\/1\.1 403/);
    expect((await get('/api/tasks')).json).toEqual({ tasks: [] });
  });

  it('that fails says no more than that, and whether it is worth another try', async () => {
    await submit();
    stage.failing.with = new Error('the inside');
    expect(await get('/api/tasks')).toEqual({ status: 500, json: { error: 'internal error' } });
    stage.failing.with = new Fault('store_unavailable', 'the disk is full');
    const { status, json } = await get('/api/tasks');
    expect([status, JSON.stringify(json)]).toEqual([503, expect.not.stringContaining('disk')]);
  });
});
