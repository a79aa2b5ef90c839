/**
 * What was said in a room, and what of it a persona heard, in the order in which it heard it: the window, for step 4 of
 * the route, and spans, for flushes and archives. Reads only what is shown: what the persona's view of the room leaves. And
 * how a message is stored, for whoever adds one.
 */

import type { Greeting } from '../../core/channel.js';
import { type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { RouteStore } from '../../core/route-store.js';
import {
  BEGINNING,
  END,
  type HeardMessage,
  isAfter,
  type Position,
  type Span,
  type Step,
  type StoredMessage,
  type ViewRecord,
  type ViewStore,
} from '../../core/transcript.js';
import type { ChatRow, Chats } from './chats.js';
import type { Connection } from './connection.js';
import type { message, view } from './schema.js';
import { columns, type Row } from './sql.js';

// ── Messages ────────────────────────────────────────────────────────────────────────────────────────────────

/** What is stored of a message when it arrives. */
export const MESSAGE = `roomId chatId account moves authorKind authorId authorName administrator text sentAt receivedAt
  platformMessageId mentionsBot replyTo edited state attachments words quiet addresses mentions twin bot reaction
  forwardedFrom album tainted`;
/** A platform's message, and the edit of it that became a message of its own. */
export const IS_MESSAGE =
  'chat_id = @chatId and account = @account and moves = @moves and platform_message_id = @platformMessageId';

/** Whether the other table has the same platform message: under its id, or as another copy of it. */
export const isIn = (table: 'message' | 'command', which: string) => `
  exists (select 1 from ${table} where ${IS_MESSAGE} ${which})
  or @twin is not null and exists (
    select 1 from ${table} where chat_id = @chatId and moves = @moves and twin = @twin and twin is not null ${which})`;

type Whole = Row<typeof message>;
/** A message when it arrives, as its columns are: as far as it differs from what nobody typed. */
export type NewMessage = Pick<
  Whole,
  'account' | 'moves' | 'authorKind' | 'authorId' | 'authorName' | 'text' | 'sentAt' | 'receivedAt'
> & { platformMessageId: string } & Partial<
    Omit<Whole, 'id' | 'roomId' | 'chatId' | 'edited' | 'state' | 'turnId' | 'platformMessageId'>
  >;

export const MESSAGE_COLUMNS = columns(
  `id roomId authorKind authorId authorName administrator text sentAt receivedAt platformMessageId mentionsBot replyTo
    edited turnId attachments words quiet addresses mentions bot reaction
    forwardedFrom album tainted`,
  'message',
);
export const HEARD_COLUMNS = `heard_after as heardAfter, addressed, ${MESSAGE_COLUMNS}`;

export type MessageRow = Omit<Whole, 'chatId' | 'account' | 'moves' | 'state' | 'twin'>;
export interface HeardRow extends MessageRow {
  heardAfter: number;
  addressed: number;
}

/** Maps by hand, without copies of objects: a window has hundreds of rows. */
export function toMessage(row: MessageRow): StoredMessage {
  const stored: StoredMessage = {
    id: row.id,
    room: row.roomId,
    author: authorOf(row),
    text: row.text,
    sentAt: row.sentAt,
    receivedAt: row.receivedAt,
    platformMessageId: row.platformMessageId,
    mentionsBot: row.mentionsBot === 1,
    replyTo: row.replyTo === null ? null : JSON.parse(row.replyTo),
    edited: row.edited === 1,
    turnId: row.turnId,
  };
  if (row.attachments !== null) stored.attachments = JSON.parse(row.attachments);
  if (row.words !== null) stored.words = row.words;
  if (row.quiet === 1) stored.quiet = true;
  if (row.addresses !== null) stored.addresses = JSON.parse(row.addresses);
  if (row.mentions !== null) stored.mentions = JSON.parse(row.mentions);
  if (row.reaction === 1) stored.reaction = true;
  if (row.forwardedFrom !== null) stored.forwardedFrom = row.forwardedFrom;
  if (row.album !== null) stored.album = row.album;
  if (row.tainted === 1) stored.tainted = true;
  return stored;
}

export function toHeard(row: HeardRow): HeardMessage {
  const position = { heardAfter: row.heardAfter, messageId: row.id };
  return Object.assign(toMessage(row), { position, addressed: row.addressed === 1 });
}

function authorOf(row: MessageRow): StoredMessage['author'] {
  const id = row.authorId;
  if (row.authorKind === 'persona') return { kind: 'persona', id };
  if (row.authorKind === 'gateway') return { kind: 'gateway', about: id };
  const person = {
    kind: 'person',
    id,
    name: row.authorName,
    administrator: row.administrator === 1,
  } as const;
  return row.bot === 1 ? { ...person, bot: true } : person;
}

// ── A persona's view of a room, apart from the messages it heard ────────────────────────────────────────────

/** Something that was heard in the room changes: cached copies of its windows become void. */
export const REVISE_ROOM = 'update room set revision = revision + 1 where id = ?';

const UNTOUCHED = {
  ...{ resetAt: 0, windowAfter: BEGINNING, flushedTo: BEGINNING, summary: null, measured: null },
  tainted: false,
};
const VIEW =
  'resetAt windowHeard windowMessage flushedHeard flushedMessage summary counted estimated tainted';
type ViewRow = Omit<Row<typeof view>, 'roomId' | 'personaId'>;

export type FindView = (room: RoomId, personaId: PersonaId) => ViewRecord;

export function findViewIn({ raw }: Pick<Connection, 'raw'>): FindView {
  const find = raw.prepare<[RoomId, PersonaId], ViewRow>(
    `select ${columns(VIEW)} from view where room_id = ? and persona_id = ?`,
  );
  return (room, personaId) => {
    const row = find.get(room, personaId);
    return row ? toView(room, personaId, row) : { room, personaId, ...UNTOUCHED };
  };
}

function toView(room: RoomId, personaId: PersonaId, row: ViewRow): ViewRecord {
  const { resetAt, summary, counted, estimated } = row;
  return {
    room,
    personaId,
    resetAt,
    windowAfter: { heardAfter: row.windowHeard, messageId: row.windowMessage },
    flushedTo: { heardAfter: row.flushedHeard, messageId: row.flushedMessage },
    summary,
    measured: counted === null || estimated === null ? null : { counted, estimated },
    tainted: row.tainted === 1,
  };
}

/**
 * The position, or the reset mark if that is later. Nothing is heard before it was said, so everything that a reset
 * forgot was heard before the mark or has a smaller id.
 */
export function behindReset({ resetAt }: Pick<ViewRecord, 'resetAt'>, place: Position): Position {
  const reset = { heardAfter: resetAt - 1, messageId: Number.MAX_SAFE_INTEGER };
  return isAfter(place, reset) ? place : reset;
}

// ── What it heard ───────────────────────────────────────────────────────────────────────────────────────────

/** A message, and the steps of its turn if that was the persona's own and used tools: a JSON array of JSON texts. */
interface LineRow extends HeardRow {
  steps: string | null;
}

const LINE_WITH_STEPS = `
  case when author_kind = 'persona' and author_id = @personaId then (
    select json_group_array(body) from (
      select body from step
      where turn_id = (select id from turn where turn.id = message.turn_id and used_tools = 1) order by n))
  end as steps, ${HEARD_COLUMNS}`;

/** What was heard between two positions, of one kind (addressed or overheard). */
const heardBetween = (addressed: 0 | 1, order: 'asc' | 'desc', limit: string) => `
  select * from (
    select room_id, heard_after, message_id, addressed from heard
    where room_id = @room and persona_id = @personaId and addressed = ${addressed}
      and (heard_after, message_id) > (@afterHeard, @afterMessage)
      and (heard_after, message_id) <= (@toHeard, @toMessage)
      and message_id > @resetAt and message_id not in (select value from json_each(@except))
    -- SQLite compiles a statement anew whenever a bare parameter of its LIMIT is bound: hence the sum.
    order by heard_after ${order}, message_id ${order} limit ${limit} + 0)`;

export function transcriptStore(
  { raw, withBusyRetry: patiently, read }: Connection,
  findView: FindView,
): Pick<RouteStore, 'window'> & Pick<ViewStore, 'span' | 'hasOtherRooms'> {
  const lines = (heard: string) =>
    raw.prepare<[object], LineRow>(`
      select ${LINE_WITH_STEPS} from (${heard}) as line cross join message on message.id = line.message_id`);
  const newest = lines(
    `${heardBetween(1, 'desc', '@limit')} union all ${heardBetween(0, 'desc', '@overheard')}`,
  );
  const oldestAddressed = lines(heardBetween(1, 'asc', '@limit'));
  const newestOverheard = lines(heardBetween(0, 'desc', '@overheard'));
  const otherRoom = raw.prepare<[object]>(`
    select 1 from room where (id = @chatId or (id > @from and id < @upTo)) and id <> @room limit 1`);

  return {
    window: ({ room, personaId, limit, overheard, except, after = BEGINNING }) =>
      patiently(() => {
        // No transaction is needed: a change by another process between the two reads also moves the room's revision
        // on, so a result built from them is not used again.
        const view = findView(room, personaId);
        const from = behindReset(view, isAfter(after, view.windowAfter) ? after : view.windowAfter);
        const ask = linesAsked(view, from, END, { limit: limit + 1, overheard, except });
        const found = inOrder(newest.all(ask));
        const toIt = found.filter(({ addressed }) => addressed === 1);
        if (toIt.length <= limit) return { view, ...spanOf(found, false) };
        // Where the limit cuts addressed messages, older overheard ones are left out, too, so that there are no gaps.
        const oldest = toIt[toIt.length - limit];
        const shown = oldest
          ? found.slice(found.indexOf(oldest))
          : found.filter(({ addressed }) => addressed === 0);
        return { view, ...spanOf(shown, true) };
      }),

    hasOtherRooms: (room) =>
      patiently(() => {
        const { chatId } = roomParts(room);
        // `0` is the character after `/`: the range covers all threads of the chat.
        const range = { room, chatId, from: `${chatId}/`, upTo: `${chatId}0` };
        return otherRoom.get(range) !== undefined;
      }),

    span: ({ room, personaId, after, upTo, limit, overheard }) =>
      read(() => {
        const view = findView(room, personaId);
        const ask = linesAsked(view, behindReset(view, after), upTo, {
          limit: limit + 1,
          overheard,
          except: [],
        });
        const found = oldestAddressed.all(ask);
        const toIt = found.slice(0, limit);
        const more = found.length > limit;
        const end = (more ? toIt.at(-1) : undefined) ?? { heardAfter: upTo.heardAfter, id: upTo.messageId };
        const aside = newestOverheard.all({ ...ask, toHeard: end.heardAfter, toMessage: end.id });
        return spanOf(inOrder([...toIt, ...aside]), more);
      }),
  };
}

interface LinesAsk {
  limit: number;
  overheard: number;
  except: readonly number[];
}

function linesAsked(view: ViewRecord, after: Position, to: Position, { except, ...most }: LinesAsk) {
  return {
    ...most,
    room: view.room,
    personaId: view.personaId,
    resetAt: view.resetAt,
    afterHeard: after.heardAfter,
    afterMessage: after.messageId,
    toHeard: to.heardAfter,
    toMessage: to.messageId,
    except: JSON.stringify(except),
  };
}

/** In order of position, each message once. */
function inOrder(rows: LineRow[]): LineRow[] {
  const sorted = rows.sort((a, b) => a.heardAfter - b.heardAfter || a.id - b.id);
  // In databases of the first version, a message that waited again after an abort was recorded twice: the later one
  // counts.
  const byId = new Map<number, LineRow>();
  for (const row of sorted) {
    byId.delete(row.id);
    byId.set(row.id, row);
  }
  return [...byId.values()];
}

function spanOf(rows: LineRow[], more: boolean): Span {
  const steps = new Map<string, Step[]>();
  for (const { turnId, steps: done } of rows) {
    if (turnId === null || done === null || done === '[]') continue;
    const bodies: string[] = JSON.parse(done);
    steps.set(
      turnId,
      bodies.map((body) => JSON.parse(body)),
    );
  }
  return { messages: rows.map(toHeard), steps, more };
}

export function speakOf({ raw }: Pick<Connection, 'raw'>): Speak {
  const say = raw.prepare<[object]>(`
    insert into message (room_id, chat_id, account, moves, author_kind, author_id, author_name, administrator, text,
      sent_at, received_at, mentions_bot, edited, state, turn_id, reaction, tainted)
    values (@room, @chatId, @account, @moves, 'persona', @personaId, @personaId, 0, @text,
      @now, @now, 0, 0, 'done', @turnId, @reaction, @tainted)`);
  const hear = raw.prepare<[object]>(`
    insert into heard (room_id, persona_id, addressed, heard_after, message_id)
    select @room, value->>0, value->>1, @id - 1, @id from json_each(@rows)`);

  return (
    { chatId, account, moves },
    { room, personaId, text, wordless, tainted, turnId, addressed, hearers, now },
  ) => {
    const said = {
      ...{ room, chatId, account, moves, personaId, text, now, turnId },
      reaction: wordless ? 1 : 0,
      tainted: tainted ? 1 : 0,
    };
    const id = Number(say.run(said).lastInsertRowid);
    const toWhom = new Set([personaId, ...addressed]);
    const overheard = hearers.filter((hearer) => !toWhom.has(hearer));
    const rows = [...[...toWhom].map((hearer) => [hearer, 1]), ...overheard.map((hearer) => [hearer, 0])];
    hear.run({ room, id, rows: JSON.stringify(rows) });
    return id;
  };
}

/** Adds words of a persona to the transcript: its reply, or its greeting. To be called within a transaction. Returns the message's id. */
export type Speak = (chat: Pick<ChatRow, 'chatId' | 'account' | 'moves'>, spoken: Spoken) => number;

export interface Spoken {
  room: RoomId;
  personaId: PersonaId;
  text: string;
  /** It is a reaction, not words. */
  wordless?: boolean;
  /** It answers words from outside. */
  tainted?: boolean;
  turnId: string | null;
  /** The other personas to whom it is addressed, and those who overhear it. */
  addressed: PersonaId[];
  hearers: PersonaId[];
  now: number;
}

export function greetOf({ raw }: Pick<Connection, 'raw'>, chats: Chats, speak: Speak): Greet {
  // A persona may be greeted with before anybody has written anything in the room.
  const newest = raw.prepare<[object]>(`
    insert into room (id, chat_id, newest_message) values (@room, @chatId, @id)
    on conflict do update set newest_message = max(newest_message, excluded.newest_message)`);

  return (greeting, now) => {
    const { room } = greeting;
    const { chatId } = roomParts(room);
    const chat = chats.find(chatId);
    if (!chat) return;
    const id = speak(chat, { ...greeting, turnId: null, addressed: [], now });
    newest.run({ room, chatId, id });
  };
}

export type Greet = (greeting: Greeting, now: number) => void;
