/** The gateway's side of the indexing thread, which starts with a call and ends when idle. The next call restarts it, also after a crash. */
import { statSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { Clock } from '../core/clock.js';
import type { Zone } from '../core/dates.js';
import { Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { SearchIndex } from './search-index.js';

type Calls = Omit<SearchIndex, 'tidy' | 'scrub'>;

export interface IndexCall {
  id: number;
  name: keyof Calls;
  values: unknown[];
}

export type IndexAnswer =
  | { kind: 'done'; id: number; value: unknown }
  | { kind: 'failed'; id: number; reason: string }
  | { kind: 'anew'; reason: string };

export interface WorkerSettings {
  file: string;
  zone: string;
}

export interface RemoteIndex {
  /** Calls a method of the thread's index. */
  ask<Name extends keyof Calls>(
    name: Name,
    ...values: Parameters<Calls[Name]>
  ): Promise<Awaited<ReturnType<Calls[Name]>>>;
  close(): Promise<void>;
  /** If false, a call has to wait for the thread's start. */
  readonly thread: { isRunning: boolean };
}

/** Minimum time between starts, for a thread that crashes immediately. */
const RESTART_AFTER_MS = 5_000;

/** `anew` is called when the index was lost and must be rebuilt. */
export function createIndexThread(
  entry: URL,
  file: string,
  zone: Zone,
  idleMs: number,
  clock: Clock,
  log: Log,
  anew: () => void,
): RemoteIndex {
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  let worker: Worker | null = null;
  const thread = { isRunning: false };
  let startedAt = Number.NEGATIVE_INFINITY;
  /** The file's inode when an idle thread ended. */
  let left: { inode: number | undefined } | null = null;
  let ending: Promise<void> | null = null;
  let stopIdling = () => {};
  let closed = false;
  let lastId = 0;

  function start(): Worker {
    // Absolute, so that a clock set back does not block restarts.
    if (Math.abs(clock.now() - startedAt) < RESTART_AFTER_MS) {
      throw new Fault('internal', 'recall: the indexing thread ended and will be restarted in a few seconds');
    }
    const died = startedAt !== Number.NEGATIVE_INFINITY;
    const isOther = left !== null && left.inode !== inode();
    startedAt = clock.now();
    // Latency does not matter here: a small young generation saves some 30 MB of garbage.
    const resourceLimits = { maxYoungGenerationSizeMb: 6 };
    // The zone is read now: the system's may change while the gateway runs.
    const workerData: WorkerSettings = { file, zone: zone.name };
    const started = new Worker(entry, { workerData, resourceLimits });
    thread.isRunning = true;
    started.unref();
    started.on('message', (answer: IndexAnswer) => {
      if (answer.kind === 'anew') {
        log.warn({ file, reason: answer.reason }, 'the search index is being rebuilt');
        anew();
        return;
      }
      const asked = waiting.get(answer.id);
      waiting.delete(answer.id);
      if (waiting.size === 0 && ending === null) rest(started);
      if (answer.kind === 'done') asked?.resolve(answer.value);
      else asked?.reject(new Fault('internal', `${file}: ${answer.reason}`));
    });
    started.on('error', (error) =>
      log.error({ error: error.message, entry: entry.href }, 'the indexing thread failed'),
    );
    started.on('exit', () => {
      worker = null;
      thread.isRunning = false;
      stopIdling();
      const ended = new Fault('internal', 'recall: the indexing thread ended');
      for (const { reject } of waiting.values()) reject(ended);
      waiting.clear();
    });
    if (died || isOther) anew();
    return started;
  }

  function inode(): number | undefined {
    return statSync(file, { throwIfNoEntry: false })?.ino;
  }

  function rest(idle: Worker): void {
    idle.unref();
    stopIdling = clock.after(idleMs, () => {
      left = { inode: inode() };
      thread.isRunning = false;
      ending = end(idle).finally(() => {
        ending = null;
        // It ended on purpose, so it may restart at once.
        startedAt = Number.NEGATIVE_INFINITY;
      });
    });
  }

  async function end(running: Worker): Promise<void> {
    const exited = new Promise((resolve) => running.once('exit', resolve));
    await call(running, 'close', []).catch((error: Error) =>
      log.warn({ error: error.message }, 'the search index could not be closed'),
    );
    await exited;
  }

  function call(running: Worker, name: keyof Calls, values: unknown[]): Promise<unknown> {
    const id = ++lastId;
    stopIdling();
    running.ref();
    running.postMessage({ id, name, values } satisfies IndexCall);
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  }

  async function close(): Promise<void> {
    closed = true;
    stopIdling();
    if (worker !== null) ending ??= end(worker);
    await ending;
  }

  async function ask(name: keyof Calls, ...values: unknown[]): Promise<unknown> {
    if (ending !== null && !closed) await ending;
    if (closed) throw new Fault('internal', 'recall: the index was closed');
    worker ??= start();
    return call(worker, name, values);
  }

  return { thread, close, ask: ask as RemoteIndex['ask'] };
}
