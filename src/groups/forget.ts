/** `/memory forget` on disk: finds a phrase in all memory files of a chat, and removes it permanently. */
import { lstatSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { setImmediate as nextPass } from 'node:timers/promises';
import { describe, Fault } from '../core/errors.js';
import { readIfThere } from '../core/file-access.js';
import type { ChatId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { FoundLine, KeptByAgents, Memory, MemoryFile } from '../core/memory.js';
import type { Exclusive } from '../core/mutex.js';
import type { Phrase } from '../core/phrase.js';
import { followLinks, type UpdateFile } from '../core/update-file.js';
import { removeLeftOvers } from '../core/write-whole.js';
import { forgetIn, type Kind } from './forget-in-file.js';
import { agentFolders, filesIn, type MemoryFolder, memoryFolders } from './memory-files.js';
import { archiveFolder } from './paths.js';

/** How many files are examined per pass of the event loop. */
const AT_ONCE = 50;
const MOST_SHOWN = 20;

interface ForgettingFolders {
  groupsDir: string;
  /** `data/clipboard`, `data/agents`; null: there are none. */
  clipboardDir?: string | null;
  agentsDir?: string | null;
}

export function forgetting(
  { groupsDir, clipboardDir = null, agentsDir = null }: ForgettingFolders,
  update: UpdateFile,
  exclusive: Exclusive,
  log: Log,
): Pick<Memory, 'find' | 'erase'> {
  return { find, erase };

  async function foldersOf(chatId: ChatId, kept: KeptByAgents | undefined): Promise<MemoryFolder[]> {
    const own = await memoryFolders(groupsDir, chatId, clipboardDir);
    if (kept === undefined || agentsDir === null) return own;
    return [...own, ...(await agentFolders(agentsDir, chatId, kept))];
  }

  async function find(
    chatId: ChatId,
    phrase: Phrase,
    most: number,
    kept?: KeptByAgents,
  ): Promise<FoundLine[]> {
    const found: FoundLine[] = [];
    const failures: unknown[] = [];
    const failed = (error: unknown): undefined => void failures.push(error);
    let looked = 0;
    for (const folder of await foldersOf(chatId, kept)) {
      for (const { file, path } of (await filesIn(folder).catch(failed)) ?? []) {
        if (found.length >= most) break;
        if (++looked % AT_ONCE === 0) await nextPass();
        const bytes = await readIfThere(path).catch(failed);
        const lines = bytes ? forgetIn(bytes, folder.kind, phrase).lines : [];
        found.push(...lines.slice(0, most - found.length).map((text) => ({ file, text })));
      }
    }
    // If nothing was found, an unreadable file may still contain the phrase.
    if (found.length === 0) failIfAny('look for words to be forgotten', failures);
    for (const error of failures) {
      log.warn({ error: describe(error) }, 'a file was skipped while searching for words to forget');
    }
    return found;
  }

  async function erase(chatId: ChatId, phrase: Phrase, kept?: KeptByAgents): Promise<string[]> {
    const changed: string[] = [];
    const failures: unknown[] = [];
    const failed = (error: unknown): undefined => void failures.push(error);
    const eraseIn = async ({ file, path }: MemoryFile, kind: Kind) => {
      if (await update(path, (bytes) => bytes && forgetIn(bytes, kind, phrase).left)) changed.push(file);
      await removeBesideTarget(path);
    };
    // Under the archives' lock, so that no archive with the phrase appears after the folder was searched.
    await exclusive(archiveFolder(groupsDir, chatId), async () => {
      for (const folder of await foldersOf(chatId, kept)) {
        for (const each of (await filesIn(folder).catch(failed)) ?? []) {
          await eraseIn(each, folder.kind).catch(failed);
        }
        await removeLeftOvers(folder.path, folder.holds).catch(failed);
      }
    });
    failIfAny('forget', failures);
    return changed;
  }
}

/** Temporary files of a file written through a link are left where the link leads. */
async function removeBesideTarget(path: string): Promise<void> {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return;
  const target = await followLinks(path);
  await removeLeftOvers(dirname(target), (name) => name === basename(target));
}

function failIfAny(what: string, failures: unknown[]): void {
  if (failures.length === 0) return;
  const shown = failures.slice(0, MOST_SHOWN).map(describe).join('; ');
  const more = failures.length > MOST_SHOWN ? `; and ${failures.length - MOST_SHOWN} more` : '';
  throw new Fault('memory_unavailable', `Cannot ${what} in every file. The others are done. ${shown}${more}`);
}
