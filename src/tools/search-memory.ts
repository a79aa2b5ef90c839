/**
 * `search_memory`: what was said and noted before, in whatever words. The scope is the caller's own, made by the
 * gateway: there is no parameter for another chat or persona.
 */
import * as z from 'zod';
import { localMidnight, type Zone } from '../core/dates.js';
import type { Recall } from '../core/recall.js';
import { isFromOutside, recalledLine } from '../core/recalled.js';
import type { Tool } from '../core/tool.js';
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
      const result = await recall.search(
        { chatId, personaId },
        {
          text: query,
          limit,
          now: context.now,
          ...(since ? { since: startOf(since, zone) } : {}),
          ...(until ? { until: startOf(until, zone, 1) } : {}),
        },
        context.signal,
      );
      if (result.hits.length === 0) return done('Nothing was found. Other words may find more.');
      const found = done(shown(result.hits.map((hit) => recalledLine(hit, zone)).join('\n')));
      return result.hits.some(isFromOutside) ? { ...found, outside: true } : found;
    },
  };
}

/** When a day begins, or one so many days later. */
function startOf(day: string, zone: Zone, later = 0): number {
  const [year = 0, month = 0, date = 0] = day.split('-').map(Number);
  return localMidnight(year, month, date + later, zone);
}
