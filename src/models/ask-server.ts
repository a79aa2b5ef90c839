/**
 * Step 5, inside the model client: asks one server for one answer, in the form and on the API that it takes, learns what it
 * refuses, and retries what may pass.
 */
import type { Clock } from '../core/clock.js';
import type { Log } from '../core/log.js';
import type { ModelEvent, ModelRequest } from '../core/model.js';
import { type Answer, createAnswer } from './answer.js';
import { attempt, type Shown } from './attempt.js';
import { callableOf } from './calls.js';
import type { ContextWindow } from './context-window.js';
import { classify, failedRequest, retryDelay, serverTitle, stoppedRequest } from './failures.js';
import type { Further } from './further.js';
import { createPost } from './http.js';
import type { Quirk, QuirkStore } from './quirk-store.js';
import { refusedParameter, refusedPictures } from './quirks.js';
import { createRedactor, shownUrl } from './redact.js';
import { chatRequest, createRequestWriter } from './request.js';
import { createResponsesAnswer } from './responses-answer.js';
import { createResponsesWriter } from './responses-request.js';
import { ServerError } from './server-error.js';
import type { createSizer } from './token-counts.js';

export interface ModelServer {
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

/** The quirks that are about how much may be written. */
const LIMITS: readonly Quirk[] = ['max_tokens', 'max_completion_tokens'];

export interface AskerOptions {
  server: ModelServer;
  /** How long nothing may come. */
  silenceMs: number;
  /** How much an answer may hold, in bytes. */
  mostBytes: number;
  images: 'auto' | 'yes' | 'no';
  /** How often the same server is asked, at most. */
  maxAttempts: number;
  quirks: QuirkStore;
  /** Learns from refusals of what is too long. */
  window: Pick<ContextWindow, 'refused'>;
  sizeOf: ReturnType<typeof createSizer>;
  clock: Clock;
  log: Log;
  random: () => number;
}

/** `isRaised`: this request alone may write more than others. */
export type Question = Omit<Further, 'why'> & { isRaised: boolean };

/** What comes while an answer is written, and the answer. Throws Fault. */
export type Asked = AsyncGenerator<ModelEvent, Answer>;

/** The key under which is remembered what a model of a server refuses. */
export const quirkKey = (place: string, model: string): string => `${place} ${model}`;

export function createAsker(options: AskerOptions) {
  const { server, silenceMs, mostBytes, images, maxAttempts, quirks, window, sizeOf, clock, log, random } =
    options;
  const apis = {
    chat: { post: createPost(server, clock.now), write: createRequestWriter(), reader: createAnswer },
    responses: {
      post: createPost(server, clock.now, '/responses'),
      write: createResponsesWriter(),
      reader: createResponsesAnswer,
    },
  };
  const redact = createRedactor(server);
  const place = shownUrl(server.baseUrl);
  const titleOf = (model: string) => serverTitle(place, model);

  /** What is left out of a request: what was refused before, and pictures as the operator decided. */
  async function leftOut(model: string, withoutPictures: boolean): Promise<ReadonlySet<Quirk>> {
    const refused = new Set(await quirks.refused(quirkKey(place, model)));
    if (withoutPictures || images === 'no') refused.add('images');
    else if (images === 'yes') refused.delete('images');
    return refused;
  }

  /** A caller's temperature counts more than the configured one. */
  const withTemperature = (request: ModelRequest): ModelRequest =>
    server.temperature === undefined ? request : { temperature: server.temperature, ...request };

  /** Retries until there is an answer, an empty one too. */
  return async function* ask(
    { request, outputTokens, before, isRaised }: Question,
    signal: AbortSignal,
    shown: Shown,
  ): Asked {
    const model = request.model ?? server.name;
    let failures = 0;
    let withoutPictures = false;
    for (;;) {
      const refused = await leftOut(model, withoutPictures);
      const to = { server: place, model };
      const sent = chatRequest(withTemperature(request), to, outputTokens, refused, server.extra);
      if (signal.aborted) throw stoppedRequest(titleOf(model));
      try {
        const { post, write, reader } = apis[sent.api];
        const whole = yield* attempt({
          ...{ post, body: write(sent), answer: reader() },
          ...{ silenceMs, mostBytes, shown, before, clock, signal },
        });
        if (whole.calls.length === 0) return whole;
        // Some models call tools that nobody offered them.
        return { ...whole, calls: sent.tools.length === 0 ? [] : callableOf(whole.calls, request.messages) };
      } catch (error) {
        if (signal.aborted) throw stoppedRequest(titleOf(model));
        if (!(error instanceof ServerError)) throw error;
        const details = { ...error.details, words: redact(error.details.words) };

        const quirk = details.kind === 'answered' ? refusedParameter(sent, details) : null;
        const size = sizeOf(request);
        const { code, retry } = classify(details, size.estimated);
        // A limit that was raised for this request alone may be more than the model can write.
        const isTooMuch = isRaised && quirk !== null && LIMITS.includes(quirk);
        // What is refused although it was left out is refused for good.
        const isNew = quirk !== null && !refused.has(quirk);
        if (isNew && code !== 'context_too_long' && !isTooMuch) {
          log.warn({ server: place, model, refused: quirk, words: details.words }, warningOf(quirk));
          await quirks.add(quirkKey(place, model), quirk);
          continue;
        }
        const pictures = details.kind === 'answered' ? refusedPictures(sent, details) : null;
        if (pictures !== null) {
          const { words } = details;
          log.warn({ server: place, model, pictures, words }, 'the model refused pictures; asking without');
          withoutPictures = true;
          if (pictures === 'none taken' && images === 'auto')
            await quirks.add(quirkKey(place, model), 'images');
          continue;
        }
        failures += 1;
        const most = retry === 'once' ? Math.min(2, maxAttempts) : maxAttempts;
        if (!retry || failures >= most) {
          if (code === 'context_too_long' && !isRaised) await window.refused(model, details, size);
          throw failedRequest(code, titleOf(model), details, failures);
        }
        const waitMs = retryDelay(failures, details, random);
        log.warn({ server: place, model, words: details.words, waitMs }, 'the model failed; asking it again');
        await clock.sleep(waitMs, signal);
      }
    }
  };
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
