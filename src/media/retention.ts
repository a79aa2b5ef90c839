/**
 * How much of the files that came with messages is kept: so many bytes of a chat and of all, the oldest go first. In the
 * conversation, the line that names a file stays.
 */
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

export interface MediaLimits {
  bytesPerChat: number;
  bytes: number;
}

export interface RemovedFiles {
  files: number;
  bytes: number;
}

interface KeptFile {
  chatId: string;
  path: string;
  bytes: number;
  at: number;
}

/** What came so recently stays beyond any limit: somebody may be waiting for an answer about it. */
const RECENT_MS = 3_600_000;

/** How much there is below the media folder. */
export async function mediaBytes(folder: string): Promise<number> {
  const files = await list(folder);
  return files.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Removes what is beyond the limits; ends early when the signal aborts. */
export async function trimMedia(
  folder: string,
  limits: MediaLimits,
  now: number,
  signal: AbortSignal,
): Promise<RemovedFiles> {
  const newestFirst = (await list(folder, signal)).sort((a, b) => b.at - a.at);
  const perChat = new Map<string, number>();
  let all = 0;
  const removed = { files: 0, bytes: 0 };
  for (const { chatId, path, bytes, at } of newestFirst) {
    if (signal.aborted) break;
    // Once a limit was passed, whatever is older goes, small as it may be.
    const ofChat = (perChat.get(chatId) ?? 0) + bytes;
    perChat.set(chatId, ofChat > limits.bytesPerChat ? Number.POSITIVE_INFINITY : ofChat);
    if (ofChat <= limits.bytesPerChat) all += bytes;
    if (all > limits.bytes) all = Number.POSITIVE_INFINITY;
    if ((ofChat <= limits.bytesPerChat && all <= limits.bytes) || at > now - RECENT_MS) continue;
    await rm(path, { force: true });
    removed.files++;
    removed.bytes += bytes;
  }
  return removed;
}

async function list(folder: string, signal?: AbortSignal): Promise<KeptFile[]> {
  const found: KeptFile[] = [];
  for (const chatId of await namesIn(folder)) {
    for (const name of await namesIn(join(folder, chatId))) {
      if (signal?.aborted) return [];
      const path = join(folder, chatId, name);
      // It may have gone meanwhile.
      const entry = await stat(path).catch(() => null);
      if (entry?.isFile()) found.push({ chatId, path, bytes: entry.size, at: entry.mtimeMs });
    }
  }
  return found;
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return [];
    throw error;
  }
}
