/** The HTTP listener over real sockets: what it answers, to whom, and how it starts and stops. */
import { request } from 'node:http';
import { createServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { type Board, type BoardOptions, startBoard } from '../../src/board/listener.js';
import type { ChannelStatus } from '../../src/core/channel.js';

const boards: Board[] = [];
afterEach(async () => {
  for (const board of boards.splice(0)) await board.close();
});

const up: ChannelStatus = { connected: true, since: 1_700_000_000_000, lastError: null };
const down: ChannelStatus = { connected: false, since: 1_700_000_001_000, lastError: '401: Unauthorized' };

async function start(changed: Partial<BoardOptions> = {}) {
  const logged: string[] = [];
  const note = (_: object, message: string) => logged.push(message);
  const board = await startBoard({
    host: '127.0.0.1',
    port: 0,
    token: null,
    ready: () => ({ terminal: up }),
    metrics: async () => 'coterie_turns_total 1\n',
    log: { debug: note, info: note, warn: note, error: note },
    ...changed,
  });
  boards.push(board);
  return { board, url: board.url, logged };
}

/** With any headers, `Host` too, which fetch does not let one set. */
function ask(url: string, headers: Record<string, string>, method = 'GET'): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { headers, method }, (answer) => {
      answer.resume();
      answer.on('end', () => resolve(answer.statusCode));
    });
    asked.on('error', reject);
    asked.end();
  });
}

describe('the HTTP listener', () => {
  it('takes a free port, logs where it is, and is gone after close', async () => {
    const { board, url, logged } = await start();
    expect(logged).toEqual([`http listener on http://127.0.0.1:${board.port}`]);
    expect(await (await fetch(`${url}/health`)).json()).toEqual({ status: 'ok' });
    await board.close();
    await expect(fetch(`${url}/health`)).rejects.toThrow();
  });

  it('is ready when every channel is connected, and else says which is not and why', async () => {
    const states: Record<string, ChannelStatus> = { terminal: up, telegram: down };
    const { url } = await start({ ready: () => states });
    const before = await fetch(`${url}/ready`);
    expect(before.status).toBe(503);
    const channels = {
      terminal: { connected: true, since: '2023-11-14T22:13:20.000Z', last_error: null },
      telegram: { connected: false, since: '2023-11-14T22:13:21.000Z', last_error: '401: Unauthorized' },
    };
    expect(await before.json()).toEqual({ status: 'not ready', ...channels, channels });
    states.telegram = up;
    expect((await fetch(`${url}/ready`)).status).toBe(200);
  });

  it('names the gateway that serves each channel, which may be another', async () => {
    const elsewhere = { ...down, heldBy: 'attic' };
    const { url } = await start({
      node: 'kitchen',
      ready: async () => ({ telegram: elsewhere, discord: up }),
    });
    const answer = await fetch(`${url}/ready`);
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({
      telegram: { connected: false, held_by: 'attic' },
      discord: { connected: true, held_by: 'kitchen' },
    });
  });

  it('is not ready while the store does not answer, and is alive', async () => {
    const { url } = await start({ ready: async () => null });
    const answer = await fetch(`${url}/ready`);
    expect([answer.status, await answer.json()]).toEqual([503, { store: 'unavailable' }]);
    expect((await fetch(`${url}/health`)).status).toBe(200);
  });

  it('tells only who may ask for everything why a channel is not connected', async () => {
    const { url } = await start({ token: 'correct horse', ready: () => ({ telegram: down }) });
    const told = async (headers: Record<string, string>) => {
      const body = (await (await fetch(`${url}/ready`, { headers })).json()) as { channels: object };
      return body.channels;
    };
    const state = { connected: false, since: '2023-11-14T22:13:21.000Z' };
    expect(await told({})).toEqual({ telegram: state });
    expect(await told({ authorization: 'Bearer wrong' })).toEqual({ telegram: state });
    const all = { ...state, last_error: '401: Unauthorized' };
    expect(await told({ authorization: 'Bearer correct horse' })).toEqual({ telegram: all });
  });

  it('gives the metrics in their own format', async () => {
    const { url } = await start();
    const answer = await fetch(`${url}/metrics`);
    expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(await answer.text()).toBe('coterie_turns_total 1\n');
  });

  it('answers what it does not have and what goes wrong in JSON, without its inside', async () => {
    const { url, logged } = await start({
      metrics: async () => {
        throw new Error('the inside');
      },
    });
    expect((await fetch(`${url}/nothing`)).status).toBe(404);
    const broken = await fetch(`${url}/metrics`);
    expect([broken.status, await broken.text()]).toEqual([500, '{"error":"internal error"}']);
    expect(logged).toContain('HTTP request failed');
  });

  it('says so when the port is in use', async () => {
    const other = createServer();
    const port = await new Promise<number>((resolve) => {
      other.listen(0, '127.0.0.1', () => resolve((other.address() as { port: number }).port));
    });
    await expect(start({ port })).rejects.toMatchObject({
      code: 'configuration',
      message: expect.stringContaining(`127.0.0.1:${port}: that port is in use`),
    });
    await new Promise((resolve) => other.close(resolve));
  });

  it('lets a request in flight end before it closes', async () => {
    let answer: (text: string) => void = () => {};
    let asked: () => void = () => {};
    const arrived = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const { board, url } = await start({
      metrics: () => {
        asked();
        return new Promise((resolve) => {
          answer = resolve;
        });
      },
    });
    const pending = fetch(`${url}/metrics`);
    await arrived;
    const closed = board.close();
    answer('late');
    expect(await (await pending).text()).toBe('late');
    await closed;
  });
});

describe('who may ask', () => {
  it('is who has the token, save for probes and the webhook', async () => {
    const webhook = {
      ...{ path: '/telegram/webhook', secretHeader: 'x-secret', admits: () => true },
      handle: async () => 200,
    };
    const { url } = await start({ token: 'correct horse', webhook });
    const status = async (path: string, authorization?: string) =>
      (await fetch(`${url}${path}`, { headers: authorization ? { authorization } : {} })).status;
    expect(await status('/health')).toBe(200);
    expect(await status('/ready')).toBe(200);
    expect(await status('/metrics')).toBe(401);
    expect(await status('/metrics', 'Bearer wrong')).toBe(401);
    expect(await status('/metrics', 'Basic correct horse')).toBe(401);
    expect(await status('/metrics', 'Bearer correct horse')).toBe(200);
    expect(await status('/nothing')).toBe(401);
    const post = await fetch(`${url}/telegram/webhook`, { method: 'POST', body: '{}' });
    expect(post.status).toBe(200);
    const refused = await fetch(`${url}/metrics`);
    expect(refused.headers.get('www-authenticate')).toBe('Bearer');
  });

  it('is never the page of another site', async () => {
    const { url, board } = await start();
    const own = `127.0.0.1:${board.port}`;
    expect(await ask(`${url}/health`, { origin: `http://${own}` })).toBe(200);
    expect(await ask(`${url}/metrics`, { origin: `http://${own}` })).toBe(200);
    for (const origin of ['https://evil.example', 'null', `http://127.0.0.1:${board.port + 1}`]) {
      expect(await ask(`${url}/metrics`, { origin })).toBe(403);
      expect(await ask(`${url}/health`, { origin })).toBe(403);
    }
  });

  it('is nobody who comes under a foreign name, where there is no token', async () => {
    const { url, board } = await start();
    const foreign = { host: `rebound.example:${board.port}` };
    expect(await ask(`${url}/metrics`, { host: `localhost:${board.port}` })).toBe(200);
    expect(await ask(`${url}/metrics`, foreign)).toBe(403);
    expect(await ask(`${url}/health`, foreign)).toBe(200);
    const guarded = await start({ token: 'token' });
    const known = { host: 'coterie.example', authorization: 'Bearer token' };
    expect(await ask(`${guarded.url}/metrics`, known)).toBe(200);
  });
});

describe('the webhook', () => {
  it('hands over the update and its secret, and answers with the status it is given', async () => {
    const taken: unknown[] = [];
    const { url } = await start({
      webhook: {
        path: '/telegram/webhook',
        secretHeader: 'x-telegram-bot-api-secret-token',
        admits: (secret) => secret === 's3cret',
        handle: async (body, secret) => {
          taken.push([body, secret]);
          return 200;
        },
      },
    });
    const post = (headers: Record<string, string>, body: string) =>
      fetch(`${url}/telegram/webhook`, { method: 'POST', headers, body });
    const secret = { 'X-Telegram-Bot-Api-Secret-Token': 's3cret' };
    expect((await post(secret, '{"update_id":7}')).status).toBe(200);
    expect((await post({}, '{"update_id":8}')).status).toBe(401);
    expect(taken).toEqual([[{ update_id: 7 }, 's3cret']]);
    expect((await post(secret, 'not json')).status).toBe(400);
    expect((await post(secret, `"${'x'.repeat(2_000_001)}"`)).status).toBe(413);
    expect((await fetch(`${url}/telegram/webhook`)).status).toBe(401);
    expect((await fetch(`${url}/telegram/webhook`, { headers: secret })).status).toBe(404);
    expect(taken).toHaveLength(1);
  });

  it('says that it failed when the update could not be kept, so that it comes again', async () => {
    const handle = async () => {
      throw new Error('the disk is full');
    };
    const webhook = { path: '/telegram/webhook', secretHeader: 'x-secret', admits: () => true, handle };
    const { url } = await start({ webhook });
    const answer = await fetch(`${url}/telegram/webhook`, { method: 'POST', body: '{}' });
    expect(answer.status).toBe(500);
  });
});
