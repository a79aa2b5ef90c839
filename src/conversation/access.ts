/**
 * Step 1 of the route: decides who may talk. Pure. Messages from anybody who may not are neither stored nor shown to a
 * model.
 */

import type { AccessRules } from '../core/access.js';
import type { ChatRecord } from '../core/chat-record.js';
import { type ChatId, platformId } from '../core/ids.js';
import type { JobAccess } from '../core/jobs.js';
import type { Address, InboundChat, InboundSender } from '../core/message.js';
import type { BaseServices, Services } from './services.js';

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

/**
 * `chatIds` are all ids of the chat: its own and the one that the platform uses now. A listing of either counts, so
 * access survives a group's migration.
 */
export function decideAccess(
  rules: AccessRules,
  chat: { kind: 'direct' | 'group'; chatIds: ChatId[]; senderId: ChatId },
  standing: Approval,
): AccessDecision {
  const listed = chat.chatIds.some((id) => rules.chats.includes(id) || rules.controlChats.includes(id));
  if (chat.kind === 'group') {
    if (rules.groups === 'closed') return 'stay-out';
    return rules.groups === 'open' || listed || standing.chat ? 'enter' : 'unlisted';
  }
  if (listed || isKnown(rules, chat.senderId, standing) || rules.direct === 'open') return 'enter';
  return rules.direct === 'pairing' ? 'pair' : 'stay-out';
}

/** Somebody has said that this person may talk. */
function isKnown(rules: AccessRules, senderId: ChatId, standing: Omit<Approval, 'chat'>): boolean {
  return standing.sender || isOwner(rules, senderId, standing) || rules.chats.includes(senderId);
}

export function isOwner(rules: AccessRules, senderId: ChatId, standing: { owner: boolean }): boolean {
  return standing.owner || rules.owners.includes(senderId);
}

// Step 1 of the route: finds our id for a chat or a person, which is the id they were first known under, whatever
// address the platform uses now. chat.yaml is the source of truth; the store holds a copy for fast lookup.

interface Identified {
  id: ChatId;
  /** Another id of theirs that is not yet an alias of `id`; null when there is none. */
  further: ChatId | null;
}

interface Addresses {
  address: Address;
  otherAddress?: Address;
}

/** Identifies a chat. Records no alias for it: access has not been decided yet. */
export function identifyChat(
  services: BaseServices,
  channel: string,
  addresses: Addresses,
): Promise<Identified> {
  return identify(services, channel, addresses, BY_ALL);
}

/** Identifies a person. Records no alias either. */
export function identifyPerson(
  services: BaseServices,
  channel: string,
  addresses: Addresses,
): Promise<Identified> {
  // This runs for every message, so a person with a single address costs only one alias lookup.
  const looks = addresses.otherAddress === undefined ? [asAlias] : BY_ALL;
  return identify(services, channel, addresses, looks);
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
  log.info({ chat: chatId, further }, 'a chat has got a new id; it keeps its folder and its access');
}

type Look = (services: BaseServices, id: ChatId) => Promise<ChatId | null>;

const asAlias: Look = ({ store }, id) => store.aliasOf(id);

const inStore: Look = async ({ store }, id) =>
  (await store.aliasOf(id)) ?? ((await store.chat(id)) ? id : null);

/** If the database was lost, a chat that the store does not know may still have a folder that names this id. */
const inFolder: Look = async ({ store, chatFiles, log }, id) => {
  const found = await chatFiles.resolve(id).catch((error) => {
    log.warn({ err: error, chat: id }, 'groups/ could not be searched for a chat; it is treated as new');
    return null;
  });
  if (found === null || found === id) return null;
  await store.addAlias(id, found);
  return found;
};

/** Of two forms of somebody new, the one that an operator has let in. */
const asApproved: Look = async ({ store }, id) =>
  (await store.approvalOf({ chatId: id, senderId: id })).sender ? id : null;

const BY_ALL: Look[] = [inStore, inFolder, asApproved];

/** Tries each lookup in order, for all of the ids. */
async function identify(
  services: BaseServices,
  channel: string,
  { address, otherAddress }: Addresses,
  looks: Look[],
): Promise<Identified> {
  const own = platformId(channel, address);
  const ids = otherAddress === undefined ? [own] : [own, platformId(channel, otherAddress)];
  let known: ChatId | null = null;
  for (const look of looks) known ??= await firstOf(ids, (each) => look(services, each));
  const id = known ?? own;
  const further = await firstOf(ids, async (each) =>
    each === id || (await services.store.aliasOf(each)) === id ? null : each,
  );
  return { id, further };
}

async function firstOf(ids: ChatId[], look: (id: ChatId) => Promise<ChatId | null>): Promise<ChatId | null> {
  for (const id of ids) {
    const found = await look(id);
    if (found !== null) return found;
  }
  return null;
}

// Within step 1 of the route: identifies chat and sender and decides whether they may enter.

export interface AccessCheck {
  entry: AccessDecision;
  chatId: ChatId;
  senderId: ChatId;
  /** Nobody has said of them that they may talk, only of the group. */
  isStranger: boolean;
}

export async function checkAccess(
  services: Services,
  channel: string,
  who: { chat: InboundChat; sender: InboundSender },
): Promise<AccessCheck> {
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
): Promise<{ entry: AccessDecision; isStranger: boolean }> {
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
  const entry = decideAccess(rules, { kind: chat.kind, chatIds, senderId: asWho }, standing);
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
  return decideAccess(services.rulesFor(channel), group, standing) === 'enter';
}

// Where whoever runs the gateway is told things: the control chats, or where there are none, the owners' own.

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

// Whether whoever set a job may still talk where it was set: as in step 1 of the route, as far as ids tell.

export function createJobAccess({ store, rulesFor }: Pick<BaseServices, 'store' | 'rulesFor'>): JobAccess {
  return {
    async admits({ chatId, senderId }) {
      const chat = await store.chat(chatId);
      if (chat === null) return false;
      const who = senderId || chatId;
      const standing = await store.approvalOf({ chatId, senderId: who });
      const chatIds = [chatId, platformId(chat.channel, chat.address)];
      const asked = { kind: chat.kind, chatIds, senderId: who };
      return decideAccess(rulesFor(chat.channel), asked, standing) === 'enter';
    },
  };
}
