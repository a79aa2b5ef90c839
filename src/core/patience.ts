/** Waiting that ends in any case. */
import { type Clock, OVER, onAbort } from './clock.js';

/** Resolves when the work is done, after `ms`, or when the signal aborts. Rejects only with the work. */
export async function orAfter(
  work: Promise<unknown>,
  ms: number,
  clock: Clock,
  signal?: AbortSignal,
): Promise<void> {
  const patience = new AbortController();
  const both = signal === undefined ? patience.signal : AbortSignal.any([patience.signal, signal]);
  await Promise.race([work, clock.sleep(ms, both)]);
  patience.abort(OVER);
}

/** null as soon as the signal aborts; later results and errors of `work` are ignored. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | null> {
  return new Promise((resolve, reject) => {
    const stopListening = onAbort(signal, () => resolve(null));
    work.then(resolve, reject).finally(stopListening);
  });
}
