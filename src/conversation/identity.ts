/**
 * Which of our ids a chat or a person goes by, for step 1: the one they were first known under, whatever address the
 * platform uses now. The truth is chat.yaml; the store holds a quick copy of it.
 */
import { type ChatId, platformId } from '../core/ids.js';
import type { Address } from '../core/message.js';
import type { Services } from './services.js';

export interface Identified {
  id: ChatId;
  /** Another id that does not lead to this one yet; null where all of them do. */
  further: ChatId | null;
}

interface Addresses {
  address: Address;
  otherAddress?: Address;
}

type IdentityServices = Pick<Services, 'store' | 'chatFiles' | 'log'>;

/** Which chat it is. Notes nothing: whoever asks may not be let in. */
export function identifyChat(
  services: IdentityServices,
  channel: string,
  addresses: Addresses,
): Promise<Identified> {
  return identify(services, channel, addresses, [inStore, inFolder]);
}

/** Which person it is. Notes nothing, either. */
export function identifyPerson(
  services: IdentityServices,
  channel: string,
  addresses: Addresses,
): Promise<Identified> {
  // Whoever has one address only is looked for no further than a glance: it happens in every message.
  const looks = addresses.otherAddress === undefined ? [asAlias] : [inStore, inFolder];
  return identify(services, channel, addresses, looks);
}

/** From now on the further id leads to the chat, in the store and in the chat's folder. */
export async function linkChat(
  { store, chatFiles, log }: IdentityServices,
  chatId: ChatId,
  further: ChatId,
): Promise<void> {
  if (chatId === further) return;
  await store.addAlias(further, chatId);
  // The store's word is enough to go on; the file is for the day when the store is gone.
  await chatFiles
    .addAlias(chatId, further)
    .catch((error) => log.warn({ err: error, chat: chatId }, 'chat.yaml could not be given the further id'));
  log.info({ chat: chatId, further }, 'a further id leads to a chat; its folder and access stay');
}

type Look = (services: IdentityServices, id: ChatId) => Promise<ChatId | null>;

const asAlias: Look = ({ store }, id) => store.aliasOf(id);

const inStore: Look = async ({ store }, id) =>
  (await store.aliasOf(id)) ?? ((await store.chat(id)) ? id : null);

/** A chat that the store does not know may still have a folder that names it, when the database is gone. */
const inFolder: Look = async ({ store, chatFiles, log }, id) => {
  const found = await chatFiles.resolve(id).catch((error) => {
    log.warn({ err: error, chat: id }, 'groups/ could not be searched for a chat; it counts as new');
    return null;
  });
  if (found === null || found === id) return null;
  await store.addAlias(id, found);
  return found;
};

/** `looks` in their order, each for all of the ids. */
async function identify(
  services: IdentityServices,
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
