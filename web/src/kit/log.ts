/** A conversation as a place reads it: a window of it, which follows the live line, and ways to move the window. */
import { batch, computed, type ReadonlySignal, signal } from '@preact/signals';
import type { LogRow, RowPage } from '../../../src/board/protocol.ts';
import { Refusal, read } from '../api.ts';
import { connection, type Follower, follow } from '../live.ts';
import * as windows from './window.ts';

/** Where the list is to stand after the next change of its rows: at an end, or with this row in sight. */
export type Goal = { to: 'end' } | { to: 'start' } | { to: 'row'; key: string };

export interface Log {
  rows: ReadonlySignal<LogRow[]>;
  /** Whether anything was read yet. */
  isRead: ReadonlySignal<boolean>;
  hasOlder: ReadonlySignal<boolean>;
  hasNewer: ReadonlySignal<boolean>;
  /** Nothing is announced meanwhile: older rows are no news. */
  isPaging: ReadonlySignal<boolean>;
  goal: ReadonlySignal<Goal>;
  /** Set by the list: whether its reader stands at the end. */
  follows: boolean;
  older(): Promise<void>;
  newer(): Promise<void>;
  first(): Promise<void>;
  newest(): Promise<void>;
  /** `around`: of a `FoundRow`; `key`: the row that comes into sight. */
  find(around: string, key: string): Promise<void>;
  close(): void;
}

type Change = (last: windows.LogWindow) => windows.LogWindow;

const AGAIN_MS = 1_500;
/** Without the line, as behind a proxy that lets no socket through, a conversation is read this often. */
const WITHOUT_LINE_MS = 3_000;
/** Until a reader's software has taken the change. */
const QUIET_MS = 400;

/** Follows the live line until it is closed. The caller chooses where it begins: `newest()`, `first()` or `find()`. */
export function openLog(room: string): Log {
  const window = signal<windows.LogWindow | null>(null);
  const goal = signal<Goal>({ to: 'end' });
  const paging = signal(0);
  let position: string | null = null;
  let isClosed = false;
  /** Answers that are waited for: the window may be moved while it is read. */
  let reading = 0;
  let stopFollowing: (() => void) | null = null;
  /** The last question: answers to earlier ones are not wanted any more. */
  let asked = 0;
  /** Changes that came while a page was read, which may not be in it. */
  let meanwhile: Change[] | null = null;

  const log: Log = {
    rows: computed(() => (window.value === null ? [] : windows.rowsOf(window.value))),
    isRead: computed(() => window.value !== null),
    hasOlder: computed(() => window.value !== null && windows.beforeOf(window.value) !== null),
    hasNewer: computed(() => window.value !== null && !windows.isAtEnd(window.value)),
    isPaging: computed(() => paging.value > 0),
    goal,
    follows: true,
    older: () => page('before'),
    newer: () => page('after'),
    first: () => begin({ first: '1' }, { to: 'start' }),
    newest: () => begin({}, { to: 'end' }),
    find: (around, key) => begin({ around }, { to: 'row', key }),
    close() {
      isClosed = true;
      clearInterval(looking);
      stopFollowing?.();
    },
  };

  const looking = setInterval(() => {
    const isNeeded = connection.peek() !== 'connected' && window.peek() !== null && log.follows;
    if (isNeeded && reading === 0) void log.newest();
  }, WITHOUT_LINE_MS);

  function readPage(values: Record<string, string>): Promise<RowPage> {
    return read(`api/board/rows?${new URLSearchParams({ room, ...values })}`);
  }

  /** Replaces the window. Goes on trying while the gateway is away. */
  async function begin(values: Record<string, string>, to: Goal): Promise<void> {
    const mine = ++asked;
    meanwhile = [];
    await quietly(async () => {
      try {
        const found = await readPage(values);
        if (isClosed || mine !== asked) return;
        batch(() => {
          const changes = meanwhile ?? [];
          const read = changes.reduce((last, change) => change(last), windows.windowOf(found));
          window.value = windows.keptFrom(window.value, read);
          goal.value = to;
        });
        meanwhile = null;
        position ??= found.position;
        stopFollowing ??= follow(room, follower);
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        const isOver = isClosed || mine !== asked || error.status === 401 || error.status === 404;
        if (!isOver) setTimeout(() => mine === asked && !isClosed && begin(values, to), AGAIN_MS);
      }
    });
  }

  async function page(side: 'before' | 'after'): Promise<void> {
    const from = window.value;
    if (from === null || reading > 0) return;
    const first = windows.rowsOf(from)[0]?.key;
    // Around it, since the page before would not join on, or make it too long.
    if (side === 'before' && windows.isLong(from) && first !== undefined) return log.find(first, first);
    const cursor = side === 'before' ? windows.beforeOf(from) : windows.afterOf(from);
    if (cursor === null) {
      if (side === 'after' && from.isCut) await begin({}, { to: 'end' });
      return;
    }
    const mine = ++asked;
    await quietly(async () => {
      const found = await readPage({ [side]: cursor }).catch((error: unknown) => {
        // Scrolling on asks again.
        if (error instanceof Refusal) return null;
        throw error;
      });
      if (found === null || isClosed || mine !== asked || window.value === null) return;
      const add = side === 'before' ? windows.withOlder : windows.withNewer;
      window.value = add(window.value, found);
      position ??= found.position;
    });
  }

  async function quietly(work: () => Promise<void>): Promise<void> {
    paging.value += 1;
    reading += 1;
    try {
      await work();
    } finally {
      reading -= 1;
      setTimeout(() => {
        paging.value -= 1;
      }, QUIET_MS);
    }
  }

  const follower = {
    position: () => position,
    rows(news: Parameters<Follower['rows']>[0]) {
      position = news.position;
      if (window.value !== null && windows.isPassedBy(window.value, news)) follower.reread();
      else take((last) => windows.withNews(last, news, log.follows));
    },
    writing(news: Parameters<typeof windows.withWriting>[1]) {
      take((last) => windows.withWriting(last, news, Date.now(), log.follows));
    },
    reread() {
      const last = window.value;
      if (last === null || log.follows) void log.newest();
      else window.value = { ...last, isCut: last.isCut || windows.afterOf(last) === null };
    },
  };

  function take(change: Change): void {
    meanwhile?.push(change);
    if (window.value === null) return;
    window.value = change(window.value);
    if (log.follows && reading === 0 && windows.isLong(window.value)) void log.newest();
  }

  return log;
}
