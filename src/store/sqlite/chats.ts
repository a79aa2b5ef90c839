/**
 * Chats: their addresses and moves. After a move, a chat's message ids start again, so every message records how often
 * its chat had moved (`moves`); this also identifies a late message from a former address.
 */
import { and, eq } from 'drizzle-orm';
import type { ChatRecord, ChatStore } from '../../core/chat-record.js';
import type { ChatId, PersonaId } from '../../core/ids.js';
import type { Receipt } from '../../core/receipt.js';
import type { Connection } from './connection.js';
import { chat, leftAddress } from './schema.js';

type ReceivedChat = Extract<Receipt, { kind: 'message' | 'command' }>['chat'];

/** The columns of `toChat`, for statements that join the chat with a room. */
export const CHAT_COLUMNS = `chat.id as chatId, chat.channel, chat.account, chat.address, chat.moves, chat.kind, chat.title,
  chat.active_persona as activePersona, chat.invited, chat.away`;

export interface ChatRow {
  chatId: ChatId;
  channel: string;
  account: string;
  address: string;
  moves: number;
  kind: 'direct' | 'group';
  title: string;
  activePersona: PersonaId;
  invited: string | null;
  away: string | null;
}

export function toChat(row: ChatRow): ChatRecord {
  const { chatId: id, channel, account, address, kind, title, activePersona, invited, away } = row;
  const record: ChatRecord = { id, channel, account, address, kind, title, activePersona };
  if (invited !== null) record.invited = JSON.parse(invited);
  if (away !== null) record.away = JSON.parse(away);
  return record;
}

/** Operations on chats. To be called within a transaction, except `find`. */
export interface Chats {
  find(id: ChatId): ChatRow | undefined;
  /** How often the chat had moved when it had this address. */
  movesAt(row: ChatRow | undefined, address: string): number;
  /** Somebody wrote in the chat: creates it if there is no row, keeps title and address current. */
  talked(row: ChatRow | undefined, received: ReceivedChat, from: { channel: string; account: string }): void;
  /** The platform moved it: undelivered entries go to the new address. */
  moved(id: ChatId, address: string): void;
  /** Changes who takes part. */
  attend(id: ChatId, who: { activePersona?: PersonaId; invited: PersonaId[]; away: PersonaId[] }): void;
}

export function chatsOf({ raw, query, memory }: Connection): Chats {
  const findRow = raw.prepare<[ChatId], ChatRow>(`select ${CHAT_COLUMNS} from chat where id = ?`);
  const leftAddresses = raw.prepare<[ChatId], { address: string; moves: number }>(
    'select address, moves from left_address where chat_id = ?',
  );
  const insert = raw.prepare<[object]>(`
    insert into chat (id, channel, account, address, kind, title)
    values (@id, @channel, @account, @address, @kind, @title)`);
  const refresh = raw.prepare<[object]>(`
    update chat set account = @account, address = @address, kind = @kind, title = @title where id = @id`);
  const readdress = raw.prepare<[string, ChatId]>(
    'update outbox set address = ? where chat_id = ? and finished_at is null',
  );

  const find = (id: ChatId) => memory.get(`chat ${id}`, () => findRow.get(id));

  function touch(id: ChatId): void {
    memory.touch(`chat ${id}`);
    memory.touch(`left ${id}`);
  }

  /** Defined if this is a former address of the chat. */
  function leftWith(row: ChatRow, address: string): number | undefined {
    if (address === row.address) return undefined;
    const left = memory.get(`left ${row.chatId}`, () => leftAddresses.all(row.chatId));
    return left.find((one) => one.address === address)?.moves;
  }

  return {
    find,
    movesAt: (row, address) => (row ? (leftWith(row, address) ?? row.moves) : 0),
    talked(row, received, { channel, account }) {
      const { id, kind, title } = received;
      if (!row) {
        insert.run({ id, kind, title, channel, account, address: received.address });
        touch(id);
        return;
      }
      const address = leftWith(row, received.address) === undefined ? received.address : row.address;
      const isSame =
        row.account === account && row.address === address && row.kind === kind && row.title === title;
      if (isSame) return;
      refresh.run({ id, kind, title, account, address });
      touch(id);
    },
    moved(id, address) {
      const row = find(id);
      if (!row || row.address === address) return;
      query
        .insert(leftAddress)
        .values({ chatId: id, address: row.address, moves: row.moves })
        .onConflictDoNothing()
        .run();
      query
        .delete(leftAddress)
        .where(and(eq(leftAddress.chatId, id), eq(leftAddress.address, address)))
        .run();
      query
        .update(chat)
        .set({ address, moves: row.moves + 1 })
        .where(eq(chat.id, id))
        .run();
      readdress.run(address, id);
      touch(id);
    },
    attend(id, { invited, away, ...change }) {
      const some = (ids: PersonaId[]) => (ids.length === 0 ? null : ids);
      query
        .update(chat)
        .set({ ...change, invited: some(invited), away: some(away) })
        .where(eq(chat.id, id))
        .run();
      touch(id);
    },
  };
}

interface Asking {
  turnId: string;
  personaId: PersonaId;
  asker: ChatId;
}

export function chatStore({ raw, read, patiently }: Connection, chats: Chats): ChatStore {
  const lastOf = raw.prepare<[string], { personaId: PersonaId | null; at: number | null }>(
    'select last_persona as personaId, last_reply_at as at from room where id = ?',
  );
  const waiting = raw.prepare<[object]>(`
    select 1 from message where room_id = @room and state = 'waiting' and id <= @upTo and quiet = 0 limit 1`);
  // The senders of the messages that the turn answers, or that the exchange began with.
  const askersOf = (which: string) =>
    raw.prepare<[string], Asking>(`
      select distinct turn.id as turnId, turn.persona_id as personaId, author_id as asker
      from turn join message on message.id in (select value from json_each(turn.batch)) or message.id in (
        select json_extract(json_each.value, '$.id') from room join json_each(room.exchange, '$.said')
        where room.id = turn.room_id and room.exchange is not null)
      where turn.id = (${which})`);
  const running = askersOf(`select id from turn where room_id = ? and state = 'running'`);
  const suspended = askersOf(`
    select id from turn where room_id = ? and state in ('suspended', 'ready') order by started_at desc limit 1`);

  const who = (statement: typeof running, room: string) =>
    read(() => {
      const rows = statement.all(room);
      const [first] = rows;
      if (first === undefined) return null;
      return { turnId: first.turnId, personaId: first.personaId, askers: rows.map((row) => row.asker) };
    });

  return {
    chat: (id) =>
      patiently(() => {
        const row = chats.find(id);
        return row ? toChat(row) : null;
      }),
    lastReply: (room) =>
      patiently(() => {
        const last = lastOf.get(room);
        if (last === undefined || last.personaId === null || last.at === null) return null;
        return { personaId: last.personaId, at: last.at };
      }),
    running: (room) => who(running, room),
    suspended: (room) => who(suspended, room),
    waits: (room, upTo) => patiently(() => waiting.get({ room, upTo }) !== undefined),
  };
}
