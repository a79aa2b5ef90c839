/**
 * The write queue: writes requested within one pass of the event loop run in one transaction. If one fails, the
 * transaction is rolled back and each is run again separately. While another process holds the database, all of them
 * wait.
 */
import type { Clock } from '../../core/clock.js';
import { Fault } from '../../core/errors.js';
import { isBusy, storeFault } from './faults.js';

interface Write {
  work(): unknown;
  single: boolean;
  giveUpAt: number;
  resolve(value: never): void;
  reject(error: unknown): void;
}

export interface Writes {
  write<T>(work: () => T, single?: 'single'): Promise<T>;
  /** Runs all waiting writes now, once: for closing. */
  drain(): void;
}

const FIRST_PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 100;

export function createWrites(options: {
  file: string;
  clock: Clock;
  busyTimeoutMs: number;
  /** Runs it in a transaction. */
  commit<T>(work: () => T): T;
  isOpen(): boolean;
}): Writes {
  const { file, clock, busyTimeoutMs, commit, isOpen } = options;
  let waiting: Write[] = [];
  let draining = false;
  /** The error that kept it from running last time. */
  let busy: unknown;

  /** Runs the waiting writes. Those that another process blocked keep waiting. */
  function drain(): void {
    if (waiting.length > 0) waiting = runTogether(waiting);
  }

  function runTogether(batch: Write[]): Write[] {
    if (batch.length === 1) return runEach(batch);
    try {
      const values = commit(() => batch.map(({ work }) => work()));
      for (const [n, { resolve }] of batch.entries()) resolve(values[n] as never);
      return [];
    } catch (error) {
      if (!isBusy(error)) return runEach(batch);
      busy = error;
      return batch;
    }
  }

  function runEach(batch: Write[]): Write[] {
    for (const [n, { work, single, resolve, reject }] of batch.entries()) {
      try {
        resolve((single ? work() : commit(work)) as never);
      } catch (error) {
        if (isBusy(error)) {
          busy = error;
          return batch.slice(n);
        }
        reject(storeFault(error, file));
      }
    }
    return [];
  }

  async function drainAll(): Promise<void> {
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      if (!isOpen()) giveUp(() => true, new Fault('store_unavailable', `${file}: the store was closed`));
      drain();
      const now = clock.now();
      giveUp((write) => write.giveUpAt <= now, storeFault(busy, file));
      if (waiting.length === 0) break;
      await clock.sleep(pause);
    }
    draining = false;
  }

  function giveUp(which: (write: Write) => boolean, error: unknown): void {
    const given = waiting.filter(which);
    waiting = waiting.filter((write) => !which(write));
    for (const { reject } of given) reject(error);
  }

  return {
    write: <T>(work: () => T, single?: 'single') =>
      new Promise<T>((resolve, reject) => {
        const giveUpAt = clock.now() + busyTimeoutMs;
        waiting.push({ work, single: single !== undefined, giveUpAt, resolve, reject });
        if (draining) return;
        draining = true;
        setImmediate(drainAll);
      }),
    drain,
  };
}
