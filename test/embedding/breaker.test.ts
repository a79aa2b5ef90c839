/** The breaker, on a clock moved by hand. */
import { expect, it } from 'vitest';
import { Fault } from '../../src/core/errors.js';
import { createBreaker } from '../../src/embedding/embedder.js';
import { manualClock } from '../fakes/clock.js';
import { keptLog } from './support.js';

function setUp() {
  const clock = manualClock();
  const log = keptLog();
  const server = { works: true, trials: 0, asked: 0 };
  const trial = async () => {
    server.trials += 1;
    if (!server.works) throw new Error('still down');
  };
  const breaker = createBreaker('there', trial, clock, log);
  const pass = (signal = new AbortController().signal) =>
    breaker
      .pass(async () => {
        server.asked += 1;
        if (!server.works) throw new Error('down');
        return 'answer';
      }, signal)
      .catch((error: unknown) => error);
  return { clock, log, server, breaker, pass };
}

it('lets everybody pass while all is well, and after one failure', async () => {
  const { breaker, pass, server } = setUp();
  expect(await pass()).toBe('answer');
  server.works = false;
  expect(await pass()).toEqual(new Error('down'));
  expect(breaker.state()).toEqual({ kind: 'ok' });
  server.works = true;
  await pass();
  server.works = false;
  await pass();
  expect(breaker.state()).toEqual({ kind: 'ok' });
});

it('opens after two failures in a row, and then asks nobody', async () => {
  const { breaker, pass, server, clock } = setUp();
  server.works = false;
  const since = clock.now();
  await pass();
  await clock.advance(100);
  await pass();
  expect(breaker.state()).toEqual({ kind: 'failing', since, reason: 'down' });
  const refused = await pass();
  expect(refused).toBeInstanceOf(Fault);
  expect(String(refused)).toContain('down');
  expect(server.asked).toBe(2);
});

it('tries by itself, less and less often, and closes when that works', async () => {
  const { breaker, pass, server, clock, log } = setUp();
  server.works = false;
  await pass();
  await pass();
  await clock.advance(1_000);
  expect(server.trials).toBe(1);
  await clock.advance(1_999);
  expect(server.trials).toBe(1);
  await clock.advance(1);
  expect(server.trials).toBe(2);
  await clock.advance(4_000 + 8_000 + 15_000 + 15_000);
  expect(server.trials).toBe(6);
  expect(breaker.state()).toMatchObject({ kind: 'failing', reason: 'still down' });
  server.works = true;
  await clock.advance(15_000);
  expect(breaker.state()).toEqual({ kind: 'ok' });
  expect(await pass()).toBe('answer');
  expect(log.lines.map((line) => line.split(' {')[0])).toEqual([
    'embeddings failed; searching by keywords meanwhile',
    'embeddings work again',
  ]);
  await clock.advance(60_000);
  expect(server.trials).toBe(7);
});

it('counts whoever waited in vain while nobody got an answer, and not whoever lost interest', async () => {
  const { breaker, pass, clock } = setUp();
  const wait = async (ms: number) => {
    const caller = new AbortController();
    const asked = breaker
      .pass(() => new Promise((_, reject) => caller.signal.addEventListener('abort', reject)), caller.signal)
      .catch(() => {});
    await clock.advance(ms);
    caller.abort();
    await asked;
  };
  for (let n = 0; n < 30; n++) await wait(400);
  expect(breaker.state().kind).toBe('ok');
  await pass();
  for (let n = 0; n < 12; n++) await wait(800);
  expect(breaker.state().kind).toBe('ok');
  await wait(800);
  await wait(800);
  expect(breaker.state()).toMatchObject({ kind: 'failing', reason: 'there does not answer in time' });
});

it('does nothing more once it is closed', async () => {
  const { breaker, pass, server, clock } = setUp();
  server.works = false;
  await pass();
  await pass();
  breaker.close();
  await clock.advance(60_000);
  expect(server.trials).toBe(0);
  expect(await pass()).toBeInstanceOf(Fault);
});
