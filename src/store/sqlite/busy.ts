/**
 * Handles a database that is locked by another process, or that fails. Reads are retried. Writes are queued, and those
 * requested in consecutive passes of the event loop share one transaction; if one of them fails, the transaction is
 * rolled back and each runs again in its own.
 */
import type { Clock } from '../../core/clock.js';
import { Fault } from '../../core/errors.js';
import { backoff } from '../../core/retry.js';
import { gathered } from '../db.js';

const IS_BUSY = ['SQLITE_BUSY', 'SQLITE_LOCKED'];
const ADVICE: [codes: string[], advice: string][] = [
  [IS_BUSY, 'another process holds the database. Find it (a backup, an open sqlite3 shell) and end it'],
  [
    ['SQLITE_FULL'],
    'the disk is full. Free some space; nothing was half written, and the gateway then continues',
  ],
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

/** Turns SQLite errors that an operator can fix into a Fault; codes that indicate bugs pass unchanged. */
export function storeFault(error: unknown, file: string): unknown {
  const advice = ADVICE.find(([codes]) => hasCode(error, codes))?.[1];
  return advice === undefined ? error : new Fault('store_unavailable', `${file}: ${advice}`, error);
}

/** SQLite's extended codes begin with the primary code. */
function hasCode(error: unknown, codes: string[]): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  return typeof code === 'string' && codes.some((each) => code.startsWith(each));
}

export interface Busy {
  file: string;
  clock: Clock;
  busyTimeoutMs: number;
  /** Work is tried again. */
  retried(reason: 'busy' | 'batch'): void;
  /** Why the database can no longer be used; null while it can. */
  ended(): Fault | null;
}

function pauseAfter(tries: number): number {
  return backoff(tries, 2, 100);
}

/** Runs `work` outside a transaction, retrying while another process holds the lock. */
export async function withBusyRetry<T>(
  { file, clock, busyTimeoutMs, retried, ended }: Busy,
  work: () => T,
): Promise<T> {
  const giveUpAt = clock.now() + busyTimeoutMs;
  for (let tries = 1; ; tries++) {
    const end = ended();
    if (end !== null) throw end;
    try {
      return work();
    } catch (error) {
      if (!hasCode(error, IS_BUSY) || clock.now() >= giveUpAt) throw storeFault(error, file);
    }
    retried('busy');
    await clock.sleep(pauseAfter(tries));
  }
}

interface Write {
  work(): unknown;
  giveUpAt: number;
  resolve(value: never): void;
  reject(error: unknown): void;
}

/** The queue of writes. `commit` runs a function in a transaction. */
export class WriteQueue {
  private waiting: Write[] = [];
  private isDraining = false;
  private blockedBy: unknown;

  constructor(
    private readonly busy: Busy,
    private readonly commit: <T>(work: () => T) => T,
  ) {}

  /** `work` may run more than once. */
  add<T>(work: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const giveUpAt = this.busy.clock.now() + this.busy.busyTimeoutMs;
      this.waiting.push({ work, giveUpAt, resolve, reject });
      if (this.isDraining) return;
      this.isDraining = true;
      void this.drainAll();
    });
  }

  /** Runs the queued writes once. Those blocked by another process stay queued. */
  drain(): void {
    if (this.waiting.length > 0) this.waiting = this.runTogether(this.waiting);
  }

  private async drainAll(): Promise<void> {
    await gathered(() => this.waiting.length);
    for (let tries = 1; ; tries++) {
      const end = this.busy.ended();
      if (end !== null) this.giveUp(() => true, end);
      this.drain();
      const now = this.busy.clock.now();
      this.giveUp((write) => write.giveUpAt <= now, this.blockedBy);
      if (this.waiting.length === 0) break;
      this.busy.retried('busy');
      await this.busy.clock.sleep(pauseAfter(tries));
    }
    this.isDraining = false;
  }

  private runTogether(batch: Write[]): Write[] {
    if (batch.length === 1) return this.runEach(batch);
    try {
      const values = this.commit(() => batch.map(({ work }) => work()));
      for (const [n, { resolve }] of batch.entries()) resolve(values[n] as never);
      return [];
    } catch (error) {
      if (!hasCode(error, IS_BUSY)) {
        this.busy.retried('batch');
        return this.runEach(batch);
      }
      this.blockedBy = error;
      return batch;
    }
  }

  private runEach(batch: Write[]): Write[] {
    for (const [n, { work, resolve, reject }] of batch.entries()) {
      try {
        resolve(this.commit(work) as never);
      } catch (error) {
        if (hasCode(error, IS_BUSY)) {
          this.blockedBy = error;
          return batch.slice(n);
        }
        reject(storeFault(error, this.busy.file));
      }
    }
    return [];
  }

  private giveUp(which: (write: Write) => boolean, error: unknown): void {
    const given = this.waiting.filter(which);
    this.waiting = this.waiting.filter((write) => !which(write));
    for (const { reject } of given) reject(storeFault(error, this.busy.file));
  }
}
