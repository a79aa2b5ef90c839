/** When a server's count shows that it read only a part of a request, and what a request can take at all. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ModelMessage } from '../../src/core/model.js';
import { CutWatch, createSizer, windowBehind } from '../../src/models/token-counts.js';

/** A message of about so many tokens, the shorter of two the beginning of the longer; before it, more of them. */
function request(tokens: number, input: number, cached = 0, more: ModelMessage[] = []) {
  const said: ModelMessage = { role: 'user', content: 'tea rain lamp green walks '.repeat(tokens / 6.5) };
  const messages = [said, ...more];
  const size = createSizer()({ messages, tools: [] });
  return { messages, size, counts: [input, input + cached] };
}
/** Its readings of a conversation's requests. */
function createCutWatch() {
  const watch = new CutWatch();
  return {
    reading: (chat: string | null, { messages, size, counts }: ReturnType<typeof request>) =>
      watch.reading(chat, messages, size, counts),
  };
}
const assistant = (content: string): ModelMessage => ({ role: 'assistant', content, calls: [] });

describe('a server that counts', () => {
  test('less than the least that a request can be has read a part of it', () => {
    const { reading } = createCutWatch();
    expect(reading(null, request(10_000, 4_096))).toBe('in part');
    expect(reading(null, request(10_000, 6_100))).toBe('whole');
  });

  test('next to nothing, or of a short request, shows nothing', () => {
    const { reading } = createCutWatch();
    expect(reading(null, request(10_000, 400))).toBe('whole');
    expect(reading(null, request(1_000, 550))).toBe('whole');
  });

  test('from its cache now and then, with it or without, has cut nothing', () => {
    const { reading } = createCutWatch();
    const counted = [
      [6_000, 5_000],
      [6_900, 0],
      [7_900, 6_800],
      [8_900, 0],
    ] as const;
    counted.forEach(([input, cached], n) => {
      expect(reading('with', request(6_000 + n * 1_000, input, cached))).toBe('whole');
    });
    const uncached = [
      [6_000, 0],
      [900, 6_000],
      [8_000, 0],
      [1_000, 8_000],
    ] as const;
    uncached.forEach(([input, cached], n) => {
      expect(reading('without', request(6_000 + n * 1_000, input, cached))).toBe('whole');
    });
  });

  test('less while a conversation grows is stalled; the same again stands', () => {
    const { reading } = createCutWatch();
    expect(reading('a', request(8_000, 8_000))).toBe('whole');
    expect(reading('a', request(9_000, 6_000))).toBe('stalled');
    expect(reading('a', request(10_000, 6_003))).toBe('stands');
    // Another chat, the same one after a compaction, and after /reset.
    expect(reading('b', request(9_000, 6_003))).toBe('whole');
    expect(reading('a', request(3_000, 3_000))).toBe('whole');
    expect(
      reading('a', { ...request(9_000, 6_003), messages: [assistant('other words '.repeat(3_000))] }),
    ).toBe('whole');
  });

  test('the same, where what stood behind the conversation has gone, is asked about the next', () => {
    const { reading } = createCutWatch();
    const notes = (n: number) => [assistant(`what is remembered for turn ${n} `.repeat(60))];
    expect(reading('a', request(8_000, 6_000, 0, notes(1)))).toBe('whole');
    expect(reading('a', request(9_000, 6_001, 0, notes(2)))).toBe('whole');
    expect(reading('a', request(24_000, 6_002, 0, notes(3)))).not.toBe('whole');
  });
});

test('what a request takes at least is never more than it takes at most, whatever is written (property)', () => {
  const text = fc.string({ unit: 'binary', maxLength: 300 });
  fc.assert(
    fc.property(text, text, (one, other) => {
      const sizeOf = createSizer();
      const messages: ModelMessage[] = [{ role: 'user', content: one }, assistant(other)];
      const { estimated, ample, least, most } = sizeOf({ messages, tools: [] });
      expect(least).toBeLessThanOrEqual(estimated);
      expect(estimated).toBeLessThanOrEqual(ample);
      expect(least).toBeLessThanOrEqual(most);
      expect(most).toBeGreaterThanOrEqual(Buffer.byteLength(one));
    }),
  );
});

describe('the window behind a count', () => {
  test.each([
    [2_050, 4_096],
    [1_026, 2_048],
    [4_099, 8_192],
    [3_000, 3_000],
    [4_096, 4_096],
    [5_000, 5_000],
  ])('%i is %i', (counted, window) => {
    expect(windowBehind(counted)).toBe(window);
  });
});
