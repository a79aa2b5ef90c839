/**
 * `search_memory`: what was said and noted before, in whatever words. The scope is the caller's own, made by the
 * gateway: there is no parameter for another chat or persona. What an owner asks for in a control chat is looked for in the
 * notes of the workspace, too.
 */
import * as z from 'zod';
import { localMidnight, type Zone } from '../core/dates.js';
import { type Recall, type Recalled, type RecallResult, WORKSPACE } from '../core/recall.js';
import { isFromOutside, recalledLine } from '../core/recalled.js';
import { isOwnersOrder, type Tool } from '../core/tool.js';
import { isDay } from './dates.js';
import { done, failed, shown } from './results.js';

const DEFAULT_HITS = 10;
const MOST_HITS = 50;

const day = z.string().optional();
const parameters = z.object({
  query: z.string().describe('What you look for, in plain words: names, things, what was asked or promised.'),
  limit: z.coerce.number().int().min(1).max(MOST_HITS).optional().describe(`Left out: ${DEFAULT_HITS}.`),
  since: day.describe('YYYY-MM-DD: only from this day on.'),
  until: day.describe('YYYY-MM-DD: only up to this day, inclusive.'),
});

export function searchMemory(recall: Recall, zone: Zone): Tool<z.infer<typeof parameters>> {
  return {
    name: 'search_memory',
    description:
      'Searches your memory, the daily log and everything that was said to you or in your presence in this chat, ' +
      'however long ago. Use it before you say that you do not know or do not remember.',
    hint: 'search what was said and noted in this chat, however long ago',
    parameters,
    risk: 'low',
    async execute({ query, limit = DEFAULT_HITS, since, until }, context) {
      if (context.authorisation === undefined)
        return failed('Permission denied: this call carries no authorisation.');
      if (query.trim() === '') return failed('There is nothing to search for in an empty query.');
      if ((since && !isDay(since)) || (until && !isDay(until))) {
        return failed('since and until must be real days, written YYYY-MM-DD.');
      }
      const { chatId, personaId } = context.authorisation;
      const asked = {
        ...{ text: query, limit, now: context.now },
        ...(since ? { since: startOf(since, zone) } : {}),
        ...(until ? { until: startOf(until, zone, 1) } : {}),
      };
      const own = await recall.search({ chatId, personaId }, asked, context.signal);
      const notes = (await isOwnersOrder(context.authorisation))
        ? await recall.search(WORKSPACE, asked, context.signal)
        : NOTHING;
      const hits = merged(own.hits, notes.hits.map(ofWorkspace)).slice(0, limit);
      if (hits.length === 0) return done('Nothing was found. Other words may find more.');
      const found = done(shown(hits.map((hit) => recalledLine(hit, zone)).join('\n')));
      return hits.some(isFromOutside) ? { ...found, outside: true } : found;
    },
  };
}

const NOTHING: Pick<RecallResult, 'hits'> = { hits: [] };

/** Each list in its own order. */
function merged(own: readonly Recalled[], notes: readonly Recalled[]): Recalled[] {
  const hits: Recalled[] = [];
  const left = [...notes];
  for (const hit of own) {
    while (left[0] !== undefined && left[0].relevance > hit.relevance) hits.push(...left.splice(0, 1));
    hits.push(hit);
  }
  return [...hits, ...left];
}

/** So that nobody takes a day of it for one of the chat. */
function ofWorkspace(hit: Recalled): Recalled {
  const { source } = hit;
  return source.kind === 'message'
    ? hit
    : { ...hit, source: { ...source, file: `workspace/${source.file}` } };
}

/** When a day begins, or one so many days later. */
function startOf(day: string, zone: Zone, later = 0): number {
  const [year = 0, month = 0, date = 0] = day.split('-').map(Number);
  return localMidnight(year, month, date + later, zone);
}
