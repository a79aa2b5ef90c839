/** Streams an export page by page, so that a chat of any length takes little memory. */
import { setImmediate as nextPass } from 'node:timers/promises';
import type { ChatFeed, ExportAsk } from '../core/chat-record.js';
import type { Zone } from '../core/dates.js';
import { type RoomId, roomParts } from '../core/ids.js';
import { type Personas, personaName } from '../core/persona.js';
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
