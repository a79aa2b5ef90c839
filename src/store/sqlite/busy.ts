/** SQLite's errors as faults that an operator can act on. */

import { setImmediate as nextPass } from 'node:timers/promises';
import type { Clock } from '../../core/clock.js';
import { Fault } from '../../core/errors.js';

const IS_BUSY = ['SQLITE_BUSY', 'SQLITE_LOCKED'];
const ADVICE: [codes: string[], advice: string][] = [
  [IS_BUSY, 'another process holds the database. Find it (a backup, an open sqlite3 shell) and end it'],
  [['SQLITE_FULL'], 'the disk is full. Free some space; nothing was half written, and it goes on by itself'],
  [['SQLITE_NOTADB'], 'this file is not an SQLite database. Move it away, or restore a backup'],
  [['SQLITE_CORRUPT'], 'the database is damaged. Stop the gateway and restore a backup'],
  [['SQLITE_IOERR'], 'the disk failed while reading or writing. Check the disk and the space left on it'],
  [
    ['SQLITE_CANTOPEN'],
    'the database cannot be opened. Check that its folder exists and may be read and written',
  ],
  [
    ['SQLITE_READONLY', 'SQLITE_PERM'],
    'the database may not be written. Check the owner and the mode of the file and of its folder',
  ],
];

/** Codes that indicate bugs pass unchanged. */
export function storeFault(error: unknown, file: string): unknown {
  const advice = ADVICE.find(([codes]) => hasCode(error, codes))?.[1];
  return advice === undefined ? error : new Fault('store_unavailable', `${file}: ${advice}`, error);
}

function isBusy(error: unknown): boolean {
  return hasCode(error, IS_BUSY);
}

/** SQLite's extended codes begin with the code that they extend. */
function hasCode(error: unknown, codes: string[]): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  return typeof code === 'string' && codes.some((each) => code.startsWith(each));
}

// What happens while another process holds the database, or when it fails. Reads are tried again; writes wait in a
// queue, and those requested in passes of the event loop that follow each other run in one transaction. If one of them
// fails, the transaction is rolled back and each is run again separately.

export interface BusyRetry {
  /** Runs `work` outside a transaction, retrying while another process holds the database. */
  withBusyRetry<T>(work: () => T): Promise<T>;
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

export function createBusyRetry(options: {
  file: string;
  clock: Clock;
  busyTimeoutMs: number;
  /** Runs it in a transaction. */
  commit<T>(work: () => T): T;
  /** Why nothing can be done any more; null mostly. */
  ended(): Fault | null;
}): BusyRetry {
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
    async withBusyRetry(work) {
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
