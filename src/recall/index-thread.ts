/** The gateway's side of the indexing thread: each call a promise. A thread that died is started again when asked. */
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
};

const NAMES = [
  ...['views', 'dropView', 'keepOnly', 'newest', 'addMessages', 'files', 'dropFile', 'addFile'],
  ...['search', 'forget', 'withoutVector', 'addVectors', 'counts', 'close'],
] as (keyof IndexPort)[];
/** A thread that dies at once is not started again and again. */
const RESTART_AFTER_MS = 5_000;

/** `anew` is called when what was indexed is gone: all of it is to be indexed again. */
export function startIndexThread(
  entry: URL,
  settings: WorkerSettings,
  clock: Clock,
  log: Log,
  anew: () => void,
): RemoteIndex {
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  let worker: Worker | null = null;
  let startedAt = Number.NEGATIVE_INFINITY;
  let closing = false;
  let closed = false;
  let lastId = 0;

  function start(): Worker {
    if (closed) throw new Fault('internal', 'recall: the index was closed');
    // A clock that was put back must not hold the thread back.
    if (Math.abs(clock.now() - startedAt) < RESTART_AFTER_MS) {
      throw new Fault('internal', 'recall: the indexing thread ended, and is started again in a few seconds');
    }
    const restarted = startedAt !== Number.NEGATIVE_INFINITY;
    startedAt = clock.now();
    // Nobody waits for the thread: a small heap for what is new, or it would hold some thirty megabytes of garbage.
    const resourceLimits = { maxYoungGenerationSizeMb: 6 };
    const started = new Worker(entry, { workerData: settings, resourceLimits });
    started.unref();
    started.on('message', (answer: Answer) => {
      if (answer.kind === 'anew') {
        log.warn({ file: settings.file, reason: answer.reason }, 'the search index is made anew');
        anew();
        return;
      }
      const asked = waiting.get(answer.id);
      waiting.delete(answer.id);
      if (waiting.size === 0 && !closing) started.unref();
      if (answer.kind === 'done') asked?.resolve(answer.value);
      else asked?.reject(new Fault('internal', `${settings.file}: ${answer.reason}`));
    });
    started.on('error', (error) =>
      log.error({ error: error.message, entry: entry.href }, 'the indexing thread failed'),
    );
    started.on('exit', () => {
      worker = null;
      const ended = new Fault('internal', 'recall: the indexing thread ended');
      for (const { reject } of waiting.values()) reject(ended);
      waiting.clear();
    });
    if (restarted) anew();
    return started;
  }

  /** What it throws, its caller gets as a rejection. */
  async function ask<Name extends keyof IndexPort>(
    name: Name,
    values: Parameters<IndexPort[Name]>,
  ): Promise<Awaited<ReturnType<IndexPort[Name]>>> {
    worker ??= start();
    const running = worker;
    const id = ++lastId;
    running.ref();
    running.postMessage({ id, name, values } satisfies Ask);
    const answer = new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
    return (await answer) as Awaited<ReturnType<IndexPort[Name]>>;
  }

  async function close(): Promise<void> {
    const running = worker;
    closing = true;
    if (running !== null && !closed) {
      const ended = new Promise((resolve) => running.once('exit', resolve));
      await ask('close', []).catch((error: Error) =>
        log.warn({ error: error.message }, 'the search index was not closed'),
      );
      closed = true;
      await ended;
    }
    closed = true;
  }

  const calls = NAMES.map((name) => [name, (...values: unknown[]) => ask(name, values as never)]);
  return { ...Object.fromEntries(calls), close };
}
