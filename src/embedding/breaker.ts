/**
 * A breaker around whoever makes vectors. After failures it is open: everybody hears so at once, and it tries by
 * itself, in the background, whether the way is free again, so that nobody has to wait in order to find out.
 */
import type { Clock } from '../core/clock.js';
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';

export interface Breaker {
  /** Throws at once while open. What `work` throws counts as a failure, unless the caller merely lost interest. */
  pass<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result>;
  state(): { kind: 'ok' } | { kind: 'failing'; since: number; reason: string };
  close(): void;
}

/** In a row; one alone may be chance. */
const FAILURES = 2;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 15_000;
/** Whoever gave up after this long, while nobody else got an answer for that long, waited in vain. */
const SLOW_MS = 500;
const SILENT_MS = 10_000;

export function createBreaker(options: {
  place: string;
  /** One small request. Throws when it fails. */
  trial(signal: AbortSignal): Promise<void>;
  clock: Clock;
  log: Log;
}): Breaker {
  const { place, trial, clock, log } = options;
  const closing = new AbortController();
  let failures: { count: number; since: number; reason: string } | null = null;
  let open = false;
  let lastAnswer = clock.now();

  function succeeded(): void {
    lastAnswer = clock.now();
    if (open) log.info({ place }, 'embeddings work again');
    open = false;
    failures = null;
  }

  function failed(error: unknown): void {
    failures = {
      count: (failures?.count ?? 0) + 1,
      since: failures?.since ?? clock.now(),
      reason: describe(error),
    };
    if (open || failures.count < FAILURES || closing.signal.aborted) return;
    open = true;
    log.warn(
      { place, reason: failures.reason },
      'embeddings fail: search goes on by keywords, and what has no vector yet waits',
    );
    void untilItWorks();
  }

  /** A server that is merely busy answers others meanwhile, and is no failure. */
  function waitedInVain(begun: number): boolean {
    const now = clock.now();
    return now - begun >= SLOW_MS && now - lastAnswer >= SILENT_MS;
  }

  async function untilItWorks(): Promise<void> {
    for (let pause = FIRST_PAUSE_MS; open; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      await clock.sleep(pause, closing.signal);
      if (closing.signal.aborted || !open) return;
      await trial(closing.signal).then(succeeded, failed);
    }
  }

  return {
    async pass(work, signal) {
      if (closing.signal.aborted) throw new Fault('embedding_unavailable', `${place} is not asked any more.`);
      if (open) {
        throw new Fault(
          'embedding_unavailable',
          `Embeddings are not available just now: ${failures?.reason ?? 'they fail'}`,
        );
      }
      const begun = clock.now();
      try {
        const result = await work();
        succeeded();
        return result;
      } catch (error) {
        if (closing.signal.aborted) throw error;
        if (!signal.aborted) failed(error);
        else if (waitedInVain(begun)) failed(new Error(`${place} does not answer in time`));
        throw error;
      }
    },

    state: () =>
      open && failures !== null
        ? { kind: 'failing', since: failures.since, reason: failures.reason }
        : { kind: 'ok' },

    close: () => closing.abort(),
  };
}
