/**
 * Keeps what was learnt about models of servers, by key, over restarts too. Forgotten after a week, because servers are
 * upgraded. Never throws: where nothing can be read or written, it is only learnt again.
 */
import type { Clock } from '../core/clock.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { parse, record } from './json.js';

const WEEK_MS = 7 * 24 * 60 * 60 * 1000;

/** Where it is stored: one text, which several processes may share. */
export interface WeekStorage {
  load(): Promise<string | null>;
  save(value: string): Promise<void>;
}

export interface WeekStore<T> {
  /** Resolves when what was stored is there to be got. */
  loaded(): Promise<void>;
  get(key: string): T | null;
  /** null forgets it. The week begins when the key is first set. */
  set(key: string, value: T | null): Promise<void>;
}

interface Kept<T> {
  since: number;
  value: T;
}

/** The key of a model of a server, whose address is as it may be shown. */
export const modelKey = (place: string, model: string): string => `${place} ${model}`;

/** `read` reads a stored value without trusting it; `what` it is, for the log. */
export function createWeekStore<T extends object>(
  storage: WeekStorage,
  { read, what }: { read(stored: Record<string, unknown>): T | null; what: string },
  clock: Clock,
  log: Log,
): WeekStore<T> {
  const kept = new Map<string, Kept<T>>();
  let loading: Promise<void> | undefined;
  let saving: Promise<void> = Promise.resolve();

  async function stored(): Promise<Record<string, unknown>> {
    return record(parse((await storage.load()) ?? '')) ?? {};
  }

  async function readOnce() {
    try {
      for (const [key, entry] of Object.entries(await stored())) {
        const found = record(entry);
        const value = found === null ? null : read(found);
        if (value !== null && typeof found?.since === 'number') kept.set(key, { since: found.since, value });
      }
    } catch (error) {
      log.warn({ error: describe(error) }, `${what} could not be read; it is learnt again`);
    }
  }

  async function save(key: string) {
    try {
      // Read again: another process may have written entries of its own meanwhile.
      const all = await stored();
      const entry = kept.get(key);
      if (entry === undefined) delete all[key];
      else all[key] = { since: entry.since, ...entry.value };
      await storage.save(JSON.stringify(all));
    } catch (error) {
      log.warn({ error: describe(error) }, `${what} could not be kept`);
    }
  }

  function loaded(): Promise<void> {
    loading ??= readOnce();
    return loading;
  }

  return {
    loaded,

    get(key) {
      const entry = kept.get(key);
      if (entry !== undefined && clock.now() - entry.since > WEEK_MS) kept.delete(key);
      return kept.get(key)?.value ?? null;
    },

    async set(key, value) {
      await loaded();
      if (value === null) {
        if (!kept.delete(key)) return;
      } else kept.set(key, { since: kept.get(key)?.since ?? clock.now(), value });
      saving = saving.then(() => save(key));
      await saving;
    },
  };
}
