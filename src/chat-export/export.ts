/** Streams an export page by page, so that a chat of any length takes little memory. */
import { mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextPass } from 'node:timers/promises';
import type { ChatExports, ChatFeed, ExportAsk, ExportFormat } from '../core/chat-record.js';
import type { Clock } from '../core/clock.js';
import type { Zone } from '../core/dates.js';
import { namesIn } from '../core/file-access.js';
import { type ChatId, type RoomId, roomParts } from '../core/ids.js';
import { type Personas, personaName } from '../core/persona.js';
import { writeWhole } from '../core/write-whole.js';
import { exportedMessage, type Format, jsonFormat, markdownFormat } from './formats.js';

export interface ExportParts {
  feed: ChatFeed;
  personas: { list: Personas['list'] };
  zone: Zone;
  now: number;
  /** Throws when it aborts. */
  signal?: AbortSignal;
}

export type Export = NonNullable<Awaited<ReturnType<typeof exportOf>>>;

const PAGE = 500;

/** null for an unknown chat. */
export async function exportOf(parts: ExportParts, ask: ExportAsk) {
  const { feed, personas, zone, now, signal } = parts;
  const chat = await feed.chat(ask.chatId);
  if (chat === null) return null;
  const rooms = await idsByRoom(parts, ask);
  const all = await personas.list(chat.id);
  const messages = rooms.reduce((sum, { ids }) => sum + ids.length, 0);
  const { since, until } = ask;
  const hasThreads = rooms.some(({ threadId }) => threadId !== null);
  const head = { chat, exportedAt: now, since, until, zone, messages, hasThreads };

  /** The text, in pieces of some kilobytes. */
  async function* pieces(): AsyncGenerator<string> {
    const format: Format = ask.format === 'json' ? jsonFormat() : markdownFormat(head);
    yield format.begin(head);
    for (const { threadId, ids } of rooms) {
      yield format.beginRoom(threadId);
      for (let at = 0; at < ids.length; at += PAGE) {
        signal?.throwIfAborted();
        const page = await feed.messages(ids.slice(at, at + PAGE));
        const told = page.map((message) => exportedMessage(message, (id) => personaName(all, id)));
        yield told.map(format.message).join('');
        await nextPass();
      }
      yield format.endRoom();
    }
    yield format.end();
  }
  return { chat, messages, pieces };
}

interface RoomIds {
  threadId: string | null;
  ids: number[];
}

/** The chat itself first, then its threads in order of their first message. */
async function idsByRoom({ feed, signal }: ExportParts, ask: ExportAsk): Promise<RoomIds[]> {
  const rooms = new Map<RoomId, RoomIds>();
  for (let after: number | null = 0; after !== null; ) {
    signal?.throwIfAborted();
    const { said, next }: Awaited<ReturnType<ChatFeed['saidIn']>> = await feed.saidIn({ ...ask, after });
    for (const { id, room } of said) {
      const known = rooms.get(room);
      if (known) known.ids.push(id);
      else rooms.set(room, { threadId: roomParts(room).threadId, ids: [id] });
    }
    after = next;
    await nextPass();
  }
  const rank = ({ threadId }: RoomIds) => (threadId === null ? 0 : 1);
  return [...rooms.values()].sort((a, b) => rank(a) - rank(b));
}

/** Longer than `delivery.max_age_hours` usually is. */
const KEPT_MS = 2 * 86_400_000;

/** Exports and files of questions: `data/exports/<chat_id>/<key>/<name>`. */
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
