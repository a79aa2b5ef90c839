/** The board on a free port, for tests, and what they ask it. */
import { randomUUID } from 'node:crypto';
import { type IncomingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';
import { WebSocket } from 'ws';
import type { ChatParts } from '../../src/board/chat.js';
import { type Board, type BoardOptions, startBoard } from '../../src/board/listener.js';
import type { PageParts } from '../../src/board/page.js';
import type { Store } from '../../src/core/store.js';
import { quietLog } from '../harness/quiet.js';

export async function startForTest(changed: Partial<BoardOptions> = {}): Promise<Board> {
  return startBoard({
    ...{ host: '127.0.0.1', port: 0, token: null, ready: () => ({}), log: quietLog },
    metrics: async () => 'metrics\n',
    ...changed,
  });
}

export async function postJson(url: string, body: unknown, headers: Record<string, string> = {}) {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

/** For tests that ask the page's server nothing but `hello`: its other parts are empty. */
export const PAGE = new Proxy(
  {
    version: '1',
    work: { audit: { record: async () => {}, note: async () => {} } },
    setup: { isDue: async () => false },
  } as object,
  {
    get: (parts, name) => Reflect.get(parts, name) ?? {},
  },
) as PageParts;

export interface Asked {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

/** With any headers, those too that fetch does not let one set, and the path as it is. */
export function ask(
  { port }: Board,
  method: string,
  path: string,
  { headers = {}, body = '' }: { headers?: Record<string, string>; body?: string } = {},
): Promise<Asked> {
  const length = body === '' ? {} : { 'content-length': Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const options = {
      host: '127.0.0.1',
      port,
      agent: false,
      method,
      path,
      headers: { ...length, ...headers },
    };
    const asked = request(options, (answer) => {
      let text = '';
      answer.on('data', (piece) => {
        text += piece;
      });
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text }));
    });
    asked.on('error', reject);
    asked.end(body);
  });
}

/** Sends exactly these bytes, `next` once something came back. Resolves with all that came until the other side closed. */
export function raw(port: number, text: string, next?: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    let heard = '';
    socket.on('data', (piece) => {
      if (heard === '' && next !== undefined) socket.write(next);
      heard += piece;
    });
    socket.on('error', () => resolve(heard));
    socket.on('close', () => resolve(heard));
  });
}

export interface Heard {
  type: string;
  taskId: string | null;
  [field: string]: unknown;
}

/** A client of the socket: all that it heard, in order. */
export async function openSocket(
  url: string,
  options: { headers?: Record<string, string>; autoPong?: boolean } = {},
) {
  const line = new WebSocket(`${url.replace('http', 'ws')}/ws`, options);
  const heard: Heard[] = [];
  const closed: { code: number | null } = { code: null };
  line.on('message', (data) => heard.push(JSON.parse(String(data))));
  line.on('close', (code) => {
    closed.code = code;
  });
  await new Promise<void>((resolve, reject) => {
    line.once('open', resolve);
    line.once('error', reject);
  });
  line.on('error', () => {});
  return {
    ...{ line, heard, closed },
    say: (message: unknown) => line.send(typeof message === 'string' ? message : JSON.stringify(message)),
  };
}

/** The page over a store, without a desk unless one is given. */
export function pageForTest(
  store: Store,
  changed: Partial<Record<keyof ChatParts, unknown>> = {},
): PageParts {
  const nothing = async () => {
    throw new Error('not in this test');
  };
  const chat = {
    feed: store,
    chat: store.chat,
    desk: { take: nothing, press: nothing, keep: nothing, watch: () => () => {} },
    personas: { list: async () => [], create: nothing },
    audit: { record: async () => {} },
    commands: [],
    mediaPath: (file: string) => file,
    plainArguments: (json: string) => json,
    now: Date.now,
    newId: randomUUID,
    ...changed,
  } as unknown as ChatParts;
  // Other groups of routes are there, but nobody asks them.
  const parts = new Proxy<Record<string, unknown>>(
    { version: 'test', watch: store.watch, chat },
    { get: (known, name: string) => known[name] ?? {} },
  );
  return parts as unknown as PageParts;
}
