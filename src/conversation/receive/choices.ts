/**
 * Within step 1 of the route: what somebody chose of what they were offered: by a button, or, where there are none, by
 * a message that is its number.
 */
import type { Offer, OfferedOption } from '../../core/access.js';
import type { ChoiceOutcome } from '../../core/channel.js';
import { type ChatId, roomId } from '../../core/ids.js';
import type { InboundChoice, InboundMessage } from '../../core/message.js';
import type { ReceiptOf } from '../../core/receipt.js';
import { checkAccess } from '../access.js';
import { commandCalled } from '../commands/list.js';
import { numberIn } from '../commands/parse.js';
import { codeOf } from '../deliver/reply.js';
import { type Actor, rightsOf } from '../rights.js';
import type { Services } from '../services.js';
import { refusalOf } from './commands.js';

/** The keys of what was offered and is not any more. */
interface Ended {
  kind: 'ended';
  ends: string[];
}
type Chosen = ReceiptOf<'choice'>;

/** A button was pressed. Who may not talk here was offered nothing. */
export async function choiceReceipt(
  services: Services,
  channel: string,
  press: InboundChoice,
  now: number,
): Promise<Chosen | Extract<ChoiceOutcome, 'not yours'>> {
  const { entry, chatId, senderId } = await checkAccess(services, channel, press);
  if (entry !== 'enter') return 'not yours';
  const { chat, sender, platformMessageId, value } = press;
  const by = { id: senderId, name: sender.name, administrator: sender.administrator };
  const offer = await services.store.offer(value.replace(/\.\d+$/, ''), now);
  const option = offer?.options[Number(/(?<!\d)\d+$/.exec(value)?.[0])];
  const giver = { chat: { ...chat, id: chatId }, channel, sender: by };
  if (offer && option && !(await mayTake(services, giver, offer, [option]))) return 'not yours';
  return {
    kind: 'choice',
    chat: { id: chatId, address: chat.address },
    platformMessageId,
    sender: by,
    value,
  };
}

/**
 * Where there are no buttons: the choice that a message is, or the keys of what it ends by being something else, so that
 * a number later on is only a number. null where nothing was offered.
 */
export async function chosenInWords(
  services: Services,
  channel: string,
  message: InboundMessage,
  {
    chatId,
    senderId,
    now,
    ended,
  }: { chatId: ChatId; senderId: ChatId; now: number; ended: Set<number | string> },
): Promise<Chosen | Ended | null> {
  const { chat, threadId, platformMessageId, sender, twin } = message;
  const by = { id: senderId, name: sender.name, administrator: sender.administrator };
  const giver = { chat: { ...chat, id: chatId }, channel, sender: by };
  const offers: Offer[] = [];
  for (const each of await services.store.offers({ room: roomId(chatId, threadId), senderId, now })) {
    if (!ended.has(each.key) && (await mayTake(services, giver, each, each.options))) offers.push(each);
  }
  const taken = isAnswer(message) ? takenOf(offers, message) : null;
  if (taken === null) {
    const keys = offers.flatMap(({ key, senderId: forWhom }) => (forWhom === null ? [] : [key]));
    for (const key of keys) ended.add(key);
    return keys.length === 0 ? null : { kind: 'ended', ends: keys };
  }
  ended.add(taken.offer.key);
  const value = `${taken.offer.key}.${taken.number - 1}`;
  const where = { id: chatId, address: chat.address };
  const copies = twin === undefined ? {} : { twin };
  return { kind: 'choice', chat: where, platformMessageId, sender: by, value, ...copies };
}

/** The newest offer to oneself is taken by its number alone, one for whoever may only with its code. */
function takenOf(
  offers: readonly Offer[],
  { text, mentionsBot }: InboundMessage,
): { offer: Offer; number: number } | null {
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

/** What is for whoever may run the command can be taken only by them, so that nobody else ends it. */
async function mayTake(
  services: Services,
  giver: Actor,
  { senderId }: Offer,
  options: OfferedOption[],
): Promise<boolean> {
  if (senderId !== null) return true;
  const rights = await rightsOf(services, giver);
  for (const { command } of options) {
    const found = command === null ? undefined : commandCalled(command.name);
    if (command === null || found === undefined) continue;
    if ((await refusalOf(found, command, giver, rights)) === null) return true;
  }
  return false;
}

/** A picture with a number below it is no answer, nor is what somebody else has written. */
function isAnswer({ attachments = [], forwardedFrom }: InboundMessage): boolean {
  return attachments.length === 0 && forwardedFrom === undefined;
}
