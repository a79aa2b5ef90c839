/** Exports and files of questions, `data/exports/<chat_id>/<key>/<name>`, kept for two days at most. */
import { mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { ChatExports, ExportFormat } from '../core/chat-record.js';
import type { Clock } from '../core/clock.js';
import { namesIn } from '../core/file-access.js';
import type { ChatId } from '../core/ids.js';
import { writeWhole } from '../core/write-whole.js';
import { type ExportParts, exportOf } from './export.js';

/** Longer than `delivery.max_age_hours` usually is. */
const KEPT_MS = 2 * 86_400_000;

export interface KeptExports extends ChatExports {
  tidy(): Promise<void>;
}

export function createExports(
  parts: Omit<ExportParts, 'now' | 'signal'> & { folder: string; clock: Clock },
): KeptExports {
  const { folder, clock, zone } = parts;
  return {
    async make({ key, signal, ...ask }) {
      const now = clock.now();
      const made = await exportOf({ ...parts, now, signal }, ask);
      if (made === null || made.messages === 0) return null;
      const place = join(folderOf(folder, ask.chatId), nameSafe(key));
      const name = `${nameSafe(ask.chatId)}-${zone.date(now)}.${ENDINGS[ask.format]}`;
      const path = join(place, name);
      await mkdir(place, { recursive: true, mode: 0o700 });
      await writePieces(path, made.pieces());
      return { file: { path, name }, messages: made.messages };
    },
    async write({ chatId, key, name, text }) {
      const place = join(folderOf(folder, chatId), nameSafe(key));
      const path = join(place, name);
      await mkdir(place, { recursive: true, mode: 0o700 });
      await writeWhole(path, text);
      return { path, name };
    },
    forget: async (chatId) => rm(folderOf(folder, chatId), { recursive: true, force: true }),
    async tidy() {
      for (const chat of await namesIn(folder)) {
        for (const key of await namesIn(join(folder, chat))) {
          const place = join(folder, chat, key);
          const entry = await stat(place).catch(() => null);
          if (entry && entry.mtimeMs < clock.now() - KEPT_MS)
            await rm(place, { recursive: true, force: true });
        }
      }
    },
  };
}

export const ENDINGS: Record<ExportFormat, string> = { markdown: 'md', json: 'json' };

/** Writes an export whole, readable only by its owner. */
export function writePieces(path: string, pieces: AsyncIterable<string> | Iterable<string>): Promise<void> {
  return writeWhole(path, async (file) => {
    for await (const piece of pieces) await file.appendFile(piece);
  });
}

function folderOf(folder: string, chatId: ChatId): string {
  if (!/^[^./\\\0][^/\\\0]*$/u.test(chatId)) throw new Error(`${JSON.stringify(chatId)} names no chat`);
  return join(folder, chatId);
}

function nameSafe(text: string): string {
  return text.replace(/[^A-Za-z0-9@_-]+/g, '-');
}
