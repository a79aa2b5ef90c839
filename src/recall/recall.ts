/** Recall for step 4 and `search_memory`: told what was heard, it keeps the index up to date in the background. */
import { OVER } from '../core/clock.js';
import { describe } from '../core/errors.js';
import type { Embedder, Recall, Scope } from '../core/recall.js';
import { RemoteIndex } from './index-thread.js';
import { addMissingVectors, createBackground, Indexer } from './indexing.js';
import { createSearch, type RecallOptions } from './search.js';

/** Delay of indexing, unless MANY messages wait: searches index what they need, so the thread can stay stopped. */
const LATER_MS = 300_000;
const MANY = 200;
/** An idle thread, which takes 10 MB, ends after this time. */
const THREAD_IDLE_MS = 60_000;
/** Messages within this time are indexed together, while the thread runs. */
const GATHER_MS = 1_000;
/** Pause as a multiple of the last run, so that indexing takes at most a sixth of the time. */
const REST_PER_WORK = 5;
const LONGEST_REST_MS = 5_000;

export function createRecall(options: RecallOptions): Recall {
  const { feed, embedder, clock, log, laterMs = LATER_MS, gatherMs = GATHER_MS } = options;
  const stopped = new AbortController();
  const entry = options.worker ?? new URL('./recall-worker.js', import.meta.url);
  const idleMs = options.threadIdleMs ?? THREAD_IDLE_MS;
  const index = new RemoteIndex(entry, options.file, options.zone, idleMs, clock, log, indexAgain);
  const indexer = new Indexer(feed, options.files, index);
  let counts = { indexed: 0, vectorsWaiting: 0, former: null as string | null };
  let heard = 0;
  let stopWaiting: (() => void) | null = null;
  const restMs = (tookMs: number) => Math.min(Math.max(gatherMs, tookMs * REST_PER_WORK), LONGEST_REST_MS);
  const indexing = createBackground('indexing for search', clock, log, restMs, async (signal) => {
    stopWaiting?.();
    stopWaiting = null;
    heard = 0;
    await indexer.catchUp(signal);
    counts = await index.ask('counts', embedder?.model ?? null);
    vectors?.wake();
  });
  const vectors =
    embedder &&
    createBackground(
      'making vectors',
      clock,
      log,
      () => 0,
      async (signal) => {
        await addMissingVectors(embedder, feed, index, log, signal);
        counts = await index.ask('counts', embedder.model);
      },
    );

  function indexLater(): void {
    if (stopped.signal.aborted) return;
    if (index.isRunning || heard >= MANY) indexing.wake();
    else stopWaiting ??= clock.after(laterMs, indexing.wake);
  }

  function indexAgain(): void {
    indexer.again();
    indexing.wake();
  }

  async function refreshed(scope: Scope): Promise<void> {
    const failed = (error: unknown) =>
      log.warn({ ...scope, error: describe(error) }, 'indexing new content failed; searching the rest');
    const [filesChanged] = await Promise.all([
      indexer.refreshFiles(scope).catch(failed),
      indexer.refreshMessages(scope, stopped.signal).catch(failed),
    ]);
    if (filesChanged === true) indexing.wake();
    // The thread runs now, so pending messages need not wait.
    else if (stopWaiting !== null) indexLater();
  }

  return {
    search: createSearch(options, index, () => counts.former, refreshed, stopped.signal),

    heard(room) {
      indexer.rooms.add(room);
      heard++;
      indexLater();
    },

    async forget(chatId) {
      await index.ask('forget', chatId);
      indexAgain();
    },

    status() {
      return {
        indexed: counts.indexed,
        waiting: indexer.waiting(),
        vectors: vectorState(embedder),
        vectorsWaiting: counts.vectorsWaiting,
      };
    },

    start() {
      indexing.start();
      vectors?.start();
      // Vectors may be missing even if everything is indexed.
      if (vectors === null) indexLater();
      else indexing.wake();
    },

    async stop() {
      stopped.abort(OVER);
      stopWaiting?.();
      await Promise.all([indexing.stop(), vectors?.stop()]);
      await index.close();
    },
  };
}

function vectorState(embedder: Embedder | null): ReturnType<Recall['status']>['vectors'] {
  if (embedder === null) return { state: 'off' };
  const state = embedder.state();
  return state.kind === 'ok'
    ? { state: 'ok' }
    : { state: 'failing', since: state.since, reason: state.reason };
}
