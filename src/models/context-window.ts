/**
 * Step 5, inside the model client: what is known of the context windows of one server's models. The operator's figure, or
 * an assumption, is the most; what the server tells or refuses lowers it, and where the operator says nothing, what it
 * silently cuts. Never below what a request has carried, in whichever chat. Kept over restarts for a week.
 */
import type { Clock } from '../core/clock.js';
import type { Log } from '../core/log.js';
import type { ModelMessage, Notice, Usage } from '../core/model.js';
import { type AskJson, discoverWindow } from './discover-window.js';
import { serverTitle } from './failures.js';
import type { ServerErrorDetails } from './server-error.js';
import { createCutWatch, type RequestSize, windowBehind } from './token-counts.js';
import { windowSaid } from './too-long.js';
import { createWeekStore, modelKey, modelsIn, type WeekStorage, type WeekStore } from './week-store.js';

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
/** One empty answer says more only of a request that is so much longer than any that was answered. */
const NOTICEABLY_LONGER = 1.1;
/** Two of them, of one that is at least this part of the longest. */
const ABOUT_AS_LONG = 0.9;
/** A server that cuts keeps half of its window at least. */
const KEPT_OF_WINDOW = 0.5;

/** When the server was last asked for a model's window, and what came of it. */
interface Look {
  at: number;
  tries: number;
  found: boolean;
  running: Promise<void> | null;
}

/** What a model was seen to do since the start, by the requests of all chats. */
interface Seen {
  /** The most tokens of a request that the server has counted. */
  carried: number;
  /** The longest request that it answered, by our estimate. */
  longest: number;
}

const NOTHING_SEEN: Seen = { carried: 0, longest: 0 };

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
  /** A request was refused, in words that say that it is too long. */
  refused(model: string, error: ServerErrorDetails, size: RequestSize): Promise<void>;
  /** A request was answered. True where the server has read only a part of it. */
  answered(
    model: string,
    request: { size: RequestSize; messages: readonly ModelMessage[]; chat: string | undefined },
    usage: Usage | null,
  ): Promise<boolean>;
  /** Whether an answer without any words or count is what a server says to a request beyond its window. */
  isOverflow(model: string, size: RequestSize, empty: 'once' | 'twice'): boolean;
  notices(model: string): Notice[];
  /** All that is known; `set` by the operator, null for nothing. What was learnt only as long as it holds. */
  known(model: string): KnownWindow & { set: number | null };
  /** The models of which something was learnt in use. */
  learntOf(): string[];
  /** All that is known of all its models. */
  forget(): Promise<void>;
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
  const seenOf = (model: string) => seen.get(model) ?? NOTHING_SEEN;

  function known(model: string) {
    const { told, learnt } = store.get(keyOf(model)) ?? { told: null, learnt: null };
    return { set: configured(model), told, learnt: learnt?.told === told ? learnt : null };
  }

  function tokens(model: string): number {
    const { set, told, learnt } = known(model);
    const most = set ?? ASSUMED_TOKENS;
    // Counts are evidence, and an operator's word is more than that; the server's own word is more than both.
    const counts = learnt !== null && (learnt.how === 'refused' || set === null);
    return Math.min(most, told ?? most, counts ? learnt.tokens : most);
  }

  async function learn(model: string, how: 'refused' | 'cut', found: number): Promise<void> {
    const before = tokens(model);
    const { told, set, learnt } = known(model);
    const now = Math.max(LEAST_TOKENS, seenOf(model).carried, Math.floor(found));
    if (now >= before || (learnt?.how === how && now >= learnt.tokens)) return;
    // It would count for nothing, and what was refused does.
    if (how === 'cut' && set !== null && learnt?.how === 'refused') return;
    log.warn({ server: place, model, before, tokens: now, how, set }, WARNINGS[how]);
    await store.set(keyOf(model), { told, learnt: { tokens: now, how, told } });
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
      // What has room by the server's own figure was more than we thought: then only the conversation gets shorter.
      await learn(model, 'refused', windowSaid(error) ?? size.ample * LESS);
    },

    async answered(model, { size, messages, chat }, usage) {
      const { carried, longest } = seenOf(model);
      const inputTokens = usage?.inputTokens ?? 0;
      seen.set(model, {
        carried: Math.max(carried, inputTokens),
        longest: Math.max(longest, size.estimated),
      });
      if (usage === null || inputTokens <= 0) return false;
      const { cachedTokens = 0, cacheWriteTokens = 0 } = usage;
      const counts = [inputTokens, inputTokens + cachedTokens + cacheWriteTokens];
      const reading = cuts.reading(chat === undefined ? null : `${model} ${chat}`, {
        messages,
        size,
        counts,
      });
      const behind = windowBehind(inputTokens);
      // Where any request has carried more, the count means something else, as that of what was not in a cache.
      const isOllamas = reading === 'stalled' && behind > inputTokens && behind >= carried;
      const isWindow = reading === 'stands' && behind >= carried * KEPT_OF_WINDOW;
      if (isOllamas || isWindow) await learn(model, 'cut', behind);
      if (reading !== 'whole') return true;
      const { told, learnt } = known(model);
      if (learnt !== null && inputTokens > learnt.tokens) {
        log.info(
          { server: place, model, tokens: inputTokens },
          'the model server takes more than it was known to',
        );
        await store.set(keyOf(model), { told, learnt: null });
      }
      return false;
    },

    isOverflow(model, { estimated }, empty) {
      if (estimated < LONG) return false;
      const { told } = known(model);
      const longer = empty === 'once' ? NOTICEABLY_LONGER : ABOUT_AS_LONG;
      return estimated > (told === null ? seenOf(model).longest * longer : told * LESS);
    },

    notices(model) {
      const { learnt, set } = known(model);
      if (learnt === null) return [];
      const title = serverTitle(place, model);
      const { tokens, how } = learnt;
      return [
        { key: `window-${how} ${place} ${model}`, text: `${title} ${noticeOf(how, tokens, set)} ${UNDO}` },
      ];
    },

    learntOf: () => modelsIn(store, place).filter((model) => known(model).learnt !== null),

    async forget() {
      looks.clear();
      seen.clear();
      for (const model of modelsIn(store, place)) await store.set(keyOf(model), null);
    },
  };
}

const WARNINGS = {
  cut: 'the model server cuts long requests without a word; its context window counts as this many tokens from now on, unless it is set',
  refused:
    'the model server refused a request for its length; its context window counts as this many tokens from now on',
};

const UNDO =
  'It is forgotten after a week, and at once by `coterie doctor`, also while the gateway runs; model.context_tokens says how much the model has.';

function noticeOf(how: 'refused' | 'cut', tokens: number, set: number | null): string {
  if (how === 'refused') {
    return `has refused a request for its length, so its context window counts as ${tokens} tokens: personas see less of what was said before.`;
  }
  const cuts = `reads only about ${tokens} tokens of a conversation and leaves out the rest without a word.`;
  const raise = 'Raise its context length where it runs (Ollama: OLLAMA_CONTEXT_LENGTH)';
  return set === null
    ? `${cuts} Requests are kept shorter from now on, so personas see less of what was said before. ${raise}.`
    : `${cuts} Requests are as long as model.context_tokens (${set}) allows all the same. ${raise}, or lower that.`;
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
