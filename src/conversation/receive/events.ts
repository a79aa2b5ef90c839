/** Step 1 of the route: events of a platform that are no messages, as receipts. */

import { platformId } from '../../core/ids.js';
import type { InboundEvent, InboundMessage } from '../../core/message.js';
import type { Receipt } from '../../core/receipt.js';
import { checkAccess, identifyChat, identifyPerson, linkChat } from '../access.js';
import { isKnownChat } from '../rights.js';
import type { Services } from '../services.js';
import { choiceReceipt } from './choices.js';
import { type BatchReading, worded } from './reading.js';
import { splitReceipt } from './split.js';

type Event<Kind extends InboundEvent['kind']> = Extract<InboundEvent, { kind: Kind }>;

/** null for an event that stores nothing. */
export async function eventReceipt(
  services: Services,
  { batch: { channel }, now, refused }: BatchReading,
  event: Exclude<InboundEvent, InboundMessage>,
): Promise<Receipt | null> {
  switch (event.kind) {
    case 'edit':
      return editReceipt(services, channel, event);
    case 'deleted':
      return deletionReceipt(services, channel, event);
    case 'reaction':
      return reactionReceipt(services, channel, event, now);
    case 'choice': {
      const chosen = await choiceReceipt(services, channel, event, now);
      if (chosen === null) refused.push([event.platformMessageId, 'not yours']);
      return chosen;
    }
    case 'moved':
      return moveReceipt(services, channel, event);
    case 'apart':
      return splitReceipt(services, channel, event);
  }
}

/** Only people who may talk here may edit. */
async function editReceipt(
  services: Services,
  channel: string,
  edit: Event<'edit'>,
): Promise<Receipt | null> {
  const { entry, chatId, senderId } = await checkAccess(services, channel, edit);
  if (entry !== 'enter') return null;
  const { attachments = [], ...rest } = edit;
  const text = attachments.length > 0 && worded(services, edit.text, attachments);
  return { ...rest, ...text, chatId, senderId };
}

/** Deleting one's own message needs no permission: if it was not admitted, there is nothing to delete. */
async function deletionReceipt(
  services: Services,
  channel: string,
  { kind, chat, sender, platformMessageIds }: Event<'deleted'>,
): Promise<Receipt> {
  const { id: chatId } = await identifyChat(services, channel, chat);
  if (sender === undefined) return { kind, chatId, platformMessageIds };
  const { id: senderId } = await identifyPerson(services, channel, sender);
  return { kind, chatId, platformMessageIds, senderId };
}

/** A reaction asks for nothing, so a sender who may not talk is not told so. */
async function reactionReceipt(
  services: Services,
  channel: string,
  reaction: Event<'reaction'>,
  now: number,
): Promise<Receipt | null> {
  const { entry, chatId, senderId, isStranger } = await checkAccess(services, channel, reaction);
  if (entry !== 'enter') return null;
  const { kind, sender, platformMessageIds, sign, sentAt } = reaction;
  const by = { id: senderId, name: sender.name };
  const receipt = { kind, chatId, sender: by, platformMessageIds, sign, sentAt: sentAt || now };
  return isStranger ? { ...receipt, tainted: true } : receipt;
}

/** Nothing is stored for a chat that was not admitted. */
async function moveReceipt(
  services: Services,
  channel: string,
  event: Event<'moved'>,
): Promise<Receipt | null> {
  const { id: chatId } = await identifyChat(services, channel, { address: event.from });
  if (!(await isKnownChat(services, channel, chatId))) return null;
  await linkChat(services, chatId, platformId(channel, event.to));
  return { kind: 'moved', chatId, address: event.to };
}
