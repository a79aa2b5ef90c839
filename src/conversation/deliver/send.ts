/**
 * Within step 7 of the route: what came of an attempt to send an entry of the outbox is stored, and decides whether it is
 * tried again.
 */
import type {
  Channel,
  Delivered,
  Delivery,
  Part,
  Recipient,
  SendOptions,
  SendResult,
} from '../../core/channel.js';
import { platformId } from '../../core/ids.js';
import type { Attempt } from '../../core/store.js';
import { linkChat } from '../access.js';
import { type BaseServices, type Deliver, leaseOf } from '../services.js';
import { type LiveReplies, toldOf } from './live.js';
import type { RateLimiter } from './rate-limiter.js';

export interface Sender extends BaseServices {
  showing: Pick<LiveReplies, 'forget'>;
  tellOwners: Deliver['tellOwners'];
  budgetOf(channel: string): RateLimiter | undefined;
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

function optionsOf({ cuttingOff }: Sender, entry: Delivery): SendOptions {
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
function noteFound(sender: Sender, delivery: Delivery, platformMessageId: string): Promise<boolean> {
  return note(sender, () => settle(sender, delivery, { kind: 'sent', platformMessageId }));
}

/** The outcome of a send is known: if storing it fails, only storing is repeated, never the send. */
async function note({ clock, log, cuttingOff }: Sender, what: () => Promise<boolean>): Promise<boolean> {
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
async function settle(sender: Sender, delivery: Delivery, result: SendResult): Promise<boolean> {
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

// Within step 7 of the route: sends one claimed entry of the outbox, or edits what is already shown of it.

/** Sent where something may be shown that is to go: the platform says what it has, and then that is removed. */
const IN_ITS_PLACE: Part = { text: '…', marks: [] };
const RETRY_MS = 5_000;

/** What an attempt begins with that sends something new. */
export function attemptOf(services: BaseServices, channel: Channel, to: Recipient): Attempt {
  return { ...leaseOf(services), mark: channel.watermark?.(to) ?? null };
}

/** Whether the entry is finished; false when it has to be tried again. */
export async function sendOne(sender: Sender, delivery: Delivery, channel: Channel): Promise<boolean> {
  const { shown } = delivery;
  if (delivery.body.reaction !== undefined) return reactTo(sender, delivery, delivery.body.reaction, channel);
  if (channel.edit && shown && shown.platformMessageId !== null) {
    return complete(sender, delivery, shown.platformMessageId, channel);
  }
  sender.showing.forget(delivery);
  const body = isBlank(delivery.body) ? IN_ITS_PLACE : delivery.body;
  const result = await channel.send(recipientOf(delivery), body, optionsOf(sender, delivery));
  // A platform that recognises resends may have returned an earlier message, whose text was not final yet. Elsewhere this
  // text was sent just now.
  if (channel.recognisesResends && channel.edit && shown && result.kind === 'sent') {
    return complete(sender, delivery, result.platformMessageId, channel);
  }
  return note(sender, () => settle(sender, delivery, result));
}

/** A reaction is no message, so it has no id that anybody could answer. */
async function reactTo(
  sender: Sender,
  delivery: Delivery,
  { platformMessageId, emoji }: NonNullable<Part['reaction']>,
  channel: Channel,
): Promise<boolean> {
  const options = optionsOf(sender, delivery);
  const result: SendResult = (await channel.react?.(
    recipientOf(delivery),
    platformMessageId,
    emoji,
    options,
  )) ?? {
    kind: 'refused',
    reason: `there are no reactions on ${channel.name}`,
  };
  // It can always be repeated.
  if (result.kind === 'unreachable') result.taken = 'no';
  const noted = result.kind === 'sent' ? { ...result, platformMessageId: '' } : result;
  return note(sender, () => settle(sender, delivery, noted));
}

/** Edits what is already shown to the final text. */
async function complete(
  sender: Sender,
  delivery: Delivery,
  platformMessageId: string,
  channel: Channel,
): Promise<boolean> {
  const { store, clock, log, showing } = sender;
  const { id, chatId, body } = delivery;
  showing.forget(delivery);
  const to = recipientOf(delivery);
  const options = optionsOf(sender, delivery);
  if (isBlank(body)) {
    await channel.remove?.(to, platformMessageId, options);
    await note(sender, async () => {
      await store.giveUp(id, 'dropped', 'taken back', clock.now());
      return true;
    });
    return true;
  }
  const result = await channel.edit?.(to, platformMessageId, body, options);
  if (result?.kind === 'refused') {
    log.info(
      { chat: chatId, delivery: id, reason: result.reason },
      'a shown reply could not be edited; it is sent again',
    );
    await sendAnew(sender, { ...delivery, shown: { platformMessageId, key: options.key } }, channel);
    return false;
  }
  // An edit is idempotent, so it can always be repeated.
  if (result?.kind === 'unreachable') result.taken = 'no';
  return result ? note(sender, () => settle(sender, delivery, result)) : false;
}

/**
 * Deletes this part and the shown parts after it, to send them again: otherwise the later ones would come before it. One
 * of which it is unknown whether it arrived is found first; while that is not possible, all of it waits.
 */
async function sendAnew(sender: Sender, delivery: Delivery, channel: Channel): Promise<void> {
  const { store, clock, showing } = sender;
  const entries = [delivery, ...(await store.shownAfter(delivery))];
  for (const entry of entries) {
    const there = await whatIsShown(sender, entry, channel);
    if (there === 'later') {
      const notBefore = clock.now() + RETRY_MS;
      const error = 'what is shown of it has to be found first';
      await note(sender, async () => {
        await store.retry(delivery.id, { notBefore, uncertain: false, error });
        return true;
      });
      return;
    }
    if (there !== null) await channel.remove?.(recipientOf(entry), there, optionsOf(sender, entry));
    showing.forget(entry);
  }
  await note(sender, async () => {
    await store.retract(
      entries.map(({ id }) => id),
      clock.now(),
    );
    return true;
  });
}

/** The id of the message that shows this entry; null if there is none, or nobody can tell. */
async function whatIsShown(
  sender: Sender,
  entry: Delivery,
  channel: Channel,
): Promise<string | null | 'later'> {
  const known = entry.shown?.platformMessageId ?? null;
  if (known !== null) return known;
  if (!canBeFound(entry, channel)) {
    const looked = await look(sender, entry, channel);
    if (looked.kind === 'later') return 'later';
    return looked.kind === 'found' ? looked.platformMessageId : null;
  }
  await waitForRoom(sender, entry, channel);
  if (sender.stopping.aborted) return 'later';
  const result = await channel.send(recipientOf(entry), IN_ITS_PLACE, optionsOf(sender, entry));
  if (result.kind === 'sent') return result.platformMessageId;
  return result.kind === 'refused' ? null : 'later';
}

/** An empty part: what was shown of it has to be removed. */
export function isBlank({ text, file, speech, reaction }: Part): boolean {
  return text === '' && file === undefined && speech === undefined && reaction === undefined;
}

/** Whether sending it again tells what may be shown of it already. */
export function canBeFound({ shown }: Delivery, channel: Channel): boolean {
  return shown !== undefined && channel.recognisesResends === true && channel.remove !== undefined;
}

// Within step 7 of the route: an entry whose last attempt has an unknown outcome is looked for on the platform before it is
// sent again, where the platform can be asked without anybody seeing it (docs/decisions/0026).

/** What this means for the entry. `stored`: nothing is to be sent now. */
export type Looked = 'arrived' | 'stored' | 'absent' | 'unknown';

const ASK_AGAIN_MS = 5_000;

/** Looks for the entry's message, and stores what follows from it. */
export async function lookFor(sender: Sender, delivery: Delivery, channel: Channel): Promise<Looked> {
  const { store, clock } = sender;
  const looked = await look(sender, delivery, channel);
  switch (looked.kind) {
    case 'later':
      return 'stored';
    case 'unknown':
      return 'unknown';
    case 'found':
      // If its text was not final, the next look at the entry edits it.
      if (delivery.shown) await store.found(delivery.id, looked.platformMessageId);
      else await noteFound(sender, delivery, looked.platformMessageId);
      return 'arrived';
    case 'absent':
      if (!delivery.shown) return 'absent';
      await store.retract([delivery.id], clock.now());
      return 'stored';
  }
}

/** Looks for the entry's message. `later`: what is needed to ask again is stored. */
async function look(sender: Sender, delivery: Delivery, channel: Channel): Promise<Delivered> {
  const { store, clock, log, metrics, stopping } = sender;
  const { id, chatId, body, mark: watermark } = delivery;
  // A reaction that is repeated changes nothing.
  if (!channel.wasDelivered || watermark === undefined || body.reaction !== undefined)
    return { kind: 'unknown' };
  let uncertain = 0;
  /** Each question takes as much of the rate limit as a message, and need not ask about what was heard meanwhile. */
  async function beforeAsking(): Promise<ReadonlySet<string> | null> {
    await waitForRoom(sender, delivery, channel);
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
    log.info(
      { chat: chatId, delivery: id, reason, inMs: retryAfterMs },
      'could not check whether a message was delivered; retrying',
    );
    const notBefore = clock.now() + retryAfterMs;
    await store.retry(id, { notBefore, uncertain: false, error: reason, mark: watermark });
    return found;
  }
  // Where another entry of this chat is uncertain, too, the message may be that one.
  const isAnybodys = found.kind === 'found' && uncertain > 1 && !delivery.shown;
  const answer: Delivered = isAnybodys ? { kind: 'unknown' } : found;
  metrics.count('uncertain_sends_total', { channel: channel.name, outcome: answer.kind });
  log.info(
    { chat: chatId, delivery: id, outcome: answer.kind },
    'checked whether an uncertain message was delivered',
  );
  return answer;
}
