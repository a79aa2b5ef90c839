/** Tries the patterns of lorebooks in a thread that is stopped when they take too long. It starts with the first and ends when idle. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { type Clock, OVER } from '../../core/clock.js';
import { locks } from '../../core/concurrency.js';
import type { Log } from '../../core/log.js';

export interface PatternTry {
  source: string;
  flags: string;
  /** The number of its text. */
  text: number;
}

export interface PatternOrder {
  texts: string[];
  tries: PatternTry[];
  /** Shared with the thread, so that what it found before it was stopped is known. */
  outcomes: Uint8Array;
}

export const OUTCOME = { open: 0, running: 1, none: 2, matched: 3 } as const;

export type PatternOutcome = 'matched' | 'not matched' | 'given up';

export interface Patterns {
  /** In the order of `tries`. Takes at most `ms`, beside the start of the thread; then the rest is given up. Never rejects. */
  run(texts: string[], tries: PatternTry[], ms: number): Promise<PatternOutcome[]>;
}

const IDLE_MS = 60_000;
const START_MS = 5_000;

/** `entry`: the compiled thread, if it is not beside this module. */
export function createPatterns(clock: Clock, log: Log, entry?: URL): Patterns {
  const exclusive = locks();
  let thread: Promise<Worker | null> | null = null;
  let stopIdling = () => {};

  async function started(): Promise<Worker | null> {
    const path = entry ?? new URL('./pattern-worker.js', import.meta.url);
    const resourceLimits = { maxOldGenerationSizeMb: 64 };
    const worker = new Worker(path, { env: {}, execArgv: [], stdin: false, resourceLimits });
    worker.unref();
    worker.on('error', (error: Error) => {
      log.warn({ error: error.message }, 'the thread for patterns of lorebooks failed; they match nothing');
    });
    return (await happens(worker, 'online', START_MS)) ? worker : null;
  }

  /** False: it failed, or takes longer. */
  async function happens(worker: Worker, event: 'online' | 'message', ms: number): Promise<boolean> {
    const over = new AbortController();
    const cancel = clock.after(ms, () => over.abort(OVER));
    try {
      await once(worker, event, { signal: over.signal });
      return true;
    } catch {
      // The error was logged; a deadline is no error.
      return false;
    } finally {
      cancel();
    }
  }

  async function end(): Promise<void> {
    const running = await thread;
    thread = null;
    await running?.terminate();
  }

  async function run(texts: string[], tries: PatternTry[], ms: number): Promise<PatternOutcome[]> {
    stopIdling();
    thread ??= started();
    const running = await thread;
    const outcomes = new Uint8Array(new SharedArrayBuffer(tries.length));
    running?.postMessage({ texts, tries, outcomes } satisfies PatternOrder);
    if (running !== null && (await happens(running, 'message', ms))) {
      stopIdling = clock.after(IDLE_MS, () => void end());
    } else await end();
    return Array.from(outcomes, (outcome) => {
      if (outcome === OUTCOME.matched) return 'matched';
      return outcome === OUTCOME.none ? 'not matched' : 'given up';
    });
  }

  return {
    run(texts, tries, ms) {
      if (tries.length === 0) return Promise.resolve([]);
      if (ms <= 0) return Promise.resolve(tries.map(() => 'given up'));
      return exclusive('patterns', () => run(texts, tries, ms));
    },
  };
}
