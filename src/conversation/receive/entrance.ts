/** Within step 1 of the route: identifies chat and sender and decides whether they may enter. */
import { type ChatId, platformId } from '../../core/ids.js';
import type { InboundChat, InboundSender } from '../../core/message.js';
import { decideEntry, type Entry, isKnown } from '../access.js';
import { identifyChat, identifyPerson, linkChat } from '../identity.js';
import type { Services } from '../services.js';

export interface Visitor {
  entry: Entry;
  chatId: ChatId;
  senderId: ChatId;
  /** Nobody has said of them that they may talk, only of the group. */
  isStranger: boolean;
}

export async function askAtTheDoor(
  services: Services,
  channel: string,
  who: { chat: InboundChat; sender: InboundSender },
): Promise<Visitor> {
  const chat = await identifyChat(services, channel, who.chat);
  const sender = await identifyPerson(services, channel, who.sender);
  const ids = { chatId: chat.id, senderId: sender.id };
  const { entry, isStranger } = await entryOf(services, channel, who, ids);
  if (entry === 'enter') {
    if (chat.further !== null) await linkChat(services, chat.id, chat.further);
    // A person has no folder of their own before they have a chat.
    if (sender.further !== null && sender.id !== chat.id) {
      await services.store.addAlias(sender.further, sender.id);
    }
  }
  return { entry, ...ids, isStranger };
}

async function entryOf(
  { store, rulesFor }: Services,
  channel: string,
  { chat, sender }: { chat: InboundChat; sender: InboundSender },
  { chatId, senderId }: { chatId: ChatId; senderId: ChatId },
): Promise<{ entry: Entry; isStranger: boolean }> {
  if (sender.self && isWithThemselves({ chat, sender })) return { entry: 'enter', isStranger: false };
  // What the account's owner writes in a direct chat is admitted if the other person is.
  const asWho = sender.self && chat.kind === 'direct' ? chatId : senderId;
  const standing = await store.approvalOf({ chatId, senderId: asWho });
  const chatIds = [chatId, platformId(channel, chat.address)];
  if (chat.otherAddress !== undefined) chatIds.push(platformId(channel, chat.otherAddress));
  if (chat.within !== undefined) {
    const whole = platformId(channel, chat.within);
    chatIds.push(whole);
    standing.chat ||= (await store.approvalOf({ chatId: whole, senderId: asWho })).chat;
  }
  const rules = rulesFor(channel);
  const entry = decideEntry(rules, { kind: chat.kind, chatIds, senderId: asWho }, standing);
  return { entry, isStranger: chat.kind === 'group' && !sender.self && !isKnown(rules, senderId, standing) };
}

/** The account's owner, in the chat with themselves. */
export function isWithThemselves({ chat, sender }: { chat: InboundChat; sender: InboundSender }): boolean {
  const theirs = [sender.address, sender.otherAddress];
  return (
    chat.kind === 'direct' && [chat.address, chat.otherAddress].some((one) => one && theirs.includes(one))
  );
}

/** Whether the chat exists already or may enter. */
export async function isKnownChat(services: Services, channel: string, chatId: ChatId): Promise<boolean> {
  if (await services.store.chat(chatId)) return true;
  const standing = await services.store.approvalOf({ chatId, senderId: chatId });
  const group = { kind: 'group' as const, chatIds: [chatId], senderId: chatId };
  return decideEntry(services.rulesFor(channel), group, standing) === 'enter';
}
