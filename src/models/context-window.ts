/**
 * Step 5, inside the model client: what is known of the context windows of one server's models. The operator's figure, or
 * an assumption, is the most; what the server tells, refuses or silently cuts lowers it. Kept over restarts for a week.
 */
import type { Clock } from '../core/clock.js';
import type { Log } from '../core/log.js';
import type { Notice, Usage } from '../core/model.js';
import { type AskJson, discoverWindow } from './discover-window.js';
import { serverTitle } from './failures.js';
import type { ServerErrorDetails } from './server-error.js';
import { createCutWatch, type RequestSize, windowBehind } from './token-counts.js';
import { windowSaid } from './too-long.js';
import { createWeekStore, modelKey, type WeekStorage, type WeekStore } from './week-store.js';

/**
 * Where the operator says nothing. A server that tells of a larger window is not taken at its word: filling it costs
 * money or minutes with every message.
 */
const ASSUMED_TOKENS = 128_000;
/** A persona with its tools and memory takes more than this; less is a miscount. */
const LEAST_TOKENS = 2_048;
/** A server that does not say how much is too much is sent this much less from then on. */
const LESS = 0.9;
/** A window may change while the gateway runs: a model is loaded again with another. */
const ASK_AGAIN_MS = 60 * 60_000;
/** A server that loads its models on demand tells their windows only once it has answered. */
const QUICK_TRIES = 3;
/** Shorter requests fail for other reasons. */
const LONG = 1_500;
/** Where a server counts nothing anyway, its empty answer means more only to a request longer than any before. */
const NOTICEABLY_LONGER = 1.1;

/** When the server was last asked for a model's window, and what came of it. */
interface Look {
  at: number;
  tries: number;
  found: boolean;
  running: Promise<void> | null;
}

/** What a model was seen to do since the start. */
interface Seen {
  /** Tokens as the server counted them for each that we estimated. */
  ratio: number;
  /** The longest request that it answered, by our estimate. */
  longest: number;
  /** Whether it counts tokens. */
  counts: boolean;
}

const UNSEEN: Seen = { ratio: 1, longest: 0, counts: false };

export interface KnownWindow {
  /** As the server tells it. */
  told: number | null;
  /** As it showed itself in use. Void once the server tells something else than when this was learnt. */
  learnt: { tokens: number; how: 'refused' | 'cut'; told: number | null } | null;
}

export type WindowStore = WeekStore<KnownWindow>;

/** One for all servers. Until it is loaded, nothing is known. */
export function createWindowStore(storage: WeekStorage, clock: Clock, log: Log): WindowStore {
  return createWeekStore(storage, { read, what: 'the context windows of models' }, clock, log);
}

export interface ContextWindow {
  tokens(model: string): number;
  /** Asks the server in the background, if it is time to. */
  look(model: string): Promise<void>;
  /** A request was refused for its length. */
  refused(model: string, error: ServerErrorDetails | null, size: RequestSize): Promise<void>;
  /** A request was answered. True where the server has read only a part of it. */
  answered(
    model: string,
    request: { size: RequestSize; chat: string | undefined },
    usage: Usage | null,
  ): Promise<boolean>;
  /** Whether an answer without any words or count is what a server says to a request beyond its window. */
  isOverflow(model: string, size: RequestSize): boolean;
  notices(model: string): Notice[];
  /** All that is known; `set` by the operator, null for nothing. What was learnt only as long as it holds. */
  known(model: string): KnownWindow & { set: number | null };
  forget(model: string): Promise<void>;
}

export function createContextWindow(options: {
  baseUrl: string;
  /** As it may be shown. */
  place: string;
  ask: AskJson;
  store: WindowStore;
  /** What the operator set for a model; null: nothing. */
  configured(model: string): number | null;
  clock: Clock;
  log: Log;
}): ContextWindow {
  const { baseUrl, place, ask, store, configured, clock, log } = options;
  const cuts = createCutWatch();
  const looks = new Map<string, Look>();
  const seen = new Map<string, Seen>();
  const keyOf = (model: string) => modelKey(place, model);
  const expected = (model: string, { estimated }: RequestSize) => estimated * (seen.get(model)?.ratio ?? 1);

  function known(model: string) {
    const { told, learnt } = store.get(keyOf(model)) ?? { told: null, learnt: null };
    return { set: configured(model), told, learnt: learnt?.told === told ? learnt : null };
  }

  function tokens(model: string): number {
    const { set, told, learnt } = known(model);
    const most = set ?? ASSUMED_TOKENS;
    return Math.min(most, told ?? most, learnt?.tokens ?? most);
  }

  async function learn(model: string, how: 'refused' | 'cut', found: number): Promise<void> {
    const before = tokens(model);
    const learnt = Math.max(LEAST_TOKENS, Math.floor(found));
    if (learnt >= before) return;
    const { told } = known(model);
    log.warn(
      { server: place, model, before, tokens: learnt, how },
      how === 'cut'
        ? 'the model server cuts long requests without a word; its context window counts as this many tokens from now on'
        : 'the model server refused a request for its length; its context window counts as this many tokens from now on',
    );
    await store.set(keyOf(model), { told, learnt: { tokens: learnt, how, told } });
  }

  async function discover(model: string): Promise<void> {
    const told = await discoverWindow(baseUrl, model, ask);
    const { set, told: before } = known(model);
    if (told === null || told === before) return;
    const fields = { server: place, model, tokens: told, most: set ?? ASSUMED_TOKENS };
    if (set !== null && told < set) log.warn(fields, TOLD_LESS);
    else log.info(fields, 'the model server tells its context window');
    // What was learnt holds again if it tells once more what it told then.
    await store.set(keyOf(model), { told, learnt: store.get(keyOf(model))?.learnt ?? null });
  }

  return {
    tokens,
    known,

    look(model) {
      const look = looks.get(model) ?? {
        at: Number.NEGATIVE_INFINITY,
        tries: 0,
        found: false,
        running: null,
      };
      looks.set(model, look);
      if (look.running) return look.running;
      // What was found may have been forgotten since.
      const isEarly = known(model).told === null && (look.found || look.tries < QUICK_TRIES);
      if (!isEarly && clock.now() - look.at < ASK_AGAIN_MS) return Promise.resolve();
      look.at = clock.now();
      look.tries += 1;
      look.running = discover(model).finally(() => {
        look.found = known(model).told !== null;
        look.running = null;
      });
      return look.running;
    },

    async refused(model, error, size) {
      const said = error === null ? null : windowSaid(error);
      // What has room by the server's own figure was more than we thought: then only the conversation gets shorter.
      await learn(model, 'refused', said ?? expected(model, size) * LESS);
    },

    async answered(model, { size, chat }, usage) {
      const before = seen.get(model) ?? UNSEEN;
      const longest = Math.max(size.estimated, before.longest);
      if (usage === null || usage.inputTokens <= 0) {
        seen.set(model, { ...before, longest });
        return false;
      }
      const { inputTokens, cachedTokens = 0, cacheWriteTokens = 0 } = usage;
      const counts = [inputTokens, inputTokens + cachedTokens + cacheWriteTokens];
      if (cuts.isCut(`${model} ${chat}`, { size, counts, isOneChat: chat !== undefined })) {
        const now = tokens(model);
        const behind = windowBehind(inputTokens);
        // A request that is longer than the window we know of shows nothing new by being cut.
        if (behind < now) await learn(model, 'cut', behind);
        else if (expected(model, size) <= now) await learn(model, 'cut', inputTokens);
        return true;
      }
      const ratio = Math.min(4, Math.max(0.3, inputTokens / size.estimated));
      seen.set(model, { counts: true, longest, ratio: size.estimated >= LONG ? ratio : before.ratio });
      return false;
    },

    isOverflow(model, size) {
      if (size.estimated < LONG) return false;
      const { told } = known(model);
      if (told !== null) return expected(model, size) > told * LESS;
      const { longest, counts } = seen.get(model) ?? UNSEEN;
      return size.estimated > longest * (counts ? 1 : NOTICEABLY_LONGER);
    },

    notices(model) {
      const { learnt } = known(model);
      if (learnt?.how !== 'cut') return [];
      const text =
        `${serverTitle(place, model)} reads only about ${learnt.tokens} tokens of a conversation and leaves out the rest without a word. ` +
        'Requests are kept shorter from now on, so personas see less of what was said before. Raise its context length where it runs (Ollama: OLLAMA_CONTEXT_LENGTH).';
      return [{ key: `window-cut ${place} ${model}`, text }];
    },

    async forget(model) {
      looks.delete(model);
      await store.set(keyOf(model), null);
    },
  };
}

export const TOLD_LESS = 'the context window of the model server is smaller than model.context_tokens';

function read({ told, learnt }: Record<string, unknown>): KnownWindow | null {
  const isLearnt = (value: unknown): value is NonNullable<KnownWindow['learnt']> => {
    const { tokens, how, told: then } = (value ?? {}) as Record<string, unknown>;
    return (
      typeof tokens === 'number' &&
      (how === 'refused' || how === 'cut') &&
      (then === null || typeof then === 'number')
    );
  };
  return { told: typeof told === 'number' ? told : null, learnt: isLearnt(learnt) ? learnt : null };
}
