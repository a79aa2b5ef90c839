/** The WebSocket, over real sockets, with tasks that happen as the test says. */
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Board, BoardOptions } from '../../src/board/listener.js';
import { openSocket, postJson, raw, startForTest } from './board-harness.js';
import { createTasks } from './stand-in.js';

type Client = Awaited<ReturnType<typeof openSocket>>;

let board: Board;
let stage: ReturnType<typeof createTasks>;
let clients: Client[];
let bare: Socket[];
const RESULT = { text: 'Two sheep.', summary: 'Two.', artifactRefs: [{ id: 'a', ref: 'artifacts/t/a.md' }] };
/** Where the machine has much else to do. */
const SLOW = { timeout: 20_000 };
const SHAKE =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';

beforeEach(async () => {
  [clients, bare] = [[], []];
  await start();
});
afterEach(async () => {
  for (const { line } of clients) line.terminate();
  for (const socket of bare) socket.destroy();
  await board.close();
});

async function start(changed: Partial<BoardOptions> = {}, bounds = {}): Promise<void> {
  if (board) await board.close();
  stage = createTasks(bounds);
  board = await startForTest({ tasks: stage.tasks, ...changed });
}

async function open(options: Parameters<typeof openSocket>[1] = {}): Promise<Client> {
  const client = await openSocket(board.url, options);
  clients.push(client);
  return client;
}

const hears = (client: Client, count: number) =>
  expect.poll(() => client.heard.length, { timeout: 20_000, interval: 5 }).toBe(count);
const typesOf = ({ heard }: Client) => heard.map(({ type }) => type);
/** Everything said before was dealt with once this is answered. */
async function isServed(client: Client): Promise<void> {
  client.say({ type: 'task:stop', taskId: 'none' });
  const served = () => client.heard.findIndex(({ taskId }) => taskId === 'none');
  await expect.poll(served, { timeout: 20_000, interval: 5 }).toBeGreaterThanOrEqual(0);
  expect(client.heard.splice(served(), 1)[0]).toMatchObject({ type: 'task:error', about: 'task:stop' });
}

/** A connection on which a WebSocket begins, by hand. */
async function shaken(head = ''): Promise<{ socket: Socket; isClosed(): boolean; heard(): string }> {
  const socket = connect(board.port, '127.0.0.1');
  bare.push(socket);
  let [heard, closed] = ['', false];
  await new Promise<void>((resolve) => {
    socket.on('data', (data) => {
      heard += data;
      if (heard.includes('\r\n\r\n')) resolve();
    });
    for (const end of ['end', 'close', 'error']) {
      socket.on(end, () => {
        closed = true;
        resolve();
      });
    }
    socket.write(`GET /ws HTTP/1.1\r\nHost: localhost\r\n${SHAKE}${head}\r\n`);
  });
  return { socket, isClosed: () => closed, heard: () => heard };
}

describe('a task over the socket', () => {
  it('is begun, and completed once, without deltas', async () => {
    const client = await open();
    client.say({ type: 'task:submit', goal: 'Count.', messages: [], memory: 'Sheep.' });
    await hears(client, 1);
    stage.run('task-1');
    stage.delta('task-1', 'Two');
    stage.complete('task-1', RESULT);
    await hears(client, 2);
    await isServed(client);
    expect(client.heard).toEqual([
      { type: 'task:started', taskId: 'task-1' },
      { type: 'task:completed', taskId: 'task-1', result: RESULT },
    ]);
    expect(stage.wishOf('task-1').request.memory).toEqual(['Sheep.']);
    expect(stage.counts.followers).toBe(0);
  });

  it('has deltas where they are wanted, which are its text in the end', async () => {
    const client = await open();
    client.say({ type: 'task:submit', goal: 'Count.', deltas: true });
    await hears(client, 1);
    await expect.poll(() => stage.counts.followers, SLOW).toBe(1);
    stage.delta('task-1', 'Two ');
    stage.complete('task-1', RESULT);
    await hears(client, 4);
    expect(client.heard.slice(1, 3)).toEqual([
      { type: 'task:text-delta', taskId: 'task-1', text: 'Two ' },
      { type: 'task:text-delta', taskId: 'task-1', text: 'sheep.' },
    ]);
  });

  it.each([
    ['failed', () => stage.fail('task-1', 'No model.'), 'No model.'],
    ['was interrupted', () => stage.interrupt('task-1'), 'The gateway ended.'],
    ['was stopped by somebody else', () => stage.tasks.stop('task-1'), 'The task was stopped.'],
  ])('that %s is an error, once', async (_, end, error) => {
    const client = await open();
    client.say({ type: 'task:submit', goal: 'Count.' });
    await hears(client, 1);
    await end();
    await hears(client, 2);
    await isServed(client);
    expect(client.heard[1]).toEqual({ type: 'task:error', taskId: 'task-1', error });
  });

  it('is told of no more once it was stopped', async () => {
    const client = await open();
    client.say({ type: 'task:submit', goal: 'Count.', deltas: true });
    await hears(client, 1);
    client.say({ type: 'task:stop', taskId: 'task-1' });
    client.say({ type: 'task:stop', taskId: 'task-1' });
    await isServed(client);
    expect((await stage.tasks.find('task-1'))?.task.status).toBe('stopped');
    expect(typesOf(client)).toEqual(['task:started']);
    expect(stage.counts.followers).toBe(0);
  });

  it('is told something meanwhile', async () => {
    const client = await open();
    client.say({ type: 'task:submit', goal: 'Count.' });
    for (const more of [{}, { mode: 'collect' }, { injectionMode: 'steer' }]) {
      client.say({ type: 'task:message', taskId: 'task-1', message: 'Hurry.', ...more });
    }
    await isServed(client);
    expect(stage.told.map(({ mode }) => mode)).toEqual(['followup', 'collect', 'steer']);
    stage.complete('task-1', RESULT);
    await hears(client, 2);
    client.say({ type: 'task:message', taskId: 'task-1', message: 'Late.' });
    await hears(client, 3);
    expect(client.heard[2]).toMatchObject({ type: 'task:error', taskId: 'task-1', about: 'task:message' });
  });

  it('is told to who submitted it, and to nobody else', async () => {
    const [one, other] = [await open(), await open()];
    one.say({ type: 'task:submit', goal: 'Count.', deltas: true });
    await hears(one, 1);
    stage.complete('task-1', RESULT);
    await hears(one, 3);
    await isServed(other);
    expect(other.heard).toEqual([]);
  });

  it('that ended while the line was down is told when the same is submitted again', async () => {
    const wish = { type: 'task:submit', goal: 'Count.', idempotency_key: 'k' };
    const first = await open();
    first.say(wish);
    await hears(first, 1);
    first.line.terminate();
    await expect.poll(() => stage.counts.followers, SLOW).toBe(0);
    stage.complete('task-1', RESULT);
    const second = await open();
    second.say(wish);
    await hears(second, 2);
    expect(second.heard).toEqual([
      { type: 'task:started', taskId: 'task-1' },
      { type: 'task:completed', taskId: 'task-1', result: RESULT },
    ]);
  });

  it('that runs is followed by whoever submits the same again, and once by each', async () => {
    const wish = { type: 'task:submit', goal: 'Count.', idempotency_key: 'k' };
    const [first, second] = [await open(), await open()];
    first.say(wish);
    await hears(first, 1);
    second.say(wish);
    second.say(wish);
    await hears(second, 2);
    stage.complete('task-1', RESULT);
    await hears(first, 2);
    await hears(second, 3);
    await isServed(second);
    expect(typesOf(second)).toEqual(['task:started', 'task:started', 'task:completed']);
  });

  it('by the thousand on one line are all told of', async () => {
    const client = await open();
    for (let n = 0; n < 1_000; n++) client.say({ type: 'task:submit', goal: `Number ${n}.` });
    await hears(client, 1_000);
    for (let n = 1; n <= 1_000; n++) stage.complete(`task-${n}`, RESULT);
    await hears(client, 2_000);
    expect(new Set(client.heard.map(({ type, taskId }) => `${type} ${taskId}`)).size).toBe(2_000);
    expect(stage.counts.followers).toBe(0);
  });
});

describe('a message that makes no sense', () => {
  it.each([
    ['garbage', 'hello', undefined],
    ['half of JSON', '{"type":"task:sub', undefined],
    ['nothing', '', undefined],
    ['a number', '7', 'type'],
    ['null', 'null', 'type'],
    ['a list', '[]', 'type'],
    ['an unknown type', '{"type":"task:dance"}', 'type'],
    ['a type of everything', '{"type":"constructor"}', 'type'],
    ['no goal', '{"type":"task:submit"}', 'goal'],
    ['an unknown key', '{"type":"task:submit","goal":"x","gaol":1}', 'gaol'],
    ['deltas that are none', '{"type":"task:submit","goal":"x","deltas":"yes"}', 'deltas'],
    ['an agent that is not there', '{"type":"task:submit","goal":"x","agent":"nobody"}', 'agent'],
    ['no task', '{"type":"task:stop"}', 'taskId'],
    ['an empty message', '{"type":"task:message","taskId":"t","message":""}', 'message'],
    ['a mode that is none', '{"type":"task:message","taskId":"t","message":"x","mode":"y"}', 'mode'],
  ])('is answered, and the line stays: %s', async (_, message, path) => {
    const client = await open();
    client.say(message);
    await hears(client, 1);
    expect(client.heard[0]).toMatchObject({ type: 'task:error', error: expect.any(String) });
    expect(client.heard[0]?.path).toBe(path);
    await isServed(client);
    expect(client.closed.code).toBeNull();
  });

  it('is answered, too, where it is binary, a task with a key of another one, or one too many', async () => {
    await start({}, { most: 1 });
    const client = await open();
    client.line.send(Buffer.from('{"type":"task:submit","goal":"x"}'));
    client.line.send(randomBytes(1_000));
    client.say({ type: 'task:submit', goal: 'a', idempotency_key: 'k' });
    client.say({ type: 'task:submit', goal: 'b', idempotency_key: 'k' });
    client.say({ type: 'task:submit', goal: 'c' });
    await hears(client, 5);
    expect(typesOf(client)).toEqual([
      ...['task:error', 'task:error', 'task:started', 'task:error', 'task:error'],
    ]);
    await isServed(client);
  });

  it('that fails inside says nothing of the inside', async () => {
    const client = await open();
    stage.failing.with = new Error('the inside');
    client.say({ type: 'task:submit', goal: 'x' });
    await hears(client, 1);
    expect(client.heard[0]).toEqual({ type: 'task:error', taskId: null, error: 'internal error' });
  });
});

describe('the door of the socket', () => {
  const ask = (head: string) => raw(board.port, `GET /ws HTTP/1.1\r\n${SHAKE}${head}\r\n`);

  it('is shut to who has no token, comes from another site, or under a foreign name', async () => {
    expect(await ask('Host: localhost\r\nOrigin: https://evil.example\r\n')).toMatch(
      /^HTTP\/1\.1 403.*foreign origin/s,
    );
    expect(await ask('Host: rebound.example\r\n')).toMatch(/^HTTP\/1\.1 403.*foreign host/s);
    await start({ token: 'correct horse' });
    expect(await ask('Host: localhost\r\n')).toMatch(/^HTTP\/1\.1 401 .*www-authenticate: Bearer.*"error"/s);
    expect(await ask('Host: localhost\r\nAuthorization: Bearer wrong\r\n')).toMatch(/^HTTP\/1\.1 401/);
    const right = 'Authorization: Bearer correct horse\r\n';
    expect(await ask(`Host: localhost\r\n${right}Origin: https://evil.example\r\n`)).toMatch(
      /^HTTP\/1\.1 403/,
    );
    expect(await ask(`Host: localhost\r\n${right}Content-Length: 5\r\n`)).toMatch(/^HTTP\/1\.1 400/);
    const client = await open({ headers: { authorization: 'Bearer correct horse' } });
    await isServed(client);
  });

  it('tells who comes without a handshake, or with half of one, what is missing', async () => {
    const plain = await fetch(`${board.url}/ws`);
    expect([plain.status, plain.headers.get('upgrade')]).toEqual([426, 'websocket']);
    const half = await raw(
      board.port,
      'GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    );
    expect(half).toMatch(/^HTTP\/1\.1 400.*"error"/s);
    await start({ tasks: undefined });
    const none = `GET /ws HTTP/1.1\r\nHost: localhost\r\n${SHAKE.replace('Upgrade\r\n', 'close, Upgrade\r\n')}\r\n`;
    expect(await raw(board.port, none)).toMatch(/^HTTP\/1\.1 404/);
  });

  it('is no way to anything but a WebSocket: another offer is passed over, or refused', async () => {
    // By itself Node takes every offer for an upgrade up to 22.20; later versions ask.
    const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
    const isAsked = major > 24 || (major === 24 && minor >= 9) || (major === 22 && minor >= 21);
    const offer =
      'Host: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n';
    const body = '{"goal":"Count."}';
    const post = `POST /api/tasks HTTP/1.1\r\n${offer}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const last = 'GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
    const answered = isAsked
      ? /^HTTP\/1\.1 202 .*HTTP\/1\.1 200 .*"ok"/s
      : /^HTTP\/1\.1 404.*ask without one/s;
    // Node 22.21 and later drop a request that comes in one piece with a passed-over offer; clients wait for the answer.
    expect(await raw(board.port, post, last)).toMatch(answered);
    const elsewhere = `GET /elsewhere HTTP/1.1\r\nHost: localhost\r\n${SHAKE}\r\n`;
    expect(await raw(board.port, elsewhere, last)).toMatch(/^HTTP\/1\.1 404/);
    const foreign = `GET /health HTTP/1.1\r\nOrigin: https://evil.example\r\n${offer}\r\n`;
    expect(await raw(board.port, foreign, last)).toMatch(/^HTTP\/1\.1 403/);
    expect((await fetch(`${board.url}/health`)).status).toBe(200);
  });
});

describe('sockets that misbehave', () => {
  it('are closed with 1009 for ten megabytes, and serve nobody worse', async () => {
    const [large, other] = [await open(), await open()];
    large.line.send('x'.repeat(10_000_000));
    await expect.poll(() => large.closed.code, SLOW).toBe(1009);
    const just = await open();
    just.say({ type: 'task:submit', goal: 'x'.repeat(1_900_000) });
    await hears(just, 1);
    expect(typesOf(just)).toEqual(['task:started']);
    await isServed(other);
  });

  it('are closed for frames that are none, and for text that is none', async () => {
    const { socket, isClosed } = await shaken();
    socket.write(randomBytes(5_000));
    await expect.poll(isClosed, SLOW).toBe(true);
    const client = await open();
    // A frame of text that is no UTF-8.
    client.line.send(Buffer.from([0xff, 0xfe, 0xfd]), { binary: false });
    await expect.poll(() => client.closed.code, SLOW).toBe(1007);
    await isServed(await open());
  });

  it('by the thousand, silent, keep nobody out, not even one with a task', async () => {
    await start({ sockets: { most: 50, heartbeatMs: 30_000, unreadBytes: 8_000_000 } });
    const busy = await open();
    busy.say({ type: 'task:submit', goal: 'Count.' });
    await hears(busy, 1);
    const silent = await Promise.all(Array.from({ length: 1_000 }, () => shaken()));
    const welcome = await open();
    await isServed(welcome);
    await expect
      .poll(() => silent.filter(({ isClosed }) => isClosed()).length, SLOW)
      .toBeGreaterThanOrEqual(950);
    expect((await fetch(`${board.url}/health`)).status).toBe(200);
    stage.complete('task-1', RESULT);
    await hears(busy, 2);
  });

  it('that all have tasks are left alone, and the next one is told to come again', async () => {
    await start({ sockets: { most: 1, heartbeatMs: 30_000, unreadBytes: 8_000_000 } });
    const busy = await open();
    busy.say({ type: 'task:submit', goal: 'Count.' });
    await hears(busy, 1);
    const refused = await raw(board.port, `GET /ws HTTP/1.1\r\nHost: localhost\r\n${SHAKE}\r\n`);
    expect(refused).toMatch(/^HTTP\/1\.1 429 .*retry-after: 5/s);
    stage.complete('task-1', RESULT);
    await hears(busy, 2);
    await isServed(await open());
    await expect.poll(() => busy.closed.code, SLOW).not.toBeNull();
  });

  it('are dropped when they do not answer any more', async () => {
    await start({ sockets: { most: 50, heartbeatMs: 40, unreadBytes: 8_000_000 } });
    const [dead, alive] = [await open({ autoPong: false }), await open()];
    await expect.poll(() => dead.closed.code, SLOW).toBe(1006);
    await isServed(alive);
    expect(alive.closed.code).toBeNull();
  });

  it('are closed where they leave unread what they asked for', async () => {
    await start({ sockets: { most: 50, heartbeatMs: 30_000, unreadBytes: 1_000_000 } });
    const { line, closed } = await open();
    line.pause();
    for (let n = 1; n <= 30; n++) line.send(JSON.stringify({ type: 'task:submit', goal: `Number ${n}.` }));
    await expect.poll(() => stage.counts.followers, SLOW).toBe(30);
    const text = 'x'.repeat(1_000_000);
    for (let n = 1; n <= 30; n++) stage.complete(`task-${n}`, { text, summary: '' });
    await expect.poll(() => stage.counts.followers, SLOW).toBe(0);
    line.resume();
    await expect.poll(() => closed.code, SLOW).toBe(1006);
    await isServed(await open());
  });

  it('and read no deltas are sent none, until they do', async () => {
    const { line, heard, say } = await open();
    say({ type: 'task:submit', goal: 'Count.', deltas: true });
    await expect.poll(() => stage.counts.followers, SLOW).toBe(1);
    line.pause();
    for (let n = 0; n < 1_000; n++) {
      stage.delta('task-1', 'x'.repeat(100_000));
      if (n % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(stage.counts.read).toBeLessThan(300);
    stage.complete('task-1', RESULT);
    line.resume();
    await expect.poll(() => heard.at(-1)?.type, SLOW).toBe('task:completed');
  });

  it('hear a goodbye when the gateway stops, also where they are silent, and it does stop', async () => {
    const client = await open();
    client.say({ type: 'task:submit', goal: 'Count.' });
    await hears(client, 1);
    const { isClosed } = await shaken();
    await board.close();
    expect(client.closed.code).toBe(1001);
    await expect.poll(isClosed, SLOW).toBe(true);
    expect(stage.counts.followers).toBe(0);
    expect(typesOf(client)).toEqual(['task:started']);
    await expect(postJson(`${board.url}/api/tasks`, { goal: 'x' })).rejects.toThrow();
  });
});
