/**
 * Step 5, the model: one OpenAI-compatible chat completions server. Asks as the server can be asked, retries
 * what may pass, and gives one answer or one fault. Text is told while it is written (`telling.ts`).
 */
import type { Clock } from '../core/clock.js';
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { ModelClient, ModelRequest } from '../core/model.js';
import type { Answer } from './assembly.js';
import { attempt } from './attempt.js';
import { checkModel } from './check.js';
import { emptyAnswer, failedRequest, serverTitle, stoppedRequest } from './faults.js';
import { refusedPictures } from './picture-quirks.js';
import { createQuirkBook, type QuirkStorage } from './quirk-book.js';
import { type Quirk, refusedParameter } from './quirks.js';
import { createRedactor, shownUrl } from './redact.js';
import { callIds, requestBody } from './request.js';
import { ServerError } from './server-error.js';
import { type Shows, type StreamEnd, telling } from './telling.js';
import { verdictOn, waitBefore } from './verdict.js';
import type { Wire } from './wire.js';

interface ModelServer {
  baseUrl: string;
  /** null where the server wants none. */
  apiKey: string | null;
  /** The model's name there. */
  name: string;
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

/** `warm` loads what the first request would load, so that nobody waits for it. Never rejects. */
export type OpenAiModel = ModelClient & { warm(): Promise<void> };

export function createOpenAiModel(options: OpenAiModelOptions): OpenAiModel {
  const { server, clock, log, maxOutputTokens } = options;
  const { images = 'auto', maxAttempts = 3, random = Math.random } = options;
  const silenceMs = options.timeoutSeconds * 1000;
  const book = createQuirkBook(options.quirks, clock, log);
  const redact = createRedactor(server);
  const place = shownUrl(server.baseUrl);
  const pageOf = (model: string) => `${place} ${model}`;
  const titleOf = (model: string) => serverTitle(place, model);
  let loading: Promise<Wire> | undefined;

  /** The package costs some 80 ms and 11 MB: it is loaded at the first request, or by `warm`. */
  function loadWire(): Promise<Wire> {
    loading ??= import('./wire.js').then((module) => module.createWire(server, clock.now));
    return loading;
  }

  /** What is left out of a request: what was refused before, and pictures as the operator decided. */
  async function leftOut(model: string, withoutPictures: boolean): Promise<ReadonlySet<Quirk>> {
    const refused = new Set(await book.refused(pageOf(model)));
    if (withoutPictures || images === 'no') refused.add('images');
    else if (images === 'yes') refused.delete('images');
    return refused;
  }

  /** Retries until there is an answer, an empty one too. Throws Fault. */
  async function ask(request: ModelRequest, signal: AbortSignal, shows: Shows): Promise<Answer> {
    const model = request.model ?? server.name;
    const takenIds = callIds(request.messages);
    const wire = await loadWire();
    let failures = 0;
    let withoutPictures = false;
    for (;;) {
      const body = requestBody(request, model, maxOutputTokens, await leftOut(model, withoutPictures));
      if (signal.aborted) throw stoppedRequest(titleOf(model));
      try {
        const answer = await attempt({ wire, body, takenIds, silenceMs, shows, clock, signal });
        // Some models call tools that nobody offered them.
        return body.tools === undefined ? { ...answer, calls: [] } : answer;
      } catch (error) {
        if (signal.aborted) throw stoppedRequest(titleOf(model));
        if (!(error instanceof ServerError)) throw error;
        const details = { ...error.details, words: redact(error.details.words) };

        const quirk = details.kind === 'answered' ? refusedParameter(body, details) : null;
        const verdict = verdictOn(details);
        if (quirk !== null && verdict.code !== 'context_too_long') {
          log.warn({ server: place, model, refused: quirk, words: details.words }, said(quirk));
          await book.add(pageOf(model), quirk);
          continue;
        }
        const pictures = details.kind === 'answered' ? refusedPictures(body, details) : null;
        if (pictures !== null) {
          const { words } = details;
          log.warn({ server: place, model, pictures, words }, 'the model refused pictures; asking without');
          withoutPictures = true;
          if (pictures === 'none taken' && images === 'auto') await book.add(pageOf(model), 'images');
          continue;
        }
        failures += 1;
        if (!verdict.retry || failures >= maxAttempts) {
          throw failedRequest(verdict.code, titleOf(model), details, failures);
        }
        const waitMs = waitBefore(failures, details, random);
        log.warn({ server: place, model, words: details.words, waitMs }, 'the model failed; asking it again');
        await clock.sleep(waitMs, signal);
      }
    }
  }

  /** An empty answer is asked for once more. */
  async function answer(request: ModelRequest, signal: AbortSignal, shows: Shows): Promise<Answer> {
    const first = await ask(request, signal, shows);
    if (!isEmpty(first)) return first;
    const second = first.finish === 'content_filter' ? first : await ask(request, signal, shows);
    if (!isEmpty(second)) return second;
    throw emptyAnswer(titleOf(request.model ?? server.name), second.finish);
  }

  async function end(request: ModelRequest, signal: AbortSignal, shows: Shows): Promise<StreamEnd> {
    try {
      const { text, calls, usage, model, finish } = await answer(request, signal, shows);
      const named = model ?? request.model ?? server.name;
      return { kind: 'done', text, calls, usage, model: named, truncated: finish === 'length' };
    } catch (error) {
      return { kind: 'failed', fault: asFault(error) };
    }
  }

  function asFault(error: unknown): Fault {
    if (error instanceof Fault) return error;
    return new Fault('internal', `${titleOf(server.name)} could not be asked: ${redact(describe(error))}.`);
  }

  return {
    stream: (request, signal) => telling((shows) => end(request, signal, shows)),

    async warm() {
      try {
        await Promise.all([loadWire(), book.refused(pageOf(server.name))]);
      } catch (error) {
        log.warn({ error: describe(error) }, 'the openai package could not be loaded');
      }
    },

    check: (signal) =>
      checkModel({
        identity: `${server.name} at ${place}`,
        ask: (request) => ask(request, signal, () => {}),
        forgetQuirks: () => book.forget(pageOf(server.name)),
        quirks: () => book.refused(pageOf(server.name)),
        now: clock.now,
      }),
  };
}

function isEmpty(answer: Answer): boolean {
  return answer.text.trim() === '' && answer.calls.length === 0;
}

function said(quirk: Quirk): string {
  return quirk === 'tools'
    ? 'the model does not take tools: it can talk, but neither read nor write memory'
    : `the model server does not take ${quirk}; it is left out from now on`;
}
