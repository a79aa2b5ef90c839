/** Step 7 of the route: sends or edits one outbox entry, and stores the outcome, which decides about a retry. */
import type {
  Channel,
  Delivered,
  Delivery,
  Part,
  Recipient,
  SendOptions,
  SendResult,
} from '../../core/channel.js';
import { type ChatId, platformId } from '../../core/ids.js';
import { backoff } from '../../core/retry.js';
import type { Attempt } from '../../core/store.js';
import { linkChat } from '../access.js';
import { type BaseServices, type Deliver, leaseOf } from '../services.js';
import { type LiveReplies, speakerOptions } from './live.js';
import { postLateNotice } from './post.js';
import type { RateLimiter } from './rate-limiter.js';
import { discardVoiceNote, withVoiceNote } from './voice.js';

export interface OutboxSender extends BaseServices {
  live: LiveReplies;
  tellOwners: Deliver['tellOwners'];
  limiterOf(channel: string): RateLimiter | undefined;
  /** Aborted when nothing is to be waited for any more. */
  draining: AbortSignal;
  /** Aborted when nothing more is to be sent. */
  stopping: AbortSignal;
  /** Aborted at shutdown, to cut off sends in flight. */
  cuttingOff: AbortSignal;
}

/** Maximum attempts with an unknown outcome, after a broken connection and after a crash. */
const UNCERTAIN_CUTS = 2;
const UNCERTAIN_CRASHES = 5;
/** The same if nothing is shown twice: the platform deduplicates resends, or says that none has arrived. */
const CERTAIN_CUTS = 5;
/** Only a message that keeps crashing the process has to be given up. */
const CERTAIN_CRASHES = 30;
const FIRST_BACKOFF_MS = 1_000;
const LONGEST_BACKOFF_MS = 60_000;
const ASK_AGAIN_MS = 5_000;
/** Sent if an unwanted message may be shown: the platform returns the existing one, which is then removed. */
const PLACEHOLDER: Part = { text: '…', marks: [] };

/** Sends the chat's oldest undelivered entry. False if there is none, or none that may go now. */
export async function deliverNext(sender: OutboxSender, chatId: ChatId, channel: Channel): Promise<boolean> {
  const { store, owner, clock, log, live, draining, stopping } = sender;
  const delivery = await store.nextDelivery(chatId, owner, clock.now());
  if (!delivery) return false;
  const { id, notBefore, origin, shown, body, attempts } = delivery;
  if (notBefore > clock.now()) {
    await clock.sleep(notBefore - clock.now(), draining);
    // Read the entry again: meanwhile it may have been dropped, or words of it erased.
    return !draining.aborted || notBefore <= clock.now();
  }
  await live.rest(origin);
  const isSeen = shown !== undefined && shown.platformMessageId !== null;
  const checked = isSeen ? 'unknown' : await checkDelivered(sender, delivery, channel);
  if (checked === 'arrived') await discardVoiceNote(sender, delivery);
  if (checked === 'arrived' || checked === 'stored') return true;
  if (isBlank(body) && !isSeen && !tellsOnResend(delivery, channel)) {
    await store.giveUp(id, 'dropped', 'the text is empty', clock.now());
    return true;
  }
  if (!isSeen && isGivenUp(delivery, channel, checked === 'absent')) {
    log.warn({ chat: chatId, delivery: id }, 'delivery outcome unknown; not resending');
    await store.giveUp(id, 'unconfirmed', 'uncertain too often', clock.now());
    await discardVoiceNote(sender, delivery);
    return true;
  }
  if (isSeen && live.isShown(delivery)) {
    await markShownAsSent(sender, delivery);
    return true;
  }
  if (await postLateNotice(sender, delivery)) return true;
  const ready = await withVoiceNote(sender, delivery, draining);
  if (ready === null) return !draining.aborted;
  await waitForSlot(sender, delivery, channel);
  // The inbox must be on disk before an answer leaves: after a power cut, a lost message would be answered again.
  await store.durable();
  const begun = isSeen ? leaseOf(sender) : attemptOf(sender, channel, recipientOf(delivery));
  if (stopping.aborted) return true;
  const isClaimed = await store.claimDelivery(id, { ...begun, earlierTries: attempts });
  // An entry that could not be claimed was dropped meanwhile.
  const isOver = !isClaimed || (await sendOne(sender, ready, channel));
  if (isOver) await discardVoiceNote(sender, delivery);
  return true;
}

/** Sends an entry that was claimed when it was stored. False if it has to be retried. */
export async function sendClaimed(
  sender: OutboxSender,
  delivery: Delivery,
  channel: Channel,
): Promise<boolean> {
  // The platform is asked first.
  if (delivery.mark !== undefined) return false;
  if (delivery.shown) await sender.live.rest(delivery.origin);
  if (sender.live.isShown(delivery)) return markShownAsSent(sender, delivery);
  // The inbox must be on disk before an answer leaves.
  await sender.store.durable();
  return sendOne(sender, delivery, channel);
}

/** The start of an attempt that sends something new. */
export function attemptOf(services: BaseServices, channel: Channel, to: Recipient): Attempt {
  return { ...leaseOf(services), mark: channel.watermark?.(to) ?? null };
}

/** Whether the entry was attempted too often with an unknown outcome. */
function isGivenUp(
  { uncertainCuts, uncertainCrashes }: Delivery,
  channel: Channel,
  isAbsent: boolean,
): boolean {
  if (channel.recognisesResends) return uncertainCrashes >= CERTAIN_CRASHES;
  if (isAbsent) return uncertainCuts >= CERTAIN_CUTS || uncertainCrashes >= CERTAIN_CRASHES;
  return uncertainCuts >= UNCERTAIN_CUTS || uncertainCrashes >= UNCERTAIN_CRASHES;
}

/** Waits until the rate limit allows one more message in this chat. */
async function waitForSlot(
  sender: OutboxSender,
  { chatId, kind }: Delivery,
  { name }: Channel,
): Promise<void> {
  const { limiterOf, clock, stopping } = sender;
  const limiter = limiterOf(name);
  if (!limiter) return;
  await clock.sleep(limiter.reserveChat(chatId, kind, clock.now()), stopping);
  await clock.sleep(limiter.reserveAccount(clock.now()), stopping);
}

function recipientOf({ address, threadId, kind }: Delivery): Recipient {
  return { address, threadId, kind };
}

function optionsOf({ cuttingOff }: OutboxSender, entry: Delivery): SendOptions {
  return {
    ...speakerOptions(entry),
    key: entry.shown?.key ?? String(entry.id),
    earlierTries: entry.attempts,
    createdAt: entry.createdAt,
    replyTo: entry.replyTo,
    signal: cuttingOff,
  };
}

/** Whether the entry is finished; false if it has to be retried. */
async function sendOne(sender: OutboxSender, delivery: Delivery, channel: Channel): Promise<boolean> {
  const { shown, body } = delivery;
  const to = recipientOf(delivery);
  const options = optionsOf(sender, delivery);
  if (body.reaction !== undefined) {
    const { platformMessageId, emoji } = body.reaction;
    const reason = `there are no reactions on ${channel.name}`;
    const result = (await channel.react?.(to, platformMessageId, emoji, options)) ?? {
      kind: 'refused',
      reason,
    };
    // A reaction is not a message: it has no id to reply to.
    const isSent = result.kind === 'sent';
    return settle(sender, delivery, isSent ? { ...result, platformMessageId: '' } : repeatable(result));
  }
  if (channel.edit && shown && shown.platformMessageId !== null) {
    return complete(sender, delivery, shown.platformMessageId, channel);
  }
  sender.live.forget(delivery);
  const result = await channel.send(to, isBlank(body) ? PLACEHOLDER : body, options);
  // A platform that recognises resends may have returned an earlier message, with an unfinished text.
  if (channel.recognisesResends && channel.edit && shown && result.kind === 'sent') {
    return complete(sender, delivery, result.platformMessageId, channel);
  }
  return settle(sender, delivery, result);
}

/** The result of a change that can always be repeated. */
function repeatable(result: SendResult): SendResult {
  return result.kind === 'unreachable' ? { ...result, taken: 'no' } : result;
}

/** Edits the shown message to the final text. */
async function complete(
  sender: OutboxSender,
  delivery: Delivery,
  platformMessageId: string,
  channel: Channel,
): Promise<boolean> {
  const { store, clock, log, live } = sender;
  const { id, chatId, body } = delivery;
  live.forget(delivery);
  const to = recipientOf(delivery);
  const options = optionsOf(sender, delivery);
  if (isBlank(body)) {
    await channel.remove?.(to, platformMessageId, options);
    return insist(sender, () => store.giveUp(id, 'dropped', 'taken back', clock.now()));
  }
  const result = await channel.edit?.(to, platformMessageId, body, options);
  if (result?.kind === 'refused') {
    const fields = { chat: chatId, delivery: id, reason: result.reason };
    log.info(fields, 'a shown reply could not be edited; sending it again');
    await sendAnew(sender, { ...delivery, shown: { platformMessageId, key: options.key } }, channel);
    return false;
  }
  return result ? settle(sender, delivery, repeatable(result)) : false;
}

/** Deletes this part and later shown ones, to resend them in order; first, possibly shown parts must be found. */
async function sendAnew(sender: OutboxSender, delivery: Delivery, channel: Channel): Promise<void> {
  const { store, clock, live } = sender;
  const entries = [delivery, ...(await store.shownAfter(delivery))];
  for (const entry of entries) {
    const there = await findShown(sender, entry, channel);
    if (there === 'later') {
      const error = 'what is shown of it has to be found first';
      const retry = { notBefore: clock.now() + ASK_AGAIN_MS, uncertain: false, error };
      await insist(sender, () => store.retry(delivery.id, retry));
      return;
    }
    if (there !== null) await channel.remove?.(recipientOf(entry), there, optionsOf(sender, entry));
    live.forget(entry);
  }
  const ids = entries.map(({ id }) => id);
  await insist(sender, () => store.retract(ids, clock.now()));
}

/** The id of the message that shows this entry; null if there is none, or it cannot be determined. */
async function findShown(
  sender: OutboxSender,
  entry: Delivery,
  channel: Channel,
): Promise<string | null | 'later'> {
  const known = entry.shown?.platformMessageId ?? null;
  if (known !== null) return known;
  if (!tellsOnResend(entry, channel)) {
    const asked = await askPlatform(sender, entry, channel);
    if (asked.kind === 'later') return 'later';
    return asked.kind === 'found' ? asked.platformMessageId : null;
  }
  await waitForSlot(sender, entry, channel);
  if (sender.stopping.aborted) return 'later';
  const result = await channel.send(recipientOf(entry), PLACEHOLDER, optionsOf(sender, entry));
  if (result.kind === 'sent') return result.platformMessageId;
  return result.kind === 'refused' ? null : 'later';
}

/** An empty part: a message shown for it has to be removed. */
function isBlank({ text, file, speech, reaction }: Part): boolean {
  return text === '' && file === undefined && speech === undefined && reaction === undefined;
}

/** Whether resending it returns the message that may be shown already. */
function tellsOnResend({ shown }: Delivery, channel: Channel): boolean {
  return shown !== undefined && channel.recognisesResends === true && channel.remove !== undefined;
}

/**
 * Asks the platform, where that is possible unseen, whether an entry with an unknown outcome has arrived (docs/decisions/0026), and
 * stores the result. `stored`: nothing is to be sent now.
 */
async function checkDelivered(
  sender: OutboxSender,
  delivery: Delivery,
  channel: Channel,
): Promise<'arrived' | 'stored' | 'absent' | 'unknown'> {
  const { store, clock } = sender;
  const asked = await askPlatform(sender, delivery, channel);
  switch (asked.kind) {
    case 'later':
      return 'stored';
    case 'unknown':
      return 'unknown';
    case 'found': {
      const { platformMessageId } = asked;
      // If its text was not final, the next look at the entry edits it.
      if (delivery.shown) await store.found(delivery.id, platformMessageId);
      else await settle(sender, delivery, { kind: 'sent', platformMessageId });
      return 'arrived';
    }
    case 'absent':
      if (!delivery.shown) return 'absent';
      await store.retract([delivery.id], clock.now());
      return 'stored';
  }
}

/** `later`: the retry is stored. */
async function askPlatform(sender: OutboxSender, delivery: Delivery, channel: Channel): Promise<Delivered> {
  const { store, clock, log, metrics, stopping } = sender;
  const { id, chatId, body, mark: watermark } = delivery;
  // Repeating a reaction changes nothing.
  if (!channel.wasDelivered || watermark === undefined || body.reaction !== undefined)
    return { kind: 'unknown' };
  let uncertain = 0;
  /** Each question costs as much of the rate limit as a message, and need not ask about messages heard meanwhile. */
  async function beforeAsking(): Promise<ReadonlySet<string> | null> {
    await waitForSlot(sender, delivery, channel);
    if (stopping.aborted) return null;
    const recorded = await store.recordedIn(chatId);
    uncertain = recorded.uncertain;
    return recorded.ids;
  }
  const search = { watermark, beforeAsking };
  const found = await channel.wasDelivered(recipientOf(delivery), body, optionsOf(sender, delivery), search);
  if (found.kind === 'later') {
    if (stopping.aborted) return found;
    const { reason, retryAfterMs = ASK_AGAIN_MS } = found;
    const fields = { chat: chatId, delivery: id, reason, inMs: retryAfterMs };
    log.info(fields, 'could not check whether a message was delivered; retrying');
    const notBefore = clock.now() + retryAfterMs;
    await store.retry(id, { notBefore, uncertain: false, error: reason, mark: watermark });
    return found;
  }
  // If another entry of this chat is uncertain too, the message may be that one.
  const isAnybodys = found.kind === 'found' && uncertain > 1 && !delivery.shown;
  const answer: Delivered = isAnybodys ? { kind: 'unknown' } : found;
  metrics.count('uncertain_sends_total', { channel: channel.name, outcome: answer.kind });
  const fields = { chat: chatId, delivery: id, outcome: answer.kind };
  log.info(fields, 'checked whether an uncertain message was delivered');
  return answer;
}

/** The final text is already shown. */
function markShownAsSent(sender: OutboxSender, delivery: Delivery): Promise<boolean> {
  sender.live.forget(delivery);
  return settle(sender, delivery, {
    kind: 'sent',
    platformMessageId: delivery.shown?.platformMessageId ?? '',
  });
}

/** Stores the known outcome of a send. If storing fails, only storing is retried, never the send. False if cut off. */
async function insist(
  { clock, log, cuttingOff }: OutboxSender,
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

/** Stores the outcome. Returns whether the entry is finished. */
async function settle(sender: OutboxSender, delivery: Delivery, result: SendResult): Promise<boolean> {
  const { store, clock, log, metrics, cuttingOff } = sender;
  const { id, chatId, channel, createdAt, attempts } = delivery;
  const now = clock.now();
  metrics.count('deliveries_total', { channel, outcome: result.kind });
  switch (result.kind) {
    case 'sent':
      metrics.observe('delivery_wait_seconds', (now - createdAt) / 1000);
      return insist(sender, () => store.markSent(id, result.platformMessageId, now));
    case 'refused': {
      const fields = { chat: chatId, delivery: id, reason: result.reason };
      log.warn(fields, 'the platform permanently rejected a message; not retrying');
      return insist(sender, () => store.giveUp(id, 'refused', result.reason, now));
    }
    case 'moved':
      await insist(sender, async () => {
        await store.moveChat(chatId, result.address);
        await linkChat(sender, chatId, platformId(channel, result.address));
        await store.retry(id, { notBefore: now, uncertain: false, error: 'the chat moved' });
      });
      return false;
    case 'unreachable': {
      const { reason, taken, retryAfterMs, notice } = result;
      // Cut off by our own shutdown: the entry stays marked as being sent, and the next start counts it as uncertain.
      if (cuttingOff.aborted && taken === 'unknown') return false;
      const pause = retryAfterMs ?? backoff(attempts + 1, FIRST_BACKOFF_MS, LONGEST_BACKOFF_MS);
      log.warn({ chat: chatId, delivery: id, reason, inMs: pause }, 'a message could not be sent; retrying');
      const retry = { notBefore: now + pause, uncertain: taken === 'unknown', error: reason };
      await insist(sender, () => store.retry(id, retry));
      if (notice) await sender.tellOwners(notice);
      return false;
    }
  }
}
