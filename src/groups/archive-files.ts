/**
 * Archives on disk: implements the port behind compaction and `/archive`. A file is written atomically, however long
 * the conversation is; afterwards only its front matter changes.
 */
import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { ArchiveFile, Archives } from '../core/archive.js';
import type { Zone } from '../core/dates.js';
import { Fault } from '../core/errors.js';
import { namesIn, readIfThere, readOr, unavailable, unhurried } from '../core/file-access.js';
import { readUnlessUnchanged } from '../core/file-cache.js';
import type { ChatId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { Exclusive } from '../core/mutex.js';
import { composedNames } from '../core/names-on-disk.js';
import { fileUpdater } from '../core/update-file.js';
import { removeLeftOvers } from '../core/write-whole.js';
import { archiveName, nameTime, parseArchiveName } from './archive-name.js';
import { type ReadHead, readHeadText } from './archive-text.js';
import { writeArchive } from './archive-writer.js';
import { archivesOf } from './memory-files.js';
import { archiveFile, archiveFolder, fromHere, isChatId } from './paths.js';
import { withFrontMatterKey } from './yaml-edit.js';

export interface ArchivesOptions {
  groupsDir: string;
  zone: Zone;
  /** Shared with memory, which erases text in the same files. */
  exclusive: Exclusive;
  log: Log;
}

const HEAD_BYTES = 16 * 1024;
/** How many front matters are read per pass of the event loop. */
const AT_ONCE = 50;
/** How many reserved names are remembered; two of the same second come close together. */
const KNOWN_NAMES = 1_000;

export function createArchives({ groupsDir, zone, exclusive, log }: ArchivesOptions): Archives {
  const update = fileUpdater(exclusive);
  /** Paths that were handed out; their files may not exist yet. */
  const reserved = new Set<string>();
  /** null if it is not the beginning of an archive. */
  const headAt = readUnlessUnchanged<ReadHead | 'missing' | null>('missing', async (path) => {
    const bytes = await readIfThere(path, HEAD_BYTES);
    return bytes === null ? 'missing' : readHeadText(bytes.toString('utf8'));
  });

  return {
    async newName(head) {
      const there = new Set(composedNames(await namesIn(archiveFolder(groupsDir, head.chatId))));
      for (let number = 1; ; number++) {
        const file = archiveName({ time: nameTime(zone, head.at), number, personaId: head.personaId });
        const path = pathOf(head.chatId, file);
        if (there.has(file) || reserved.has(path)) continue;
        if (reserved.size >= KNOWN_NAMES) reserved.clear();
        reserved.add(path);
        return file;
      }
    },

    async write(head, file, pages) {
      const path = pathOf(head.chatId, file);
      // Under the folder's lock, so that text erased meanwhile does not reappear in a new file.
      await exclusive(archiveFolder(groupsDir, head.chatId), async () => {
        // No later write would find a temporary file left by a crash, because its name is never used again.
        await removeLeftOvers(dirname(path), (name) => parseArchiveName(name) !== null);
        await writeArchive(path, head, pages, zone);
      });
    },

    async mark(chatId, file, mark) {
      const path = pathOf(chatId, file);
      await update(path, (bytes) => {
        if (bytes === null) return null;
        const marked = withFrontMatterKey(bytes, mark, true);
        if (marked === null)
          log.warn({ path, mark }, 'an archive was not marked, because its front matter cannot be read');
        return marked;
      });
    },

    async remove(chatId, file) {
      const path = pathOf(chatId, file);
      await exclusive(archiveFolder(groupsDir, chatId), async () => {
        await removeLeftOvers(dirname(path), (name) => name === file);
        try {
          // Synchronous, so that nobody changes the file between reading and writing it.
          rmSync(path, { force: true });
        } catch (error) {
          throw unavailable('write', path, error);
        }
      });
    },

    async list(chatId, personaId) {
      const found: ArchiveFile[] = [];
      for await (const file of unhurried(await archivesOf(groupsDir, { chatId, personaId }), AT_ONCE)) {
        const head = await headOf(pathOf(chatId, file));
        if (head?.personaId === personaId) found.push({ file, ...head });
      }
      return found;
    },

    async find(chatId, file) {
      if (!isChatId(chatId) || parseArchiveName(file) === null) return null;
      const head = await headOf(pathOf(chatId, file));
      return head && { file, ...head };
    },

    shownPath: (chatId, file) => fromHere(pathOf(chatId, file)),
  };

  async function headOf(path: string): Promise<ReadHead | null> {
    const message = 'an archive is passed over, for it cannot be read';
    const head = await readOr('missing', path, headAt, log, message);
    if (head === null) log.warn({ path }, 'an archive is ignored, because its front matter cannot be read');
    return head === 'missing' ? null : head;
  }

  function pathOf(chatId: ChatId, file: string): string {
    if (parseArchiveName(file) === null) {
      const shown = JSON.stringify(file.slice(0, 120));
      throw new Fault('memory_unavailable', `${shown} is not the name of an archive`);
    }
    return archiveFile(groupsDir, chatId, file);
  }
}
