/** Recall for step 4 and `search_memory`: indexes the scope's changes, ranks, and returns only messages that the store allows. */
import { type Clock, OVER } from '../core/clock.js';
import type { Zone } from '../core/dates.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { memoryPath, workspacePath } from '../core/origin.js';
import { isAfter } from '../core/position.js';
import {
  type Embedder,
  isWorkspace,
  type Recall,
  type Recalled,
  type RecallFeed,
  type RecallFiles,
  type RecallQuery,
  type RecallResult,
  type Scope,
} from '../core/recall.js';
import { type HeardMessage, wordsBy } from '../core/transcript.js';
import { createIndexThread, type Ranked, type RemoteIndex } from './index-thread.js';
import { addMissingVectors, Indexer, questionVectors } from './indexing.js';
import { endOf, excerptsFor } from './question.js';

/** A slower search returns nothing. */
const SEARCH_MS = 3_000;
/** Maximum wait for files that have just changed; the next search finds the rest. */
const REFRESH_MS = 500;
const MOST_HITS = 100;
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
/** A later message is no answer to a question. */
const ANSWERED_WITHIN_MS = 3_600_000;
/** Extra hits to request, because the store may withhold some. */
const SPARE = 40;

interface RecallOptions {
  file: string;
  feed: RecallFeed;
  files: RecallFiles;
  embedder: Embedder | null;
  clock: Clock;
  zone: Zone;
  log: Log;
  /** The compiled `recall-worker.js`. Default: next to this module. */
  worker?: URL;
  searchMs?: number;
  refreshMs?: number;
  laterMs?: number;
  gatherMs?: number;
  threadIdleMs?: number;
}

/** The zone is read when the thread starts: the system's may change while the gateway runs. */
function threadSettings(file: string, zone: Zone) {
  return {
    file,
    get zone() {
      return zone.name;
    },
  };
}

export function createRecall(options: RecallOptions): Recall {
  const {
    file,
    feed,
    embedder,
    clock,
    zone,
    log,
    searchMs = SEARCH_MS,
    refreshMs = REFRESH_MS,
    laterMs = LATER_MS,
    gatherMs = GATHER_MS,
    threadIdleMs = THREAD_IDLE_MS,
  } = options;
  const stopped = new AbortController();
  const entry = options.worker ?? new URL('./recall-worker.js', import.meta.url);
  const settings = threadSettings(file, zone);
  const index = createIndexThread(entry, settings, threadIdleMs, clock, log, indexAgain);
  const indexer = new Indexer(feed, options.files, index);
  let counts: Awaited<ReturnType<RemoteIndex['counts']>> = { indexed: 0, vectorsWaiting: 0, former: null };
  let heard = 0;
  let stopWaiting: (() => void) | null = null;
  const restMs = (tookMs: number) => Math.min(Math.max(gatherMs, tookMs * REST_PER_WORK), LONGEST_REST_MS);
  const indexing = createBackground('indexing for search', clock, log, restMs, async (signal) => {
    stopWaiting?.();
    stopWaiting = null;
    heard = 0;
    await indexer.catchUp(signal);
    counts = await index.counts(embedder?.model ?? null);
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
        counts = await index.counts(embedder.model);
      },
    );

  function indexLater(): void {
    if (stopped.signal.aborted) return;
    if (index.isRunning() || heard >= MANY) indexing.wake();
    else stopWaiting ??= clock.after(laterMs, indexing.wake);
  }

  function indexAgain(): void {
    indexer.again();
    indexing.wake();
  }

  async function found(scope: Scope, query: RecallQuery, signal: AbortSignal): Promise<RecallResult> {
    const limit = Math.min(Math.max(0, Math.floor(query.limit)), MOST_HITS);
    if (limit === 0 || !/[\p{L}\p{N}]/u.test(query.text)) return { hits: [], by: 'keywords' };
    const asked = query.around === undefined ? query.text : `${query.around}\n${query.text}`;
    const [vectors] = await Promise.all([
      embedder === null ? [] : questionVectors(embedder, asked, counts.former, clock, log, signal),
      Promise.race([refreshed(scope), clock.sleep(refreshMs, signal)]),
    ]);
    if (signal.aborted) return { hits: [], by: 'keywords' };
    const { ranked, byVectors } = await index
      .search({ scope, query, most: limit * 3 + SPARE, vectors })
      .finally(() => {
        // The thread runs now, so pending messages need not wait.
        if (stopWaiting !== null) indexLater();
      });
    const visible = await shown(feed, zone, scope, query, ranked, limit);
    const hits = await withQuestions(feed, scope, query, ranked, visible);
    const excerptOf = excerptsFor(query.text);
    return {
      hits: hits.map((hit) => withExcerpt(hit, excerptOf(hit.text))),
      by: byVectors ? 'both' : 'keywords',
    };
  }

  async function refreshed(scope: Scope): Promise<void> {
    const failed = (error: unknown) =>
      log.warn({ ...scope, error: describe(error) }, 'indexing new content failed; searching the rest');
    const [filesChanged] = await Promise.all([
      indexer.refreshFiles(scope).catch(failed),
      indexer.refreshMessages(scope, stopped.signal).catch(failed),
    ]);
    if (filesChanged === true) indexing.wake();
    else if (stopWaiting !== null) indexLater();
  }

  return {
    async search(scope, query, signal) {
      const over = new AbortController();
      const both = AbortSignal.any([stopped.signal, over.signal, ...(signal ? [signal] : [])]);
      const nothing: RecallResult = { hits: [], by: 'keywords' };
      try {
        const late = clock.sleep(searchMs, both).then(() => null);
        const result = await Promise.race([found(scope, query, both), late]);
        if (result === null && !both.aborted)
          log.warn({ ...scope }, 'a search of memory timed out and returned nothing');
        return result ?? nothing;
      } catch (error) {
        if (!both.aborted) log.warn({ ...scope, error: describe(error) }, 'memory could not be searched');
        return nothing;
      } finally {
        over.abort(OVER);
      }
    },

    heard(room) {
      indexer.heard(room);
      heard++;
      indexLater();
    },

    async forget(chatId) {
      await index.forget(chatId);
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

/** The best visible hits, at most `limit`. Asks the store for as many at a time, mostly once. */
async function shown(
  feed: RecallFeed,
  zone: Zone,
  scope: Scope,
  query: RecallQuery,
  ranked: Ranked[],
  limit: number,
): Promise<Recalled[]> {
  /** By text and minute: a message may also be in an archive, or be heard twice. */
  const hits = new Map<string, Recalled>();
  for (let n = 0; n < ranked.length && hits.size < limit; n += limit) {
    const next = ranked.slice(n, n + limit);
    const byId = await visibleById(
      feed,
      scope,
      next.flatMap((hit) => (hit.kind === 'message' ? hit.messageId : [])),
    );
    for (const hit of next) {
      const recalled =
        hit.kind === 'line'
          ? await withOrigin(feed, scope, hit.recalled)
          : fromMessage(hit, byId.get(hit.messageId), scope, query);
      if (recalled === null || recalled.text.trim() === '') continue;
      const key = `${recalled.at === null ? '' : zone.time(recalled.at)} ${recalled.text.trim()}`;
      if (!hits.has(key)) hits.set(key, recalled);
    }
  }
  return [...hits.values()].slice(0, limit);
}

/** Marks a line as from outside if its file's origin says so. */
async function withOrigin(feed: RecallFeed, scope: Scope, recalled: Recalled): Promise<Recalled> {
  const { source, text } = recalled;
  if (source.kind === 'message') return recalled;
  const path = isWorkspace(scope) ? workspacePath(source.file) : memoryPath(scope.chatId, source.file);
  const origin = await feed.originIn(path, () => text);
  return origin === 'outside' ? { ...recalled, outside: true } : recalled;
}

async function visibleById(
  feed: RecallFeed,
  scope: Scope,
  ids: number[],
): Promise<Map<number, HeardMessage>> {
  const visible = ids.length === 0 ? [] : await feed.visible(scope, ids);
  return new Map(visible.map((message) => [message.id, message]));
}

/** Adds the preceding question to hits that may be answers. */
async function withQuestions(
  feed: RecallFeed,
  scope: Scope,
  query: RecallQuery,
  ranked: Ranked[],
  hits: Recalled[],
): Promise<Recalled[]> {
  const before = new Map(
    ranked.flatMap((hit) => (hit.kind === 'message' ? [[hit.messageId, hit.before]] : [])),
  );
  const beforeOf = ({ source }: Recalled) =>
    (source.kind === 'message' ? before.get(source.messageId) : null) ?? null;
  const ids = hits.flatMap((hit) => beforeOf(hit) ?? []);
  if (ids.length === 0) return hits;
  const byId = await visibleById(feed, scope, ids);
  return hits.map((hit) => {
    const asked = fromMessage(hit, byId.get(beforeOf(hit) ?? -1), scope, query);
    return asked !== null && isQuestionOf(asked, hit) ? { ...hit, answers: asked } : hit;
  });
}

function vectorState(embedder: Embedder | null): ReturnType<Recall['status']>['vectors'] {
  if (embedder === null) return { state: 'off' };
  const state = embedder.state();
  return state.kind === 'ok'
    ? { state: 'ok' }
    : { state: 'failing', since: state.since, reason: state.reason };
}

function withExcerpt(hit: Recalled, excerpt: string | null): Recalled {
  const end = hit.answers && endOf(hit.answers.text);
  return {
    ...hit,
    ...(excerpt === null ? {} : { excerpt }),
    ...(hit.answers && end ? { answers: { ...hit.answers, excerpt: end } } : {}),
  };
}

function isQuestionOf(asked: Recalled, answer: Recalled): boolean {
  const soon = asked.at !== null && answer.at !== null && Math.abs(answer.at - asked.at) < ANSWERED_WITHIN_MS;
  const isAnother = nameOf(asked) !== nameOf(answer);
  return soon && isAnother && /[?？؟]\P{L}*$/u.test(asked.text);
}

function nameOf({ source }: Recalled): string {
  return source.kind === 'message' ? `${source.author} ${source.own}` : '';
}

function fromMessage(
  hit: { relevance: number; rare?: boolean },
  message: HeardMessage | undefined,
  scope: Scope,
  query: RecallQuery,
): Recalled | null {
  if (message === undefined) return null;
  const { id, room, sentAt, text, author, position } = message;
  if (query.since !== undefined && sentAt < query.since) return null;
  if (query.until !== undefined && sentAt >= query.until) return null;
  if (query.except?.room === room && isAfter(position, query.except.after)) return null;
  const own = author.kind === 'persona' && author.id === scope.personaId;
  const source = { kind: 'message' as const, room, messageId: id, author: wordsBy(message), own };
  const outside = message.tainted ? { outside: true as const } : {};
  return { text, at: sentAt, source, relevance: hit.relevance, rare: hit.rare === true, ...outside };
}

const RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 30_000;

/** Runs `work` each time it is woken, and retries failures. `restMs`: the pause after a run, by its duration in ms. */
function createBackground(
  what: string,
  clock: Clock,
  log: Log,
  restMs: (tookMs: number) => number,
  work: (signal: AbortSignal) => Promise<void>,
) {
  const stopped = new AbortController();
  let running: Promise<void> | null = null;
  let isWoken = false;
  let ring = () => {};

  async function run(): Promise<void> {
    let failures = 0;
    while (!stopped.signal.aborted) {
      try {
        if (!isWoken && failures === 0) await new Promise<void>((resolve) => (ring = resolve));
        if (stopped.signal.aborted) return;
        isWoken = false;
        const began = clock.now();
        await work(stopped.signal);
        failures = 0;
        // Collects a burst into one run.
        await clock.sleep(restMs(Math.max(0, clock.now() - began)), stopped.signal);
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
    /** Requests a run; if one is in progress, another follows. */
    wake(): void {
      isWoken = true;
      ring();
    },
    async stop(): Promise<void> {
      stopped.abort(OVER);
      ring();
      await running;
    },
  };
}
