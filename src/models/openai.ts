/**
 * Client of an OpenAI-compatible server: one request becomes one whole answer or one fault, with fallbacks. `ask-server.ts` repeats
 * until there is an answer, `request.ts` builds the request, `attempt.ts` makes one attempt, `stream.ts` sends and reads,
 * `answer.ts` assembles the answer, `context-window.ts` learns the window.
 */
import type { Clock } from '../core/clock.js';
import { answerTokens } from '../core/cut.js';
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { ModelClient, ModelEvent, ModelRequest, Notice, Prices } from '../core/model.js';
import type { Outward } from '../core/network.js';
import { type Answer, isCutAtLimit, isEmpty } from './answer.js';
import { type Asked, Asker, type ModelServer, type ServerQuestion } from './ask-server.js';
import { eventsTo, type Further, furtherFor, type Shown } from './attempt.js';
import { checkModel } from './check.js';
import { ContextWindow, createWindowList } from './context-window.js';
import { emptyAnswer, overflow, serverTitle, wordlessAnswer } from './failures.js';
import { echoOf } from './history.js';
import { createRedactor, shownUrl } from './redact.js';
import type { ServerWays } from './server-ways.js';
import { createSizer } from './token-counts.js';

const ANSWER_BYTES = 2_000_000;
/** Maximum number of omitted tools named in a notice. */
const MOST_NAMED = 40;

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
  /** Prices of a model; null if unknown. */
  prices?: (model: string) => Prices | null;
  /** The window as the server reports it. Default: from its list of models. */
  tellsWindow?: (model: string) => Promise<number | null>;
  /** 0 to 1, for the jitter of retries. */
  random?: () => number;
}

export function createOpenAiModel(options: OpenAiModelOptions): ModelClient {
  const server = new OpenAiServer(options);
  return {
    stream: (request, signal) => server.stream(request, signal),
    contextTokens: (model) => server.contextTokens(model),
    check: (signal) => server.check(signal),
  };
}

class OpenAiServer {
  private readonly place: string;
  private readonly redact: (text: string) => string;
  private readonly sizeOf = createSizer();
  private readonly window: ContextWindow;
  private readonly asker: Asker;

  constructor(private readonly options: OpenAiModelOptions) {
    const { server, ways, outward, clock, log, contextTokens: configured } = options;
    this.redact = createRedactor(server);
    this.place = shownUrl(server.baseUrl);
    const tells = options.tellsWindow ?? createWindowList(server, { outward, clock });
    this.window = new ContextWindow(this.place, tells, ways, configured, clock, log);
    this.asker = new Asker({
      server,
      place: this.place,
      redact: this.redact,
      silenceMs: options.timeoutSeconds * 1000,
      mostBytes: options.answerBytes ?? ANSWER_BYTES,
      images: options.images ?? 'auto',
      maxAttempts: options.maxAttempts ?? 3,
      ways,
      window: this.window,
      sizeOf: this.sizeOf,
      outward,
      clock,
      log,
      random: options.random ?? Math.random,
    });
  }

  contextTokens(model = this.options.server.name): number {
    return this.window.tokens(model);
  }

  check(signal: AbortSignal): ReturnType<ModelClient['check']> {
    const { place, window } = this;
    const { server, ways, clock } = this.options;
    return checkModel({ place, name: server.name, window, ways, now: clock.now() }, (request) =>
      answerOf(this.asker.ask(this.asGiven(request), signal, { text: '' })),
    );
  }

  async *stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    const { ways } = this.options;
    const model = request.model ?? this.options.server.name;
    const prices = this.options.prices?.(model) ?? undefined;
    await ways.refresh();
    void this.window.ask(model);
    // Counts while the server works, not when its answer is awaited.
    const counting = setImmediate(() => void this.sizeOf(request));
    try {
      const done = yield* this.answer(request, model, signal);
      yield { ...done, ...(prices && { prices }), ...this.noticesFor(request) };
    } catch (error) {
      const fault = this.asFault(error);
      yield { kind: 'failed', fault, ...(prices && { prices }), ...this.noticesFor(request) };
    } finally {
      clearImmediate(counting);
    }
  }

  private async *answer(
    request: ModelRequest,
    asked: string,
    signal: AbortSignal,
  ): AsyncGenerator<ModelEvent, ModelEvent & { kind: 'done' }> {
    const { window } = this;
    const { messages, cacheKey: chat } = request;
    const shown: Shown = { text: '' };
    const first = yield* this.asker.ask(this.asGiven(request), signal, shown);
    const size = this.sizeOf(request);
    const isNothing = isEmpty(first) && !first.failedCall && first.usage === null;
    if (isNothing && window.isOverflow(asked, size, 'once')) throw overflow(this.titleOf(asked));
    const isCut = !isNothing && (await window.answered(asked, { size, messages, chat }, first.usage));
    const isWhole = !isEmpty(first) && !isCutAtLimit(first.finish) && !first.failedCall;
    const further = isWhole ? null : furtherFor(request, first, this.limitOf(request));
    const whole = further && (yield* this.mended(first, further, signal, shown));
    const { text, calls, model, finish, besides } = whole ?? first;
    // Only answers with calls are kept unchanged in the history.
    const echo = calls.length === 0 ? undefined : echoOf({ server: this.place, model: asked }, besides);
    return {
      kind: 'done',
      text,
      calls,
      ...(echo && { echo }),
      usage: first.usage,
      ...(whole?.usage && { further: whole.usage }),
      model: model ?? asked,
      // An unchanged text means that the model did not finish its sentence.
      truncated: isCutAtLimit(finish) || (further?.why === 'cut' && text === first.text),
      ...(isCut && { cut: true }),
    };
  }

  /** The answer of the further request; null if it brought nothing, so that the first answer must do. */
  private async *mended(
    first: Answer,
    further: Further,
    signal: AbortSignal,
    shown: Shown,
  ): AsyncGenerator<ModelEvent, Answer | null> {
    const { request, why } = further;
    const model = request.model ?? this.options.server.name;
    const fields = { server: this.place, model, why, finish: first.finish };
    this.options.log.info(fields, 'model answer was not whole; asking for the rest');
    let answer: Answer;
    try {
      const isRaised = further.outputTokens > this.limitOf(request);
      answer = yield* this.asker.ask({ ...further, isRaised }, signal, shown);
    } catch (error) {
      const isNothing = why === 'empty' || (why === 'failed call' && isEmpty(first));
      if (signal.aborted || !(error instanceof Fault) || isNothing) throw error;
      this.options.log.warn(
        { server: this.place, why: describe(error) },
        'asking for the rest of an answer failed; using what came',
      );
      if (isEmpty(first) && !request.mayBeEmpty)
        throw wordlessAnswer(this.titleOf(model), this.limitOf(request));
      yield* eventsTo(shown, first.text);
      return null;
    }
    if (!isEmpty(answer) || request.mayBeEmpty) return answer;
    if (why === 'failed call' && !isEmpty(first)) {
      yield* eventsTo(shown, first.text);
      return null;
    }
    if (isCutAtLimit(answer.finish)) throw wordlessAnswer(this.titleOf(model), this.limitOf(request));
    const isNothing = why === 'empty' && first.usage === null && answer.usage === null;
    const isOverflow = isNothing && this.window.isOverflow(model, this.sizeOf(request), 'twice');
    throw isOverflow ? overflow(this.titleOf(model)) : emptyAnswer(this.titleOf(model));
  }

  /** Notices for owners: refused or omitted tools, and a smaller window than expected. */
  private noticesFor({ model = this.options.server.name, tools }: ModelRequest): { notices?: Notice[] } {
    const { place } = this;
    const notices = this.window.notices(model);
    const { mostTools, refused } = this.options.ways.of(place, model);
    if (mostTools !== null && mostTools < tools.length) {
      const leftOut = tools.slice(mostTools).map(({ name }) => `\`${name}\``);
      const more = leftOut.length > MOST_NAMED ? ` and ${leftOut.length - MOST_NAMED} more` : '';
      const names = `${leftOut.slice(0, MOST_NAMED).join(', ')}${more}`;
      const text = `${this.titleOf(model)} takes only ${mostTools} tools in one request, so these are left out: ${names}. List under mcp.servers.NAME.tools those that are needed, or set tools.max_offered.`;
      notices.push({ key: `fewer tools: ${place} ${model}`, text });
    }
    if (tools.length > 0 && refused.includes('tools')) {
      const text = `${this.titleOf(model)} refuses tools, so personas can talk, but neither read nor write memory. Choose a model that takes tools (model.name). It is tried again once an hour, and at once after \`coterie doctor\`.`;
      notices.push({ key: `no tools: ${place} ${model}`, text });
    }
    return notices.length === 0 ? {} : { notices };
  }

  /** The minimum of the configured limit, the room in the window and the caller's limit. */
  private limitOf(request: ModelRequest): number {
    const most = answerTokens(this.contextTokens(request.model), this.options.maxOutputTokens);
    return Math.min(most, request.maxOutputTokens ?? most);
  }

  private asGiven(request: ModelRequest): ServerQuestion {
    return { request, outputTokens: this.limitOf(request), before: '', isRaised: false };
  }

  private titleOf(model: string): string {
    return serverTitle(this.place, model);
  }

  private asFault(error: unknown): Fault {
    if (error instanceof Fault) return error;
    const title = this.titleOf(this.options.server.name);
    return new Fault('internal', `${title} could not be asked: ${this.redact(describe(error))}.`);
  }
}

async function answerOf(asked: Asked): Promise<Answer> {
  let next = await asked.next();
  while (!next.done) next = await asked.next();
  return next.value;
}

/**
 * Asks the servers in order. A persona's own model applies only to the first; fallbacks have their own. If all fail, the fault
 * holds all messages and the first code, or `context_too_long` if any server gave it, because a shorter request may succeed.
 */
export function withFallbacks(first: ModelClient, fallbacks: ModelClient[], log: Log): ModelClient {
  if (fallbacks.length === 0) return first;
  /** The server that answered last or found a request too long: while it is a fallback, requests must fit its window too. */
  let answering = first;

  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    const { model: _, ...withoutModel } = request;
    const faults: Fault[] = [];
    const notices: Notice[] = [];
    let prices: Prices | undefined;
    const told = (event: { notices?: Notice[] }) => {
      const all = [...notices, ...(event.notices ?? [])];
      return all.length > 0 ? { notices: all } : {};
    };
    for (const client of [first, ...fallbacks]) {
      let spoke = false;
      for await (const event of client.stream(client === first ? request : withoutModel, signal)) {
        if (event.kind !== 'failed') {
          spoke = event.kind === 'text';
          if (event.kind !== 'done') {
            yield event;
            continue;
          }
          answering = client;
          yield { ...event, ...told(event) };
          return;
        }
        if (signal.aborted) {
          yield event;
          return;
        }
        faults.push(event.fault);
        prices = event.prices;
        if (event.fault.code === 'context_too_long') answering = client;
        notices.push(...(event.notices ?? []));
      }
      if (faults.length <= fallbacks.length) {
        if (spoke) yield { kind: 'restart' };
        log.warn({ error: describe(faults.at(-1)) }, 'model failed; asking the next fallback');
      }
    }
    const message = faults.map((fault) => fault.message).join(' Then: ');
    const [most] = [...faults.filter(({ code }) => code === 'context_too_long'), ...faults];
    yield {
      kind: 'failed',
      fault: new Fault(most?.code ?? 'internal', message),
      ...(prices && { prices }),
      ...told({}),
    };
  }

  return {
    stream,

    contextTokens(model) {
      const tokens = first.contextTokens(model);
      return answering === first ? tokens : Math.min(tokens, answering.contextTokens());
    },

    async check(signal) {
      const { identity, warnings } = await first.check(signal);
      for (const [index, fallback] of fallbacks.entries()) {
        const name = `fallback ${index + 1}`;
        try {
          const found = await fallback.check(signal);
          warnings.push(...found.warnings.map((warning) => `${name} (${found.identity}): ${warning}`));
        } catch (error) {
          warnings.push(`${name} failed: ${describe(error)}`);
        }
      }
      return { identity, warnings };
    },
  };
}
