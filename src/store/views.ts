/**
 * How a persona's view of a room advances: where its window begins, how far a flush has seen it, and archives of
 * unflushed spans. A finished flush moves its cursor; only messages before the cursor or in an archive may leave the
 * window, and only `moveWindow` lets them.
 */

import type { Zone } from '../core/dates.js';
import { Fault } from '../core/errors.js';
import { type ChatId, type PersonaId, type RoomId, roomParts } from '../core/ids.js';
import {
  type ArchivedSpan,
  isAfter,
  type Position,
  type SeenView,
  type ViewRecord,
  type ViewStore,
} from '../core/transcript.js';
import * as db from './db.js';
import type { archived } from './schema.js';
import { columns, insertInto, type Row, upsert } from './sql.js';
import { boundsOf, ends, findView, reviseRoom } from './transcript.js';
import { addUsage } from './values.js';

/** A reset forgets a whole turn if any message that it answers is at or before the reset mark. */
export function beganBefore(upTo: string): string {
  return `turn.first_message <= ${upTo}`;
}

const SPAN = 'chatId file roomId personaId afterHeard afterMessage toHeard toMessage state';
type SpanRow = Row<typeof archived>;
type Flush = Parameters<ViewStore['commitFlush']>[0];
const IS_VIEW = 'room_id = @room and persona_id = @personaId';
const IS_FILE = 'chat_id = @chatId and file = @file';
const heardWithin = (which: string) => `
  select 1 from heard join message on message.id = heard.message_id
  where heard.room_id = @room and persona_id = @personaId and message_id > @resetAt
    and (heard_after, message_id) > (@afterHeard, @afterMessage)
    and (heard_after, message_id) <= (@toHeard, @toMessage) and ${which} limit 1`;
const ADDRESSED = heardWithin('addressed = 1');
const TAINTED = heardWithin('addressed in (0, 1) and message.tainted = 1');
const RESET = `
  insert into view (room_id, persona_id, reset_at) values (@room, @personaId, @upTo)
  on conflict (room_id, persona_id) do update set reset_at = larger(view.reset_at, excluded.reset_at), summary = null, counted = null,
    estimated = null, tainted = 0`;
const UNFLUSHED = `
  select ${columns(SPAN)} from archived where chat_id = @chatId and ${IS_VIEW} and state = 'unflushed'`;

/** Whether the persona heard such a message within the span. */
function* hasHeard(sql: string, view: ViewRecord, after: Position, to: Position): db.Verb<boolean> {
  return (yield* db.one(sql, boundsOf(view, after, to))) !== undefined;
}

/** Whether a span holds a message addressed to the persona that no flush has seen. */
function* owes(view: ViewRecord, { after, to }: ArchivedSpan): db.Verb<boolean> {
  return yield* hasHeard(ADDRESSED, view, isAfter(view.flushedTo, after) ? view.flushedTo : after, to);
}

/** Forgets everything up to a message and cancels its flush. To be called within a transaction. */
export function* resetView(room: RoomId, personaId: PersonaId, upTo: number): db.Verb<void> {
  yield* db.tell(RESET, { room, personaId, upTo });
  yield* db.tell(`delete from given where ${IS_VIEW}`, { room, personaId });
  // An archive may hold messages after the reset command: their flush stays pending.
  const seen = yield* findView(room, personaId);
  const whose = { room, personaId, chatId: roomParts(room).chatId };
  for (const row of yield* db.all<SpanRow>(UNFLUSHED, whose)) {
    if (!(yield* owes(seen, toSpan(row)))) yield* setState(row, 'settled');
  }
}

function* setState(
  { chatId, file }: { chatId: ChatId; file: string },
  state: ArchivedSpan['state'],
): db.Verb<void> {
  yield* db.tell(`update archived set state = @state where ${IS_FILE}`, { chatId, file, state });
}

const ROOMS_HEARD = `
  select id from room where (id = @chatId or (id > @from and id < @upTo))
    -- An \`exists\` would be joined to all that the persona ever heard.
    and (select 1 from heard where room_id = room.id and persona_id = @personaId limit 1) = 1`;
const HEARD_OF = `
  select count(distinct message_id) from heard
  where ${IS_VIEW} and addressed in (0, 1) and heard_after >= @from
    and number_in(message_id, @ids)`;
const MOVE_CURSOR = upsert('view', 'roomId personaId', 'flushedHeard flushedMessage', 'resetAt');
const MOVE_WINDOW = upsert(
  'view',
  'roomId personaId',
  'windowHeard windowMessage summary counted estimated tainted',
  'resetAt',
);
const openWhere = (which: string) => `
  select ${columns(SPAN, 'archived')} from archived join chat on chat.id = archived.chat_id
  where archived.state <> 'settled' and ${which} order by to_heard`;
const OPEN_IN_CHANNELS = openWhere('text_in(channel, @channels)');
const OPEN_OF_VIEW = openWhere(`chat_id = @chatId and ${IS_VIEW}`);

/** Adds what the move cost. The current view if it is unchanged since the caller read it, else null. */
function* spendAndFind(
  zone: Zone,
  { view: seen, usage, now }: Omit<Flush, 'to'>,
): db.Verb<ViewRecord | null> {
  if (usage) yield* addUsage(zone, seen, { turns: 0, ...usage }, now);
  const view = yield* findView(seen.room, seen.personaId);
  const same =
    view.resetAt === seen.resetAt &&
    isSame(view.windowAfter, seen.windowAfter) &&
    isSame(view.flushedTo, seen.flushedTo);
  return same ? view : null;
}

function* findArchive(chatId: ChatId, file: string): db.Verb<ArchivedSpan | null> {
  const sql = `select ${columns(SPAN)} from archived where ${IS_FILE}`;
  const row = yield* db.one<SpanRow>(sql, { chatId, file });
  return row ? toSpan(row) : null;
}

/** The archive being written for this view, if it covers everything from the window's start up to `to`. */
function* archiveFor(now: ViewRecord, file: string, to: Position): db.Verb<ArchivedSpan | null> {
  const span = yield* findArchive(roomParts(now.room).chatId, file);
  if (span?.room !== now.room || span.personaId !== now.personaId || span.state !== 'writing') return null;
  return isAfter(span.after, now.windowAfter) || isAfter(to, span.to) ? null : span;
}

function* commitFlush(zone: Zone, flush: Flush): db.Verb<boolean> {
  const current = yield* spendAndFind(zone, flush);
  if (!current) return false;
  const { heardAfter: flushedHeard, messageId: flushedMessage } = flush.to;
  if (isAfter(flush.to, current.flushedTo)) {
    yield* db.tell(MOVE_CURSOR, { ...keyOf(current), flushedHeard, flushedMessage });
  }
  return true;
}

function* moveWindow(zone: Zone, move: Parameters<ViewStore['moveWindow']>[0]): db.Verb<boolean> {
  const { to, summary, archive } = move;
  const current = yield* spendAndFind(zone, move);
  if (!current) return false;
  const isFlushed = !isAfter(to, current.flushedTo);
  const span = archive === null ? null : yield* archiveFor(current, archive, to);
  if (!isFlushed && !span) {
    throw new Fault(
      'internal',
      `the window of ${current.personaId} in ${current.room} would move past messages that no flush has seen and no archive holds`,
    );
  }
  // Not `owes`: the file's front matter is also derived from the cursor, and both must agree.
  if (span) yield* setState(span, isAfter(span.to, current.flushedTo) ? 'unflushed' : 'settled');
  const { heardAfter, messageId } = isAfter(to, current.windowAfter) ? to : current.windowAfter;
  const isTainted =
    summary !== null && (current.tainted || (yield* hasHeard(TAINTED, current, current.windowAfter, to)));
  yield* db.tell(MOVE_WINDOW, {
    ...keyOf(current),
    windowHeard: heardAfter,
    windowMessage: messageId,
    summary,
    // The count belongs to the old window and must not affect the new one.
    counted: null,
    estimated: null,
    tainted: isTainted ? 1 : 0,
  });
  yield* reviseRoom(current.room);
  return true;
}

function* noteArchive(archive: Parameters<ViewStore['noteArchive']>[0]): db.Verb<void> {
  const { chatId, file, state } = archive;
  if (state === 'writing') {
    const { room: roomId, personaId } = archive;
    const row = { chatId, file, roomId, personaId, ...ends(archive.after, archive.to), state };
    return yield* db.tell(insertInto('archived', SPAN), row);
  }
  if (state === 'dropped') {
    return yield* db.tell(`delete from archived where ${IS_FILE} and state = 'writing'`, { chatId, file });
  }
  const span = yield* findArchive(chatId, file);
  if (span?.state !== 'unflushed') return;
  if (yield* owes(yield* findView(span.room, span.personaId), span)) {
    throw new Fault('internal', `the archive ${file} of ${chatId} holds what no flush has seen`);
  }
  yield* setState(span, 'settled');
}

export function viewStore(database: db.Database): ViewStore {
  return {
    view: (room, personaId) =>
      database.look(function* () {
        const revision = (yield* db.value<number>('select revision from room where id = ?', room)) ?? 0;
        return { ...(yield* findView(room, personaId)), revision };
      }),
    allHeard: (room, personaIds, messageIds) =>
      database.read(function* () {
        const asked = { room, from: Math.min(...messageIds) - 1, ids: JSON.stringify(messageIds) };
        for (const personaId of personaIds) {
          const heard = yield* db.value<number>(HEARD_OF, { ...asked, personaId });
          if (heard !== messageIds.length) return false;
        }
        return true;
      }),
    roomsHeard: (chatId, personaId) =>
      // `0` is the character after `/`: the range covers all threads of the chat.
      database.look(() =>
        db.column<RoomId>(ROOMS_HEARD, { chatId, personaId, from: `${chatId}/`, upTo: `${chatId}0` }),
      ),
    commitFlush: (flush) => database.write(flush.view.room, () => commitFlush(database.zone, flush)),
    moveWindow: (move) => database.write(move.view.room, () => moveWindow(database.zone, move)),
    openArchives: (of) =>
      database.read(function* () {
        const rows =
          'channels' in of
            ? yield* db.all<SpanRow>(OPEN_IN_CHANNELS, { channels: JSON.stringify(of.channels) })
            : yield* db.all<SpanRow>(OPEN_OF_VIEW, { ...of, chatId: roomParts(of.room).chatId });
        return rows.map(toSpan);
      }),
    noteArchive: (archive) => database.write(archive.chatId, () => noteArchive(archive)),
  };
}

function toSpan({ chatId, roomId: room, personaId, file, state, ...row }: SpanRow): ArchivedSpan {
  const after = { heardAfter: row.afterHeard, messageId: row.afterMessage };
  const to = { heardAfter: row.toHeard, messageId: row.toMessage };
  return { chatId, room, personaId, file, after, to, state };
}

/** The key of a view, and the reset mark of a new one. */
function keyOf({ room: roomId, personaId }: SeenView) {
  return { roomId, personaId, resetAt: 0 };
}

function isSame(a: Position, b: Position): boolean {
  return a.heardAfter === b.heardAfter && a.messageId === b.messageId;
}
