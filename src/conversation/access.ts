/**
 * Step 1 of the route: identifies chats and people, and decides who may talk. Both keep the id under which they were first known.
 * chat.yaml is the source of truth for a chat's ids; the store holds a copy for fast lookup.
 */
import type { AccessRules } from '../core/access.js';
import { type ChatId, platformId } from '../core/ids.js';
import type { Address, InboundChat, InboundSender } from '../core/message.js';
import type { BaseServices } from './services.js';

/** Approvals granted at run time (`coterie pair approve`). */
interface Approval {
  chat: boolean;
  sender: boolean;
  owner: boolean;
}

type AccessDecision =
  | 'enter'
  /** Unknown sender: offer a pairing code. */
  | 'pair'
  /** Unlisted group: tell the operator once if the bot was addressed there. */
  | 'unlisted'
  | 'stay-out';

/** Pure. A listing of any of the chat's ids counts, so access survives a group's migration. */
export function decideAccess(
  rules: AccessRules,
  chat: { kind: 'direct' | 'group'; chatIds: ChatId[]; senderId: ChatId },
  approval: Approval,
): AccessDecision {
  const listed = chat.chatIds.some((id) => rules.chats.includes(id) || rules.controlChats.includes(id));
  if (chat.kind === 'group') {
    if (rules.groups === 'closed') return 'stay-out';
    return rules.groups === 'open' || listed || approval.chat ? 'enter' : 'unlisted';
  }
  if (listed || isKnown(rules, chat.senderId, approval) || rules.direct === 'open') return 'enter';
  return rules.direct === 'pairing' ? 'pair' : 'stay-out';
}

/** Whether this person has access of their own, not only through a group. */
function isKnown(rules: AccessRules, senderId: ChatId, approval: Approval): boolean {
  return approval.sender || isOwner(rules, senderId, approval) || rules.chats.includes(senderId);
}

export function isOwner(rules: AccessRules, senderId: ChatId, approval: { owner: boolean }): boolean {
  return approval.owner || rules.owners.includes(senderId);
}

export interface AccessCheck {
  entry: AccessDecision;
  chatId: ChatId;
  senderId: ChatId;
  /** The person has access only through the group. */
  isStranger: boolean;
}

export async function checkAccess(
  services: BaseServices,
  channel: string,
  { chat, sender }: { chat: InboundChat; sender: InboundSender },
): Promise<AccessCheck> {
  const { store, rulesFor } = services;
  const { id: chatId, further: furtherChat } = await identifyChat(services, channel, chat);
  const { id: senderId, further: furtherSender } = await identifyPerson(services, channel, sender, {
    addresses: chat,
    id: chatId,
  });
  let entry: AccessDecision = 'enter';
  let isStranger = false;
  if (!sender.self || !isWithThemselves({ chat, sender })) {
    const rules = rulesFor(channel);
    // A message by the account's own holder in a direct chat is admitted if the other person is.
    const asWho = sender.self && chat.kind === 'direct' ? chatId : senderId;
    const approval = await store.approvalOf({ chatId, senderId: asWho });
    const chatIds = [chatId, platformId(channel, chat.address)];
    if (chat.otherAddress !== undefined) chatIds.push(platformId(channel, chat.otherAddress));
    if (chat.within !== undefined) {
      const whole = platformId(channel, chat.within);
      chatIds.push(whole);
      approval.chat ||= (await store.approvalOf({ chatId: whole, senderId: asWho })).chat;
    }
    entry = decideAccess(rules, { kind: chat.kind, chatIds, senderId: asWho }, approval);
    isStranger = chat.kind === 'group' && !sender.self && !isKnown(rules, senderId, approval);
  }
  if (entry === 'enter') {
    if (furtherChat !== null) await linkChat(services, chatId, furtherChat);
    // A person has no folder of their own before they have a chat.
    if (furtherSender !== null && senderId !== chatId) await store.addAlias(furtherSender, senderId);
  }
  return { entry, chatId, senderId, isStranger };
}

/** The account's holder, writing to themselves. */
export function isWithThemselves({ chat, sender }: { chat: InboundChat; sender: InboundSender }): boolean {
  const theirs = [sender.address, sender.otherAddress];
  const isTheirs = (one: Address | undefined) => one !== undefined && theirs.includes(one);
  return chat.kind === 'direct' && (isTheirs(chat.address) || isTheirs(chat.otherAddress));
}

/** Makes `further` an alias of the chat, in the store and in chat.yaml. */
export async function linkChat(
  { store, chatFiles, log }: BaseServices,
  chatId: ChatId,
  further: ChatId,
): Promise<void> {
  if (chatId === further) return;
  await store.addAlias(further, chatId);
  // The store's alias suffices; the one in the file matters only if the database is lost.
  await chatFiles
    .addAlias(chatId, further)
    .catch((error) => log.warn({ err: error, chat: chatId }, 'the new id could not be added to chat.yaml'));
  log.info({ chat: chatId, further }, 'a chat got a new id; it keeps its folder and its access');
}

interface Addresses {
  address: Address;
  otherAddress?: Address;
}

interface Identified {
  id: ChatId;
  /** Another id of the same chat or person that is not yet an alias of `id`; null if none. */
  further: ChatId | null;
}

/** Records no alias: access has not been decided yet. */
export async function identifyChat(
  services: BaseServices,
  channel: string,
  { address, otherAddress }: Addresses,
): Promise<Identified> {
  const { store } = services;
  const own = platformId(channel, address);
  const ids = otherAddress === undefined ? [own] : [own, platformId(channel, otherAddress)];
  const found = async (lookup: (id: ChatId) => Promise<ChatId | null>) => {
    for (const each of ids) {
      const known = await lookup(each);
      if (known !== null) return known;
    }
    return null;
  };
  const id =
    (await found(store.chatOf)) ??
    (await found((each) => inFolder(services, each))) ??
    // If a new person has two ids, the one that an operator has approved.
    (await found(async (each) =>
      (await store.approvalOf({ chatId: each, senderId: each })).sender ? each : null,
    )) ??
    own;
  for (const each of ids) {
    if (each !== id && (await store.aliasOf(each)) !== id) return { id, further: each };
  }
  return { id, further: null };
}

/** After the loss of a database, a chat unknown to the store may still have a folder that names this id. */
async function inFolder({ store, chatFiles, log }: BaseServices, id: ChatId): Promise<ChatId | null> {
  const found = await chatFiles.resolve(id).catch((error) => {
    log.warn({ err: error, chat: id }, 'groups/ could not be searched for a chat; it is treated as new');
    return null;
  });
  if (found === null || found === id) return null;
  await store.addAlias(id, found);
  return found;
}

/** Records no alias. Runs for every message: one in a direct chat whose id is the person's costs nothing here. */
export async function identifyPerson(
  services: BaseServices,
  channel: string,
  addresses: Addresses,
  chat: { addresses: Addresses; id: ChatId },
): Promise<Identified> {
  const { address, otherAddress } = chat.addresses;
  if (addresses.address === address && addresses.otherAddress === otherAddress)
    return { id: chat.id, further: null };
  if (addresses.otherAddress !== undefined) return identifyChat(services, channel, addresses);
  const own = platformId(channel, addresses.address);
  return { id: (await services.store.aliasOf(own)) ?? own, further: null };
}
