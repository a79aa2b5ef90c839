/**
 * The context windows of one server's models. The configured or assumed figure is the maximum; what the server reports or refuses
 * lowers it, and so does silent cutting if nothing is configured. Never below the largest request carried in any chat.
 */
import type { ModelRequest, Usage } from '../core/model.js';
import type { OpenAiModelOptions, Ways } from './server-ways.js';
import { CutWatch, LEAST_REQUEST, type RequestSize, windowBehind } from './token-counts.js';

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
/** One empty answer, or two, count as overflow only if the request is longer than this multiple of the longest one answered. */
const LONGER = { once: 1.1, twice: 0.9 };
/** A server that cuts keeps at least this share of its window. */
const KEPT_OF_WINDOW = 0.5;

export const TOLD_LESS = 'the context window of the model server is smaller than model.context_tokens';
const WARNINGS = {
  cut: 'model server cut a long request without a word; keeping requests within this window, unless one is set',
  refused: 'model server refused a request for its length; keeping requests within this window',
};

/** `carried`: input tokens. `longest`: estimated tokens of an answered request. Since the start, over all chats. */
const NOTHING_SEEN = { carried: 0, longest: 0 };

export class ContextWindow {
  private readonly cuts = new CutWatch();
  private readonly asked = new Map<string, { at: number; tries: number }>();
  private readonly seen = new Map<string, typeof NOTHING_SEEN>();

  /** `place`: the server's address without secrets; `tells`: asks the server for a model's window. */
  constructor(
    private readonly place: string,
    private readonly tells: (model: string) => Promise<number | null>,
    private readonly options: OpenAiModelOptions,
  ) {}

  /** `set`: as configured. `learnt` is null once it is void. */
  known(model: string): Pick<Ways, 'told' | 'learnt'> & { set: number | null } {
    const { told, learnt } = this.options.ways.of(this.place, model);
    return { set: this.options.contextTokens(model), told, learnt: learnt?.told === told ? learnt : null };
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
    const { clock, log, ways } = this.options;
    const { at, tries } = this.asked.get(model) ?? { at: Number.NEGATIVE_INFINITY, tries: 0 };
    const mayBeLoaded = this.known(model).told === null && tries < QUICK_TRIES;
    if (!mayBeLoaded && clock.now() - at < ASK_AGAIN_MS) return;
    this.asked.set(model, { at: clock.now(), tries: tries + 1 });
    const told = await this.tells(model);
    const { set, told: before } = this.known(model);
    if (told === null || told === before) return;
    const fields = { server: this.place, model, tokens: told, most: set ?? ASSUMED_TOKENS };
    if (set !== null && told < set) log.warn(fields, TOLD_LESS);
    else log.info(fields, 'model server told its context window');
    // Keeps `learnt`: it is valid again if the server reports the earlier figure once more.
    await ways.change(this.place, model, () => ({ told }));
  }

  /** `said`: the window as the server gives it, if it does. */
  async refused(model: string, said: number | null, size: RequestSize): Promise<void> {
    // If it fits the server's own figure, our estimate was too low, and only the conversation is shortened.
    await this.learn(model, 'refused', said ?? size.ample * LESS);
  }

  /** A request was answered. Resolves with true if the server has read only part of it. */
  async answered(
    model: string,
    { messages, cacheKey }: ModelRequest,
    size: RequestSize,
    usage: Usage | null,
  ): Promise<boolean> {
    const { carried, longest } = this.seen.get(model) ?? NOTHING_SEEN;
    const inputTokens = usage?.inputTokens ?? 0;
    this.seen.set(model, {
      carried: Math.max(carried, inputTokens),
      longest: Math.max(longest, size.estimated),
    });
    if (usage === null || inputTokens <= 0) return false;
    if (size.estimated >= LEAST_REQUEST) {
      const { cachedTokens = 0, cacheWriteTokens = 0 } = usage;
      const counts = [inputTokens, inputTokens + cachedTokens + cacheWriteTokens];
      const chat = cacheKey === undefined ? null : `${model} ${cacheKey}`;
      const reading = this.cuts.reading(chat, messages, size, counts);
      const behind = windowBehind(inputTokens);
      // Not if a request has carried more: then the count means something else, such as uncached tokens only.
      const isOllamas = reading === 'stalled' && behind > inputTokens && behind >= carried;
      const isWindow = reading === 'stands' && behind >= carried * KEPT_OF_WINDOW;
      if (isOllamas || isWindow) await this.learn(model, 'cut', behind);
      if (reading !== 'whole') return true;
    }
    const { learnt } = this.known(model);
    if (learnt !== null && inputTokens > learnt.tokens) {
      const fields = { server: this.place, model, tokens: inputTokens };
      this.options.log.info(fields, 'model server takes more than it was known to');
      await this.options.ways.change(this.place, model, () => ({ learnt: null }));
    }
    return false;
  }

  /** Whether an answer without text or usage means that the request exceeded the window. */
  isOverflow(model: string, { estimated }: RequestSize, empty: 'once' | 'twice'): boolean {
    if (estimated < LONG) return false;
    const { told } = this.known(model);
    const { longest } = this.seen.get(model) ?? NOTHING_SEEN;
    return estimated > (told === null ? longest * LONGER[empty] : told * LESS);
  }

  /** Clears what was observed since the start; the rest is stored in `ways`. */
  forget(): void {
    this.asked.clear();
    this.seen.clear();
  }

  private async learn(model: string, how: 'refused' | 'cut', found: number): Promise<void> {
    const before = this.tokens(model);
    const { told, set, learnt } = this.known(model);
    const { carried } = this.seen.get(model) ?? NOTHING_SEEN;
    const tokens = Math.max(LEAST_TOKENS, carried, Math.floor(found));
    if (tokens >= before || (learnt?.how === how && tokens >= learnt.tokens)) return;
    // It would have no effect, and would replace a refusal, which has one.
    if (how === 'cut' && set !== null && learnt?.how === 'refused') return;
    this.options.log.warn({ server: this.place, model, before, tokens, how, set }, WARNINGS[how]);
    await this.options.ways.change(this.place, model, () => ({ learnt: { tokens, how, told } }));
  }
}
