/**
 * The files of records: `data/replay/<chat_id>/<persona_id>/<when it was begun>-<id>.jsonl.gz`, each line compressed for
 * itself, so that a line that was torn off takes no other with it. A file holds up to a day, or some hundred turns.
 */
import { closeSync, constants, createReadStream, mkdirSync, openSync, writeFileSync } from 'node:fs';
import * as fs from 'node:fs/promises';
import { join } from 'node:path';
import { createGunzip } from 'node:zlib';
import { nameOnDisk } from '../core/beneath.js';
import type { ChatId, PersonaId } from '../core/ids.js';
import { lineReader, type TurnRecord } from './record.js';

const ENDING = '.jsonl.gz';
/** Conversations stand in them. */
const PRIVATE_FOLDER = 0o700;
const PRIVATE_FILE = 0o600;

/** Throws for what is no name of a folder: then the store was tampered with. */
export function folderOf(folder: string, chatId: ChatId, personaId: PersonaId | null): string {
  const names = personaId === null ? [chatId] : [chatId, personaId];
  const wrong = names.find((name) => !/^[^./\\\0][^/\\\0]*$/u.test(name));
  if (wrong !== undefined) throw new Error(`${JSON.stringify(wrong)} names no folder of records`);
  const chat = join(folder, chatId);
  return personaId === null ? chat : join(chat, nameOnDisk(chat, personaId));
}

/**
 * Begins a new file; returns its path. Nothing waits here for the disk, so it is done at once: with the threads that wait for
 * disks, opening, writing and closing would cost the processor ten times as much.
 */
export function beginFile(
  folder: string,
  { at, id, bytes }: { at: number; id: string; bytes: Buffer },
): string {
  mkdirSync(folder, { recursive: true, mode: PRIVATE_FOLDER });
  const time = new Date(at).toISOString().replaceAll(/[-:]|\..*$/g, '');
  const path = join(folder, `${time}-${id}${ENDING}`);
  writeFileSync(path, bytes, { flag: 'wx', mode: PRIVATE_FILE });
  return path;
}

/** False where the file has gone meanwhile: what would follow could not be read without what it begins with. */
export function goOnWith(path: string, bytes: Buffer): boolean {
  try {
    const file = openSync(path, constants.O_WRONLY | constants.O_APPEND);
    try {
      writeFileSync(file, bytes);
    } finally {
      closeSync(file);
    }
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

/** The records of a turn, oldest first; `torn`: how many files could not be read to their end. */
export async function recordsOf(
  folder: string,
  { chatId, personaId, turnId }: { chatId: ChatId; personaId: PersonaId; turnId: string },
): Promise<{ records: TurnRecord[]; torn: number }> {
  const place = folderOf(folder, chatId, personaId);
  const records: TurnRecord[] = [];
  let torn = 0;
  for (const name of (await namesIn(place)).filter((each) => each.endsWith(ENDING)).sort()) {
    const read = lineReader();
    const take = (line: string) => {
      const record = read(line);
      if (record?.turnId === turnId) records.push(record);
      return record !== null;
    };
    if (!(await readLines(join(place, name), take))) torn++;
  }
  return { records, torn };
}

/** False where something in it is no line, or its end is missing; nothing behind that can be read. */
async function readLines(path: string, take: (line: string) => boolean): Promise<boolean> {
  let rest = '';
  try {
    const chunks = createReadStream(path).pipe(createGunzip()).setEncoding('utf8');
    for await (const chunk of chunks) {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      if (!lines.every(take)) return false;
    }
    return rest === '';
  } catch {
    return false;
  }
}

/** Removes what is older than `before`, and the oldest beyond so many bytes. */
export async function trimRecords(
  folder: string,
  { before, bytes }: { before: number; bytes: number },
  signal: AbortSignal,
): Promise<void> {
  const files = await filesBelow(folder, signal);
  let all = 0;
  for (const { path, size, at } of files.sort((a, b) => b.at - a.at)) {
    if (signal.aborted) return;
    all += size;
    if (at < before || all > bytes) await fs.rm(path, { force: true });
  }
}

async function filesBelow(folder: string, signal: AbortSignal) {
  const files: { path: string; size: number; at: number }[] = [];
  for (const chat of await namesIn(folder)) {
    for (const persona of await namesIn(join(folder, chat))) {
      for (const name of await namesIn(join(folder, chat, persona))) {
        if (signal.aborted) return [];
        const path = join(folder, chat, persona, name);
        // It may have gone meanwhile.
        const entry = await fs.stat(path).catch(() => null);
        if (entry?.isFile()) files.push({ path, size: entry.size, at: entry.mtimeMs });
      }
    }
  }
  return files;
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await fs.readdir(folder);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR');
}
