/** The files that recall indexes, by scope: what a persona remembers in a chat, and nothing else's. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextPass } from 'node:timers/promises';
import type { Archives } from '../core/archive.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { RecallFile, RecallFiles, Scope } from '../core/recall.js';
import { isDailyName } from './daily.js';
import { isMissing, namesIn, readIfThere } from './disk.js';
import { archiveFolder, chatFolder, dailyFolder, isChatId, memoryFile, personaFolder } from './paths.js';
import { isPersonaId } from './slug.js';

/** How many folders or files are looked at in one pass of the event loop. */
const AT_ONCE = 100;

export function createRecallFiles(options: {
  groupsDir: string;
  archives: Pick<Archives, 'list'>;
  log: Log;
}): RecallFiles {
  const { groupsDir, archives, log } = options;

  /** Where a file lies that `list` has named; null for anything else. */
  function pathOf({ chatId, personaId }: Scope, file: string): string | null {
    const [folder, name, ...more] = file.split('/');
    if (name === undefined || more.length > 0) return null;
    if (file === `${personaId}/MEMORY.md`) return memoryFile(groupsDir, { chatId, personaId });
    if (folder === 'memory' && isDailyName(name)) return join(dailyFolder(groupsDir, chatId), name);
    if (folder === 'archive' && name.endsWith('.md')) return join(archiveFolder(groupsDir, chatId), name);
    return null;
  }

  async function* namesWith(folder: string, fits: (name: string) => boolean): AsyncGenerator<string> {
    let names: string[] = [];
    try {
      names = (await namesIn(folder)).filter(fits).sort();
    } catch (error) {
      log.warn({ path: folder, why: describe(error) }, 'passed over by recall, for it cannot be read');
    }
    for (const [n, name] of names.entries()) {
      if (n % AT_ONCE === AT_ONCE - 1) await nextPass();
      yield name;
    }
  }

  return {
    async scopes() {
      const found: Scope[] = [];
      for await (const chatId of namesWith(groupsDir, isChatId)) {
        for await (const personaId of namesWith(chatFolder(groupsDir, chatId), isPersonaId)) {
          if (isFolder(personaFolder(groupsDir, chatId, personaId))) found.push({ chatId, personaId });
        }
      }
      return found;
    },

    async list(scope) {
      const { chatId, personaId } = scope;
      const named = [`${personaId}/MEMORY.md`];
      for await (const name of namesWith(dailyFolder(groupsDir, chatId), isDailyName))
        named.push(`memory/${name}`);
      const archived = await archives.list(chatId, personaId).catch((error) => {
        log.warn({ chat: chatId, why: describe(error) }, 'archives are passed over by recall');
        return [];
      });
      named.push(...archived.filter(({ reset }) => !reset).map(({ file }) => `archive/${file}`));
      const files: RecallFile[] = [];
      for (const [n, file] of named.entries()) {
        if (n % AT_ONCE === AT_ONCE - 1) await nextPass();
        const path = pathOf(scope, file);
        const found = path && statOf(path);
        if (found) files.push({ file, ...found });
      }
      return files;
    },

    async read(scope, file) {
      const path = pathOf(scope, file);
      if (path === null) return null;
      try {
        return (await readIfThere(path))?.toString('utf8') ?? null;
      } catch (error) {
        log.warn({ path, why: describe(error) }, 'passed over by recall, for it cannot be read');
        return null;
      }
    },
  };
}

function statOf(path: string): { stamp: string; bytes: number } | null {
  try {
    const { mtimeMs, size, ino } = statSync(path);
    return size === 0 ? null : { stamp: `${mtimeMs}-${size}-${ino}`, bytes: size };
  } catch (error) {
    if (isMissing(error)) return null;
    // A link loop, a folder without access: reading it says so to the operator.
    return { stamp: 'unreadable', bytes: 0 };
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    // Gone meanwhile, or a link that leads nowhere: no persona either way.
    return false;
  }
}
