/** `chat.yaml` of each chat: its title, and alias ids, which find a chat that moved on its platform. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../core/clock.js';
import { describe } from '../core/errors.js';
import { documentOf } from '../core/file-text.js';
import type { ChatId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { ChatFiles } from '../core/persona.js';
import type { SettingStore } from '../core/store.js';
import { fileUpdater } from '../core/write-whole.js';
import { idsIn, readIndex, withId } from './aliases.js';
import { chatFolder } from './paths.js';
import { withKey } from './yaml-edit.js';

const KNOWN_TITLES = 10_000;

export function createChatFiles(
  groupsDir: string,
  store: SettingStore,
  clock: Pick<Clock, 'now'>,
  log: Log,
): ChatFiles {
  const update = fileUpdater();
  const fileOf = (chatId: ChatId) => join(chatFolder(groupsDir, chatId), 'chat.yaml');
  /** Alias ids to chats: read at the first lookup, kept current by our own writes. */
  let index: Promise<Map<ChatId, ChatId>> | null = null;
  /** As last written or read by this process: needed in every turn, rarely changed. */
  const titles = new Map<ChatId, string>();

  function indexed(): Promise<Map<ChatId, ChatId>> {
    index ??= readIndex(groupsDir, store, clock, log).catch((error: unknown) => {
      index = null;
      throw error;
    });
    return index;
  }

  return {
    async setTitle(chatId, title) {
      const path = fileOf(chatId);
      // An operator may have removed the folder meanwhile.
      if (titles.get(chatId) === title && existsSync(path)) return;
      await update(path, (bytes) => {
        const source = bytes?.toString('utf8') ?? '';
        if (documentOf(source).get('title') === title) return null;
        const edited = withKey(source, 'title', title);
        if (edited === null) log.warn({ path }, 'title not updated: the file is not plain YAML');
        return edited === null ? null : Buffer.from(edited, 'utf8');
      });
      if (titles.size >= KNOWN_TITLES) titles.clear();
      titles.set(chatId, title);
    },

    async addAlias(chatId, alias) {
      const path = fileOf(chatId);
      await update(path, (bytes) => {
        const source = bytes?.toString('utf8') ?? '';
        return idsIn(source).includes(alias) ? null : Buffer.from(withId(path, source, alias), 'utf8');
      });
      (await index)?.set(alias, chatId);
    },

    resolve: async (alias) => (await indexed()).get(alias) ?? null,

    async prepare() {
      await indexed().catch((error) =>
        log.warn({ error: describe(error) }, 'searching groups/ for moved chats failed'),
      );
    },
  };
}
