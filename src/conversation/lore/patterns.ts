/** Tries the patterns of lorebooks in a thread that is stopped when they take too long. It starts with the first and ends when idle. */
import { Worker } from 'node:worker_threads';
import type { Clock } from '../../core/clock.js';
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

  function started(): Promise<Worker | null> {
    const path = entry ?? new URL('./pattern-worker.js', import.meta.url);
    const worker = new Worker(path, {
      env: {},
      execArgv: [],
      stdin: false,
      resourceLimits: { maxOldGenerationSizeMb: 64 },
    });
    worker.unref();
    return new Promise((resolve) => {
      const fail = (error: Error) => {
        log.warn({ error: error.message }, 'the thread for patterns of lorebooks failed; they match nothing');
        thread = null;
        resolve(null);
      };
      const stopWaiting = clock.after(START_MS, () => fail(new Error('it did not start')));
      worker.once('online', () => {
        stopWaiting();
        resolve(worker);
      });
      worker.on('error', (error: Error) => {
        stopWaiting();
        fail(error);
      });
    });
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
    if (running !== null && (await answered(running, { texts, tries, outcomes }, ms))) {
      stopIdling = clock.after(IDLE_MS, () => void end());
    } else await end();
    return Array.from(outcomes, (outcome) => {
      if (outcome === OUTCOME.matched) return 'matched';
      return outcome === OUTCOME.none ? 'not matched' : 'given up';
    });
  }

  /** False: it took too long, or the thread failed. */
  function answered(worker: Worker, order: PatternOrder, ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const finish = (isDone: boolean) => {
        stopWaiting();
        worker.off('message', done).off('exit', failed);
        resolve(isDone);
      };
      const done = () => finish(true);
      const failed = () => finish(false);
      const stopWaiting = clock.after(ms, failed);
      worker.on('message', done).on('exit', failed);
      worker.postMessage(order);
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
