/** The files of recorded turns: read, and removed when old. */
import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { constants, gunzip } from 'node:zlib';
import { isMissing, namesIn } from '../core/file-access.js';
import type { ChatId, PersonaId } from '../core/ids.js';
import type { RecordedTurn, TurnSight } from '../core/journal.js';
import type { ModelRequest, ToolCall, Usage } from '../core/model.js';
import { ENDING, folderOf } from './paths.js';

export interface TurnRecord extends RecordedTurn {
  startedAt: number;
  endedAt: number;
  sight: TurnSight | null;
  requests: RecordedRequest[];
}

export interface RecordedRequest extends Omit<ModelRequest, 'messages'> {
  at: number;
  ms: number;
  messages: RecordedMessage[];
  end: RecordedEnd;
}

/** Without the fields returned to the server, which are in the store, and without pictures. */
export type RecordedMessage =
  | { role: 'system'; content: string }
  | { role: 'user'; content: string; images?: { mimeType: string; bytes: number }[] }
  | { role: 'assistant'; content: string; calls: ToolCall[] }
  | { role: 'tool'; callId: string; content: string };

export type RecordedEnd =
  | {
      kind: 'done';
      text: string;
      calls: ToolCall[];
      usage: Usage | null;
      further?: Usage | undefined;
      model: string;
      truncated: boolean;
      cut?: true | undefined;
    }
  | { kind: 'failed'; code: string; why: string };

export const VERSION = 3;

const uncompressed = promisify(gunzip);

/** The records of a turn, oldest first; `torn`: how many of them, and of its persona's files, are unreadable or cut. */
export async function recordsOf(
  folder: string,
  { chatId, personaId, turnId }: { chatId: ChatId; personaId: PersonaId; turnId: string },
): Promise<{ records: TurnRecord[]; torn: number }> {
  const place = folderOf(folder, chatId, personaId);
  const records: TurnRecord[] = [];
  let torn = 0;
  for (const name of (await namesIn(place)).filter((each) => each.endsWith(ENDING)).sort()) {
    const { lines, isCut } = await linesIn(join(place, name));
    if (isCut) torn++;
    for (const line of lines) {
      const record = line.includes(turnId) ? recordIn(line) : undefined;
      if (record === null) torn++;
      else if (record?.turnId === turnId) records.push(record);
    }
  }
  return { records, torn };
}

/** The whole lines of a file. A crash or a full disk may have cut the last one. */
async function linesIn(path: string): Promise<{ lines: string[]; isCut: boolean }> {
  try {
    const bytes = await uncompressed(await readFile(path), { finishFlush: constants.Z_SYNC_FLUSH });
    const lines = bytes.toString('utf8').split('\n');
    return { isCut: lines.pop() !== '', lines };
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
