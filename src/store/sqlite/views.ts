/**
 * What one persona has of a room, beside the messages it heard: where its window begins, how far a flush has
 * seen it, and the archives that hold what no flush has seen. To be used within transactions of the verbs.
 */
import { and, eq, sql } from 'drizzle-orm';
import { type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import {
  type ArchivedSpan,
  BEGINNING,
  isBehind,
  type Measured,
  type Place,
  type ViewRecord,
} from '../../core/view.js';
import type { Connection } from './connection.js';
import { archived, given, heard, view } from './schema.js';

const slot = sql.placeholder;

/** To be called within a transaction. */
export interface Views {
  find(room: RoomId, personaId: PersonaId): ViewRecord;
  /** Whether a flush still has to see something that was said to the persona in a stretch of its view. */
  owes(view: ViewRecord, stretch: { after: Place; to: Place }): boolean;
  /** Notes the size of the last request. */
  measure(room: RoomId, personaId: PersonaId, measured: Measured): void;
  /** Forgets everything up to a message; no flush of it is owed any more. */
  reset(room: RoomId, personaId: PersonaId, upTo: number): void;
}

export function viewsOf({ query }: Pick<Connection, 'query'>): Views {
  const isView = and(eq(view.roomId, slot('room')), eq(view.personaId, slot('personaId')));
  const find = query.select().from(view).where(isView).prepare();
  const measure = query
    .insert(view)
    .values({
      roomId: slot('room'),
      personaId: slot('personaId'),
      resetAt: 0,
      counted: slot('counted'),
      estimated: slot('estimated'),
    })
    .onConflictDoUpdate({
      target: [view.roomId, view.personaId],
      set: { counted: sql`excluded.counted`, estimated: sql`excluded.estimated` },
    })
    .prepare();

  function findView(roomId: RoomId, personaId: PersonaId): ViewRecord {
    const row = find.get({ room: roomId, personaId });
    return row ? toView(row) : newView(roomId, personaId);
  }

  function owes(seen: ViewRecord, { after, to }: { after: Place; to: Place }): boolean {
    const from = isBehind(seen.flushedTo, after) ? seen.flushedTo : after;
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

  /** What was said after the reset's word came in may stand in an archive already: that is still owed. */
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
 * The place, or where a reset has put it: nothing is heard before it was said, so what a reset forgot was heard before
 * that, or is an older message.
 */
export function behindReset({ resetAt }: Pick<ViewRecord, 'resetAt'>, place: Place): Place {
  const reset = { heardAfter: resetAt - 1, messageId: Number.MAX_SAFE_INTEGER };
  return isBehind(place, reset) ? place : reset;
}

function newView(roomId: RoomId, personaId: PersonaId): ViewRecord {
  const places = { windowAfter: BEGINNING, flushedTo: BEGINNING };
  return { room: roomId, personaId, resetAt: 0, ...places, summary: null, measured: null };
}

function toView(row: typeof view.$inferSelect): ViewRecord {
  const { counted, estimated } = row;
  return {
    room: row.roomId,
    personaId: row.personaId,
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
