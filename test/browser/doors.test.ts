/** Who gets in: tokens, pages of other sites and ports, foreign names, and a proxy that strips a path. */
import { request as ask, createServer, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type Listening, listen } from '../fakes/http-server.js';
import {
  articles,
  type Board,
  connection,
  describeInChromium,
  isUp,
  launchChromium,
  message,
  startBoard,
  type as typed,
} from './board.js';

const TOKEN = 'a long and unguessable token';

/** What a page at another address gets to do, with all that a browser lets it; it names what was let happen. */
const attackOn = (target: string) => `(async () => {
  const target = ${JSON.stringify(target)};
  const done = [];
  const tell = (what) => (answer) => {
    if (answer.type !== 'opaque') done.push(what + ' was answered: ' + answer.status);
  };
  const body = JSON.stringify({ id: 'evil1', text: 'from elsewhere' });
  const path = target + '/api/board/chats/board_main/messages';
  const headers = { 'content-type': 'application/json' };
  for (const credentials of ['include', 'omit']) {
    await fetch(target + '/api/board/hello', { credentials }).then(tell('a read'), () => {});
    await fetch(path, { method: 'POST', body, credentials, headers }).then(tell('a message'), () => {});
    await fetch(path, { method: 'POST', body, credentials, mode: 'no-cors' }).catch(() => {});
    await fetch(target + '/api/session', { method: 'DELETE', credentials }).then(tell('an end'), () => {});
  }
  for (const socket of ['/api/board/live', '/ws']) {
    const line = new WebSocket(target.replace('http', 'ws') + socket);
    const opened = await new Promise((resolve) => {
      line.onopen = () => resolve(true);
      line.onerror = () => resolve(false);
    });
    if (opened) done.push(socket + ' opened');
  }
  const form = Object.assign(document.createElement('form'), {
    method: 'POST', enctype: 'text/plain', action: path, target: 'inner',
  });
  const inner = Object.assign(document.createElement('iframe'), { name: 'inner' });
  const field = Object.assign(document.createElement('input'), { name: body.slice(0, -1), value: '"}' });
  form.append(field);
  const framed = Object.assign(document.createElement('iframe'), { src: target + '/' });
  document.body.append(form, inner, framed);
  form.submit();
  await new Promise((resolve) => setTimeout(resolve, 500));
  // The policy that parts windows holds where the connection is safe, as on loopback.
  if (!isSecureContext) return done;
  const other = window.open(target + '/');
  for (let waited = 0; other !== null && !other.closed && waited < 10_000; waited += 100)
    await new Promise((resolve) => setTimeout(resolve, 100));
  if (other !== null && !other.closed) done.push('the page is held by its window');
  return done;
})()`;

describeInChromium('the board', () => {
  let browser: Browser;
  let board: Board;
  const servers: Listening[] = [];
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser.close());
  afterEach(async () => {
    await board.closePages();
    await board.close();
    for (const server of servers.splice(0)) await server.close();
  });

  const begin = async (more: object = {}) => {
    board = await startBoard(browser, { config: { board: { port: 0, ...more } } });
  };
  const token = (page: Page) => page.getByLabel('Token');
  const signIn = async (page: Page, words: string) => {
    await token(page).fill(words);
    await page.getByRole('button', { name: 'Sign in' }).click();
  };

  it('asks for the token, says that one is wrong, and slows many down; the right one comes in and goes out', async () => {
    await begin({ token: TOKEN });
    const page = await board.open('#/memory');
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await token(page).getAttribute('type')).toBe('password');
    await signIn(page, 'not it');
    await page.getByRole('alert').filter({ hasText: 'Wrong token' }).waitFor();
    for (let n = 0; n < 5; n++) await signIn(page, `not it ${n}`);
    await page
      .getByRole('alert')
      .filter({ hasText: /Try again in \d+ seconds/ })
      .waitFor();
    const bearer = { headers: { authorization: `Bearer ${TOKEN}` } };
    expect((await fetch(`${board.url}/api/board/hello`, bearer)).status).toBe(200);
    const seconds = Number(/\d+/.exec((await page.getByRole('alert').textContent()) ?? '')?.[0]);
    expect(seconds).toBeLessThanOrEqual(60);
    await page.waitForTimeout(seconds * 1000);
    await signIn(page, TOKEN);
    await isUp(page);
    expect(page.url()).toContain('#/memory');
    const [cookie] = await page.context().cookies();
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/' });
    expect(cookie?.name).toMatch(new RegExp(`^coterie.*${new URL(board.url).port}`));
    expect(cookie?.value).not.toContain(TOKEN);
    await page.reload();
    await isUp(page);
    await page.getByRole('link', { name: 'Chat' }).click();
    await message(page).fill('a secret draft');
    await page.waitForTimeout(400);
    expect(await page.evaluate('JSON.stringify(localStorage)')).toContain('a secret draft');
    await page.context().setOffline(true);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('alert').filter({ hasText: 'did not answer' }).waitFor();
    await page.context().setOffline(false);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    const stolen = { headers: { cookie: `${cookie?.name}=${cookie?.value}` } };
    expect((await fetch(`${board.url}/api/board/hello`, stolen)).status).toBe(401);
    await page.waitForTimeout(400);
    expect(await page.evaluate('JSON.stringify(localStorage)')).not.toContain('secret');
    await page.goBack();
    await page.waitForTimeout(300);
    expect(await page.getByRole('navigation', { name: 'Main' }).count()).toBe(0);
  });

  it('stands beside another gateway on another port: one browser is signed in to both, and mixes nothing', async () => {
    await begin({ token: TOKEN });
    const other = await startBoard(browser, { config: { board: { port: 0, token: `other ${TOKEN}` } } });
    try {
      const page = await board.open('#/chat');
      await signIn(page, TOKEN);
      await isUp(page);
      const second = await other.openIn(page.context(), '#/chat');
      await signIn(second, `other ${TOKEN}`);
      await isUp(second);
      expect(new Set((await page.context().cookies()).map(({ name }) => name)).size).toBe(2);
      await page.reload();
      await isUp(page);
      await other.gateway.stop('SIGKILL');
      await connection(second).filter({ hasNotText: 'Connected' }).waitFor();
      await typed(second, 'for the other one');
      await articles(second).filter({ hasText: 'Waiting' }).waitFor();
      await typed(page, 'for this one');
      await articles(page).filter({ hasText: 'for this one' }).nth(1).waitFor();
      await page.reload();
      await articles(page).filter({ hasText: 'for this one' }).nth(1).waitFor();
      expect(await articles(page).filter({ hasText: 'for the other one' }).count()).toBe(0);
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
      expect(await second.evaluate('JSON.stringify(localStorage)')).toContain('for the other one');
    } finally {
      await other.closePages();
      await other.close();
    }
  });

  /** A page of somebody else: on another port, and under another name. */
  async function strangers(): Promise<string[]> {
    const server = await listen(
      createServer((_, response) => {
        response.writeHead(200, { 'content-type': 'text/html' });
        response.end('<!doctype html><title>elsewhere</title><body>hello</body>');
      }),
    );
    servers.push(server);
    const { port } = new URL(server.url);
    return [server.url, `http://evil.localhost:${port}`];
  }

  for (const way of ['with a session', 'without a token'] as const) {
    it(`lets a page of another port and of another origin do nothing, ${way}`, async () => {
      await begin(way === 'with a session' ? { token: TOKEN } : {});
      const page = await board.open();
      if (way === 'with a session') await signIn(page, TOKEN);
      await isUp(page);
      for (const at of await strangers()) {
        // Its console is full of refusals, so it is not watched.
        const elsewhere = await page.context().newPage();
        await elsewhere.goto(at);
        expect(await elsewhere.evaluate(attackOn(board.url)), at).toEqual([]);
        const [, , framed] = elsewhere.frames();
        expect(await framed?.locator('main').count(), 'the page in a frame').toBe(0);
        await elsewhere.close();
      }
      await typed(page, 'still here');
      await articles(page).filter({ hasText: 'echo: still here' }).waitFor();
      expect(await page.getByText('from elsewhere').count()).toBe(0);
      expect(board.model.requests.every(({ body }) => !JSON.stringify(body).includes('from elsewhere'))).toBe(
        true,
      );
    });
  }

  it('answers to no foreign name without a token: neither page nor API nor socket', async () => {
    await begin();
    const [at = ''] = await strangers();
    const rebound = (url: string) => url.replace('127.0.0.1', 'rebound.example');
    const misled = await launchChromium(['--host-resolver-rules=MAP rebound.example 127.0.0.1']);
    try {
      const page = await misled.newPage();
      for (const path of ['/', '/icon.svg', '/api/board/hello', '/api/board/rows?room=board_main']) {
        const response = await page.goto(`${rebound(board.url)}${path}`);
        expect([path, response?.status()]).toEqual([path, 403]);
      }
      await page.goto(rebound(at));
      expect(await page.evaluate(attackOn(rebound(board.url)))).toEqual([]);
    } finally {
      await misled.close();
    }
  });

  it('works under a path that a proxy strips, socket and uploads included, without a key for it', async () => {
    await begin({ token: TOKEN });
    const target = new URL(board.url);
    const stripped = (request: IncomingMessage) => request.url?.replace(/^\/coterie/, '') || '/';
    const isInside = (request: IncomingMessage) => request.url?.startsWith('/coterie/') === true;
    const outside: string[] = [];
    const proxy = createServer((request, response) => {
      if (!isInside(request)) {
        outside.push(request.url ?? '');
        response.writeHead(404).end();
        return;
      }
      const { method, headers } = request;
      const onwards = ask(
        { host: target.hostname, port: target.port, path: stripped(request), method, headers },
        (answer) => {
          response.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(response);
        },
      );
      onwards.on('error', () => response.destroy());
      request.pipe(onwards);
    });
    proxy.on('upgrade', (request: IncomingMessage, socket, head) => {
      if (!isInside(request)) return socket.destroy();
      const onwards = connect(Number(target.port), target.hostname, () => {
        const heads = request.rawHeaders.flatMap((name, n, all) =>
          n % 2 === 0 ? `${name}: ${all[n + 1]}\r\n` : [],
        );
        onwards.write(`GET ${stripped(request)} HTTP/1.1\r\n${heads.join('')}\r\n`);
        onwards.write(head);
        socket.pipe(onwards).pipe(socket);
      });
      for (const [one, other] of [
        [socket, onwards],
        [onwards, socket],
      ] as const) {
        one.on('error', () => other.destroy());
        one.on('close', () => other.destroy());
      }
    });
    const front = await listen(proxy);
    servers.push(front);
    const page = await board.open('', { at: `${front.url}/coterie/` });
    await signIn(page, TOKEN);
    await isUp(page);
    await typed(page, 'through the proxy');
    await articles(page).filter({ hasText: 'echo: through the proxy' }).waitFor();
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('some notes') });
    await page.getByRole('button', { name: 'Remove notes.txt' }).waitFor();
    await typed(page, 'with a file');
    await articles(page)
      .getByRole('link', { name: /notes\.txt/ })
      .first()
      .waitFor();
    await page.getByRole('link', { name: 'Memory' }).click();
    await page.getByRole('heading', { level: 1, name: 'Memory' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { level: 1, name: 'Memory' }).waitFor();
    await connection(page).filter({ hasText: 'Connected' }).waitFor();
    expect(page.url()).toBe(`${front.url}/coterie/#/memory`);
    expect(outside).toEqual([]);
  });

  it('takes no address, script or way from its own address', async () => {
    await begin();
    const page = await board.open(
      '?gatewayUrl=ws://evil.invalid/&redirect=//evil.invalid&next=javascript:globalThis.taken=1#//evil.invalid/<script>globalThis.taken=1</script>',
    );
    await isUp(page);
    await message(page).waitFor();
    expect(new URL(page.url()).origin).toBe(board.url);
  });
});
