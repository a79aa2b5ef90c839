/**
 * A file of the working folder that is sent. It is copied to what was sent in the chat, for it goes out later: by then
 * something else may stand under its name, or a link that leads elsewhere.
 */
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import type { OutgoingFile } from '../../core/channel.js';
import { sizeInWords } from '../../core/cut.js';
import { openToRead, PathRefusal } from './paths.js';
import type { Places } from './roots.js';

/** No platform takes more from a bot. */
const MOST_BYTES = 100_000_000;
const SENT = 'sent-';
const PIECE_BYTES = 1 << 20;

/** Whether a file among what was sent in a chat did not come with a message: a copy, or one that is still being written. */
export function isNoMessages(name: string): boolean {
  return name.startsWith(SENT) || name.endsWith('.tmp');
}

/** `key` names the copy: the same for the same message. Throws a `PathRefusal`. */
export async function ownFile(places: Places, path: string, key: string): Promise<OutgoingFile> {
  // Agents send nothing.
  if (places.media === null) throw new PathRefusal('Permission denied: there is no chat to send a file to.');
  const { handle, bytes, folder, name: sent, isMedia } = await openToRead(places, path);
  try {
    const name = basename(path);
    if (isMedia) return { path: join(folder.real, sent), name };
    if (bytes > MOST_BYTES) {
      throw new PathRefusal(`${name} is too large to be sent: it has ${sizeInWords(bytes)}.`);
    }
    const copy = join(places.media, `${SENT}${key}${plainEndOf(name)}`);
    await copyTo(handle, copy);
    return { path: copy, name };
  } finally {
    await handle.close();
  }
}

async function copyTo(from: FileHandle, path: string): Promise<void> {
  const temporary = `${path}.tmp`;
  const to = await open(temporary, 'w', 0o600);
  try {
    const piece = Buffer.allocUnsafe(PIECE_BYTES);
    for (let at = 0; at < MOST_BYTES; ) {
      const { bytesRead } = await from.read(piece, 0, piece.length, at);
      if (bytesRead === 0) break;
      await to.writeFile(piece.subarray(0, bytesRead));
      at += bytesRead;
    }
    await to.sync();
    await to.close();
    await rename(temporary, path);
  } catch (error) {
    await to.close();
    await rm(temporary, { force: true });
    throw error;
  }
}

function plainEndOf(name: string): string {
  const end = extname(name);
  return /^\.[A-Za-z0-9]{1,10}$/.test(end) ? end.toLowerCase() : '';
}
