/**
 * Updates that end the process when they are read, and processes that end for other reasons: life after life of an intake
 * that asks, begins, reads and stores. A process that has ended does nothing more: its next step never comes.
 */
import { describe, expect, test } from 'vitest';
import { createCalled, createStuck } from '../../src/channels/telegram/stuck.js';
import { manualClock } from '../fakes/clock.js';
import { generator } from '../harness/random.js';
import { stateIn } from './telegram-stage.js';

const SEED = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);
const UPDATES = 6;
const STARTS = 3;
const ENDS = 5;
const log = { debug() {}, info() {}, warn() {}, error() {} };

/** What outlives a process. */
interface World {
  kept: Map<string, string>;
  /** The next update that is to be given; they are counted from 1. */
  cursor: number;
  stored: number[];
  passedOver: number[];
  /** How often the process ended while this one was read, by what it is. */
  endsWhileRead: Map<number, number>;
}

const beginning = (): World => ({
  ...{ kept: new Map(), cursor: 1, stored: [], passedOver: [], endsWhileRead: new Map() },
});

type Step = 'asked' | 'kept' | 'read' | 'stored';

/**
 * One process, until all is stored or it ends: where `endsAt` says so before a step, or when it reads one of `deadly`.
 * True when nothing waits any more.
 */
function live(world: World, deadly: Set<number>, endsAt: (step: Step) => boolean): Promise<boolean> {
  return new Promise((resolve, reject) => {
    let reading: number[] = [];
    function end(): Promise<never> {
      // Of several that are read at once, none is known to be it.
      for (const one of reading) world.endsWhileRead.set(one, (world.endsWhileRead.get(one) ?? 0) + 1);
      resolve(false);
      return new Promise(() => {});
    }
    const step = async (what: Step) => {
      if (endsAt(what)) await end();
    };
    const state = stateIn(world.kept);
    const parts = {
      state: {
        get: state.get,
        async set(values: ReadonlyMap<string, string | null>) {
          await step('kept');
          await state.set(values);
          // From here on an end is laid to it.
          const isNoted = world.kept.get('reading 1')?.includes(`"${world.cursor}"`);
          if (isNoted) reading = [world.cursor];
          await step(isNoted ? 'read' : 'kept');
        },
      },
      ...{ id: 1, fields: {}, clock: manualClock(), log, signal: new AbortController().signal },
      ask: async () => ({ settled: async () => {} }),
    };

    async function work() {
      const stuck = await createStuck(parts, world.cursor);
      for (;;) {
        await step('asked');
        const last = stuck.deadly === null ? UPDATES : world.cursor;
        const batch = Array.from({ length: last - world.cursor + 1 }, (_, n) => world.cursor + n);
        if (batch.length === 0 || world.cursor > UPDATES) break;
        await stuck.begin(world.cursor);
        const all = async () => {
          reading = batch;
          await step('read');
          if (batch.some((one) => deadly.has(one))) await end();
          await step('read');
          reading = [];
          world.stored.push(...batch);
          world.cursor = last + 1;
          await step('stored');
        };
        const passOver = async () => {
          world.passedOver.push(...batch);
          world.cursor = last + 1;
        };
        await (stuck.deadly?.handle(String(last), all, passOver) ?? all());
      }
      await stuck.caughtUp();
      resolve(true);
    }
    work().catch(reject);
  });
}

async function lives(world: World, deadly: Set<number>, endsAt: (step: Step) => boolean): Promise<number> {
  for (let ends = 0; ; ends++) {
    if (ends > 5_000) throw new Error('it does not come to an end');
    if (await live(world, deadly, endsAt)) return ends;
  }
}

const ALL = Array.from({ length: UPDATES }, (_, n) => n + 1);

describe('asking', () => {
  test.each(ALL)(
    'update %i ends the process: it is passed over after eight ends, and no other',
    async (one) => {
      const world = beginning();
      expect(await lives(world, new Set([one]), () => false)).toBe(STARTS + ENDS);
      expect(world.passedOver).toEqual([one]);
      expect(world.stored).toEqual(ALL.filter((other) => other !== one));
      // Nothing is suspected any more.
      expect([...world.kept.keys()]).toEqual([]);
    },
  );

  test('several that end it, side by side and apart: each is passed over, once', async () => {
    const world = beginning();
    await lives(world, new Set([2, 3, 6]), () => false);
    expect(world.passedOver).toEqual([2, 3, 6]);
    expect(world.stored).toEqual([1, 4, 5]);
  });

  test('a start costs one note, with its first updates; none where nothing waits', async () => {
    let kept = 0;
    const count = (step: Step) => {
      if (step === 'kept') kept += 1;
      return false;
    };
    const world = beginning();
    await lives(world, new Set(), count);
    expect(kept / 2).toBe(1);
    await lives(world, new Set(), count);
    expect(kept / 2).toBe(1);
  });

  test('ends before it is read are laid to nobody, however many', async () => {
    const world = beginning();
    let left = 300;
    const ends = await lives(world, new Set(), (step) => step !== 'read' && step !== 'stored' && left-- > 0);
    expect(ends).toBe(300);
    expect(world.passedOver).toEqual([]);
    expect(world.stored).toEqual(ALL);
  });

  test(`ends at any point pass nothing over that was not read at ${ENDS} of them (property, seed ${SEED})`, async () => {
    const random = generator(SEED);
    let ends = 0;
    for (let run = 0; run < 150; run++) {
      const world = beginning();
      // From seldom to nearly always: then it is the only end there can be.
      const rate = 0.05 + random() * 0.5;
      let left = 200;
      ends += await lives(world, new Set(), () => left-- > 0 && random() < rate);
      const handled = [...world.stored, ...world.passedOver].sort((a, b) => a - b);
      expect(handled).toEqual(ALL);
      for (const one of world.passedOver) {
        expect(world.endsWhileRead.get(one) ?? 0).toBeGreaterThanOrEqual(ENDS);
      }
    }
    expect(ends).toBeGreaterThan(1_000);
  });

  test(`ends where time goes, reading being a hundredth of it, pass nothing over (property, seed ${SEED})`, async () => {
    const random = generator(SEED);
    for (let run = 0; run < 150; run++) {
      const world = beginning();
      let left = 400;
      await lives(world, new Set(), (step) => left-- > 0 && random() < (step === 'read' ? 0.01 : 0.5));
      expect(world.passedOver).toEqual([]);
      expect(world.stored).toEqual(ALL);
    }
  });

  test(`one that is deadly goes all the same, whatever else ends the process (property, seed ${SEED})`, async () => {
    const random = generator(SEED);
    for (let run = 0; run < 50; run++) {
      const world = beginning();
      const deadly = 1 + Math.floor(random() * UPDATES);
      let left = 400;
      await lives(
        world,
        new Set([deadly]),
        (step) => left-- > 0 && random() < (step === 'read' ? 0.01 : 0.2),
      );
      expect(world.passedOver).toEqual([deadly]);
      expect(world.stored).toEqual(ALL.filter((other) => other !== deadly));
    }
  });

  test('what fails, and an orderly end meanwhile, is no end of the process', async () => {
    const kept = new Map([['began 1', JSON.stringify({ offset: 7, starts: STARTS })]]);
    for (let n = 0; n < 20; n++) {
      const over = new AbortController();
      const parts = {
        ...{ state: stateIn(kept), id: 1, fields: {}, clock: manualClock(), log, signal: over.signal },
        ask: async () => ({ settled: async () => {} }),
      };
      const { deadly } = await createStuck(parts, 7);
      if (deadly === null) throw new Error('it is not suspected');
      const fails = () => Promise.reject(new Error('the disk is full'));
      const never = async () => expect.unreachable('it is passed over');
      if (n % 2 === 0) {
        await expect(deadly.handle('7', fails, never)).rejects.toThrow('the disk is full');
        continue;
      }
      let reading = () => {};
      const isReading = new Promise<void>((resolve) => {
        reading = resolve;
      });
      void deadly.handle('7', () => new Promise(() => reading()), never);
      await isReading;
      over.abort();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect([...kept.keys()]).toEqual(['began 1']);
  });

  test('a note that cannot be read counts as none', async () => {
    const parts = {
      ...{ state: stateIn(new Map([['began 1', '{']])), id: 1, fields: {}, clock: manualClock(), log },
      ...{ ask: async () => ({ settled: async () => {} }), signal: new AbortController().signal },
    };
    expect((await createStuck(parts, 7)).deadly).toBeNull();
  });
});

describe('being called', () => {
  const HOUR_MS = 3_600_000;
  const clock = manualClock();
  const kept = new Map<string, string>();
  const process = () =>
    createCalled({
      ...{ state: stateIn(kept), id: 1, fields: {}, clock, log, signal: new AbortController().signal },
      ask: async () => ({ settled: async () => {} }),
    });

  test('three starts without an orderly end make the fourth careful, for an hour; orderly ends count for nothing', async () => {
    for (let n = 0; n < 10; n++) {
      const orderly = process();
      expect(await orderly.begin()).toBeNull();
      expect(await orderly.begin()).toBeNull();
      await orderly.end();
    }
    for (let n = 0; n < STARTS; n++) expect(await process().begin()).toBeNull();
    const careful = process();
    const deadly = await careful.begin();
    expect(deadly).not.toBeNull();
    // One that is called for something else meanwhile does not clear it.
    let isPassedOver = false;
    for (let n = 0; n <= ENDS; n++) {
      const again = await process().begin();
      await again?.handle(
        '8',
        async () => {},
        async () => expect.unreachable(),
      );
      const handled = again?.handle(
        '7',
        () => new Promise(() => {}),
        async () => {
          isPassedOver = true;
        },
      );
      if (n === ENDS) await handled;
      else await new Promise((resolve) => setImmediate(resolve));
    }
    expect(isPassedOver).toBe(true);
    await clock.advance(HOUR_MS);
    expect(await careful.begin()).toBeNull();
    await clock.advance(24 * HOUR_MS);
    expect(await process().begin()).toBeNull();
  });
});
