/** Step 7 of the route: the parts that all sending needs, and the outcome of a send, which decides about a retry. */

import type {
  Channel,
  Delivery,
  NewDelivery,
  Part,
  Recipient,
  SendOptions,
  SendResult,
} from '../../core/channel.js';
import { leaseOf } from '../../core/clock.js';
import { type ChatId, platformId } from '../../core/ids.js';
import { backoff } from '../../core/retry.js';
import type { Attempt } from '../../core/store.js';
import { type TracedStep, turnOfOrigin } from '../../core/tracing.js';
import { linkChat } from '../access.js';
import type { BaseServices, Deliver } from '../services.js';
import type { RateLimiter } from './rate-limiter.js';

export interface Sender extends BaseServices {
  tellOwners: Deliver['tellOwners'];
  storeNow(): number;
  /** By channel. */
  limiters: ReadonlyMap<string, RateLimiter>;
  /** Takes a chat's lane and returns the function that leaves it; null if it is taken. */
  takeLane(chatId: ChatId): (() => void) | null;
  /** Changes of shown replies that run, by the reply's origin. */
  changes: Map<string, { channel: string; done: Promise<unknown>; cutOff(): void }>;
  /** By part key: the content of a shown reply that is certainly shown now. */
  shown: Map<string, Part>;
  changeEnded(): void;
  /** Aborted when nothing is to be waited for any more. */
  draining: AbortSignal;
  /** Aborted when nothing more is to be sent. */
  stopping: AbortSignal;
  /** Aborted at shutdown, to cut off sends in flight. */
  cuttingOff: AbortSignal;
}

const FIRST_BACKOFF_MS = 1_000;
const LONGEST_BACKOFF_MS = 60_000;

/** The start of an attempt that sends something new. */
export function attemptOf(services: BaseServices, channel: Channel, to: Recipient): Attempt {
  return { ...leaseOf(services), mark: channel.watermark?.(to) ?? null };
}

export async function waitForSlot(sender: Sender, { chatId, kind, channel }: Delivery): Promise<void> {
  const { limiters, clock, stopping } = sender;
  const limiter = limiters.get(channel);
  if (!limiter) return;
  await clock.sleep(limiter.reserveChat(chatId, kind, clock.now()), stopping);
  await clock.sleep(limiter.reserveAccount(clock.now()), stopping);
}

export function recipientOf({ address, threadId, kind }: Delivery): Recipient {
  return { address, threadId, kind };
}

export function optionsOf(sender: Sender, entry: Delivery): SendOptions {
  const key = entry.shown?.key ?? String(entry.id);
  const createdAt = entry.shown?.sentAt ?? entry.createdAt;
  return optionsFor(entry, key, createdAt, entry.attempts, sender.cuttingOff);
}

export function optionsFor(
  { personaId, speaker, appearance, part, replyTo }: NewDelivery,
  key: string,
  createdAt: number,
  earlierTries: number,
  signal: AbortSignal,
): SendOptions {
  return {
    personaName: speaker,
    ...(personaId !== null && { speaker: personaId }),
    ...(appearance && { appearance, leads: part === 0 }),
    replyTo,
    key,
    createdAt,
    earlierTries,
    signal,
  };
}

/** The result of a change that can always be repeated. */
export function repeatable(result: SendResult): SendResult {
  return result.kind === 'unreachable' ? { ...result, taken: 'no' } : result;
}

/** Stores the known outcome of a send. If storing fails, only storing is retried, never the send. False if cut off. */
export async function insist(
  { clock, log, cuttingOff }: Sender,
  store: () => Promise<void>,
): Promise<boolean> {
  for (;;) {
    try {
      await store();
      return true;
    } catch (error) {
      log.error({ err: error }, 'the outcome of a send could not be stored; retrying');
      if (cuttingOff.aborted) return false;
      await clock.sleep(FIRST_BACKOFF_MS, cuttingOff);
    }
  }
}

/** A part that was shown already, or is found at the platform, takes no time. */
function traced(
  { origin, channel, begunAt }: Delivery,
  outcome: SendResult['kind'],
  until: number,
): TracedStep {
  const error = outcome === 'sent' ? undefined : outcome;
  return {
    kind: 'send',
    turnId: turnOfOrigin(origin),
    channel,
    outcome,
    error,
    from: begunAt ?? until,
    until,
  };
}

/** Stores the outcome. Returns whether the entry is finished. */
export async function settle(sender: Sender, delivery: Delivery, result: SendResult): Promise<boolean> {
  const { store, clock, storeNow, log, metrics, tracing, cuttingOff } = sender;
  const { id, chatId, channel, createdAt, attempts } = delivery;
  const now = clock.now();
  metrics.count('deliveries_total', { channel, outcome: result.kind });
  tracing?.tell(traced(delivery, result.kind, now));
  switch (result.kind) {
    case 'sent':
      metrics.observe('delivery_wait_seconds', (now - createdAt) / 1000);
      return insist(sender, () => store.settle(id, result, now));
    case 'refused': {
      const fields = { chat: chatId, delivery: id, reason: result.reason };
      log.warn(fields, 'the platform permanently rejected a message; not retrying');
      return insist(sender, () => store.settle(id, result, now));
    }
    case 'moved':
      await insist(sender, async () => {
        const receipts = [{ kind: 'moved' as const, chatId, address: result.address }];
        await store.receive({ channel, account: '', now, receipts });
        await linkChat(sender, chatId, platformId(channel, result.address));
        const reason = 'the chat moved';
        await store.settle(id, { kind: 'retry', notBefore: 0, uncertain: false, reason }, now);
      });
      return false;
    case 'unreachable': {
      const { reason, taken, retryAfterMs, notice } = result;
      // Cut off by our own shutdown: the entry stays marked as being sent, and the next start counts it as uncertain.
      if (cuttingOff.aborted && taken === 'unknown') return false;
      const pause = retryAfterMs ?? backoff(attempts + 1, FIRST_BACKOFF_MS, LONGEST_BACKOFF_MS);
      log.warn({ chat: chatId, delivery: id, reason, inMs: pause }, 'a message could not be sent; retrying');
      const uncertain = taken === 'unknown';
      const retry = { kind: 'retry', notBefore: storeNow() + pause, uncertain, reason } as const;
      await insist(sender, () => store.settle(id, retry, now));
      if (notice) await sender.tellOwners(notice);
      return false;
    }
  }
}
