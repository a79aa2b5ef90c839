/**
 * Taking in by being called. Telegram sends one update at a time for each chat, and sends it again unless it
 * hears 200; it hears that only when the update is stored.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { InboundBatch, InboundEvent } from '../../core/message.js';
import type { State } from '../state.js';
import type { BotApi } from './api.js';
import type { OurBot } from './ours.js';
import { supervise } from './supervise.js';
import { ALLOWED_UPDATES } from './update.js';

export const WEBHOOK_PATH = '/telegram/webhook';

/** Somebody else may set another one. */
const LOOK_AGAIN_MS = 300_000;

/** Keeps our webhook set. */
export async function keepWebhook(parts: {
  api: BotApi;
  url: string;
  secret: string;
  identity(signal: AbortSignal): Promise<OurBot>;
  state: State;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
}): Promise<void> {
  const { api, url, secret, state, clock, log, signal } = parts;
  let set = false;

  async function round(): Promise<void> {
    await parts.identity(signal);
    if (!set) {
      const wanted = { url, secret_token: secret, allowed_updates: ALLOWED_UPDATES };
      await api.call((raw, ended) => raw.setWebhook(wanted, ended), { signal });
      set = true;
    }
    state.up();
    await clock.sleep(LOOK_AGAIN_MS, signal);
    if (signal.aborted) return;
    const info = await api.call((raw, ended) => raw.getWebhookInfo(ended), { signal });
    if (info.url === url) return;
    set = false;
    log.warn(
      { channel: 'telegram' },
      'another webhook was set for this bot, or ours was removed; setting ours again',
    );
  }

  return supervise({ round, api, personaId: null, state, clock, log, signal });
}

/** Answers one call with an HTTP status. */
export async function answerCall(
  body: unknown,
  givenSecret: string | null,
  parts: {
    secret: string;
    /** The update in our words; null while it cannot be taken in. */
    read(updates: unknown[]): InboundEvent[] | null;
    accept(batch: Pick<InboundBatch, 'events'>): Promise<void>;
    log: Log;
  },
): Promise<number> {
  if (givenSecret === null || !isSame(givenSecret, parts.secret)) return 401;
  if (typeof body !== 'object' || body === null || !('update_id' in body)) return 400;
  // Not started, not logged in, or stopping: Telegram keeps the update and comes again.
  const events = parts.read([body]);
  if (events === null) return 503;
  if (events.length === 0) return 200;
  try {
    await parts.accept({ events });
    return 200;
  } catch (error) {
    log(parts.log, error);
    return 500;
  }
}

function log(to: Log, error: unknown): void {
  to.error(
    { channel: 'telegram', reason: describe(error) },
    'an update could not be stored; Telegram will send it again',
  );
}

/** Compares digests, so that neither the time taken nor the length tells anything. */
function isSame(given: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}
