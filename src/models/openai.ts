/**
 * Step 5, the model: one OpenAI-compatible chat completions server. Asks as the server can be asked, retries
 * what may pass, and ends with one answer or one fault.
 */
import type { Clock } from '../core/clock.js';
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { ModelClient, ModelEvent, ModelMessage, ModelRequest, Notice } from '../core/model.js';
import { type Answer, createAnswer } from './answer.js';
import { attempt, eventsTo, type Shown } from './attempt.js';
import { checkModel } from './check.js';
import { echoOf } from './echo.js';
import {
  classify,
  emptyAnswer,
  failedRequest,
  retryDelay,
  serverTitle,
  stoppedRequest,
  wordlessAnswer,
} from './failures.js';
import { isCutAtLimit } from './finish.js';
import { type Further, furtherFor, isEmpty } from './further.js';
import { createPost } from './http.js';
import { createQuirkStore, type Quirk, type QuirkStorage } from './quirk-store.js';
import { refusedParameter, refusedPictures } from './quirks.js';
import { createRedactor, shownUrl } from './redact.js';
import { chatRequest, createRequestWriter } from './request.js';
import { createResponsesAnswer } from './responses-answer.js';
import { createResponsesWriter } from './responses-request.js';
import { ServerError } from './server-error.js';
import { withWishes } from './wishes.js';

interface ModelServer {
  baseUrl: string;
  /** null where the server wants none. */
  apiKey: string | null;
  /** The model's name there. */
  name: string;
  /** Where a request names none itself. */
  temperature?: number | undefined;
  /** Further fields of the request's body, and further headers. */
  extra?: Record<string, unknown> | undefined;
  headers?: Record<string, string> | undefined;
}

export interface OpenAiModelOptions {
  server: ModelServer;
  maxOutputTokens: number;
  timeoutSeconds: number;
  /** Whether pictures are sent: `auto` tries, and remembers a refusal. `auto` where left out. */
  images?: 'auto' | 'yes' | 'no';
  /** How often the same server is asked, at most; 3. */
  maxAttempts?: number;
  clock: Clock;
  log: Log;
  quirks: QuirkStorage;
  /** 0 to 1, to spread retries. */
  random?: () => number;
}

/** The quirks that are about how much may be written. */
const LIMITS: readonly Quirk[] = ['max_tokens', 'max_completion_tokens'];

/** What comes while an answer is written, and the answer. Throws Fault. */
type Asked = AsyncGenerator<ModelEvent, Answer>;

export function createOpenAiModel(options: OpenAiModelOptions): ModelClient {
  const { server, clock, log, maxOutputTokens } = options;
  const { images = 'auto', maxAttempts = 3, random = Math.random } = options;
  const silenceMs = options.timeoutSeconds * 1000;
  const apis = {
    chat: { post: createPost(server, clock.now), write: createRequestWriter(), reader: createAnswer },
    responses: {
      post: createPost(server, clock.now, '/responses'),
      write: createResponsesWriter(),
      reader: createResponsesAnswer,
    },
  };
  const quirks = createQuirkStore(options.quirks, clock, log);
  const redact = createRedactor(server);
  const place = shownUrl(server.baseUrl);
  const quirkKey = (model: string) => `${place} ${model}`;
  const titleOf = (model: string) => serverTitle(place, model);

  /** What is left out of a request: what was refused before, and pictures as the operator decided. */
  async function leftOut(model: string, withoutPictures: boolean): Promise<ReadonlySet<Quirk>> {
    const refused = new Set(await quirks.refused(quirkKey(model)));
    if (withoutPictures || images === 'no') refused.add('images');
    else if (images === 'yes') refused.delete('images');
    return refused;
  }

  /** A caller's temperature counts more than the configured one. */
  const withTemperature = (request: ModelRequest): ModelRequest =>
    server.temperature === undefined ? request : { temperature: server.temperature, ...request };

  /** Retries until there is an answer, an empty one too. */
  async function* ask(
    { request, outputTokens, before }: Omit<Further, 'why'>,
    signal: AbortSignal,
    shown: Shown,
  ): Asked {
    const model = request.model ?? server.name;
    const takenIds = () => callIds(request.messages);
    let failures = 0;
    let withoutPictures = false;
    for (;;) {
      const refused = await leftOut(model, withoutPictures);
      const sent = withWishes(
        chatRequest(withTemperature(request), { server: place, model }, outputTokens, refused),
        request,
        server.extra ?? {},
        refused,
      );
      if (signal.aborted) throw stoppedRequest(titleOf(model));
      try {
        const { post, write, reader } = apis[sent.api];
        const whole = yield* attempt({
          ...{ post, body: write(sent), answer: reader(), takenIds },
          ...{ silenceMs, shown, before, clock, signal },
        });
        // Some models call tools that nobody offered them.
        return sent.tools.length === 0 ? { ...whole, calls: [] } : whole;
      } catch (error) {
        if (signal.aborted) throw stoppedRequest(titleOf(model));
        if (!(error instanceof ServerError)) throw error;
        const details = { ...error.details, words: redact(error.details.words) };

        const quirk = details.kind === 'answered' ? refusedParameter(sent, details) : null;
        const { code, retry } = classify(details);
        // A limit that was raised for this request alone may be more than the model can write.
        const isTooMuch = outputTokens > limitOf(request) && quirk !== null && LIMITS.includes(quirk);
        if (quirk !== null && code !== 'context_too_long' && !isTooMuch) {
          log.warn({ server: place, model, refused: quirk, words: details.words }, warningOf(quirk));
          await quirks.add(quirkKey(model), quirk);
          continue;
        }
        const pictures = details.kind === 'answered' ? refusedPictures(sent, details) : null;
        if (pictures !== null) {
          const { words } = details;
          log.warn({ server: place, model, pictures, words }, 'the model refused pictures; asking without');
          withoutPictures = true;
          if (pictures === 'none taken' && images === 'auto') await quirks.add(quirkKey(model), 'images');
          continue;
        }
        failures += 1;
        const most = retry === 'once' ? Math.min(2, maxAttempts) : maxAttempts;
        if (!retry || failures >= most) {
          throw failedRequest(code, titleOf(model), details, failures);
        }
        const waitMs = retryDelay(failures, details, random);
        log.warn({ server: place, model, words: details.words, waitMs }, 'the model failed; asking it again');
        await clock.sleep(waitMs, signal);
      }
    }
  }

  /** The fewest tokens of what is configured and what the caller wants. */
  const limitOf = (request: ModelRequest) =>
    Math.min(maxOutputTokens, request.maxOutputTokens ?? maxOutputTokens);
  const asGiven = (request: ModelRequest) => ({ request, outputTokens: limitOf(request), before: '' });

  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    const shown: Shown = { text: '' };
    try {
      const first = yield* ask(asGiven(request), signal, shown);
      const further = furtherFor(request, first, limitOf(request));
      const whole = further && (yield* mended(first, further, signal, shown));
      const { text, calls, model, finish, besides } = whole ?? first;
      const addressee = { server: place, model: request.model ?? server.name };
      // Only what calls something stands in the history as it came.
      const echo = calls.length === 0 ? undefined : echoOf(addressee, besides);
      yield {
        kind: 'done',
        text,
        calls,
        ...(echo && { echo }),
        usage: first.usage,
        ...(whole?.usage && { further: whole.usage }),
        model: model ?? request.model ?? server.name,
        // A model that has nothing to add to half a sentence has not ended it.
        truncated: isCutAtLimit(finish) || (further?.why === 'cut' && text === first.text),
        ...(await noticesFor(request)),
      };
    } catch (error) {
      yield { kind: 'failed', fault: asFault(error) };
    }
  }

  /** What the further request brings; null where it brings nothing, and what there is must do. */
  async function* mended(
    first: Answer,
    further: Further,
    signal: AbortSignal,
    shown: Shown,
  ): AsyncGenerator<ModelEvent, Answer | null> {
    const { request, why } = further;
    const title = titleOf(request.model ?? server.name);
    log.info(
      { server: place, model: request.model ?? server.name, why, finish: first.finish },
      'the answer was not whole; asking for the rest',
    );
    let answer: Answer;
    try {
      answer = yield* ask(further, signal, shown);
    } catch (error) {
      if (signal.aborted || !(error instanceof Fault) || why === 'empty') throw error;
      log.warn({ server: place, why: describe(error) }, 'the rest of an answer could not be had');
      if (isEmpty(first) && !request.mayBeEmpty) throw wordlessAnswer(title, limitOf(request));
      yield* eventsTo(shown, first.text);
      return null;
    }
    if (!isEmpty(answer) || request.mayBeEmpty) return answer;
    throw isCutAtLimit(answer.finish) ? wordlessAnswer(title, limitOf(request)) : emptyAnswer(title);
  }

  /** What an owner should hear: without tools there is no memory. */
  async function noticesFor(request: ModelRequest): Promise<{ notices?: Notice[] }> {
    const model = request.model ?? server.name;
    if (request.tools.length === 0 || !(await quirks.refused(quirkKey(model))).has('tools')) return {};
    const text = `${titleOf(model)} refuses tools, so personas can talk, but neither read nor write memory. Choose a model that takes tools (model.name), or ask \`doctor\` after the server was changed.`;
    return { notices: [{ key: `no tools: ${quirkKey(model)}`, text }] };
  }

  function asFault(error: unknown): Fault {
    if (error instanceof Fault) return error;
    return new Fault('internal', `${titleOf(server.name)} could not be asked: ${redact(describe(error))}.`);
  }

  return {
    stream,

    check: (signal) =>
      checkModel({
        identity: `${server.name} at ${place}`,
        ask: (request) => answerOf(ask(asGiven(request), signal, { text: '' })),
        forgetQuirks: () => quirks.forget(quirkKey(server.name)),
        quirks: () => quirks.refused(quirkKey(server.name)),
        now: clock.now,
      }),
  };
}

async function answerOf(asked: Asked): Promise<Answer> {
  let next = await asked.next();
  while (!next.done) next = await asked.next();
  return next.value;
}

function callIds(messages: ModelMessage[]): Set<string> {
  return new Set(
    messages.flatMap((message) => (message.role === 'assistant' ? message.calls : [])).map((call) => call.id),
  );
}

function warningOf(quirk: Quirk): string {
  if (quirk === 'tools')
    return 'the model does not take tools: it can talk, but neither read nor write memory';
  if (quirk === 'reasoning_with_tools') {
    return 'the model takes tools on chat completions only while it does not reason; trying the Responses API';
  }
  if (quirk === 'responses') {
    return 'the model server has no Responses API for this model; it is asked not to reason, so that it takes tools';
  }
  return `the model server does not take ${quirk}; it is left out from now on`;
}
