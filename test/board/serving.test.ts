/** The listener while one gateway takes the place of another: addresses stay, requests wait, sockets come again. */
import { afterEach, describe, expect, it } from 'vitest';
import { type Board, type BoardOptions, LIMITS, startBoard } from '../../src/board/listener.js';
import type { Tasks } from '../../src/core/task.js';
import { quietLog } from '../harness/quiet.js';
import { openSocket, postJson } from './board-harness.js';

const boards: Board[] = [];
afterEach(async () => {
  for (const board of boards.splice(0)) await board.close();
});

const of = (words: string, changed: Partial<BoardOptions> = {}): BoardOptions => ({
  ...{ host: '127.0.0.1', port: 0, token: null, ready: () => ({}), log: quietLog },
  metrics: async () => words,
  ...changed,
});

async function start(options: BoardOptions): Promise<Board> {
  const board = await startBoard(options);
  boards.push(board);
  return board;
}

const metrics = async (board: Board) => (await fetch(`${board.url}/metrics`)).text();

describe('another gateway in the place of the first', () => {
  it('answers under the same address, also over a connection that was open before', async () => {
    const board = await start(of('first'));
    expect(await metrics(board)).toBe('first');
    await board.serve(of('second'));
    expect(await metrics(board)).toBe('second');
  });

  it('is waited for, by all who ask meanwhile', async () => {
    const board = await start(of('first'));
    await board.serve(null);
    let answered = 0;
    const asked = [metrics(board), metrics(board)];
    for (const each of asked) void each.then(() => answered++);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(answered).toBe(0);
    await board.serve(of('second'));
    expect(await Promise.all(asked)).toEqual(['second', 'second']);
  });

  it('is not waited for without end', async () => {
    const board = await start(of('first', { limits: { ...LIMITS, awayMs: 50 } }));
    await board.serve(null);
    const refused = await fetch(`${board.url}/metrics`);
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toBe('2');
    await board.serve(of('second'));
    expect(await metrics(board)).toBe('second');
  });

  it('comes only when the answers of the first have been given', async () => {
    let answer: (text: string) => void = () => {};
    let asked: () => void = () => {};
    const arrived = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const slow = () => {
      asked();
      return new Promise<string>((resolve) => {
        answer = resolve;
      });
    };
    const board = await start(of('', { metrics: slow }));
    const pending = metrics(board);
    await arrived;
    let hasRest = false;
    const rest = board.serve(null).then(() => {
      hasRest = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(hasRest).toBe(false);
    answer('of the first');
    expect(await pending).toBe('of the first');
    await rest;
  });

  it('has the token and the webhook of its own checked', async () => {
    const board = await start(of('first', { token: 'old' }));
    await board.serve(of('second', { token: 'new' }));
    const status = async (token: string) =>
      (await fetch(`${board.url}/metrics`, { headers: { authorization: `Bearer ${token}` } })).status;
    expect(await status('old')).toBe(401);
    expect(await status('new')).toBe(200);
  });

  it('is who the sockets of the first are told to come to', async () => {
    const tasks = { submit: async () => ({ kind: 'full' }) } as unknown as Tasks;
    const board = await start(of('first', { tasks }));
    const socket = await openSocket(board.url);
    await board.serve(of('second', { tasks }));
    await expect.poll(() => socket.closed.code).toBe(1012);
    const next = await openSocket(board.url);
    next.line.close();
  });

  it('is not waited for by who asks while the listener closes', async () => {
    const board = await start(of('first'));
    await board.serve(null);
    const asked = metrics(board);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await board.close();
    expect(await asked).toContain('try again');
    await expect(postJson(`${board.url}/api/tasks`, {})).rejects.toThrow();
  });
});
