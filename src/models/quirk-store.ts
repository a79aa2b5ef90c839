/**
 * Remembers what each model of each server refuses, over restarts too, so that it is asked in vain only once.
 * Forgotten after a week, because servers are upgraded; `doctor` forgets at once.
 */
import type { Clock } from '../core/clock.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { parse, record } from './json.js';
import { QUIRKS, type Quirk } from './quirks.js';

const WEEK_MS = 7 * 24 * 60 * 60 * 1000;

/** Where the book is kept: one text, which several servers' books may share. */
export interface QuirkStorage {
  load(): Promise<string | null>;
  save(value: string): Promise<void>;
}

/** Never throws: a book that cannot be read or written only costs a refused request. */
export interface QuirkBook {
  refused(key: string): Promise<ReadonlySet<Quirk>>;
  add(key: string, quirk: Quirk): Promise<void>;
  forget(key: string): Promise<void>;
}

interface Page {
  since: number;
  refused: Quirk[];
}

export function createQuirkBook(storage: QuirkStorage, clock: Clock, log: Log): QuirkBook {
  const pages = new Map<string, Page>();
  let loading: Promise<void> | undefined;

  async function stored(): Promise<Record<string, unknown>> {
    return record(parse((await storage.load()) ?? '')) ?? {};
  }

  async function readOnce() {
    try {
      for (const [key, value] of Object.entries(await stored())) {
        const page = pageOf(value);
        if (page !== null) pages.set(key, page);
      }
    } catch (error) {
      log.warn({ error: describe(error) }, 'what model servers refuse could not be read; it is learnt again');
    }
  }

  function loaded(): Promise<void> {
    loading ??= readOnce();
    return loading;
  }

  async function keep(key: string) {
    try {
      // Read again: another server's client may have written its own pages meanwhile.
      const all = await stored();
      const page = pages.get(key);
      if (page === undefined) delete all[key];
      else all[key] = page;
      await storage.save(JSON.stringify(all));
    } catch (error) {
      log.warn({ error: describe(error) }, 'what a model server refuses could not be kept');
    }
  }

  return {
    async refused(key) {
      await loaded();
      const page = pages.get(key);
      if (page !== undefined && clock.now() - page.since > WEEK_MS) pages.delete(key);
      return new Set(pages.get(key)?.refused);
    },

    async add(key, quirk) {
      await loaded();
      const page = pages.get(key) ?? { since: clock.now(), refused: [] };
      if (page.refused.includes(quirk)) return;
      pages.set(key, { ...page, refused: [...page.refused, quirk] });
      await keep(key);
    },

    async forget(key) {
      await loaded();
      if (pages.delete(key)) await keep(key);
    },
  };
}

function pageOf(value: unknown): Page | null {
  const page = record(value);
  if (page === null || typeof page.since !== 'number' || !Array.isArray(page.refused)) return null;
  const refused = QUIRKS.filter((quirk) => (page.refused as unknown[]).includes(quirk));
  return { since: page.since, refused };
}
