/** The page's routes to the conversations of all channels: their list, a search in them, and a turn opened. */
import { z } from '@hono/zod-openapi';
import {
  BOARD_OWNER,
  type BoardLists,
  type BoardTurns,
  type FoundMessage,
  type ListedRoom,
} from '../core/board.js';
import type { ChatRecord } from '../core/chat-record.js';
import { inOneLine } from '../core/cut.js';
import { type RoomId, roomParts } from '../core/ids.js';
import { type Personas, personaName } from '../core/persona.js';
import { type SoughtWords, wantedIn } from '../core/phrase.js';
import { authorName, type StoredMessage } from '../core/transcript.js';
import { type BoardApi, reply } from './api.js';
import { fieldsIn, Room, refused } from './own.js';
import type { ConversationItem, ConversationPage, FoundPage, FoundRow } from './protocol.js';
import { turnDetails } from './turn-details.js';

export interface ConversationParts {
  lists: BoardLists;
  turns: BoardTurns;
  personas: Personas;
}

const PAGE = 50;
const FOUND_AT_ONCE = 25;
const LINE_CHARS = 160;
const EXCERPT_CHARS = 200;

/** The last room of a page, behind the number of its newest message. */
const Place = z.object({
  before: z
    .string()
    .regex(/^\d{1,15}:.{1,500}$/s)
    .optional(),
});
const Search = z.object({
  q: z.string().max(500),
  before: z.coerce.number().int().positive().max(Number.MAX_SAFE_INTEGER).optional(),
});
const Time = z.object({ at: z.coerce.number().int().nonnegative().max(8.64e15) });
const Turn = z.object({ id: z.string().min(1).max(200) });

export function addConversations(api: BoardApi, { lists, turns, personas }: ConversationParts): void {
  api.get('/api/board/conversations', async (context) => {
    const [, newest, room = ''] = /^(\d+):(.*)$/s.exec(fieldsIn(context, Place).before ?? '') ?? [];
    const before = newest === undefined ? null : { newest: Number(newest), room };
    const rooms = await lists.conversations({ before, most: PAGE });
    const names = namesIn(personas);
    const items = await Promise.all(rooms.map((each) => itemOf(each, names)));
    const last = rooms.length < PAGE ? undefined : rooms.at(-1);
    const page: ConversationPage = { items, next: last ? `${last.newest}:${last.room}` : null };
    return reply(200, page);
  });
  api.get('/api/board/conversations/one', async (context) => {
    const found = await lists.listedRoom(fieldsIn(context, z.object({ room: Room })).room);
    if (found === null) throw refused(404, { error: 'There is no such conversation.' });
    return reply(200, await itemOf(found, namesIn(personas)));
  });
  api.get('/api/board/conversations/search', async (context) => {
    const { q, before = null } = fieldsIn(context, Search);
    const words = wantedIn(q);
    if (words === null) throw refused(400, { error: 'There is no word to search for.' });
    const { found, next } = await lists.findSaid({ words, before, most: FOUND_AT_ONCE });
    const names = namesIn(personas);
    const rows = await Promise.all(found.map((each) => foundRow(each, words, names)));
    const page: FoundPage = { rows, next };
    return reply(200, page);
  });
  api.get('/api/board/conversations/at', async (context) => {
    const id = await lists.messageAt(fieldsIn(context, Time).at);
    return reply(200, { around: id === null ? null : `m${id}` });
  });
  api.get('/api/board/turn', async (context) => {
    const found = await turns.openTurn(fieldsIn(context, Turn).id);
    if (found === null) throw refused(404, { error: 'There is no such turn.', why: 'unknown' });
    if (found === 'forgotten') {
      throw refused(404, { error: 'This turn was forgotten; nothing of it is shown.', why: 'forgotten' });
    }
    const inChat = await personas.list(found.turn.chatId);
    return reply(
      200,
      turnDetails(found, (id) => personaName(inChat, id)),
    );
  });
}

/** The author of a message by the name people know; files of a chat's personas are read once a request. */
type AuthorNames = (chatId: string, message: StoredMessage) => Promise<string>;

function namesIn(personas: ConversationParts['personas']): AuthorNames {
  const known = new Map<string, ReturnType<Personas['list']>>();
  return async (chatId, message) => {
    const { author } = message;
    if (author.kind === 'person' && author.id === BOARD_OWNER) return '';
    if (author.kind !== 'persona') return authorName(author);
    const listed = known.get(chatId) ?? personas.list(chatId);
    known.set(chatId, listed);
    return personaName(await listed, author.id);
  };
}

async function itemOf({ room, chat, last }: ListedRoom, names: AuthorNames): Promise<ConversationItem> {
  return {
    room,
    channel: chat.channel,
    title: titleOf(chat, room),
    kind: chat.kind,
    last: last && {
      at: last.sentAt,
      author: await names(chat.id, last),
      text: inOneLine(wordsOf(last), LINE_CHARS),
    },
  };
}

async function foundRow(
  { message, chat }: FoundMessage,
  words: SoughtWords,
  names: AuthorNames,
): Promise<FoundRow> {
  const { id, room, turnId, sentAt, author } = message;
  return {
    room,
    title: titleOf(chat, room),
    around: `m${id}`,
    key: author.kind === 'persona' && turnId !== null ? `t${turnId}` : `m${id}`,
    author: await names(chat.id, message),
    at: sentAt,
    excerpt: words.excerptOf(message.text, EXCERPT_CHARS),
  };
}

/** Platforms tell the title of a chat, but not that of a thread. */
function titleOf(chat: ChatRecord, room: RoomId): string {
  const { threadId } = roomParts(room);
  const title = inOneLine(chat.title) || chat.id;
  return threadId === null ? title : `${title} › ${threadId}`;
}

/** A line is shown without the marks that Markdown has around words. */
function wordsOf({ text, author, attachments = [] }: StoredMessage): string {
  const words = text || attachments.map(({ name, kind }) => name ?? kind).join(', ');
  return author.kind === 'persona' ? words.replaceAll(/\*\*|__|~~|`+|^#{1,6} /gm, '') : words;
}
