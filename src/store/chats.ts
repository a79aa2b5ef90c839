/**
 * Chats: addresses, moves, aliases, and work in progress in their rooms. Platform message ids restart after a move, so
 * each message stores how often its chat had moved (`moves`), which also identifies a late message from a former
 * address.
 */

import type { ChatRecord, ChatStore, RoomNow } from '../core/chat-record.js';
import { type ChatId, type PersonaId, type RoomId, roomParts } from '../core/ids.js';
import type { ReceiptOf } from '../core/receipt.js';
import type { GroupRound } from '../core/transcript.js';
import * as db from './db.js';
import type { chat } from './schema.js';
import { assigned, columns, insertInto, type Row, upsert } from './sql.js';

/** A chat's row; also used in statements that join it with a room. */
export const CHAT_COLUMNS = `chat.id as chatId, ${columns(
  'channel account address moves kind title activePersona invited away voice',
  'chat',
)}`;
export type ChatRow = Omit<Row<typeof chat>, 'id'> & { chatId: ChatId };

export function toChat(row: ChatRow): ChatRecord {
  const { chatId: id, channel, account, address, kind, title, activePersona, invited, away, voice } = row;
  const record: ChatRecord = { id, channel, account, address, kind, title, activePersona };
  if (invited !== null) record.invited = JSON.parse(invited);
  if (away !== null) record.away = JSON.parse(away);
  if (voice !== null) record.voice = voice;
  return record;
}

/** Where the chat's outbox entries go. */
export function targetIn(room: RoomId, { chatId, channel, address, kind }: ChatRow, now: number) {
  return { chatId, channel, address, threadId: roomParts(room).threadId, kind, now };
}

export function* findChat(id: ChatId): db.Verb<ChatRow | undefined> {
  return yield* db.one<ChatRow>(`select ${CHAT_COLUMNS} from chat where id = ?`, id);
}

/** How often the chat had moved when it had this address. */
export function* movesAt(row: ChatRow | undefined, address: string): db.Verb<number> {
  return row ? ((yield* leftWith(row, address)) ?? row.moves) : 0;
}

/** Undefined unless this is a former address of the chat. */
function* leftWith(row: ChatRow, address: string): db.Verb<number | undefined> {
  if (address === row.address) return undefined;
  const sql = 'select moves from left_address where chat_id = ? and address = ?';
  return yield* db.value<number>(sql, row.chatId, address);
}

/** Called for every message and command: creates a new chat, keeps title and address current. */
export function* chatTalked(
  received: ReceiptOf<'message' | 'command'>['chat'],
  { channel, account }: { channel: string; account: string },
  row: ChatRow | undefined,
): db.Verb<void> {
  const { id, kind, title } = received;
  if (!row) {
    const values = { id, kind, title, channel, account, address: received.address };
    yield* db.tell(insertInto('chat', 'id channel account address kind title'), values);
    return;
  }
  const address = (yield* leftWith(row, received.address)) === undefined ? received.address : row.address;
  const isSame =
    row.account === account && row.address === address && row.kind === kind && row.title === title;
  if (!isSame) yield* changeChat('account address kind title', { id, kind, title, account, address });
}

export function* changeChat(names: string, values: object): db.Verb<void> {
  yield* db.tell(`update chat set ${assigned(names)} where id = @id`, values);
}

/** The platform moved the chat: undelivered entries go to the new address. */
export function* chatMoved(id: ChatId, address: string): db.Verb<void> {
  const row = yield* findChat(id);
  if (!row || row.address === address) return;
  const left = { chatId: id, address: row.address, moves: row.moves };
  yield* db.tell(`${insertInto('left_address', 'chatId address moves')} on conflict do nothing`, left);
  yield* db.tell('delete from left_address where chat_id = @id and address = @address', { id, address });
  yield* changeChat('address moves', { id, address, moves: row.moves + 1 });
  yield* db.tell('update outbox set address = ? where chat_id = ? and finished_at is null', address, id);
}

const ROOM = `
  select exchange, last_persona as personaId, last_reply_at as at,
    (select min(id) from message where room_id = room.id and state = 'waiting' and quiet = 0) as waits
  from room where id = ?`;
const turnWhere = (which: string) => `
  select id as turnId, persona_id as personaId, batch from turn where room_id = ? and ${which}`;
const RUNNING = turnWhere(`state = 'running'`);
const SUSPENDED = turnWhere(`state in ('suspended', 'ready') order by started_at desc limit 1`);
const AUTHORS = 'select author_id from message where number_in(id, @ids) order by id';

function* roomNow(room: RoomId): db.Verb<RoomNow> {
  type RoomRow = Record<'exchange' | 'personaId', string | null> & Record<'at' | 'waits', number | null>;
  const row = yield* db.one<RoomRow>(ROOM, room);
  const { exchange = null, personaId = null, at = null, waits = null } = row ?? {};
  const round: GroupRound | null = exchange === null ? null : JSON.parse(exchange);
  return {
    running: yield* turnIn(RUNNING, room, round),
    suspended: yield* turnIn(SUSPENDED, room, round),
    waits,
    lastReply: personaId === null || at === null ? null : { personaId, at },
  };
}

/** A turn, and the senders of the messages that it answers or that started its exchange. */
function* turnIn(sql: string, room: RoomId, round: GroupRound | null): db.Verb<RoomNow['running']> {
  const row = yield* db.one<{ turnId: string; personaId: PersonaId; batch: string }>(sql, room);
  if (row === undefined) return null;
  const { batch, ...turn } = row;
  const ids = [...JSON.parse(batch), ...(round?.said ?? []).map(({ id }) => id)];
  const askers = new Set(yield* db.column<ChatId>(AUTHORS, { ids: JSON.stringify(ids) }));
  return askers.size === 0 ? null : { ...turn, askers: [...askers] };
}

const CHAT_OF = `
  select coalesce((select chat_id from alias where id = @id), (select id from chat where id = @id)) as id`;

export function chatStore(database: db.Database): ChatStore {
  return {
    chat: (id) =>
      database.look(function* () {
        const row = yield* findChat(id);
        return row ? toChat(row) : null;
      }),
    aliasOf: (id) =>
      database.look(function* () {
        return (yield* db.value<ChatId>('select chat_id from alias where id = ?', id)) ?? null;
      }),
    chatOf: (id) =>
      database.look(function* () {
        return (yield* db.value<ChatId | null>(CHAT_OF, { id })) ?? null;
      }),
    addAlias: (id, chatId) =>
      database.write(db.ACCESS, () => db.tell(upsert('alias', 'id', 'chatId'), { id, chatId })),
    roomNow: (room) => database.read(() => roomNow(room)),
  };
}
