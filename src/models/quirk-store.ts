/**
 * Remembers what each model of each server refuses, so that it is asked in vain only once. Forgotten after a week;
 * `doctor` forgets at once.
 */
import type { Clock } from '../core/clock.js';
import type { Log } from '../core/log.js';
import { createWeekStore, type WeekStorage, type WeekStore } from './week-store.js';

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
  /** A system message (Gemma). */
  'system_role',
  /** Calls and results of tools in the history, while tools may be offered all the same. */
  'tool_results',
  /** Two messages of one side in a row, or an assistant's before the first of a user. */
  'role_order',
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

/** Where it is stored: one text, which the clients of several servers may share. */
export type QuirkStorage = WeekStorage;

interface Known {
  refused: Quirk[];
  /** How many tools it takes in one request, where it has refused more. */
  mostTools?: number;
}

/** By `modelKey`: what was refused. */
export interface QuirkStore extends WeekStore<Known> {
  add(key: string, quirk: Quirk): Promise<void>;
  remove(key: string, quirk: Quirk): Promise<void>;
  limitTools(key: string, most: number): Promise<void>;
}

export function createQuirkStore(storage: QuirkStorage, clock: Clock, log: Log): QuirkStore {
  const kept = createWeekStore(storage, { read, what: 'what model servers refuse' }, clock, log);
  const known = (key: string): Known => kept.get(key) ?? { refused: [] };

  return {
    ...kept,

    async add(key, quirk) {
      await kept.loaded();
      const before = known(key);
      if (before.refused.includes(quirk)) return;
      await kept.set(key, { ...before, refused: [...before.refused, quirk] });
    },

    async remove(key, quirk) {
      const before = known(key);
      const refused = before.refused.filter((each) => each !== quirk);
      const isEmpty = refused.length === 0 && before.mostTools === undefined;
      await kept.set(key, isEmpty ? null : { ...before, refused });
    },

    async limitTools(key, mostTools) {
      await kept.loaded();
      await kept.set(key, { ...known(key), mostTools });
    },
  };
}

function read({ refused, mostTools }: Record<string, unknown>): Known | null {
  if (!Array.isArray(refused)) return null;
  const isBound = typeof mostTools === 'number' && Number.isInteger(mostTools) && mostTools > 0;
  return { refused: QUIRKS.filter((quirk) => refused.includes(quirk)), ...(isBound && { mostTools }) };
}
