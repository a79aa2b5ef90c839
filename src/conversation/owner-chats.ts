/** Where whoever runs the gateway is told things: the control chats, or where there are none, the owners' own. */
import type { ChatRecord } from '../core/chat-record.js';
import type { BaseServices } from './services.js';

export async function chatsOfOwners({ store, channels, rulesFor }: BaseServices): Promise<ChatRecord[]> {
  const rules = [...channels.keys()].map(rulesFor);
  const isHere = (chat: ChatRecord | null) => chat !== null && channels.has(chat.channel);
  const control = new Set(rules.flatMap(({ controlChats }) => controlChats));
  const found = await Promise.all([...control].map((id) => store.chat(id)));
  const there = found.filter((chat) => isHere(chat)).flatMap((chat) => chat ?? []);
  if (there.length > 0) return there;
  const owners = new Set(rules.flatMap(({ owners: listed }) => listed));
  return (await store.ownerChats([...owners])).filter(isHere);
}
