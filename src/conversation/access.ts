/**
 * Step 1 of the route: identifies chats and people, and decides who may talk. Messages from others are neither stored
 * nor shown to a model. A chat or person keeps the id under which it was first known, whatever its platform address is
 * now; chat.yaml is the source of truth, and the store holds a copy for fast lookup.
 */
import type { AccessRules } from '../core/access.js';
import type { ChatRecord } from '../core/chat-record.js';
import { type ChatId, platformId } from '../core/ids.js';
import type { JobAccess } from '../core/jobs.js';
import type { Address, InboundChat, InboundSender } from '../core/message.js';
import type { Store } from '../core/store.js';
import type { BaseServices } from './services.js';

/** Approvals granted at run time (`coterie pair approve`). */
interface Approval {
  chat: boolean;
  sender: boolean;
  owner: boolean;
}

export type AccessDecision =
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

/** Identifies chat and sender, and checks their access. */
export async function checkAccess(
  services: BaseServices,
  channel: string,
  { chat, sender }: { chat: InboundChat; sender: InboundSender },
): Promise<AccessCheck> {
  const { store, rulesFor } = services;
  const { id: chatId, further: furtherChat } = await identifyChat(services, channel, chat);
  const { id: senderId, further: furtherSender } = await identifyPerson(services, channel, sender);
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

/** Whether the chat exists or would be admitted. */
export async function isKnownChat(
  { store, rulesFor }: BaseServices,
  channel: string,
  chatId: ChatId,
): Promise<boolean> {
  if (await store.chat(chatId)) return true;
  const approval = await store.approvalOf({ chatId, senderId: chatId });
  const group = { kind: 'group' as const, chatIds: [chatId], senderId: chatId };
  return decideAccess(rulesFor(channel), group, approval) === 'enter';
}

/** Whether the creator of a job still has access where it was created, judged by ids alone. */
export function createJobAccess({
  store,
  rulesFor,
}: {
  store: Store;
  rulesFor: BaseServices['rulesFor'];
}): JobAccess {
  return {
    async admits({ chatId, senderId }) {
      const chat = await store.chat(chatId);
      if (chat === null) return false;
      const who = senderId || chatId;
      const approval = await store.approvalOf({ chatId, senderId: who });
      const chatIds = [chatId, platformId(chat.channel, chat.address)];
      const asked = { kind: chat.kind, chatIds, senderId: who };
      return decideAccess(rulesFor(chat.channel), asked, approval) === 'enter';
    },
  };
}

/** Where owners are notified: the control chats, or their own chats if there are none. */
export async function ownerChats({ store, channels, rulesFor }: BaseServices): Promise<ChatRecord[]> {
  const rules = [...channels.keys()].map(rulesFor);
  const isHere = (chat: ChatRecord | null) => chat !== null && channels.has(chat.channel);
  const control = new Set(rules.flatMap(({ controlChats }) => controlChats));
  const found = await Promise.all([...control].map((id) => store.chat(id)));
  const there = found.filter((chat) => isHere(chat)).flatMap((chat) => chat ?? []);
  if (there.length > 0) return there;
  const owners = new Set(rules.flatMap(({ owners: listed }) => listed));
  return (await store.ownerChats([...owners])).filter(isHere);
}

interface Identified {
  id: ChatId;
  /** Another id of the same chat or person that is not yet an alias of `id`; null if none. */
  further: ChatId | null;
}

interface Addresses {
  address: Address;
  otherAddress?: Address;
}

/** Records no alias, because access has not been decided yet. */
export function identifyChat(
  services: BaseServices,
  channel: string,
  addresses: Addresses,
): Promise<Identified> {
  return identify(services, channel, addresses, EVERYWHERE);
}

/** Records no alias. */
export function identifyPerson(
  services: BaseServices,
  channel: string,
  addresses: Addresses,
): Promise<Identified> {
  // Runs for every message: a person with one address costs only one alias lookup.
  const lookups = addresses.otherAddress === undefined ? [asAlias] : EVERYWHERE;
  return identify(services, channel, addresses, lookups);
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

type Lookup = (services: BaseServices, id: ChatId) => Promise<ChatId | null>;

const asAlias: Lookup = ({ store }, id) => store.aliasOf(id);

const inStore: Lookup = async ({ store }, id) =>
  (await store.aliasOf(id)) ?? ((await store.chat(id)) ? id : null);

/** After the loss of a database, a chat unknown to the store may still have a folder that names this id. */
const inFolder: Lookup = async ({ store, chatFiles, log }, id) => {
  const found = await chatFiles.resolve(id).catch((error) => {
    log.warn({ err: error, chat: id }, 'groups/ could not be searched for a chat; it is treated as new');
    return null;
  });
  if (found === null || found === id) return null;
  await store.addAlias(id, found);
  return found;
};

/** If a new person has two ids, the one that an operator has approved. */
const asApproved: Lookup = async ({ store }, id) =>
  (await store.approvalOf({ chatId: id, senderId: id })).sender ? id : null;

const EVERYWHERE: Lookup[] = [inStore, inFolder, asApproved];

/** Tries each lookup in order with all ids. */
async function identify(
  services: BaseServices,
  channel: string,
  { address, otherAddress }: Addresses,
  lookups: Lookup[],
): Promise<Identified> {
  const own = platformId(channel, address);
  const ids = otherAddress === undefined ? [own] : [own, platformId(channel, otherAddress)];
  let known: ChatId | null = null;
  for (const lookup of lookups) {
    for (const each of ids) known ??= await lookup(services, each);
  }
  const id = known ?? own;
  for (const each of ids) {
    if (each !== id && (await services.store.aliasOf(each)) !== id) return { id, further: each };
  }
  return { id, further: null };
}
