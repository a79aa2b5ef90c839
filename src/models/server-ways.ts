/** Quirks and windows learnt of each server and model. One setting, so that they survive a restart; `coterie doctor` clears it. */
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { parse, record } from './json.js';

/** Things to omit from a request; instead of `max_tokens`, `max_completion_tokens` is sent. */
export const QUIRKS = [
  'max_tokens',
  'max_completion_tokens',
  'temperature',
  'stream_options',
  'stream',
  'tools',
  /** Calls in the history while no tools are offered (proxies in front of Anthropic's models). */
  'calls_without_tools',
  /** Calls in the history without the fields that came with them: made elsewhere, or before these were kept. */
  'calls_without_echo',
  /** Fields that came with an answer, returned. */
  'echo',
  /** A user's message right after a tool's result (Mistral). */
  'user_after_tool',
  /** A system message (Gemma). */
  'system_role',
  /** Calls and results in the history, although tools may be offered. */
  'tool_results',
  /** Two consecutive messages of one side, or an assistant's before the first of a user. */
  'role_order',
  'images',
  /** Tools on chat completions while the model reasons (gpt-5.5 and 5.6). Next to try: the Responses API, then no reasoning. */
  'reasoning_with_tools',
  'responses',
  'reasoning_effort',
  /** `tool_choice: none`, sent if the offered tools must not be called. */
  'tool_choice',
  'prompt_cache_key',
  /** `prompt_cache_breakpoint` and `cache_control` on parts of messages. */
  'cache_marks',
] as const;

export type Quirk = (typeof QUIRKS)[number];

export interface Ways {
  refused: readonly Quirk[];
  /** Maximum number of tools in one request; null until it has refused more. */
  mostTools: number | null;
  /** The window in tokens from the server's list of models. */
  told: number | null;
  /** The window learnt from the model's behaviour. Void once the server reports another `told` than when this was learnt. */
  learnt: { tokens: number; how: 'refused' | 'cut'; told: number | null } | null;
}

const NOTHING: Ways = { refused: [], mostTools: null, told: null, learnt: null };

/** `server`: its address without secrets. */
export interface ServerWays {
  /** Loads what other processes have stored or cleared. Never rejects. */
  refresh(): Promise<void>;
  of(server: string, model: string): Ways;
  modelsOf(server: string): string[];
  change(server: string, model: string, change: (ways: Ways) => Partial<Ways>): Promise<void>;
  forget(server: string): Promise<void>;
}

/** If storage fails, the table is kept in memory. */
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
