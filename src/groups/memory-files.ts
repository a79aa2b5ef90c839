/** Lists a chat's memory files: every MEMORY.md, the daily logs, the archives. */
import { lstatSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { isAgentId } from '../core/agents.js';
import { isDayFile } from '../core/daily-log.js';
import { isFolder, namesIn, statIfThere } from '../core/file-access.js';
import type { ChatId } from '../core/ids.js';
import type { KeptByAgents, MemoryFile, MemoryOwner } from '../core/memory.js';
import { composedNames } from '../core/names-on-disk.js';
import { archiveName, oldestFirst, parseArchiveName } from './archive-name.js';
import type { Kind } from './forget-in-file.js';
import { agentClipboards, archiveFile, archiveFolder, chatFolder, dailyFolder, memoryFile } from './paths.js';
import { isReserved } from './slug.js';

/** A folder that contains such files. */
export interface MemoryFolder {
  path: string;
  /** Relative to the chat's folder. */
  name: string;
  kind: Kind;
  holds(file: string): boolean;
}

/**
 * The folders of all personas, including deleted ones, then those of the daily log, the archives and the clipboards.
 * `clipboardDir`: `data/clipboard`; null: there are none.
 */
export async function memoryFolders(
  groupsDir: string,
  chatId: ChatId,
  clipboardDir: string | null,
): Promise<MemoryFolder[]> {
  const chat = chatFolder(groupsDir, chatId);
  const names = (await namesIn(chat)).filter((name) => !name.startsWith('.') && !isReserved(name)).sort();
  const isMemory = (file: string) => file === 'MEMORY.md';
  const isText = (file: string) => file.endsWith('.md') && !file.startsWith('.');
  return [
    ...names
      .map((name): MemoryFolder => ({ path: join(chat, name), name, kind: 'memory', holds: isMemory }))
      // If it is unclear whether it is a folder, it counts as one: reading it reports what is wrong.
      .filter(({ path }) => isFolder(path, true)),
    { path: dailyFolder(groupsDir, chatId), name: 'memory', kind: 'daily', holds: isText },
    { path: archiveFolder(groupsDir, chatId), name: 'archive', kind: 'archive', holds: isText },
    ...(clipboardDir === null
      ? []
      : [
          {
            path: chatFolder(clipboardDir, chatId),
            name: 'clipboard',
            kind: 'clipboard' as const,
            holds: isText,
          },
          {
            path: agentClipboards(clipboardDir, chatId),
            name: 'clipboard/agents',
            kind: 'clipboard' as const,
            holds: isText,
          },
        ]),
  ];
}

/** What agents keep of a chat: they may have put links and folders there, so whatever is no plain file is passed by. */
export async function agentFolders(
  agentsDir: string,
  chatId: ChatId,
  { isOthers, shared }: KeptByAgents,
): Promise<MemoryFolder[]> {
  const agents = (await namesIn(agentsDir)).filter(isAgentId).sort();
  const folders = agents.flatMap((agent): MemoryFolder[] => {
    const at = (...names: string[]) => join(agentsDir, agent, ...names);
    const spaces = [
      ['chats', basename(chatFolder(agentsDir, chatId))],
      ...(shared ? [['internal_space']] : []),
    ];
    return [
      ...spaces.flatMap((space) =>
        [at(...space), at(...space, 'memories')].map((path) => ({
          ...{ path, name: relative(dirname(agentsDir), path), kind: 'clipboard' as const },
          holds: (file: string) => file.endsWith('.md') && isPlainFile(join(path, file)),
        })),
      ),
      {
        ...{ path: at('sessions'), name: `agents/${agent}/sessions`, kind: 'transcript' },
        holds: (file) =>
          file.endsWith('.jsonl') && !isOthers(file) && isPlainFile(join(at('sessions'), file)),
      },
    ];
  });
  return folders.filter(({ path }) => lstatSync(path, { throwIfNoEntry: false })?.isDirectory());
}

function isPlainFile(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

/** The files of one folder; newest first where names start with a date. */
export async function filesIn({ path, name, holds }: MemoryFolder): Promise<MemoryFile[]> {
  const files = (await namesIn(path)).filter(holds).sort().reverse();
  return files.map((file) => ({ file: `${name}/${file}`, path: join(path, file) }));
}

/** The files of one persona's memory in a chat that exist and are not empty. */
export async function filesOfOwner(groupsDir: string, owner: MemoryOwner): Promise<MemoryFile[]> {
  const { chatId, personaId } = owner;
  const days = (await namesIn(dailyFolder(groupsDir, chatId))).filter(isDayFile).sort().reverse();
  const archives = (await archivesOf(groupsDir, owner)).reverse();
  return [
    { file: `${personaId}/MEMORY.md`, path: memoryFile(groupsDir, owner) },
    ...days.map((name) => ({ file: `memory/${name}`, path: join(dailyFolder(groupsDir, chatId), name) })),
    ...archives.map((name) => ({ file: `archive/${name}`, path: archiveFile(groupsDir, chatId, name) })),
  ].filter(({ path }) => {
    const found = statIfThere(path);
    return found?.isFile() && found.size > 0;
  });
}

/** The names of one persona's archives, oldest first. */
export async function archivesOf(groupsDir: string, { chatId, personaId }: MemoryOwner): Promise<string[]> {
  return composedNames(await namesIn(archiveFolder(groupsDir, chatId)))
    .map(parseArchiveName)
    .filter((name) => name !== null)
    .filter((name) => name.personaId === personaId)
    .sort(oldestFirst)
    .map(archiveName);
}
