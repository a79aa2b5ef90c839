/** What all channels share: supervision, answers that are remembered, aborts; and that platforms are named in one list. */
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createLookupCache, isAdministrator } from '../../src/channels/kit/lookup-cache.js';
import { backoffMs, createState, type Setback, supervise } from '../../src/channels/kit/supervise.js';
import { CHANNELS } from '../../src/channels/list.js';
import { OVER, onAbort, systemClock, withDeadline } from '../../src/core/clock.js';
import { manualClock } from '../fakes/clock.js';

describe('supervision', () => {
  /** Rounds with these ends, and then the signal aborts. The pauses between them, and the failures each was told of. */
  async function run(ends: (Setback | null)[]) {
    const over = new AbortController();
    const pauses: number[] = [];
    const failures: number[] = [];
    const clock = { ...manualClock(), sleep: async (ms: number) => void pauses.push(ms) };
    const state = createState(clock);
    await supervise({
      async round(before) {
        failures.push(before);
        const end = ends.shift();
        if (ends.length === 0) over.abort(OVER);
        return end ?? null;
      },
      log: () => {},
      state,
      clock,
      signal: over.signal,
    });
    return { pauses, failures, status: state.status() };
  }
  const bad: Setback = { reason: 'nobody there' };

  test('pauses longer each time, up to a minute, and from the beginning after a success', async () => {
    const { pauses, failures } = await run([bad, bad, bad, null, bad, bad, null]);
    expect(pauses).toEqual([1_000, 2_000, 4_000, 1_000, 2_000]);
    expect(failures).toEqual([0, 1, 2, 3, 0, 1, 2]);
    expect([5, 6, 100].map(backoffMs)).toEqual([32_000, 60_000, 60_000]);
  });

  test('pauses as a setback says, and begins anew after one that followed a success', async () => {
    const { pauses } = await run([
      bad,
      { reason: 'flood', pauseMs: 77 },
      { reason: 'nobody there', first: true },
      null,
    ]);
    expect(pauses).toEqual([1_000, 77, 1_000]);
  });

  test('says what is wrong', async () => {
    expect((await run([bad, null])).status).toMatchObject({ connected: false, lastError: 'nobody there' });
  });
});

describe('answers that are remembered', () => {
  test('are asked for once at a time, kept as long as is wished, and forgotten', async () => {
    const clock = manualClock();
    let questions = 0;
    const asked = createLookupCache(async (key) => `${key}${++questions}`, { most: 2, clock });
    expect(await Promise.all([asked.get('a', 1_000), asked.get('a', 1_000)])).toEqual(['a1', 'a1']);
    await clock.advance(999);
    expect(await asked.get('a', 1_000)).toBe('a1');
    expect(asked.known('a', 999)).toBeUndefined();
    await clock.advance(1);
    expect(await asked.get('a', 1_000)).toBe('a2');
    asked.forget('a');
    expect(await asked.get('a', 1_000)).toBe('a3');
    await asked.get('b', 1_000);
    await asked.get('c', 1_000);
    expect(asked.known('a', 1_000)).toBeUndefined();
    asked.forgetAll();
    expect(asked.known('c', 1_000)).toBeUndefined();
  });

  test('are not made of failures', async () => {
    let fails = true;
    const ask = async () => {
      if (fails) throw new Error('not now');
      return 'yes';
    };
    const asked = createLookupCache(ask, { most: 2, clock: manualClock() });
    await expect(asked.get('a', 1_000)).rejects.toThrow('not now');
    fails = false;
    expect(await asked.get('a', 1_000)).toBe('yes');
  });

  test('about administrators: a yes for minutes, a no for seconds', async () => {
    const clock = manualClock();
    let administrators = ['anna'];
    const asked = createLookupCache(async () => administrators, { most: 2, clock });
    const is = (name: string) => isAdministrator(asked, 'group', (all) => all.includes(name));
    expect([await is('anna'), await is('ben')]).toEqual([true, false]);
    administrators = ['ben'];
    await clock.advance(2_999);
    expect([await is('anna'), await is('ben')]).toEqual([true, false]);
    await clock.advance(1);
    expect([await is('ben'), await is('anna')]).toEqual([true, false]);
  });
});

describe('aborts', () => {
  test('are heard once, also one that was before, and not after listening has ended', () => {
    const ending = new AbortController();
    const { signal } = ending;
    const heard: string[] = [];
    const unlisten = onAbort(signal, () => heard.push('no longer listening'));
    onAbort(signal, () => heard.push('first'));
    unlisten();
    ending.abort(OVER);
    expect(heard).toEqual(['first']);
    onAbort(signal, () => heard.push('late'));
    onAbort(undefined, () => heard.push('never'))();
    expect(heard).toEqual(['first', 'late']);
  });

  test('end work that takes too long, or that nobody waits for', async () => {
    const untilEnded = (ended: AbortSignal) => systemClock.sleep(60_000, ended).then(() => ended.aborted);
    expect(await withDeadline(systemClock, 1, undefined, untilEnded)).toBe(true);
    const caller = new AbortController();
    const work = withDeadline(systemClock, 60_000, caller.signal, untilEnded);
    caller.abort(OVER);
    expect(await work).toBe(true);
    expect(await withDeadline(systemClock, 60_000, undefined, async (ended) => ended.aborted)).toBe(false);
  });
});

test('platforms are named in their folders and in the list alone, but for linking WhatsApp and for setting them up', async () => {
  const root = resolve(import.meta.dirname, '../../src');
  const names = new RegExp(`['".](?:${CHANNELS.map(({ name }) => name).join('|')})\\b(?!_)`);
  const naming: string[] = [];
  for (const file of await readdir(root)) {
    if (!file.endsWith('.ts')) continue;
    if (names.test(await readFile(join(root, file), 'utf8'))) naming.push(file);
  }
  expect(naming.sort()).toEqual(['cli.ts', 'config-write.ts', 'pair.ts', 'setup-terminal.ts', 'setup.ts']);
});
