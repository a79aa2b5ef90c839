/**
 * What was learnt of model servers in use, by server and model: what each refuses, and its context window. One small table in one
 * setting, so that it outlives a restart; `coterie doctor` forgets it.
 */
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { parse, record } from './json.js';

/** What to leave out of a request; `max_tokens` is then called `max_completion_tokens`. */
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

export interface Ways {
  refused: readonly Quirk[];
  /** How many tools it takes in one request, where it has refused more. */
  mostTools: number | null;
  /** Its context window as the server's list of models tells it. */
  told: number | null;
  /** Its context window as it showed itself. Void once the server tells something else than when this was learnt. */
  learnt: { tokens: number; how: 'refused' | 'cut'; told: number | null } | null;
}

const NOTHING: Ways = { refused: [], mostTools: null, told: null, learnt: null };

/** `server`: its address as it may be shown. */
export interface ServerWays {
  /** Resolves when what another process has stored or forgotten is known here. Never rejects. */
  refresh(): Promise<void>;
  of(server: string, model: string): Ways;
  modelsOf(server: string): string[];
  change(server: string, model: string, change: (ways: Ways) => Partial<Ways>): Promise<void>;
  forget(server: string): Promise<void>;
}

/** Where nothing can be read or written, everything is known here alone. */
export function createServerWays(
  storage: { load(): Promise<string | null>; save(value: string): Promise<void> },
  log: Log,
): ServerWays {
  let table = new Map<string, Ways>();
  let isUnsaved = false;
  let queue: Promise<void> = Promise.resolve();
  const keyOf = (server: string, model: string) => `${server} ${model}`;
  const of = (server: string, model: string) => table.get(keyOf(server, model)) ?? NOTHING;

  async function read(): Promise<void> {
    if (isUnsaved) return;
    try {
      table = tableIn((await storage.load()) ?? '');
    } catch (error) {
      log.warn(
        { error: describe(error) },
        'reading what is known of model servers failed; learning it again',
      );
    }
  }

  async function save(): Promise<void> {
    try {
      await storage.save(JSON.stringify(Object.fromEntries(table)));
      isUnsaved = false;
    } catch (error) {
      isUnsaved = true;
      log.warn(
        { error: describe(error) },
        'storing what is known of model servers failed; keeping it in memory',
      );
    }
  }

  /** What reads and writes, one after the other. */
  function inTurn(work: () => Promise<void>): Promise<void> {
    queue = queue.then(work);
    return queue;
  }

  return {
    of,
    refresh: () => inTurn(read),
    modelsOf: (server) =>
      [...table.keys()].flatMap((key) =>
        key.startsWith(`${server} `) ? [key.slice(server.length + 1)] : [],
      ),
    change: (server, model, change) =>
      inTurn(async () => {
        await read();
        const before = of(server, model);
        table.set(keyOf(server, model), { ...before, ...change(before) });
        await save();
      }),
    forget: (server) =>
      inTurn(async () => {
        await read();
        for (const key of table.keys()) if (key.startsWith(`${server} `)) table.delete(key);
        await save();
      }),
  };
}

function tableIn(text: string): Map<string, Ways> {
  const rows = Object.entries(record(parse(text)) ?? {});
  return new Map(rows.map(([key, row]) => [key, waysIn(record(row) ?? {})]));
}

function waysIn({ refused, mostTools, told, learnt }: Record<string, unknown>): Ways {
  const { tokens, how, told: then } = record(learnt) ?? {};
  const isLearnt = typeof tokens === 'number' && (how === 'refused' || how === 'cut');
  return {
    refused: QUIRKS.filter((quirk) => Array.isArray(refused) && refused.includes(quirk)),
    mostTools: positive(mostTools),
    told: positive(told),
    learnt: isLearnt ? { tokens, how, told: positive(then) } : null,
  };
}

function positive(value: unknown): number | null {
  return typeof value === 'number' && value > 0 ? value : null;
}
