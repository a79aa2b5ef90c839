/**
 * Receiving by being called. Telegram sends one update at a time for each chat, and sends it again unless it gets
 * 200, which it gets only when the update is stored.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Webhook } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { State } from '../kit/state.js';
import type { Intake } from './intake.js';
import { keepReceiving } from './supervise.js';
import { ALLOWED_UPDATES } from './update.js';

const PATH = '/telegram/webhook';

/** Somebody else may set another one. */
const LOOK_AGAIN_MS = 300_000;

/** Keeps our webhook set. */
export function keepWebhook(parts: {
  intake: Intake;
  url: string;
  secret: string;
  state: State;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
}): Promise<void> {
  const { intake, url, secret, state, clock, log, signal } = parts;
  const { bot } = intake;
  const { api } = bot;
  let isSet = false;

  async function round(): Promise<void> {
    await intake.identity(signal);
    if (!isSet) {
      const wanted = { url, secret_token: secret, allowed_updates: ALLOWED_UPDATES };
      await api.call((raw, ended) => raw.setWebhook(wanted, ended), { signal });
      isSet = true;
    }
    state.up();
    await clock.sleep(LOOK_AGAIN_MS, signal);
    if (signal.aborted) return;
    const info = await api.call((raw, ended) => raw.getWebhookInfo(ended), { signal });
    if (info.url === url) return;
    isSet = false;
    log.warn(
      { channel: 'telegram' },
      'another webhook was set for this bot, or ours was removed; setting ours again',
    );
  }

  return keepReceiving({ bot, round, state, clock, log, signal });
}

/** Where Telegram's calls come in. */
export function webhookFor(
  { read, accept }: Intake,
  { secret, log, stopping }: { secret: string; log: Log; stopping: AbortSignal },
): Webhook {
  return {
    path: PATH,
    secretHeader: 'x-telegram-bot-api-secret-token',
    async handle(body, givenSecret) {
      if (givenSecret === null || !isSame(givenSecret, secret)) return 401;
      if (typeof body !== 'object' || body === null || !('update_id' in body)) return 400;
      // Not started, not logged in, or stopping: Telegram keeps the update and comes again.
      const events = stopping.aborted ? null : read([body]);
      if (events === null) return 503;
      if (events.length === 0) return 200;
      try {
        await accept({ events });
        return 200;
      } catch (error) {
        log.error(
          { channel: 'telegram', reason: describe(error) },
          'an update could not be stored; Telegram will send it again',
        );
        return 500;
      }
    },
  };
}

/** Compares digests, so that neither the time taken nor the length tells anything. */
function isSame(given: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}
