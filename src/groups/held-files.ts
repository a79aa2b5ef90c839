/** Which files of a chat hold what is remembered: every MEMORY.md, the daily logs, the archives. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { ChatId } from '../core/ids.js';
import type { MemoryFile, MemoryOwner } from '../core/memory.js';
import { archiveName, oldestFirst, parseArchiveName } from './archive-name.js';
import { isDailyName } from './daily.js';
import { isMissing, namesIn, unavailable } from './disk.js';
import type { Kind } from './erasure.js';
import { archiveFolder, chatFolder, dailyFolder, memoryFile } from './paths.js';
import { isReserved } from './slug.js';

export interface HeldFile extends MemoryFile {
  kind: Kind;
}

/** A folder that such files lie in. */
export interface Holder {
  path: string;
  /** Below the chat's folder. */
  name: string;
  kind: Kind;
  holds(file: string): boolean;
}

/** Those of all personas, deleted ones too, then the daily log's and the archives'. */
export async function foldersOfChat(groupsDir: string, chatId: ChatId): Promise<Holder[]> {
  const chat = chatFolder(groupsDir, chatId);
  const names = (await namesIn(chat)).filter((name) => !name.startsWith('.') && !isReserved(name)).sort();
  const personas = names
    .map((name): Holder => ({ path: join(chat, name), name, kind: 'memory', holds: isMemory }))
    .filter(({ path }) => mayBeFolder(path));
  return [
    ...personas,
    { path: dailyFolder(groupsDir, chatId), name: 'memory', kind: 'daily', holds: isText },
    { path: archiveFolder(groupsDir, chatId), name: 'archive', kind: 'archive', holds: isText },
  ];
}

/** Of a folder, the newest first where names begin with a date. */
export async function filesIn({ path, name, kind, holds }: Holder): Promise<HeldFile[]> {
  const files = (await namesIn(path)).filter(holds).sort().reverse();
  return files.map((file) => ({ file: `${name}/${file}`, path: join(path, file), kind }));
}

/** What one persona's memory in a chat consists of, as far as it is there and says anything. */
export async function filesOfOwner(groupsDir: string, owner: MemoryOwner): Promise<MemoryFile[]> {
  const { chatId, personaId } = owner;
  const days = (await namesIn(dailyFolder(groupsDir, chatId))).filter(isDailyName).sort().reverse();
  const archives = (await namesIn(archiveFolder(groupsDir, chatId)))
    .map(parseArchiveName)
    .filter((name) => name !== null)
    .filter((name) => name.personaId === personaId)
    .sort(oldestFirst)
    .reverse();
  const files: MemoryFile[] = [
    { file: `${personaId}/MEMORY.md`, path: memoryFile(groupsDir, owner) },
    ...days.map((name) => ({ file: `memory/${name}`, path: join(dailyFolder(groupsDir, chatId), name) })),
    ...archives.map(archiveName).map((name) => {
      return { file: `archive/${name}`, path: join(archiveFolder(groupsDir, chatId), name) };
    }),
  ];
  return files.filter(({ path }) => saysSomething(path));
}

function isMemory(file: string): boolean {
  return file === 'MEMORY.md';
}

function isText(file: string): boolean {
  return file.endsWith('.md') && !file.startsWith('.');
}

/** Also what cannot be told: whoever looks into it will say what is wrong. */
function mayBeFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    return !isMissing(error);
  }
}

function saysSomething(path: string): boolean {
  try {
    const found = statSync(path);
    return found.isFile() && found.size > 0;
  } catch (error) {
    if (isMissing(error)) return false;
    throw unavailable('read', path, error);
  }
}
