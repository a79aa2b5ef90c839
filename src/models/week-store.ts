/**
 * Keeps what was learnt about models of servers, by key, over restarts too. Forgotten after a week, because servers are
 * upgraded. Never throws: where nothing can be read or written, it is only learnt again.
 */
import type { Clock } from '../core/clock.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { parse, record } from './json.js';

const WEEK_MS = 7 * 24 * 60 * 60 * 1000;
/** What another process stored or forgot (`coterie doctor`) is known after this. */
const READ_AGAIN_MS = 10_000;

/** Where it is stored: one text, which several processes may share. */
export interface WeekStorage {
  load(): Promise<string | null>;
  save(value: string): Promise<void>;
}

export interface WeekStore<T> {
  /** Resolves when what was stored, up to ten seconds ago, is there to be got. */
  loaded(): Promise<void>;
  get(key: string): T | null;
  /** Of everything that is kept. */
  keys(): string[];
  /** null forgets it. The week begins when the key is first set. */
  set(key: string, value: T | null): Promise<void>;
}

interface Kept<T> {
  since: number;
  value: T;
}

/** The key of a model of a server, whose address is as it may be shown. */
export const modelKey = (place: string, model: string): string => `${place} ${model}`;

/** The models of a server of which something is kept. */
export function modelsIn(store: Pick<WeekStore<object>, 'keys'>, place: string): string[] {
  const start = modelKey(place, '');
  return store.keys().flatMap((key) => (key.startsWith(start) ? [key.slice(start.length)] : []));
}

/** `read` reads a stored value without trusting it; `what` it is, for the log. */
export function createWeekStore<T extends object>(
  storage: WeekStorage,
  { read, what }: { read(stored: Record<string, unknown>): T | null; what: string },
  clock: Clock,
  log: Log,
): WeekStore<T> {
  const kept = new Map<string, Kept<T>>();
  /** Known here alone, because it could not be stored. */
  const unsaved = new Set<string>();
  let loading: Promise<void> | undefined;
  let loadedAt = Number.NEGATIVE_INFINITY;
  let saving: Promise<void> = Promise.resolve();

  const isPast = (since: number) => clock.now() - since > WEEK_MS;

  async function stored(): Promise<Record<string, unknown>> {
    return record(parse((await storage.load()) ?? '')) ?? {};
  }

  async function readAll() {
    try {
      const all = await stored();
      for (const key of kept.keys()) if (!unsaved.has(key)) kept.delete(key);
      for (const [key, entry] of Object.entries(all)) {
        const found = record(entry);
        const value = found === null ? null : read(found);
        if (value === null || typeof found?.since !== 'number' || unsaved.has(key)) continue;
        if (isPast(found.since)) continue;
        kept.set(key, { since: found.since, value });
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
      unsaved.delete(key);
    } catch (error) {
      unsaved.add(key);
      log.warn({ error: describe(error) }, `${what} could not be kept`);
    }
  }

  function loaded(): Promise<void> {
    if (loading === undefined || clock.now() - loadedAt >= READ_AGAIN_MS) {
      loadedAt = clock.now();
      // Behind what is being saved, which is known here and not yet there.
      loading = saving.then(readAll);
    }
    return loading;
  }

  return {
    loaded,

    get(key) {
      const entry = kept.get(key);
      if (entry !== undefined && isPast(entry.since)) kept.delete(key);
      return kept.get(key)?.value ?? null;
    },

    keys: () => [...kept.keys()],

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
