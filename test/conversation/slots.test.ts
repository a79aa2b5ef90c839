import { describe, expect, it } from 'vitest';
import { createSlots } from '../../src/conversation/rooms/scheduler.js';
import { manualClock } from '../fakes/clock.js';

/** Lets everything run that waits for nothing but its turn. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

function bench(most: number) {
  const clock = manualClock();
  const slots = createSlots(most, clock);
  const log: string[] = [];
  const leave = new Map<string, () => void>();
  const enter = (name: string, manner: 'shared' | 'alone') =>
    void slots.enter(manner).then((over) => {
      log.push(name);
      leave.set(name, over);
    });
  return { clock, log, enter, leave: (name: string) => leave.get(name)?.() };
}

describe('turns side by side', () => {
  it('share up to the limit, in order', async () => {
    const on = bench(2);
    for (const name of ['a', 'b', 'c']) on.enter(name, 'shared');
    await settle();
    expect(on.log).toEqual(['a', 'b']);
    on.leave('a');
    on.leave('a');
    await settle();
    expect(on.log).toEqual(['a', 'b', 'c']);
  });

  it('let a suspect run when nothing else does, and nobody beside it', async () => {
    const on = bench(3);
    on.enter('a', 'shared');
    on.enter('suspect', 'alone');
    on.enter('b', 'shared');
    await settle();
    expect(on.log).toEqual(['a', 'b']);
    on.leave('a');
    on.leave('b');
    await settle();
    on.enter('c', 'shared');
    await settle();
    expect(on.log).toEqual(['a', 'b', 'suspect']);
    on.leave('suspect');
    await settle();
    expect(on.log).toEqual(['a', 'b', 'suspect', 'c']);
  });

  it('make a suspect wait for five seconds at most, and others for it for ten', async () => {
    const on = bench(3);
    on.enter('a', 'shared');
    on.enter('suspect', 'alone');
    await settle();
    await on.clock.advance(5_000);
    on.enter('b', 'shared');
    await settle();
    expect(on.log).toEqual(['a']);
    on.leave('a');
    await settle();
    expect(on.log).toEqual(['a', 'suspect']);
    await on.clock.advance(10_000);
    await settle();
    expect(on.log).toEqual(['a', 'suspect', 'b']);
  });
});
