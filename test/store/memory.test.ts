/** Copies in memory: the one rule by which they are valid. */
import { expect, it } from 'vitest';
import { createMemory } from '../../src/store/sqlite/connection.js';

/** A database of one value, and how often it was asked. */
function database() {
  const state = { value: 'first', version: 1, reads: 0, versionReads: 0 };
  const memory = createMemory(() => {
    state.versionReads++;
    return state.version;
  });
  const get = () =>
    memory.get('name', () => {
      state.reads++;
      return state.value;
    });
  return { state, memory, get };
}

const nextPass = () => new Promise((resolve) => setImmediate(resolve));

it('a copy is read once, also of what is not there', () => {
  const { state, memory, get } = database();
  expect([get(), get()]).toEqual(['first', 'first']);
  expect(state.reads).toBe(1);
  let asked = 0;
  const nothing = () => memory.get('nothing', () => void asked++);
  expect([nothing(), nothing()]).toEqual([undefined, undefined]);
  expect(asked).toBe(1);
});

it('is void when another process has written, which is asked once in a pass', async () => {
  const { state, get } = database();
  get();
  get();
  expect(state.versionReads).toBe(1);
  Object.assign(state, { value: 'second', version: 2 });
  await nextPass();
  expect(get()).toBe('second');
});

it('is asked for anew in a transaction: others may have written since the pass began', () => {
  const { state, memory, get } = database();
  get();
  Object.assign(state, { value: 'second', version: 2 });
  memory.begin();
  expect(get()).toBe('second');
  memory.commit();
  expect(get()).toBe('second');
});

it('is void when a write of our own has touched it', () => {
  const { state, memory, get } = database();
  get();
  memory.begin();
  state.value = 'second';
  memory.touch('name');
  expect(get(), 'within the transaction').toBe('second');
  memory.commit();
  expect(get()).toBe('second');
  expect(state.reads).toBe(2);
});

it('is never what a transaction saw that was rolled back', () => {
  const { state, memory, get } = database();
  get();
  memory.begin();
  state.value = 'never committed';
  memory.touch('name');
  expect(get()).toBe('never committed');
  state.value = 'first';
  memory.rollback();
  expect(get()).toBe('first');
});

it('is one of so many at most', () => {
  const { state, memory, get } = database();
  get();
  for (let n = 0; n < 20_000; n++) memory.get(`other ${n}`, () => n);
  get();
  expect(state.reads).toBe(2);
});

it('can be changed without being read again, and falls back to what is there when that is rolled back', () => {
  const { state, memory, get } = database();
  const change = () => memory.change<string>('name', (before) => `${before}!`);
  change();
  expect(get(), 'nothing was kept').toBe('first');
  memory.begin();
  change();
  expect(get(), 'within the transaction').toBe('first!');
  change();
  memory.commit();
  expect(get()).toBe('first!!');
  memory.begin();
  change();
  memory.rollback();
  expect(get()).toBe('first');
  expect(state.reads).toBe(2);
});

it('what was changed is void, too, when another process had written before', async () => {
  for (const isLookedAtWithin of [false, true]) {
    const { state, memory, get } = database();
    get();
    await nextPass();
    Object.assign(state, { value: 'second', version: 2 });
    memory.begin();
    memory.change<string>('name', (before) => `${before}!`);
    if (isLookedAtWithin) memory.get('other', () => 1);
    memory.commit();
    expect(get(), String(isLookedAtWithin)).toBe('second');
  }
});
