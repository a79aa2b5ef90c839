/** Runs background work whenever it is woken, with retries and back-off when it fails. */
import type { Clock } from '../core/clock.js';
import { OVER } from '../core/clock.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';

const RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 30_000;

/** `restMs` returns the pause before the next run, given how long the last one took. */
export function createBackground(
  what: string,
  clock: Clock,
  log: Log,
  restMs: (tookMs: number) => number,
  work: (signal: AbortSignal) => Promise<void>,
) {
  const stopped = new AbortController();
  let running: Promise<void> | null = null;
  let ring = () => {};

  async function run(): Promise<void> {
    let failures = 0;
    while (!stopped.signal.aborted) {
      const woken = new Promise<void>((resolve) => {
        ring = resolve;
      });
      const began = clock.now();
      try {
        await work(stopped.signal);
        const tookMs = Math.max(0, clock.now() - began);
        failures = 0;
        if (stopped.signal.aborted) return;
        await woken;
        // Collects a burst, so that it is handled in one run.
        await clock.sleep(restMs(tookMs), stopped.signal);
      } catch (error) {
        if (stopped.signal.aborted) return;
        if (failures++ === 0) log.warn({ error: describe(error) }, `${what} failed and will be retried`);
        await clock.sleep(Math.min(RETRY_MS * failures, LONGEST_RETRY_MS), stopped.signal);
      }
    }
  }

  return {
    start(): void {
      running ??= run();
    },
    /** There is something to do. If the work is running, it runs again afterwards. */
    wake: () => ring(),
    /** Resolves when it has ended. */
    async stop(): Promise<void> {
      stopped.abort(OVER);
      ring();
      await running;
    },
  };
}
