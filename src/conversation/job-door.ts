/** Whether whoever set a job may still talk where it was set: as in step 1 of the route, as far as ids tell. */
import { platformId } from '../core/ids.js';
import type { JobDoor } from '../core/jobs.js';
import { decideEntry } from './access.js';
import type { BaseServices } from './services.js';

export function createJobDoor({ store, rulesFor }: Pick<BaseServices, 'store' | 'rulesFor'>): JobDoor {
  return {
    async admits({ chatId, senderId }) {
      const chat = await store.chat(chatId);
      if (chat === null) return false;
      const who = senderId || chatId;
      const standing = await store.approvalOf({ chatId, senderId: who });
      const chatIds = [chatId, platformId(chat.channel, chat.address)];
      const asked = { kind: chat.kind, chatIds, senderId: who };
      return decideEntry(rulesFor(chat.channel), asked, standing) === 'enter';
    },
  };
}
