/** The routes of the page's own, each group in a file of its own. */
import type { Log } from '../core/log.js';
import type { Setup } from '../core/setup.js';
import type { WatchStore } from '../core/store.js';
import { type BoardApi, reply } from './api.js';
import { addChat, type ChatParts } from './chat.js';
import { addConversations, type ConversationParts } from './conversations.js';
import type { Door } from './guard.js';
import { addMemory, type MemoryParts } from './memory.js';
import { addOperations, type OperationsParts } from './operations.js';
import { addSetup } from './setup.js';
import { addWork, type WorkParts } from './work.js';

/** Everything that the page reads and changes. */
export interface PageParts {
  version: string;
  watch: WatchStore['watch'];
  chat: ChatParts;
  memory: MemoryParts;
  work: WorkParts;
  conversations: ConversationParts;
  operations: OperationsParts;
  setup: { isDue(): Promise<boolean>; open(): Promise<Setup> };
}

export function addPage(api: BoardApi, parts: PageParts, door: Door, log: Log): void {
  const { version, chat, memory, work, conversations, operations, setup } = parts;
  api.get('/api/board/hello', async ({ env: { incoming } }) => {
    const signedInBy = door.sessionOf(incoming) === null ? null : 'session';
    return reply(200, { version, signedInBy, isSetupDue: await setup.isDue() });
  });
  addChat(api, chat, log);
  addMemory(api, memory);
  addWork(api, work);
  addConversations(api, conversations);
  addOperations(api, operations);
  addSetup(api, setup.open);
}
