/** A file to be sent: copied first, because the original may have changed by the time it is sent. */
import { basename, extname, join } from 'node:path';
import type { OutgoingFile } from '../../core/channel.js';
import { sizeInWords } from '../../core/cut.js';
import { writeWhole } from '../../core/write-whole.js';
import { openToRead, PathRefusal } from './paths.js';
import type { FileRoots } from './roots.js';

/** The largest upload that any platform accepts from a bot. */
const MOST_BYTES = 100_000_000;
const SENT = 'sent-';

/** Whether a file in a chat's media folder is not from a message: a copy, or one still being written. */
export function isNoMessages(name: string): boolean {
  return name.startsWith(SENT) || name.endsWith('.tmp');
}

/** `key` names the copy: the same for the same message. Throws a `PathRefusal`. */
export async function ownFile(allowed: FileRoots, path: string, key: string): Promise<OutgoingFile> {
  if (allowed.media === null) throw new PathRefusal('Permission denied: there is no chat to send a file to.');
  const { handle, bytes, folder, name: sent, isMedia } = await openToRead(allowed, path);
  try {
    const name = basename(path);
    if (isMedia) return { path: join(folder.real, sent), name };
    if (bytes > MOST_BYTES) {
      throw new PathRefusal(`${name} is too large to be sent: it has ${sizeInWords(bytes)}.`);
    }
    const end = extname(name);
    const plainEnd = /^\.[A-Za-z0-9]{1,10}$/.test(end) ? end.toLowerCase() : '';
    const copy = join(allowed.media, `${SENT}${key}${plainEnd}`);
    await writeWhole(copy, async (file) => {
      const content = handle.createReadStream({ start: 0, end: MOST_BYTES - 1, autoClose: false });
      for await (const piece of content) await file.writeFile(piece);
    });
    return { path: copy, name };
  } finally {
    await handle.close();
  }
}
