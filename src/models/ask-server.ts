/**
 * Step 5, inside the model client: asks one server for one answer, in the form and on the API that it takes, until there is
 * one, or a fault.
 */
import type { Clock } from '../core/clock.js';
import type { ModelEvent, ModelRequest } from '../core/model.js';
import type { Outward } from '../core/outward.js';
import { afterFailure, type FailureOptions } from './after-failure.js';
import { type Answer, createAnswer } from './answer.js';
import { attempt, type Shown } from './attempt.js';
import { callableOf } from './calls.js';
import { serverTitle, stoppedRequest } from './failures.js';
import type { Further } from './further.js';
import { createPost } from './http.js';
import type { Quirk } from './quirk-store.js';
import { chatRequest, createRequestWriter } from './request.js';
import { createResponsesAnswer } from './responses-answer.js';
import { createResponsesWriter } from './responses-request.js';
import { ServerError } from './server-error.js';
import { modelKey } from './week-store.js';

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

export interface AskerOptions extends FailureOptions {
  server: ModelServer;
  /** How long nothing may come. */
  silenceMs: number;
  /** How much an answer may hold, in bytes. */
  mostBytes: number;
  outward: Outward;
  clock: Clock;
}

/** `isRaised`: this request alone may write more than others. */
export type Question = Omit<Further, 'why'> & { isRaised: boolean };

/** What comes while an answer is written, and the answer. Throws Fault. */
export type Asked = AsyncGenerator<ModelEvent, Answer>;

export function createAsker(options: AskerOptions) {
  const { server, place, silenceMs, mostBytes, images, quirks, clock, outward } = options;
  const ways = { now: clock.now, outward };
  const apis = {
    chat: { post: createPost(server, ways), write: createRequestWriter(), reader: createAnswer },
    responses: {
      post: createPost(server, ways, '/responses'),
      write: createResponsesWriter(),
      reader: createResponsesAnswer,
    },
  };

  /** What is left out of a request: what was refused before, and pictures as the operator decided. */
  async function leftOut(model: string, withoutPictures: boolean): Promise<ReadonlySet<Quirk>> {
    await quirks.loaded();
    const refused = new Set(quirks.get(modelKey(place, model))?.refused);
    if (withoutPictures || images === 'no') refused.add('images');
    else if (images === 'yes') refused.delete('images');
    return refused;
  }

  /** A caller's temperature counts more than the configured one. */
  const withTemperature = (request: ModelRequest): ModelRequest =>
    server.temperature === undefined ? request : { temperature: server.temperature, ...request };

  /** Until there is an answer, an empty one too. */
  return async function* ask(
    { request, outputTokens, before, isRaised }: Question,
    signal: AbortSignal,
    shown: Shown,
  ): Asked {
    const model = request.model ?? server.name;
    const to = { server: place, model };
    let attempts = 1;
    let withoutPictures = false;
    for (;;) {
      const refused = await leftOut(model, withoutPictures);
      const sent = chatRequest(withTemperature(request), to, outputTokens, refused, server.extra);
      if (signal.aborted) throw stoppedRequest(serverTitle(place, model));
      try {
        const { post, write, reader } = apis[sent.api];
        const whole = yield* attempt({
          ...{ post, body: write(sent), answer: reader() },
          ...{ silenceMs, mostBytes, shown, before, clock, signal },
        });
        if (whole.calls.length === 0) return whole;
        // Some models call tools that nobody offered them.
        if (sent.tools.length === 0) return { ...whole, calls: [] };
        const offered = new Set(sent.tools.map(({ name }) => name));
        return { ...whole, calls: callableOf(whole.calls, request.messages, offered) };
      } catch (error) {
        if (signal.aborted) throw stoppedRequest(serverTitle(place, model));
        if (!(error instanceof ServerError)) throw error;
        const failed = { request, model, sent, refused, isRaised, attempts };
        const next = await afterFailure(options, failed, error.details);
        if (next === 'without pictures') withoutPictures = true;
        if (typeof next !== 'object') continue;
        attempts += 1;
        await clock.sleep(next.waitMs, signal);
      }
    }
  };
}
