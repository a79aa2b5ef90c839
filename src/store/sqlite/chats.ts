/**
 * Chats: addresses, moves, aliases, and work in progress in their rooms. Platform message ids restart after a move, so
 * each message stores how often its chat had moved (`moves`), which also identifies a late message from a former
 * address.
 */
import type { ChatRecord, ChatStore } from '../../core/chat-record.js';
import type { ChatId, PersonaId, RoomId } from '../../core/ids.js';
import type { ReceiptOf } from '../../core/receipt.js';
import type { Database, Statements } from './connection.js';
import type { chat } from './schema.js';
import { assigned, bound, columns, insertInto, type Row, upsert } from './sql.js';

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

export function findChat(db: Statements, id: ChatId): ChatRow | undefined {
  return db.get<ChatRow>(`select ${CHAT_COLUMNS} from chat where id = ?`, id);
}

/** How often the chat had moved when it had this address. */
export function movesAt(db: Statements, row: ChatRow | undefined, address: string): number {
  return row ? (leftWith(db, row, address) ?? row.moves) : 0;
}

/** Undefined unless this is a former address of the chat. */
function leftWith(db: Statements, row: ChatRow, address: string): number | undefined {
  if (address === row.address) return undefined;
  const sql = 'select moves from left_address where chat_id = ? and address = ?';
  return db.value<number>(sql, row.chatId, address);
}

/** Called for every message and command: creates a new chat, keeps title and address current. */
export function chatTalked(
  db: Statements,
  received: ReceiptOf<'message' | 'command'>['chat'],
  { channel, account }: { channel: string; account: string },
): void {
  const { id, kind, title } = received;
  const row = findChat(db, id);
  if (!row) {
    const values = { id, kind, title, channel, account, address: received.address };
    db.run(insertInto('chat', 'id channel account address kind title'), values);
    return;
  }
  const address = leftWith(db, row, received.address) === undefined ? received.address : row.address;
  const isSame =
    row.account === account && row.address === address && row.kind === kind && row.title === title;
  if (!isSame) changeChat(db, 'account address kind title', { id, kind, title, account, address });
}

function changeChat(db: Statements, names: string, values: object): void {
  db.run(`update chat set ${assigned(names)} where id = @id`, values);
}

/** The platform moved the chat: undelivered entries go to the new address. */
export function chatMoved(db: Statements, id: ChatId, address: string): void {
  const row = findChat(db, id);
  if (!row || row.address === address) return;
  const left = { chatId: id, address: row.address, moves: row.moves };
  db.run(`${insertInto('left_address', 'chatId address moves')} on conflict do nothing`, left);
  db.run('delete from left_address where chat_id = @id and address = @address', { id, address });
  changeChat(db, 'address moves', { id, address, moves: row.moves + 1 });
  db.run('update outbox set address = @address where chat_id = @id and finished_at is null', { id, address });
}

export function setVoice(db: Statements, id: ChatId, voice: 'on' | 'off'): void {
  changeChat(db, 'voice', { id, voice });
}

/** Changes which personas take part. */
export function attend(
  db: Statements,
  id: ChatId,
  who: { activePersona: PersonaId; invited: PersonaId[]; away: PersonaId[] },
): void {
  const some = (ids: PersonaId[]) => (ids.length === 0 ? null : ids);
  const { activePersona, invited, away } = who;
  const values = { id, activePersona, invited: some(invited), away: some(away) };
  changeChat(db, 'activePersona invited away', bound(values));
}

// The senders of the messages that a turn answers, or that started its exchange.
const askersOf = (turn: string) => `
  select distinct turn.id as turnId, turn.persona_id as personaId, author_id as asker
  from turn join message on message.id in (select value from json_each(turn.batch)) or message.id in (
    select json_extract(json_each.value, '$.id') from room join json_each(room.exchange, '$.said')
    where room.id = turn.room_id and room.exchange is not null)
  where turn.id = (${turn})`;
const RUNNING = askersOf(`select id from turn where room_id = ? and state = 'running'`);
const SUSPENDED = askersOf(`
  select id from turn where room_id = ? and state in ('suspended', 'ready') order by started_at desc limit 1`);
const LAST_REPLY = `
  select last_persona as personaId, last_reply_at as at from room
  where id = ? and last_persona is not null and last_reply_at is not null`;
const WAITS = `
  select 1 from message where room_id = @room and state = 'waiting' and id <= @upTo and quiet = 0 limit 1`;

function turnIn(db: Database, sql: string, room: RoomId) {
  return db.read(() => {
    const rows = db.all<{ turnId: string; personaId: PersonaId; asker: ChatId }>(sql, room);
    const [first] = rows;
    if (first === undefined) return null;
    return { turnId: first.turnId, personaId: first.personaId, askers: rows.map((row) => row.asker) };
  });
}

export function chatStore(db: Database): ChatStore {
  return {
    chat: (id) =>
      db.withBusyRetry(() => {
        const row = findChat(db, id);
        return row ? toChat(row) : null;
      }),
    aliasOf: (id) =>
      db.withBusyRetry(() => db.value<ChatId>('select chat_id from alias where id = ?', id) ?? null),
    async addAlias(id, chatId) {
      await db.writeOne(upsert('alias', 'id', 'chatId'), { id, chatId });
    },
    lastReply: (room) =>
      db.withBusyRetry(() => db.get<{ personaId: PersonaId; at: number }>(LAST_REPLY, room) ?? null),
    running: (room) => turnIn(db, RUNNING, room),
    suspended: (room) => turnIn(db, SUSPENDED, room),
    waits: (room, upTo) => db.withBusyRetry(() => db.get(WAITS, { room, upTo }) !== undefined),
  };
}
