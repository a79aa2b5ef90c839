/**
 * The list of a conversation. Whoever stands at its end sees the newest words follow; whoever has scrolled up stays where
 * they read: after each change the row in sight is put back where it was, by hand, since not every browser does so.
 */
import { Component, type ComponentChild, type ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { LogRow } from '../../../src/board/protocol.ts';
import { useTexts } from '../app.ts';
import { Icon } from './icons.tsx';
import type { Goal, Log } from './log.ts';
import { dayInWords, languageOfPage } from './words.ts';

/** So close to the end one follows it. */
const END_PX = 60;
/** So close to an end of the window the next page is read. */
const NEAR_PX = 800;

export interface Drawing {
  /** An `<article>`. `isFirst`: of several of the same author. Must be the same function each time. */
  draw: (row: LogRow, isFirst: boolean) => ComponentChild;
}

export function LogList({
  log,
  draw,
  children,
}: Drawing & {
  log: Log;
  /** Behind the last row, at the end of the conversation only. */
  children?: ComponentChildren;
}) {
  const { kit } = useTexts();
  const scroller = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const [hasLeft, setLeft] = useState(false);
  const [stand] = useState(() => new Stand(log));
  const rows = log.rows.value;
  const goal = log.goal.value;
  const hasNewer = log.hasNewer.value;

  useLayoutEffect(() => {
    if (scroller.current === null) return;
    stand.hold(scroller.current, goal);
    setLeft(!log.follows);
  });
  useEffect(() => {
    const list = scroller.current;
    if (list === null || inner.current === null) return;
    // Pictures arrive, code is coloured, the window is turned.
    const observer = new ResizeObserver(() => stand.hold(list, null));
    observer.observe(inner.current);
    observer.observe(list);
    return () => observer.disconnect();
  }, [stand]);

  return (
    <div class="log-frame">
      <div
        ref={scroller}
        class="log"
        role="log"
        aria-label={kit.conversation}
        aria-live={log.isPaging.value ? 'off' : 'polite'}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also for those without a mouse.
        tabIndex={0}
        onScroll={({ currentTarget }) => {
          stand.scrolled(currentTarget);
          setLeft(!log.follows);
        }}
        onClickCapture={({ target }) => {
          // It opens below the place that one looks at.
          if (target instanceof Element && target.closest('summary')) log.follows = false;
        }}
      >
        <div ref={inner} class="log-rows">
          {rows.map((row, n) => [
            isNewDay(row, rows[n - 1]) && (
              <p key={`day ${row.key}`} class="day">
                {dayInWords(row.at, languageOfPage())}
              </p>
            ),
            <Still
              key={row.key}
              row={row}
              draw={draw}
              isFirst={isNewDay(row, rows[n - 1]) || isNewAuthor(row, rows[n - 1])}
            />,
          ])}
          {!hasNewer && children}
        </div>
      </div>
      {(hasLeft || hasNewer) && (
        <button type="button" class="newest" onClick={() => log.newest()}>
          <Icon name="down" />
          {kit.newest}
        </button>
      )}
    </div>
  );
}

/** Drawn again only when its row has changed: the others cost nothing while one grows. */
class Still extends Component<Drawing & { row: LogRow; isFirst: boolean }> {
  override shouldComponentUpdate(next: Drawing & { row: LogRow; isFirst: boolean }) {
    const { row, isFirst, draw } = this.props;
    return row !== next.row || isFirst !== next.isFirst || draw !== next.draw;
  }

  override render() {
    const { row, isFirst, draw } = this.props;
    return (
      <div class="log-row" data-key={row.key}>
        {draw(row, isFirst)}
      </div>
    );
  }
}

/** Where the reader stands. */
class Stand {
  private anchor: { key: string; top: number } | null = null;
  private lastTop = 0;
  private lastGoal: Goal | null = null;

  constructor(private readonly log: Log) {}

  scrolled(list: HTMLElement): void {
    const { log } = this;
    const top = list.scrollTop;
    const left = list.scrollHeight - top - list.clientHeight;
    if (left <= END_PX) log.follows = !log.hasNewer.peek();
    else if (top < this.lastTop - 1) log.follows = false;
    this.note(list);
    if (top < NEAR_PX && log.hasOlder.peek()) void log.older();
    else if (left < NEAR_PX && log.hasNewer.peek()) void log.newer();
  }

  /** After a change: at the end, at a new goal, or with the same row where it was. */
  hold(list: HTMLElement, goal: Goal | null): void {
    const { log } = this;
    if (goal !== null && goal !== this.lastGoal && log.isRead.peek()) {
      this.lastGoal = goal;
      log.follows = goal.to === 'end';
      if (goal.to === 'start') list.scrollTop = 0;
      else if (goal.to === 'row') show(list, goal.key);
    } else if (!log.follows && this.anchor !== null) {
      const row = rowOf(list, this.anchor.key);
      if (row !== null) {
        const moved = topOf(list, row) - this.anchor.top;
        if (Math.abs(moved) >= 1) list.scrollTop += moved;
      }
    }
    if (log.follows) list.scrollTop = list.scrollHeight;
    this.note(list);
  }

  /** The first row in sight. */
  private note(list: HTMLElement): void {
    this.lastTop = list.scrollTop;
    const rows = list.querySelectorAll<HTMLElement>('.log-row');
    let low = 0;
    let high = rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const row = rows[middle];
      if (row !== undefined && topOf(list, row) + row.offsetHeight <= 0) low = middle + 1;
      else high = middle;
    }
    const row = rows[low];
    this.anchor = row?.dataset.key ? { key: row.dataset.key, top: topOf(list, row) } : null;
  }
}

function show(list: HTMLElement, key: string): void {
  const row = rowOf(list, key);
  if (row === null) return;
  list.scrollTop += topOf(list, row) - Math.max(0, (list.clientHeight - row.offsetHeight) / 2);
  row.classList.add('found');
}

function rowOf(list: HTMLElement, key: string): HTMLElement | null {
  return list.querySelector(`.log-row[data-key="${CSS.escape(key)}"]`);
}

function topOf(list: HTMLElement, row: HTMLElement): number {
  return row.getBoundingClientRect().top - list.getBoundingClientRect().top;
}

function isNewDay(row: LogRow, before: LogRow | undefined): boolean {
  return before === undefined || new Date(row.at).toDateString() !== new Date(before.at).toDateString();
}

function isNewAuthor({ author }: LogRow, before: LogRow | undefined): boolean {
  const last = before?.author;
  if (last?.kind !== author.kind || last.name !== author.name) return true;
  return 'id' in author && 'id' in last && author.id !== last.id;
}
