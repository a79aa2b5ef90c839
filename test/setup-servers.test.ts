/** Model servers for the setup: which programs on a port count as one, and what one request tells. */
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { findServers, tryServer } from '../src/setup-servers.js';
import { straight } from './harness/straight.js';

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function serve(answer: RequestListener): Promise<number> {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

const json =
  (body: unknown, status = 200): RequestListener =>
  (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };

describe('servers on this machine', () => {
  it('are those that list models, with their names', async () => {
    const asked: string[] = [];
    const port = await serve((request, response) => {
      asked.push(`${request.method} ${request.url}`);
      json({ data: [{ id: 'one' }, { id: 7 }, null, { id: 'two' }] })(request, response);
    });
    expect(await findServers({ Ollama: port })).toEqual([
      { name: 'Ollama', address: `http://127.0.0.1:${port}/v1`, models: ['one', 'two'] },
    ]);
    expect(asked).toEqual(['GET /v1/models']);
  });

  it.each<[string, RequestListener]>([
    ['answers with a page', (_, response) => response.end('<h1>router</h1>')],
    ['answers with other JSON', json({ status: 'ok' })],
    ['lists nothing that is a list', json({ data: 'models' })],
    ['knows no such path', json({ data: [] }, 404)],
    ['leads elsewhere', (_, response) => void response.writeHead(302, { location: '/v1/other' }).end()],
    ['hangs up', (request) => void request.socket.destroy()],
    ['never answers', () => {}],
    [
      'sends without end',
      (_, response) => {
        const more = () => response.writable && response.write('['.repeat(65_536), more);
        more();
      },
    ],
  ])('are not what %s, nor a port where nobody listens', async (_, answer) => {
    const port = await serve(answer);
    const nobody = await serve(() => {});
    servers.pop()?.close();
    expect(await findServers({ 'LM Studio': port, 'llama.cpp': nobody })).toEqual([]);
  });
});

describe('a server that is tried', () => {
  const KEY = 'sk-key-of-a-test-0123456789';
  const ask = async (answer: RequestListener, changed = {}) => {
    const port = await serve(answer);
    const server = { address: `http://127.0.0.1:${port}/v1/`, key: KEY, model: 'm', headers: {}, ...changed };
    return tryServer(server, straight, ['stored-secret']);
  };

  it('works where it begins to answer, in events or as a document, and is not read further', async () => {
    const event = 'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n';
    expect(await ask((_, response) => void response.write(event))).toMatchObject({ works: true, says: 'm' });
    expect(await ask(json({ choices: [{ message: { content: 'ready' } }] }))).toMatchObject({ works: true });
  });

  it('gets one request, to its path, with the key', async () => {
    const seen: unknown[] = [];
    await ask((request, response) => {
      seen.push([request.method, request.url, request.headers.authorization]);
      json({}, 500)(request, response);
    });
    expect(seen).toEqual([['POST', '/v1/chat/completions', `Bearer ${KEY}`]]);
  });

  it.each<[string, RequestListener, string | RegExp]>([
    ['its own message', json({ error: { message: 'no such model' } }, 404), '404: no such model'],
    ['a message of another form', json({ error: 'loading' }, 503), '503: loading'],
    [
      'an error inside of a stream',
      (_, r) => r.end('data: {"error":{"message":"out of memory"}}\n\n'),
      'out of memory',
    ],
    [
      'a page without its marks',
      (_, r) => r.writeHead(502).end('<style>a{}</style><h1>Bad <b>gateway</b></h1>'),
      '502: Bad gateway',
    ],
    ['nothing at all', (_, r) => r.end(), 'it sent no answer of a model'],
    [
      'control characters and keys',
      json({ error: { message: `\u001b[2J${KEY} stored-secret\nend` } }, 401),
      /^401: [ -~␛]*\[redacted\] \[redacted\][ -~␊]*end$/u,
    ],
    ['more than 200 characters', json({ error: { message: 'x'.repeat(5_000) } }, 400), /^400: x{1,195}…?$/],
  ])('is told as %s', async (_, answer, says) => {
    const tried = await ask(answer);
    expect(tried.works).toBe(false);
    expect(tried.says).toEqual(typeof says === 'string' ? says : expect.stringMatching(says));
    expect(tried.says.length).toBeLessThanOrEqual(200);
  });

  it('is not followed elsewhere', async () => {
    const other: string[] = [];
    const target = await serve((request, response) => {
      other.push(request.url ?? '');
      json({ choices: [{}] })(request, response);
    });
    const location = `http://127.0.0.1:${target}/v1/chat/completions`;
    const tried = await ask((_, response) => void response.writeHead(307, { location }).end());
    expect(tried.works).toBe(false);
    expect(other).toEqual([]);
  });

  it('is said to be away in plain words', async () => {
    const port = await serve(() => {});
    servers.pop()?.close();
    const tried = await tryServer(
      { address: `http://127.0.0.1:${port}/v1`, key: null, model: 'm', headers: {} },
      straight,
      [],
    );
    expect(tried).toMatchObject({ works: false, says: expect.stringMatching(/ECONNREFUSED/) });
  });
});
