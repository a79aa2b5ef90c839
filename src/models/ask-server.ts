/**
 * Step 5, inside the model client: asks one server for one answer, in the form and on the API that it takes, until there is
 * one, or a fault.
 */
import type { Clock } from '../core/clock.js';
import { Fault } from '../core/errors.js';
import type { ModelEvent, ModelRequest } from '../core/model.js';
import type { Outward } from '../core/network.js';
import { afterFailure, type FailureOptions } from './after-failure.js';
import { type Answer, createAnswer } from './answer.js';
import { attempt, type Shown } from './attempt.js';
import { callableOf } from './calls.js';
import { serverTitle, stoppedRequest } from './failures.js';
import type { Further } from './further.js';
import { createPost } from './http.js';
import type { Quirk } from './quirk-store.js';
import { type ChatRequest, chatRequest, createRequestWriter } from './request.js';
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

/**
 * What a persona misses most where it was refused by mistake, or is taken since: after an hour the next request tries it
 * again, and its success forgets the refusal.
 */
const TRIED_AGAIN: readonly Quirk[] = ['tools', 'responses', 'images'];
const TRY_AGAIN_MS = 60 * 60_000;

/** `isRaised`: this request alone may write more than others. */
export type Question = Omit<Further, 'why'> & { isRaised: boolean };

/** What comes while an answer is written, and the answer. Throws Fault. */
export type Asked = AsyncGenerator<ModelEvent, Answer>;

export function createAsker(options: AskerOptions) {
  const { server, place, silenceMs, mostBytes, images, quirks, clock, log, outward } = options;
  const ways = { now: clock.now, outward, mostBytes };
  const apis = {
    chat: { post: createPost(server, ways), write: createRequestWriter(), reader: createAnswer },
    responses: {
      post: createPost(server, ways, '/responses'),
      write: createResponsesWriter(),
      reader: createResponsesAnswer,
    },
  };

  /** When each of them was last tried, or first known to be refused, by model and quirk. */
  const tried = new Map<string, number>();

  /** Whether it is time to try it again; this is the try. */
  function isTriedAgain(model: string, quirk: Quirk, request: ModelRequest): boolean {
    const wanted = quirk === 'images' ? hasPictures(request) : request.tools.length > 0;
    if (!wanted) return false;
    const key = `${model} ${quirk}`;
    const last = tried.get(key);
    const isTime = last !== undefined && clock.now() - last >= TRY_AGAIN_MS;
    if (isTime || last === undefined) tried.set(key, clock.now());
    return isTime;
  }

  /** What is left out of a request: what was refused before, and pictures as the operator decided. */
  async function leftOut(
    model: string,
    request: ModelRequest,
    withoutPictures: boolean,
  ): Promise<ReadonlySet<Quirk>> {
    await quirks.loaded();
    const refused = new Set(quirks.get(modelKey(place, model))?.refused);
    for (const quirk of TRIED_AGAIN) {
      if (refused.has(quirk) && isTriedAgain(model, quirk, request)) refused.delete(quirk);
    }
    if (withoutPictures || images === 'no') refused.add('images');
    else if (images === 'yes') refused.delete('images');
    return refused;
  }

  /** What was taken after all is refused no more. */
  async function noteTaken(model: string, sent: ChatRequest): Promise<void> {
    const key = modelKey(place, model);
    const taken: Record<string, boolean> = {
      tools: sent.tools.length > 0,
      responses: sent.api === 'responses',
      images: sent.sendsImages && hasPictures(sent),
    };
    for (const quirk of quirks.get(key)?.refused ?? []) {
      if (!taken[quirk]) continue;
      log.info({ server: place, model, taken: quirk }, 'the model server takes what it had refused');
      await quirks.remove(key, quirk);
    }
  }

  /** Where a request is refused all the same, what was left out of it was not the reason. */
  async function forgetBut(model: string, known: readonly Quirk[]): Promise<void> {
    const key = modelKey(place, model);
    for (const quirk of quirks.get(key)?.refused ?? []) {
      if (!known.includes(quirk)) await quirks.remove(key, quirk);
    }
  }

  /** A caller's temperature counts more than the configured one. */
  const withTemperature = (request: ModelRequest): ModelRequest =>
    server.temperature === undefined ? request : { temperature: server.temperature, ...request };

  /** No more tools than the server takes; the caller has put first what matters most. */
  function withFewerTools(request: ModelRequest, model: string): ModelRequest {
    const most = quirks.get(modelKey(place, model))?.mostTools ?? request.tools.length;
    return most < request.tools.length ? { ...request, tools: request.tools.slice(0, most) } : request;
  }

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
    let known: readonly Quirk[] | undefined;
    for (;;) {
      const refused = await leftOut(model, request, withoutPictures);
      known ??= quirks.get(modelKey(place, model))?.refused ?? [];
      const sent = chatRequest(
        withFewerTools(withTemperature(request), model),
        to,
        outputTokens,
        refused,
        server.extra,
      );
      if (signal.aborted) throw stoppedRequest(serverTitle(place, model));
      try {
        const { post, write, reader } = apis[sent.api];
        const whole = yield* attempt({
          ...{ post, body: write(sent), answer: reader() },
          ...{ silenceMs, mostBytes, sent, shown, before, clock, signal },
        });
        await noteTaken(model, sent);
        if (whole.calls.length === 0) return whole;
        // Some models call tools that nobody offered them.
        if (sent.tools.length === 0) return { ...whole, calls: [] };
        const offered = new Set(sent.tools.map(({ name }) => name));
        return { ...whole, calls: callableOf(whole.calls, request.messages, offered) };
      } catch (error) {
        if (signal.aborted) throw stoppedRequest(serverTitle(place, model));
        if (!(error instanceof ServerError)) throw error;
        const failed = { request, model, sent, refused, isRaised, attempts };
        const next = await afterFailure(options, failed, error.details).catch(async (fault) => {
          if (fault instanceof Fault && fault.code === 'model_refused') await forgetBut(model, known ?? []);
          throw fault;
        });
        if (next === 'without pictures') withoutPictures = true;
        if (typeof next !== 'object') continue;
        attempts += 1;
        await clock.sleep(next.waitMs, signal);
      }
    }
  };
}

function hasPictures({ messages }: Pick<ModelRequest, 'messages'>): boolean {
  return messages.some((message) => message.role === 'user' && (message.images?.length ?? 0) > 0);
}
