/**
 * Writes an archive without holding it in memory: the messages are streamed into a temporary file; then the head, which
 * contains their number, and that file are written to another, which becomes the archive.
 */
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { ArchivedMessage, ArchiveHead } from '../core/archive.js';
import type { Zone } from '../core/dates.js';
import { codeOf, unavailable } from '../core/file-access.js';
import { openTemporary, type Temporary } from '../core/write-whole.js';
import { type Extent, headText, messageText } from './archive-text.js';

export async function writeArchive(
  path: string,
  head: ArchiveHead,
  pages: AsyncIterable<ArchivedMessage[]>,
  zone: Zone,
): Promise<void> {
  const body = await onDisk(path, async () => {
    await mkdir(dirname(path), { recursive: true });
    return openTemporary(path);
  });
  try {
    let extent: Extent | null = null;
    for await (const page of pages) {
      extent = page.reduce(extended, extent);
      const text = page.map((message) => messageText(message, zone)).join('');
      await onDisk(path, () => body.file.appendFile(text));
    }
    const start = headText(head, extent, zone);
    await onDisk(path, () => writeWhole(path, start, body));
  } finally {
    await discard(body);
  }
}

function extended(extent: Extent | null, { sentAt }: ArchivedMessage): Extent {
  if (extent === null) return { messages: 1, from: sentAt, until: sentAt };
  return {
    messages: extent.messages + 1,
    from: Math.min(extent.from, sentAt),
    until: Math.max(extent.until, sentAt),
  };
}

async function writeWhole(path: string, head: string, body: Temporary): Promise<void> {
  const whole = await openTemporary(path);
  try {
    await whole.file.writeFile(head);
    for await (const chunk of body.file.createReadStream({ start: 0, autoClose: false })) {
      await whole.file.writeFile(chunk);
    }
    await whole.file.sync();
    await rename(whole.path, path);
  } catch (error) {
    await discard(whole);
    throw error;
  }
  await whole.file.close();
  // A new file's name is on the disk only once its folder is synced; a new folder's, once its parent is.
  await syncFolder(dirname(path));
  await syncFolder(dirname(dirname(path)));
}

async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder, 'r');
    await handle.sync().finally(() => handle.close());
  } catch (error) {
    // Some file systems cannot sync folders; nothing more can be done there.
    if (!['EINVAL', 'EPERM', 'EISDIR', 'ENOTSUP'].includes(codeOf(error))) throw error;
  }
}

async function discard({ path, file }: Temporary): Promise<void> {
  await file.close();
  await rm(path, { force: true });
}

async function onDisk<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw unavailable('write', path, error);
  }
}
