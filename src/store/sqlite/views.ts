/**
 * A persona's view of a room, apart from the messages it heard: where its window begins, how far a flush has seen it,
 * and the archives of what no flush has seen. To be used within the verbs' transactions.
 */
import { and, eq, sql } from 'drizzle-orm';
import { type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import {
  type ArchivedSpan,
  BEGINNING,
  isAfter,
  type Measured,
  type Position,
  type ViewRecord,
} from '../../core/view.js';
import type { Connection } from './connection.js';
import { archived, given, heard, view } from './schema.js';

/** To be called within a transaction. */
export interface Views {
  find(room: RoomId, personaId: PersonaId): ViewRecord;
  /** Whether something addressed to the persona in a span of its view has not been seen by a flush. */
  owes(view: ViewRecord, stretch: { after: Position; to: Position }): boolean;
  /** Records the size of the last request. */
  measure(room: RoomId, personaId: PersonaId, measured: Measured): void;
  /** Forgets everything up to a message; its flush is no longer pending. */
  reset(room: RoomId, personaId: PersonaId, upTo: number): void;
}

export function viewsOf({ query, raw }: Pick<Connection, 'query' | 'raw'>): Views {
  const find = raw.prepare<[RoomId, PersonaId], ViewRow>(`
    select reset_at as resetAt, window_heard as windowHeard, window_message as windowMessage,
      flushed_heard as flushedHeard, flushed_message as flushedMessage, summary, counted, estimated
    from view where room_id = ? and persona_id = ?`);
  const measure = raw.prepare<[object]>(`
    insert into view (room_id, persona_id, reset_at, counted, estimated)
    values (@room, @personaId, 0, @counted, @estimated)
    on conflict do update set counted = excluded.counted, estimated = excluded.estimated`);

  function findView(room: RoomId, personaId: PersonaId): ViewRecord {
    const row = find.get(room, personaId);
    return row ? toView(room, personaId, row) : newView(room, personaId);
  }

  function owes(seen: ViewRecord, { after, to }: { after: Position; to: Position }): boolean {
    const from = isAfter(seen.flushedTo, after) ? seen.flushedTo : after;
    const place = sql`(${heard.heardAfter}, ${heard.messageId})`;
    const unseen = and(
      eq(heard.roomId, seen.room),
      eq(heard.personaId, seen.personaId),
      eq(heard.addressed, true),
      sql`${place} > (${from.heardAfter}, ${from.messageId})`,
      sql`${place} <= (${to.heardAfter}, ${to.messageId})`,
      sql`${heard.messageId} > ${seen.resetAt}`,
    );
    return query.select({ id: heard.messageId }).from(heard).where(unseen).get() !== undefined;
  }

  /** Messages after the reset command may be in an archive already: their flush stays pending. */
  function settleForgotten(seen: ViewRecord): void {
    const { chatId } = roomParts(seen.room);
    const unflushed = query
      .select()
      .from(archived)
      .where(
        and(
          eq(archived.chatId, chatId),
          eq(archived.roomId, seen.room),
          eq(archived.personaId, seen.personaId),
          sql`${archived.state} = 'unflushed'`,
        ),
      )
      .all()
      .map(toSpan);
    for (const span of unflushed) if (!owes(seen, span)) setState(query, span, 'settled');
  }

  return {
    find: findView,
    owes,
    measure: (roomId, personaId, measured) => {
      measure.run({ room: roomId, personaId, ...measured });
    },
    reset(roomId, personaId, upTo) {
      const forgotten = { summary: null, counted: null, estimated: null };
      query
        .insert(view)
        .values({ roomId, personaId, resetAt: upTo })
        .onConflictDoUpdate({
          target: [view.roomId, view.personaId],
          set: { resetAt: sql`max(${view.resetAt}, excluded.reset_at)`, ...forgotten },
        })
        .run();
      query
        .delete(given)
        .where(and(eq(given.roomId, roomId), eq(given.personaId, personaId)))
        .run();
      settleForgotten(findView(roomId, personaId));
    },
  };
}

export function setState(
  query: Connection['query'],
  { chatId, file }: Pick<ArchivedSpan, 'chatId' | 'file'>,
  state: ArchivedSpan['state'],
): void {
  query
    .update(archived)
    .set({ state })
    .where(and(eq(archived.chatId, chatId), eq(archived.file, file)))
    .run();
}

/**
 * The position, or the reset mark if that is later. Nothing is heard before it was said, so everything that a reset
 * forgot was heard before the mark or has a smaller id.
 */
export function behindReset({ resetAt }: Pick<ViewRecord, 'resetAt'>, place: Position): Position {
  const reset = { heardAfter: resetAt - 1, messageId: Number.MAX_SAFE_INTEGER };
  return isAfter(place, reset) ? place : reset;
}

function newView(roomId: RoomId, personaId: PersonaId): ViewRecord {
  return {
    room: roomId,
    personaId,
    resetAt: 0,
    windowAfter: BEGINNING,
    flushedTo: BEGINNING,
    summary: null,
    measured: null,
  };
}

type ViewRow = Omit<typeof view.$inferSelect, 'roomId' | 'personaId'>;

function toView(room: RoomId, personaId: PersonaId, row: ViewRow): ViewRecord {
  const { counted, estimated } = row;
  return {
    room,
    personaId,
    resetAt: row.resetAt,
    windowAfter: { heardAfter: row.windowHeard, messageId: row.windowMessage },
    flushedTo: { heardAfter: row.flushedHeard, messageId: row.flushedMessage },
    summary: row.summary,
    measured: counted === null || estimated === null ? null : { counted, estimated },
  };
}

export function toSpan(row: typeof archived.$inferSelect): ArchivedSpan {
  return {
    chatId: row.chatId,
    room: row.roomId,
    personaId: row.personaId,
    file: row.file,
    after: { heardAfter: row.afterHeard, messageId: row.afterMessage },
    to: { heardAfter: row.toHeard, messageId: row.toMessage },
    state: row.state,
  };
}
