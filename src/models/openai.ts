/**
 * Step 5, the model: one OpenAI-compatible chat completions server. Asks as the server can be asked, retries
 * what may pass, and ends with one answer or one fault.
 */
import type { Clock } from '../core/clock.js';
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { ModelClient, ModelEvent, ModelMessage, ModelRequest } from '../core/model.js';
import type { Answer } from './answer.js';
import { attempt, type Shown } from './attempt.js';
import { checkModel } from './check.js';
import { classify, emptyAnswer, failedRequest, retryDelay, serverTitle, stoppedRequest } from './failures.js';
import { createPost } from './http.js';
import { createQuirkStore, type Quirk, type QuirkStorage } from './quirk-store.js';
import { refusedParameter, refusedPictures } from './quirks.js';
import { createRedactor, shownUrl } from './redact.js';
import { chatRequest, createRequestWriter } from './request.js';
import { ServerError } from './server-error.js';

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

/** What comes while an answer is written, and the answer. Throws Fault. */
type Asked = AsyncGenerator<ModelEvent, Answer>;

export function createOpenAiModel(options: OpenAiModelOptions): ModelClient {
  const { server, clock, log, maxOutputTokens } = options;
  const { images = 'auto', maxAttempts = 3, random = Math.random } = options;
  const silenceMs = options.timeoutSeconds * 1000;
  const post = createPost(server, clock.now);
  const write = createRequestWriter();
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

  /** Retries until there is an answer, an empty one too. */
  async function* ask(request: ModelRequest, signal: AbortSignal, shown: Shown): Asked {
    const model = request.model ?? server.name;
    const takenIds = () => callIds(request.messages);
    let failures = 0;
    let withoutPictures = false;
    for (;;) {
      const sent = chatRequest(request, model, maxOutputTokens, await leftOut(model, withoutPictures));
      if (signal.aborted) throw stoppedRequest(titleOf(model));
      try {
        const body = write(sent);
        const answer = yield* attempt({ post, body, takenIds, silenceMs, shown, clock, signal });
        // Some models call tools that nobody offered them.
        return sent.tools.length === 0 ? { ...answer, calls: [] } : answer;
      } catch (error) {
        if (signal.aborted) throw stoppedRequest(titleOf(model));
        if (!(error instanceof ServerError)) throw error;
        const details = { ...error.details, words: redact(error.details.words) };

        const quirk = details.kind === 'answered' ? refusedParameter(sent, details) : null;
        const { code, retry } = classify(details);
        if (quirk !== null && code !== 'context_too_long') {
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
        if (!retry || failures >= maxAttempts) {
          throw failedRequest(code, titleOf(model), details, failures);
        }
        const waitMs = retryDelay(failures, details, random);
        log.warn({ server: place, model, words: details.words, waitMs }, 'the model failed; asking it again');
        await clock.sleep(waitMs, signal);
      }
    }
  }

  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    const shown: Shown = { text: '' };
    try {
      let answer = yield* ask(request, signal, shown);
      // An empty answer is asked for once more.
      if (isEmpty(answer) && answer.finish !== 'content_filter') answer = yield* ask(request, signal, shown);
      const { text, calls, usage, finish } = answer;
      const model = request.model ?? server.name;
      if (isEmpty(answer)) throw emptyAnswer(titleOf(model), finish);
      yield {
        kind: 'done',
        text,
        calls,
        usage,
        model: answer.model ?? model,
        truncated: finish === 'length',
      };
    } catch (error) {
      yield { kind: 'failed', fault: asFault(error) };
    }
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
        ask: (request) => answerOf(ask(request, signal, { text: '' })),
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

function isEmpty(answer: Answer): boolean {
  return answer.text.trim() === '' && answer.calls.length === 0;
}

function warningOf(quirk: Quirk): string {
  return quirk === 'tools'
    ? 'the model does not take tools: it can talk, but neither read nor write memory'
    : `the model server does not take ${quirk}; it is left out from now on`;
}
