/** The paths under `groups/`. Ids become paths only here, so forged ids (`../x`) are stopped here. */
import { isAbsolute, join, relative } from 'node:path';
import { isDate } from '../core/daily-log.js';
import { Fault } from '../core/errors.js';
import { nameOnDisk } from '../core/file-names.js';
import type { ChatId, PersonaId } from '../core/ids.js';
import type { MemoryOwner } from '../core/memory.js';

const RESERVED = ['memory', 'archive', 'lorebooks'];

const MAX_BYTES = 60;

/** NFKC, lower case; keeps letters and digits of all scripts, else `-`. At most 60 bytes; may be empty. */
export function slug(name: string): string {
  let id = '';
  for (const character of name.normalize('NFKC').toLowerCase().normalize('NFKC')) {
    const belongs =
      /[\p{L}\p{N}]/u.test(character) || (/\p{M}/u.test(character) && /[\p{L}\p{M}]$/u.test(id));
    if (!belongs && (id === '' || id.endsWith('-'))) continue;
    const longer = id + (belongs ? character : '-');
    if (Buffer.byteLength(longer) > MAX_BYTES) break;
    id = longer;
  }
  return id.replace(/-$/, '');
}

export function isReserved(id: string): boolean {
  return RESERVED.includes(id);
}

/** Quick check for the form of most ids. */
const PLAIN_ID = /^(?=.{1,60}$)[a-z0-9]+(?:-[a-z0-9]+)*$/;

/** An id must equal its own slug; nothing else may become a folder. */
export function isPersonaId(id: string): boolean {
  return (PLAIN_ID.test(id) || (id !== '' && slug(id) === id)) && !isReserved(id);
}

const CHAT_ID = /^[A-Za-z0-9-]+_[A-Za-z0-9._@%-]+$/;

export function isChatId(id: string): boolean {
  return CHAT_ID.test(id) && id.length <= 255;
}

export function chatFolder(groupsDir: string, chatId: ChatId): string {
  if (!isChatId(chatId)) throw noFolder(chatId, 'chat');
  return join(groupsDir, chatId);
}

/** As the folder spells the name. */
export function onDisk(folder: string, name: string): string {
  return join(folder, nameOnDisk(folder, name));
}

export function personaFolder(groupsDir: string, chatId: ChatId, personaId: PersonaId): string {
  if (!isPersonaId(personaId)) throw noFolder(personaId, 'persona');
  return onDisk(chatFolder(groupsDir, chatId), personaId);
}

export function memoryFile(groupsDir: string, owner: MemoryOwner): string {
  return join(personaFolder(groupsDir, owner.chatId, owner.personaId), 'MEMORY.md');
}

export function dailyFolder(groupsDir: string, chatId: ChatId): string {
  return join(chatFolder(groupsDir, chatId), 'memory');
}

export function dailyFile(groupsDir: string, chatId: ChatId, date: string): string {
  if (!isDate(date))
    throw new Fault('memory_unavailable', `${JSON.stringify(date.slice(0, 80))} is not a day (YYYY-MM-DD)`);
  return join(dailyFolder(groupsDir, chatId), `${date}.md`);
}

export function archiveFolder(groupsDir: string, chatId: ChatId): string {
  return join(chatFolder(groupsDir, chatId), 'archive');
}

/** The name of a folder's lock, under which locks of files may be taken; never the other way (`Exclusive`). */
export function lockOf(folder: string): string {
  return `${folder}/`;
}

/** `file`: the name of an archive (`archives.ts`). */
export function archiveFile(groupsDir: string, chatId: ChatId, file: string): string {
  return onDisk(archiveFolder(groupsDir, chatId), file);
}

/** Folder for clipboards of agents that work for a chat; no persona's file can have a folder's name. */
export function agentClipboards(clipboardDir: string, chatId: ChatId): string {
  return join(chatFolder(clipboardDir, chatId), 'agents');
}

/** Relative if that is shorter, for the model and for operators. */
export function fromHere(path: string): string {
  const short = relative(process.cwd(), path);
  return short.startsWith('..') || isAbsolute(short) ? path : short;
}

function noFolder(id: string, kind: 'chat' | 'persona'): Fault {
  return new Fault(
    'memory_unavailable',
    `${JSON.stringify(id.slice(0, 80))} is not the id of a ${kind}, so no folder under groups/ belongs to it`,
  );
}
