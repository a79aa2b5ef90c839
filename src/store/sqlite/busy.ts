/**
 * What happens while another process holds the database, or when it fails. Reads are tried again; writes wait in a
 * queue, and those requested in passes of the event loop that follow each other run in one transaction. If one of them
 * fails, the transaction is rolled back and each is run again separately.
 */
import { setImmediate as nextPass } from 'node:timers/promises';
import type { Clock } from '../../core/clock.js';
import type { Fault } from '../../core/errors.js';
import { isBusy, storeFault } from './faults.js';

export interface Patience {
  /** Runs `work` outside a transaction, retrying while another process holds the database. */
  patiently<T>(work: () => T): Promise<T>;
  /**
   * Runs `work` atomically. The result survives a crash of the process, but not always a power cut. `work` may run more
   * than once, so it must depend only on the database. `single`: it is one statement, which needs no transaction.
   */
  write<T>(work: () => T, single?: 'single'): Promise<T>;
  /** Runs all waiting writes now, once: for closing. */
  drain(): void;
}

interface Write {
  work(): unknown;
  single: boolean;
  giveUpAt: number;
  resolve(value: never): void;
  reject(error: unknown): void;
}

/** What waits for others costs a little time where much is going on, and halves what is written there. */
const MOST_PASSES = 4;
const FIRST_PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 100;

export function createPatience(options: {
  file: string;
  clock: Clock;
  busyTimeoutMs: number;
  /** Runs it in a transaction. */
  commit<T>(work: () => T): T;
  /** Why nothing can be done any more; null mostly. */
  ended(): Fault | null;
}): Patience {
  const { file, clock, busyTimeoutMs, commit, ended } = options;
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

  /** Resolves when a pass of the event loop has brought no further write. */
  async function gathered(): Promise<void> {
    for (let seen = 0, pass = 0; waiting.length > seen && pass < MOST_PASSES; pass++) {
      seen = waiting.length;
      await nextPass();
    }
  }

  async function drainAll(): Promise<void> {
    await gathered();
    for (let pause = FIRST_PAUSE_MS; ; pause = longer(pause)) {
      const end = ended();
      if (end !== null) giveUp(() => true, end);
      drain();
      const now = clock.now();
      giveUp((write) => write.giveUpAt <= now, busy);
      if (waiting.length === 0) break;
      await clock.sleep(pause);
    }
    draining = false;
  }

  function giveUp(which: (write: Write) => boolean, error: unknown): void {
    const given = waiting.filter(which);
    waiting = waiting.filter((write) => !which(write));
    for (const { reject } of given) reject(storeFault(error, file));
  }

  return {
    async patiently(work) {
      const giveUpAt = clock.now() + busyTimeoutMs;
      for (let pause = FIRST_PAUSE_MS; ; pause = longer(pause)) {
        const end = ended();
        if (end !== null) throw end;
        try {
          return work();
        } catch (error) {
          if (!isBusy(error) || clock.now() >= giveUpAt) throw storeFault(error, file);
        }
        await clock.sleep(pause);
      }
    },
    write: <T>(work: () => T, single?: 'single') =>
      new Promise<T>((resolve, reject) => {
        const giveUpAt = clock.now() + busyTimeoutMs;
        waiting.push({ work, single: single !== undefined, giveUpAt, resolve, reject });
        if (draining) return;
        draining = true;
        void drainAll();
      }),
    drain,
  };
}

function longer(pause: number): number {
  return Math.min(pause * 2, LONGEST_PAUSE_MS);
}
