/**
 * Step 7 of the route: the one door out. Per chat in order, within the account's budget, with retries; what was
 * sent is marked and never sent again. Where nobody can tell whether the platform took a message (the
 * connection broke after the request was written), it is sent once more, and then not; after an end of the
 * process a few times, since losing it would be worse (docs/decisions/0003). What was shown while it was written
 * (`showing.ts`) is edited to its final text here (docs/decisions/0015).
 */
import { setMaxListeners } from 'node:events';
import type { Channel, Part, Recipient, SendResult } from '../core/channel.js';
import type { Clock } from '../core/clock.js';
import { type ChatId, channelOf, type PersonaId, platformId } from '../core/ids.js';
import type { Log, Metrics } from '../core/log.js';
import type { Delivery, OutboxStore, ReceiveStore } from '../core/store.js';
import { type Budget, createBudget } from './budget.js';
import { createQuiet } from './quiet.js';
import { createShowing, optionsOf, recipientOf, type Showing } from './showing.js';

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
  typing(channel: Channel, chatId: ChatId, to: Recipient, personaId: PersonaId): () => void;
  /** Shows a reply that is still written, as far as the budget has something to spare. */
  show: Showing['change'];
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
  const showing = createShowing({
    ...{ store, clock, log, holding, note, onRest: quiet.tell },
    budgetOf: (channel) => budgets.get(channel),
    ...{ stopping: stopping.signal, cuttingOff: cuttingOff.signal },
  });

  function wake(chatId: ChatId): void {
    const busy = working.get(chatId);
    if (busy) {
      busy.again = true;
      return;
    }
    const channel = parts.channels.get(channelOf(chatId));
    const budget = budgets.get(channelOf(chatId));
    if (!channel || !budget || stopping.signal.aborted) return;
    void work(chatId, (mine) => empty(chatId, channel, budget, mine));
  }

  /** One at a time in each chat: so its messages keep their order. */
  async function work(chatId: ChatId, what: (mine: { again: boolean }) => Promise<void>): Promise<void> {
    const mine = { again: false };
    working.set(chatId, mine);
    try {
      await what(mine);
    } finally {
      working.delete(chatId);
      if (mine.again) wake(chatId);
      quiet.tell();
    }
  }

  function holding(chatId: ChatId, what: () => Promise<void>): Promise<void> | null {
    return working.has(chatId) ? null : work(chatId, what);
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
    await showing.rest(delivery.origin);
    const standsAs = delivery.shown?.platformMessageId ?? null;
    if (channel.edit && standsAs !== null) return complete(delivery, standsAs, channel, budget);
    if (isBlank(delivery.body)) return store.give(id, 'dropped', 'nothing is to be said', clock.now());
    if (isGivenUp(delivery, channel)) {
      log.warn(
        { chat: chatId, delivery: id },
        'nobody can tell whether a message arrived; it is not sent again',
      );
      await store.give(id, 'unconfirmed', 'uncertain too often', clock.now());
      return;
    }
    if (!(await begin(delivery, budget))) return;
    const to = recipientOf(delivery);
    const options = optionsOf(delivery, cuttingOff.signal);
    const waited = clock.now() - delivery.createdAt;
    if (waited > parts.maxAgeMs && delivery.part === 0 && !delivery.shown) {
      const text = `(What follows is late by ${Math.floor(waited / HOUR_MS)} hours.)`;
      // The name stands before what follows.
      const late = { ...options, key: `${id}-late`, replyTo: null, leads: false };
      await channel.send(to, { text, marks: [] }, late);
    }
    const result = await channel.send(to, delivery.body, options);
    // Where an earlier try may have arrived, it did so with another text, and was perhaps found and not sent again.
    const { edit } = channel;
    if (edit && delivery.shown && result.kind === 'sent') {
      return note(() => store.stands(id, result.platformMessageId));
    }
    await note(() => settle(delivery, result));
  }

  /** It is its turn, and noted as being sent. False when it is not to be sent now. */
  async function begin({ id, chatId, kind }: Delivery, budget: Budget): Promise<boolean> {
    await clock.sleep(budget.reserveChat(chatId, kind, clock.now()), stopping.signal);
    await clock.sleep(budget.reserveAccount(clock.now()), stopping.signal);
    // Nobody is answered what a power cut could still make us forget, and so answer again.
    await store.durable();
    return !stopping.signal.aborted && (await store.sending(id, clock.now()));
  }

  /** What stands there already becomes what is to stand there. */
  async function complete(
    delivery: Delivery,
    standsAs: string,
    channel: Channel,
    budget: Budget,
  ): Promise<void> {
    const { id, chatId } = delivery;
    if (showing.isShown(delivery)) {
      showing.forget(id);
      return note(() => settle(delivery, { kind: 'sent', platformMessageId: standsAs }));
    }
    if (!(await begin(delivery, budget))) return;
    showing.forget(id);
    const to = recipientOf(delivery);
    const options = optionsOf(delivery, cuttingOff.signal);
    if (isBlank(delivery.body)) {
      await channel.remove?.(to, standsAs, options);
      return note(() => store.give(id, 'dropped', 'taken back', clock.now()));
    }
    const result = await channel.edit?.(to, standsAs, delivery.body, options);
    if (result?.kind === 'refused') {
      log.info({ chat: chatId, delivery: id, reason: result.reason }, 'a reply is sent anew, not completed');
      return sendAnew(delivery, channel);
    }
    // However often it is said, an edit is one edit.
    if (result?.kind === 'unreachable') result.taken = 'no';
    if (result) await note(() => settle(delivery, result));
  }

  /** What stands there goes, and with it what would then stand above the text that it follows. */
  async function sendAnew(delivery: Delivery, channel: Channel): Promise<void> {
    for (const entry of [delivery, ...(await store.shownBelow(delivery))]) {
      const { id, shown } = entry;
      const standsAs = shown?.platformMessageId;
      if (standsAs) await channel.remove?.(recipientOf(entry), standsAs, optionsOf(entry, cuttingOff.signal));
      showing.forget(id);
      await note(() => store.gone(id, clock.now()));
    }
  }

  /** What became of a send is known now: if it cannot be stored, it is stored again, never sent again. */
  async function note(what: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        return await what();
      } catch (error) {
        log.error({ err: error }, 'the outcome of a send could not be stored; trying again');
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

  function typing(channel: Channel, chatId: ChatId, to: Recipient, personaId: PersonaId): () => void {
    const budget = budgets.get(channel.name);
    let cancel = clock.after(TYPING_AFTER_MS, show);
    let over = false;
    async function show() {
      if (budget?.takeLeftOver(chatId, to.kind, clock.now())) await channel.setTyping?.(to, personaId);
      if (!over) cancel = clock.after(TYPING_EVERY_MS, show);
    }
    return () => {
      over = true;
      cancel();
    };
  }

  function isQuiet(): boolean {
    return working.size === 0 && showing.isQuiet();
  }

  return {
    wake,
    typing,
    show: showing.change,
    idle: (channel) =>
      quiet.until(
        () => showing.isQuiet(channel) && [...working.keys()].every((id) => channelOf(id) !== channel),
      ),
    drain() {
      draining.abort();
      return quiet.until(isQuiet);
    },
    stop() {
      draining.abort();
      stopping.abort();
      return { done: quiet.until(isQuiet), force: () => cuttingOff.abort() };
    },
  };
}

/** Nobody can tell whether it arrived, and it was tried often enough. */
function isGivenUp({ uncertainCuts, uncertainCrashes }: Delivery, { recognisesResends }: Channel): boolean {
  if (recognisesResends) return uncertainCrashes >= RECOGNISED_CRASHES;
  return uncertainCuts >= UNCERTAIN_CUTS || uncertainCrashes >= UNCERTAIN_CRASHES;
}

/** What is to be taken back, if it can be seen at all. */
function isBlank({ text, file }: Part): boolean {
  return text === '' && file === undefined;
}
