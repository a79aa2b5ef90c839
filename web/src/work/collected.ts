/** Work that is asked for often and takes a while: one run at a time, and one more after the last time it was asked for. */
import { useEffect } from 'preact/hooks';
import { onChange } from '../live.ts';

const PAUSE_MS = 300;

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

/** Reads at first, whenever work changes, and when the page is looked at again. `read` must stay the same function. */
export function useWork(read: () => Promise<void>): void {
  useEffect(() => {
    const again = collected(read);
    const look = () => document.visibilityState === 'visible' && void again();
    void again();
    const stop = onChange('work', () => void again());
    document.addEventListener('visibilitychange', look);
    return () => {
      stop();
      document.removeEventListener('visibilitychange', look);
    };
  }, [read]);
}
