/** `/memory export`: the files of a persona's memory, one by one. */
import type { Memory, MemoryFile, MemoryOwner } from '../../core/memory.js';
import { counted } from '../quoting.js';
import type { CommandAnswer, CommandCall, CommandServices } from './command.js';
import { activeHere } from './here.js';

const MOST_FILES = 30;

export async function exportFiles(
  { command }: CommandCall,
  { memory, archives }: CommandServices,
): Promise<CommandAnswer> {
  const owner = activeHere(command);
  const reset = (await archives.list(owner.chatId, owner.personaId)).filter(({ reset }) => reset);
  // What somebody had forgotten is nobody's any more, also where an operator still keeps the file.
  const forgotten = new Set(reset.map(({ file }) => `archive/${file}`));
  const all = (await memory.files(owner)).filter(({ file }) => !forgotten.has(file));
  const files: MemoryFile[] = [];
  let looked = 0;
  for (const each of all) {
    if (files.length === MOST_FILES) break;
    looked++;
    if (!(await isEmpty(memory, owner, each.file))) files.push(each);
  }
  if (files.length === 0) return { text: 'There are no files to send: I remember nothing here yet.' };
  const left = all.length - looked;
  const rest =
    left === 0
      ? ''
      : ` ${counted(left, 'older file')} ${left === 1 ? 'stays' : 'stay'} in the folder \`groups/${owner.chatId}/\`.`;
  return {
    text: `Here ${files.length === 1 ? 'is' : 'are'} ${counted(files.length, 'file')}.${rest}`,
    files: files.map(({ file, path }) => ({ path, name: file.replaceAll('/', '-') })),
  };
}

/** Also true for a MEMORY.md without text under its headings. Archives are never empty. */
async function isEmpty(memory: Memory, owner: MemoryOwner, file: string): Promise<boolean> {
  if (file === `${owner.personaId}/MEMORY.md`) {
    const whole = await memory.readAll(owner);
    return whole.trim() === '' || (await memory.snapshot(owner)).text === '';
  }
  const date = /^memory\/(.+)\.md$/.exec(file)?.[1];
  return date !== undefined && (await memory.readDaily(owner.chatId, date)) === '';
}
