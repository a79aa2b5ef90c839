/** Step 7 of the route: sends the outbox in order per chat, within rate limits, with retries (docs/decisions/0003). */
import { setMaxListeners } from 'node:events';
import type { Delivery, Greeting, NewDelivery } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { createIdle } from '../../core/concurrency.js';
import { type ChatId, channelOf } from '../../core/ids.js';
import type { BaseServices, ChatPlace, Deliver } from '../services.js';
import { createLiveReplies } from './live.js';
import { deliverNext, sendClaimed } from './outbox.js';
import { createOwnerNotices, gatewaySays, post, reaction, sideMessage } from './post.js';
import { createRateLimiter } from './rate-limiter.js';
import type { Sender } from './sender.js';

const RETRY_MS = 1_000;
/** An immediate reply needs no typing indicator; platforms show one for about five seconds. */
const TYPING_AFTER_MS = 300;
const TYPING_EVERY_MS = 4_000;

export function createDeliver(services: BaseServices): Deliver {
  const { channels, mine, clock, log } = services;
  const limiters = new Map(
    [...channels.values()].map(({ name, limits }) => [name, createRateLimiter(limits)]),
  );
  /** The chats whose lane is taken, and whether they were woken meanwhile. */
  const lanes = new Map<ChatId, { woken: boolean }>();
  const stopping = new AbortController();
  const cuttingOff = new AbortController();
  const draining = new AbortController();
  // Every waiting chat listens to these.
  setMaxListeners(0, stopping.signal, cuttingOff.signal, draining.signal);
  const idle = createIdle();
  const sender: Sender = {
    ...services,
    tellOwners: createOwnerNotices(services, say),
    storeNow: services.storeNow ?? clock.now,
    limiters,
    takeLane,
    changes: new Map(),
    shown: new Map(),
    changeEnded: idle.changed,
    draining: draining.signal,
    stopping: stopping.signal,
    cuttingOff: cuttingOff.signal,
  };
  const isIdle = () => lanes.size === 0 && sender.changes.size === 0;

  /** One lane per chat keeps its messages in order. */
  function takeLane(chatId: ChatId): (() => void) | null {
    if (lanes.has(chatId)) return null;
    const lane = { woken: false };
    lanes.set(chatId, lane);
    return () => {
      if (lanes.get(chatId) !== lane) return;
      lanes.delete(chatId);
      if (lane.woken) wake(chatId);
      idle.changed();
    };
  }

  function wake(chatId: ChatId): void {
    const lane = lanes.get(chatId);
    if (lane) lane.woken = true;
    else void emptyLane(chatId, null, takeLane(chatId));
  }

  /** `claimed`: sent first. */
  async function emptyLane(
    chatId: ChatId,
    claimed: { delivery: Delivery; isLast: boolean } | null,
    leave: (() => void) | null,
  ): Promise<void> {
    const channel = mine.has(channelOf(chatId)) ? channels.get(channelOf(chatId)) : undefined;
    const lane = lanes.get(chatId);
    try {
      if (!channel || stopping.signal.aborted) return;
      const isSent = claimed && (await attempt(() => sendClaimed(sender, claimed.delivery, channel), chatId));
      const isAll = isSent === true && claimed?.isLast === true && lane?.woken === false;
      for (let more = !isAll; more && !stopping.signal.aborted; ) {
        // A wake from here on means an entry that has not been seen yet.
        if (lane) lane.woken = false;
        more = (await attempt(() => deliverNext(sender, chatId, channel), chatId)) ?? true;
      }
    } finally {
      leave?.();
    }
  }

  /** Returns undefined after a failure; the caller tries again. */
  async function attempt<T>(work: () => Promise<T>, chatId: ChatId): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      log.error({ err: error, chat: chatId }, 'outbox worker failed; retrying');
      await clock.sleep(RETRY_MS, stopping.signal);
      return undefined;
    }
  }

  async function postTo(to: ChatPlace, deliveries: NewDelivery[], greeting?: Greeting): Promise<boolean> {
    const isNew = await post(services, to, deliveries, greeting);
    wake(to.chat.id);
    return isNew;
  }

  function say(to: ChatPlace, origin: string, text: string, replyTo: string | null = null): Promise<boolean> {
    return postTo(to, gatewaySays(services, to, origin, text, replyTo));
  }

  return {
    wake,
    post: postTo,
    say,
    async sideMessage(message) {
      const said = await sideMessage(services, message);
      if (said) await postTo(said.to, said.deliveries);
      return said ? 'posted' : 'unknown chat';
    },
    async reaction(asked) {
      const said = await reaction(services, asked);
      if (said) await postTo(said.to, said.deliveries);
      return said ? 'posted' : 'unknown message';
    },
    tellOwners: sender.tellOwners,
    live: createLiveReplies(sender),
    take(chatId, kind, channel) {
      if (stopping.signal.aborted || draining.signal.aborted || lanes.has(chatId)) return null;
      if (!limiters.get(channel.name)?.takeLeftOver(chatId, kind, clock.now())) return null;
      const leave = takeLane(chatId);
      let isSending = false;
      return {
        send(delivery, parts) {
          isSending = true;
          // Further parts that were shown may have to be removed afterwards.
          const isLast = parts === 1 && delivery.shown === undefined;
          void emptyLane(chatId, { delivery, isLast }, leave);
        },
        leave: () => void (isSending || leave?.()),
      };
    },
    typing(channel, chatId, to, personaId) {
      const mayShow = () => limiters.get(channel.name)?.takeLeftOver(chatId, to.kind, clock.now()) === true;
      return keepTyping(clock, () => channel.setTyping?.(to, personaId), mayShow);
    },
    idle(channel) {
      const isElsewhere = (each: { channel: string }) => each.channel !== channel;
      return idle.until(
        () =>
          [...sender.changes.values()].every(isElsewhere) &&
          [...lanes.keys()].every((id) => channelOf(id) !== channel),
      );
    },
    drain() {
      draining.abort();
      return idle.until(isIdle);
    },
    stop() {
      draining.abort();
      stopping.abort();
      return { done: idle.until(isIdle), force: () => cuttingOff.abort() };
    },
  };
}

function keepTyping(clock: Clock, show: () => Promise<void> | undefined, mayShow: () => boolean): () => void {
  let over = false;
  let cancel = clock.after(TYPING_AFTER_MS, showAgain);
  async function showAgain(): Promise<void> {
    if (mayShow()) await show();
    if (!over) cancel = clock.after(TYPING_EVERY_MS, showAgain);
  }
  return () => {
    over = true;
    cancel();
  };
}
