/** Receiving by webhook: Telegram calls us, and repeats an update until it gets 200. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Webhook } from '../../core/channel.js';
import { describe } from '../../core/errors.js';
import { type BotIntake, createStoring, keepReceiving } from './intake.js';
import { ALLOWED_UPDATES } from './update.js';

/** Checked regularly: somebody else may set another webhook. */
const CHECK_MS = 300_000;

export function createWebhook(url: string, secret: string) {
  let receiving: (ReturnType<typeof createStoring> & BotIntake) | null = null;
  const underWay = new Set<Promise<void>>();

  /** Keeps the webhook set. Ends when the signal aborts and received updates are stored. Never rejects. */
  async function keep(intake: BotIntake): Promise<void> {
    const { host, signal } = intake;
    const { api } = intake.bot;
    const storing = createStoring(intake);
    let isSet = false;
    await keepReceiving(intake, async () => {
      await storing.logIn();
      receiving = { ...intake, ...storing };
      if (!isSet) {
        const wanted = { url, secret_token: secret, allowed_updates: ALLOWED_UPDATES };
        await api.call((raw, ended) => raw.setWebhook(wanted, ended), { signal });
        isSet = true;
      }
      intake.state.up();
      await host.clock.sleep(CHECK_MS, signal);
      if (signal.aborted) return;
      const info = await api.call((raw, ended) => raw.getWebhookInfo(ended), { signal });
      if (info.url === url) return;
      isSet = false;
      host.log.warn({ channel: 'telegram' }, "the bot's webhook was removed or replaced; setting it again");
    });
    await Promise.allSettled(underWay);
  }

  const admits = (given: string | null) => given !== null && isSame(given, secret);

  async function handle(body: unknown, givenSecret: string | null): Promise<number> {
    if (!admits(givenSecret)) return 401;
    if (typeof body !== 'object' || body === null || !('update_id' in body)) return 400;
    // Not started, not logged in, or stopping: Telegram keeps the update and retries.
    if (receiving === null || receiving.signal.aborted) return 503;
    const id = String(body.update_id);
    const stored = receiving.storeGuarded(id, id, [body]);
    underWay.add(stored);
    try {
      await stored;
      return 200;
    } catch (error) {
      const fields = { channel: 'telegram', reason: describe(error) };
      receiving.host.log.error(fields, 'could not store an update; Telegram will send it again');
      return 500;
    } finally {
      underWay.delete(stored);
    }
  }

  const secretHeader = 'x-telegram-bot-api-secret-token';
  const webhook: Webhook = { path: '/telegram/webhook', secretHeader, admits, handle };
  return { webhook, keep };
}

/** Compares digests, so that timing reveals neither content nor length. */
function isSame(given: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}
