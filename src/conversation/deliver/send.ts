/** Step 7 of the route: one attempt at an outbox entry. Returns whether the entry is finished; otherwise it is retried. */
import type { Channel, Delivery, SendResult } from '../../core/channel.js';
import { optionsOf, recipientOf, repeatable, type Sender, settle } from './sender.js';
import { finishShown, isShown, restOf, sendShown } from './shown.js';

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

export async function sendOne(sender: Sender, delivery: Delivery, channel: Channel): Promise<boolean> {
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
