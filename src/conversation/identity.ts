/**
 * Step 1 of the route: finds our id for a chat or a person, which is the id they were first known under, whatever
 * address the platform uses now. chat.yaml is the source of truth; the store holds a copy for fast lookup.
 */
import { type ChatId, platformId } from '../core/ids.js';
import type { Address } from '../core/message.js';
import type { BaseServices } from './services.js';

export interface Identified {
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
