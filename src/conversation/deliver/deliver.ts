/**
 * Step 7 of the route: sends the outbox, the only way out. Per chat in order, within the account's budget, with
 * retries; a sent entry is marked and never sent again. If it is unknown whether the platform accepted a message (the
 * connection broke after the request was written, or the process ended), it is looked for (`uncertain.ts`). Where nobody
 * can tell, it is sent once more and then given up; after a crash up to a few times, because losing it would be worse
 * (docs/decisions/0003). What was shown while it was written (`showing.ts`) is
 * edited to its final text here (docs/decisions/0015).
 */
import { setMaxListeners } from 'node:events';
import type { Channel, Delivery, Greeting, NewDelivery } from '../../core/channel.js';
import { createIdle } from '../../core/concurrency.js';
import { type ChatId, channelOf } from '../../core/ids.js';
import type { Notice } from '../../core/model.js';
import { ownerChats } from '../access.js';
import { type BaseServices, type Deliver, leaseOf, type Place } from '../services.js';
import { createLiveReplies } from './live.js';
import { gatewaySays, post, postLateNotice, reaction, sideMessage } from './post.js';
import { createRateLimiter } from './rate-limiter.js';
import {
  attemptOf,
  canBeFound,
  isBlank,
  type Looked,
  lookFor,
  noteShown,
  recipientOf,
  type Sender,
  sendOne,
  waitForRoom,
} from './send.js';
import { discardVoiceNote, withVoiceNote } from './voice.js';

/** The most attempts with an unknown outcome: after a broken connection, and after a crash. */
const UNCERTAIN_CUTS = 2;
const UNCERTAIN_CRASHES = 5;
/** The same where nothing is shown twice: the platform deduplicates resends, or says that none has arrived. */
const CERTAIN_CUTS = 5;
/** Only a message that keeps crashing the process has to be given up. */
const CERTAIN_CRASHES = 30;
const RETRY_MS = 1_000;
/** An immediate reply needs no typing indicator; platforms show one for about five seconds. */
const TYPING_AFTER_MS = 300;
const TYPING_EVERY_MS = 4_000;

export function createDeliver(services: BaseServices): Deliver {
  const { store, owner, channels, clock, log } = services;
  const budgets = new Map(
    [...channels.values()].map(({ name, limits }) => [name, createRateLimiter(limits)]),
  );
  const budgetOf = (channel: string) => budgets.get(channel);
  /** The chats whose lane is taken, and whether they were woken meanwhile. */
  const lanes = new Map<ChatId, { woken: boolean }>();
  const stopping = new AbortController();
  const cuttingOff = new AbortController();
  // Every waiting chat listens to these.
  const draining = new AbortController();
  setMaxListeners(0, stopping.signal, cuttingOff.signal, draining.signal);
  const idle = createIdle();
  const showing = createLiveReplies({
    ...services,
    budgetOf,
    takeLane,
    stopping: stopping.signal,
    cuttingOff: cuttingOff.signal,
    ended: idle.changed,
  });
  /** Notices that are told already, or that the log has and nobody else can be told of. */
  const told = new Set<string>();
  const logged = new Set<string>();
  const sender: Sender = {
    ...services,
    showing,
    tellOwners,
    budgetOf,
    stopping: stopping.signal,
    cuttingOff: cuttingOff.signal,
  };

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
    else void emptyLane(chatId, null);
  }

  async function emptyLane(
    chatId: ChatId,
    claimed: { delivery: Delivery; isLast: boolean } | null,
    taken?: () => void,
  ): Promise<void> {
    const channel = channels.get(channelOf(chatId));
    if (!channel || stopping.signal.aborted) return taken?.();
    const leave = taken ?? takeLane(chatId);
    if (leave === null) return;
    const lane = lanes.get(chatId);
    try {
      const isSent = claimed && (await attempt(() => sendClaimed(claimed.delivery, channel), chatId));
      const isAll = isSent === true && claimed?.isLast === true && lane?.woken === false;
      for (let more = !isAll; more && !stopping.signal.aborted; ) {
        // A wake from here on means an entry that has not been seen yet.
        if (lane) lane.woken = false;
        more = (await attempt(() => deliverNext(chatId, channel), chatId)) ?? true;
      }
    } finally {
      leave();
    }
  }

  /** Returns undefined after a failure; the caller tries again. */
  async function attempt<T>(work: () => Promise<T>, chatId: ChatId): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      log.error({ err: error, chat: chatId }, 'working on the outbox failed; it is tried again');
      await clock.sleep(RETRY_MS, stopping.signal);
      return undefined;
    }
  }

  /** Sends the chat's oldest undelivered entry. False when there is none, or none that may go now. */
  async function deliverNext(chatId: ChatId, channel: Channel): Promise<boolean> {
    const delivery = await store.nextDelivery(chatId, owner, clock.now());
    if (!delivery) return false;
    if (delivery.notBefore > clock.now()) {
      await clock.sleep(delivery.notBefore - clock.now(), draining.signal);
      // Meanwhile it may have been dropped, or words of it erased: it is read again.
      return !draining.signal.aborted || delivery.notBefore <= clock.now();
    }
    await showing.rest(delivery.origin);
    const { id } = delivery;
    const isSeen = delivery.shown !== undefined && delivery.shown.platformMessageId !== null;
    const looked = isSeen ? 'unknown' : await lookFor(sender, delivery, channel);
    if (looked === 'arrived') await discardVoiceNote(services, delivery);
    if (looked === 'arrived' || looked === 'stored') return true;
    if (isBlank(delivery.body) && !isSeen && !canBeFound(delivery, channel)) {
      await store.giveUp(id, 'dropped', 'the text is empty', clock.now());
      return true;
    }
    if (!isSeen && isGivenUp(delivery, channel, looked)) {
      log.warn(
        { chat: chatId, delivery: id },
        'it is unknown whether a message arrived; it is not sent again',
      );
      await store.giveUp(id, 'unconfirmed', 'uncertain too often', clock.now());
      await discardVoiceNote(services, delivery);
      return true;
    }
    if (isSeen && showing.isShown(delivery)) {
      await noteShown(sender, delivery);
      return true;
    }
    if (await postLateNotice(services, delivery)) return true;
    const ready = await withVoiceNote(services, delivery, draining.signal);
    if (ready === null) return !draining.signal.aborted;
    await waitForRoom(sender, delivery, channel);
    // The inbox must be on the disk before an answer leaves: after a power cut, a lost message would be answered again.
    await store.durable();
    const begun = isSeen ? leaseOf(services) : attemptOf(services, channel, recipientOf(delivery));
    const attempt = { ...begun, earlierTries: delivery.attempts };
    if (stopping.signal.aborted) return true;
    const isClaimed = await store.claimDelivery(id, attempt);
    // One that is not to be sent any more was dropped meanwhile.
    const isOver = !isClaimed || (await sendOne(sender, ready, channel));
    if (isOver) await discardVoiceNote(services, delivery);
    return true;
  }

  async function sendClaimed(delivery: Delivery, channel: Channel): Promise<boolean> {
    // It is looked for first.
    if (delivery.mark !== undefined) return false;
    if (delivery.shown) await showing.rest(delivery.origin);
    if (showing.isShown(delivery)) return noteShown(sender, delivery);
    // The inbox must be on the disk before an answer leaves.
    await store.durable();
    return sendOne(sender, delivery, channel);
  }

  async function postTo(to: Place, deliveries: NewDelivery[], greeting?: Greeting): Promise<boolean> {
    const isNew = await post(services, to, deliveries, greeting);
    wake(to.chat.id);
    return isNew;
  }

  async function tellOwners({ key, text }: Notice): Promise<void> {
    if (told.has(key)) return;
    try {
      if (!logged.has(key)) log.warn({ notice: key }, text);
      logged.add(key);
      const setting = `notice.${key}`;
      if ((await store.setting(setting)) === null) {
        const chats = await ownerChats(services);
        for (const chat of chats) await sayTo({ chat, threadId: null }, `news:${key}:${chat.id}`, text);
        // With no owner yet, it is told once there is one.
        if (chats.length === 0) return;
        await store.setSetting(setting, new Date(clock.now()).toISOString());
      }
      told.add(key);
    } catch (error) {
      log.error({ err: error, notice: key }, 'owners could not be notified');
    }
  }

  const sayTo: Deliver['say'] = (to, origin, text, replyTo) =>
    postTo(to, gatewaySays(services, to, origin, text, replyTo));

  const isIdle = () => lanes.size === 0 && showing.isIdle();

  return {
    wake,
    post: postTo,
    say: sayTo,
    async sideMessage(message) {
      const said = await sideMessage(services, message);
      if (said === null) return 'unknown chat';
      await postTo(said.to, said.deliveries);
      return 'posted';
    },
    async reaction(asked) {
      const said = await reaction(services, asked);
      if (said === null) return 'unknown message';
      await postTo(said.to, said.deliveries);
      return 'posted';
    },
    tellOwners,
    live: showing.live,

    take(chatId, kind, channel) {
      const budget = budgets.get(channel.name);
      if (stopping.signal.aborted || draining.signal.aborted || lanes.has(chatId)) return null;
      if (!budget?.takeLeftOver(chatId, kind, clock.now())) return null;
      const leave = takeLane(chatId);
      if (leave === null) return null;
      let isSending = false;
      return {
        send(delivery, parts) {
          isSending = true;
          // Further parts that were shown may have to be removed afterwards.
          const isLast = parts === 1 && delivery.shown === undefined;
          void emptyLane(chatId, { delivery, isLast }, leave);
        },
        leave: () => void (isSending || leave()),
      };
    },

    typing(channel, chatId, to, personaId) {
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
    },

    idle: (channel) =>
      idle.until(() => showing.isIdle(channel) && [...lanes.keys()].every((id) => channelOf(id) !== channel)),
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

/** Whether the entry was attempted too often with an unknown outcome. */
function isGivenUp({ uncertainCuts, uncertainCrashes }: Delivery, channel: Channel, looked: Looked): boolean {
  if (channel.recognisesResends) return uncertainCrashes >= CERTAIN_CRASHES;
  if (looked === 'absent') return uncertainCuts >= CERTAIN_CUTS || uncertainCrashes >= CERTAIN_CRASHES;
  return uncertainCuts >= UNCERTAIN_CUTS || uncertainCrashes >= UNCERTAIN_CRASHES;
}
