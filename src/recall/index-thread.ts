/**
 * The gateway's side of the indexing thread: every call returns a promise. The first call starts the thread; it ends
 * when idle. After that, or after a crash, the next call starts it again.
 */
import { statSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { Clock } from '../core/clock.js';
import { Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { IndexPort } from './index-port.js';
import type { Answer, Ask, WorkerSettings } from './recall-worker.js';

export type RemoteIndex = {
  [Name in keyof IndexPort]: (
    ...values: Parameters<IndexPort[Name]>
  ) => Promise<Awaited<ReturnType<IndexPort[Name]>>>;
} & {
  /** Whether the thread is running; if not, a call has to wait for its start. */
  isRunning(): boolean;
};

const NAMES = [
  ...['views', 'dropView', 'keepOnly', 'newest', 'addMessages', 'files', 'dropFile', 'addFile'],
  ...['search', 'forget', 'withoutVector', 'addVectors', 'counts', 'close'],
] as (keyof IndexPort)[];
/** Limits restarts of a thread that crashes immediately. */
const RESTART_AFTER_MS = 5_000;

/** `anew` is called when the index was lost and everything has to be indexed again. */
export function createIndexThread(
  entry: URL,
  settings: WorkerSettings,
  idleMs: number,
  clock: Clock,
  log: Log,
  anew: () => void,
): RemoteIndex {
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  let worker: Worker | null = null;
  let startedAt = Number.NEGATIVE_INFINITY;
  /** The file, as an idle thread left it. */
  let left: { inode: number | undefined } | null = null;
  let ending: Promise<void> | null = null;
  let stopIdling = () => {};
  let closed = false;
  let lastId = 0;

  function start(): Worker {
    // The absolute difference, so that a clock that was set back does not block restarts.
    if (Math.abs(clock.now() - startedAt) < RESTART_AFTER_MS) {
      throw new Fault('internal', 'recall: the indexing thread ended and will be restarted in a few seconds');
    }
    const died = startedAt !== Number.NEGATIVE_INFINITY;
    const isOther = left !== null && left.inode !== inode();
    startedAt = clock.now();
    // The thread is not latency-sensitive, so it gets a small young generation; otherwise it would hold some thirty
    // megabytes of garbage.
    const resourceLimits = { maxYoungGenerationSizeMb: 6 };
    const started = new Worker(entry, { workerData: settings, resourceLimits });
    started.unref();
    started.on('message', (answer: Answer) => {
      if (answer.kind === 'anew') {
        log.warn({ file: settings.file, reason: answer.reason }, 'the search index is being rebuilt');
        anew();
        return;
      }
      const asked = waiting.get(answer.id);
      waiting.delete(answer.id);
      if (waiting.size === 0 && ending === null) rest(started);
      if (answer.kind === 'done') asked?.resolve(answer.value);
      else asked?.reject(new Fault('internal', `${settings.file}: ${answer.reason}`));
    });
    started.on('error', (error) =>
      log.error({ error: error.message, entry: entry.href }, 'the indexing thread failed'),
    );
    started.on('exit', () => {
      worker = null;
      stopIdling();
      const ended = new Fault('internal', 'recall: the indexing thread ended');
      for (const { reject } of waiting.values()) reject(ended);
      waiting.clear();
    });
    if (died || isOther) anew();
    return started;
  }

  function inode(): number | undefined {
    return statSync(settings.file, { throwIfNoEntry: false })?.ino;
  }

  function rest(idle: Worker): void {
    idle.unref();
    stopIdling = clock.after(idleMs, () => {
      left = { inode: inode() };
      ending = end(idle).finally(() => {
        ending = null;
        // It ended on purpose, so it may be restarted at once.
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

  function call(running: Worker, name: keyof IndexPort, values: unknown[]): Promise<unknown> {
    const id = ++lastId;
    stopIdling();
    running.ref();
    running.postMessage({ id, name, values } satisfies Ask);
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  }

  /** The caller gets errors as rejections. */
  async function ask(name: keyof IndexPort, values: unknown[]): Promise<unknown> {
    if (ending !== null && !closed) await ending;
    if (closed) throw new Fault('internal', 'recall: the index was closed');
    worker ??= start();
    return call(worker, name, values);
  }

  async function close(): Promise<void> {
    closed = true;
    stopIdling();
    if (worker !== null) ending ??= end(worker);
    await ending;
  }

  const calls = NAMES.map((name) => [name, (...values: unknown[]) => ask(name, values)]);
  return { ...Object.fromEntries(calls), close, isRunning: () => worker !== null && ending === null };
}
