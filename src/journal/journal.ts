/**
 * Updates the journal's files and stream from the store, in the background: no message or tool call waits for them.
 * Among the processes on one `data_dir`, the holder of the lock writes. A failed write is made up for later, because
 * the store knows what is missing.
 */
import { type Clock, OVER } from '../core/clock.js';
import { createMutex } from '../core/concurrency.js';
import { describe } from '../core/errors.js';
import type { JournalFiles, JournalStore } from '../core/journal.js';
import type { Log } from '../core/log.js';
import { createJournalFiles } from './files.js';

/** A copy of the entries besides the files. */
export interface Stream {
  /** Adds the missing entries; throws if the stream cannot be reached. */
  catchUp(signal: AbortSignal): Promise<void>;
  close(): void;
}

export interface Journal extends JournalFiles {
  /** Resolves when the files are up to date, or after a failure to write them, which is logged. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface JournalOptions {
  store: JournalStore & { watch(changed: () => void): () => void };
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
  write(): Promise<void>;
  isDue: boolean;
  isFailing: boolean;
  wake(): void;
}

export function createJournal(options: JournalOptions): Journal {
  const { store, folder, days, stream, take, redact, clock, log } = options;
  const files = createJournalFiles(store, folder, redact);
  const inTurn = createMutex();
  const over = new AbortController();
  let lock: { release(): void } | null = null;
  let isRunning = false;
  let loops: Promise<unknown> = Promise.resolve();
  let prunedAt = 0;
  const unwatch: (() => void)[] = [];
  const ofFiles = projection('working.log', () => inTurn(writeFiles));
  const ofStream = projection('journal stream in Redis', async () => {
    if (lock !== null) await stream?.catchUp(over.signal);
  });

  async function writeFiles(): Promise<void> {
    ofFiles.isDue = false;
    lock ??= await take();
    if (lock === null) return;
    const now = clock.now();
    if (days !== 'never' && now - prunedAt >= DAY_MS) {
      prunedAt = now;
      await files.prune(now - days * DAY_MS);
    }
    while (await files.write());
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
      const isWritten = await attempt(kept);
      // The process that holds the lock may end.
      const again = !isWritten ? RETRY_MS : lock === null ? ASK_AGAIN_MS : null;
      if (again !== null) kept.isDue = true;
      const slow = (clock.now() - begun) * PAUSE_FACTOR;
      await clock.sleep(again ?? Math.min(Math.max(PAUSE_MS, slow), LONGEST_PAUSE_MS), over.signal);
    }
  }

  async function attempt(kept: Projection, write = kept.write): Promise<boolean> {
    try {
      await write();
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
    async start() {
      isRunning = true;
      unwatch.push(store.watchJournal(changed), store.watch(changed));
      await attempt(ofFiles);
      changed();
      loops = Promise.all([keep(ofFiles), stream === null ? null : keep(ofStream)]);
    },

    async caughtUp() {
      if (isRunning) await ofFiles.write();
    },

    async stop() {
      for (const end of unwatch) end();
      over.abort(OVER);
      changed();
      await loops;
      if (isRunning) {
        await attempt(ofFiles);
        if (stream !== null && lock !== null) {
          const enough = new AbortController();
          const last = attempt(ofStream, () => stream.catchUp(enough.signal));
          await Promise.race([last, clock.sleep(LAST_MS, enough.signal)]);
          enough.abort(OVER);
        }
      }
      stream?.close();
      isRunning = false;
      lock?.release();
      lock = null;
    },
  };
}

function projection(name: string, write: () => Promise<void>): Projection {
  return { name, write, isDue: false, isFailing: false, wake: () => {} };
}
