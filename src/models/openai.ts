/**
 * Client of an OpenAI-compatible server: one request becomes one whole answer or one fault. `request.ts` builds the request,
 * `attempt.ts` sends it and reads the answer, `retries.ts` says how to ask again, `further.ts` asks for the rest of an answer.
 */
import { answerTokens } from '../core/cut.js';
import { describe, Fault } from '../core/errors.js';
import type { ModelClient, ModelEvent, ModelRequest } from '../core/model.js';
import { type Answer, createAnswer, isCutAtLimit, isEmpty, type Shown } from './answer.js';
import { attempt, createPost } from './attempt.js';
import { checkModel, noticesFor } from './check.js';
import { ContextWindow } from './context-window.js';
import { overflow, ServerError, serverTitle, stoppedRequest } from './failures.js';
import { restOf } from './further.js';
import { echoOf } from './history.js';
import { redactorFor, shownUrl } from './redact.js';
import { chatBody, chatRequest } from './request.js';
import { createResponsesAnswer, responsesBody } from './responses.js';
import { Retries } from './retries.js';
import type { OpenAiModelOptions, Quirk } from './server-ways.js';
import { createSizer } from './token-counts.js';
import { callableOf } from './tool-calls.js';
import { createWindowList } from './window-list.js';

const ANSWER_BYTES = 2_000_000;

/** `outputTokens`: its limit. `before`: the text that the answer continues. */
interface ServerQuestion {
  request: ModelRequest;
  outputTokens: number;
  before: string;
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
  /** The server's address without secrets. */
  readonly place: string;
  private readonly redact: (text: string) => string;
  private readonly sizeOf = createSizer();
  private readonly window: ContextWindow;
  private readonly retries: Retries;
  private readonly apis;

  constructor(readonly options: OpenAiModelOptions) {
    const { server, outward, clock, answerBytes = ANSWER_BYTES } = options;
    this.place = shownUrl(server.baseUrl);
    this.redact = redactorFor(server);
    const tells = options.tellsWindow ?? createWindowList(server, outward, clock);
    this.window = new ContextWindow(this.place, tells, options);
    this.retries = new Retries(options, this.place, this.redact, this.window, this.sizeOf);
    const postTo = (path: string) => createPost(server, path, outward, clock, answerBytes);
    this.apis = {
      chat: { post: postTo('/chat/completions'), body: chatBody, reader: createAnswer },
      responses: { post: postTo('/responses'), body: responsesBody, reader: createResponsesAnswer },
    };
  }

  contextTokens(model = this.options.server.name): number {
    return this.window.tokens(model);
  }

  check(signal: AbortSignal): ReturnType<ModelClient['check']> {
    return checkModel(this.place, this.window, this.options, async (request) => {
      const asked = this.ask(this.asGiven(request), signal, { text: '' });
      for (;;) {
        const next = await asked.next();
        if (next.done) return next.value;
      }
    });
  }

  async *stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    const model = request.model ?? this.options.server.name;
    await this.options.ways.refresh();
    void this.window.ask(model);
    // Counts while the server works, not when its answer is awaited.
    const counting = setImmediate(() => void this.sizeOf(request));
    let last: ModelEvent & { kind: 'done' | 'failed' };
    try {
      last = yield* this.answer(request, model, signal);
    } catch (error) {
      last = { kind: 'failed', fault: this.asFault(error) };
    }
    clearImmediate(counting);
    const prices = this.options.prices?.(model);
    if (prices) last.prices = prices;
    const { learnt, set } = this.window.known(model);
    const { mostTools, refused } = this.options.ways.of(this.place, model);
    if (learnt !== null || mostTools !== null || refused.includes('tools')) {
      const known = { set, learnt, mostTools, refused };
      const notices = noticesFor(`${this.place} ${model}`, this.titleOf(model), known, request);
      if (notices.length > 0) last.notices = notices;
    }
    yield last;
  }

  private async *answer(
    request: ModelRequest,
    model: string,
    signal: AbortSignal,
  ): AsyncGenerator<ModelEvent, ModelEvent & { kind: 'done' }> {
    const shown: Shown = { text: '' };
    const first = yield* this.ask(this.asGiven(request), signal, shown);
    const isNothing = isEmpty(first) && !first.failedCall && first.usage === null;
    if (isNothing && this.isOverflow(request, model, 'once')) throw overflow(this.titleOf(model));
    const isCut =
      !isNothing && (await this.window.answered(model, request, this.sizeOf(request), first.usage));
    const isWhole = !isEmpty(first) && !isCutAtLimit(first.finish) && !first.failedCall;
    const rest = isWhole ? null : yield* restOf(this, request, model, first, signal, shown);
    const { text, calls, finish, besides, model: named } = rest ?? first;
    // Only answers with calls are kept unchanged in the history.
    const echo = calls.length === 0 ? undefined : echoOf({ server: this.place, model }, besides);
    return {
      kind: 'done',
      text,
      calls,
      ...(echo && { echo }),
      usage: first.usage,
      ...(rest?.usage && { further: rest.usage }),
      model: named ?? model,
      truncated: isCutAtLimit(finish),
      ...(isCut && { cut: true }),
    };
  }

  /** Asks until there is an answer, perhaps an empty one. Yields events while it is written. Throws Fault. */
  async *ask(
    { request, outputTokens, before }: ServerQuestion,
    signal: AbortSignal,
    shown: Shown,
  ): AsyncGenerator<ModelEvent, Answer> {
    const {
      server,
      ways,
      images,
      timeoutSeconds,
      answerBytes: mostBytes = ANSWER_BYTES,
      clock,
    } = this.options;
    const model = request.model ?? server.name;
    const to = { server: this.place, model };
    const known = ways.of(this.place, model).refused;
    const withheld = new Set<Quirk>();
    const isRaised = outputTokens > this.limitOf(request);
    for (let attempts = 1; ; ) {
      const { refused: learnt, mostTools } = ways.of(this.place, model);
      const isAll = learnt.length === 0 && images !== 'no';
      const refused = isAll ? withheld : this.retries.leftOut(model, request, withheld);
      // The caller puts the most important tools first.
      const tools = mostTools === null ? request.tools : request.tools.slice(0, mostTools);
      const asked = { temperature: server.temperature, ...request, tools };
      const sent = chatRequest(asked, to, outputTokens, refused, server.extra);
      if (signal.aborted) throw stoppedRequest(this.titleOf(model));
      try {
        const { post, body, reader } = this.apis[sent.api];
        const silenceMs = timeoutSeconds * 1000;
        const parts = { post, body: body(sent), answer: reader(), silenceMs, mostBytes, sent };
        const whole = yield* attempt({ ...parts, shown, before, clock, signal });
        if (learnt.length > 0) await this.retries.noteTaken(model, sent);
        // Some models call tools that were not offered.
        if (whole.calls.length === 0 || sent.tools.length === 0) return { ...whole, calls: [] };
        return { ...whole, calls: callableOf(whole.calls, request.messages, sent.tools) };
      } catch (error) {
        if (signal.aborted) throw stoppedRequest(this.titleOf(model));
        if (!(error instanceof ServerError)) throw error;
        const failed = { request, model, isRaised, sent, attempts, known, refused, withheld };
        const waitMs = await this.retries.afterFailure(error.details, failed);
        if (waitMs === 0) continue;
        attempts += 1;
        await clock.sleep(waitMs, signal);
      }
    }
  }

  isOverflow(request: ModelRequest, model: string, empty: 'once' | 'twice'): boolean {
    return this.window.isOverflow(model, this.sizeOf(request), empty);
  }

  /** The minimum of the configured limit, the room in the window and the caller's limit. */
  limitOf(request: ModelRequest): number {
    const most = answerTokens(this.contextTokens(request.model), this.options.maxOutputTokens);
    return Math.min(most, request.maxOutputTokens ?? most);
  }

  titleOf(model: string): string {
    return serverTitle(this.place, model);
  }

  private asGiven(request: ModelRequest): ServerQuestion {
    return { request, outputTokens: this.limitOf(request), before: '' };
  }

  private asFault(error: unknown): Fault {
    if (error instanceof Fault) return error;
    const title = this.titleOf(this.options.server.name);
    return new Fault('internal', `${title} could not be asked: ${this.redact(describe(error))}.`);
  }
}
