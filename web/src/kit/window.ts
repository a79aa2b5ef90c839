/** The part of a conversation that is in the document: at most three pages, whatever its length. Pure. */
import type { LiveNews, LogRow, RowPage } from '../../../src/board/protocol.ts';

export const MOST_ROWS = 300;
/** Longer the last page does not grow by live rows, or it is read anew as a page of 100. */
const LONG_PAGE = 200;

type Page = Pick<RowPage, 'rows' | 'before' | 'after'>;

/** Never without a page. */
export interface LogWindow {
  pages: readonly Page[];
  /** Live rows came that are not in it, although no page follows. */
  isCut: boolean;
  /** Live rows pushed out its first ones, so that the page before does not join on. */
  isTorn: boolean;
}

type News<Kind extends LiveNews['kind']> = Extract<LiveNews, { kind: Kind }>;

export function windowOf({ rows, before, after }: RowPage): LogWindow {
  return { pages: [{ rows, before, after }], isCut: false, isTorn: false };
}

/** With the objects of the last window for rows that are the same: they are not drawn again. */
export function keptFrom(last: LogWindow | null, next: LogWindow): LogWindow {
  if (last === null) return next;
  const known = new Map(rowsOf(last).map((row) => [row.key, row]));
  const kept = (row: LogRow) => {
    const before = known.get(row.key);
    return before !== undefined && JSON.stringify(before) === JSON.stringify(row) ? before : row;
  };
  return { ...next, pages: next.pages.map((page) => ({ ...page, rows: page.rows.map(kept) })) };
}

export function rowsOf({ pages }: LogWindow): LogRow[] {
  return pages.flatMap(({ rows }) => rows);
}

export function beforeOf({ pages }: LogWindow): string | null {
  return pages[0]?.before ?? null;
}

export function afterOf({ pages }: LogWindow): string | null {
  return pages.at(-1)?.after ?? null;
}

/** Whether its last row is the newest of the conversation. */
export function isAtEnd(window: LogWindow): boolean {
  return afterOf(window) === null && !window.isCut;
}

/** Whether live rows have made it so long that it should be read anew. */
export function isLong(window: LogWindow): boolean {
  return window.isTorn || (window.pages.at(-1)?.rows.length ?? 0) > LONG_PAGE;
}

/** With the page before it; pages at its end go. */
export function withOlder({ pages, isCut, isTorn }: LogWindow, page: RowPage): LogWindow {
  const known = new Set(pages.flatMap(({ rows }) => rows.map(({ key }) => key)));
  const older = { ...page, rows: page.rows.filter(({ key }) => !known.has(key)) };
  return bounded({ pages: [older, ...pages], isCut, isTorn }, false);
}

/** With the page after it; pages at its beginning go. */
export function withNewer({ pages, isTorn }: LogWindow, page: RowPage): LogWindow {
  const known = new Set(page.rows.map(({ key }) => key));
  const kept = pages.map((each) => ({ ...each, rows: each.rows.filter(({ key }) => !known.has(key)) }));
  return bounded({ pages: [...kept, page], isCut: false, isTorn }, true);
}

/**
 * Known rows change where they stand; new ones come at the end, if it is the end of the conversation. `follows`: its end is
 * in sight, so that too many rows go at its beginning.
 */
export function withNews(
  window: LogWindow,
  { rows, gone, whole }: Pick<News<'rows'>, 'rows' | 'gone' | 'whole'>,
  follows: boolean,
): LogWindow {
  const changed = new Map(rows.map((row) => [row.key, row]));
  const isGone = new Set(gone);
  if (whole) for (const key of lost(window, changed)) isGone.add(key);
  const found = new Set<string>();
  const pages = window.pages.map((page) => {
    const isTouched = page.rows.some(({ key }) => changed.has(key) || isGone.has(key));
    for (const { key } of page.rows) if (changed.has(key)) found.add(key);
    if (!isTouched) return page;
    const kept = page.rows.filter(({ key }) => !isGone.has(key));
    return { ...page, rows: kept.map((row) => changed.get(row.key) ?? row) };
  });
  const added = rows.filter(({ key }) => !found.has(key) && !isGone.has(key));
  return bounded(withAdded({ ...window, pages }, added, follows), follows);
}

/** Whether all of it is older than the news, or gone: it has to be read anew. */
export function isPassedBy(
  window: LogWindow,
  { rows, whole }: Pick<News<'rows'>, 'rows' | 'whole'>,
): boolean {
  const there = new Set(rows.map(({ key }) => key));
  const known = rowsOf(window);
  return whole === true && known.length > 0 && isAtEnd(window) && !known.some(({ key }) => there.has(key));
}

/** Rows that went while nobody told of them: behind the first of those that are there, and not among them. */
function lost(window: LogWindow, there: ReadonlyMap<string, LogRow>): string[] {
  const keys = rowsOf(window).map(({ key }) => key);
  const first = keys.findIndex((key) => there.has(key));
  return first < 0 ? [] : keys.slice(first).filter((key) => !there.has(key));
}

/** The words of a row that is being written: it may be new. */
export function withWriting(
  window: LogWindow,
  { key, author, keep, add }: Pick<News<'writing'>, 'key' | 'author' | 'keep' | 'add'>,
  now: number,
  follows: boolean,
): LogWindow {
  const known = rowsOf(window).find((row) => row.key === key);
  const text = (known?.text ?? '').slice(0, keep) + add;
  const row: LogRow = { key, author, at: now, ...known, text, state: 'writing' };
  return withNews(window, { rows: [row], gone: [] }, follows);
}

/** A reader who has left the end gets only so many more below. */
function withAdded(window: LogWindow, added: readonly LogRow[], follows: boolean): LogWindow {
  const last = window.pages.at(-1);
  if (last === undefined || added.length === 0) return window;
  if (!isAtEnd(window)) return { ...window, isCut: window.isCut || afterOf(window) === null };
  const room = follows ? added.length : Math.max(0, LONG_PAGE - last.rows.length);
  const grown = { ...last, rows: [...last.rows, ...added.slice(0, room)] };
  return {
    ...window,
    pages: [...window.pages.slice(0, -1), grown],
    isCut: window.isCut || room < added.length,
  };
}

/** Whole pages go at the end that is not in sight; with one page alone, its first rows. */
function bounded(window: LogWindow, follows: boolean): LogWindow {
  const { pages, isTorn } = window;
  if (pages.reduce((sum, { rows }) => sum + rows.length, 0) <= MOST_ROWS) return window;
  // At the other end two pages stay: the reader stands where they join.
  if (!follows && pages.length > 2)
    return bounded({ pages: pages.slice(0, -1), isCut: false, isTorn }, false);
  if (!follows) return window;
  if (pages.length > 1) return bounded({ ...window, pages: pages.slice(1), isTorn: false }, true);
  const only = pages.map((page) => ({ ...page, rows: page.rows.slice(-MOST_ROWS) }));
  return { ...window, pages: only, isTorn: true };
}
