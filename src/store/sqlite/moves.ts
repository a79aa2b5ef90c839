/**
 * How a view advances: a finished flush moves its cursor, and only messages that the cursor has passed, or that an
 * archive contains, may leave the window. `moveWindow` is the only place where they do.
 */
import { and, eq, inArray, ne, sql } from 'drizzle-orm';
import { Fault } from '../../core/errors.js';
import { type ChatId, roomParts } from '../../core/ids.js';
import {
  type ArchivedSpan,
  isAfter,
  type Position,
  type SeenView,
  type ViewRecord,
  type ViewStore,
} from '../../core/view.js';
import type { Connection } from './connection.js';
import { REVISE_ROOM } from './rows.js';
import { archived, chat, heard, room, view } from './schema.js';
import type { AddUsage } from './usage.js';
import { setState, toSpan, type Views } from './views.js';

export function viewStore(connection: Connection, views: Views, addUsage: AddUsage): Omit<ViewStore, 'span'> {
  const { query, raw, read, patiently, write } = connection;
  const revise = raw.prepare<[string]>(REVISE_ROOM);
  const otherRoom = raw.prepare<[object], { id: string }>(`
    select id from room where (id = @chatId or (id > @from and id < @upTo)) and id <> @room limit 1`);

  const heardOf = raw
    .prepare<[object], number>(`
      select count(distinct message_id) from heard
      where room_id = @roomId and persona_id = @personaId and addressed in (0, 1) and heard_after >= @from
        and message_id in (select value from json_each(@ids))`)
    .pluck();

  /** The current view, if it is still what the caller has read. */
  function unchanged(seen: SeenView): ViewRecord | null {
    const now = views.find(seen.room, seen.personaId);
    const same =
      now.resetAt === seen.resetAt &&
      isSame(now.windowAfter, seen.windowAfter) &&
      isSame(now.flushedTo, seen.flushedTo);
    return same ? now : null;
  }

  function change({ room: roomId, personaId }: SeenView, set: Partial<typeof view.$inferInsert>): void {
    query
      .insert(view)
      .values({ roomId, personaId, resetAt: 0, ...set })
      .onConflictDoUpdate({ target: [view.roomId, view.personaId], set })
      .run();
  }

  function findArchive(chatId: ChatId, file: string): ArchivedSpan | null {
    const isThis = and(eq(archived.chatId, chatId), eq(archived.file, file));
    const row = query.select().from(archived).where(isThis).get();
    return row ? toSpan(row) : null;
  }

  /** The archive begun for this view, if it contains everything from the window's beginning up to `to`. */
  function archiveFor(now: ViewRecord, file: string, to: Position): ArchivedSpan | null {
    const span = findArchive(roomParts(now.room).chatId, file);
    if (span?.room !== now.room || span.personaId !== now.personaId || span.state !== 'writing') return null;
    return isAfter(span.after, now.windowAfter) || isAfter(to, span.to) ? null : span;
  }

  return {
    view: (roomId, personaId) => patiently(() => views.find(roomId, personaId)),

    hasOtherRooms: (room) =>
      patiently(() => {
        const { chatId } = roomParts(room);
        // `0` is the character after `/`: the range covers all threads of the chat.
        const range = { room, chatId, from: `${chatId}/`, upTo: `${chatId}0` };
        return otherRoom.get(range) !== undefined;
      }),

    allHeard: (roomId, personaIds, messageIds) =>
      read(() =>
        personaIds.every((personaId) => {
          const from = Math.min(...messageIds) - 1;
          return (
            heardOf.get({ roomId, personaId, from, ids: JSON.stringify(messageIds) }) === messageIds.length
          );
        }),
      ),

    roomsHeard: (chatId, personaId) =>
      read(() =>
        query
          .select({ id: room.id })
          .from(room)
          .where(
            and(
              eq(room.chatId, chatId),
              sql`exists (select 1 from ${heard} where ${heard.roomId} = ${room.id} and ${heard.personaId} = ${personaId})`,
            ),
          )
          .all()
          .map(({ id }) => id),
      ),

    commitFlush: ({ view: seen, to, usage: used, now }) =>
      write(() => {
        if (used) addUsage(seen, { turns: 0, ...used }, now);
        const current = unchanged(seen);
        if (!current) return false;
        if (isAfter(to, current.flushedTo)) {
          change(seen, { flushedHeard: to.heardAfter, flushedMessage: to.messageId });
        }
        return true;
      }),

    beginArchive: ({ chatId, file, room: roomId, personaId, after, to }) =>
      write(() => {
        const span = {
          roomId,
          personaId,
          afterHeard: after.heardAfter,
          afterMessage: after.messageId,
          toHeard: to.heardAfter,
          toMessage: to.messageId,
          state: 'writing' as const,
        };
        query
          .insert(archived)
          .values({ chatId, file, ...span })
          .run();
      }),

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
        // Not `owes`: the file's front matter is set from the cursor as well, together with this.
        if (span) setState(query, span, isAfter(span.to, current.flushedTo) ? 'unflushed' : 'settled');
        const moved = isAfter(to, current.windowAfter) ? to : current.windowAfter;
        // The count belongs to the old window: if it was wrong, it must not affect the new one.
        const place = { windowHeard: moved.heardAfter, windowMessage: moved.messageId };
        change(seen, { ...place, summary, counted: null, estimated: null });
        revise.run(seen.room);
        return true;
      }),

    openArchives: (of) =>
      read(() =>
        query
          .select({ archived })
          .from(archived)
          .innerJoin(chat, eq(chat.id, archived.chatId))
          .where(
            and(
              ne(archived.state, 'settled'),
              'channels' in of
                ? inArray(chat.channel, of.channels)
                : and(
                    eq(archived.chatId, roomParts(of.room).chatId),
                    eq(archived.roomId, of.room),
                    eq(archived.personaId, of.personaId),
                  ),
            ),
          )
          .orderBy(archived.toHeard)
          .all()
          .map((row) => toSpan(row.archived)),
      ),

    settleArchive: (chatId, file) =>
      write(() => {
        const span = findArchive(chatId, file);
        if (span?.state !== 'unflushed') return;
        if (views.owes(views.find(span.room, span.personaId), span)) {
          throw new Fault('internal', `the archive ${file} of ${chatId} holds what no flush has seen`);
        }
        setState(query, span, 'settled');
      }),

    dropArchive: (chatId, file) =>
      write(
        () =>
          void query
            .delete(archived)
            .where(and(eq(archived.chatId, chatId), eq(archived.file, file), eq(archived.state, 'writing')))
            .run(),
      ),
  };
}

function isSame(a: Position, b: Position): boolean {
  return a.heardAfter === b.heardAfter && a.messageId === b.messageId;
}
