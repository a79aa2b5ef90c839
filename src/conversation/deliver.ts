/**
 * Step 7 of the route: the one door out. Per chat in order, within the account's budget, with retries; what was
 * sent is marked and never sent again. Where nobody can tell whether the platform took a message (the
 * connection broke after the request was written), it is sent once more, and then not; after an end of the
 * process a few times, since losing it would be worse (docs/decisions/0003).
 */
import { setMaxListeners } from 'node:events';
import type { Channel, Recipient, SendResult } from '../core/channel.js';
import type { Clock } from '../core/clock.js';
import { type ChatId, channelOf, platformId } from '../core/ids.js';
import type { Log, Metrics } from '../core/log.js';
import type { Delivery, OutboxStore, ReceiveStore } from '../core/store.js';
import { type Budget, createBudget } from './budget.js';
import { createQuiet } from './quiet.js';

export interface DeliverParts {
  store: OutboxStore & Pick<ReceiveStore, 'durable'>;
  channels: ReadonlyMap<string, Channel>;
  /** The platform answered that a chat lives elsewhere now: note the further id. */
  onMoved(chatId: ChatId, movedTo: ChatId): Promise<void>;
  maxAgeMs: number;
  clock: Clock;
  log: Log;
  metrics: Metrics;
}

export interface Deliver {
  /** Something may wait for this chat. */
  wake(chatId: ChatId): void;
  /** Shows typing until the returned function is called, as far as the budget has something left. */
  typing(channel: Channel, chatId: ChatId, to: Recipient): () => void;
  /** Resolves when nothing of this channel is left to send. */
  idle(channel: string): Promise<void>;
  /** From now on only sends what can go at once: nobody waits out an outage. Resolves when that is gone. */
  drain(): Promise<void>;
  /** Begins no more sends; `done` when those in flight are over. What is left stays in the outbox. */
  stop(): { done: Promise<void>; force(): void };
}

/** A cut connection may have swallowed the message: once more. An end of the process: a few times at most. */
const UNCERTAIN_CUTS = 2;
const UNCERTAIN_CRASHES = 5;
/** Where a resend is never a second message, only one that ends the process itself has to be given up. */
const RECOGNISED_CRASHES = 30;
const FIRST_BACKOFF_MS = 1_000;
const LONGEST_BACKOFF_MS = 60_000;
/** A reply that comes at once needs no sign of work; platforms show the sign for about five seconds. */
const TYPING_AFTER_MS = 300;
const TYPING_EVERY_MS = 4_000;
const HOUR_MS = 3_600_000;

export function createDeliver(parts: DeliverParts): Deliver {
  const { store, clock, log } = parts;
  const budgets = new Map<string, Budget>();
  for (const channel of parts.channels.values()) budgets.set(channel.name, createBudget(channel.limits));
  const working = new Map<ChatId, { again: boolean }>();
  const stopping = new AbortController();
  const cuttingOff = new AbortController();
  // Every chat that waits listens to these.
  const draining = new AbortController();
  setMaxListeners(0, stopping.signal, cuttingOff.signal, draining.signal);
  const quiet = createQuiet();

  function wake(chatId: ChatId): void {
    const busy = working.get(chatId);
    if (busy) {
      busy.again = true;
      return;
    }
    const channel = parts.channels.get(channelOf(chatId));
    const budget = budgets.get(channelOf(chatId));
    if (!channel || !budget || stopping.signal.aborted) return;
    const work = { again: false };
    working.set(chatId, work);
    void empty(chatId, channel, budget, work).finally(() => {
      working.delete(chatId);
      if (work.again) wake(chatId);
      quiet.tell();
    });
  }

  async function empty(
    chatId: ChatId,
    channel: Channel,
    budget: Budget,
    work: { again: boolean },
  ): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        work.again = false;
        const delivery = await store.next(chatId);
        if (!delivery) return;
        await clock.sleep(delivery.notBefore - clock.now(), draining.signal);
        if (draining.signal.aborted && delivery.notBefore > clock.now()) return;
        await deliverOne(delivery, channel, budget);
      } catch (error) {
        log.error({ err: error, chat: chatId }, 'the outbox could not be worked on; trying again');
        await clock.sleep(FIRST_BACKOFF_MS, stopping.signal);
      }
    }
  }

  async function deliverOne(delivery: Delivery, channel: Channel, budget: Budget): Promise<void> {
    const { id, chatId } = delivery;
    if (isGivenUp(delivery, channel)) {
      log.warn(
        { chat: chatId, delivery: id },
        'nobody can tell whether a message arrived; it is not sent again',
      );
      await store.give(id, 'unconfirmed', 'uncertain too often', clock.now());
      return;
    }
    await clock.sleep(budget.reserveChat(chatId, delivery.kind, clock.now()), stopping.signal);
    await clock.sleep(budget.reserveAccount(clock.now()), stopping.signal);
    // Nobody is answered what a power cut could still make us forget, and so answer again.
    await store.durable();
    if (stopping.signal.aborted || !(await store.sending(id, clock.now()))) return;

    const to = { address: delivery.address, threadId: delivery.threadId, kind: delivery.kind };
    const options = {
      personaName: delivery.speaker,
      ...(delivery.personaId === null ? {} : { speaker: delivery.personaId }),
      ...(delivery.face === undefined ? {} : { face: delivery.face, leads: delivery.part === 0 }),
      key: String(id),
      earlierTries: delivery.attempts,
      createdAt: delivery.createdAt,
      signal: cuttingOff.signal,
    };
    const waited = clock.now() - delivery.createdAt;
    if (waited > parts.maxAgeMs && delivery.part === 0) {
      const text = `(What follows is late by ${Math.floor(waited / HOUR_MS)} hours.)`;
      await channel.send(to, { text, marks: [] }, { ...options, key: `${id}-late`, replyTo: null });
    }
    const result = await channel.send(to, delivery.body, { ...options, replyTo: delivery.replyTo });
    await note(delivery, result);
  }

  /** What became of a send is known now: if it cannot be stored, it is stored again, never sent again. */
  async function note(delivery: Delivery, result: SendResult): Promise<void> {
    for (;;) {
      try {
        return await settle(delivery, result);
      } catch (error) {
        log.error(
          { err: error, delivery: delivery.id },
          'the outcome of a send could not be stored; trying again',
        );
        if (cuttingOff.signal.aborted) return;
        await clock.sleep(FIRST_BACKOFF_MS, cuttingOff.signal);
      }
    }
  }

  async function settle(delivery: Delivery, result: SendResult): Promise<void> {
    const { id, chatId, channel } = delivery;
    const now = clock.now();
    parts.metrics.count('deliveries_total', { channel, outcome: result.kind });
    switch (result.kind) {
      case 'sent':
        parts.metrics.observe('delivery_wait_seconds', (now - delivery.createdAt) / 1000);
        return store.sent(id, result.platformMessageId, now);
      case 'refused':
        log.warn(
          { chat: chatId, delivery: id, reason: result.reason },
          'the platform refuses a message for good',
        );
        return store.give(id, 'refused', result.reason, now);
      case 'moved':
        await store.move(chatId, result.address);
        await parts.onMoved(chatId, platformId(channel, result.address));
        return store.retry(id, { notBefore: now, uncertain: false, error: 'the chat moved' });
      case 'unreachable': {
        // Cut off by our own end: it stays as being sent, and the next start counts it as that.
        if (cuttingOff.signal.aborted && result.taken === 'unknown') return;
        const backoff = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(delivery.attempts, 10));
        const notBefore = now + (result.retryAfterMs ?? backoff);
        log.warn(
          { chat: chatId, delivery: id, reason: result.reason, inMs: notBefore - now },
          'a message was not sent; again later',
        );
        return store.retry(id, { notBefore, uncertain: result.taken === 'unknown', error: result.reason });
      }
    }
  }

  function typing(channel: Channel, chatId: ChatId, to: Recipient): () => void {
    const budget = budgets.get(channel.name);
    let cancel = clock.after(TYPING_AFTER_MS, show);
    let over = false;
    async function show() {
      if (budget?.takeLeftOver(chatId, to.kind, clock.now())) await channel.setTyping?.(to);
      if (!over) cancel = clock.after(TYPING_EVERY_MS, show);
    }
    return () => {
      over = true;
      cancel();
    };
  }

  return {
    wake,
    typing,
    idle: (channel) => quiet.until(() => [...working.keys()].every((id) => channelOf(id) !== channel)),
    drain() {
      draining.abort();
      return quiet.until(() => working.size === 0);
    },
    stop() {
      draining.abort();
      stopping.abort();
      return { done: quiet.until(() => working.size === 0), force: () => cuttingOff.abort() };
    },
  };
}

/** Nobody can tell whether it arrived, and it was tried often enough. */
function isGivenUp({ uncertainCuts, uncertainCrashes }: Delivery, { recognisesResends }: Channel): boolean {
  if (recognisesResends) return uncertainCrashes >= RECOGNISED_CRASHES;
  return uncertainCuts >= UNCERTAIN_CUTS || uncertainCrashes >= UNCERTAIN_CRASHES;
}
