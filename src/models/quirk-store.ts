/**
 * Remembers what each model of each server refuses, over restarts too, so that it is asked in vain only once.
 * Forgotten after a week, because servers are upgraded; `doctor` forgets at once.
 */
import type { Clock } from '../core/clock.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { parse, record } from './json.js';

/** What to leave out; `max_tokens` is then called `max_completion_tokens`. */
export const QUIRKS = [
  'max_tokens',
  'max_completion_tokens',
  'temperature',
  'stream_options',
  'stream',
  'tools',
  /** Calls in the history while no tools are offered (proxies in front of Anthropic's models). */
  'calls_without_tools',
  /** Calls in the history without what their own answer came with: made elsewhere, or before that was kept. */
  'calls_without_echo',
  /** What came along with an answer, given back. */
  'echo',
  /** A user's message right behind a tool's result (Mistral). */
  'user_after_tool',
  'images',
  /** Tools on chat completions while the model reasons (gpt-5.5 and 5.6): the next two say what is left to try. */
  'reasoning_with_tools',
  /** The Responses API. */
  'responses',
  'reasoning_effort',
  /** That tools are offered which may not be called this time. */
  'tool_choice',
  'prompt_cache_key',
  /** `prompt_cache_breakpoint` and `cache_control` on parts of messages. */
  'cache_marks',
] as const;

export type Quirk = (typeof QUIRKS)[number];

const WEEK_MS = 7 * 24 * 60 * 60 * 1000;

/** Where it is stored: one text, which the clients of several servers may share. */
export interface QuirkStorage {
  load(): Promise<string | null>;
  save(value: string): Promise<void>;
}

/** Never throws: where nothing can be read or written, that only costs a refused request. */
export interface QuirkStore {
  refused(key: string): Promise<ReadonlySet<Quirk>>;
  add(key: string, quirk: Quirk): Promise<void>;
  forget(key: string): Promise<void>;
}

interface Entry {
  since: number;
  refused: Quirk[];
}

export function createQuirkStore(storage: QuirkStorage, clock: Clock, log: Log): QuirkStore {
  const entries = new Map<string, Entry>();
  let loading: Promise<void> | undefined;

  async function stored(): Promise<Record<string, unknown>> {
    return record(parse((await storage.load()) ?? '')) ?? {};
  }

  async function readOnce() {
    try {
      for (const [key, value] of Object.entries(await stored())) {
        const entry = entryOf(value);
        if (entry !== null) entries.set(key, entry);
      }
    } catch (error) {
      log.warn({ error: describe(error) }, 'what model servers refuse could not be read; it is learnt again');
    }
  }

  function loaded(): Promise<void> {
    loading ??= readOnce();
    return loading;
  }

  async function save(key: string) {
    try {
      // Read again: another server's client may have written its own entries meanwhile.
      const all = await stored();
      const entry = entries.get(key);
      if (entry === undefined) delete all[key];
      else all[key] = entry;
      await storage.save(JSON.stringify(all));
    } catch (error) {
      log.warn({ error: describe(error) }, 'what a model server refuses could not be kept');
    }
  }

  return {
    async refused(key) {
      await loaded();
      const entry = entries.get(key);
      if (entry !== undefined && clock.now() - entry.since > WEEK_MS) entries.delete(key);
      return new Set(entries.get(key)?.refused);
    },

    async add(key, quirk) {
      await loaded();
      const entry = entries.get(key) ?? { since: clock.now(), refused: [] };
      if (entry.refused.includes(quirk)) return;
      entries.set(key, { ...entry, refused: [...entry.refused, quirk] });
      await save(key);
    },

    async forget(key) {
      await loaded();
      if (entries.delete(key)) await save(key);
    },
  };
}

function entryOf(value: unknown): Entry | null {
  const entry = record(value);
  if (entry === null || typeof entry.since !== 'number' || !Array.isArray(entry.refused)) return null;
  const refused = QUIRKS.filter((quirk) => (entry.refused as unknown[]).includes(quirk));
  return { since: entry.since, refused };
}
