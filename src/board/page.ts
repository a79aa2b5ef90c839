/** The routes of the page's own, each group in a file of its own. */
import type { Log } from '../core/log.js';
import type { WatchStore } from '../core/store.js';
import { type BoardApi, reply } from './api.js';
import { addChat, type ChatParts } from './chat.js';
import { addConversations, type ConversationParts } from './conversations.js';
import { addMemory, type MemoryParts } from './memory.js';
import { addWork, type WorkParts } from './work.js';

/** Everything that the page reads and changes. */
export interface PageParts {
  version: string;
  watch: WatchStore['watch'];
  chat: ChatParts;
  memory: MemoryParts;
  work: WorkParts;
  conversations: ConversationParts;
}

export function addPage(
  api: BoardApi,
  { version, chat, memory, work, conversations }: PageParts,
  log: Log,
): void {
  api.get('/api/board/hello', () => reply(200, { version }));
  addChat(api, chat, log);
  addMemory(api, memory);
  addWork(api, work);
  addConversations(api, conversations);
}
