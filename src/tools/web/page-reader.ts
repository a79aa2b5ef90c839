/** Converts pages to text in a separate thread, one at a time, with limits on time and memory. */
import { Worker } from 'node:worker_threads';
import type { Clock } from '../../core/clock.js';
import { createMutex } from '../../core/concurrency.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { PageTask, PageText } from './page-worker.js';

export interface PageReader {
  /** null: it takes too long, or too much memory. Never rejects. */
  read(page: PageTask, signal: AbortSignal, log: Log): Promise<PageText | null>;
}

export interface ReaderLimits {
  ms: number;
  megabytes: number;
}

/** Two megabytes of an ordinary page take half a second. */
const LIMITS: ReaderLimits = { ms: 5_000, megabytes: 256 };

/** `entry` is `page-worker.js`, next to the compiled gateway. */
export function createPageReader(
  clock: Clock,
  entry = new URL('./page-worker.js', import.meta.url),
  limits = LIMITS,
): PageReader {
  const alone = createMutex();

  function read(page: PageTask, signal: AbortSignal, log: Log): Promise<PageText | null> {
    if (signal.aborted) return Promise.resolve(null);
    return new Promise((resolve) => {
      const resourceLimits = { maxOldGenerationSizeMb: limits.megabytes };
      const worker = new Worker(entry, { workerData: page, resourceLimits, env: {}, execArgv: [] });
      let found: PageText | null = null;
      const giveUp = () => void worker.terminate();
      const stopWaiting = clock.after(limits.ms, giveUp);
      signal.addEventListener('abort', giveUp, { once: true });
      worker.on('message', (text: PageText) => {
        found = text;
      });
      worker.on('error', (error) => {
        log.warn({ page: page.address, error: describe(error) }, 'turning a page into text failed');
      });
      // Only after it has ended: two of them would take twice the memory.
      worker.on('exit', () => {
        stopWaiting();
        signal.removeEventListener('abort', giveUp);
        resolve(found);
      });
    });
  }

  return {
    read: (page, signal, log) =>
      alone(() => read(page, signal, log)).catch((error: unknown) => {
        // If the system is out of threads, the next page may still get one.
        log.warn({ page: page.address, error: describe(error) }, 'turning a page into text failed');
        return null;
      }),
  };
}
