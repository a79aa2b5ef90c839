/**
 * The files that came with messages, on the disk: `<folder>/<chat id>/<new id>.<extension>`. No part of a path is a
 * sender's: a chat's id is always a valid folder name, the name is new, the extension follows from the type.
 */
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { MediaFiles } from '../core/media.js';
import { writeWhole } from '../core/write-whole.js';
import { extensionOf } from './types.js';

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

/** Two names, neither of which leads elsewhere. Throws for anything else: then the store was tampered with. */
function pathOf(folder: string, file: string): string {
  if (!/^[^./\\\0][^/\\\0]*\/[^./\\\0][^/\\\0]*$/.test(file)) {
    throw new Error(`${JSON.stringify(file)} names no file of the media folder`);
  }
  return join(folder, file);
}
