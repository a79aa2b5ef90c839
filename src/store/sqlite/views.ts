/**
 * Beside the route: how a persona's view of a room moves on: where its window begins, how far a flush has seen it, and the
 * archives of what no flush has seen. A finished flush moves its cursor, and only messages that the cursor has
 * passed, or that an archive contains, may leave the window: `moveWindow` is the only place where they do.
 */
import { Fault } from '../../core/errors.js';
import { type ChatId, type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import {
  type ArchivedSpan,
  isAfter,
  type Position,
  type SeenView,
  type ViewRecord,
  type ViewStore,
} from '../../core/transcript.js';
import type { Connection } from './connection.js';
import type { archived } from './schema.js';
import { columns, excluded, insertInto, type Row } from './sql.js';
import { type FindView, REVISE_ROOM } from './transcript.js';
import type { AddUsage } from './values.js';

/** A reset forgets a whole turn if any message that it answers is at or before the reset mark. */
export function beganBefore(upTo: string): string {
  return `json_extract(turn.batch, '$[0]') <= ${upTo}`;
}

const SPAN = 'chatId file roomId personaId afterHeard afterMessage toHeard toMessage state';
const IS_VIEW = 'room_id = @room and persona_id = @personaId';
const IS_FILE = 'chat_id = @chatId and file = @file';
const SET_STATE = `update archived set state = @state where ${IS_FILE}`;

export type Views = ReturnType<typeof viewsOf>;

/** To be called within a transaction. */
export function viewsOf({ raw }: Connection, findView: FindView) {
  const unseen = raw.prepare<[object]>(`
    select 1 from heard where ${IS_VIEW} and addressed = 1 and message_id > @resetAt
      and (heard_after, message_id) > (@afterHeard, @afterMessage)
      and (heard_after, message_id) <= (@toHeard, @toMessage) limit 1`);
  const reset = raw.prepare<[object]>(`
    insert into view (room_id, persona_id, reset_at) values (@room, @personaId, @upTo)
    on conflict do update set reset_at = max(reset_at, excluded.reset_at), summary = null, counted = null,
      estimated = null, tainted = 0`);
  const forgetGiven = raw.prepare<[object]>(`delete from given where ${IS_VIEW}`);
  const unflushed = raw.prepare<[object], SpanRow>(`
    select ${columns(SPAN)} from archived where chat_id = @chatId and ${IS_VIEW} and state = 'unflushed'`);
  const setState = raw.prepare<[object]>(SET_STATE);

  /** Whether something addressed to the persona in a span of its view has not been seen by a flush. */
  function owes(
    { room, personaId, resetAt, flushedTo }: ViewRecord,
    span: { after: Position; to: Position },
  ) {
    const after = isAfter(flushedTo, span.after) ? flushedTo : span.after;
    return unseen.get({ room, personaId, resetAt, ...ends({ after, to: span.to }) }) !== undefined;
  }

  return {
    owes,
    /** Forgets everything up to a message; its flush is no longer pending. */
    reset(room: RoomId, personaId: PersonaId, upTo: number): void {
      reset.run({ room, personaId, upTo });
      forgetGiven.run({ room, personaId });
      // Messages after the reset command may be in an archive already: their flush stays pending.
      const seen = findView(room, personaId);
      for (const row of unflushed.all({ room, personaId, chatId: roomParts(room).chatId })) {
        const { chatId, file } = row;
        if (!owes(seen, toSpan(row))) setState.run({ chatId, file, state: 'settled' });
      }
    },
  };
}

export function viewStore(
  connection: Connection,
  findView: FindView,
  views: Views,
  addUsage: AddUsage,
): Omit<ViewStore, 'span' | 'hasOtherRooms'> {
  const { raw, read, withBusyRetry: patiently, write } = connection;
  const revise = raw.prepare<[string]>(REVISE_ROOM);
  const revision = raw.prepare<[string], number>('select revision from room where id = ?').pluck();
  const roomsHeard = raw
    .prepare<[ChatId, PersonaId], RoomId>(`
      select id from room where chat_id = ?
        and exists (select 1 from heard where room_id = room.id and persona_id = ?)`)
    .pluck();
  const heardOf = raw
    .prepare<[object], number>(`
      select count(distinct message_id) from heard
      where ${IS_VIEW} and addressed in (0, 1) and heard_after >= @from
        and message_id in (select value from json_each(@ids))`)
    .pluck();
  /** Stores these columns of a view. */
  const change = (names: string) =>
    raw.prepare<[object]>(`
      ${insertInto('view', `roomId personaId resetAt ${names}`)} on conflict do update set ${excluded(names)}`);
  const moveCursor = change('flushedHeard flushedMessage');
  const moveWindow = change('windowHeard windowMessage summary counted estimated tainted');
  const leavesTainted = raw.prepare<[object]>(`
    select 1 from heard cross join message on message.id = heard.message_id
    where ${IS_VIEW.replace('room_id', 'heard.room_id')} and addressed in (0, 1) and message_id > @resetAt
      and (heard_after, message_id) > (@afterHeard, @afterMessage)
      and (heard_after, message_id) <= (@toHeard, @toMessage) and message.tainted = 1 limit 1`);
  const addArchive = raw.prepare<[object]>(insertInto('archived', SPAN));
  const archive = raw.prepare<[object], SpanRow>(`select ${columns(SPAN)} from archived where ${IS_FILE}`);
  const open = (which: string) =>
    raw.prepare<[object], SpanRow>(`
      select ${columns(SPAN, 'archived')} from archived join chat on chat.id = archived.chat_id
      where archived.state <> 'settled' and ${which} order by to_heard`);
  const openInChannels = open('channel in (select value from json_each(@channels))');
  const openOfView = open(`chat_id = @chatId and ${IS_VIEW}`);
  const setState = raw.prepare<[object]>(SET_STATE);
  const dropArchive = raw.prepare<[object]>(`delete from archived where ${IS_FILE} and state = 'writing'`);

  /** Whether words from outside are among what leaves the window, or in the summary of what left it before. */
  function isTainted({ room, personaId, resetAt, windowAfter, tainted }: ViewRecord, to: Position): boolean {
    const span = ends({ after: windowAfter, to });
    return tainted || leavesTainted.get({ room, personaId, resetAt, ...span }) !== undefined;
  }

  /** The current view, if it is still what the caller has read. */
  function unchanged(seen: SeenView): ViewRecord | null {
    const now = findView(seen.room, seen.personaId);
    const same =
      now.resetAt === seen.resetAt &&
      isSame(now.windowAfter, seen.windowAfter) &&
      isSame(now.flushedTo, seen.flushedTo);
    return same ? now : null;
  }

  function findArchive(chatId: ChatId, file: string): ArchivedSpan | null {
    const row = archive.get({ chatId, file });
    return row ? toSpan(row) : null;
  }

  /** The archive begun for this view, if it contains everything from the window's beginning up to `to`. */
  function archiveFor(now: ViewRecord, file: string, to: Position): ArchivedSpan | null {
    const span = findArchive(roomParts(now.room).chatId, file);
    if (span?.room !== now.room || span.personaId !== now.personaId || span.state !== 'writing') return null;
    return isAfter(span.after, now.windowAfter) || isAfter(to, span.to) ? null : span;
  }

  return {
    view: (room, personaId) =>
      patiently(() => ({ ...findView(room, personaId), revision: revision.get(room) ?? 0 })),

    allHeard: (room, personaIds, messageIds) =>
      read(() => {
        const asked = { room, from: Math.min(...messageIds) - 1, ids: JSON.stringify(messageIds) };
        return personaIds.every((personaId) => heardOf.get({ ...asked, personaId }) === messageIds.length);
      }),

    roomsHeard: (chatId, personaId) => read(() => roomsHeard.all(chatId, personaId)),

    commitFlush: ({ view: seen, to, usage: used, now }) =>
      write(() => {
        if (used) addUsage(seen, { turns: 0, ...used }, now);
        const current = unchanged(seen);
        if (!current) return false;
        if (isAfter(to, current.flushedTo)) {
          moveCursor.run({ ...keyOf(seen), flushedHeard: to.heardAfter, flushedMessage: to.messageId });
        }
        return true;
      }),

    beginArchive: ({ chatId, file, room: roomId, personaId, ...span }) =>
      write(
        () => void addArchive.run({ chatId, file, roomId, personaId, ...ends(span), state: 'writing' }),
        'single',
      ),

    moveWindow: ({ view: seen, to, summary, archive, usage: used, now }) =>
      write(() => {
        if (used) addUsage(seen, { turns: 0, ...used }, now);
        const current = unchanged(seen);
        if (!current) return false;
        const isFlushed = !isAfter(to, current.flushedTo);
        const span = archive === null ? null : archiveFor(current, archive, to);
        if (!isFlushed && !span) {
          throw new Fault(
            'internal',
            `the window of ${seen.personaId} in ${seen.room} would move past messages that no flush has seen and no archive holds`,
          );
        }
        if (span) {
          // Not `owes`: the file's front matter is set from the cursor as well, together with this.
          const state = isAfter(span.to, current.flushedTo) ? 'unflushed' : 'settled';
          setState.run({ chatId: span.chatId, file: span.file, state });
        }
        const { heardAfter, messageId } = isAfter(to, current.windowAfter) ? to : current.windowAfter;
        const place = { windowHeard: heardAfter, windowMessage: messageId };
        // The count belongs to the old window: if it was wrong, it must not affect the new one.
        const counts = { counted: null, estimated: null };
        const tainted = summary !== null && isTainted(current, to) ? 1 : 0;
        moveWindow.run({ ...keyOf(seen), ...place, summary, ...counts, tainted });
        revise.run(seen.room);
        return true;
      }),

    openArchives: (of) =>
      read(() => {
        const rows =
          'channels' in of
            ? openInChannels.all({ channels: JSON.stringify(of.channels) })
            : openOfView.all({ ...of, chatId: roomParts(of.room).chatId });
        return rows.map(toSpan);
      }),

    settleArchive: (chatId, file) =>
      write(() => {
        const span = findArchive(chatId, file);
        if (span?.state !== 'unflushed') return;
        if (views.owes(findView(span.room, span.personaId), span)) {
          throw new Fault('internal', `the archive ${file} of ${chatId} holds what no flush has seen`);
        }
        setState.run({ chatId, file, state: 'settled' });
      }),

    dropArchive: (chatId, file) => write(() => void dropArchive.run({ chatId, file }), 'single'),
  };
}

type SpanRow = Row<typeof archived>;

function toSpan({ chatId, roomId: room, personaId, file, state, ...row }: SpanRow): ArchivedSpan {
  const after = { heardAfter: row.afterHeard, messageId: row.afterMessage };
  const to = { heardAfter: row.toHeard, messageId: row.toMessage };
  return { chatId, room, personaId, file, after, to, state };
}

/** A span's two ends, as columns. */
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
