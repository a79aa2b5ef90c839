/**
 * How much of the files that came with messages is kept: so many bytes of a chat and of all, the oldest go first. What is
 * gone is still told of in words where it stood.
 */
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

export interface MediaLimits {
  bytesPerChat: number;
  bytes: number;
}

interface KeptFile {
  chatId: string;
  path: string;
  bytes: number;
  at: number;
}

/** What lies below the media folder. */
export async function mediaBytes(folder: string): Promise<number> {
  return sumOf(await list(folder));
}

/** Removes what is beyond the limits; how many files and bytes that were. */
export async function trimMedia(
  folder: string,
  limits: MediaLimits,
): Promise<{ files: number; bytes: number }> {
  const newestFirst = (await list(folder)).sort((a, b) => b.at - a.at);
  const perChat = new Map<string, number>();
  let all = 0;
  const gone = { files: 0, bytes: 0 };
  for (const { chatId, path, bytes } of newestFirst) {
    const ofChat = (perChat.get(chatId) ?? 0) + bytes;
    if (ofChat <= limits.bytesPerChat && all + bytes <= limits.bytes) {
      perChat.set(chatId, ofChat);
      all += bytes;
      continue;
    }
    await rm(path, { force: true });
    gone.files++;
    gone.bytes += bytes;
    // What is older than one that went goes, too, whatever its size: nobody expects holes.
    perChat.set(chatId, Number.POSITIVE_INFINITY);
  }
  return gone;
}

async function list(folder: string): Promise<KeptFile[]> {
  const found: KeptFile[] = [];
  for (const chatId of await namesIn(folder)) {
    for (const name of await namesIn(join(folder, chatId))) {
      const path = join(folder, chatId, name);
      const entry = await stat(path).catch(() => null);
      // Meanwhile it may have gone; what is no file is not ours.
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

function sumOf(files: KeptFile[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes, 0);
}
