/**
 * Step 1 of the route: who somebody is, and whether they may talk. Messages from anybody who may not are neither stored nor
 * shown to a model. Our id of a chat or a person is the one that they were first known under, whatever address the platform uses
 * now; chat.yaml is the source of truth, and the store holds a copy for fast lookup.
 */
import type { AccessRules } from '../core/access.js';
import type { ChatRecord } from '../core/chat-record.js';
import { type ChatId, platformId } from '../core/ids.js';
import type { JobAccess } from '../core/jobs.js';
import type { Address, InboundChat, InboundSender } from '../core/message.js';
import type { BaseServices } from './services.js';

/** What was approved at run time (`coterie pair approve`). */
interface Approval {
  chat: boolean;
  sender: boolean;
  owner: boolean;
}

export type AccessDecision =
  | 'enter'
  /** The sender is unknown: offer a pairing code. */
  | 'pair'
  /** The group is not listed: if the bot was addressed there, tell the operator once. */
  | 'unlisted'
  | 'stay-out';

/** Pure. A listing of any id of the chat counts, so access survives a group's migration. */
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

/** Whether this person was let in, not only a group that they are in. */
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
  /** This person was not let in, only the group that they are in. */
  isStranger: boolean;
}

/** Identifies chat and sender, and decides whether they may enter. */
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
    // What the account's owner writes in a direct chat is admitted if the other person is.
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

/** The account's owner, in the chat with themselves. */
export function isWithThemselves({ chat, sender }: { chat: InboundChat; sender: InboundSender }): boolean {
  const theirs = [sender.address, sender.otherAddress];
  const isTheirs = (one: Address | undefined) => one !== undefined && theirs.includes(one);
  return chat.kind === 'direct' && (isTheirs(chat.address) || isTheirs(chat.otherAddress));
}

/** Whether the chat exists already or may enter. */
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

/** Whether the creator of a job may still talk where it was created, as far as ids tell. */
export function createJobAccess({ store, rulesFor }: Pick<BaseServices, 'store' | 'rulesFor'>): JobAccess {
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

/** Where owners are notified: in the control chats, or if there are none, in their own chats. */
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
  /** Another id of theirs that is not yet an alias of `id`; null when there is none. */
  further: ChatId | null;
}

interface Addresses {
  address: Address;
  otherAddress?: Address;
}

/** Records no alias: access has not been decided yet. */
export function identifyChat(
  services: BaseServices,
  channel: string,
  addresses: Addresses,
): Promise<Identified> {
  return identify(services, channel, addresses, EVERYWHERE);
}

/** Records no alias either. */
export function identifyPerson(
  services: BaseServices,
  channel: string,
  addresses: Addresses,
): Promise<Identified> {
  // This runs for every message, so a person with a single address costs only one alias lookup.
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
  // The alias in the store is sufficient; the one in the file matters only if the database is lost.
  await chatFiles
    .addAlias(chatId, further)
    .catch((error) => log.warn({ err: error, chat: chatId }, 'the new id could not be added to chat.yaml'));
  log.info({ chat: chatId, further }, 'a chat got a new id; it keeps its folder and its access');
}

type Lookup = (services: BaseServices, id: ChatId) => Promise<ChatId | null>;

const asAlias: Lookup = ({ store }, id) => store.aliasOf(id);

const inStore: Lookup = async ({ store }, id) =>
  (await store.aliasOf(id)) ?? ((await store.chat(id)) ? id : null);

/** If the database was lost, a chat that the store does not know may still have a folder that names this id. */
const inFolder: Lookup = async ({ store, chatFiles, log }, id) => {
  const found = await chatFiles.resolve(id).catch((error) => {
    log.warn({ err: error, chat: id }, 'groups/ could not be searched for a chat; it is treated as new');
    return null;
  });
  if (found === null || found === id) return null;
  await store.addAlias(id, found);
  return found;
};

/** Of two forms of somebody new, the one that an operator has let in. */
const asApproved: Lookup = async ({ store }, id) =>
  (await store.approvalOf({ chatId: id, senderId: id })).sender ? id : null;

const EVERYWHERE: Lookup[] = [inStore, inFolder, asApproved];

/** Tries each lookup in order, for all of the ids. */
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
