/** Artifacts over HTTP: what a browser may do with them, and that nothing else is given. */
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Board } from '../../src/board/listener.js';
import { raw, startForTest } from './board-harness.js';
import { createArtifacts } from './stand-in.js';

let folder: string;
let board: Board;
let asked: string[];
const LARGE = Buffer.alloc(30_000_000, 'x');

const FILES = {
  't/page': { file: 'page.html', type: 'text/html' },
  't/drawing': { file: 'drawing.svg', type: 'image/svg+xml' },
  't/script': { file: 'script.js', type: 'text/javascript' },
  't/data': { file: 'data.json', type: 'application/json' },
  't/notes': { file: 'notes.txt', type: 'text/plain' },
  't/picture': { file: 'picture.png', type: 'image/png; a=b' },
  't/odd': { file: 'odd.bin', type: 'text/html\r\nSet-Cookie: a=b' },
  't/xml': { file: 'x.png', type: 'image/x+xml' },
  't/turned': { file: 'a\u202egnp.日本é.pdf', type: 'application/pdf' },
  't/large': { file: 'large.bin', type: 'application/octet-stream' },
  't/empty': { file: 'empty.txt', type: 'text/plain' },
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-artifacts-'));
  for (const { file } of Object.values(FILES)) await writeFile(join(folder, file), `of ${file}`);
  await writeFile(join(folder, 'large.bin'), LARGE);
  await writeFile(join(folder, 'empty.txt'), '');
  const stand = createArtifacts(folder, FILES);
  asked = stand.asked;
  board = await startForTest({ artifacts: stand.artifacts });
});
afterAll(async () => {
  await board.close();
  await rm(folder, { recursive: true });
});

const get = (path: string) => fetch(`${board.url}/api/artifacts/${path}`);

describe('an artifact', () => {
  it.each([
    ['page', 'text/html; charset=utf-8', 'attachment; filename="page.html"'],
    ['drawing', 'image/svg+xml', 'attachment; filename="drawing.svg"'],
    ['script', 'text/javascript; charset=utf-8', 'attachment; filename="script.js"'],
    ['data', 'application/json', 'attachment; filename="data.json"'],
    ['odd', 'application/octet-stream', 'attachment; filename="odd.bin"'],
    ['xml', 'image/x+xml', 'attachment; filename="x.png"'],
    [
      'turned',
      'application/pdf',
      `attachment; filename="a_gnp.___.pdf"; filename*=UTF-8''a_gnp.${encodeURIComponent('日本é')}.pdf`,
    ],
    ['notes', 'text/plain; charset=utf-8', 'inline; filename="notes.txt"'],
    ['picture', 'image/png', 'inline; filename="picture.png"'],
  ])('is given as what it is, and run by nobody: %s', async (id, type, disposition) => {
    const answer = await get(`t/${id}`);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe(type);
    expect(answer.headers.get('content-disposition')).toBe(disposition);
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(answer.headers.get('content-security-policy')).toMatch(/^sandbox;/);
    expect(answer.headers.get('set-cookie')).toBeNull();
    const file = FILES[`t/${id}` as keyof typeof FILES].file;
    expect(await answer.text()).toBe(`of ${file}`);
  });

  it('is given whole, also where it is large or empty, and its head alone', async () => {
    expect(Buffer.from(await (await get('t/large')).arrayBuffer()).equals(LARGE)).toBe(true);
    expect(await (await get('t/empty')).text()).toBe('');
    const head = await fetch(`${board.url}/api/artifacts/t/large`, { method: 'HEAD' });
    expect([head.headers.get('content-length'), await head.text()]).toEqual(['30000000', '']);
  });

  it('is read no faster than it is taken, and closed when one leaves', async () => {
    const before = process.memoryUsage().arrayBuffers;
    const sockets = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const socket = connect(board.port, '127.0.0.1');
        socket.pause();
        socket.write('GET /api/artifacts/t/large HTTP/1.1\r\nHost: localhost\r\n\r\n');
        await new Promise((resolve) => socket.once('connect', resolve));
        return socket;
      }),
    );
    expect((await get('t/notes')).status).toBe(200);
    // 600 MB were asked for.
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(100_000_000);
    for (const socket of sockets) socket.destroy();
    const open = () =>
      execFileSync('ls', ['-l', `/proc/${process.pid}/fd`])
        .toString()
        .includes('large.bin');
    if (process.platform === 'linux') await expect.poll(open, { timeout: 20_000 }).toBe(false);
  });

  it('that goes away or shrinks before it is sent is broken off, not made up', async () => {
    const { find } = createArtifacts(folder, FILES).artifacts;
    const logged: string[] = [];
    const note = (_: object, message: string) => logged.push(message);
    const log = { debug: note, info: note, warn: note, error: note };
    const gone = await startForTest({
      log,
      artifacts: { ...createArtifacts(folder, FILES).artifacts, open: async () => null },
    });
    const shrunk = await startForTest({
      log,
      artifacts: {
        ...createArtifacts(folder, FILES).artifacts,
        async find(task, id) {
          const found = await find(task, id);
          return found && { ...found, bytes: found.bytes + 1 };
        },
      },
    });
    for (const one of [gone, shrunk]) {
      const read = async () => (await fetch(`${one.url}/api/artifacts/t/notes`)).text();
      await expect(read()).rejects.toThrow();
      expect((await fetch(`${one.url}/health`)).status).toBe(200);
      await one.close();
    }
    expect(logged.filter((message) => message === 'HTTP answer broke off')).toHaveLength(2);
  });

  it('is found by its ids alone: whatever else they hold is refused before anybody looks', async () => {
    const before = asked.length;
    const bad = [
      'a%2Fb',
      '..%2F..%2Fx',
      '%2Fetc%2Fpasswd',
      'a%5Cb',
      'a%00',
      'a%20b',
      'a%0d%0aX:1',
      '%zz',
      '%F0%9F',
      'a'.repeat(65),
      'é',
    ];
    for (const id of bad) {
      expect((await get(`t/${id}`)).status, id).toBe(400);
      expect((await get(`${id}/x`)).status, id).toBe(400);
    }
    const error = (await (await get('t/a%2Fb')).json()) as object;
    expect(error).toEqual({ path: 'id', error: expect.stringContaining('letters') });
    // As they stand, before any library makes another path of them.
    for (const path of [
      't/..',
      '../x',
      't/../../../etc/passwd',
      't/%2e%2e',
      '%2e%2e/x',
      't/.',
      't/%252e%252e',
      't//x',
      't/a/b',
      't',
      '',
    ]) {
      const said = await raw(
        board.port,
        `GET /api/artifacts/${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
      );
      expect(said, path).toMatch(/^HTTP\/1\.1 40[04] .*"error"/s);
    }
    expect(asked.length).toBe(before);
    expect((await get('t/unknown')).status).toBe(404);
  });
});
