/** The messages of a room behind the last one that is stored, oldest first. */
import type { Log } from '../../core/log.js';
import type { Api } from './api.js';
import { read } from './payload.js';
import { byAge, isLater, snowflakeAt } from './snowflake.js';

/** As many as Discord gives at once. */
export const PAGE = 100;
/** Of a room in which more was said, the newest matter most. */
const MOST_PAGES = 20;
/** What is older is not asked for. */
const HORIZON_MS = 7 * 86_400_000;

interface Found {
  id: string;
  payload: unknown;
}

/** Rejects when Discord cannot be asked. */
export async function missedIn(
  { api, log }: { api: Api; log: Log },
  room: string,
  { last, now, signal }: { last: string; now: number; signal: AbortSignal },
): Promise<unknown[]> {
  const horizon = snowflakeAt(now - HORIZON_MS);
  const after = isLater(horizon, last) ? horizon : last;
  const first = await page({ after });
  // Mostly that is all. Else the rest is fetched from the newest backwards, up to what is there already.
  const rest = first.length < PAGE ? [] : await upTo(first.at(-1)?.id ?? after);
  return [...first, ...rest].map(({ payload }) => payload);

  async function page(query: Record<string, string>): Promise<Found[]> {
    const ask = { limit: String(PAGE), ...query };
    const told = await api.call(
      { method: 'GET', path: `/channels/${room}/messages`, query: ask },
      { signal },
    );
    if (!Array.isArray(told)) throw new Error('Discord answers with something else than messages');
    const found: Found[] = told.flatMap((payload: unknown) => {
      const id = read.answer(payload)?.id;
      return id === undefined ? [] : [{ id, payload }];
    });
    return found.sort(byAge);
  }

  async function upTo(known: string): Promise<Found[]> {
    let found: Found[] = [];
    for (let pages = 0; pages < MOST_PAGES; pages += 1) {
      const before = found[0]?.id;
      const earlier = await page(before === undefined ? {} : { before });
      const unknown = earlier.filter(({ id }) => isLater(id, known));
      found = [...unknown, ...found];
      if (unknown.length < PAGE) return found;
    }
    log.warn({ channel: 'discord', room }, 'more was missed in a channel than is fetched; the newest is');
    return found;
  }
}
