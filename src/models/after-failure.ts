/**
 * Step 5, inside the model client: what comes of a failed request. What the server does not take is learnt, to be asked
 * without; what may pass is to be waited for; anything else is the fault.
 */
import type { Log } from '../core/log.js';
import type { ModelRequest } from '../core/model.js';
import type { ContextWindow } from './context-window.js';
import { classify, failedRequest, retryDelay, serverTitle } from './failures.js';
import type { Quirk, QuirkStore } from './quirk-store.js';
import { refusedParameter, refusedPictures } from './quirks.js';
import type { ChatRequest } from './request.js';
import type { ServerErrorDetails } from './server-error.js';
import type { RequestSize } from './token-counts.js';
import { saysTooLong } from './too-long.js';
import { toolLimitIn } from './tool-limit.js';
import { modelKey } from './week-store.js';

export interface FailureOptions {
  /** The server's address as it may be shown. */
  place: string;
  redact(text: string): string;
  images: 'auto' | 'yes' | 'no';
  /** How often the same server is asked, at most. */
  maxAttempts: number;
  quirks: QuirkStore;
  /** Learns from refusals of what is too long. */
  window: Pick<ContextWindow, 'refused'>;
  sizeOf(request: ModelRequest): RequestSize;
  log: Log;
  /** 0 to 1, to spread retries. */
  random(): number;
}

interface Failed {
  request: ModelRequest;
  model: string;
  /** What was sent of it, and what was left out. */
  sent: ChatRequest;
  refused: ReadonlySet<Quirk>;
  /** This request alone may write more than others. */
  isRaised: boolean;
  /** How often it was asked in vain, this time included. */
  attempts: number;
}

/** The quirks that are about how much may be written. */
const LIMITS: readonly Quirk[] = ['max_tokens', 'max_completion_tokens'];

/** How to ask again; `waitMs`: as it is, but later. Throws Fault where that is of no use. */
export async function afterFailure(
  { place, redact, images, maxAttempts, quirks, window, sizeOf, log, random }: FailureOptions,
  { request, model, sent, refused, isRaised, attempts }: Failed,
  error: ServerErrorDetails,
): Promise<'without what was refused' | 'without pictures' | { waitMs: number }> {
  const details = { ...error, words: redact(error.words) };
  const { words } = details;

  const mostTools = details.kind === 'answered' ? toolLimitIn(sent, details) : null;
  if (mostTools !== null) {
    log.warn({ server: place, model, mostTools, words }, 'the model server takes fewer tools in one request');
    await quirks.limitTools(modelKey(place, model), mostTools);
    return 'without what was refused';
  }
  const quirk = details.kind === 'answered' ? refusedParameter(sent, details) : null;
  const size = sizeOf(request);
  const { code, retry } = classify(details, size.estimated);
  // A limit that was raised for this request alone may be more than the model can write.
  const isTooMuch = isRaised && quirk !== null && LIMITS.includes(quirk);
  // What is refused although it was left out is refused for good.
  const isNew = quirk !== null && !refused.has(quirk);
  if (isNew && code !== 'context_too_long' && !isTooMuch) {
    log.warn({ server: place, model, refused: quirk, words }, warningOf(quirk));
    await quirks.add(modelKey(place, model), quirk);
    return 'without what was refused';
  }
  const pictures = details.kind === 'answered' ? refusedPictures(sent, details) : null;
  if (pictures !== null) {
    log.warn({ server: place, model, pictures, words }, 'the model refused pictures; asking without');
    if (pictures === 'none taken' && images === 'auto') await quirks.add(modelKey(place, model), 'images');
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
  log.warn({ server: place, model, words, waitMs }, 'the model failed; asking it again');
  return { waitMs };
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
  if (quirk === 'system_role') {
    return 'the model server takes no system messages; what stands in them goes before the first message of a user from now on';
  }
  return `the model server does not take ${quirk}; it is left out from now on`;
}
