/** `/memory forget` on disk: looks a phrase up in all that is remembered in a chat, and removes it for good. */
import { lstatSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { setImmediate as nextPass } from 'node:timers/promises';
import { describe, Fault } from '../core/errors.js';
import type { ChatId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { FoundLine, Memory } from '../core/memory.js';
import type { Phrase } from '../core/phrase.js';
import type { UpdateFile } from './atomic.js';
import { readIfThere } from './disk.js';
import { linesHolding, withoutPhrase } from './erasure.js';
import { filesIn, foldersOfChat, type HeldFile } from './held-files.js';
import { followLinks } from './links.js';
import type { Alone } from './locks.js';
import { archiveFolder } from './paths.js';
import { removeLeftOvers } from './temporary.js';

export interface ForgettingOptions {
  groupsDir: string;
  update: UpdateFile;
  alone: Alone;
  log: Log;
}

/** How many files are looked at in one pass of the event loop. */
const AT_ONCE = 50;
const MOST_SHOWN = 20;

export function forgetting(options: ForgettingOptions): Pick<Memory, 'find' | 'erase'> {
  const { groupsDir, update, alone, log } = options;
  return { find, erase };

  async function find(chatId: ChatId, phrase: Phrase, most: number): Promise<FoundLine[]> {
    const found: FoundLine[] = [];
    const failures: unknown[] = [];
    let seen = 0;
    for (const { file, path, kind } of await allFiles(chatId, failures)) {
      if (found.length >= most) break;
      if (++seen % AT_ONCE === 0) await nextPass();
      await tried(failures, async () => {
        const bytes = await readIfThere(path);
        const lines = bytes === null ? [] : linesHolding(bytes, kind, phrase);
        found.push(...lines.slice(0, most - found.length).map((text) => ({ file, text })));
      });
    }
    // Without any, nobody can say that it stands nowhere.
    if (found.length === 0) failIfAny('look for words to be forgotten', failures);
    for (const error of failures) {
      log.warn({ error: describe(error) }, 'passed over while looking for words to be forgotten');
    }
    return found;
  }

  async function erase(chatId: ChatId, phrase: Phrase): Promise<string[]> {
    const changed: string[] = [];
    const failures: unknown[] = [];
    // No archive is written meanwhile, so none appears with the words after the folder was looked through.
    await alone(archiveFolder(groupsDir, chatId), async () => {
      for (const held of await allFiles(chatId, failures)) {
        await tried(failures, async () => {
          if (await eraseIn(held, phrase)) changed.push(held.file);
          await removeBesideTarget(held.path);
        });
      }
      for (const folder of await foldersOfChat(groupsDir, chatId)) {
        await tried(failures, () => removeLeftOvers(folder.path, folder.holds));
      }
    });
    failIfAny('forget', failures);
    return changed;
  }

  async function allFiles(chatId: ChatId, failures: unknown[]): Promise<HeldFile[]> {
    const files: HeldFile[] = [];
    for (const folder of await foldersOfChat(groupsDir, chatId)) {
      await tried(failures, async () => void files.push(...(await filesIn(folder))));
    }
    return files;
  }

  function eraseIn({ path, kind }: HeldFile, phrase: Phrase): Promise<boolean> {
    return update(path, (bytes) => bytes && withoutPhrase(bytes, kind, phrase));
  }
}

/** What a crash left behind of a file that is written through a link lies where the link leads. */
async function removeBesideTarget(path: string): Promise<void> {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return;
  const target = await followLinks(path);
  await removeLeftOvers(dirname(target), (name) => name === basename(target));
}

async function tried(failures: unknown[], work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    failures.push(error);
  }
}

function failIfAny(what: string, failures: unknown[]): void {
  if (failures.length === 0) return;
  const shown = failures.slice(0, MOST_SHOWN).map(describe).join('; ');
  const more = failures.length > MOST_SHOWN ? `; and ${failures.length - MOST_SHOWN} more` : '';
  throw new Fault('memory_unavailable', `Cannot ${what} in every file. The others are done. ${shown}${more}`);
}
