/** Updates the journal's files and stream from the store, in the background, in the process that holds the lock. */
import { type Clock, OVER } from '../core/clock.js';
import { createMutex } from '../core/concurrency.js';
import { describe } from '../core/errors.js';
import type { JournalStore } from '../core/journal.js';
import type { Log } from '../core/log.js';
import type { WatchStore } from '../core/store.js';
import { WorkingLog } from './working-log.js';

/** A copy of the entries besides the files. */
export interface Stream {
  /** Adds the missing entries; throws if the stream cannot be reached. */
  catchUp(signal: AbortSignal): Promise<void>;
  close(): void;
}

export interface JournalOptions {
  store: JournalStore & WatchStore;
  folder: string;
  /** Retention of the archive, in days. */
  days: number | 'never';
  stream: Stream | null;
  /** The lock for writing; null while another process holds it. */
  take(): Promise<{ release(): void } | null>;
  redact(text: string): string;
  clock: Clock;
  log: Log;
}

export type Journal = ReturnType<typeof createJournal>;

/** Debounce: several changes in a row become one write. */
const SETTLE_MS = 200;
/** Between two writes, since each writes all of `working.log`. */
const PAUSE_MS = 800;
/** On a slow disk the pause is this multiple of a write's duration. */
const PAUSE_FACTOR = 10;
const LONGEST_PAUSE_MS = 5_000;
const RETRY_MS = 2_000;
/** Retry interval of a process without the lock. */
const ASK_AGAIN_MS = 10_000;
/** Time for the stream when the gateway stops. */
const LAST_MS = 1_000;
const DAY_MS = 86_400_000;

/** A projection of the store: written after each change, and retried after a failure. */
interface Projection {
  name: string;
  write(signal: AbortSignal): Promise<void>;
  isDue: boolean;
  isFailing: boolean;
  wake(): void;
}

export function createJournal({ store, folder, days, stream, take, redact, clock, log }: JournalOptions) {
  const workingLog = new WorkingLog(store, folder, redact);
  const inTurn = createMutex();
  const over = new AbortController();
  let lock: { release(): void } | null = null;
  let loops: Promise<unknown> | null = null;
  let prunedAt = 0;
  let unwatch = () => {};
  const idle = { isDue: false, isFailing: false, wake: () => {} };
  const ofFiles: Projection = { name: 'working.log', write: () => inTurn(writeFiles), ...idle };
  const ofStream: Projection = {
    name: 'journal stream in Redis',
    async write(signal) {
      if (lock !== null) await stream?.catchUp(signal);
    },
    ...idle,
  };

  async function writeFiles(): Promise<void> {
    ofFiles.isDue = false;
    lock ??= await take();
    if (lock === null) return;
    const now = clock.now();
    if (days !== 'never' && now - prunedAt >= DAY_MS) {
      prunedAt = now;
      await workingLog.archive.prune(now - days * DAY_MS);
    }
    while (await workingLog.write());
  }

  /** The stream has its own loop, so that an outage does not delay the files. */
  async function keep(kept: Projection): Promise<void> {
    while (!over.signal.aborted) {
      if (!kept.isDue) {
        await new Promise<void>((resolve) => {
          kept.wake = resolve;
        });
      }
      await clock.sleep(SETTLE_MS, over.signal);
      kept.isDue = false;
      const begun = clock.now();
      const isWritten = await attempt(kept, over.signal);
      // The process that holds the lock may end.
      const again = !isWritten ? RETRY_MS : lock === null ? ASK_AGAIN_MS : null;
      if (again !== null) kept.isDue = true;
      const slow = (clock.now() - begun) * PAUSE_FACTOR;
      await clock.sleep(again ?? Math.min(Math.max(PAUSE_MS, slow), LONGEST_PAUSE_MS), over.signal);
    }
  }

  async function attempt(kept: Projection, signal: AbortSignal): Promise<boolean> {
    try {
      await kept.write(signal);
      if (kept.isFailing) log.info({}, `${kept.name} is up to date again`);
      kept.isFailing = false;
    } catch (error) {
      if (!kept.isFailing && !over.signal.aborted) {
        log.warn({ err: error, why: describe(error) }, `${kept.name} cannot be written; retrying`);
      }
      kept.isFailing = true;
    }
    return !kept.isFailing;
  }

  function changed(): void {
    for (const kept of [ofFiles, ofStream]) {
      kept.isDue = true;
      kept.wake();
    }
  }

  return {
    /** Resolves when the files are up to date, or after a failure to write them, which is logged. */
    async start(): Promise<void> {
      loops = Promise.resolve();
      unwatch = store.watch(changed, 'journal');
      await attempt(ofFiles, over.signal);
      changed();
      loops = Promise.all([keep(ofFiles), stream === null ? null : keep(ofStream)]);
    },

    async caughtUp(): Promise<void> {
      if (loops !== null) await ofFiles.write(over.signal);
    },

    async stop(): Promise<void> {
      unwatch();
      over.abort(OVER);
      changed();
      await loops;
      if (loops !== null) {
        await attempt(ofFiles, over.signal);
        const enough = new AbortController();
        if (stream !== null) {
          await Promise.race([attempt(ofStream, enough.signal), clock.sleep(LAST_MS, enough.signal)]);
        }
        enough.abort(OVER);
      }
      stream?.close();
      loops = null;
      lock?.release();
      lock = null;
    },
  };
}
