/** The files that recall indexes, by scope: a persona's memory in a chat, and nothing of any other. */
import { join } from 'node:path';
import type { Archives } from '../core/chat-record.js';
import { isDayFile } from '../core/daily-log.js';
import { isFolder, namesIn, readIfThere, statIfThere, unhurried } from '../core/file-access.js';
import { readOr } from '../core/file-cache.js';
import { composedNames } from '../core/file-names.js';
import type { ChatId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import { type RecallFile, type RecallFiles, type Scope, stampOf } from '../core/recall.js';
import { parseArchiveName } from './archives.js';
import {
  archiveFile,
  archiveFolder,
  chatFolder,
  dailyFolder,
  isChatId,
  isPersonaId,
  personaFolder,
} from './paths.js';

/** Folders or files examined per pass of the event loop. */
const AT_ONCE = 100;

export function createRecallFiles(groupsDir: string, archives: Archives, log: Log): RecallFiles {
  return {
    async scopes() {
      const found: Scope[] = [];
      for await (const chatId of unhurried((await namesOf(groupsDir)).filter(isChatId), AT_ONCE)) {
        const names = composedNames(await namesOf(chatFolder(groupsDir, chatId)));
        for await (const personaId of unhurried(names.filter(isPersonaId), AT_ONCE)) {
          if (isFolder(personaFolder(groupsDir, chatId, personaId), false)) found.push({ chatId, personaId });
        }
      }
      return found;
    },

    async list({ chatId, personaId }) {
      const days = (await namesOf(dailyFolder(groupsDir, chatId))).filter(isDayFile);
      const folder = archiveFolder(groupsDir, chatId);
      const archived = await readOr([], folder, () => archives.list(chatId, personaId), log, PASSED_OVER);
      const names = [
        `${personaId}/MEMORY.md`,
        ...days.map((name) => `memory/${name}`),
        ...archived.filter(({ reset }) => !reset).map(({ file }) => `archive/${file}`),
      ];
      const files: RecallFile[] = [];
      for await (const file of unhurried(names, AT_ONCE)) {
        const found = look(pathOf(chatId, file));
        if (found) files.push({ file, ...found });
      }
      return files;
    },

    async read(scope, file) {
      if (!isOf(scope, file)) return null;
      const path = pathOf(scope.chatId, file);
      return (await readOr(null, path, readIfThere, log, PASSED_OVER))?.toString('utf8') ?? null;
    },
  };

  function pathOf(chatId: ChatId, file: string): string {
    const [folder = '', name = ''] = file.split('/');
    if (folder === 'archive') return archiveFile(groupsDir, chatId, name);
    const at =
      folder === 'memory' ? dailyFolder(groupsDir, chatId) : personaFolder(groupsDir, chatId, folder);
    return join(at, name);
  }

  async function namesOf(folder: string): Promise<string[]> {
    return (await readOr([], folder, namesIn, log, PASSED_OVER)).sort();
  }
}

const PASSED_OVER = 'file cannot be read; recall skips it';

/** Whether `list` could have returned it. */
function isOf({ personaId }: Scope, file: string): boolean {
  const [folder, name = '', ...more] = file.split('/');
  if (more.length > 0) return false;
  if (folder === 'memory') return isDayFile(name);
  if (folder === 'archive') return parseArchiveName(name)?.personaId === personaId;
  return folder === personaId && isPersonaId(personaId) && name === 'MEMORY.md';
}

function look(path: string) {
  try {
    return stampOf(statIfThere(path));
  } catch {
    // A link loop, or a folder without access: reading the file reports it to the operator.
    return { stamp: 'unreadable', bytes: 0 };
  }
}
