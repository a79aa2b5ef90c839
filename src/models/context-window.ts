/**
 * The context windows of one server's models. The configured or assumed figure is the maximum; what the server reports or refuses
 * lowers it, and so does silent cutting if nothing is configured. Never below the largest request carried in any chat.
 */
import type { Clock } from '../core/clock.js';
import type { Log } from '../core/log.js';
import type { ModelMessage, Notice, Usage } from '../core/model.js';
import { addressOf, type Outward } from '../core/network.js';
import { fetchWhole } from '../core/response-body.js';
import { type ServerErrorDetails, serverTitle, windowSaid } from './failures.js';
import { parse, record } from './json.js';
import type { ServerWays, Ways } from './server-ways.js';
import { createCutWatch, type RequestSize, windowBehind } from './token-counts.js';

/** Used if nothing is configured, even if the server reports more: a larger window costs money or minutes with every message. */
const ASSUMED_TOKENS = 128_000;
/** A persona's tools and memory need more than this; a smaller figure is a miscount. */
const LEAST_TOKENS = 2_048;
/** Factor applied after a refusal that gives no figure. */
const LESS = 0.9;
/** A window may change while the gateway runs, if the model is loaded again. */
const ASK_AGAIN_MS = 60 * 60_000;
/** LM Studio loads a model on its first request, and reports its window only then. */
const QUICK_TRIES = 3;
/** Shorter requests, in estimated tokens, fail for other reasons. */
const LONG = 1_500;
/** One empty answer counts as overflow only if the request is longer than any answered one by this factor. */
const NOTICEABLY_LONGER = 1.1;
/** The same factor for two empty answers. */
const ABOUT_AS_LONG = 0.9;
/** A server that cuts keeps at least this share of its window. */
const KEPT_OF_WINDOW = 0.5;

/** Observed since the start, over all chats. */
interface Seen {
  carried: number;
  /** The longest request answered, in estimated tokens. */
  longest: number;
}

const NOTHING_SEEN: Seen = { carried: 0, longest: 0 };

/** `place`: the server's address without secrets; `tells`: asks the server for a model's window; `configured`: null if unset. */
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

  /** `learnt` is null once it is void. */
  known(model: string): Pick<Ways, 'told' | 'learnt'> & { set: number | null } {
    const { told, learnt } = this.ways.of(this.place, model);
    return { set: this.configured(model), told, learnt: learnt?.told === told ? learnt : null };
  }

  tokens(model: string): number {
    const { set, told, learnt } = this.known(model);
    const most = set ?? ASSUMED_TOKENS;
    // Order of trust: the server's own figure, then the operator's, then one inferred from counts.
    const counts = learnt !== null && (learnt.how === 'refused' || set === null);
    return Math.min(most, told ?? most, counts ? learnt.tokens : most);
  }

  /** Asks the server, if an hour has passed or the model may just have been loaded. */
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
    // Keeps `learnt`: it is valid again if the server reports the earlier figure once more.
    await this.ways.change(this.place, model, () => ({ told }));
  }

  async refused(model: string, error: ServerErrorDetails, size: RequestSize): Promise<void> {
    // If it fits the server's own figure, our estimate was too low, and only the conversation is shortened.
    await this.learn(model, 'refused', windowSaid(error) ?? size.ample * LESS);
  }

  /** A request was answered. Resolves with true if the server has read only part of it. */
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
    // Not if a request has carried more: then the count means something else, such as uncached tokens only.
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

  /** Whether an answer without text or usage means that the request exceeded the window. */
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

  /** Clears what was observed since the start; the rest is stored in `ways`. */
  forget(): void {
    this.asked.clear();
    this.seen.clear();
  }

  private async learn(model: string, how: 'refused' | 'cut', found: number): Promise<void> {
    const before = this.tokens(model);
    const { told, set, learnt } = this.known(model);
    const now = Math.max(LEAST_TOKENS, this.seenOf(model).carried, Math.floor(found));
    if (now >= before || (learnt?.how === how && now >= learnt.tokens)) return;
    // It would have no effect, and would replace a refusal, which has one.
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
/** OpenRouter's list of models takes about one million bytes. */
const MOST_LIST_BYTES = 8_000_000;

/** Reads a model's window from the server's lists of models; null if it is not there or the request fails. Never rejects. */
export function createWindowList(
  server: { baseUrl: string; apiKey: string | null; headers?: Record<string, string> | undefined },
  { outward, clock }: { outward: Outward; clock: Clock },
): (model: string) => Promise<number | null> {
  const ask = outward.fetch();
  const lists = [
    addressOf(server.baseUrl, '/models'),
    // LM Studio's own list.
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
      // The chat's own request reports the error.
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
  // Apart from chat completions, Anthropic accepts the key only in its own header.
  return hostname === 'api.anthropic.com'
    ? { 'x-api-key': apiKey, 'anthropic-version': '2023-06-01' }
    : { authorization: `Bearer ${apiKey}` };
}

/** vLLM and SGLang; LM Studio; Groq; Anthropic. */
const LISTED = ['max_model_len', 'loaded_context_length', 'context_window', 'max_input_tokens'];
/** OpenRouter and Moonshot; Mistral. In LM Studio, `max_context_length` is the model's maximum, not the loaded window. */
const LISTED_TOO = ['context_length', 'max_context_length'];

function windowIn(list: unknown, model: string): number | null {
  const data = record(list)?.data;
  const entry = (Array.isArray(data) ? data : []).map(record).find((each) => each?.id === model);
  if (!entry) return null;
  const told = [
    ...LISTED.map((name) => entry[name]),
    // OpenRouter's preferred provider may have a smaller window than the model.
    record(entry.top_provider)?.context_length,
    ...(entry.state === undefined ? LISTED_TOO.map((name) => entry[name]) : []),
  ];
  // Smaller numbers cannot be windows.
  return told.find((value): value is number => typeof value === 'number' && value >= 256) ?? null;
}
