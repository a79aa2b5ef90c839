/** The page's files over HTTP: which form of them one gets, what may be kept, and what is not there. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type IncomingHttpHeaders, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Board, BoardOptions } from '../../src/board/listener.js';
import { startForTest } from './board-harness.js';

const PAGE = '<!doctype html><title>coterie</title>';
const SCRIPT = 'export const words = "Häuser";\n'.repeat(50);
const HASHED = '/assets/main-Ab_3-x9Z.js';

let folder: string;
const boards: Board[] = [];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-page-'));
  await mkdir(join(folder, 'page', 'assets'), { recursive: true });
  const write = (name: string, bytes: string | Buffer) => writeFile(join(folder, 'page', name), bytes);
  await write('index.html', PAGE);
  await write('icon.svg', '<svg xmlns="http://www.w3.org/2000/svg"/>');
  await write('assets/main-Ab_3-x9Z.js', SCRIPT);
  await write('assets/main-Ab_3-x9Z.js.br', brotliCompressSync(SCRIPT));
  await write('assets/main-Ab_3-x9Z.js.gz', gzipSync(SCRIPT));
  await write('assets/plain.css', 'p {}');
  await writeFile(join(folder, 'secret.txt'), 'secret');
});
afterEach(async () => {
  for (const board of boards.splice(0)) await board.close();
});
afterAll(() => rm(folder, { recursive: true }));

async function start(changed: Partial<BoardOptions> = {}): Promise<Board> {
  const board = await startForTest({ pageFiles: join(folder, 'page'), ...changed });
  boards.push(board);
  return board;
}

interface Got {
  status: number;
  headers: IncomingHttpHeaders;
  bytes: Buffer;
}

/** Nothing is unpacked, and the path goes out as it is. */
function get(board: Board, path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Got> {
  return new Promise((resolve, reject) => {
    const asked = request({ port: board.port, host: '127.0.0.1', path, headers, method }, (answer) => {
      const pieces: Buffer[] = [];
      answer.on('data', (piece) => pieces.push(piece));
      answer.on('end', () =>
        resolve({
          status: answer.statusCode ?? 0,
          headers: answer.headers,
          bytes: Buffer.concat(pieces),
        }),
      );
    });
    asked.on('error', reject);
    asked.end();
  });
}

describe('the page', () => {
  it('is there for everybody, says what it may do, and is asked for anew each time', async () => {
    for (const board of [await start(), await start({ token: 'correct horse' })]) {
      const { status, headers, bytes } = await get(board, '/');
      expect([status, String(bytes)]).toEqual([200, PAGE]);
      expect(headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-cache',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
      });
      const policy = String(headers['content-security-policy']);
      for (const rule of [
        ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "form-action 'none'"],
        ...["base-uri 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"],
      ]) {
        expect(policy.split('; ')).toContain(rule);
      }
      expect(policy).not.toMatch(/unsafe|\*|https?:/);
    }
  });

  it('comes under an address with a query, too, and makes nothing of it', async () => {
    const board = await start();
    expect(String((await get(board, '/?gatewayUrl=wss://evil.example')).bytes)).toBe(PAGE);
  });

  it('is not there where none is given or none was built, which is said', async () => {
    const none = await startForTest();
    boards.push(none);
    expect((await get(none, '/')).status).toBe(404);
    const unbuilt = await start({ pageFiles: join(folder, 'nowhere') });
    const { status, bytes } = await get(unbuilt, '/');
    expect([status, String(bytes)]).toEqual([404, '{"error":"The page is not built; run `npm run build`."}']);
  });
});

describe('a file of the page', () => {
  it('with a hash in its name is kept for good, another is asked for anew', async () => {
    const board = await start();
    const hashed = await get(board, HASHED);
    expect(hashed.headers['cache-control']).toBe('public, max-age=31536000, immutable');
    expect(hashed.headers['content-type']).toBe('text/javascript; charset=utf-8');
    expect((await get(board, '/icon.svg')).headers).toMatchObject({
      'content-type': 'image/svg+xml',
      'cache-control': 'no-cache',
    });
    expect((await get(board, '/assets/plain.css')).headers['cache-control']).toBe('no-cache');
  });

  it.each([
    ['br, gzip', 'br'],
    ['gzip, deflate, br;q=0.5', 'br'],
    ['gzip;q=1.0', 'gzip'],
    ['br;q=0, GZIP', 'gzip'],
    ['br;q=0.000, gzip;q=0', undefined],
    ['identity', undefined],
    ['brotli', undefined],
    ['', undefined],
  ])('is packed for who accepts "%s" as %s', async (accepted, packing) => {
    const { headers, bytes } = await get(await start(), HASHED, { 'accept-encoding': accepted });
    expect(headers['content-encoding']).toBe(packing);
    expect(headers.vary).toBe('Accept-Encoding');
    const plain =
      packing === 'br' ? brotliDecompressSync(bytes) : packing === 'gzip' ? gunzipSync(bytes) : bytes;
    expect(String(plain)).toBe(SCRIPT);
  });

  it('is sent as it is where it was not packed', async () => {
    const { headers, bytes } = await get(await start(), '/icon.svg', { 'accept-encoding': 'br, gzip' });
    expect(headers['content-encoding']).toBe(undefined);
    expect(String(bytes)).toContain('<svg');
  });

  it('is sent at once, however long the list of what a browser takes', async () => {
    const board = await start();
    const began = performance.now();
    for (const blanks of [' '.repeat(15_000), '\t'.repeat(15_000)]) {
      const { headers } = await get(board, HASHED, { 'accept-encoding': `gzip, a${blanks}b` });
      expect(headers['content-encoding']).toBe('gzip');
    }
    expect(performance.now() - began).toBeLessThan(150);
  });

  it('is not sent again to who has it, in the form that it has', async () => {
    const board = await start();
    const packed = await get(board, HASHED, { 'accept-encoding': 'br' });
    const plain = await get(board, HASHED);
    const { etag = '' } = packed.headers;
    expect(etag).toMatch(/^"[^"]+"$/);
    expect(plain.headers.etag).not.toBe(etag);
    const again = (tag: string) => get(board, HASHED, { 'accept-encoding': 'br', 'if-none-match': tag });
    for (const tag of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const { status, bytes } = await again(tag);
      expect([status, bytes.length], tag).toEqual([304, 0]);
    }
    expect((await again('"other"')).status).toBe(200);
  });

  it('is described to who asks for its head, without its bytes', async () => {
    const { status, headers, bytes } = await get(await start(), HASHED, {}, 'HEAD');
    expect([status, bytes.length]).toEqual([200, 0]);
    expect(headers['content-length']).toBe(String(Buffer.byteLength(SCRIPT)));
  });

  it('that is not there is 404, and never the page; so is all that lies elsewhere', async () => {
    const board = await start({ token: 'correct horse' });
    for (const path of ['/assets/main-OLD00000.js', '/favicon.ico', '/index.html', `${HASHED}.br`]) {
      const { status, bytes } = await get(board, path);
      expect([status, String(bytes)], path).toEqual([404, '{"error":"not found"}']);
    }
    for (const path of [
      ...[
        '/../secret.txt',
        '/assets/../../secret.txt',
        '/assets/%2e%2e/%2e%2e/secret.txt',
        '/assets/..%5csecret',
      ],
      ...['//secret.txt', `//assets/main-Ab_3-x9Z.js`, '/assets/', '/assets//plain.css', '/.env', '/a/b.js'],
    ]) {
      const { status, bytes } = await get(board, path);
      expect([401, 404], path).toContain(status);
      expect(String(bytes)).not.toContain('secret');
      expect(String(bytes)).not.toContain('p {}');
    }
  });

  it('can only be read', async () => {
    const board = await start();
    const { status, headers } = await get(board, '/', {}, 'POST');
    expect([status, headers.allow]).toEqual([405, 'GET, HEAD']);
  });
});

describe('every answer', () => {
  it('says that its type is no guess, that nothing is told on, and that nobody may keep it', async () => {
    const board = await start({ token: 'correct horse' });
    const known = { authorization: 'Bearer correct horse' };
    for (const [path, status, headers] of [
      ...[['/health', 200, {}] as const, ['/metrics', 401, {}] as const, ['/metrics', 200, known] as const],
      ...[['/nothing', 404, known] as const, ['/api/openapi.json', 200, known] as const],
      ...[['/metrics', 403, { origin: 'https://evil.example' }] as const],
      ...[['/ws', 401, { connection: 'Upgrade', upgrade: 'websocket' }] as const],
    ]) {
      const answer = await get(board, path, headers);
      expect(answer.status, path).toBe(status);
      expect(answer.headers, path).toMatchObject({
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-resource-policy': 'same-origin',
        'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
        'cache-control': 'no-store',
      });
    }
  });
});
