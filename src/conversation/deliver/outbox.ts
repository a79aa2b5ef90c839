/** Step 7 of the route: the entries of a chat's outbox, which may be early, late, uncertain, shown already or spoken. */

import type { Channel, Delivery, SendResult } from '../../core/channel.js';
import { leaseOf } from '../../core/clock.js';
import { postLateNotice } from './post.js';
import { attemptOf, optionsOf, recipientOf, repeatable, type Sender, settle, waitForSlot } from './sender.js';
import { finishShown, isBlank, isShown, restOf, sendShown, tellsOnResend } from './shown.js';
import { checkDelivered, isGivenUp } from './uncertain.js';
import { discardVoiceNote, withVoiceNote } from './voice.js';

/** Sends the chat's oldest undelivered entry. False if there is none, or none that may go now. */
export async function deliverNext(sender: Sender, chatId: string, channel: Channel): Promise<boolean> {
  const { store, owner, clock, storeNow, log, draining, stopping } = sender;
  const delivery = await store.nextDelivery(chatId, owner, clock.now());
  if (!delivery) return false;
  const { id, notBefore, origin, shown, body, attempts } = delivery;
  const early = notBefore - storeNow();
  if (early > 0) {
    await clock.sleep(early, draining);
    // Read the entry again: meanwhile it may have been dropped, or words of it erased.
    return !draining.aborted || notBefore <= storeNow();
  }
  await restOf(sender, origin);
  const isSeen = shown !== undefined && shown.platformMessageId !== null;
  const checked = isSeen ? 'unknown' : await checkDelivered(sender, delivery, channel);
  if (checked === 'arrived') await discardVoiceNote(sender, delivery);
  if (checked === 'arrived' || checked === 'stored') return true;
  if (isBlank(body) && !isSeen && !tellsOnResend(delivery, channel)) {
    await store.settle(id, { kind: 'dropped', reason: 'the text is empty' }, clock.now());
    return true;
  }
  if (!isSeen && isGivenUp(delivery, channel, checked === 'absent')) {
    log.warn({ chat: chatId, delivery: id }, 'delivery outcome unknown; not resending');
    await store.settle(id, { kind: 'unconfirmed', reason: 'uncertain too often' }, clock.now());
    await discardVoiceNote(sender, delivery);
    return true;
  }
  if (isSeen && isShown(sender, delivery)) {
    await finishShown(sender, delivery);
    return true;
  }
  if (await postLateNotice(sender, delivery)) return true;
  const ready = await withVoiceNote(sender, delivery, draining);
  if (ready === null) return !draining.aborted;
  await waitForSlot(sender, delivery);
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

/** Sends an entry that was claimed when it was stored. */
export async function sendClaimed(sender: Sender, delivery: Delivery, channel: Channel): Promise<boolean> {
  // The platform is asked first.
  if (delivery.mark !== undefined) return false;
  if (delivery.shown) {
    await restOf(sender, delivery.origin);
    if (isShown(sender, delivery)) return finishShown(sender, delivery);
  }
  // The inbox must be on disk before an answer leaves: after a power cut, a lost message would be answered again.
  await sender.store.durable();
  return sendOne(sender, delivery, channel);
}

async function sendOne(sender: Sender, claimed: Delivery, channel: Channel): Promise<boolean> {
  const delivery = { ...claimed, begunAt: sender.clock.now() };
  const { shown, body } = delivery;
  if (body.reaction !== undefined) return settle(sender, delivery, await react(sender, delivery, channel));
  if (shown) return sendShown(sender, delivery, shown, channel);
  return settle(
    sender,
    delivery,
    await channel.send(recipientOf(delivery), body, optionsOf(sender, delivery)),
  );
}

async function react(sender: Sender, delivery: Delivery, channel: Channel): Promise<SendResult> {
  const { platformMessageId = '', emoji = '' } = delivery.body.reaction ?? {};
  const result = await channel.react?.(
    recipientOf(delivery),
    platformMessageId,
    emoji,
    optionsOf(sender, delivery),
  );
  if (!result) return { kind: 'refused', reason: `there are no reactions on ${channel.name}` };
  // A reaction is not a message: it has no id to reply to.
  return result.kind === 'sent' ? { ...result, platformMessageId: '' } : repeatable(result);
}
