/** Asks one server until there is an answer or a fault: omits what the server refuses, learns it, and retries temporary errors. */
import type { Clock } from '../core/clock.js';
import { Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { ModelEvent, ModelRequest } from '../core/model.js';
import type { Outward } from '../core/network.js';
import { type Answer, callableOf, createAnswer } from './answer.js';
import { attempt, type Further, type Shown } from './attempt.js';
import type { ContextWindow } from './context-window.js';
import {
  classify,
  failedRequest,
  retryDelay,
  ServerError,
  type ServerErrorDetails,
  saysTooLong,
  serverTitle,
  stoppedRequest,
} from './failures.js';
import { refusedParameter, refusedPictures, toolLimitIn } from './refusals.js';
import { type ChatRequest, chatBody, chatRequest, picturesIn } from './request.js';
import { createResponsesAnswer, responsesBody } from './responses.js';
import type { Quirk, ServerWays } from './server-ways.js';
import { createPost } from './stream.js';
import type { RequestSize } from './token-counts.js';

export interface ModelServer {
  baseUrl: string;
  /** null if the server needs none. */
  apiKey: string | null;
  name: string;
  /** Default for requests that set none. */
  temperature?: number | undefined;
  extra?: Record<string, unknown> | undefined;
  headers?: Record<string, string> | undefined;
}

/** Quirks that cost a persona most if outdated or mistaken: retried after an hour, and forgotten on success. */
const TRIED_AGAIN: readonly Quirk[] = ['tools', 'responses', 'images'];
const TRY_AGAIN_MS = 60 * 60_000;

const LIMITS: readonly Quirk[] = ['max_tokens', 'max_completion_tokens'];

/** `isRaised`: this request alone has a higher output limit. */
export type ServerQuestion = Omit<Further, 'why'> & { isRaised: boolean };

/** Yields events while the answer is written, then returns it. Throws Fault. */
export type Asked = AsyncGenerator<ModelEvent, Answer>;

export class Asker {
  private readonly apis;
  /** When each was last tried or first seen as refused, by model and quirk. */
  private readonly tried = new Map<string, number>();

  constructor(
    private readonly options: {
      server: ModelServer;
      /** The server's address without secrets. */
      place: string;
      redact(text: string): string;
      silenceMs: number;
      /** Maximum size of an answer, in bytes. */
      mostBytes: number;
      images: 'auto' | 'yes' | 'no';
      maxAttempts: number;
      ways: ServerWays;
      window: ContextWindow;
      sizeOf(request: ModelRequest): RequestSize;
      outward: Outward;
      clock: Clock;
      log: Log;
      /** 0 to 1, for the jitter of retries. */
      random(): number;
    },
  ) {
    const { server, outward, clock, mostBytes } = options;
    const postTo = (path: string) => createPost(server, path, { outward, now: clock.now, mostBytes });
    this.apis = {
      chat: { post: postTo('/chat/completions'), body: chatBody, reader: createAnswer },
      responses: { post: postTo('/responses'), body: responsesBody, reader: createResponsesAnswer },
    };
  }

  /** Returns an empty answer, too. */
  async *ask(question: ServerQuestion, signal: AbortSignal, shown: Shown): Asked {
    const { server, place, ways, silenceMs, mostBytes, clock } = this.options;
    const { request, outputTokens, before } = question;
    const model = request.model ?? server.name;
    const known = ways.of(place, model).refused;
    let attempts = 1;
    let isWithoutPictures = false;
    for (;;) {
      const refused = this.leftOut(model, request, isWithoutPictures);
      const to = { server: place, model };
      const sent = chatRequest(this.requestFor(model, request), to, outputTokens, refused, server.extra);
      if (signal.aborted) throw stoppedRequest(serverTitle(place, model));
      try {
        const { post, body, reader } = this.apis[sent.api];
        const whole = yield* attempt({
          post,
          body: body(sent),
          answer: reader(),
          silenceMs,
          mostBytes,
          sent,
          shown,
          before,
          clock,
          signal,
        });
        await this.noteTaken(model, sent);
        // Some models call tools that were not offered.
        if (whole.calls.length === 0 || sent.tools.length === 0) return { ...whole, calls: [] };
        const offered = new Set(sent.tools.map(({ name }) => name));
        return { ...whole, calls: callableOf(whole.calls, request.messages, offered) };
      } catch (error) {
        if (signal.aborted) throw stoppedRequest(serverTitle(place, model));
        if (!(error instanceof ServerError)) throw error;
        const failed = this.afterFailure(error.details, question, sent, refused, attempts);
        const next = await failed.catch(async (fault) => {
          // Refused even without these fields, so they were not the reason: forget them.
          const isRefused = fault instanceof Fault && fault.code === 'model_refused';
          if (isRefused) await this.keepRefused(model, (quirk) => known.includes(quirk));
          throw fault;
        });
        if (next === 'without pictures') isWithoutPictures = true;
        if (typeof next !== 'object') continue;
        attempts += 1;
        await clock.sleep(next.waitMs, signal);
      }
    }
  }

  /** Whether the hour is over; if so, records this try. */
  private isTriedAgain(model: string, quirk: Quirk, request: ModelRequest): boolean {
    const now = this.options.clock.now();
    const isWanted = quirk === 'images' ? hasPictures(request) : request.tools.length > 0;
    if (!isWanted) return false;
    const key = `${model} ${quirk}`;
    const last = this.tried.get(key);
    const isTime = last !== undefined && now - last >= TRY_AGAIN_MS;
    if (isTime || last === undefined) this.tried.set(key, now);
    return isTime;
  }

  /** The quirks learnt, adjusted by retries and the operator's choice about pictures. */
  private leftOut(model: string, request: ModelRequest, isWithoutPictures: boolean): ReadonlySet<Quirk> {
    const { place, ways, images } = this.options;
    const refused = new Set(ways.of(place, model).refused);
    for (const quirk of TRIED_AGAIN) {
      if (refused.has(quirk) && this.isTriedAgain(model, quirk, request)) refused.delete(quirk);
    }
    if (isWithoutPictures || images === 'no') refused.add('images');
    else if (images === 'yes') refused.delete('images');
    return refused;
  }

  /** The caller's temperature overrides the configured one. The caller puts the most important tools first. */
  private requestFor(model: string, request: ModelRequest): ModelRequest {
    const { server, place, ways } = this.options;
    const { temperature = server.temperature, tools } = request;
    const offered = tools.slice(0, ways.of(place, model).mostTools ?? tools.length);
    return { ...request, ...(temperature !== undefined && { temperature }), tools: offered };
  }

  private refuses(model: string, quirk: Quirk): Promise<void> {
    const { place, ways } = this.options;
    return ways.change(place, model, ({ refused }) => ({ refused: [...new Set([...refused, quirk])] }));
  }

  /** Forgets all other refusals and returns them. */
  private async keepRefused(model: string, isKept: (quirk: Quirk) => boolean): Promise<Quirk[]> {
    const { place, ways } = this.options;
    const forgotten = ways.of(place, model).refused.filter((quirk) => !isKept(quirk));
    if (forgotten.length > 0) {
      await ways.change(place, model, ({ refused }) => ({ refused: refused.filter(isKept) }));
    }
    return forgotten;
  }

  private async noteTaken(model: string, sent: ChatRequest): Promise<void> {
    const taken: Partial<Record<Quirk, boolean>> = {
      tools: sent.tools.length > 0,
      responses: sent.api === 'responses',
      images: picturesIn(sent).length > 0,
    };
    for (const quirk of await this.keepRefused(model, (each) => taken[each] !== true)) {
      const fields = { server: this.options.place, model, taken: quirk };
      this.options.log.info(fields, 'model server takes what it had refused');
    }
  }

  /** How to ask again; `waitMs`: the same request, later. Throws Fault if there is no point. */
  private async afterFailure(
    error: ServerErrorDetails,
    { request, isRaised }: ServerQuestion,
    sent: ChatRequest,
    refused: ReadonlySet<Quirk>,
    attempts: number,
  ): Promise<'without what was refused' | 'without pictures' | { waitMs: number }> {
    const { server, place, redact, images, maxAttempts, ways, window, sizeOf, log, random } = this.options;
    const model = request.model ?? server.name;
    const details = { ...error, words: redact(error.words) };
    const { words } = details;
    const fields = { server: place, model, words };
    const isAnswered = details.kind === 'answered';

    const mostTools = isAnswered ? toolLimitIn(sent, details) : null;
    if (mostTools !== null) {
      log.warn(
        { ...fields, mostTools },
        'model server takes fewer tools in one request; leaving out the rest',
      );
      await ways.change(place, model, () => ({ mostTools }));
      return 'without what was refused';
    }
    const quirk = isAnswered ? refusedParameter(sent, details) : null;
    const size = sizeOf(request);
    const { code, retry } = classify(details, size.estimated);
    // A limit raised for this request alone may exceed what the model can write.
    const isTooMuch = isRaised && quirk !== null && LIMITS.includes(quirk);
    // A field refused although it was omitted is not the reason.
    const isNew = quirk !== null && !refused.has(quirk);
    if (isNew && code !== 'context_too_long' && !isTooMuch) {
      log.warn(
        { ...fields, refused: quirk },
        WARNINGS[quirk] ?? 'model server refused a field; leaving it out',
      );
      await this.refuses(model, quirk);
      return 'without what was refused';
    }
    const pictures = isAnswered ? refusedPictures(sent, details) : null;
    if (pictures !== null) {
      log.warn({ ...fields, pictures }, 'model refused pictures; asking without');
      if (pictures === 'none taken' && images === 'auto') await this.refuses(model, 'images');
      return 'without pictures';
    }
    const most = retry === 'once' ? Math.min(2, maxAttempts) : maxAttempts;
    if (!retry || attempts >= most) {
      if (saysTooLong(details) && code === 'context_too_long' && !isRaised) {
        await window.refused(model, details, size);
      }
      throw failedRequest(code, serverTitle(place, model), details, attempts);
    }
    const waitMs = retryDelay(attempts, details, random);
    log.warn({ ...fields, waitMs }, 'model request failed; retrying');
    return { waitMs };
  }
}

function hasPictures({ messages }: ModelRequest): boolean {
  return messages.some((message) => message.role === 'user' && (message.images?.length ?? 0) > 0);
}

const WARNINGS: Partial<Record<Quirk, string>> = {
  tools: 'model does not take tools: it can talk, but neither read nor write memory',
  reasoning_with_tools:
    'model takes tools on chat completions only while it does not reason; trying the Responses API',
  responses:
    'model server has no Responses API for this model; asking it not to reason, so that it takes tools',
  system_role: 'model server takes no system messages; putting their text before the first message of a user',
};
