/** The part of a conversation that is in the document: bounded, without gaps, and never with a row twice. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LogRow, RowPage } from '../../src/board/protocol.ts';
import * as windows from '../../web/src/kit/window.ts';

const PAGE = 100;

const rowOf = (n: number, text = `${n}`): LogRow => ({
  key: `m${n}`,
  author: { kind: 'person', id: 'a', name: 'A' },
  at: n,
  text,
});

/** A conversation on a server, read by pages. */
function conversation(length: number) {
  const rows = Array.from({ length }, (_, n) => rowOf(n));
  const page = (from: number, to: number): RowPage => ({
    rows: rows.slice(Math.max(0, from), to),
    before: from > 0 ? `${from}` : null,
    after: to < rows.length ? `${to}` : null,
    position: to < rows.length ? null : `${rows.length}`,
  });
  return {
    newest: () => page(rows.length - PAGE, rows.length),
    first: () => page(0, Math.min(PAGE, rows.length)),
    before: (cursor: string) => page(Number(cursor) - PAGE, Number(cursor)),
    after: (cursor: string) => page(Number(cursor), Math.min(rows.length, Number(cursor) + PAGE)),
    add(): LogRow {
      const row = rowOf(rows.length);
      rows.push(row);
      return row;
    },
    length: () => rows.length,
  };
}

const numbersOf = (window: windows.LogWindow) =>
  windows.rowsOf(window).map(({ key }) => Number(key.slice(1)));

describe('the window of a conversation', () => {
  it('holds three pages at most, and finds its way back', () => {
    const server = conversation(1000);
    let window = windows.windowOf(server.newest());
    for (let n = 0; n < 5; n++)
      window = windows.withOlder(window, server.before(windows.beforeOf(window) ?? ''));
    expect([numbersOf(window)[0], numbersOf(window).at(-1)]).toEqual([400, 699]);
    expect(windows.isAtEnd(window)).toBe(false);
    for (let n = 0; n < 3; n++)
      window = windows.withNewer(window, server.after(windows.afterOf(window) ?? ''));
    expect([numbersOf(window)[0], numbersOf(window).at(-1)]).toEqual([700, 999]);
    expect(windows.isAtEnd(window)).toBe(true);
  });

  it('has no gap, no row twice and at most 300 rows, whatever one does', () => {
    const act = fc.constantFrom('older', 'newer', 'live', 'flood', 'newest', 'follow', 'leave');
    fc.assert(
      fc.property(fc.nat(700), fc.array(act, { maxLength: 40 }), (length, acts) => {
        const server = conversation(length);
        let window = windows.windowOf(server.newest());
        let follows = true;
        for (const each of acts) {
          const [before, after] = [windows.beforeOf(window), windows.afterOf(window)];
          if (each === 'older' && before !== null && !windows.isLong(window))
            window = windows.withOlder(window, server.before(before));
          if (each === 'newer' && after !== null) window = windows.withNewer(window, server.after(after));
          if (each === 'newest') window = windows.keptFrom(window, windows.windowOf(server.newest()));
          if (each === 'follow') follows = windows.isAtEnd(window);
          if (each === 'leave' || each === 'older') follows = false;
          for (let n = 0; n < (each === 'flood' ? 150 : each === 'live' ? 1 : 0); n++)
            window = windows.withNews(window, { rows: [server.add()], gone: [] }, follows);
          const numbers = numbersOf(window);
          expect(numbers.length).toBeLessThanOrEqual(windows.MOST_ROWS);
          expect(numbers).toEqual(numbers.map((_, n) => (numbers[0] ?? 0) + n));
          if (windows.isAtEnd(window)) expect(numbers.at(-1) ?? -1).toBe(server.length() - 1);
          if (windows.beforeOf(window) === null && !window.isTorn) expect(numbers[0] ?? 0).toBe(0);
          if (follows) expect(windows.isAtEnd(window)).toBe(true);
        }
      }),
    );
  });

  it('changes a row where it stands, and takes away what is gone', () => {
    const window = windows.windowOf(conversation(3).newest());
    const next = windows.withNews(window, { rows: [rowOf(1, 'edited')], gone: ['m0'] }, true);
    expect(windows.rowsOf(next).map(({ text }) => text)).toEqual(['edited', '2']);
    expect(windows.rowsOf(next)[1]).toBe(windows.rowsOf(window)[2]);
  });

  it('lets a row grow from its first word, by the part that stays', () => {
    const author = { kind: 'persona' as const, id: 'luna', name: 'Luna', avatar: null };
    let window = windows.windowOf(conversation(1).newest());
    window = windows.withWriting(window, { key: 't1', author, keep: 0, add: 'Hello wor' }, 5, true);
    window = windows.withWriting(window, { key: 't1', author, keep: 6, add: 'you' }, 9, true);
    expect(windows.rowsOf(window).at(-1)).toMatchObject({ text: 'Hello you', state: 'writing', at: 5 });
  });

  it('keeps the objects of rows that are the same after it was read anew', () => {
    const server = conversation(5);
    const window = windows.windowOf(server.newest());
    const changed = { ...server.newest(), rows: [rowOf(0), rowOf(1, 'edited')] };
    const next = windows.keptFrom(window, windows.windowOf(structuredClone(changed)));
    expect(windows.rowsOf(next)[0]).toBe(windows.rowsOf(window)[0]);
    expect(windows.rowsOf(next)[1]).not.toBe(windows.rowsOf(window)[1]);
  });
});

describe('a page that was away', () => {
  const windowOf = (...numbers: number[]) =>
    windows.windowOf({ rows: numbers.map((n) => rowOf(n)), before: null, after: null, position: '9' });
  const news = (...numbers: number[]) => ({
    ...{ rows: numbers.map((n) => rowOf(n)), gone: [], whole: true as const },
  });

  it('loses the rows that went meanwhile, and keeps those before the news', () => {
    const back = windows.withNews(windowOf(1, 2, 3, 4, 5), news(2, 4, 6), true);
    expect(numbersOf(back)).toEqual([1, 2, 4, 6]);
    expect(numbersOf(windows.withNews(windowOf(), news(2, 4), true))).toEqual([2, 4]);
  });

  it('is read anew where nothing of it is left', () => {
    expect(windows.isPassedBy(windowOf(1, 2), news(3))).toBe(true);
    expect(windows.isPassedBy(windowOf(1, 2), news())).toBe(true);
    expect(windows.isPassedBy(windowOf(1, 2), news(2, 3))).toBe(false);
    expect(windows.isPassedBy(windowOf(), news(3))).toBe(false);
    expect(windows.isPassedBy(windowOf(1), { rows: [rowOf(3)] })).toBe(false);
  });
});
