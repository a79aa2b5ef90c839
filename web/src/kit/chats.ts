/** The page's own chats by the names that the switch in Chat gives them. */

export const MAIN_CHAT = 'board_main';
export const OWN_PREFIX = 'board_';

/** `title`: by which a chat of another channel is known. All of the page's own have the same one: the name of the owner. */
export function chatName(id: string, title: string, mainChat: string): string {
  if (id === MAIN_CHAT) return mainChat;
  return id.startsWith(OWN_PREFIX) ? id.slice(OWN_PREFIX.length).replaceAll('-', ' ') : title;
}
