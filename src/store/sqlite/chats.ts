/**
 * Chats: their addresses and moves. After a move, a chat's message ids start again, so every message records how often
 * its chat had moved (`moves`); this also identifies a late message from a former address.
 */
import type { ChatRecord, ChatStore } from '../../core/chat-record.js';
import type { ChatId, PersonaId } from '../../core/ids.js';
import type { ReceiptOf } from '../../core/receipt.js';
import type { Connection } from './connection.js';
import type { chat } from './schema.js';
import { assigned, bound, columns, insertInto, type Row } from './sql.js';

type ChatTold = ReceiptOf<'message' | 'command'>['chat'];

/** A chat's row, also in statements that join it with a room. */
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

export type Chats = ReturnType<typeof chatsOf>;

/** Operations on chats. To be called within a transaction, except `find`. */
export function chatsOf({ raw, memory }: Connection) {
  const findRow = raw.prepare<[ChatId], ChatRow>(`select ${CHAT_COLUMNS} from chat where id = ?`);
  const leftAddresses = raw.prepare<[ChatId], { address: string; moves: number }>(
    'select address, moves from left_address where chat_id = ?',
  );
  const insert = raw.prepare<[object]>(insertInto('chat', 'id channel account address kind title'));
  const update = (names: string) =>
    raw.prepare<[object]>(`update chat set ${assigned(names)} where id = @id`);
  const refresh = update('account address kind title');
  const move = update('address moves');
  const setVoice = update('voice');
  const setWhoAttends = update('activePersona invited away');
  const leave = raw.prepare<[object]>(`
    ${insertInto('left_address', 'chatId address moves')} on conflict do nothing`);
  const comeBack = raw.prepare<[object]>(
    'delete from left_address where chat_id = @id and address = @address',
  );
  const readdress = raw.prepare<[object]>(
    'update outbox set address = @address where chat_id = @id and finished_at is null',
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
    /** How often the chat had moved when it had this address. */
    movesAt: (row: ChatRow | undefined, address: string) => (row ? (leftWith(row, address) ?? row.moves) : 0),
    /** Somebody wrote in the chat: creates it if it is new, keeps title and address current. */
    talked(received: ChatTold, { channel, account }: { channel: string; account: string }): void {
      const { id, kind, title } = received;
      const row = find(id);
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
    /** The platform moved it: undelivered entries go to the new address. */
    moved(id: ChatId, address: string): void {
      const row = find(id);
      if (!row || row.address === address) return;
      leave.run({ chatId: id, address: row.address, moves: row.moves });
      comeBack.run({ id, address });
      move.run({ id, address, moves: row.moves + 1 });
      readdress.run({ id, address });
      touch(id);
    },
    setVoice(id: ChatId, voice: 'on' | 'off'): void {
      setVoice.run({ id, voice });
      touch(id);
    },
    /** Changes who takes part. */
    attend(id: ChatId, who: { activePersona?: PersonaId; invited: PersonaId[]; away: PersonaId[] }): void {
      const row = find(id);
      if (!row) return;
      const some = (ids: PersonaId[]) => (ids.length === 0 ? null : ids);
      const present = { invited: some(who.invited), away: some(who.away) };
      setWhoAttends.run(bound({ id, activePersona: who.activePersona ?? row.activePersona, ...present }));
      touch(id);
    },
  };
}

export function chatStore({ withBusyRetry: patiently }: Connection, chats: Chats): Pick<ChatStore, 'chat'> {
  return {
    chat: (id) =>
      patiently(() => {
        const row = chats.find(id);
        return row ? toChat(row) : null;
      }),
  };
}

// Beside the route: what is under way in a room, for whoever stops it or asks how it stands: who answers, and whom.

interface AskerRow {
  turnId: string;
  personaId: PersonaId;
  asker: ChatId;
}

export function underWayStore({ raw, read, withBusyRetry: patiently }: Connection): Omit<ChatStore, 'chat'> {
  const lastOf = raw.prepare<[string], { personaId: PersonaId; at: number }>(`
    select last_persona as personaId, last_reply_at as at from room
    where id = ? and last_persona is not null and last_reply_at is not null`);
  const waiting = raw.prepare<[object]>(`
    select 1 from message where room_id = @room and state = 'waiting' and id <= @upTo and quiet = 0 limit 1`);
  // The senders of the messages that the turn answers, or that the exchange began with.
  const askersOf = (which: string) =>
    raw.prepare<[string], AskerRow>(`
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
    lastReply: (room) => patiently(() => lastOf.get(room) ?? null),
    running: (room) => who(running, room),
    suspended: (room) => who(suspended, room),
    waits: (room, upTo) => patiently(() => waiting.get({ room, upTo }) !== undefined),
  };
}
