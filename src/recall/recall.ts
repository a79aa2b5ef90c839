/**
 * Recall over one index: a search brings the asker's files up to date, ranks, and shows of messages only what the
 * store says may be seen. All else happens in the background. Step 4 of the route, and the tool `search_memory`.
 */
import type { Clock } from '../core/clock.js';
import { OVER } from '../core/clock.js';
import type { Zone } from '../core/dates.js';
import type { Embedder } from '../core/embedder.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type {
  Recall,
  Recalled,
  RecallFeed,
  RecallFiles,
  RecallQuery,
  RecallResult,
  Scope,
} from '../core/recall.js';
import { isBehind } from '../core/view.js';
import { createEmbedding } from './embedding.js';
import { createFiles } from './files.js';
import { authorName, createMessages } from './messages.js';
import { startThread } from './thread.js';
import { createUpkeep } from './upkeep.js';
import type { Ranked } from './verbs.js';

/** A search that takes longer answers with nothing. */
const SEARCH_MS = 3_000;
/** For files that changed just now: later ones are in the next answer. */
const REFRESH_MS = 500;
const MOST_HITS = 100;
/** Nobody looks at once for what was just said: it is in the window. */
const GATHER_MS = 500;
/** What the store keeps back is made up for from further down. */
const SPARE = 40;

export function createRecall(options: {
  /** The database, beside the store's. */
  file: string;
  feed: RecallFeed;
  files: RecallFiles;
  embedder: Embedder | null;
  clock: Clock;
  zone: Zone;
  log: Log;
  /** The compiled `recall-worker.js`, where it is not beside this module. */
  worker?: URL;
}): Recall {
  const { file, feed, embedder, clock, zone, log } = options;
  const stopped = new AbortController();
  const index = startThread({
    entry: options.worker ?? new URL('./recall-worker.js', import.meta.url),
    settings: { file, zone: zone.name },
    ...{ clock, log },
    anew() {
      messages.again();
      files.again();
      indexing.wake();
    },
  });
  const messages = createMessages({ feed, files: options.files, index });
  const files = createFiles({ files: options.files, index });
  const embedding = embedder && createEmbedding({ ...{ embedder, feed, index, clock, log } });
  let counts = { indexed: 0, vectorsWaiting: 0 };
  const indexing = createUpkeep(
    'indexing for search',
    { clock, log, gatherMs: GATHER_MS },
    async (signal) => {
      await messages.catchUp(signal);
      await files.catchUp(signal);
      counts = await index.counts(embedder?.model ?? null);
      embeddings?.wake();
    },
  );
  const embeddings =
    embedding &&
    createUpkeep('making vectors', { clock, log, gatherMs: 0 }, async (signal) => {
      await embedding.catchUp(signal);
      counts = await index.counts(embedder?.model ?? null);
    });

  async function found(scope: Scope, query: RecallQuery, signal: AbortSignal): Promise<RecallResult> {
    const limit = Math.min(Math.max(0, Math.floor(query.limit)), MOST_HITS);
    if (limit === 0 || !/[\p{L}\p{N}]/u.test(query.text)) return { hits: [], by: 'keywords' };
    const [vector] = await Promise.all([
      embedding === null ? null : embedding.question(query.text, signal),
      Promise.race([refreshed(scope), clock.sleep(REFRESH_MS, signal)]),
    ]);
    if (signal.aborted) return { hits: [], by: 'keywords' };
    const { ranked, byVectors } = await index.search({ scope, query, most: limit * 3 + SPARE, vector });
    return { hits: (await shown(scope, query, ranked)).slice(0, limit), by: byVectors ? 'both' : 'keywords' };
  }

  async function refreshed(scope: Scope): Promise<void> {
    try {
      if (await files.refresh(scope)) indexing.wake();
    } catch (error) {
      log.warn(
        { ...scope, error: describe(error) },
        'memory files could not be indexed: their former text is searched',
      );
    }
  }

  async function shown(scope: Scope, query: RecallQuery, ranked: Ranked[]): Promise<Recalled[]> {
    const ids = ranked.flatMap((hit) => (hit.kind === 'message' ? [hit.messageId] : []));
    const visible = ids.length === 0 ? [] : await feed.visible(scope, ids);
    const byId = new Map(visible.map((message) => [message.id, message]));
    const told = new Set<string>();
    return ranked.flatMap((hit) => {
      const recalled =
        hit.kind === 'line' ? hit.recalled : fromMessage(hit, byId.get(hit.messageId), scope, query);
      if (recalled === null || recalled.text.trim() === '') return [];
      // The same words of the same minute: an archive beside the store, or a message that was heard twice.
      const key = `${recalled.at === null ? '' : zone.time(recalled.at)} ${recalled.text.trim()}`;
      if (told.has(key)) return [];
      told.add(key);
      return [recalled];
    });
  }

  return {
    async search(scope, query, signal) {
      const over = new AbortController();
      const both = AbortSignal.any([stopped.signal, over.signal, ...(signal ? [signal] : [])]);
      const nothing: RecallResult = { hits: [], by: 'keywords' };
      try {
        const late = clock.sleep(SEARCH_MS, both).then(() => null);
        const result = await Promise.race([found(scope, query, both), late]);
        if (result === null && !both.aborted)
          log.warn({ ...scope }, 'a search of memory took too long, and found nothing');
        return result ?? nothing;
      } catch (error) {
        if (!both.aborted) log.warn({ ...scope, error: describe(error) }, 'memory could not be searched');
        return nothing;
      } finally {
        over.abort(OVER);
      }
    },

    heard(room) {
      messages.heard(room);
      indexing.wake();
    },

    async forget(chatId) {
      files.forget(chatId);
      await index.forget(chatId);
      messages.again();
      files.again();
      indexing.wake();
    },

    status() {
      const state = embedder === null ? null : embedder.state();
      return {
        indexed: counts.indexed,
        waiting: messages.waiting() + files.waiting(),
        vectors:
          state === null
            ? { state: 'off' }
            : state.kind === 'ok'
              ? { state: 'ok' }
              : { state: 'failing', since: state.since, reason: state.reason },
        vectorsWaiting: counts.vectorsWaiting,
      };
    },

    start() {
      indexing.start();
      embeddings?.start();
    },

    async stop() {
      stopped.abort(OVER);
      await Promise.all([indexing.stop(), embeddings?.stop()]);
      await index.close();
    },
  };
}

function fromMessage(
  hit: { relevance: number },
  message: Awaited<ReturnType<RecallFeed['visible']>>[number] | undefined,
  scope: Scope,
  query: RecallQuery,
): Recalled | null {
  if (message === undefined) return null;
  const { id, room, sentAt, text, author, place } = message;
  if (query.since !== undefined && sentAt < query.since) return null;
  if (query.until !== undefined && sentAt >= query.until) return null;
  if (query.except?.room === room && isBehind(place, query.except.after)) return null;
  const own = author.kind === 'persona' && author.id === scope.personaId;
  const source = { kind: 'message' as const, room, messageId: id, author: authorName(message), own };
  return { text, at: sentAt, source, relevance: hit.relevance };
}
