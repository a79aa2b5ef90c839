/**
 * The transcript of a room, and what a persona heard of it in order of hearing: windows (step 4 of the route) and spans
 * (for flushes and archives). Reads only what the persona's view still includes. Also adds a persona's messages.
 */

import type { Greeting } from '../core/channel.js';
import { type PersonaId, type RoomId, roomParts } from '../core/ids.js';
import {
  BEGINNING,
  END,
  type HeardMessage,
  isAfter,
  type Position,
  type Span,
  type Step,
  type StoredMessage,
  type TranscriptStore,
  type ViewRecord,
  type WindowAsk,
} from '../core/transcript.js';
import { type ChatRow, findChat } from './chats.js';
import * as db from './db.js';
import type { message, view } from './schema.js';
import { columns, insertInto, type Row, type Some } from './sql.js';

// ── Messages ────────────────────────────────────────────────────────────────────────────────────────────────

/** The columns written when a message arrives. */
export const MESSAGE = `roomId chatId account moves authorKind authorId authorName administrator text sentAt receivedAt
  platformMessageId mentionsBot replyTo edited state attachments words quiet addresses mentions twin bot reaction
  forwardedFrom album tainted`;
/** A platform's message, and the separate row of its edit, if any. */
export const IS_MESSAGE =
  'chat_id = @chatId and account = @account and moves = @moves and platform_message_id = @platformMessageId';

/** Whether the other table has the same platform message, by its id or as another copy of it. */
export const isIn = (table: 'message' | 'command', which: string) => `
  exists (select 1 from ${table} where ${IS_MESSAGE} ${which})
  or cast(@twin as text) is not null and exists (
    select 1 from ${table} where chat_id = @chatId and moves = @moves and twin = @twin and twin is not null ${which})`;

type Columns = typeof message.$inferInsert;
/** A message on arrival; what it does not say has a default. */
export type NewMessage = Omit<Columns, 'roomId' | 'chatId' | Unsaid | 'platformMessageId'> &
  Partial<Columns> & { platformMessageId: string };
/** The columns that everybody looks at; it may have any others. */
export type Arriving = Some<typeof message, 'authorKind authorId text receivedAt'>;
type Unsaid = 'administrator' | 'mentionsBot' | 'edited' | 'state';

export const MESSAGE_COLUMNS = columns(
  `id roomId authorKind authorId authorName administrator text sentAt receivedAt platformMessageId mentionsBot replyTo
    edited turnId attachments words quiet addresses mentions bot reaction
    forwardedFrom album tainted`,
  'message',
);
export const HEARD_COLUMNS = `heard_after as heardAfter, addressed, ${MESSAGE_COLUMNS}`;

export type MessageRow = Omit<Row<typeof message>, 'chatId' | 'account' | 'moves' | 'state' | 'twin'>;
export interface HeardRow extends MessageRow {
  heardAfter: number;
  addressed: number;
}

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
  const administrator = row.administrator === 1;
  const person = { kind: 'person', id, name: row.authorName, administrator } as const;
  return row.bot === 1 ? { ...person, bot: true } : person;
}

// ── A persona's view of a room, apart from the messages it heard ────────────────────────────────────────────

/** Something heard in the room has changed: invalidates cached windows. */
export function* reviseRoom(room: RoomId): db.Verb<void> {
  yield* db.tell('update room set revision = revision + 1 where id = ?', room);
}

/** The waiting messages have changed, so the claim of a worker that is about to start a turn becomes invalid. */
export function* moveFence(room: RoomId): db.Verb<void> {
  yield* db.tell(MOVE_FENCE, room);
}

const MOVE_FENCE = `
  update room set fence = fence + 1, lease_owner = null
  where id = ? and not exists (select 1 from turn where room_id = room.id and state = 'running')`;
const VIEW =
  'resetAt windowHeard windowMessage flushedHeard flushedMessage summary counted estimated tainted';
const FIND_VIEW = `select ${columns(VIEW)} from view where room_id = ? and persona_id = ?`;
type ViewRow = Omit<Row<typeof view>, 'roomId' | 'personaId'>;

export function* findView(room: RoomId, personaId: PersonaId): db.Verb<ViewRecord> {
  const row = yield* db.one<ViewRow>(FIND_VIEW, room, personaId);
  return {
    room,
    personaId,
    resetAt: row?.resetAt ?? 0,
    windowAfter: row ? { heardAfter: row.windowHeard, messageId: row.windowMessage } : BEGINNING,
    flushedTo: row ? { heardAfter: row.flushedHeard, messageId: row.flushedMessage } : BEGINNING,
    summary: row?.summary ?? null,
    measured: measuredIn(row),
    tainted: row?.tainted === 1,
  };
}

function measuredIn(row: ViewRow | undefined): ViewRecord['measured'] {
  if (!row || row.counted === null || row.estimated === null) return null;
  return { counted: row.counted, estimated: row.estimated };
}

/**
 * The position, or the reset mark if that is later. Nothing is heard before it is said, so everything that a reset
 * forgot was heard before the mark or has a smaller id.
 */
export function behindReset({ resetAt }: { resetAt: number }, place: Position): Position {
  const reset = { heardAfter: resetAt - 1, messageId: Number.MAX_SAFE_INTEGER };
  return isAfter(place, reset) ? place : reset;
}

// ── Hearings ───────────────────────────────────────────────────────────────────────────────────────────────

const HEAR = `${insertInto('heard', 'roomId personaId addressed heardAfter messageId')} on conflict do nothing`;

export function* noteHeard(
  roomId: RoomId,
  personaId: PersonaId,
  isAddressed: boolean,
  heardAfter: number,
  messageIds: readonly number[],
): db.Verb<void> {
  const addressed = Number(isAddressed);
  for (const messageId of messageIds) {
    yield* db.tell(HEAR, { roomId, personaId, addressed, heardAfter, messageId });
  }
}

/** The messages of one kind (addressed or overheard) heard between two positions. */
const heardBetween = (addressed: 0 | 1, order: 'asc' | 'desc', limit: string) => `
  select * from (
    select room_id, heard_after, message_id, addressed from heard
    where room_id = @room and persona_id = @personaId and addressed = ${addressed}
      and (heard_after, message_id) > (@afterHeard, @afterMessage)
      and (heard_after, message_id) <= (@toHeard, @toMessage)
      and message_id > @resetAt and not number_in(message_id, @except)
    -- SQLite compiles a statement anew whenever a bare parameter of its LIMIT is bound: hence the sum.
    order by heard_after ${order}, message_id ${order} limit ${limit} + 0) as spoken`;

/** `hasSteps`: the persona said it in a turn that used tools. */
const lines = (heard: string) => `
  select ${HEARD_COLUMNS}, case when author_kind = 'persona' and author_id = @personaId then
      (select used_tools from turn where turn.id = message.turn_id) end as hasSteps
  from (${heard}) as line join message on message.id = line.message_id`;
type Line = HeardRow & { hasSteps: number | null };
const NEWEST = lines(
  `${heardBetween(1, 'desc', '@limit')} union all ${heardBetween(0, 'desc', '@overheard')}`,
);
const OLDEST_ADDRESSED = lines(heardBetween(1, 'asc', '@limit'));
const NEWEST_OVERHEARD = lines(heardBetween(0, 'desc', '@overheard'));
const STEPS = `
  select turn_id as turnId, body from step where text_in(turn_id, @ids) order by turn_id, n`;

/** The span between two positions, without what a reset forgot, as parameters of a statement. */
export function boundsOf({ room, personaId, resetAt }: ViewRecord, after: Position, to: Position) {
  return { room, personaId, resetAt, ...ends(after, to) };
}

export function ends(after: Position, to: Position) {
  return {
    afterHeard: after.heardAfter,
    afterMessage: after.messageId,
    toHeard: to.heardAfter,
    toMessage: to.messageId,
  };
}

// No transaction needed: a change by another process moves the room's revision, so the result is not used again.
function* windowOf(ask: WindowAsk): db.Verb<Span & { view: ViewRecord }> {
  const { room, personaId, limit, overheard, except, after = BEGINNING } = ask;
  const view = yield* findView(room, personaId);
  const from = behindReset(view, isAfter(after, view.windowAfter) ? after : view.windowAfter);
  const most = { limit: limit + 1, overheard, except: JSON.stringify(except) };
  const found = inOrder(yield* db.all<Line>(NEWEST, { ...boundsOf(view, from, END), ...most }));
  const toIt = found.filter(({ addressed }) => addressed === 1);
  if (toIt.length <= limit) return { view, ...(yield* spanOf(found, false)) };
  // If the limit cuts off addressed messages, older overheard ones are dropped too, so that there are no gaps.
  const oldest = toIt[toIt.length - limit];
  const shown = oldest
    ? found.slice(found.indexOf(oldest))
    : found.filter(({ addressed }) => addressed === 0);
  return { view, ...(yield* spanOf(shown, true)) };
}

function* spanBetween(ask: Parameters<TranscriptStore['span']>[0]): db.Verb<Span> {
  const { room, personaId, after, upTo, limit, overheard } = ask;
  const view = yield* findView(room, personaId);
  const bounds = { ...boundsOf(view, behindReset(view, after), upTo), except: '[]', overheard };
  const found = yield* db.all<Line>(OLDEST_ADDRESSED, { ...bounds, limit: limit + 1 });
  const toIt = found.slice(0, limit);
  const more = found.length > limit;
  const end = (more ? toIt.at(-1) : undefined) ?? { heardAfter: upTo.heardAfter, id: upTo.messageId };
  const aside = yield* db.all<Line>(NEWEST_OVERHEARD, {
    ...bounds,
    toHeard: end.heardAfter,
    toMessage: end.id,
  });
  return yield* spanOf(inOrder([...toIt, ...aside]), more);
}

/** Sorted by position, without duplicates. */
function inOrder(rows: Line[]): Line[] {
  const sorted = rows.sort((a, b) => a.heardAfter - b.heardAfter || a.id - b.id);
  // In databases of the first version, a message that waited again was recorded twice: the later row counts.
  const byId = new Map<number, Line>();
  for (const row of sorted) {
    byId.delete(row.id);
    byId.set(row.id, row);
  }
  return [...byId.values()];
}

/** With the steps of the persona's own turns. */
function* spanOf(rows: Line[], more: boolean): db.Verb<Span> {
  const ids = [...new Set(rows.flatMap(({ hasSteps, turnId }) => (hasSteps === 1 && turnId) || []))];
  const steps = new Map<string, Step[]>();
  const found =
    ids.length === 0
      ? []
      : yield* db.all<{ turnId: string; body: string }>(STEPS, { ids: JSON.stringify(ids) });
  for (const { turnId, body } of found) {
    const ofTurn = steps.get(turnId) ?? [];
    ofTurn.push(JSON.parse(body));
    steps.set(turnId, ofTurn);
  }
  return { messages: rows.map(toHeard), steps, more };
}

export function transcriptStore(database: db.Database): TranscriptStore {
  return {
    window: (ask) => database.look(() => windowOf(ask)),
    span: (ask) => database.read(() => spanBetween(ask)),
  };
}

// ── A persona's messages ───────────────────────────────────────────────────────────────────────────────────

const SAY = `
  insert into message (room_id, chat_id, account, moves, author_kind, author_id, author_name, administrator, text,
    sent_at, received_at, mentions_bot, edited, state, turn_id, reaction, tainted)
  values (@room, @chatId, @account, @moves, 'persona', @personaId, @personaId, 0, @text,
    @now, @now, 0, 0, 'done', @turnId, @reaction, @tainted) returning id`;

export interface Spoken {
  room: RoomId;
  personaId: PersonaId;
  text: string;
  /** A reaction instead of words. */
  wordless?: boolean;
  /** It answers untrusted text. */
  tainted?: boolean;
  turnId: string | null;
  /** The other personas addressed, and those that overhear it. */
  addressed: PersonaId[];
  hearers: PersonaId[];
  now: number;
}

/** Adds a persona's reply or greeting. Returns the message's id. To be called within a transaction. */
export function* speak(chat: ChatRow, spoken: Spoken): db.Verb<number> {
  const { room, personaId, text, wordless, tainted, turnId, addressed, hearers, now } = spoken;
  const { chatId, account, moves } = chat;
  const row = { room, chatId, account, moves, personaId, text, now, turnId };
  const said = { ...row, reaction: wordless ? 1 : 0, tainted: tainted ? 1 : 0 };
  const id = (yield* db.value<number>(SAY, said)) ?? 0;
  const toWhom = new Set([personaId, ...addressed]);
  for (const hearer of new Set([...toWhom, ...hearers])) {
    yield* noteHeard(room, hearer, toWhom.has(hearer), id - 1, [id]);
  }
  return id;
}

const NOTE_NEWEST = `
  insert into room (id, chat_id, newest_platform_id, newest_message)
  values (@room, @chatId, @platformMessageId, @id)
  on conflict (id) do update set newest_message = larger(room.newest_message, excluded.newest_message),
    newest_platform_id = coalesce(excluded.newest_platform_id, room.newest_platform_id)`;

/** Makes the room, if it is new. `id`: of a message in it; 0: none. `platformMessageId`: of what a person did in it. */
export function* noteNewest(room: RoomId, id: number, platformMessageId: string | null): db.Verb<void> {
  yield* db.tell(NOTE_NEWEST, { room, chatId: roomParts(room).chatId, platformMessageId, id });
}

/** A persona's first message: it answers nothing, so it belongs to no turn. */
export function* greet(greeting: Greeting, now: number): db.Verb<void> {
  const chat = yield* findChat(roomParts(greeting.room).chatId);
  if (!chat) return;
  const id = yield* speak(chat, { ...greeting, turnId: null, addressed: [], now });
  yield* noteNewest(greeting.room, id, null);
}
