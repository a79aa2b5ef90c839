/**
 * Which of our ids a chat or a person goes by, for step 1: the one they were first known under, whatever address the
 * platform uses now. The truth is chat.yaml; the store holds a quick copy of it.
 */
import { type ChatId, platformId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { Address } from '../core/message.js';
import type { ChatFiles } from '../core/persona.js';
import type { AliasStore, ChatStore } from '../core/store.js';

export interface Identified {
  id: ChatId;
  /** Another id that does not lead to this one yet; null where all of them do. */
  further: ChatId | null;
}

interface Addresses {
  address: Address;
  otherAddress?: Address;
}

export interface Identity {
  /** Both note nothing: whoever asks may not be let in. */
  chat(channel: string, known: Addresses): Promise<Identified>;
  person(channel: string, known: Addresses): Promise<Identified>;
  /** From now on the further id leads to the chat, in the store and in the chat's folder. */
  link(chatId: ChatId, further: ChatId): Promise<void>;
  /** The same of a person, who has no folder until they have a chat. */
  know(senderId: ChatId, further: ChatId): Promise<void>;
}

export function createIdentity({
  store,
  chatFiles,
  log,
}: {
  store: AliasStore & ChatStore;
  chatFiles: ChatFiles;
  log: Log;
}): Identity {
  async function inStore(id: ChatId): Promise<ChatId | null> {
    return (await store.aliasOf(id)) ?? ((await store.chat(id)) ? id : null);
  }

  /** A chat that the store does not know may still have a folder that names it, when the database is gone. */
  async function inFolder(id: ChatId): Promise<ChatId | null> {
    const found = await chatFiles.resolve(id).catch((error) => {
      log.warn({ err: error, chat: id }, 'groups/ could not be searched for a chat; it counts as new');
      return null;
    });
    if (found === null || found === id) return null;
    await store.addAlias(id, found);
    return found;
  }

  async function firstOf(
    ids: ChatId[],
    look: (id: ChatId) => Promise<ChatId | null>,
  ): Promise<ChatId | null> {
    for (const id of ids) {
      const found = await look(id);
      if (found !== null) return found;
    }
    return null;
  }

  /** `looks` in their order, each for all of the ids. */
  async function identify(
    channel: string,
    { address, otherAddress }: Addresses,
    looks: ((id: ChatId) => Promise<ChatId | null>)[],
  ): Promise<Identified> {
    const own = platformId(channel, address);
    const ids = otherAddress === undefined ? [own] : [own, platformId(channel, otherAddress)];
    let known: ChatId | null = null;
    for (const look of looks) known ??= await firstOf(ids, look);
    const id = known ?? own;
    const further = await firstOf(ids, async (each) =>
      each === id || (await store.aliasOf(each)) === id ? null : each,
    );
    return { id, further };
  }

  return {
    chat: (channel, addresses) => identify(channel, addresses, [inStore, inFolder]),
    person: (channel, addresses) =>
      // Whoever has one address only is looked for no further than a glance: it happens in every message.
      identify(
        channel,
        addresses,
        addresses.otherAddress === undefined ? [store.aliasOf] : [inStore, inFolder],
      ),

    async link(chatId, further) {
      if (chatId === further) return;
      await store.addAlias(further, chatId);
      // The store's word is enough to go on; the file is for the day when the store is gone.
      await chatFiles
        .addAlias(chatId, further)
        .catch((error) =>
          log.warn({ err: error, chat: chatId }, 'chat.yaml could not be given the further id'),
        );
      log.info({ chat: chatId, further }, 'a further id leads to a chat; its folder and access stay');
    },

    know: (senderId, further) => store.addAlias(further, senderId),
  };
}
