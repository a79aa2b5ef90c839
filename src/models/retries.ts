/** How to ask again after a failure: without what the server refused, which is learnt; later; or another server. */
import { describe, Fault, type FaultCode } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { ModelClient, ModelEvent, ModelRequest, Notice, Prices } from '../core/model.js';
import type { ContextWindow } from './context-window.js';
import {
  classify,
  failedRequest,
  retryDelay,
  type ServerErrorDetails,
  saysTooLong,
  serverTitle,
  windowSaid,
} from './failures.js';
import { refusedParameter, refusedPictures, toolLimitIn } from './refusals.js';
import { type ChatRequest, picturesIn } from './request.js';
import type { OpenAiModelOptions, Quirk } from './server-ways.js';
import type { RequestSize } from './token-counts.js';

/** Quirks that cost a persona most if outdated or mistaken: retried after an hour, and forgotten on success. */
const TRIED_AGAIN: readonly Quirk[] = ['tools', 'responses', 'images'];
const TRY_AGAIN_MS = 60 * 60_000;

const LIMITS: readonly Quirk[] = ['max_tokens', 'max_completion_tokens'];

const WARNINGS: Partial<Record<Quirk, string>> = {
  tools: 'model does not take tools: it can talk, but neither read nor write memory',
  reasoning_with_tools:
    'model takes tools on chat completions only while it does not reason; trying the Responses API',
  responses:
    'model server has no Responses API for this model; asking it not to reason, so that it takes tools',
  system_role: 'model server takes no system messages; putting their text before the first message of a user',
};

/** A request that failed. */
interface Failed {
  request: ModelRequest;
  model: string;
  /** This request alone has a higher output limit. */
  isRaised: boolean;
  sent: ChatRequest;
  attempts: number;
  /** Refusals known before the first attempt, left out of `sent`, and for this request alone. */
  known: readonly Quirk[];
  refused: ReadonlySet<Quirk>;
  withheld: Set<Quirk>;
}

export class Retries {
  /** When each was last tried or first seen as refused, by model and quirk. */
  private readonly tried = new Map<string, number>();

  constructor(
    private readonly options: OpenAiModelOptions,
    private readonly place: string,
    private readonly redact: (text: string) => string,
    private readonly window: ContextWindow,
    private readonly sizeOf: (request: ModelRequest) => RequestSize,
  ) {}

  /** The quirks learnt, adjusted by retries and the operator's choice about pictures. */
  leftOut(model: string, request: ModelRequest, withheld: ReadonlySet<Quirk>): ReadonlySet<Quirk> {
    const { ways, images } = this.options;
    const refused = new Set(ways.of(this.place, model).refused);
    for (const quirk of TRIED_AGAIN) {
      if (refused.has(quirk) && this.isTriedAgain(model, quirk, request)) refused.delete(quirk);
    }
    if (images === 'yes') refused.delete('images');
    if (images === 'no') refused.add('images');
    return new Set([...refused, ...withheld]);
  }

  /** Whether the hour is over; if so, records this try. */
  private isTriedAgain(model: string, quirk: Quirk, { messages, tools }: ModelRequest): boolean {
    const hasPictures = messages.some((message) => message.role === 'user' && message.images?.length);
    if (quirk === 'images' ? !hasPictures : tools.length === 0) return false;
    const now = this.options.clock.now();
    const key = `${model} ${quirk}`;
    const last = this.tried.get(key);
    const isTime = last !== undefined && now - last >= TRY_AGAIN_MS;
    if (isTime || last === undefined) this.tried.set(key, now);
    return isTime;
  }

  /** The request was answered: forgets refusals of what it held. */
  async noteTaken(model: string, sent: ChatRequest): Promise<void> {
    const taken: Partial<Record<Quirk, boolean>> = {
      tools: sent.tools.length > 0,
      responses: sent.api === 'responses',
      images: picturesIn(sent).length > 0,
    };
    for (const quirk of await this.keepRefused(model, (each) => taken[each] !== true)) {
      const fields = { server: this.place, model, taken: quirk };
      this.options.log.info(fields, 'model server takes what it had refused');
    }
  }

  /** Forgets all other refusals and returns them. */
  private async keepRefused(model: string, isKept: (quirk: Quirk) => boolean): Promise<Quirk[]> {
    const { ways } = this.options;
    const forgotten = ways.of(this.place, model).refused.filter((quirk) => !isKept(quirk));
    if (forgotten.length > 0) {
      await ways.change(this.place, model, ({ refused }) => ({ refused: refused.filter(isKept) }));
    }
    return forgotten;
  }

  /** Resolves with the wait before the next try, in ms; 0: at once, without what was refused. Throws Fault if there is no point. */
  async afterFailure(error: ServerErrorDetails, failed: Failed): Promise<number> {
    const { request, model, attempts } = failed;
    const { maxAttempts = 3, log, random = Math.random } = this.options;
    const details = { ...error, words: this.redact(error.words) };
    const size = this.sizeOf(request);
    const { code, retry } = classify(details, size.estimated);
    if (details.kind === 'answered' && (await this.learns(details, code, failed))) return 0;
    const most = retry === 'once' ? Math.min(2, maxAttempts) : maxAttempts;
    if (retry && attempts < most) {
      const waitMs = retryDelay(attempts, details, random);
      log.warn({ server: this.place, model, words: details.words, waitMs }, 'model request failed; retrying');
      return waitMs;
    }
    if (saysTooLong(details) && code === 'context_too_long' && !failed.isRaised) {
      await this.window.refused(model, windowSaid(details), size);
    }
    // Refused even without these fields, so they were not the reason: forget them.
    if (code === 'model_refused') await this.keepRefused(model, (quirk) => failed.known.includes(quirk));
    throw failedRequest(code, serverTitle(this.place, model), details, attempts);
  }

  /** Whether a part of the request was refused. */
  private async learns(details: ServerErrorDetails, code: FaultCode, failed: Failed): Promise<boolean> {
    const { log, ways, images = 'auto' } = this.options;
    const { model, sent, refused } = failed;
    const fields = { server: this.place, model, words: details.words };
    const mostTools = toolLimitIn(sent, details);
    if (mostTools !== null) {
      const limit = { ...fields, mostTools };
      log.warn(limit, 'model server takes fewer tools in one request; leaving out the rest');
      await ways.change(this.place, model, () => ({ mostTools }));
      return true;
    }
    const quirk = refusedParameter(sent, details);
    // A field refused although it was omitted is not the reason.
    const isNew = quirk !== null && !refused.has(quirk) && code !== 'context_too_long';
    // A limit raised for this request alone may exceed what the model can write.
    if (isNew && !(failed.isRaised && LIMITS.includes(quirk))) {
      const warning = WARNINGS[quirk] ?? 'model server refused a field; leaving it out';
      log.warn({ ...fields, refused: quirk }, warning);
      await this.refuses(model, quirk);
      return true;
    }
    const pictures = refusedPictures(sent, details);
    if (pictures === null) return false;
    log.warn({ ...fields, pictures }, 'model refused pictures; asking without');
    if (pictures === 'none taken' && images === 'auto') await this.refuses(model, 'images');
    failed.withheld.add('images');
    return true;
  }

  private refuses(model: string, quirk: Quirk): Promise<void> {
    const { ways } = this.options;
    return ways.change(this.place, model, ({ refused }) => ({ refused: [...new Set([...refused, quirk])] }));
  }
}

/**
 * Asks the servers in order. A persona's own model applies only to the first server; fallbacks have their own. If all fail, the
 * fault holds all messages and the first code, or `context_too_long` if any gave it, because a shorter request may succeed.
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
    for (const client of [first, ...fallbacks]) {
      let spoke = false;
      for await (const event of client.stream(client === first ? request : withoutModel, signal)) {
        if (event.kind === 'text' || event.kind === 'restart') {
          spoke = event.kind === 'text';
          yield event;
          continue;
        }
        notices.push(...(event.notices ?? []));
        const told = notices.length > 0 ? { ...event, notices } : event;
        if (event.kind === 'done') answering = client;
        if (event.kind === 'done' || signal.aborted) return yield told;
        faults.push(event.fault);
        prices = event.prices;
        if (event.fault.code === 'context_too_long') answering = client;
      }
      if (faults.length <= fallbacks.length) {
        if (spoke) yield { kind: 'restart' };
        log.warn({ error: describe(faults.at(-1)) }, 'model failed; asking the next fallback');
      }
    }
    const message = faults.map((fault) => fault.message).join(' Then: ');
    const code = faults.find((fault) => fault.code === 'context_too_long')?.code ?? faults[0]?.code;
    const fault = new Fault(code ?? 'internal', message);
    yield { kind: 'failed', fault, ...(prices && { prices }), ...(notices.length > 0 && { notices }) };
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
