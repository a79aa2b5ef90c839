/** `coterie persona import` and `export`: characters from files and into files. The gateway may run. */
import { open, readFile, writeFile } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { openAudit } from './audit-start.js';
import { BY_OPERATOR, commandConfig, commandLog, quoted, say, wrongOption } from './command.js';
import { CARD_LIMITS, type ImportAnswer, importText, type WriteForm } from './core/cards.js';
import { printableLine } from './core/cut.js';
import { Fault } from './core/errors.js';
import { isChatId } from './groups/paths.js';
import { cardsOf } from './parts.js';

export interface PersonaImportOptions {
  chat?: string;
  name?: string;
}

/** Each file by itself: one that is refused does not keep the others back. */
export async function importPersonas(
  configFile: string | undefined,
  files: string[],
  { chat, name }: PersonaImportOptions,
): Promise<void> {
  if (chat !== undefined && !isChatId(chat)) throw wrongOption('chat', chat, 'the ID of a chat');
  if (name !== undefined && files.length > 1) throw wrongOption('name', name, 'a single file with it');
  const { config } = await commandConfig(configFile);
  const log = commandLog(config);
  const cards = cardsOf(config, log);
  const audit = openAudit(config, log);
  for (const path of files) {
    const file = await contentOf(path);
    const what = `persona import ${printableLine(basename(path))}`;
    await audit.record({ ...BY_OPERATOR, kind: 'command', where: chat ?? null, what });
    const ask = { chatId: chat ?? null, fileName: basename(path), name: name ?? null };
    const answer: ImportAnswer =
      file === null
        ? { kind: 'refused', reason: 'The file is larger than 100 MB.' }
        : await cards.import({ ...ask, file });
    if (answer.kind === 'refused' || answer.kind === 'other') process.exitCode = 1;
    say(`${quoted(path)}: ${importText(answer)}`);
  }
}

async function contentOf(path: string): Promise<Buffer | null> {
  try {
    const file = await open(path);
    try {
      const { size } = await file.stat();
      return size > CARD_LIMITS.fileBytes ? null : await readFile(file);
    } finally {
      await file.close();
    }
  } catch (error) {
    throw new Fault('configuration', `${quoted(path)} cannot be read`, error);
  }
}

export interface PersonaExportOptions {
  as?: string;
}

const FORMS: readonly WriteForm[] = ['png', 'json', 'charx'];

export async function exportPersona(
  configFile: string | undefined,
  chatId: string,
  name: string,
  path: string | undefined,
  { as }: PersonaExportOptions,
): Promise<void> {
  const form = FORMS.find((each) => each === as);
  if (as !== undefined && form === undefined) throw wrongOption('as', as, 'png, json or charx');
  if (!isChatId(chatId)) throw new Fault('configuration', `${quoted(chatId)} is not the ID of a chat`);
  const { config } = await commandConfig(configFile);
  const made = await cardsOf(config, commandLog(config)).export(chatId, name, form ?? null);
  if (made === null) {
    throw new Fault('configuration', `There is no persona ${quoted(name)} in the chat ${quoted(chatId)}`);
  }
  const target = path ?? made.fileName;
  try {
    await writeFile(target, made.file, { flag: 'wx' });
  } catch (error) {
    throw new Fault(
      'configuration',
      `${quoted(resolve(target))} cannot be written; name another file`,
      error,
    );
  }
  say(`Wrote ${printableLine(target)}.`);
}
