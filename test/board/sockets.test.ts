/** The HTTP listener, and who does not keep to HTTP, or to good manners: everything over raw sockets. */
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Board, type BoardOptions, LIMITS, startBoard } from '../../src/board/listener.js';

const SECRET = 's3cret';
const WEBHOOK = 'POST /telegram/webhook HTTP/1.1\r\nHost: x\r\n';
const RIGHT = `${WEBHOOK}X-Secret: ${SECRET}\r\n`;
const WRONG = `${WEBHOOK}X-Secret: wrong\r\n`;
const HEALTH = 'GET /health HTTP/1.1\r\nHost: x\r\n';
const MEGABYTE = Buffer.alloc(1_000_000, 0x20);

let board: Board;
let taken: unknown[];
let sockets: Socket[];
beforeEach(() => {
  taken = [];
  sockets = [];
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await board.close();
});

async function start(changed: Partial<BoardOptions> = {}): Promise<void> {
  const silent = () => {};
  board = await startBoard({
    ...{ host: '127.0.0.1', port: 0, token: null, ready: () => ({}) },
    metrics: async () => 'metrics\n',
    webhook: {
      path: '/telegram/webhook',
      secretHeader: 'x-secret',
      admits: (secret) => secret === SECRET,
      handle: async (body) => {
        taken.push(body);
        return 200;
      },
    },
    log: { debug: silent, info: silent, warn: silent, error: silent },
    ...changed,
  });
}

/** A connection: what came on it, and whether the other side has ended it. */
async function open() {
  const socket = connect({ port: board.port, host: '127.0.0.1', allowHalfOpen: true });
  sockets.push(socket);
  let heard = '';
  let closed = false;
  const end = () => {
    closed = true;
  };
  socket.on('data', (piece) => {
    heard += piece;
  });
  socket.on('end', end);
  socket.on('close', end);
  socket.on('error', end);
  await new Promise<void>((resolve) => {
    socket.once('connect', resolve);
    socket.once('close', () => resolve());
  });
  return {
    socket,
    heard: () => heard,
    status: () => Number(/^HTTP\/1\.1 (\d+)/.exec(heard)?.[1] ?? 0),
    isClosed: () => closed,
    /** Resolves with all that came, when the other side has ended it. */
    async ended(): Promise<string> {
      await expect.poll(() => closed, { timeout: 10_000 }).toBe(true);
      return heard;
    },
    async says(words: string): Promise<void> {
      await expect.poll(() => heard, { timeout: 10_000 }).toContain(words);
    },
  };
}

/** Sends it, and resolves with what came until the other side closed. */
async function send(...pieces: (string | Buffer)[]) {
  const line = await open();
  for (const piece of pieces) line.socket.write(piece);
  await line.ended();
  return line;
}

async function isServing(): Promise<void> {
  const answer = await fetch(`${board.url}/health`, { headers: { connection: 'close' } });
  expect(answer.status).toBe(200);
  await answer.text();
}

/** Sends for as long as it is taken; how much that was. */
async function pour(line: Awaited<ReturnType<typeof open>>, piece = MEGABYTE, most = 100): Promise<number> {
  let sent = 0;
  for (; sent < most && !line.isClosed(); sent++) {
    if (!line.socket.write(piece)) {
      await new Promise((resolve) => {
        line.socket.once('drain', resolve);
        line.socket.once('close', resolve);
        line.socket.once('end', resolve);
      });
    }
  }
  return sent * piece.length;
}

describe('a call of the webhook', () => {
  it.each([
    ['a wrong secret', WRONG],
    ['no secret', WEBHOOK],
    ['two secrets', `${WRONG}X-Secret: ${SECRET}\r\n`],
  ])('with %s is refused before its body is there, and its connection closed', async (_, head) => {
    await start();
    for (const length of ['Content-Length: 1000', 'Transfer-Encoding: chunked', 'Content-Length: 99999999']) {
      const line = await send(`${head}${length}\r\n\r\n`);
      expect(line.status()).toBe(401);
      expect(line.heard()).toContain('Connection: close'.toLowerCase());
    }
    expect(taken).toEqual([]);
    await isServing();
  });

  it('with a wrong secret and an endless body is not read', async () => {
    await start();
    const line = await open();
    line.socket.write(`${WRONG}Transfer-Encoding: chunked\r\n\r\n`);
    const chunk = Buffer.concat([Buffer.from('f4240\r\n'), MEGABYTE, Buffer.from('\r\n')]);
    // What the buffers of the system hold goes; the rest does not.
    expect(await pour(line, chunk)).toBeLessThan(30_000_000);
    await line.ended();
  });

  it('is not told to go on with its body where it would be refused', async () => {
    await start();
    const waits = 'Expect: 100-continue\r\n';
    expect((await send(`${WRONG}Content-Length: 9\r\n${waits}\r\n`)).heard()).toMatch(/^HTTP\/1\.1 401/);
    expect((await send(`${RIGHT}Content-Length: 2000001\r\n${waits}\r\n`)).heard()).toMatch(
      /^HTTP\/1\.1 413/,
    );
    const welcome = await open();
    welcome.socket.write(`${RIGHT}Content-Length: 15\r\nConnection: close\r\n${waits}\r\n`);
    await welcome.says('HTTP/1.1 100 Continue');
    welcome.socket.write('{"update_id":7}');
    expect(await welcome.ended()).toContain('HTTP/1.1 200 OK');
    expect(taken).toEqual([{ update_id: 7 }]);
  });

  it('may be two megabytes, declared or counted, and no more', async () => {
    await start();
    const whole = Buffer.from(JSON.stringify({ text: 'x'.repeat(2_000_000 - 11) }));
    expect(whole.length).toBe(2_000_000);
    const declared = (body: Buffer) =>
      send(`${RIGHT}Connection: close\r\nContent-Length: ${body.length}\r\n\r\n`, body);
    const chunked = (body: Buffer) =>
      send(
        `${RIGHT}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n`,
        body,
        '\r\n0\r\n\r\n',
      );
    expect((await declared(whole)).status()).toBe(200);
    expect((await chunked(whole)).status()).toBe(200);
    expect(taken).toHaveLength(2);
    expect((await send(`${RIGHT}Content-Length: 2000001\r\n\r\n`)).status()).toBe(413);
    expect((await chunked(Buffer.concat([whole, Buffer.from(' ')]))).status()).toBe(413);
    expect(taken).toHaveLength(2);
  });

  it('without an end is read no further than that', async () => {
    await start();
    const line = await open();
    line.socket.write(`${RIGHT}Transfer-Encoding: chunked\r\n\r\n`);
    const chunk = Buffer.concat([Buffer.from('f4240\r\n'), MEGABYTE, Buffer.from('\r\n')]);
    expect(await pour(line, chunk)).toBeLessThan(30_000_000);
    await line.ended();
    expect(line.status()).toBe(413);
    expect(taken).toEqual([]);
    await isServing();
  });

  it('is not unpacked', async () => {
    await start();
    for (const header of ['Content-Encoding: gzip', 'Content-Encoding: br']) {
      expect((await send(`${RIGHT}${header}\r\nContent-Length: 9\r\n\r\n`)).status()).toBe(415);
    }
    const packed = await send(`${RIGHT}Transfer-Encoding: gzip, chunked\r\n\r\n`);
    expect(packed.status()).toBe(415);
  });

  it('is not two calls at once for whoever stands before us', async () => {
    await start();
    const smuggled = `0\r\n\r\n${HEALTH}\r\n`;
    const attempts = [
      `${RIGHT}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n${smuggled}`,
      `${RIGHT}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n${smuggled}`,
      `${RIGHT}Content-Length: 4\r\nContent-Length: 5\r\n\r\n{}  ${HEALTH}\r\n`,
      `${RIGHT}Transfer-Encoding: chunked, identity\r\n\r\n${smuggled}`,
      `${RIGHT}Transfer-Encoding : chunked\r\n\r\n${smuggled}`,
      `${RIGHT}Content-Length: +4\r\n\r\n{}  ${HEALTH}\r\n`,
      `${RIGHT}X: y\n\nContent-Length: 4\r\n\r\n{}  ${HEALTH}\r\n`,
    ];
    for (const attempt of attempts) {
      const line = await send(attempt);
      expect([400, 415], attempt).toContain(line.status());
      expect(line.heard().match(/HTTP\/1\.1/g), attempt).toHaveLength(1);
    }
    expect(taken).toEqual([]);
  });

  it('is found under its own path alone', async () => {
    await start();
    const paths = [
      '/telegram/%77ebhook',
      '//telegram/webhook',
      '/telegram/webhook/',
      '/x/../telegram/webhook',
    ];
    for (const path of [...paths, 'http://x/telegram/webhook', '/TELEGRAM/webhook', '/health/../metrics']) {
      const line = await send(
        `POST ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{"update_id":7}`,
      );
      expect([400, 401, 404, 405], path).toContain(line.status());
    }
  });
});

describe('anybody else', () => {
  it('cannot make it read a body, with or without a token', async () => {
    await start({ token: 'token' });
    const endless = 'Transfer-Encoding: chunked\r\n\r\nf4240\r\n';
    const token = 'Authorization: Bearer token\r\n';
    const attempts: [string, number][] = [
      [`POST /metrics HTTP/1.1\r\nHost: x\r\n${endless}`, 401],
      [`POST /nothing HTTP/1.1\r\nHost: x\r\n${token}${endless}`, 415],
      [`POST /nothing HTTP/1.1\r\nHost: x\r\n${token}Content-Type: application/json\r\n${endless}`, 404],
      [`GET /health HTTP/1.1\r\nHost: x\r\n${endless}`, 400],
      [`GET /metrics HTTP/1.1\r\nHost: x\r\n${token}Content-Length: 5\r\n\r\n`, 400],
    ];
    for (const [attempt, status] of attempts) {
      const line = await open();
      line.socket.write(attempt);
      expect(await pour(line), attempt).toBeLessThan(30_000_000);
      await line.ended();
      expect(line.status(), attempt).toBe(status);
    }
    await isServing();
  });

  it('may ask with 16 kB of head and a hundred headers, no more', async () => {
    await start();
    const close = 'Connection: close\r\n';
    const query = (length: number) =>
      `GET /metrics?${'q'.repeat(length)} HTTP/1.1\r\nHost: localhost\r\n${close}\r\n`;
    expect((await send(query(15_000))).status()).toBe(200);
    expect((await send(query(17_000))).status()).toBe(431);
    expect((await send(query(5_000_000))).status()).toBe(431);
    const many = (count: number) => `${HEALTH}${close}${'a: b\r\n'.repeat(count)}\r\n`;
    expect((await send(many(98))).status()).toBe(200);
    expect((await send(many(99))).status()).toBe(431);
    // What comes behind any number of headers counts as well.
    const origin = `${HEALTH}${close}${'a: b\r\n'.repeat(2_100)}Origin: https://evil.example\r\n\r\n`;
    expect([403, 431]).toContain((await send(origin)).status());
    await isServing();
  });

  it('is answered once and closed where it speaks no HTTP', async () => {
    await start();
    const random = Buffer.from(Array.from({ length: 5_000 }, (_, n) => (n * 7919) % 256));
    const hello = Buffer.from('160301020001000001fc0303', 'hex');
    for (const garbage of [
      'EHLO x\r\n\r\n',
      'GET\r\n\r\n',
      '\0\0\0\0\r\n\r\n',
      hello,
      random,
      `${HEALTH}a b\r\n\r\n`,
    ]) {
      expect((await send(garbage)).status()).toBe(400);
    }
    await isServing();
  });

  it('gets its answer, too, when it has said that it says no more', async () => {
    await start();
    const line = await open();
    line.socket.end(`${HEALTH}\r\n`);
    expect(await line.ended()).toContain('{"status":"ok"}');
  });

  it('gets the answers to what it asked at once one after another', async () => {
    await start();
    const asked = `${`${HEALTH}\r\n`.repeat(2_000)}${HEALTH}Connection: close\r\n\r\n`;
    const line = await open();
    line.socket.write(asked);
    await isServing();
    expect((await line.ended()).match(/HTTP\/1\.1 200/g)?.length).toBe(2_001);
  });
});

describe('connections that wait', () => {
  const short = { ...LIMITS, headersMs: 300, requestMs: 700, idleMs: 300, silenceMs: 500 };

  it.each([
    ['says nothing', ''],
    ['says half a line', 'GET /hea'],
    ['never ends its headers', HEALTH],
  ])('are closed where one %s', async (_, said) => {
    await start({ limits: short });
    const line = await open();
    if (said !== '') line.socket.write(said);
    expect(await line.ended()).toMatch(/^$|^HTTP\/1\.1 408/);
    await isServing();
  });

  it('are closed where one sends a byte now and then, of its head or of its body', async () => {
    await start({ limits: short });
    const drip = async (begun: string) => {
      const line = await open();
      line.socket.write(begun);
      const begin = performance.now();
      while (!line.isClosed() && performance.now() - begin < 10_000) {
        line.socket.write('x');
        await pause(50);
      }
      expect(line.isClosed()).toBe(true);
    };
    await Promise.all([drip(`${HEALTH}a: `), drip(`${RIGHT}Content-Length: 100000\r\n\r\n`)]);
    expect(taken).toEqual([]);
    await isServing();
  });

  it('are closed between requests', async () => {
    await start({ limits: short });
    const line = await open();
    line.socket.write(`${HEALTH}\r\n`);
    expect(await line.ended()).toContain('{"status":"ok"}');
  });

  it('are closed where one never reads its answer', async () => {
    const body = 'x'.repeat(20_000_000);
    await start({ limits: short, metrics: async () => body });
    const line = await open();
    line.socket.pause();
    line.socket.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await pause(100);
    await isServing();
    // Nothing of it is read until the listener has given it up; then what was under way is all there is.
    await pause(2_500);
    line.socket.resume();
    expect((await line.ended()).length).toBeLessThan(body.length);
  });

  it('by the thousand keep nobody out, and are closed in time', async () => {
    await start({ limits: { ...short, headersMs: 2_000, requestMs: 2_000 } });
    const idle = await Promise.all(Array.from({ length: 1_000 }, () => open()));
    await isServing();
    const heads = await Promise.all(Array.from({ length: 300 }, () => open()));
    for (const { socket } of heads) socket.write(HEALTH);
    await isServing();
    const all = [...idle, ...heads];
    await expect.poll(() => all.every((line) => line.isClosed()), { timeout: 10_000 }).toBe(true);
    await isServing();
  });
});
