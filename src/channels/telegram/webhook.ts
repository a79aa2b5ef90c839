/**
 * Receiving by being called. Telegram sends one update at a time for each chat, and sends it again unless it gets
 * 200, which it gets only when the update is stored.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Webhook } from '../../core/channel.js';
import { describe } from '../../core/errors.js';
import { type Intake, keepReceiving, type Login, logIn, store } from './intake.js';
import { ALLOWED_UPDATES } from './update.js';

const PATH = '/telegram/webhook';

/** Somebody else may set another one. */
const LOOK_AGAIN_MS = 300_000;

export function createWebhook(url: string, secret: string) {
  let receiving: { intake: Intake; login: Login } | null = null;
  const storing = new Set<Promise<void>>();

  /** Keeps it set. Ends when the signal aborts and what Telegram called with is stored. Never rejects. */
  async function keep(intake: Intake): Promise<void> {
    const { bot, state, clock, log, signal } = intake;
    const { api } = bot;
    let isSet = false;
    await keepReceiving(intake, async () => {
      receiving = { intake, login: await logIn(intake) };
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
    });
    await Promise.allSettled(storing);
  }

  const admits = (given: string | null) => given !== null && isSame(given, secret);

  /** A call of Telegram's. */
  async function handle(body: unknown, givenSecret: string | null): Promise<number> {
    if (!admits(givenSecret)) return 401;
    if (typeof body !== 'object' || body === null || !('update_id' in body)) return 400;
    // Not started, not logged in, or stopping: Telegram keeps the update and comes again.
    if (receiving === null || receiving.intake.signal.aborted) return 503;
    const { intake, login } = receiving;
    const stored = store(intake, login, [body]);
    storing.add(stored);
    try {
      await stored;
      return 200;
    } catch (error) {
      intake.log.error(
        { channel: 'telegram', reason: describe(error) },
        'an update could not be stored; Telegram will send it again',
      );
      return 500;
    } finally {
      storing.delete(stored);
    }
  }

  const webhook: Webhook = { path: PATH, secretHeader: 'x-telegram-bot-api-secret-token', admits, handle };
  return { webhook, keep };
}

/** Compares digests, so that neither the time taken nor the length tells anything. */
function isSame(given: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}
