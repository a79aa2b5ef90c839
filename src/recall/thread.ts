/** The gateway's side of the indexing thread: each verb a promise. A thread that died is started again when asked. */
import { Worker } from 'node:worker_threads';
import type { Clock } from '../core/clock.js';
import { Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { Answer, Ask, WorkerSettings } from './recall-worker.js';
import type { Verbs } from './verbs.js';

export type Index = {
  [Verb in keyof Verbs]: (...values: Parameters<Verbs[Verb]>) => Promise<Awaited<ReturnType<Verbs[Verb]>>>;
};

/** A thread that dies at once is not started again and again. */
const RESTART_AFTER_MS = 5_000;
const VERBS: { [Verb in keyof Verbs]: true } = {
  ...{ views: true, dropView: true, keepOnly: true, newest: true, addMessages: true },
  ...{ files: true, dropFile: true, addFile: true, search: true, forget: true },
  ...{ withoutVector: true, addVectors: true, counts: true, close: true },
};

export function startThread(options: {
  entry: URL;
  settings: WorkerSettings;
  clock: Clock;
  log: Log;
  /** What was indexed is gone: it is to be told all anew. */
  anew: () => void;
}): Index {
  const { entry, settings, clock, log } = options;
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
    const started = new Worker(entry, { workerData: settings });
    started.unref();
    started.on('message', (answer: Answer) => {
      if (answer.kind === 'anew') {
        log.warn({ file: settings.file, reason: answer.reason }, 'the search index is made anew');
        options.anew();
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
      for (const { reject } of waiting.values())
        reject(new Fault('internal', 'recall: the indexing thread ended'));
      waiting.clear();
    });
    if (restarted) options.anew();
    return started;
  }

  function ask(verb: keyof Verbs, values: unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      try {
        worker ??= start();
        const id = ++lastId;
        waiting.set(id, { resolve, reject });
        worker.ref();
        worker.postMessage({ id, verb, values } satisfies Ask);
      } catch (error) {
        reject(error);
      }
    });
  }

  const verbs = Object.keys(VERBS) as (keyof Verbs)[];
  const index = Object.fromEntries(
    verbs.map((verb) => [verb, (...values: unknown[]) => ask(verb, values)]),
  ) as Index;
  return {
    ...index,
    async close() {
      const running = worker;
      closing = true;
      if (running === null || closed) {
        closed = true;
        return;
      }
      const ended = new Promise((resolve) => running.once('exit', resolve));
      await index
        .close()
        .catch((error: Error) => log.warn({ error: error.message }, 'the search index was not closed'));
      closed = true;
      await ended;
    },
  };
}
