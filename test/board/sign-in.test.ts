/** Signing in to the board: the session, its cookie, and who guesses. All over real connections. */
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { Board, BoardOptions } from '../../src/board/listener.js';
import type { ChannelState } from '../../src/core/channel.js';
import type { AuditEntry } from '../../src/core/journal.js';
import type { Log } from '../../src/core/log.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { quietLog } from '../harness/quiet.js';
import { type Asked, ask, PAGE, raw, startForTest } from './board-harness.js';
import { createTasks } from './stand-in.js';

const TOKEN = 'correct horse battery';
const DAY_MS = 86_400_000;

const boards: Board[] = [];
afterEach(async () => {
  for (const board of boards.splice(0)) await board.close();
});

async function start(changed: Partial<BoardOptions> = {}): Promise<Board> {
  const board = await startForTest({
    token: TOKEN,
    pageFiles: '/nowhere',
    page: async () => PAGE,
    ...changed,
  });
  boards.push(board);
  return board;
}

function createState(): ChannelState & { kept: Map<string, string>; failing: boolean } {
  const kept = new Map<string, string>();
  const state = {
    kept,
    failing: false,
    get: async (names: string[]) => new Map([...kept].filter(([name]) => names.includes(name))),
    async set(values: ReadonlyMap<string, string | null>) {
      if (state.failing) throw new Error('the disk is full');
      for (const [name, value] of values) if (value !== null) kept.set(name, value);
    },
    clear: async () => kept.clear(),
  };
  return state;
}

function signIn(board: Board, token: unknown = TOKEN, headers: Record<string, string> = {}): Promise<Asked> {
  return ask(board, 'POST', '/api/session', {
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ token }),
  });
}

/** As a browser sends it back. */
function cookieIn(answer: Asked): string {
  return String(answer.headers['set-cookie']).split(';')[0] ?? '';
}

async function statusWith(board: Board, cookie: string, path = '/metrics'): Promise<number> {
  return (await ask(board, 'GET', path, { headers: { cookie } })).status;
}

describe('who signs in', () => {
  it('gets a session that opens everything, in a cookie that no script reads, and not the token', async () => {
    const board = await start({ tasks: createTasks().tasks });
    const answer = await signIn(board);
    expect([answer.status, answer.text]).toEqual([204, '']);
    const [cookie = '', ...attributes] = String(answer.headers['set-cookie']).split('; ');
    expect(cookie).toMatch(new RegExp(`^coterie_${board.port}=[\\w-]{43}$`));
    expect(attributes).toEqual(['Path=/', 'Max-Age=2592000', 'HttpOnly', 'SameSite=Strict']);
    for (const path of ['/metrics', '/api/tasks', '/api/openapi.json', '/api/board/hello']) {
      expect(await statusWith(board, cookie, path), path).toBe(200);
      expect(await statusWith(board, '', path), path).toBe(401);
    }
    const line = new WebSocket(`ws://127.0.0.1:${board.port}/ws`, {
      headers: { cookie, origin: board.url },
    });
    await new Promise((resolve, reject) => line.once('open', resolve).once('error', reject));
    line.close();
  });

  it('is told so by the page, which others that hold the token are not', async () => {
    const board = await start();
    const cookie = cookieIn(await signIn(board));
    const hello = async (headers: Record<string, string>) =>
      JSON.parse((await ask(board, 'GET', '/api/board/hello', { headers })).text);
    expect(await hello({ cookie })).toMatchObject({ version: '1', signedInBy: 'session' });
    const authorization = `Bearer ${TOKEN}`;
    expect(await hello({ authorization })).toMatchObject({ version: '1', signedInBy: null });
    const open = await start({ token: null });
    expect(JSON.parse((await ask(open, 'GET', '/api/board/hello')).text)).toMatchObject({ signedInBy: null });
  });

  it('each time gets another', async () => {
    const board = await start();
    const [first, second] = [cookieIn(await signIn(board)), cookieIn(await signIn(board))];
    expect(first).not.toBe(second);
    expect(await statusWith(board, first)).toBe(200);
    expect(await statusWith(board, second)).toBe(200);
  });

  it('needs no token where none is set, and cannot sign in', async () => {
    const board = await start({ token: null });
    expect((await signIn(board)).status).toBe(404);
    expect((await ask(board, 'DELETE', '/api/session')).status).toBe(404);
    expect((await ask(board, 'GET', '/metrics')).headers['set-cookie']).toBe(undefined);
  });

  it('says it in JSON, in a text, and in nothing else', async () => {
    const board = await start();
    for (const token of [null, 7, [TOKEN], { $ne: '' }]) {
      expect((await signIn(board, token)).status, String(token)).toBe(400);
    }
    const headers = { 'content-type': 'application/json' };
    const much = JSON.stringify({ token: 'x'.repeat(10_000) });
    expect((await ask(board, 'POST', '/api/session', { headers, body: much })).status).toBe(413);
    for (const body of ['', '{', '[]', `{"token":"${TOKEN}","more":1}`]) {
      expect((await ask(board, 'POST', '/api/session', { headers, body })).status, body).toBe(400);
    }
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    expect((await ask(board, 'POST', '/api/session', { headers: form, body: `token=${TOKEN}` })).status).toBe(
      415,
    );
    expect((await ask(board, 'GET', `/api/session?token=${encodeURIComponent(TOKEN)}`)).status).toBe(401);
    const { status, headers: got } = await ask(board, 'GET', '/api/session', {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    expect([status, got.allow]).toEqual([405, 'POST, DELETE']);
  });
});

describe('who is not let in', () => {
  const head = 'POST /api/session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';

  it('can make the gateway hold only a little', async () => {
    const board = await start();
    const piece = `400\r\n${'x'.repeat(1_024)}\r\n`;
    const answer = await raw(board.port, `${head}Transfer-Encoding: chunked\r\n\r\n${piece.repeat(10)}`);
    expect(answer).toMatch(/^HTTP\/1.1 413 /);
  });

  it('fills no log by breaking off', async () => {
    const lines: string[] = [];
    const note = (level: string) => (_: object, text: string) => lines.push(`${level}: ${text}`);
    const log = { ...quietLog, debug: note('debug'), error: note('error') } as Log;
    const board = await start({ log });
    const socket = connect(board.port, '127.0.0.1', () => {
      socket.write(`${head}Content-Length: 100\r\n\r\n{`);
      setTimeout(() => socket.destroy(), 100);
    });
    await expect.poll(() => lines).toEqual(['debug: HTTP request broke off']);
  });

  it('leaves connections to the rest of the gateway', async () => {
    const board = await start();
    const sockets = Array.from({ length: 1_100 }, () => connect(board.port, '127.0.0.1'));
    let closed = 0;
    for (const socket of sockets) socket.on('error', () => {}).on('close', () => closed++);
    await expect.poll(() => closed, { timeout: 5_000 }).toBeGreaterThan(0);
    for (const socket of sockets) socket.destroy();
  });
});

describe('a session', () => {
  it('that ends during a handshake opens no socket, and what is streamed is cut off with it', async () => {
    const { tasks, counts } = createTasks();
    await tasks.submit({
      ...{ goal: 'Count.', agent: null, idempotencyKey: null },
      request: { messages: [], plan: null, artifacts: [], memory: [] },
    });
    const board = await start({ tasks });
    const cookie = cookieIn(await signIn(board));
    const streamed = fetch(`${board.url}/api/tasks/task-1/stream`, { headers: { cookie } })
      .then((answer) => answer.text())
      .then(
        () => 'whole',
        () => 'cut',
      );
    await expect.poll(() => counts.followers).toBe(1);
    const line = new WebSocket(`ws://127.0.0.1:${board.port}/ws`, { headers: { cookie } });
    const opened = new Promise<boolean>((resolve) => {
      line.once('open', () => resolve(true)).once('error', () => resolve(false));
    });
    // The code of the sockets is loaded now.
    await new Promise((resolve) => setTimeout(resolve, 5));
    await ask(board, 'DELETE', '/api/session', { headers: { cookie } });
    if (await opened) await expect.poll(() => line.readyState).toBe(WebSocket.CLOSED);
    expect(await streamed).toBe('cut');
  });

  it('is over for everybody at once when one signs out, on disk and on its sockets, too; others are not', async () => {
    const sessions = createState();
    const board = await start({ sessions, tasks: createTasks().tasks });
    const [mine, other] = [cookieIn(await signIn(board)), cookieIn(await signIn(board))];
    const open = async (cookie: string) => {
      const line = new WebSocket(`ws://127.0.0.1:${board.port}/ws`, { headers: { cookie } });
      const closed = new Promise<true>((resolve) => line.once('close', () => resolve(true)));
      await new Promise((resolve, reject) => line.once('open', resolve).once('error', reject));
      return { line, closed };
    };
    const [ended, stays] = [await open(mine), await open(other)];
    const out = await ask(board, 'DELETE', '/api/session', { headers: { cookie: mine, origin: board.url } });
    expect(out.status).toBe(204);
    expect(String(out.headers['set-cookie'])).toMatch(/^coterie_\d+=; Path=\/; Max-Age=0;/);
    expect(await statusWith(board, mine)).toBe(401);
    expect(await ended.closed).toBe(true);
    expect(await statusWith(board, other)).toBe(200);
    expect(stays.line.readyState).toBe(WebSocket.OPEN);
    stays.line.close();
    expect((await ask(board, 'DELETE', '/api/session', { headers: { cookie: mine } })).status).toBe(401);
    const next = await start({ sessions });
    const renamed = (cookie: string) => cookie.replace(/^coterie_\d+/, `coterie_${next.port}`);
    expect(await statusWith(next, renamed(mine))).toBe(401);
    expect(await statusWith(next, renamed(other))).toBe(200);
  });

  it('outlasts a restart; its secret stands nowhere, nor does the token', async () => {
    const sessions = createState();
    const board = await start({ sessions });
    const [name = '', session = ''] = cookieIn(await signIn(board)).split('=');
    await board.close();
    const kept = JSON.stringify([...sessions.kept]);
    expect(kept).not.toContain(session);
    expect(kept).not.toContain(TOKEN);
    const next = await start({ sessions, port: board.port });
    expect(await statusWith(next, `${name}=${session}`)).toBe(200);
  });

  it('is over when the token is another one', async () => {
    const sessions = createState();
    const board = await start({ sessions });
    const cookie = cookieIn(await signIn(board));
    await board.serve({ ...options(board), sessions, token: 'another token' });
    expect(await statusWith(board, cookie)).toBe(401);
    await board.serve({ ...options(board), sessions });
    expect(await statusWith(board, cookie)).toBe(200);
  });

  it('is over after thirty days, also on its sockets', async () => {
    const clock = manualClock();
    const board = await start({ clock, tasks: createTasks().tasks });
    const cookie = cookieIn(await signIn(board));
    const line = new WebSocket(`ws://127.0.0.1:${board.port}/ws`, { headers: { cookie } });
    await new Promise((resolve, reject) => line.once('open', resolve).once('error', reject));
    const closed = new Promise<true>((resolve) => line.once('close', () => resolve(true)));
    await clock.advance(30 * DAY_MS - 1);
    expect(await statusWith(board, cookie)).toBe(200);
    await clock.advance(1);
    expect(await statusWith(board, cookie)).toBe(401);
    expect(await closed).toBe(true);
  });

  it('that ends while others begin does not come back', async () => {
    const sessions = createState();
    const set = sessions.set.bind(sessions);
    const board = await start({ sessions });
    const cookie = cookieIn(await signIn(board));
    let goOn: (() => void) | null = null;
    sessions.set = async (values) => {
      await new Promise<void>((resolve) => {
        goOn = resolve;
      });
      sessions.set = async () => {
        throw new Error('the disk is full');
      };
      return set(values);
    };
    const other = signIn(board);
    await expect.poll(() => goOn).not.toBeNull();
    const out = ask(board, 'DELETE', '/api/session', { headers: { cookie } });
    await expect.poll(() => statusWith(board, cookie)).toBe(401);
    (goOn as (() => void) | null)?.();
    expect([(await other).status, (await out).status]).toEqual([204, 500]);
    expect(await statusWith(board, cookie)).toBe(401);
  });

  it('is over at once where the disk is full, and none begins then', async () => {
    const sessions = createState();
    const board = await start({ sessions });
    const cookie = cookieIn(await signIn(board));
    sessions.failing = true;
    const refused = await signIn(board);
    expect([refused.status, refused.headers['set-cookie']]).toEqual([500, undefined]);
    expect((await ask(board, 'DELETE', '/api/session', { headers: { cookie } })).status).toBe(500);
    expect(await statusWith(board, cookie)).toBe(401);
    sessions.failing = false;
    expect((await signIn(board)).status).toBe(204);
  });

  it('is found among cookies that a neighbour port set, and those open nothing', async () => {
    const board = await start();
    const cookie = cookieIn(await signIn(board));
    const name = `coterie_${board.port}`;
    const tossed = [
      `${name}=${'A'.repeat(43)}`,
      `${name}=`,
      `${name}`,
      'coterie_1=x',
      `${name}=${TOKEN}`,
      '=',
      ';;',
    ];
    expect(await statusWith(board, [...tossed, cookie, ...tossed].join('; '))).toBe(200);
    expect(await statusWith(board, tossed.join('; '))).toBe(401);
    expect(await statusWith(board, cookie.replace(name, `x${name}`))).toBe(401);
    expect(await statusWith(board, `${name}="${cookie.split('=')[1]}"`)).toBe(401);
  });

  it('of two gateways on one host stand beside each other', async () => {
    const [one, two] = [await start(), await start()];
    const both = [cookieIn(await signIn(one)), cookieIn(await signIn(two))].join('; ');
    expect(await statusWith(one, both)).toBe(200);
    expect(await statusWith(two, both)).toBe(200);
  });

  it('is named by the port outside, too, where that is another', async () => {
    const board = await start();
    const cookie = cookieIn(await signIn(board, TOKEN, { host: 'pi.local:9000' }));
    expect(cookie).toMatch(new RegExp(`^coterie_${board.port}_9000=`));
    const status = async (host: string) =>
      (await ask(board, 'GET', '/metrics', { headers: { cookie, host } })).status;
    expect([await status('pi.local:9000'), await status('pi.local:9001')]).toEqual([200, 401]);
  });

  it('makes room for others, the oldest first', async () => {
    const board = await start();
    const cookies: string[] = [];
    for (let n = 0; n < 201; n++) cookies.push(cookieIn(await signIn(board)));
    const [first = '', second = ''] = cookies;
    expect([await statusWith(board, first), await statusWith(board, second)]).toEqual([401, 200]);
  });

  function options(board: Board): BoardOptions {
    return {
      ...{ host: '127.0.0.1', port: board.port, token: TOKEN, pageFiles: '/nowhere', ready: () => ({}) },
      metrics: async () => 'metrics\n',
      log: { debug() {}, info() {}, warn() {}, error() {} },
    };
  }
});

describe('who guesses', () => {
  let clock: ManualClock;
  async function guessed(times: number): Promise<Board> {
    clock = manualClock();
    const board = await start({ clock });
    for (let n = 0; n < times; n++) expect((await signIn(board, `wrong ${n}`)).status).toBe(401);
    return board;
  }

  it('is told that a token is wrong, and after five within a minute to wait, the right one, too', async () => {
    const board = await guessed(5);
    for (const token of ['wrong', TOKEN]) {
      const held = await signIn(board, token);
      expect([held.status, held.headers['retry-after']]).toEqual([429, '1']);
      expect(JSON.parse(held.text).error).toContain('try again in 1 second.');
    }
    await clock.advance(1_000);
    expect((await signIn(board)).status).toBe(204);
  });

  it('waits twice as long each time, a minute at most, and no longer for asking meanwhile', async () => {
    const board = await guessed(5);
    const waits: number[] = [];
    for (let n = 0; n < 9; n++) {
      for (let again = 0; again < 3; again++) await signIn(board, 'meanwhile');
      const held = await signIn(board);
      expect(held.status).toBe(429);
      const seconds = Number(held.headers['retry-after']);
      waits.push(seconds);
      await clock.advance(seconds * 1_000);
      expect((await signIn(board, 'wrong again')).status).toBe(401);
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
  });

  it('begins anew after a minute without a wrong one', async () => {
    const board = await guessed(5);
    await clock.advance(61_000);
    for (let n = 0; n < 4; n++) expect((await signIn(board, 'wrong')).status).toBe(401);
    expect((await signIn(board)).status).toBe(204);
  });

  it('slowly enough is never held up', async () => {
    const board = await guessed(0);
    for (let n = 0; n < 20; n++) {
      expect((await signIn(board, 'wrong')).status).toBe(401);
      await clock.advance(15_000);
    }
  });

  it('by a hundred at once has five tries, whatever else is sent', async () => {
    const board = await guessed(0);
    const forged = (n: number) => ({
      'x-forwarded-for': `10.0.0.${n}`,
      'user-agent': `${n}`,
      cookie: `a=${n}`,
    });
    const all = await Promise.all(
      Array.from({ length: 100 }, (_, n) => signIn(board, n === 50 ? TOKEN : 'wrong', forged(n))),
    );
    const of = (status: number) => all.filter((answer) => answer.status === status).length;
    expect(of(401)).toBeLessThanOrEqual(5);
    expect(of(401) + of(204) + of(429)).toBe(100);
    expect(of(429)).toBeGreaterThanOrEqual(94);
  });

  it('is in the audit log, the wrong ones counted, without a token, and at most once in ten minutes', async () => {
    const noted: AuditEntry[] = [];
    clock = manualClock();
    const audit = { record: async () => {}, note: async (entry: AuditEntry) => void noted.push(entry) };
    const page = new Proxy(PAGE, {
      get: (parts, name) => (name === 'work' ? { audit } : Reflect.get(parts, name)),
    });
    const board = await start({ clock, page: async () => page });
    const cookie = cookieIn(await signIn(board));
    for (let n = 0; n < 40; n++) {
      await signIn(board, `guess ${n}`);
      await clock.advance(61_000);
    }
    await ask(board, 'DELETE', '/api/session', { headers: { cookie } });
    const what = noted.map((entry) => `${entry.kind} ${entry.who}: ${entry.what}`);
    expect(what).toEqual([
      'session board_owner: signed in to the board',
      'session gateway: the board got 1 wrong token',
      'session gateway: the board got 10 wrong tokens',
      'session gateway: the board got 10 wrong tokens',
      'session gateway: the board got 10 wrong tokens',
      'session board_owner: signed out of the board',
    ]);
    expect(noted.every(({ details }) => details?.from === '127.0.0.1')).toBe(true);
    expect(JSON.stringify(noted)).not.toMatch(new RegExp(`guess|${TOKEN}`));
  });

  it('holds up nobody who is signed in, by session or by token', async () => {
    const board = await guessed(0);
    const cookie = cookieIn(await signIn(board));
    for (let n = 0; n < 5; n++) await signIn(board, 'wrong');
    expect((await signIn(board)).status).toBe(429);
    const authorization = `Bearer ${TOKEN}`;
    expect(await statusWith(board, cookie)).toBe(200);
    expect((await ask(board, 'GET', '/metrics', { headers: { authorization } })).status).toBe(200);
    expect((await signIn(board, TOKEN, { authorization })).status).toBe(204);
    expect((await signIn(board, TOKEN, { cookie })).status).toBe(204);
    expect((await ask(board, 'GET', '/')).status).not.toBe(429);
    expect((await ask(board, 'GET', '/health')).status).toBe(200);
  });
});
