/** The files of recorded turns, `data/replay/<chat_id>/<persona_id>/<start of the first>.turns.gz`: read, and removed when old. */
import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { constants, gunzip } from 'node:zlib';
import { isMissing, namesIn, nullIfMissing } from '../core/file-access.js';
import { nameOnDisk } from '../core/file-names.js';
import type { ChatId, PersonaId } from '../core/ids.js';
import type { TurnRecord } from '../core/journal.js';

export const VERSION = 3;

/** Throws for an invalid folder name: then the store was tampered with. */
export function folderOf(folder: string, chatId: ChatId, personaId: PersonaId | null): string {
  const names = personaId === null ? [chatId] : [chatId, personaId];
  const wrong = names.find((name) => !/^[^./\\\0][^/\\\0]*$/u.test(name));
  if (wrong !== undefined) throw new Error(`${JSON.stringify(wrong)} names no folder of records`);
  const chat = join(folder, chatId);
  return personaId === null ? chat : join(chat, nameOnDisk(chat, personaId));
}

/** A file of records: gzip members, each one line of JSON. */
export const ENDING = '.turns.gz';

/** As names of files begin: they sort by it. */
export function nameAt(at: number): string {
  return new Date(at).toISOString().replaceAll(/[-:Z]/g, '');
}

const uncompressed = promisify(gunzip);

/** A file is named by the beginning of its first run; its end is written soon after the end of its last. */
const WRITTEN_LATE_MS = 60_000;

/**
 * The records of a turn, oldest first; `torn`: how many of them, and of its persona's files, are unreadable or cut.
 * `during`: from the turn's start to its end; files of other times are not read.
 */
export async function recordsOf(
  folder: string,
  { chatId, personaId, turnId }: { chatId: ChatId; personaId: PersonaId; turnId: string },
  during: { from: number; to: number } | null = null,
): Promise<{ records: TurnRecord[]; torn: number }> {
  const place = folderOf(folder, chatId, personaId);
  const names = (await namesIn(place)).filter((each) => each.endsWith(ENDING)).sort();
  const records: TurnRecord[] = [];
  let torn = 0;
  for (const name of names) {
    if (during !== null && !(await mayHold(join(place, name), name, during))) continue;
    const { lines, isCut } = await linesIn(join(place, name), turnId);
    if (isCut) torn++;
    for (const line of lines) {
      const record = recordIn(line);
      if (record === null) torn++;
      else if (record.turnId === turnId) records.push(record);
    }
  }
  return { records, torn };
}

async function mayHold(
  path: string,
  name: string,
  { from, to }: { from: number; to: number },
): Promise<boolean> {
  if (to < Number.MAX_SAFE_INTEGER && name > nameAt(to + WRITTEN_LATE_MS)) return false;
  const found = await stat(path).catch(nullIfMissing);
  return found !== null && found.mtimeMs >= from - WRITTEN_LATE_MS;
}

/** The whole lines of a file that hold the word. A crash or a full disk may have cut the last one. */
async function linesIn(path: string, word: string): Promise<{ lines: string[]; isCut: boolean }> {
  try {
    const bytes = await uncompressed(await readFile(path), { finishFlush: constants.Z_SYNC_FLUSH });
    const lines: string[] = [];
    for (let at = bytes.indexOf(word); at >= 0; ) {
      const end = bytes.indexOf('\n', at);
      if (end < 0) break;
      lines.push(bytes.toString('utf8', bytes.lastIndexOf('\n', at) + 1, end));
      at = bytes.indexOf(word, end);
    }
    return { isCut: bytes.length > 0 && bytes.at(-1) !== 0x0a, lines };
  } catch {
    return { isCut: true, lines: [] };
  }
}

/** null if unreadable or of another version. */
function recordIn(line: string): TurnRecord | null {
  try {
    const { v, ...record } = JSON.parse(line);
    const requests: TurnRecord['requests'] = record.requests;
    const isWhole = requests.every(({ messages, end }) => Array.isArray(messages) && end !== undefined);
    return v === VERSION && isWhole ? record : null;
  } catch {
    return null;
  }
}

/** Removes records older than `before`, and the oldest beyond `bytes`. */
export async function trimRecords(
  folder: string,
  before: number,
  bytes: number,
  signal: AbortSignal,
): Promise<void> {
  const names = await readdir(folder, { recursive: true }).catch((error) => {
    if (isMissing(error)) return [];
    throw error;
  });
  const files: { path: string; size: number; at: number }[] = [];
  for (const name of names) {
    if (signal.aborted) return;
    const path = join(folder, name);
    // It may have been removed meanwhile.
    const entry = await stat(path).catch(() => null);
    if (entry?.isFile()) files.push({ path, size: entry.size, at: entry.mtimeMs });
  }
  let all = 0;
  for (const { path, size, at } of files.sort((a, b) => b.at - a.at)) {
    if (signal.aborted) return;
    all += size;
    if (at < before || all > bytes) await rm(path, { force: true });
  }
}
