/** Whether a turn may see and do what belongs to owners alone: an owner's words led to it, in one of their control chats. */
import type { Authorisation } from './tool.js';

export async function isOwnersOrder({
  chatId,
  controlChats,
  asker,
}: Pick<Authorisation, 'chatId' | 'controlChats' | 'asker'>): Promise<boolean> {
  return controlChats.includes(chatId) && (await asker.isOwner());
}
