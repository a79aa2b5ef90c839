/** Runs one job in a thread of its own, because a model’s pattern or a page may keep it busy or fill its memory. */
import { type ResourceLimits, Worker } from 'node:worker_threads';
import { type Clock, onAbort } from '../core/clock.js';

/** Resolves when the thread has ended. Throws its error. */
export async function inThread<Result>(
  entry: URL,
  workerData: unknown,
  limits: { ms: number; resourceLimits: ResourceLimits },
  clock: Clock,
  signal: AbortSignal,
): Promise<Result | 'too long' | 'stopped'> {
  if (signal.aborted) return 'stopped';
  const { ms, resourceLimits } = limits;
  const thread = new Worker(entry, { workerData, resourceLimits, env: {}, execArgv: [], stdin: false });
  let stopListening = () => {};
  try {
    return await new Promise((resolve, reject) => {
      const stopWaiting = clock.after(ms, () => resolve('too long'));
      const unsubscribe = onAbort(signal, () => resolve('stopped'));
      stopListening = () => {
        stopWaiting();
        unsubscribe();
      };
      thread.once('message', resolve);
      thread.once('error', reject);
      thread.once('exit', () => reject(new Error('the thread ended without a result')));
    });
  } finally {
    stopListening();
    await thread.terminate();
  }
}
