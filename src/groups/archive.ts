/**
 * Archived conversations on disk: the port behind compaction and `/archive`. A file appears whole or not at all,
 * however long the conversation is; afterwards only its front matter changes.
 */
import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setImmediate as nextPass } from 'node:timers/promises';
import type { ArchiveFile, Archives } from '../core/archive.js';
import type { Zone } from '../core/dates.js';
import { describe, Fault } from '../core/errors.js';
import type { ChatId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import { archiveName, nameTime, oldestFirst, parseArchiveName } from './archive-name.js';
import { readHeadText, withMark } from './archive-text.js';
import { writeArchive } from './archive-write.js';
import { fileUpdater } from './atomic.js';
import { namesIn, readHead, unavailable } from './disk.js';
import type { Alone } from './locks.js';
import { archiveFolder, fromHere } from './paths.js';
import { removeLeftOvers } from './temporary.js';

export interface ArchivesOptions {
  groupsDir: string;
  zone: Zone;
  /** Shared with memory, which erases in the same files. */
  alone: Alone;
  log: Log;
}

const HEAD_BYTES = 16 * 1024;
/** How many heads are read in one pass of the event loop. */
const AT_ONCE = 50;
/** How many names that were given out are kept in memory; two of one moment come close together. */
const KNOWN_NAMES = 1_000;

export function createArchives({ groupsDir, zone, alone, log }: ArchivesOptions): Archives {
  const update = fileUpdater(alone);
  /** Names whose files are not there yet, perhaps. */
  const given = new Set<string>();

  return {
    async newName(head) {
      const there = new Set(await namesIn(archiveFolder(groupsDir, head.chatId)));
      for (let number = 1; ; number++) {
        const file = archiveName({ time: nameTime(zone, head.at), number, personaId: head.personaId });
        const path = pathOf(head.chatId, file);
        if (there.has(file) || given.has(path)) continue;
        if (given.size >= KNOWN_NAMES) given.clear();
        given.add(path);
        return file;
      }
    },

    async write(head, file, pages) {
      const path = pathOf(head.chatId, file);
      // Under the folder's lock: what is forgotten meanwhile must not stand in a file that appears afterwards.
      await alone(archiveFolder(groupsDir, head.chatId), async () => {
        // Of a copy that a crash cut off nobody knows any more.
        await removeLeftOvers(dirname(path), (name) => parseArchiveName(name) !== null);
        await writeArchive(path, head, pages, zone);
      });
    },

    async mark(chatId, file, mark) {
      const path = pathOf(chatId, file);
      await update(path, (bytes) => {
        if (bytes === null) return null;
        const marked = withMark(bytes, mark);
        if (marked === null)
          log.warn({ path, mark }, 'an archive is not marked, for its front matter cannot be read');
        return marked;
      });
    },

    async remove(chatId, file) {
      const path = pathOf(chatId, file);
      await alone(archiveFolder(groupsDir, chatId), async () => {
        await removeLeftOvers(dirname(path), (name) => name === file);
        try {
          // In one go: nobody marks the file between looking at it and writing it back.
          rmSync(path, { force: true });
        } catch (error) {
          throw unavailable('write', path, error);
        }
      });
    },

    async list(chatId, personaId) {
      const folder = archiveFolder(groupsDir, chatId);
      const names = (await namesIn(folder))
        .map(parseArchiveName)
        .filter((name) => name?.personaId === personaId)
        .filter((name) => name !== null)
        .sort(oldestFirst);
      const found: ArchiveFile[] = [];
      for (const [n, name] of names.entries()) {
        if (n % AT_ONCE === AT_ONCE - 1) await nextPass();
        const file = archiveName(name);
        const head = headOf(join(folder, file));
        if (head !== null && head.personaId === personaId) found.push({ file, ...head });
      }
      return found;
    },

    shownPath: (chatId, file) => fromHere(pathOf(chatId, file)),
  };

  function headOf(path: string): ReturnType<typeof readHeadText> {
    try {
      const bytes = readHead(path, HEAD_BYTES);
      const head = bytes && readHeadText(bytes.toString('utf8'));
      if (bytes !== null && head === null) {
        log.warn({ path }, 'an archive is passed over, for its front matter cannot be read');
      }
      return head;
    } catch (error) {
      log.warn({ path, error: describe(error) }, 'an archive is passed over, for it cannot be read');
      return null;
    }
  }

  function pathOf(chatId: ChatId, file: string): string {
    if (parseArchiveName(file) === null) {
      const shown = JSON.stringify(file.slice(0, 120));
      throw new Fault('memory_unavailable', `${shown} is not the name of an archive`);
    }
    return join(archiveFolder(groupsDir, chatId), file);
  }
}
