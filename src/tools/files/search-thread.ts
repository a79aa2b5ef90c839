/** Runs one search in a thread of its own, which ends with its time, its memory or the call. */
import { Worker } from 'node:worker_threads';
import type { Clock } from '../../core/clock.js';
import type { Found, SearchOrder } from './search.js';

export type SearchOutcome = { kind: 'found'; found: Found } | { kind: 'too long' } | { kind: 'stopped' };

const MEGABYTES = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 32 };

/** `entry` is `search-worker.js`, which lies beside the compiled gateway. Throws what the thread threw. */
export async function searchInThread(
  order: SearchOrder,
  { clock, signal, ms, entry }: { clock: Clock; signal: AbortSignal; ms: number; entry: URL },
): Promise<SearchOutcome> {
  if (signal.aborted) return { kind: 'stopped' };
  const thread = new Worker(entry, { workerData: order, resourceLimits: MEGABYTES, env: {}, stdin: false });
  return new Promise<SearchOutcome>((resolve, reject) => {
    const stopWaiting = clock.after(ms, () => settle(() => resolve({ kind: 'too long' })));
    const stop = () => settle(() => resolve({ kind: 'stopped' }));
    function settle(then: () => void): void {
      stopWaiting();
      signal.removeEventListener('abort', stop);
      void thread.terminate();
      then();
    }
    thread.once('message', (found: Found) => settle(() => resolve({ kind: 'found', found })));
    thread.once('error', (error) => settle(() => reject(error)));
    // Where nothing was said, it ended itself.
    thread.once('exit', () => settle(() => reject(new Error('the thread that searches files ended'))));
    signal.addEventListener('abort', stop, { once: true });
  });
}
