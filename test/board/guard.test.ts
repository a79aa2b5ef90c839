/** Who gets past the guard: pages of other sites and ports, foreign hosts, proxies and who pretends to be one, bodies. */
import { createServer, request, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { Board, BoardOptions } from '../../src/board/listener.js';
import { ask, PAGE, raw, startForTest } from './board-harness.js';
import { createTasks } from './stand-in.js';

const TOKEN = 'correct horse battery';
const authorization = `Bearer ${TOKEN}`;
const json = { 'content-type': 'application/json' };

const ending: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

async function start(changed: Partial<BoardOptions> = {}): Promise<Board> {
  const { tasks } = createTasks();
  const board = await startForTest({
    token: TOKEN,
    pageFiles: '/nowhere',
    page: async () => PAGE,
    tasks,
    ...changed,
  });
  ending.push(board.close);
  return board;
}

async function signIn(board: Board, headers: Record<string, string> = {}) {
  return ask(board, 'POST', '/api/session', {
    headers: { ...json, ...headers },
    body: JSON.stringify({ token: TOKEN }),
  });
}

async function cookieFor(board: Board, headers: Record<string, string> = {}): Promise<string> {
  return String((await signIn(board, headers)).headers['set-cookie']).split(';')[0] ?? '';
}

/** The first line of the answer to a handshake. */
async function handshake(board: Board, path: string, headers: Record<string, string>): Promise<number> {
  const all = {
    host: `127.0.0.1:${board.port}`,
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return new Promise((resolve) => {
    const socket = connect(board.port, '127.0.0.1', () =>
      socket.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`),
    );
    socket.once('data', (data) => {
      socket.destroy();
      resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(String(data))?.[1]));
    });
  });
}

/** What pages elsewhere are called. */
function foreignOrigins({ port }: Board): string[] {
  return [
    ...['https://evil.example', 'null', '', `http://127.0.0.1:${port + 1}`, 'http://127.0.0.1'],
    ...[`http://localhost:${port}`, `http://127.0.0.1:${port}.evil.example`, `http://[::1]:${port}`],
    ...[`chrome-extension://127.0.0.1:${port}`, `http://evil.example@127.0.0.1:${port + 1}`, 'file://'],
  ];
}

describe('the page of another site or port', () => {
  it('gets nothing, also where the browser is signed in', async () => {
    const board = await start();
    const cookie = await cookieFor(board);
    for (const origin of foreignOrigins(board)) {
      for (const [method, path] of [
        ...[['GET', '/api/board/hello'] as const, ['GET', '/metrics'] as const, ['GET', '/'] as const],
        ...[['POST', '/api/tasks/x/stop'] as const, ['DELETE', '/api/session'] as const],
      ]) {
        const { status } = await ask(board, method, path, { headers: { cookie, origin } });
        expect(status, `${method} ${path} of ${origin}`).toBe(403);
      }
      expect((await signIn(board, { origin })).status, origin).toBe(403);
    }
    expect((await ask(board, 'GET', '/metrics', { headers: { cookie, origin: board.url } })).status).toBe(
      200,
    );
  });

  it('opens no socket, also where the browser is signed in', async () => {
    const board = await start();
    const cookie = await cookieFor(board);
    for (const origin of foreignOrigins(board)) {
      for (const path of ['/ws', '/api/board/live']) {
        expect(await handshake(board, path, { cookie, origin }), origin).toBe(403);
      }
    }
    expect(await handshake(board, '/ws', { origin: board.url })).toBe(401);
    expect(await handshake(board, '/ws', { cookie: cookie.replace(/.$/, ''), origin: board.url })).toBe(401);
    expect(await handshake(board, '/ws', { cookie, origin: board.url })).toBe(101);
    expect(await handshake(board, '/ws', { authorization })).toBe(101);
    expect(await handshake(board, '/ws?token=x', { cookie })).toBe(101);
    expect(await handshake(board, '/nothing', { cookie })).toBe(404);
  });

  it('changes nothing where the browser only says what asks', async () => {
    const board = await start();
    const cookie = await cookieFor(board);
    const stop = (site: string, method = 'POST', path = '/api/tasks/x/stop') =>
      ask(board, method, path, { headers: { cookie, 'sec-fetch-site': site } });
    for (const site of ['cross-site', 'same-site', 'Same-Origin', '', 'x']) {
      expect((await stop(site)).status, site).toBe(403);
      expect((await stop(site, 'DELETE', '/api/session')).status, site).toBe(403);
      expect((await stop(site, 'PUT', '/api/workspace/plan')).status, site).toBe(403);
      expect((await signIn(board, { 'sec-fetch-site': site })).status, site).toBe(403);
    }
    expect((await stop('cross-site', 'GET', '/')).status).toBe(404);
    expect((await stop('same-origin')).status).toBe(404);
    expect((await stop('none')).status).toBe(404);
  });

  it('is told under which key it could be known', async () => {
    const board = await start();
    const text = async (origin: string) => (await ask(board, 'GET', '/', { headers: { origin } })).text;
    expect(JSON.parse(await text('https://home.example'))).toEqual({
      error: 'foreign origin; if the page is reached there, name https://home.example in board.origins',
    });
    expect(JSON.parse(await text('null'))).toEqual({ error: 'foreign origin' });
  });
});

describe('a foreign host', () => {
  it('gets nothing where there is no token, not even the page', async () => {
    const board = await start({ token: null });
    const status = async (host: string, path: string) =>
      (await ask(board, 'GET', path, { headers: { host } })).status;
    const { port } = board;
    for (const host of [
      ...[`rebound.example:${port}`, 'evil.example', `127.0.0.1.evil.example:${port}`, `192.168.1.2:${port}`],
      ...[
        `evil.example@127.0.0.1:${port}`,
        `127.0.0.1:${port}/`,
        '127.0.0.1 x',
        `[::2]:${port}`,
        '0.0.0.0',
        '-',
      ],
    ]) {
      for (const path of ['/', '/icon.svg', '/assets/a.js', '/api/board/hello', '/metrics', '/nothing']) {
        expect(await status(host, path), `${host} ${path}`).toBe(403);
      }
      expect(await handshake(board, '/ws', { host }), host).toBe(403);
    }
    expect(await status('evil.example', '/health')).toBe(200);
    for (const host of ['localhost', `LOCALHOST:${port}`, '127.0.0.2', `[::1]:${port}`, 'board.localhost']) {
      expect(await status(host, '/api/board/hello'), host).toBe(200);
    }
    expect(await raw(port, 'GET / HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 403/);
  });

  it('is known where it is one of the origins', async () => {
    const board = await start({ token: null, origins: ['https://home.example', 'http://pi.local:9000'] });
    const status = async (headers: Record<string, string>) =>
      (await ask(board, 'GET', '/api/board/hello', { headers })).status;
    expect(await status({ host: 'home.example' })).toBe(200);
    expect(await status({ host: 'pi.local:9000' })).toBe(200);
    expect(await status({ host: 'pi.local:9001' })).toBe(403);
    expect(await status({ origin: 'https://home.example' })).toBe(200);
    expect(await status({ origin: 'http://home.example' })).toBe(403);
    expect(await status({ origin: 'https://home.example:444' })).toBe(403);
  });

  it('is that of a browser on another machine, where there is a token', async () => {
    const board = await start();
    for (const host of [`192.168.1.2:${board.port}`, 'pi.local', `[fd00::2]:${board.port}`]) {
      const origin = `http://${host}`;
      const cookie = await cookieFor(board, { host, origin });
      const answer = await ask(board, 'GET', '/metrics', { headers: { host, origin, cookie } });
      expect(answer.status, host).toBe(200);
      expect((await ask(board, 'GET', '/metrics', { headers: { host, origin } })).status, host).toBe(401);
      const other = { host, origin: `http://${host}1`, cookie };
      expect((await ask(board, 'GET', '/metrics', { headers: other })).status, host).toBe(403);
    }
  });
});

describe('a proxy', () => {
  const forwarded = {
    'x-forwarded-host': 'home.example',
    'x-forwarded-proto': 'https',
    'x-forwarded-for': '203.0.113.7',
  };
  const page = { ...forwarded, origin: 'https://home.example' };

  it('that is trusted says how the page is reached: its origin is own, and its cookie goes by HTTPS alone', async () => {
    for (const trusted of ['127.0.0.1', '127.0.0.0/8', '0.0.0.0/0']) {
      const board = await start({ trustedProxies: ['10.1.2.3', trusted] });
      const answer = await signIn(board, page);
      expect(answer.status, trusted).toBe(204);
      expect(String(answer.headers['set-cookie'])).toMatch(/; HttpOnly; SameSite=Strict; Secure$/);
      const plain = await signIn(board, {
        ...page,
        'x-forwarded-proto': 'http',
        origin: 'http://home.example',
      });
      expect(String(plain.headers['set-cookie'])).not.toContain('Secure');
      for (const origin of [
        'http://home.example',
        'https://home.example:444',
        'https://evil.example',
        board.url,
      ]) {
        expect((await signIn(board, { ...page, origin })).status, origin).toBe(403);
      }
      expect(await handshake(board, '/ws', { ...page, authorization })).toBe(101);
      const evil = { ...page, authorization, origin: 'https://evil.example' };
      expect(await handshake(board, '/ws', evil)).toBe(403);
    }
  });

  it('is believed for the last thing that it wrote, and not for what a client had written before', async () => {
    const board = await start({ trustedProxies: ['127.0.0.1'] });
    const chain = {
      'x-forwarded-host': 'evil.example, home.example',
      'x-forwarded-proto': 'http, HTTPS',
    };
    expect((await signIn(board, { ...chain, origin: 'https://home.example' })).status).toBe(204);
    expect((await signIn(board, { ...chain, origin: 'https://evil.example' })).status).toBe(403);
  });

  it('that is not trusted says nothing', async () => {
    for (const trustedProxies of [[], ['10.0.0.0/8'], ['::1'], ['127.0.0.2']]) {
      const board = await start({ trustedProxies });
      expect((await signIn(board, page)).status).toBe(403);
      const { headers } = await signIn(board, forwarded);
      expect(String(headers['set-cookie'])).not.toContain('Secure');
      const open = await start({ token: null, trustedProxies });
      const rebound = {
        host: 'evil.example',
        'x-forwarded-host': 'localhost',
        'x-forwarded-for': '127.0.0.1',
      };
      expect((await ask(open, 'GET', '/', { headers: rebound })).status).toBe(403);
    }
  });

  it('brings nobody to a gateway without a token under a host that is not one of the origins', async () => {
    const board = await start({ token: null, trustedProxies: ['127.0.0.1'] });
    expect((await ask(board, 'GET', '/api/board/hello', { headers: forwarded })).status).toBe(403);
    const known = await start({
      ...{ token: null, trustedProxies: ['127.0.0.1'], origins: ['https://home.example'] },
    });
    expect((await ask(known, 'GET', '/api/board/hello', { headers: page })).status).toBe(200);
  });

  it('names who guesses in the log; one that is not trusted is named itself', async () => {
    const named = async (trustedProxies: string[], forwardedFor: string) => {
      const logged: object[] = [];
      const log = { debug() {}, info() {}, warn: (fields: object) => logged.push(fields), error() {} };
      const board = await start({ trustedProxies, log });
      for (let n = 0; n < 5; n++) {
        const headers = { ...json, 'x-forwarded-for': forwardedFor };
        await ask(board, 'POST', '/api/session', { headers, body: '{"token":"wrong"}' });
      }
      return logged;
    };
    const trusted = ['127.0.0.1', '10.0.0.0/8'];
    expect(await named(trusted, '6.6.6.6, 203.0.113.7, 10.0.0.9')).toEqual([
      { from: '203.0.113.7', seconds: 1 },
    ]);
    expect(await named(trusted, '[2001:db8::1]:443')).toEqual([{ from: '2001:db8::1', seconds: 1 }]);
    expect(await named(trusted, '203.0.113.7:5555')).toEqual([{ from: '203.0.113.7', seconds: 1 }]);
    expect(await named([], '203.0.113.7')).toEqual([{ from: '127.0.0.1', seconds: 1 }]);
  });

  it('may strip a path, needs no key for it where it passes on the host, and one in origins else', async () => {
    const passing = await start();
    const proxy = await below(passing, true);
    const own = { ...json, origin: proxy };
    const post = (url: string, headers: Record<string, string>) =>
      fetch(`${url}/coterie/api/session`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ token: TOKEN }),
      });
    const answer = await post(proxy, own);
    expect(answer.status).toBe(204);
    const cookie = String(answer.headers.get('set-cookie')).split(';')[0] ?? '';
    expect((await fetch(`${proxy}/coterie/metrics`, { headers: { cookie } })).status).toBe(200);
    const rewriting = await start();
    const second = await below(rewriting, false);
    expect((await post(second, { ...json, origin: second })).status).toBe(403);
    await rewriting.serve({ ...options(rewriting), origins: [second] });
    expect((await post(second, { ...json, origin: second })).status).toBe(204);
  });

  function options(board: Board): BoardOptions {
    return {
      ...{ host: '127.0.0.1', port: board.port, token: TOKEN, pageFiles: '/nowhere', ready: () => ({}) },
      metrics: async () => 'metrics\n',
      log: { debug() {}, info() {}, warn() {}, error() {} },
    };
  }

  /** A proxy that serves the board below `/coterie/`. */
  async function below(board: Board, passesHost: boolean): Promise<string> {
    const server: Server = createServer((incoming, outgoing) => {
      const path = (incoming.url ?? '').replace(/^\/coterie/, '');
      const host = passesHost ? incoming.headers.host : `127.0.0.1:${board.port}`;
      const headers = { ...incoming.headers, host };
      const asked = request(
        { port: board.port, host: '127.0.0.1', agent: false, path, method: incoming.method, headers },
        (answer) => {
          outgoing.writeHead(answer.statusCode ?? 0, answer.headers);
          answer.pipe(outgoing);
        },
      );
      incoming.pipe(asked);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    ending.push(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }
});

describe('a session', () => {
  it('is given by HTTPS where the page that asks is there, whatever stands between', async () => {
    const board = await start();
    const answer = await signIn(board, { host: 'home.example', origin: 'https://home.example' });
    expect(String(answer.headers['set-cookie'])).toMatch(/; Secure$/);
    const plain = await signIn(board, { host: 'home.example', origin: 'http://home.example' });
    expect(String(plain.headers['set-cookie'])).not.toContain('Secure');
  });
});

describe('a body', () => {
  const post = (board: Board, path: string, headers: Record<string, string>, body = '{}') =>
    ask(board, 'POST', path, { headers: { authorization, ...headers }, body });

  it('is JSON, and says so', async () => {
    const board = await start();
    for (const type of ['application/json', 'application/json; charset=utf-8', 'Application/JSON']) {
      expect((await post(board, '/api/tasks', { 'content-type': type })).status, type).toBe(400);
    }
    for (const type of [
      'text/plain',
      'application/jsonx',
      'text/json',
      'application/x-www-form-urlencoded',
      '',
    ]) {
      expect((await post(board, '/api/tasks', { 'content-type': type })).status, type).toBe(415);
      const cookie = await cookieFor(board);
      const signedIn = { cookie, origin: board.url, 'content-type': type };
      expect((await ask(board, 'POST', '/api/tasks', { headers: signedIn, body: '{}' })).status, type).toBe(
        415,
      );
    }
    expect((await post(board, '/api/tasks', {})).status).toBe(415);
    const upload = { 'content-type': 'application/octet-stream', 'x-coterie': '1' };
    expect((await post(board, '/api/tasks', upload)).status).toBe(415);
  });

  it('that is a file comes to its own path, with a header that no form has, up to its own size', async () => {
    const board = await start({ uploadBytes: 3_000_000 });
    const files = '/api/board/files';
    const marked = { 'x-coterie': '1' };
    // Without a name: 400 is how the guard lets one through.
    for (const type of ['application/octet-stream', 'multipart/form-data; boundary=x']) {
      expect((await post(board, files, { ...marked, 'content-type': type })).status, type).toBe(400);
      expect((await post(board, files, { 'content-type': type })).status, type).toBe(415);
      expect((await post(board, files, { 'x-coterie': '0', 'content-type': type })).status, type).toBe(415);
    }
    for (const type of ['text/plain', 'application/json', '', 'image/svg+xml']) {
      expect((await post(board, files, { ...marked, 'content-type': type })).status, type).toBe(415);
    }
    const octets = { ...marked, 'content-type': 'application/octet-stream' };
    const head = (bytes: number, path = files) =>
      raw(
        board.port,
        `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nX-Coterie: 1\r\n` +
          `Content-Type: application/octet-stream\r\nContent-Length: ${bytes}\r\nConnection: close\r\n\r\n`,
      );
    expect(await head(3_000_001)).toMatch(/^HTTP\/1\.1 413/);
    expect(await head(3_000_000)).toMatch(/^HTTP\/1\.1 400/);
    expect((await post(board, files, { ...octets, 'content-encoding': 'gzip' })).status).toBe(415);
    expect((await ask(board, 'POST', files, { headers: { authorization } })).status).toBe(415);
    expect((await ask(board, 'POST', files, { headers: octets, body: 'x' })).status).toBe(401);
  });

  it('that is a file may take its time, and another may not', async () => {
    const limits = {
      headersMs: 300,
      requestMs: 300,
      idleMs: 300,
      silenceMs: 5_000,
      awayMs: 0,
      uploadMs: 60_000,
    };
    const board = await start({ limits });
    const slowly = async (path: string, type: string): Promise<string> => {
      const socket = connect(board.port, '127.0.0.1');
      let heard = '';
      socket.on('data', (data) => {
        heard += data;
      });
      const closed = new Promise((resolve) => socket.on('error', () => {}).once('close', resolve));
      socket.write(
        `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nX-Coterie: 1\r\n` +
          `Content-Type: ${type}\r\nContent-Length: 20\r\nConnection: close\r\n\r\n`,
      );
      for (let n = 0; n < 20 && socket.writable; n++) {
        socket.write('7');
        await pause(50);
      }
      await closed;
      return heard;
    };
    const [file, other] = await Promise.all([
      slowly('/api/board/files?name=a', 'application/octet-stream'),
      slowly('/api/tasks', 'application/json'),
    ]);
    // The desk is none here, so that 500 is how a file arrives.
    expect(file).toMatch(/^HTTP\/1\.1 500/);
    expect(other).toMatch(/^$|^HTTP\/1\.1 408/);
  });
});
