/** Converts pages to text in a separate thread, one at a time, with limits on time and memory. */
import type { Clock } from '../../core/clock.js';
import { createMutex } from '../../core/concurrency.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import { inThread } from '../thread.js';
import type { PageTask, PageText } from './page-worker.js';

/** null: it takes too long, or too much memory. Never rejects. */
export type PageReader = (page: PageTask, signal: AbortSignal, log: Log) => Promise<PageText | null>;

/** Two megabytes of an ordinary page take half a second. */
const LIMITS = { ms: 5_000, megabytes: 256 };

/** `entry` is `page-worker.js`, next to the compiled gateway. */
export function createPageReader(
  clock: Clock,
  entry = new URL('./page-worker.js', import.meta.url),
  { ms, megabytes } = LIMITS,
): PageReader {
  const limits = { ms, resourceLimits: { maxOldGenerationSizeMb: megabytes } };
  // Two of them would take twice the memory.
  const alone = createMutex();
  return async (page, signal, log) => {
    try {
      const found = await alone(() => inThread<PageText>(entry, page, limits, clock, signal));
      return typeof found === 'string' ? null : found;
    } catch (error) {
      // If the system is out of threads, the next page may still get one.
      log.warn({ page: page.address, error: describe(error) }, 'turning a page into text failed');
      return null;
    }
  };
}
