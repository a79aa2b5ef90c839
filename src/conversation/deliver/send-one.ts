/**
 * Within step 7 of the route: sends one claimed entry of the outbox, or edits what is already shown of it, and stores
 * the outcome.
 */
import type { Channel, Part, Recipient, SendOptions, SendResult } from '../../core/channel.js';
import type { Delivery } from '../../core/delivery.js';
import { platformId } from '../../core/ids.js';
import type { Attempt } from '../../core/route-store.js';
import { linkChat } from '../identity.js';
import { leaseOf, type Services } from '../services.js';
import type { News } from './news.js';
import { type Showing, toldOf } from './showing.js';

export interface Sender extends Pick<Services, 'store' | 'chatFiles' | 'clock' | 'log' | 'metrics'> {
  showing: Pick<Showing, 'forget'>;
  tellOwners: News;
  /** Aborted at shutdown, to cut off sends in flight. */
  cuttingOff: AbortSignal;
}

/** Sent where something may be shown that is to go: the platform says what it has, and then that is removed. */
const IN_ITS_PLACE: Part = { text: '…', marks: [] };
const FIRST_BACKOFF_MS = 1_000;
const LONGEST_BACKOFF_MS = 60_000;

/** What an attempt begins with that sends something new. */
export function attemptOf(
  services: Pick<Services, 'owner' | 'clock'>,
  channel: Channel,
  to: Recipient,
): Attempt {
  return { ...leaseOf(services), mark: channel.mark?.(to) ?? null };
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

/** The final text is already shown: only records it as sent. */
export async function noteShown(sender: Sender, delivery: Delivery): Promise<boolean> {
  sender.showing.forget(delivery);
  const platformMessageId = delivery.shown?.platformMessageId ?? '';
  return note(sender, () => settle(sender, delivery, { kind: 'sent', platformMessageId }));
}

/** It arrived with an earlier attempt: only records it as sent. */
export function noteFound(sender: Sender, delivery: Delivery, platformMessageId: string): Promise<boolean> {
  return note(sender, () => settle(sender, delivery, { kind: 'sent', platformMessageId }));
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
 * Deletes this part and the shown parts after it, to send them again: otherwise the later ones would come before it.
 */
async function sendAnew(sender: Sender, delivery: Delivery, channel: Channel): Promise<void> {
  const { store, clock, showing } = sender;
  const shown = [delivery, ...(await store.shownAfter(delivery))];
  for (const entry of shown) {
    const platformMessageId = entry.shown?.platformMessageId;
    if (platformMessageId)
      await channel.remove?.(recipientOf(entry), platformMessageId, optionsOf(sender, entry));
    showing.forget(entry);
  }
  await note(sender, async () => {
    await store.retract(
      shown.map(({ id }) => id),
      clock.now(),
    );
    return true;
  });
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
      await store.sent(id, result.platformMessageId, now);
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

export function recipientOf({ address, threadId, kind }: Delivery): Recipient {
  return { address, threadId, kind };
}

/** An empty part: what was shown of it has to be removed. */
export function isBlank({ text, file, speech, reaction }: Part): boolean {
  return text === '' && file === undefined && speech === undefined && reaction === undefined;
}

/** Whether sending it again tells what may be shown of it already. */
export function canBeFound({ shown }: Delivery, channel: Channel): boolean {
  return shown !== undefined && channel.recognisesResends === true && channel.remove !== undefined;
}
