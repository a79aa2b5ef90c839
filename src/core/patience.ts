/** Waiting that ends in any case. */
import { type Clock, OVER } from './clock.js';

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
