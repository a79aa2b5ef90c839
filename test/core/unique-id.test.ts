/** Ids in the order of time (RFC 9562, section 5.7). */
import { expect, it } from 'vitest';
import { uniqueId } from '../../src/core/unique-id.js';

/** The example of RFC 9562, appendix A.6: 2022-02-22 19:22:22 UTC is `017f22e2-79b0-7…`. */
const EXAMPLE = 0x017f22e279b0;

it('begins with the milliseconds, and is a UUID of version 7', () => {
  expect(uniqueId(EXAMPLE)).toMatch(/^017f22e2-79b0-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

it('is later in the alphabet when it is made later', () => {
  const ids = [0, 1, 0xffff, 0x10000, EXAMPLE, EXAMPLE + 1].map(uniqueId);
  expect([...ids].sort()).toEqual(ids);
});

it('is another one each time', () => {
  const ids = Array.from({ length: 10_000 }, () => uniqueId(EXAMPLE));
  expect(new Set(ids).size).toBe(ids.length);
});
