/** The page's own chats by the names that the switch in Chat gives them. */

export const MAIN_CHAT = 'board_main';
export const OWN_PREFIX = 'board_';

/** Nobody but the owner writes there. */
export function isOwnChat(id: string): boolean {
  return id.startsWith(OWN_PREFIX);
}

/** `title`: by which a chat of another channel is known. All of the page's own have the same one: the name of the owner. */
export function chatName(id: string, title: string, mainChat: string): string {
  if (id === MAIN_CHAT) return mainChat;
  return isOwnChat(id) ? id.slice(OWN_PREFIX.length).replaceAll('-', ' ') : title;
}
