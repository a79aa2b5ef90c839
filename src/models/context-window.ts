/**
 * What is known of the context windows of one server's models. The operator's figure, or an assumption, is the most; what the
 * server tells or refuses lowers it, and where the operator says nothing, what it silently cuts. Never below what a request has
 * carried, in whichever chat.
 */
import type { Clock } from '../core/clock.js';
import type { Log } from '../core/log.js';
import type { ModelMessage, Notice, Usage } from '../core/model.js';
import { addressOf, fetchWhole, type Outward } from '../core/network.js';
import { type ServerErrorDetails, serverTitle, windowSaid } from './failures.js';
import { parse, record } from './json.js';
import type { ServerWays, Ways } from './server-ways.js';
import { createCutWatch, type RequestSize, windowBehind } from './token-counts.js';

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
/** LM Studio loads a model for its first request, and tells its window only then. */
const QUICK_TRIES = 3;
/** Shorter requests fail for other reasons. */
const LONG = 1_500;
/** One empty answer says more only of a request that is so much longer than any that was answered. */
const NOTICEABLY_LONGER = 1.1;
/** Two of them, of one that is at least this part of the longest. */
const ABOUT_AS_LONG = 0.9;
/** A server that cuts keeps half of its window at least. */
const KEPT_OF_WINDOW = 0.5;

/** What a model was seen to do since the start, by the requests of all chats. */
interface Seen {
  /** The most tokens of a request that the server has counted. */
  carried: number;
  /** The longest request that it answered, by our estimate. */
  longest: number;
}

const NOTHING_SEEN: Seen = { carried: 0, longest: 0 };

/** `place`: the server's address as it may be shown; `tells`: asks it for a model's window; `configured`: null for nothing. */
export class ContextWindow {
  private readonly cuts = createCutWatch();
  private readonly asked = new Map<string, { at: number; tries: number }>();
  private readonly seen = new Map<string, Seen>();

  constructor(
    private readonly place: string,
    private readonly tells: (model: string) => Promise<number | null>,
    private readonly ways: ServerWays,
    private readonly configured: (model: string) => number | null,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  /** All that is known; what was learnt only as long as it holds. */
  known(model: string): Pick<Ways, 'told' | 'learnt'> & { set: number | null } {
    const { told, learnt } = this.ways.of(this.place, model);
    return { set: this.configured(model), told, learnt: learnt?.told === told ? learnt : null };
  }

  tokens(model: string): number {
    const { set, told, learnt } = this.known(model);
    const most = set ?? ASSUMED_TOKENS;
    // Counts are evidence, and an operator's word is more than that; the server's own word is more than both.
    const counts = learnt !== null && (learnt.how === 'refused' || set === null);
    return Math.min(most, told ?? most, counts ? learnt.tokens : most);
  }

  /** Asks the server if it is time to. */
  async ask(model: string): Promise<void> {
    const { at, tries } = this.asked.get(model) ?? { at: Number.NEGATIVE_INFINITY, tries: 0 };
    const mayBeLoaded = this.known(model).told === null && tries < QUICK_TRIES;
    if (!mayBeLoaded && this.clock.now() - at < ASK_AGAIN_MS) return;
    this.asked.set(model, { at: this.clock.now(), tries: tries + 1 });
    const told = await this.tells(model);
    const { set, told: before } = this.known(model);
    if (told === null || told === before) return;
    const fields = { server: this.place, model, tokens: told, most: set ?? ASSUMED_TOKENS };
    if (set !== null && told < set) this.log.warn(fields, TOLD_LESS);
    else this.log.info(fields, 'model server told its context window');
    // What was learnt holds again if it tells once more what it told then.
    await this.ways.change(this.place, model, () => ({ told }));
  }

  /** A request was refused in words that say that it is too long. */
  async refused(model: string, error: ServerErrorDetails, size: RequestSize): Promise<void> {
    // What has room by the server's own figure was more than we thought: then only the conversation gets shorter.
    await this.learn(model, 'refused', windowSaid(error) ?? size.ample * LESS);
  }

  /** A request was answered. True where the server has read only a part of it. */
  async answered(
    model: string,
    { size, messages, chat }: { size: RequestSize; messages: ModelMessage[]; chat: string | undefined },
    usage: Usage | null,
  ): Promise<boolean> {
    const { carried, longest } = this.seenOf(model);
    const inputTokens = usage?.inputTokens ?? 0;
    this.seen.set(model, {
      carried: Math.max(carried, inputTokens),
      longest: Math.max(longest, size.estimated),
    });
    if (usage === null || inputTokens <= 0) return false;
    const { cachedTokens = 0, cacheWriteTokens = 0 } = usage;
    const counts = [inputTokens, inputTokens + cachedTokens + cacheWriteTokens];
    const conversation = chat === undefined ? null : `${model} ${chat}`;
    const reading = this.cuts.reading(conversation, { messages, size, counts });
    const behind = windowBehind(inputTokens);
    // Where any request has carried more, the count means something else, as that of what was not in a cache.
    const isOllamas = reading === 'stalled' && behind > inputTokens && behind >= carried;
    const isWindow = reading === 'stands' && behind >= carried * KEPT_OF_WINDOW;
    if (isOllamas || isWindow) await this.learn(model, 'cut', behind);
    if (reading !== 'whole') return true;
    const { learnt } = this.known(model);
    if (learnt !== null && inputTokens > learnt.tokens) {
      this.log.info(
        { server: this.place, model, tokens: inputTokens },
        'model server takes more than it was known to',
      );
      await this.ways.change(this.place, model, () => ({ learnt: null }));
    }
    return false;
  }

  /** Whether an answer without any words or count is what a server says to a request beyond its window. */
  isOverflow(model: string, { estimated }: RequestSize, empty: 'once' | 'twice'): boolean {
    if (estimated < LONG) return false;
    const { told } = this.known(model);
    const longer = empty === 'once' ? NOTICEABLY_LONGER : ABOUT_AS_LONG;
    return estimated > (told === null ? this.seenOf(model).longest * longer : told * LESS);
  }

  notices(model: string): Notice[] {
    const { learnt, set } = this.known(model);
    if (learnt === null) return [];
    const text = `${serverTitle(this.place, model)} ${noticeOf(learnt.how, learnt.tokens, set)} ${UNDO}`;
    return [{ key: `window-${learnt.how} ${this.place} ${model}`, text }];
  }

  /** What was seen since the start, and when the server was asked; the rest is in its ways. */
  forget(): void {
    this.asked.clear();
    this.seen.clear();
  }

  private async learn(model: string, how: 'refused' | 'cut', found: number): Promise<void> {
    const before = this.tokens(model);
    const { told, set, learnt } = this.known(model);
    const now = Math.max(LEAST_TOKENS, this.seenOf(model).carried, Math.floor(found));
    if (now >= before || (learnt?.how === how && now >= learnt.tokens)) return;
    // It would count for nothing, and what was refused does.
    if (how === 'cut' && set !== null && learnt?.how === 'refused') return;
    this.log.warn({ server: this.place, model, before, tokens: now, how, set }, WARNINGS[how]);
    await this.ways.change(this.place, model, () => ({ learnt: { tokens: now, how, told } }));
  }

  private seenOf(model: string): Seen {
    return this.seen.get(model) ?? NOTHING_SEEN;
  }
}

const WARNINGS = {
  cut: 'model server cut a long request without a word; keeping requests within this window, unless one is set',
  refused: 'model server refused a request for its length; keeping requests within this window',
};

const UNDO =
  '`coterie doctor` forgets this at once, also while the gateway runs; model.context_tokens says how much the model has.';

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

const PATIENCE_MS = 3_000;
/** OpenRouter's list of models has about one million. */
const MOST_LIST_BYTES = 8_000_000;

/** Reads a model's window from the server's own lists of models; null: it does not tell, or not now. Never rejects. */
export function createWindowList(
  server: { baseUrl: string; apiKey: string | null; headers?: Record<string, string> | undefined },
  { outward, clock }: { outward: Outward; clock: Clock },
): (model: string) => Promise<number | null> {
  const ask = outward.fetch();
  const lists = [
    addressOf(server.baseUrl, '/models'),
    // LM Studio's own.
    addressOf(server.baseUrl.replace(/\/v1\/?(?=$|\?)/, ''), '/api/v0/models'),
  ];

  async function askFor({ url, headers }: (typeof lists)[number], model: string): Promise<number | null> {
    const late = new AbortController();
    const cancel = clock.after(PATIENCE_MS, () => late.abort());
    const all = { ...OURS, ...headers, ...keyHeaders(url, server.apiKey), ...server.headers };
    try {
      const sent = { headers: all, signal: late.signal };
      const { status, bytes } = await fetchWhole(ask, url, sent, MOST_LIST_BYTES);
      return status === 200 ? windowIn(parse(bytes.toString('utf8')), model) : null;
    } catch {
      // The chat's own request says what is wrong.
      return null;
    } finally {
      cancel();
    }
  }

  return async (model) => {
    for (const list of lists) {
      const told = await askFor(list, model);
      if (told !== null) return told;
    }
    return null;
  };
}

const OURS = { accept: 'application/json', 'user-agent': 'coterie' };

function keyHeaders({ hostname }: URL, apiKey: string | null): Record<string, string> {
  if (!apiKey) return {};
  // Beside chat completions, Anthropic takes its key in a header of its own only.
  return hostname === 'api.anthropic.com'
    ? { 'x-api-key': apiKey, 'anthropic-version': '2023-06-01' }
    : { authorization: `Bearer ${apiKey}` };
}

/** vLLM and SGLang; LM Studio; Groq; Anthropic. */
const LISTED = ['max_model_len', 'loaded_context_length', 'context_window', 'max_input_tokens'];
/** OpenRouter and Moonshot; Mistral. LM Studio's `max_context_length` is what its model could have. */
const LISTED_TOO = ['context_length', 'max_context_length'];

function windowIn(list: unknown, model: string): number | null {
  const data = record(list)?.data;
  const entry = (Array.isArray(data) ? data : []).map(record).find((each) => each?.id === model);
  if (!entry) return null;
  const told = [
    ...LISTED.map((name) => entry[name]),
    // Of several providers, the one that OpenRouter prefers may have less than the model could.
    record(entry.top_provider)?.context_length,
    ...(entry.state === undefined ? LISTED_TOO.map((name) => entry[name]) : []),
  ];
  // Smaller numbers are no windows.
  return told.find((value): value is number => typeof value === 'number' && value >= 256) ?? null;
}
