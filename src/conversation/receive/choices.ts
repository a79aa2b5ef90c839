/** Step 1 of the route: choices among offered options, by a button or, where there are none, by a message with the number. */
import type { Offer, OfferedOption } from '../../core/access.js';
import { roomId } from '../../core/ids.js';
import type { InboundChoice, InboundMessage } from '../../core/message.js';
import type { ReceiptOf, ReceiptOrigin } from '../../core/receipt.js';
import { checkAccess } from '../access.js';
import { commandCalled } from '../commands/list.js';
import { numberIn } from '../commands/parse.js';
import { codeOf } from '../deliver/reply.js';
import { type Actor, rightsOf } from '../rights.js';
import type { Services } from '../services.js';
import { refusalOf } from './commands.js';
import type { BatchReading } from './reading.js';

/** A button was pressed. null if it is not theirs: people who may not talk here were offered nothing. */
export async function choiceReceipt(
  { services, batch: { channel }, now }: BatchReading,
  press: InboundChoice,
): Promise<ReceiptOf<'choice'> | null> {
  const { entry, chatId, senderId } = await checkAccess(services, channel, press);
  if (entry !== 'enter') return null;
  const { chat, platformMessageId, value } = press;
  const { name, administrator } = press.sender;
  const sender = { id: senderId, name, administrator };
  const [offer] = await services.store.offers({ key: value.replace(/\.\d+$/, '') }, now);
  const option = offer?.options[Number(/(?<!\d)\d+$/.exec(value)?.[0])];
  const actor = { chat: { ...chat, id: chatId }, channel, sender };
  if (offer && option && !(await mayTake(services, actor, offer, [option]))) return null;
  return { kind: 'choice', chat: { id: chatId, address: chat.address }, platformMessageId, sender, value };
}

/** The choice that a message makes, or the offers that it ends by being something else. null if nothing was offered. */
export async function chosenInWords(
  { services, batch: { channel }, now, ended }: BatchReading,
  message: InboundMessage,
  { chat, threadId, platformMessageId, dedupeKey, sender: by }: ReceiptOrigin,
): Promise<ReceiptOf<'choice'> | { endsOffers: string[] } | null> {
  const { id, name, administrator } = by;
  const sender = { id, name, administrator };
  const actor = { chat, channel, sender };
  const offers: Offer[] = [];
  for (const each of await services.store.offers({ room: roomId(chat.id, threadId), senderId: id }, now)) {
    if (!ended.has(each.key) && (await mayTake(services, actor, each, each.options))) offers.push(each);
  }
  const taken = takenOf(offers, message);
  if (taken === null) {
    const keys = offers.flatMap(({ key, senderId: forWhom }) => (forWhom === null ? [] : [key]));
    for (const key of keys) ended.add(key);
    return keys.length === 0 ? null : { endsOffers: keys };
  }
  ended.add(taken.offer.key);
  const value = `${taken.offer.key}.${taken.number - 1}`;
  const place = { id: chat.id, address: chat.address };
  const choice = { kind: 'choice' as const, chat: place, platformMessageId, sender, value };
  return dedupeKey === undefined ? choice : { ...choice, dedupeKey };
}

/** A number takes the newest personal offer; an offer to anybody also needs its code. A caption or a forward is no answer. */
function takenOf(
  offers: readonly Offer[],
  { text, mentionsBot, attachments = [], forwardedFrom }: InboundMessage,
): { offer: Offer; number: number } | null {
  if (attachments.length > 0 || forwardedFrom !== undefined) return null;
  const [, before = '', word = ''] = /^(.*\S)\s+(\S+)\s*$/s.exec(text) ?? [];
  const numbered = numberIn(before, mentionsBot);
  for (const offer of offers.filter(({ senderId }) => senderId === null)) {
    const option = numbered === null ? undefined : offer.options[numbered - 1];
    const code = option && codeOf(option);
    if (numbered !== null && code && code.toLowerCase() === word.toLowerCase()) {
      return { offer, number: numbered };
    }
  }
  const newest = offers.find(({ senderId }) => senderId !== null);
  const number = numberIn(text, mentionsBot);
  if (newest === undefined || number === null || newest.options[number - 1] === undefined) return null;
  return { offer: newest, number };
}

/** Only people with the right to an open offer's commands can take it, so that nobody else ends it. */
async function mayTake(
  services: Services,
  actor: Actor,
  { senderId, room }: Offer,
  options: OfferedOption[],
): Promise<boolean> {
  if (senderId !== null) return true;
  const rights = await rightsOf(services, actor);
  for (const { command } of options) {
    const found = command && commandCalled(command.name);
    if (found?.mayTake) return found.mayTake(services, { room, actor, rights });
    if (found && (await refusalOf(found, command.argument, actor.chat.kind, rights)) === null) return true;
  }
  return false;
}
