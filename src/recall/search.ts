/** Searches: asks the index, and returns only messages that the store allows, with excerpts of long ones. */
import { type Clock, OVER } from '../core/clock.js';
import { cutAt } from '../core/cut.js';
import type { Zone } from '../core/dates.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { memoryPath, workspacePath } from '../core/origin.js';
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
import { type HeardMessage, isAfter, wordsBy } from '../core/transcript.js';
import type { RemoteIndex } from './index-thread.js';
import { questionVectors } from './indexing.js';
import type { Ranked } from './search-index.js';
import { indexTerms, subjectTerms } from './terms.js';

/** A slower search returns nothing. */
const SEARCH_MS = 3_000;
/** Maximum wait for files that have just changed; the next search finds the rest. */
const REFRESH_MS = 500;
const MOST_HITS = 100;
/** A later message is no answer to a question. */
const ANSWERED_WITHIN_MS = 3_600_000;
/** Extra hits to request, because the store may withhold some. */
const SPARE = 40;

export interface RecallOptions {
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

/** `former`: the model used until the embedder's vectors are complete. `refreshed` resolves when the scope's changes are indexed. */
export function createSearch(
  options: RecallOptions,
  index: RemoteIndex,
  former: () => string | null,
  refreshed: (scope: Scope) => Promise<void>,
  stopped: AbortSignal,
): Recall['search'] {
  const { feed, embedder, clock, zone, log, searchMs = SEARCH_MS, refreshMs = REFRESH_MS } = options;
  const nothing: RecallResult = { hits: [], by: 'keywords' };

  async function found(scope: Scope, query: RecallQuery, signal: AbortSignal): Promise<RecallResult> {
    const limit = Math.min(Math.max(0, Math.floor(query.limit)), MOST_HITS);
    if (limit === 0 || !/[\p{L}\p{N}]/u.test(query.text)) return nothing;
    const asked = query.around === undefined ? query.text : `${query.around}\n${query.text}`;
    const [vectors] = await Promise.all([
      embedder === null ? [] : questionVectors(embedder, asked, former(), clock, log, signal),
      Promise.race([refreshed(scope), clock.sleep(refreshMs, signal)]),
    ]);
    if (signal.aborted) return nothing;
    const { ranked, byVectors } = await index.ask('search', scope, query, limit * 3 + SPARE, vectors);
    const visible = await shown(feed, zone, scope, query, ranked, limit);
    const hits = await withQuestions(feed, scope, query, ranked, visible);
    const excerptOf = excerptsFor(query.text);
    return {
      hits: hits.map((hit) => withExcerpt(hit, excerptOf(hit.text))),
      by: byVectors ? 'both' : 'keywords',
    };
  }

  return async (scope, query, signal) => {
    const over = new AbortController();
    const both = AbortSignal.any([stopped, over.signal, ...(signal ? [signal] : [])]);
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

/** Longer texts are shown as an excerpt. */
const MOST_CHARS = 600;
/** Context before the first matched word, in characters. */
const LEAD_CHARS = 150;
/** Of an answered question, the end is shown, where it is asked. */
const ASKED_CHARS = 300;
/** Words beyond this position are ignored. */
const READ_CHARS = 50_000;
const MOST_COUNTED = 64;

/** For one question. null: the text is short enough to be shown whole. */
export function excerptsFor(question: string): (text: string) => string | null {
  const wanted = new Set(subjectTerms(question, MOST_COUNTED).map((term) => term.text));
  /** Wanted terms by word: most words occur in many texts. */
  const known = new Map<string, string[]>();
  function wantedIn(word: string): string[] {
    const terms = known.get(word) ?? indexTerms(word).filter((term) => wanted.has(term));
    known.set(word, terms);
    return terms;
  }
  return (text) => (text.length <= MOST_CHARS ? null : excerptOf(text, wantedIn));
}

function excerptOf(text: string, wantedIn: (word: string) => string[]): string {
  const found: { at: number; term: string }[] = [];
  for (const { 0: word, index } of text.slice(0, READ_CHARS).matchAll(/[\p{L}\p{M}\p{N}]+/gu))
    for (const term of wantedIn(word)) found.push({ at: index, term });
  let best = { from: 0, words: 0 };
  let first = 0;
  const inside = new Map<string, number>();
  for (const { at, term } of found) {
    inside.set(term, (inside.get(term) ?? 0) + 1);
    for (
      let other = found[first];
      other && at - other.at > MOST_CHARS - 2 * LEAD_CHARS;
      other = found[first]
    ) {
      const left = (inside.get(other.term) ?? 0) - 1;
      if (left > 0) inside.set(other.term, left);
      else inside.delete(other.term);
      first++;
    }
    if (inside.size > best.words) best = { from: found[first]?.at ?? 0, words: inside.size };
  }
  return part(text, Math.max(0, best.from - LEAD_CHARS), MOST_CHARS);
}

/** null: the question is short enough to be shown whole. */
export function endOf(asked: string): string | null {
  return asked.length <= MOST_CHARS ? null : part(asked, asked.length - ASKED_CHARS, ASKED_CHARS);
}

function part(text: string, from: number, most: number): string {
  const start = from === 0 ? 0 : beginningOf(text, from);
  const shown = cutAt(text.slice(start), most);
  return `${start > 0 ? '… ' : ''}${shown.trim()}${start + shown.length < text.length ? ' …' : ''}`;
}

/** The start of the next word, or at least no cut within a surrogate pair. */
function beginningOf(text: string, from: number): number {
  const space = text.slice(from, from + LEAD_CHARS).search(/\s/);
  if (space >= 0) return from + space + 1;
  return /[\uDC00-\uDFFF]/.test(text[from] ?? '') ? from + 1 : from;
}
