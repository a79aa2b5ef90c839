/**
 * Receiving by being called. Telegram sends one update at a time for each chat, and sends it again unless it gets
 * 200, which it gets only when the update is stored.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Webhook } from '../../core/channel.js';
import { describe } from '../../core/errors.js';
import { type Intake, keepReceiving, keptOf, type Login, logIn, passOver, store } from './intake.js';
import { type Called, createCalled } from './stuck.js';
import { ALLOWED_UPDATES } from './update.js';

const PATH = '/telegram/webhook';

/** Somebody else may set another one. */
const LOOK_AGAIN_MS = 300_000;

export function createWebhook(url: string, secret: string) {
  let receiving: { intake: Intake; login: Login; called: Called } | null = null;
  const storing = new Set<Promise<void>>();

  /** Keeps it set. Ends when the signal aborts and what Telegram called with is stored. Never rejects. */
  async function keep(intake: Intake): Promise<void> {
    const { bot, state, clock, log, signal } = intake;
    const { api } = bot;
    let isSet = false;
    await keepReceiving(intake, async () => {
      const login = await logIn(intake);
      receiving = { intake, login, called: receiving?.called ?? createCalled(keptOf(intake, login)) };
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
    // What could not be said of this end makes the next starts more careful, no more.
    await receiving?.called
      .end()
      .catch((error) => log.debug({ reason: describe(error) }, 'the end was not kept'));
  }

  const admits = (given: string | null) => given !== null && isSame(given, secret);

  /** A call of Telegram's. */
  async function handle(body: unknown, givenSecret: string | null): Promise<number> {
    if (!admits(givenSecret)) return 401;
    if (typeof body !== 'object' || body === null || !('update_id' in body)) return 400;
    // Not started, not logged in, or stopping: Telegram keeps the update and comes again.
    if (receiving === null || receiving.intake.signal.aborted) return 503;
    const stored = takeIn(receiving, body);
    storing.add(stored);
    try {
      await stored;
      return 200;
    } catch (error) {
      receiving.intake.log.error(
        { channel: 'telegram', reason: describe(error) },
        'an update could not be stored; Telegram will send it again',
      );
      return 500;
    } finally {
      storing.delete(stored);
    }
  }

  async function takeIn(
    { intake, login, called }: NonNullable<typeof receiving>,
    body: { update_id: unknown },
  ): Promise<void> {
    const id = String(body.update_id);
    const it = () => store(intake, login, [body]);
    const deadly = await called.begin();
    await (deadly?.handle(id, it, () => passOver(intake, login, id)) ?? it());
  }

  const webhook: Webhook = { path: PATH, secretHeader: 'x-telegram-bot-api-secret-token', admits, handle };
  return { webhook, keep };
}

/** Compares digests, so that neither the time taken nor the length tells anything. */
function isSame(given: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}
