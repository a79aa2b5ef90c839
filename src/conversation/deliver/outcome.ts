/**
 * Within step 7 of the route: what came of an attempt to send an entry of the outbox is stored, and decides whether it is
 * tried again.
 */
import type { Channel, Delivery, Recipient, SendOptions, SendResult } from '../../core/channel.js';
import { platformId } from '../../core/ids.js';
import { linkChat } from '../identity.js';
import type { BaseServices, Deliver } from '../services.js';
import type { Budget } from './budget.js';
import { type Showing, toldOf } from './showing.js';

export interface Sender extends BaseServices {
  showing: Pick<Showing, 'forget'>;
  tellOwners: Deliver['tellOwners'];
  budgetOf(channel: string): Budget | undefined;
  /** Aborted when nothing further is to be sent. */
  stopping: AbortSignal;
  /** Aborted at shutdown, to cut off sends in flight. */
  cuttingOff: AbortSignal;
}

const FIRST_BACKOFF_MS = 1_000;
const LONGEST_BACKOFF_MS = 60_000;

/** Waits until the budget has room for one more message in this chat. */
export async function waitForRoom(
  { budgetOf, clock, stopping }: Sender,
  { chatId, kind }: Delivery,
  { name }: Channel,
): Promise<void> {
  const budget = budgetOf(name);
  if (!budget) return;
  await clock.sleep(budget.reserveChat(chatId, kind, clock.now()), stopping);
  await clock.sleep(budget.reserveAccount(clock.now()), stopping);
}

export function recipientOf({ address, threadId, kind }: Delivery): Recipient {
  return { address, threadId, kind };
}

export function optionsOf({ cuttingOff }: Sender, entry: Delivery): SendOptions {
  return {
    ...toldOf(entry),
    key: entry.shown?.key ?? String(entry.id),
    earlierTries: entry.attempts,
    createdAt: entry.createdAt,
    replyTo: entry.replyTo,
    signal: cuttingOff,
  };
}

/** The final text is already shown: only records it as sent. */
export function noteShown(sender: Sender, delivery: Delivery): Promise<boolean> {
  sender.showing.forget(delivery);
  return noteFound(sender, delivery, delivery.shown?.platformMessageId ?? '');
}

/** It arrived with an earlier attempt: only records it as sent. */
export function noteFound(sender: Sender, delivery: Delivery, platformMessageId: string): Promise<boolean> {
  return note(sender, () => settle(sender, delivery, { kind: 'sent', platformMessageId }));
}

/** The outcome of a send is known: if storing it fails, only storing is repeated, never the send. */
export async function note(
  { clock, log, cuttingOff }: Sender,
  what: () => Promise<boolean>,
): Promise<boolean> {
  for (;;) {
    try {
      return await what();
    } catch (error) {
      log.error({ err: error }, 'the outcome of a send could not be stored; retrying');
      if (cuttingOff.aborted) return false;
      await clock.sleep(FIRST_BACKOFF_MS, cuttingOff);
    }
  }
}

/** Stores the outcome. Returns whether the entry is finished. */
export async function settle(sender: Sender, delivery: Delivery, result: SendResult): Promise<boolean> {
  const { store, clock, log, metrics, cuttingOff } = sender;
  const { id, chatId, channel } = delivery;
  const now = clock.now();
  metrics.count('deliveries_total', { channel, outcome: result.kind });
  switch (result.kind) {
    case 'sent':
      metrics.observe('delivery_wait_seconds', (now - delivery.createdAt) / 1000);
      await store.markSent(id, result.platformMessageId, now);
      return true;
    case 'refused':
      log.warn(
        { chat: chatId, delivery: id, reason: result.reason },
        'the platform refused a message for good; it is not sent again',
      );
      await store.giveUp(id, 'refused', result.reason, now);
      return true;
    case 'moved':
      await store.moveChat(chatId, result.address);
      await linkChat(sender, chatId, platformId(channel, result.address));
      await store.retry(id, { notBefore: now, uncertain: false, error: 'the chat moved' });
      return false;
    case 'unreachable': {
      // Cut off by our own shutdown: the entry stays marked as being sent, and the next start counts it as uncertain.
      if (cuttingOff.aborted && result.taken === 'unknown') return false;
      const backoff = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(delivery.attempts, 10));
      const notBefore = now + (result.retryAfterMs ?? backoff);
      log.warn(
        { chat: chatId, delivery: id, reason: result.reason, inMs: notBefore - now },
        'a message could not be sent; it will be retried',
      );
      await store.retry(id, { notBefore, uncertain: result.taken === 'unknown', error: result.reason });
      if (result.notice) await sender.tellOwners(result.notice);
      return false;
    }
  }
}
