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
import { findView, reviseRoom } from './transcript.js';
import { addUsage } from './values.js';

/** A reset forgets a whole turn if any message that it answers is at or before the reset mark. */
export function beganBefore(upTo: string): string {
  return `turn.first_message <= ${upTo}`;
}

const SPAN = 'chatId file roomId personaId afterHeard afterMessage toHeard toMessage state';
type SpanRow = Row<typeof archived>;
const IS_VIEW = 'room_id = @room and persona_id = @personaId';
const IS_FILE = 'chat_id = @chatId and file = @file';
const UNSEEN = `
  select 1 from heard where ${IS_VIEW} and addressed = 1 and message_id > @resetAt
    and (heard_after, message_id) > (@afterHeard, @afterMessage)
    and (heard_after, message_id) <= (@toHeard, @toMessage) limit 1`;
const RESET = `
  insert into view (room_id, persona_id, reset_at) values (@room, @personaId, @upTo)
  on conflict (room_id, persona_id) do update set reset_at = larger(view.reset_at, excluded.reset_at), summary = null, counted = null,
    estimated = null, tainted = 0`;
const UNFLUSHED = `
  select ${columns(SPAN)} from archived where chat_id = @chatId and ${IS_VIEW} and state = 'unflushed'`;

/** Whether a span holds a message addressed to the persona that no flush has seen. */
function* owes(
  { room, personaId, resetAt, flushedTo }: ViewRecord,
  span: { after: Position; to: Position },
): db.Verb<boolean> {
  const after = isAfter(flushedTo, span.after) ? flushedTo : span.after;
  return (yield* db.one(UNSEEN, { room, personaId, resetAt, ...ends({ after, to: span.to }) })) !== undefined;
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
    and exists (select 1 from heard where room_id = room.id and persona_id = @personaId)`;
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
const LEAVES_TAINTED = `
  select 1 from heard join message on message.id = heard.message_id
  where heard.room_id = @room and persona_id = @personaId and addressed in (0, 1) and message_id > @resetAt
    and (heard_after, message_id) > (@afterHeard, @afterMessage)
    and (heard_after, message_id) <= (@toHeard, @toMessage) and message.tainted = 1 limit 1`;
const openWhere = (which: string) => `
  select ${columns(SPAN, 'archived')} from archived join chat on chat.id = archived.chat_id
  where archived.state <> 'settled' and ${which} order by to_heard`;
const OPEN_IN_CHANNELS = openWhere('text_in(channel, @channels)');
const OPEN_OF_VIEW = openWhere(`chat_id = @chatId and ${IS_VIEW}`);

/** The current view if it is unchanged since the caller read it, else null. */
function* unchanged(seen: SeenView): db.Verb<ViewRecord | null> {
  const now = yield* findView(seen.room, seen.personaId);
  const same =
    now.resetAt === seen.resetAt &&
    isSame(now.windowAfter, seen.windowAfter) &&
    isSame(now.flushedTo, seen.flushedTo);
  return same ? now : null;
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

/** Whether untrusted text is in the messages that leave the window, or in the previous summary. */
function* summaryIsTainted(view: ViewRecord, to: Position): db.Verb<boolean> {
  const { room, personaId, resetAt, windowAfter, tainted } = view;
  const span = ends({ after: windowAfter, to });
  return tainted || (yield* db.one(LEAVES_TAINTED, { room, personaId, resetAt, ...span })) !== undefined;
}

function* commitFlush(
  zone: Zone,
  { view: seen, to, usage, now }: Parameters<ViewStore['commitFlush']>[0],
): db.Verb<boolean> {
  if (usage) yield* addUsage(zone, seen, { turns: 0, ...usage }, now);
  const current = yield* unchanged(seen);
  if (!current) return false;
  if (isAfter(to, current.flushedTo)) {
    const cursor = { flushedHeard: to.heardAfter, flushedMessage: to.messageId };
    yield* db.tell(MOVE_CURSOR, { ...keyOf(seen), ...cursor });
  }
  return true;
}

function* moveWindow(zone: Zone, move: Parameters<ViewStore['moveWindow']>[0]): db.Verb<boolean> {
  const { view: seen, to, summary, archive, usage, now } = move;
  if (usage) yield* addUsage(zone, seen, { turns: 0, ...usage }, now);
  const current = yield* unchanged(seen);
  if (!current) return false;
  const isFlushed = !isAfter(to, current.flushedTo);
  const span = archive === null ? null : yield* archiveFor(current, archive, to);
  if (!isFlushed && !span) {
    throw new Fault(
      'internal',
      `the window of ${seen.personaId} in ${seen.room} would move past messages that no flush has seen and no archive holds`,
    );
  }
  // Not `owes`: the file's front matter is also derived from the cursor, and both must agree.
  if (span) yield* setState(span, isAfter(span.to, current.flushedTo) ? 'unflushed' : 'settled');
  const { heardAfter, messageId } = isAfter(to, current.windowAfter) ? to : current.windowAfter;
  yield* db.tell(MOVE_WINDOW, {
    ...keyOf(seen),
    windowHeard: heardAfter,
    windowMessage: messageId,
    summary,
    // The count belongs to the old window and must not affect the new one.
    counted: null,
    estimated: null,
    tainted: summary !== null && (yield* summaryIsTainted(current, to)) ? 1 : 0,
  });
  yield* reviseRoom(seen.room);
  return true;
}

function* noteArchive(archive: Parameters<ViewStore['noteArchive']>[0]): db.Verb<void> {
  const { chatId, file, state } = archive;
  if (state === 'writing') {
    const { room: roomId, personaId } = archive;
    yield* db.tell(insertInto('archived', SPAN), {
      chatId,
      file,
      roomId,
      personaId,
      ...ends(archive),
      state,
    });
    return;
  }
  if (state === 'dropped') {
    yield* db.tell(`delete from archived where ${IS_FILE} and state = 'writing'`, { chatId, file });
    return;
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

function ends({ after, to }: { after: Position; to: Position }) {
  return {
    afterHeard: after.heardAfter,
    afterMessage: after.messageId,
    toHeard: to.heardAfter,
    toMessage: to.messageId,
  };
}

/** The key of a view, and the reset mark of a new one. */
function keyOf({ room: roomId, personaId }: SeenView) {
  return { roomId, personaId, resetAt: 0 };
}

function isSame(a: Position, b: Position): boolean {
  return a.heardAfter === b.heardAfter && a.messageId === b.messageId;
}
