/** Reading something again whenever it changes. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { LiveSubject } from '../../../src/board/protocol.ts';
import { sentenceOf } from '../api.ts';
import { onChange } from '../live.ts';

const PAUSE_MS = 300;

/** One run at a time, so that no older answer comes after a newer one; and one more after the last time it was asked for. */
export function collected(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null;
  let isAsked = false;
  async function run(): Promise<void> {
    do {
      isAsked = false;
      await work();
      if (isAsked) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    } while (isAsked);
  }
  return () => {
    isAsked = true;
    running ??= run().finally(() => {
      running = null;
    });
    return running;
  };
}

export interface Followed<Answer> {
  /** The newest one; null: none came yet. */
  answer: Answer | null;
  /** Why the last reading failed; what came before it stays. */
  fault: string | null;
  again: () => Promise<void>;
}

/**
 * Reads at first, whenever one of these changed, after each new connection, and when the page is looked at again. `read`
 * must stay the same function as long as it reads the same, and `of` names the same; its signal ends with the component.
 */
export function useFollowed<Answer>(
  of: readonly LiveSubject[],
  read: (signal: AbortSignal) => Promise<Answer>,
): Followed<Answer> {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const reading = useRef(async () => {});
  useEffect(() => {
    const over = new AbortController();
    const { signal } = over;
    reading.current = collected(async () => {
      if (signal.aborted) return;
      try {
        const found = await read(signal);
        setAnswer(found);
        setFault(null);
      } catch (error) {
        if (!signal.aborted) setFault(sentenceOf(error));
      }
    });
    const look = () => void reading.current();
    const seen = () => document.visibilityState === 'visible' && look();
    look();
    const stop = onChange(of, look);
    document.addEventListener('visibilitychange', seen);
    return () => {
      over.abort();
      stop();
      document.removeEventListener('visibilitychange', seen);
    };
  }, [read]);
  return { answer, fault, again: useCallback(() => reading.current(), []) };
}

interface SomeItems<Item, Cursor> {
  items: Item[];
  /** Where the next page begins; null: there is none. */
  next: Cursor | null;
}

/** A list of which more is shown when it is asked for. All that is shown is read anew after a change. */
export function usePages<Item, Cursor>(
  of: readonly LiveSubject[],
  readPage: (before: Cursor | null, signal: AbortSignal) => Promise<SomeItems<Item, Cursor>>,
) {
  const pages = useRef(1);
  const readAll = useCallback(
    async (signal: AbortSignal) => {
      const all: SomeItems<Item, Cursor> = { items: [], next: null };
      for (let n = 0; n < pages.current; n++) {
        const page = await readPage(all.next, signal);
        all.items.push(...page.items);
        all.next = page.next;
        if (page.next === null) break;
      }
      return all;
    },
    [readPage],
  );
  const { answer, fault, again } = useFollowed(of, readAll);
  function more(): void {
    pages.current += 1;
    void again();
  }
  return {
    items: answer?.items ?? null,
    hasMore: answer !== null && answer.next !== null,
    more,
    fault,
    again,
  };
}
