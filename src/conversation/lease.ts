/** Beside steps 3 to 6: a claimed room stays ours for as long as something is done in it. */
import { type Clock, OVER } from '../core/clock.js';
import type { Log } from '../core/log.js';
import type { Claim, TurnStore } from '../core/store.js';

export const LEASE_MS = 60_000;

export interface LeaseParts {
  store: Pick<TurnStore, 'renew'>;
  clock: Clock;
  log: Log;
}

/** Prolongs the lease while `work` is done. What it is given is aborted with `shutdown`, and when the lease is lost. */
export async function whileHeld<Result>(
  { store, clock, log }: LeaseParts,
  claim: Claim,
  shutdown: AbortSignal,
  work: (abort: AbortController) => Promise<Result>,
): Promise<Result> {
  const abort = new AbortController();
  const end = () => abort.abort(OVER);
  if (shutdown.aborted) end();
  // Not AbortSignal.any: with a listener on it, Node keeps one for each turn for as long as the process lives.
  shutdown.addEventListener('abort', end, { once: true });
  let over = false;
  let cancel = clock.after(LEASE_MS / 3, prolong);

  async function prolong(): Promise<void> {
    const held = await store.renew(claim, clock.now(), LEASE_MS).catch((error) => {
      log.warn({ err: error, room: claim.room }, 'the lease of a room could not be prolonged just now');
      return true;
    });
    if (!held) abort.abort();
    if (!over) cancel = clock.after(LEASE_MS / 3, prolong);
  }

  try {
    return await work(abort);
  } finally {
    over = true;
    cancel();
    shutdown.removeEventListener('abort', end);
  }
}
