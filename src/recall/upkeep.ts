/** Work in the background that is done again whenever it is woken, and, when it failed, after a while. */
import type { Clock } from '../core/clock.js';
import { OVER } from '../core/clock.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';

export interface Upkeep {
  start(): void;
  /** There is something to do. While it works, it does so again afterwards. */
  wake(): void;
  /** Resolves when it has ended. */
  stop(): Promise<void>;
}

const RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 30_000;

export function createUpkeep(
  what: string,
  { clock, log, gatherMs }: { clock: Clock; log: Log; gatherMs: number },
  work: (signal: AbortSignal) => Promise<void>,
): Upkeep {
  const stopped = new AbortController();
  let running: Promise<void> | null = null;
  let ring = () => {};

  async function run(): Promise<void> {
    let failures = 0;
    while (!stopped.signal.aborted) {
      const woken = new Promise<void>((resolve) => {
        ring = resolve;
      });
      try {
        await work(stopped.signal);
        failures = 0;
        if (stopped.signal.aborted) return;
        await woken;
        // What comes in a burst is worked on in one go.
        await clock.sleep(gatherMs, stopped.signal);
      } catch (error) {
        if (stopped.signal.aborted) return;
        if (failures++ === 0) log.warn({ error: describe(error) }, `${what} failed, and is tried again`);
        await clock.sleep(Math.min(RETRY_MS * failures, LONGEST_RETRY_MS), stopped.signal);
      }
    }
  }

  return {
    start() {
      running ??= run();
    },
    wake: () => ring(),
    async stop() {
      stopped.abort(OVER);
      ring();
      await running;
    },
  };
}
