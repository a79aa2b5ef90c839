/** What libsignal leaves behind on the sessions that a message did not fit. */
import { expect, it } from 'vitest';
import { restoreUnused } from '../../src/channels/whatsapp/signal.js';

const session = (used: number, ratchet: string) => ({ indexInfo: { used, closed: -1 }, ratchet });
const record = (sessions: Record<string, object>) => ({ _sessions: sessions, version: 'v1' });

it('puts back what did not fit, and moves on what did', () => {
  const before = record({ open: session(5, 'a'), older: session(3, 'b') });
  const after = record({ open: session(5, 'spoilt'), older: session(9, 'moved on') });
  expect(restoreUnused(before, after)).toEqual(
    record({ open: session(5, 'a'), older: session(9, 'moved on') }),
  );
});

it('keeps a session that is new, and leaves out one that is gone', () => {
  const before = record({ gone: session(1, 'a') });
  const after = record({ fresh: session(1, 'b') });
  expect(restoreUnused(before, after)).toEqual(after);
});

it.each([[undefined], [null], ['text'], [{}], [{ _sessions: { a: {} } }]])(
  'a record of another form (%j) stays as it is',
  (other) => {
    const after = record({ open: session(5, 'a') });
    expect(restoreUnused(other, after)).toBe(after);
    expect(restoreUnused(after, other)).toBe(other);
  },
);
