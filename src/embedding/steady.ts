/** What a worker does with Redis on and on: trouble is told once when it begins and once when it ends, and waited out. */
import type { Clock } from '../core/clock.js';
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';

const PAUSE_MS = 500;

interface Manner {
  /** Between two runs. */
  everyMs?: number;
  /** After trouble, before the next run: puts right what it left behind. */
  mend?: () => Promise<void>;
}

/** Runs again and again, until it says that it is done or the worker stops. Throws only Fault `configuration`. */
export type Steadily = (
  what: string,
  run: () => Promise<'done' | undefined>,
  manner?: Manner,
) => Promise<void>;

export function createSteady(options: {
  place: string;
  clock: Clock;
  log: Log;
  stopping: AbortSignal;
}): Steadily {
  const { place, clock, log, stopping } = options;
  return async (what, run, { everyMs = 0, mend } = {}) => {
    let troubled = false;
    while (!stopping.aborted) {
      try {
        if (troubled) await mend?.();
        const done = await run();
        if (troubled) log.info({ place }, `Redis works again: the worker can ${what}`);
        if (done) return;
        troubled = false;
        await clock.sleep(everyMs, stopping);
      } catch (error) {
        if (error instanceof Fault && error.code === 'configuration') throw error;
        if (stopping.aborted) return;
        const reason = describe(error);
        if (!troubled) log.warn({ place, reason }, `Redis fails: the worker cannot ${what}`);
        troubled = true;
        await clock.sleep(PAUSE_MS, stopping);
      }
    }
  };
}
