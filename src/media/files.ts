/** Files of messages, `<folder>/<chat id>/<new id>.<extension>`. No part of a path comes from the sender. */
import { mkdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isFolder, namesIn } from '../core/file-access.js';
import { endingOf } from '../core/file-types.js';
import type { MediaFiles } from '../core/media.js';
import { writeWhole } from '../core/write-whole.js';

/** Nothing that a person sends is stored as a program. */
const PROGRAMS = ['js', 'ts', 'py', 'sh'];

export function extensionOf(mimeType: string | null): string {
  const ending = endingOf(mimeType ?? '');
  return PROGRAMS.includes(ending) ? 'bin' : ending;
}

/** A picture's type from its bytes; null if it is none, or may refer to external content (SVG). */
export function pictureType(bytes: Buffer): string | null {
  const at = (from: number, to: number) => bytes.toString('latin1', from, to);
  if (at(0, 3) === '\xff\xd8\xff') return 'image/jpeg';
  if (at(0, 8) === '\x89PNG\r\n\x1a\n') return 'image/png';
  if (at(0, 6) === 'GIF87a' || at(0, 6) === 'GIF89a') return 'image/gif';
  if (at(0, 4) === 'RIFF' && at(8, 12) === 'WEBP') return 'image/webp';
  if (at(0, 4) === 'II*\0' || at(0, 4) === 'MM\0*') return 'image/tiff';
  if (/^ftypavi[fs]/.test(at(4, 12))) return 'image/avif';
  if (/^ftyp(?:hei[cx]|hevc|mif1|msf1)/.test(at(4, 12))) return 'image/heic';
  // Two letters alone could be any text, so the header's reserved zeros are checked too.
  if (at(0, 2) === 'BM' && at(6, 10) === '\0\0\0\0') return 'image/bmp';
  return null;
}

export function createMediaFiles({ folder, newId }: { folder: string; newId: () => string }): MediaFiles {
  return {
    async keep(chatId, bytes, mimeType) {
      const file = `${chatId}/${newId()}.${extensionOf(mimeType)}`;
      await mkdir(join(folder, chatId), { recursive: true });
      await writeWhole(pathOf(folder, file), bytes);
      return file;
    },
    read: (file) => readFile(pathOf(folder, file)),
    remove: (file) => rm(pathOf(folder, file), { force: true }),
    path: (file) => pathOf(folder, file),
  };
}

/** Throws unless it is two plain names: then the store was tampered with. */
function pathOf(folder: string, file: string): string {
  if (!/^[^./\\\0][^/\\\0]*\/[^./\\\0][^/\\\0]*$/.test(file)) {
    throw new Error(`${JSON.stringify(file)} names no file of the media folder`);
  }
  return join(folder, file);
}

interface KeptFile {
  chatId: string;
  path: string;
  bytes: number;
  at: number;
}

/** Recent files are kept beyond any limit: somebody may be waiting for an answer about them. */
const RECENT_MS = 3_600_000;

export async function mediaBytes(folder: string): Promise<number> {
  const files = await list(folder);
  return files.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Removes files beyond the limits; stops when the signal aborts. */
export async function trimMedia(
  folder: string,
  limits: { bytesPerChat: number; bytes: number },
  now: number,
  signal: AbortSignal,
): Promise<{ files: number; bytes: number }> {
  const newestFirst = (await list(folder, signal)).sort((a, b) => b.at - a.at);
  const perChat = new Map<string, number>();
  let all = 0;
  const removed = { files: 0, bytes: 0 };
  for (const { chatId, path, bytes, at } of newestFirst) {
    if (signal.aborted) break;
    // Once a limit is exceeded, all older files are removed, even small ones.
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
    const inside = join(folder, chatId);
    if (!isFolder(inside, false)) continue;
    for (const name of await namesIn(inside)) {
      if (signal?.aborted) return [];
      const path = join(inside, name);
      // It may have been removed meanwhile.
      const entry = await stat(path).catch(() => null);
      if (entry?.isFile()) found.push({ chatId, path, bytes: entry.size, at: entry.mtimeMs });
    }
  }
  return found;
}
