/** A person's rights in a chat, for commands and the tool calls that their words lead to; where owners are. */
import type { Permission } from '../core/access.js';
import { BOARD, BOARD_MAIN } from '../core/board.js';
import type { ChatRecord, PlatformChat } from '../core/chat-record.js';
import { addressOf, type ChatId, platformId } from '../core/ids.js';
import type { JobAccess } from '../core/jobs.js';
import { decideAccess, isOwner } from './access.js';
import type { BaseServices } from './services.js';

/** A person who gives a command or says something, and where. */
export interface Actor {
  chat: PlatformChat;
  channel: string;
  sender: { id: ChatId; administrator: boolean };
}

export interface Rights {
  isOwner: boolean;
  /** Whether they may change things in the chat; may ask the platform, which may not answer. */
  mayChange(): Promise<Permission>;
}

/** Time-out for the platform's answer about administrators; after it, the answer is unknown. */
const ASKING_MS = 5_000;

export async function rightsOf(services: BaseServices, actor: Actor): Promise<Rights> {
  const { chat, sender, channel } = actor;
  const approval = await services.store.approvalOf({ chatId: chat.id, senderId: sender.id });
  const owner = isOwner(services.rulesFor(channel), sender.id, approval);
  return { isOwner: owner, mayChange: async () => (owner ? 'yes' : administers(services, actor)) };
}

async function administers(
  { channels, clock, log }: BaseServices,
  { chat, sender, channel: name }: Actor,
): Promise<Permission> {
  if (sender.administrator) return 'yes';
  const channel = channels.get(name);
  if (!channel?.isAdministrator) return 'no';
  const late = new AbortController();
  try {
    const unknown = clock.sleep(ASKING_MS, late.signal).then((): Permission => 'unknown');
    const isOne = await Promise.race([channel.isAdministrator(chat.address, addressOf(sender.id)), unknown]);
    return typeof isOne === 'boolean' ? (isOne ? 'yes' : 'no') : isOne;
  } catch (error) {
    log.warn({ err: error, chat: chat.id }, 'the platform did not say who administers a group');
    return 'unknown';
  } finally {
    late.abort();
  }
}

/** Whether the group exists or would be admitted. */
export async function isKnownChat(services: BaseServices, channel: string, chatId: ChatId): Promise<boolean> {
  if (await services.store.chat(chatId)) return true;
  return admits(services, channel, { kind: 'group', chatIds: [chatId], senderId: chatId }, chatId);
}

type AccessServices = Pick<BaseServices, 'store' | 'rulesFor'>;

/** Whether the creator of a job still has access where it was created, judged by ids alone. */
export function createJobAccess(services: AccessServices): JobAccess {
  return {
    async admits({ chatId, senderId }) {
      const chat = await services.store.chat(chatId);
      if (chat === null) return false;
      const chatIds = [chatId, platformId(chat.channel, chat.address)];
      const asked = { kind: chat.kind, chatIds, senderId: senderId || chatId };
      return admits(services, chat.channel, asked, chatId);
    },
  };
}

async function admits(
  { store, rulesFor }: AccessServices,
  channel: string,
  asked: Parameters<typeof decideAccess>[1],
  chatId: ChatId,
): Promise<boolean> {
  const approval = await store.approvalOf({ chatId, senderId: asked.senderId });
  return decideAccess(rulesFor(channel), asked, approval) === 'enter';
}

/** Where owners are notified: the control chats, or their own chats if there are none. */
export async function ownerChats({ store, channels, rulesFor }: BaseServices): Promise<ChatRecord[]> {
  const rules = [...channels.keys()].map(rulesFor);
  // A person may have several chats on the page, and is told in one.
  const isHere = ({ channel, id }: ChatRecord) =>
    channels.has(channel) && (channel !== BOARD || id === BOARD_MAIN);
  const control = new Set(rules.flatMap(({ controlChats }) => controlChats));
  const found = await Promise.all([...control].map((id) => store.chat(id)));
  const there = found.flatMap((chat) => chat ?? []).filter(isHere);
  if (there.length > 0) return there;
  return (await store.owners(rules.flatMap(({ owners }) => owners))).chats.filter(isHere);
}
