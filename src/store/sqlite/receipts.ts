/** Step 1 of the route: the SQL statements of `receive.ts`. */
import type { ChatId, RoomId } from '../../core/ids.js';
import type { Connection } from './connection.js';
import { beganBefore, REVISE_ROOM, turnOf } from './rows.js';

export interface NewMessage {
  room: RoomId;
  chatId: ChatId;
  account: string;
  moves: number;
  authorKind: 'person' | 'gateway';
  authorId: string;
  authorName: string;
  administrator: number;
  text: string;
  sentAt: number;
  receivedAt: number;
  platformMessageId: string;
  mentionsBot: number;
  replyTo: string | null;
  edited: number;
  attachments: string | null;
  words: string | null;
  quiet: number;
  addresses: string | null;
  twin: string | null;
  bot: number;
  reaction: number;
}

interface NewCommand {
  room: RoomId;
  chatId: ChatId;
  account: string;
  moves: number;
  platformMessageId: string;
  senderId: ChatId;
  senderName: string;
  administrator: number;
  name: string;
  argument: string;
  now: number;
  twin: string | null;
  persona: string | null;
}

interface FoundMessage {
  id: number;
  room: RoomId;
  authorId: string;
  state: 'waiting' | 'done';
  text: string;
  words: string | null;
  mentionsBot: number;
  /** Whether a running turn is answering it. */
  isTaken: number;
}

interface SentRow {
  personaId: string;
  face: string | null;
  origin: string;
  speaker: string;
  threadId: string | null;
  body: string;
}

const IS_KEY =
  'chat_id = @chatId and account = @account and moves = @moves and platform_message_id = @platformMessageId';
/** Whether the other table has the same platform message: under its id, or as another copy of it. */
const isIn = (table: 'message' | 'command', which: string) => `
  exists (select 1 from ${table} where ${IS_KEY} ${which})
  or @twin is not null and exists (
    select 1 from ${table} where chat_id = @chatId and moves = @moves and twin = @twin and twin is not null ${which})`;

export function receiptStatements({ raw }: Connection) {
  const addMessage = raw.prepare<[NewMessage]>(`
    insert into message (room_id, chat_id, account, moves, author_kind, author_id, author_name, administrator, text,
      sent_at, received_at, platform_message_id, mentions_bot, reply_to, edited, state, attachments, words, quiet,
      addresses, twin, bot, reaction)
    select @room, @chatId, @account, @moves, @authorKind, @authorId, @authorName, @administrator, @text, @sentAt,
      @receivedAt, @platformMessageId, @mentionsBot, @replyTo, @edited, 'waiting', @attachments, @words, @quiet,
      @addresses, @twin, @bot, @reaction
    where not (${isIn('command', '')}) on conflict do nothing`);
  const addCommand = raw.prepare<[NewCommand]>(`
    insert into command (room_id, chat_id, account, moves, platform_message_id, sender_id, sender_name, administrator,
      name, argument, after_message, received_at, state, twin, persona)
    select @room, @chatId, @account, @moves, @platformMessageId, @senderId, @senderName, @administrator, @name,
      @argument, coalesce((select newest_message from room where id = @room), 0), @now, 'waiting', @twin, @persona
    where not (${isIn('message', 'and edited = 0')}) on conflict do nothing`);
  const find = (edited: 0 | 1) =>
    raw.prepare<[object], FoundMessage>(`
      select id, room_id as room, author_id as authorId, state, text, words, mentions_bot as mentionsBot,
        state = 'done' and exists (
          select 1 from turn where turn.id = message.turn_id and turn.state = 'running') as isTaken
      from message where ${IS_KEY} and edited = ${edited} and platform_message_id is not null
      order by id desc limit 1`);

  /** The id of the inserted row; null for a duplicate. */
  const idOf = ({ changes, lastInsertRowid }: { changes: number; lastInsertRowid: number | bigint }) =>
    changes === 0 ? null : Number(lastInsertRowid);

  return {
    addMessage: (row: NewMessage) => idOf(addMessage.run(row)),
    addCommand: (row: NewCommand) => idOf(addCommand.run(row)),
    findMessage: find(0),
    findEdited: find(1),
    /** Adds the new text of a message whose old text is being answered. */
    copyMessage: raw.prepare<[object]>(`
      insert into message (room_id, chat_id, account, moves, author_kind, author_id, author_name, administrator, text,
        sent_at, received_at, platform_message_id, mentions_bot, reply_to, edited, state, attachments, words, quiet,
        addresses, twin, bot, reaction)
      select room_id, chat_id, account, moves, author_kind, author_id, author_name, administrator, @text,
        @sentAt, @now, platform_message_id, @mentionsBot, reply_to, 1, 'waiting', @attachments, @words, quiet,
        addresses, twin, bot, reaction
      from message where id = @id`),
    setText: raw.prepare<[object]>(`
      update message set text = @text, attachments = @attachments, words = @words, mentions_bot = @mentionsBot
      where id = @id`),
    /** The waiting messages have changed since a run may have looked at the room. */
    moveFenceOn: raw.prepare<[RoomId]>(`
      update room set fence = fence + 1, lease_owner = null
      where id = ? and not exists (select 1 from turn where room_id = room.id and state = 'running')`),
    revise: raw.prepare<[RoomId]>(REVISE_ROOM),
    addRoom: raw.prepare<[object]>(`
      insert into room (id, chat_id, newest_platform_id, newest_message)
      values (@room, @chatId, @platformMessageId, @id)
      on conflict do update set newest_message = max(newest_message, excluded.newest_message),
        newest_platform_id = coalesce(excluded.newest_platform_id, newest_platform_id)`),
    withdraw: raw
      .prepare<[object], RoomId>(`
        update message set state = 'done'
        where chat_id = @chatId and account = @account and moves = @moves
          and platform_message_id in (select value from json_each(@ids)) and edited in (0, 1)
          and state = 'waiting' and coalesce(@senderId, author_id) = author_id
        returning room_id`)
      .pluck(),
    /** Finds one of our own messages by its platform id. */
    findSent: raw.prepare<[ChatId, string], SentRow>(`
      select persona_id as personaId, face, origin, speaker, thread_id as threadId, body
      from outbox where chat_id = ? and platform_message_id = ? order by id desc limit 1`),
    /** The turn that said it, if a reset has forgotten what it answered. */
    findForgotten: raw.prepare<[object]>(`
      select 1 from turn join view on view.room_id = turn.room_id and view.persona_id = turn.persona_id
      where turn.id = ${turnOf('@origin')} and ${beganBefore('view.reset_at')}`),
    setCursor: raw.prepare<[string, string, string]>(`
      insert into cursor (channel, account, value) values (?, ?, ?)
      on conflict do update set value = excluded.value`),
    cursor: raw
      .prepare<[string, string], string>('select value from cursor where channel = ? and account = ?')
      .pluck(),
    newestOfRooms: raw.prepare<[string], { roomId: RoomId; address: string; platformMessageId: string }>(`
      select room.id as roomId, chat.address, newest_platform_id as platformMessageId
      from room join chat on chat.id = room.chat_id
      where chat.channel = ? and newest_platform_id is not null`),
  };
}
