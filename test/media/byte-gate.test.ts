import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { createByteGate } from '../../src/media/media.js';

const MB = 1_000_000;
const freed: number[] = [];
const gateOf = (most: number) => createByteGate(most, (bytes) => freed.push(bytes));
const never = new AbortController().signal;

/** What has been let in, in order. */
function watched(gate: ReturnType<typeof createByteGate>) {
  const inside: string[] = [];
  const enter = (name: string, bytes: number, signal = never) =>
    gate.enter(bytes, signal).then((leave) => {
      inside.push(leave === null ? `${name} gave up` : name);
      return leave;
    });
  return { inside, enter };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('the bytes of files in memory', () => {
  test('who finds it full waits for their turn, in order', async () => {
    const { inside, enter } = watched(gateOf(48 * MB));
    const first = await enter('first', 20 * MB);
    await enter('second', 20 * MB);
    void enter('third', 20 * MB);
    void enter('fourth', 5 * MB);
    await settled();
    expect(inside).toEqual(['first', 'second']);
    first?.();
    first?.();
    await settled();
    expect(inside).toEqual(['first', 'second', 'third', 'fourth']);
  });

  test('what is small never waits', async () => {
    const { inside, enter } = watched(gateOf(2 * MB));
    await enter('large', 2 * MB);
    await enter('small', MB);
    expect(inside).toEqual(['large', 'small']);
  });

  test('what is larger than everything passes alone', async () => {
    const { inside, enter } = watched(gateOf(2 * MB));
    const leave = await enter('huge', 20 * MB);
    void enter('next', 2 * MB);
    await settled();
    expect(inside).toEqual(['huge']);
    leave?.();
    await settled();
    expect(inside).toEqual(['huge', 'next']);
  });

  test('who gives up waiting holds nobody up', async () => {
    const { inside, enter } = watched(gateOf(4 * MB));
    const leave = await enter('first', 2 * MB);
    const impatient = new AbortController();
    void enter('impatient', 4 * MB, impatient.signal);
    void enter('patient', 2 * MB);
    impatient.abort();
    await settled();
    expect(inside).toEqual(
      ['first', 'patient', 'impatient gave up'].sort((a, b) => inside.indexOf(a) - inside.indexOf(b)),
    );
    expect(inside).toHaveLength(3);
    leave?.();
    await expect(enter('late', MB * 2, AbortSignal.abort())).resolves.toBeNull();
  });

  test('who was let in listens no longer: a signal of several others would be kept for ever', async () => {
    const { enter } = watched(gateOf(4 * MB));
    const { signal } = new AbortController();
    const leave = await enter('first', 4 * MB, signal);
    const second = enter('second', 4 * MB, signal);
    leave?.();
    await second;
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });
});
