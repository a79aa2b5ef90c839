/** Which rooms may run now: side by side up to a limit, each once at a time, after the commands that came before. */
import { describe, expect, it } from 'vitest';
import { createScheduler, type RoomEnd, type RoomRun } from '../../src/conversation/rooms/scheduler.js';
import type { BaseServices } from '../../src/conversation/services.js';
import { createSlots } from '../../src/core/concurrency.js';
import type { Log } from '../../src/core/log.js';
import type { Claim } from '../../src/core/store.js';
import { manualClock } from '../fakes/clock.js';
import { quietLog } from '../harness/quiet.js';

/** Lets everything run that waits for nothing but its turn. */
const settle = async () => {
  for (let n = 0; n < 10; n++) await new Promise((resolve) => setImmediate(resolve));
};

describe('slots', () => {
  it('are shared up to the limit, in order, and left once', async () => {
    const slots = createSlots(2);
    const entered: string[] = [];
    const leave = new Map<string, () => void>();
    for (const name of ['a', 'b', 'c', 'd']) {
      void slots.enter().then((over) => {
        entered.push(name);
        leave.set(name, over);
      });
    }
    await settle();
    expect(entered).toEqual(['a', 'b']);
    leave.get('a')?.();
    leave.get('a')?.();
    await settle();
    expect(entered).toEqual(['a', 'b', 'c']);
    leave.get('b')?.();
    await settle();
    expect(entered).toEqual(['a', 'b', 'c', 'd']);
  });
});

/** A scheduler whose rooms end when they are told to. */
function bench() {
  const manual = manualClock();
  let shiftMs = 0;
  const clock = { ...manual, now: () => manual.now() + shiftMs };
  const running = new Map<string, { run: RoomRun; end(with_: RoomEnd): void }>();
  const begun: string[] = [];
  const released: string[] = [];
  const logged: string[] = [];
  const log: Log = { ...quietLog, error: (_fields, message) => void logged.push(message) };
  const store = {
    hold: async ({ room }: Claim, until: number | null) => {
      if (until === null) released.push(room);
      return true;
    },
  };
  const scheduler = createScheduler(
    { store, clock, log, mine: { has: () => true } } as unknown as BaseServices,
    () => 0,
    (run) => {
      begun.push(run.room);
      return new Promise((resolve) => running.set(run.room, { run, end: resolve }));
    },
  );
  return {
    ...{ clock, scheduler, running, begun, released, logged },
    setClockBack: (ms: number) => {
      shiftMs -= ms;
    },
    wake: (...rooms: string[]) => {
      for (const room of rooms) scheduler.wake(room, 'settled');
    },
    end: async (room: string, end: RoomEnd = { kind: 'done' }) => {
      running.get(room)?.end(end);
      await settle();
    },
  };
}

it('a room waits no longer because the clock is set back while it runs', async () => {
  const on = bench();
  on.wake('test_1');
  await settle();
  on.wake('test_1');
  on.setClockBack(60_000);
  await on.end('test_1');
  expect(on.begun).toHaveLength(2);
  on.setClockBack(60_000);
  await on.end('test_1', { kind: 'again', afterMs: 1_000 });
  await on.clock.advance(999);
  expect(on.begun).toHaveLength(2);
  await on.clock.advance(1);
  await settle();
  expect(on.begun).toHaveLength(3);
});

it('a hundred rooms run at once; further ones wait for a place', async () => {
  const on = bench();
  on.wake(...Array.from({ length: 100 }, (_, n) => `test_${n}`));
  for (let n = 0; n < 20; n++) await settle();
  expect(on.begun).toHaveLength(100);
  on.wake('test_last');
  await settle();
  expect(on.begun).not.toContain('test_last');
  await on.end('test_0');
  expect(on.begun).toContain('test_last');
});

describe('a room', () => {
  it('runs once at a time, and again for what woke it meanwhile', async () => {
    const on = bench();
    on.wake('test_a');
    await settle();
    on.wake('test_a', 'test_a');
    await settle();
    expect(on.begun).toEqual(['test_a']);
    await on.end('test_a');
    expect(on.begun).toEqual(['test_a', 'test_a']);
    await on.end('test_a');
    expect(on.begun).toHaveLength(2);
  });

  it('waits for the commands that were given before, however long they take', async () => {
    const on = bench();
    let over: () => void = () => {};
    on.scheduler.holdBack('test_a', new Promise((resolve) => (over = resolve)));
    on.wake('test_a', 'test_b');
    await settle();
    expect(on.begun).toEqual(['test_b']);
    over();
    await settle();
    expect(on.begun).toEqual(['test_b', 'test_a']);
  });

  it('waits for a command, too, that is given while it waits for another', async () => {
    const on = bench();
    const over: (() => void)[] = [];
    const give = () => on.scheduler.holdBack('test_a', new Promise((resolve) => over.push(resolve)));
    give();
    on.wake('test_a');
    await settle();
    give();
    over[0]?.();
    await settle();
    expect(on.begun).toEqual([]);
    over[1]?.();
    await settle();
    expect(on.begun).toEqual(['test_a']);
  });

  it('that cannot be worked on is tried again later and later, and says so', async () => {
    const on = bench();
    on.wake('test_a');
    await settle();
    const fail = async () => {
      on.running.get('test_a')?.end(Promise.reject(new Error('a bug')) as never);
      await settle();
    };
    await fail();
    expect(on.begun).toHaveLength(1);
    await on.clock.advance(1_000);
    await settle();
    expect(on.begun).toHaveLength(2);
    await fail();
    await on.clock.advance(1_000);
    await settle();
    expect(on.begun).toHaveLength(2);
    await on.clock.advance(1_000);
    await settle();
    expect(on.begun).toHaveLength(3);
    expect(on.logged).toHaveLength(2);
  });

  it('whose work hears of no abort is free all the same; cut off, its claim is given back', async () => {
    const on = bench();
    on.wake('test_a', 'test_b');
    await settle();
    const [a, b] = ['test_a', 'test_b'].map((room) => on.running.get(room)?.run);
    if (!a || !b) throw new Error('they do not run');
    a.turnId = 'turn-a';
    for (const run of [a, b]) run.claim = { room: run.room, fence: 1 };
    on.scheduler.abort('test_a', 'another turn');
    await settle();
    expect(a.signal.aborted).toBe(false);
    on.scheduler.abort('test_a', 'turn-a');
    await settle();
    expect(a.signal.aborted).toBe(true);
    // Whoever aborts it has ended its turn in the store.
    expect(on.released).toEqual([]);
    const interrupted = on.scheduler.interrupt('test_b');
    await settle();
    expect(on.released).toEqual(['test_b']);
    await on.clock.advance(2_000);
    await interrupted;
    expect(on.begun.filter((room) => room === 'test_b')).toHaveLength(2);
  });
});
