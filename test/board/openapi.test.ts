/** The description of the interface, against its standard and against what a real listener answers. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { routes } from '../../src/board/app.js';
import { createDoor } from '../../src/board/guard.js';
import type { Board, BoardOptions } from '../../src/board/listener.js';
import { createPatience, openSessions } from '../../src/board/sessions.js';
import { Fault } from '../../src/core/errors.js';
import { manualClock } from '../fakes/clock.js';
import { quietLog } from '../harness/quiet.js';
import { startForTest } from './board-harness.js';
import { createArtifacts, createTasks, createWorkspace } from './stand-in.js';

interface Described {
  requestBody?: { content: Record<string, { schema: object }> };
  responses: Record<
    string,
    { content?: Record<string, { schema: object }>; headers?: Record<string, object> }
  >;
}

const authorization = 'Bearer correct horse';
const stage = createTasks({ most: 4 });
const failing: { with: Error | null } = { with: null };
const up = { connected: true, since: 0, lastError: null };
let channels: Record<string, typeof up> = { terminal: up };
let folder: string;
let options: Partial<BoardOptions>;
let board: Board;
let paths: Record<string, Record<string, Described>>;
let document: Record<string, unknown>;

/** The same port, whose every verb fails while a test wants it to. */
function breakable<Port extends object>(port: Port): Port {
  return new Proxy(port, {
    get(target, name, receiver) {
      if (failing.with) throw failing.with;
      return Reflect.get(target, name, receiver);
    },
  });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-openapi-'));
  await writeFile(join(folder, 'a.txt'), 'hello');
  const types = { 't/a': { file: 'a.txt', type: 'text/plain' } };
  const broken = <T>(value: () => T) => {
    if (failing.with) throw failing.with;
    return value();
  };
  options = {
    token: 'correct horse',
    tasks: breakable(stage.tasks),
    workspace: breakable(createWorkspace()),
    artifacts: breakable(createArtifacts(folder, types).artifacts),
    streams: { streams: 1, quietMs: 1_000 },
    ready: () => broken(() => channels),
    metrics: async () => broken(() => 'm 1\n'),
  };
  board = await startForTest(options);
  document = (await (await ask('GET', '/api/openapi.json')).json()) as Record<string, unknown>;
  paths = document.paths as typeof paths;
});
afterAll(async () => {
  await board.close();
  await rm(folder, { recursive: true });
});

function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  return fetch(`${board.url}${path}`, {
    method,
    headers: { authorization, ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
}

/** A way to each answer that is an operation's own. */
const TASK = { goal: 'Count.' };
const OWN: Record<string, Record<number, () => Promise<Response>>> = {
  'GET /health': { 200: () => ask('GET', '/health') },
  'GET /ready': {
    200: () => ask('GET', '/ready'),
    503: async () => {
      channels = { terminal: { ...up, connected: false } };
      const answer = await ask('GET', '/ready');
      channels = { terminal: up };
      return answer;
    },
  },
  'GET /metrics': { 200: () => ask('GET', '/metrics') },
  'GET /api/openapi.json': { 200: () => ask('GET', '/api/openapi.json') },
  'GET /ws': { 426: () => ask('GET', '/ws') },
  'POST /api/tasks': {
    202: () => ask('POST', '/api/tasks', { ...TASK, idempotency_key: 'k' }),
    400: () => ask('POST', '/api/tasks', {}),
    409: () => ask('POST', '/api/tasks', { goal: 'Other.', idempotency_key: 'k' }),
    429: async () => {
      for (let n = 0; n < 4; n++) await ask('POST', '/api/tasks', TASK);
      return ask('POST', '/api/tasks', TASK);
    },
  },
  'GET /api/tasks': { 200: () => ask('GET', '/api/tasks'), 400: () => ask('GET', '/api/tasks?limit=no') },
  'GET /api/tasks/{id}': {
    200: () => ask('GET', '/api/tasks/task-1'),
    404: () => ask('GET', '/api/tasks/none'),
  },
  'POST /api/tasks/{id}/stop': {
    200: () => ask('POST', '/api/tasks/task-2/stop'),
    400: () => ask('POST', '/api/tasks/task-2/stop', { why: 'x' }),
    404: () => ask('POST', '/api/tasks/none/stop'),
    409: () => ask('POST', '/api/tasks/task-2/stop'),
  },
  'POST /api/tasks/{id}/messages': {
    202: () => ask('POST', '/api/tasks/task-1/messages', { message: 'Hurry.' }),
    400: () => ask('POST', '/api/tasks/task-1/messages', { message: '' }),
    404: () => ask('POST', '/api/tasks/none/messages', { message: 'x' }),
    409: () => ask('POST', '/api/tasks/task-2/messages', { message: 'x' }),
  },
  'GET /api/tasks/{id}/stream': {
    200: () => ask('GET', '/api/tasks/task-2/stream'),
    204: async () => {
      const told = await fetch(`${board.url}/api/tasks/task-2/stream`, { headers: { authorization } });
      const id = /^id: (.+-end)$/m.exec(await told.text())?.[1] ?? '';
      return ask('GET', '/api/tasks/task-2/stream', undefined, { 'last-event-id': id });
    },
    404: () => ask('GET', '/api/tasks/none/stream'),
    429: async () => {
      const leave = new AbortController();
      await fetch(`${board.url}/api/tasks/task-1/stream`, {
        headers: { authorization },
        signal: leave.signal,
      });
      await expect.poll(() => stage.counts.followers, { timeout: 20_000 }).toBe(1);
      const answer = await ask('GET', '/api/tasks/task-1/stream');
      leave.abort();
      return answer;
    },
  },
  'GET /api/workspace/plan': { 200: () => ask('GET', '/api/workspace/plan') },
  'PUT /api/workspace/plan': {
    200: () => ask('PUT', '/api/workspace/plan', { content: { goal: 'x', steps: [] } }),
    400: () => ask('PUT', '/api/workspace/plan', { content: 7 }),
    409: () => ask('PUT', '/api/workspace/plan', { content: 'x' }, { 'if-match': '"old"' }),
  },
  'GET /api/workspace/memory': { 200: () => ask('GET', '/api/workspace/memory') },
  'PUT /api/workspace/memory': {
    200: () => ask('PUT', '/api/workspace/memory', { content: 'x' }),
    400: () => ask('PUT', '/api/workspace/memory', { content: { goal: 'x', steps: [] } }),
    409: () => ask('PUT', '/api/workspace/memory', { content: 'x' }, { 'if-match': '"old"' }),
  },
  'GET /api/artifacts/{task}/{id}': {
    200: () => ask('GET', '/api/artifacts/t/a'),
    400: () => ask('GET', '/api/artifacts/t/a%2Fb'),
    404: () => ask('GET', '/api/artifacts/t/none'),
  },
};

async function broken(method: string, path: string, body: unknown, error: Error): Promise<Response> {
  failing.with = error;
  try {
    return await ask(method, path, body);
  } finally {
    failing.with = null;
  }
}

/** What the door and the gateway's own troubles answer to any operation. */
function common(name: string): Record<number, () => Promise<Response>> {
  const [method = '', template = ''] = name.split(' ');
  const path = template
    .replace('{id}', template.includes('artifacts') ? 'a' : 'task-1')
    .replace('{task}', 't');
  const good = {
    '/api/tasks': TASK,
    '/messages': { message: 'x' },
    '/plan': { content: '' },
    '/memory': { content: '' },
  };
  const body = method === 'GET' ? undefined : Object.entries(good).find(([end]) => path.endsWith(end))?.[1];
  return {
    400: async () => {
      const { status, text } = await withBody(path);
      return new Response(text, { status, headers: { 'content-type': 'application/json' } });
    },
    401: () => ask(method, path, body, { authorization: 'Bearer wrong' }),
    403: () => ask(method, path, body, { origin: 'https://evil.example' }),
    413: () => ask(method, path, 'x'.repeat(2_000_001)),
    415: () => ask(method, path, body ?? '{}', { 'content-encoding': 'gzip' }),
    500: () => broken(method, path, body, new Error('the inside')),
    503: () => broken(method, path, body, new Fault('memory_unavailable', 'the inside')),
  };
}

/** A GET with a body, which fetch does not send. */
async function withBody(path: string): Promise<{ status: number; text: string }> {
  const { request } = await import('node:http');
  return new Promise((resolve, reject) => {
    const asked = request(
      `${board.url}${path}`,
      { headers: { authorization, 'content-length': 2 } },
      (answer) => {
        let text = '';
        answer.on('data', (piece) => {
          text += piece;
        });
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }));
      },
    );
    asked.on('error', reject);
    asked.end('{}');
  });
}

/** Answers that nothing can lead to here: these touch no port, and the handshake is in socket.test.ts. */
const UNREACHED = new Set([
  ...['GET /health 500', 'GET /health 503', 'GET /api/openapi.json 500', 'GET /api/openapi.json 503'],
  ...['GET /ws 101', 'GET /ws 429', 'GET /ws 500', 'GET /ws 503'],
]);

async function fits(answer: Response, described: Described): Promise<void> {
  const { content = {}, headers = {} } = described.responses[answer.status] ?? {};
  const [media = '', { schema } = { schema: {} }] = Object.entries(content)[0] ?? [];
  const type = answer.headers.get('content-type') ?? '';
  expect(media === '*/*' || type.startsWith(media), `${type} is ${media}`).toBe(true);
  for (const name of Object.keys(headers)) expect(answer.headers.has(name), name).toBe(true);
  if (media !== 'application/json') return void (await answer.body?.cancel());
  expect(z.fromJSONSchema(schema as never).safeParse(await answer.json()).error).toBeUndefined();
}

describe('the description', () => {
  it('is OpenAPI 3.1', async () => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(structuredClone(document));
    expect({ valid, errors, version: validator.version }).toEqual({
      valid: true,
      errors: undefined,
      version: '3.1',
    });
    expect(JSON.stringify(document)).not.toContain('$schema');
  });

  it('has every route, and the routes have all of it', async () => {
    const clock = manualClock();
    const sessions = await openSessions(undefined, clock, () => 'session');
    const app = await routes(
      {
        ...(options as BoardOptions),
        log: quietLog,
        webhook: {
          path: '/telegram/webhook',
          secretHeader: 'x',
          admits: () => true,
          handle: async () => 200,
        },
      },
      { door: createDoor(options as BoardOptions, sessions), sessions, patience: createPatience(clock) },
      new AbortController().signal,
    );
    const there = app.routes
      .filter(({ method }) => method !== 'ALL')
      .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`)
      .filter((route) => route !== 'POST /telegram/webhook');
    const described = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    // A route has an entry for each of its handlers.
    expect([...new Set(there)].sort()).toEqual(described.sort());
    expect(Object.keys(OWN).sort()).toEqual(described);
  });

  it('tells what a body has to look like, by the same schema that looks at it', () => {
    const { schema } = paths['/api/tasks']?.post?.requestBody?.content['application/json'] ?? {};
    const body = z.fromJSONSchema(schema as never);
    expect(body.safeParse({ goal: 'x', plan: { goal: 'y', steps: [] }, memory: 'z' }).success).toBe(true);
    for (const wrong of [
      {},
      { goal: '' },
      { goal: 'x', gaol: 1 },
      { goal: 'x', plan: 7 },
      { goal: 'x', messages: [{}] },
    ]) {
      expect(body.safeParse(wrong).success).toBe(false);
    }
  });
});

describe('what the listener answers is what is described:', () => {
  it.each(Object.keys(OWN))('%s', async (name) => {
    const [method = '', path = ''] = name.split(' ');
    const described = paths[path]?.[method.toLowerCase()];
    if (!described) throw new Error(`${name} is not described`);
    const ways = { ...common(name), ...OWN[name] };
    for (const status of Object.keys(described.responses).map(Number)) {
      if (UNREACHED.has(`${name} ${status}`)) continue;
      const answer = await ways[status]?.();
      expect(answer?.status, `${name} ${status}`).toBe(status);
      if (answer) await fits(answer, described);
    }
  });
});
