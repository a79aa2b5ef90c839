/** A model server as configured, and what is learnt of all, kept in one setting over restarts; `coterie doctor` clears it. */
import { z } from 'zod';
import type { Clock } from '../core/clock.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { Prices } from '../core/model.js';
import type { Outward } from '../core/network.js';
import { parse } from './json.js';

export interface Endpoint {
  baseUrl: string;
  /** null if the server needs none. */
  apiKey: string | null;
  headers?: Record<string, string> | undefined;
  /** Further fields of every body. */
  extra?: Record<string, unknown> | undefined;
}

export interface ModelServer extends Endpoint {
  name: string;
  /** Default for requests that set none. */
  temperature?: number | undefined;
}

export interface OpenAiModelOptions {
  server: ModelServer;
  maxOutputTokens: number;
  timeoutSeconds: number;
  /** Maximum size of an answer, in bytes. Default: 2 MB. */
  answerBytes?: number;
  /** `auto` sends pictures until they are refused. Default: `auto`. */
  images?: 'auto' | 'yes' | 'no';
  /** Maximum attempts on the same server. Default: 3. */
  maxAttempts?: number;
  outward: Outward;
  clock: Clock;
  log: Log;
  ways: ServerWays;
  /** The configured context window in tokens; null if unset. */
  contextTokens: (model: string) => number | null;
  prices?: (model: string) => Prices | null;
  /** The window as the server reports it. Default: from its list of models. */
  tellsWindow?: (model: string) => Promise<number | null>;
  /** 0 to 1, for the jitter of retries. */
  random?: () => number;
}

/** Things to omit from a request; instead of `max_tokens`, `max_completion_tokens` is sent. */
const QUIRKS = [
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

const positive = z.number().positive().nullable().catch(null);
const WAYS = z.object({
  refused: z
    .array(z.unknown())
    .catch([])
    .transform((all) => QUIRKS.filter((quirk) => all.includes(quirk))),
  /** Maximum number of tools in one request; null until it has refused more. */
  mostTools: positive,
  /** The window in tokens from the server's list of models. */
  told: positive,
  /** The window learnt from the model's behaviour. Void once the server reports another `told` than when this was learnt. */
  learnt: z
    .object({ tokens: z.number(), how: z.enum(['refused', 'cut']), told: positive })
    .nullable()
    .catch(null),
});
export type Ways = z.infer<typeof WAYS>;

const NOTHING = WAYS.parse({});
const TABLE = z.record(z.string(), WAYS.catch(NOTHING)).catch({});

type Table = Record<string, Ways>;
type Change = (table: Table) => Table;

interface WaysStorage {
  load(): Promise<string | null>;
  /** False: it is not `from` any more, so nothing was stored. */
  replace(from: string | null, to: string): Promise<boolean>;
}

/**
 * `server`: its address without secrets. Other processes learn, too: a change is made again on what they have stored. If
 * storage fails, it is kept in memory.
 */
export class ServerWays {
  private table: Table = {};
  /** As last read or written. */
  private stored: string | null = null;
  /** Made in `table`, and not stored yet. */
  private unsaved: Change[] = [];
  private queue: Promise<void> = Promise.resolve();

  constructor(
    private readonly storage: WaysStorage,
    private readonly log: Log,
  ) {}

  of(server: string, model: string): Ways {
    return waysIn(this.table, server, model);
  }

  modelsOf(server: string): string[] {
    const keys = Object.keys(this.table).filter((key) => key.startsWith(`${server} `));
    return keys.map((key) => key.slice(server.length + 1));
  }

  /** Loads what other processes have stored or cleared. Never rejects. */
  refresh(): Promise<void> {
    this.queue = this.queue.then(() => this.read());
    return this.queue;
  }

  change(server: string, model: string, change: (ways: Ways) => Partial<Ways>): Promise<void> {
    return this.write((table) => {
      const before = waysIn(table, server, model);
      return { ...table, [`${server} ${model}`]: { ...before, ...change(before) } };
    });
  }

  forget(server: string): Promise<void> {
    return this.write((table) =>
      Object.fromEntries(Object.entries(table).filter(([key]) => !key.startsWith(`${server} `))),
    );
  }

  private async load(): Promise<void> {
    const stored = await this.storage.load();
    if (stored === this.stored) return;
    this.stored = stored;
    const found: Table = TABLE.parse(parse(stored ?? ''));
    this.table = this.unsaved.reduce((table, change) => change(table), found);
  }

  private async read(): Promise<void> {
    try {
      await this.load();
    } catch (error) {
      const fields = { error: describe(error) };
      this.log.warn(fields, 'reading what is known of model servers failed; learning it again');
    }
  }

  private write(change: Change): Promise<void> {
    this.queue = this.queue.then(async () => {
      await this.read();
      this.table = change(this.table);
      this.unsaved.push(change);
      try {
        while (!(await this.save())) await this.load();
      } catch (error) {
        const fields = { error: describe(error) };
        this.log.warn(fields, 'storing what is known of model servers failed; keeping it in memory');
      }
    });
    return this.queue;
  }

  private async save(): Promise<boolean> {
    const next = JSON.stringify(this.table);
    const isSaved = await this.storage.replace(this.stored, next);
    if (isSaved) [this.stored, this.unsaved] = [next, []];
    return isSaved;
  }
}

function waysIn(table: Table, server: string, model: string): Ways {
  return table[`${server} ${model}`] ?? NOTHING;
}
