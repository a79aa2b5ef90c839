/** Writes a file as a whole: whoever reads it, and whoever comes after a crash, finds the old one or the new one. */
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/** What people said is for the owner's eyes. */
export const PRIVATE = 0o600;

export async function writeWhole(file: string, write: (to: FileHandle) => Promise<void>): Promise<void> {
  const partial = `${file}.partial`;
  await rm(partial, { force: true, recursive: true });
  const handle = await open(partial, 'wx', PRIVATE);
  try {
    await write(handle);
    await handle.sync();
  } catch (error) {
    await handle.close();
    await rm(partial, { force: true });
    throw error;
  }
  await handle.close();
  await rename(partial, file);
  await syncFolderOf(file);
}

/** So that a power cut does not take the file's new name away. */
async function syncFolderOf(file: string): Promise<void> {
  const folder = await open(dirname(file), 'r').catch(() => null);
  try {
    // Some systems cannot be asked for this, and keep names by themselves.
    await folder?.sync().catch(() => {});
  } finally {
    await folder?.close();
  }
}
