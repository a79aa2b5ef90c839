/** Servers of tools over streamable HTTP: the reference server as a process, and one by hand that misbehaves. */
import { spawn } from 'node:child_process';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createSocket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { type Counter, counter, listen } from '../http-server.js';

const EVERYTHING = fileURLToPath(
  new URL('../../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url),
);

export interface Remote {
  url: string;
  close(): Promise<void>;
}

/** The reference server, on a free port, or again on one that it had. */
export async function startEverything(again?: number): Promise<Remote> {
  const port = again ?? (await freePort());
  const child = spawn(process.execPath, [EVERYTHING, 'streamableHttp'], {
    env: { PATH: process.env.PATH, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await new Promise<void>((resolve, reject) => {
    let said = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (said.includes(String(port))) resolve();
    });
    child.once('exit', (code) => reject(new Error(`the reference server ended with ${code}: ${said}`)));
  });
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    close: () =>
      new Promise((resolve) => {
        if (child.exitCode !== null || child.signalCode !== null) return resolve();
        child.removeAllListeners('exit');
        child.once('exit', () => resolve());
        child.kill('SIGKILL');
      }),
  };
}

async function freePort(): Promise<number> {
  const socket = createSocket();
  await new Promise<void>((resolve) => socket.listen(0, '127.0.0.1', resolve));
  const { port } = socket.address() as AddressInfo;
  await new Promise((resolve) => socket.close(resolve));
  return port;
}

export type RemoteMode =
  | 'plain'
  | 'large json'
  | 'large events'
  | 'forgets sessions'
  | 'fails'
  | 'lets nobody in'
  | 'hangs'
  | 'stateless'
  | 'moves away'
  | 'wants a login'
  /** Its `resource_metadata` (RFC 9728, 5.1) is at `elsewhere`. */
  | 'names metadata elsewhere'
  /** Whose metadata names `elsewhere` as the server that logs us in. */
  | 'names a login elsewhere';

export interface HandMade extends Remote {
  mode: RemoteMode;
  calls: Counter;
  /** The headers of every request. */
  seen: IncomingMessage['headers'][];
  /** The bodies of requests for a token. */
  logins: string[];
  elsewhere: string;
}

interface Message {
  id?: number | string;
  method?: string;
  params?: { name?: string; protocolVersion?: string };
}

const TOKEN = 'token-that-was-issued';

/** `mode` may be set anew at any time. */
export async function startRemote(mode: RemoteMode = 'plain'): Promise<HandMade> {
  const calls = counter();
  const seen: HandMade['seen'] = [];
  const logins: string[] = [];
  let sessions = 0;
  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => answer(request, response, body));
  });
  const listening = await listen(server);
  const made: HandMade = {
    ...{ url: `${listening.url}/mcp`, mode, calls, seen, logins, elsewhere: '' },
    close: listening.close,
  };

  function answer(request: IncomingMessage, response: ServerResponse, body: string): unknown {
    const json = (status: number, value: unknown, headers: Record<string, string> = {}) => {
      response
        .writeHead(status, { 'content-type': 'application/json', ...headers })
        .end(JSON.stringify(value));
    };
    const path = request.url ?? '';
    if (path.startsWith('/.well-known/oauth-protected-resource'))
      return json(200, {
        resource: made.url,
        authorization_servers: [made.mode === 'names a login elsewhere' ? made.elsewhere : listening.url],
      });
    if (path.startsWith('/.well-known/'))
      return json(200, {
        issuer: listening.url,
        authorization_endpoint: `${listening.url}/authorize`,
        token_endpoint: `${listening.url}/token`,
        response_types_supported: ['code'],
        grant_types_supported: ['client_credentials'],
        token_endpoint_auth_methods_supported: ['client_secret_basic'],
      });
    if (path === '/token') {
      logins.push(`${request.headers.authorization} ${body}`);
      return json(200, { access_token: TOKEN, token_type: 'Bearer', expires_in: 3600 });
    }
    seen.push(request.headers);
    if (request.method !== 'POST') return response.writeHead(405).end();
    if (made.mode === 'moves away')
      return response.writeHead(307, { location: 'http://127.0.0.1:9/mcp' }).end();
    if (made.mode === 'lets nobody in') return json(401, { error: 'no' });
    if (made.mode === 'names metadata elsewhere')
      return json(401, {}, { 'www-authenticate': `Bearer resource_metadata="${made.elsewhere}/meta"` });
    if (made.mode === 'names a login elsewhere') return json(401, {}, { 'www-authenticate': 'Bearer' });
    if (made.mode === 'wants a login' && request.headers.authorization !== `Bearer ${TOKEN}`) {
      return json(401, {}, { 'www-authenticate': 'Bearer' });
    }
    const { id, method, params } = JSON.parse(body) as Message;
    if (id === undefined) return response.writeHead(202).end();
    const isStateless = made.mode === 'stateless';
    const done = (result: object) =>
      json(200, {
        jsonrpc: '2.0',
        id,
        result: {
          ...(isStateless && { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }),
          ...result,
        },
      });
    if (method === 'initialize' && !isStateless) {
      sessions += 1;
      const result = {
        ...{ protocolVersion: params?.protocolVersion, capabilities: { tools: {} } },
        serverInfo: { name: 'hand', version: '1' },
      };
      return json(200, { jsonrpc: '2.0', id, result }, { 'mcp-session-id': `session-${sessions}` });
    }
    if (method === 'server/discover' && isStateless)
      return done({ supportedVersions: ['2026-07-28'], capabilities: { tools: {} } });
    if (method === 'tools/list')
      return done({ tools: [{ name: 'go', inputSchema: { type: 'object', properties: {} } }] });
    if (method !== 'tools/call')
      return json(isStateless ? 404 : 400, {
        jsonrpc: '2.0',
        id,
        error: { code: -32601, message: 'Method not found' },
      });
    calls.next();
    if (made.mode === 'hangs') return null;
    if (made.mode === 'fails') return json(500, { error: 'broken inside' });
    if (made.mode === 'forgets sessions' && request.headers['mcp-session-id'] === 'session-1')
      return json(404, { error: 'no such session' });
    if (made.mode === 'large json')
      return done({ content: [{ type: 'text', text: `begins ${'x'.repeat(10_000_000)}` }] });
    if (made.mode === 'large events') {
      const result = { content: [{ type: 'text', text: `begins ${'x'.repeat(10_000_000)}` }] };
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      return response.end(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`);
    }
    return done({
      content: [{ type: 'text', text: `went, with ${request.headers.authorization ?? 'no name'}` }],
    });
  }

  return made;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const chunk of request) body += chunk;
  return body;
}
