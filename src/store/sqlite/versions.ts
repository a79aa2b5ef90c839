/** What stood in the files of memory before each change, and what of them a persona was last given. */
import { and, desc, eq, sql } from 'drizzle-orm';
import type { PersonaId, RoomId } from '../../core/ids.js';
import type { Given, KeepingStore } from '../../core/keeping.js';
import type { Connection } from './connection.js';
import { given, version } from './schema.js';

const slot = sql.placeholder;

/** So many changes of one persona's memory in a chat can be looked into and taken back. */
const KEPT_VERSIONS = 200;

export type Versions = Pick<KeepingStore, 'keepVersion' | 'dropVersion' | 'versions' | 'given'>;

export function versionStore({ query, read, write }: Connection): Versions {
  return {
    keepVersion: (kept) =>
      write(() => {
        query.insert(version).values(kept).run();
        const oldest = query
          .select({ n: version.n })
          .from(version)
          .where(and(eq(version.chatId, kept.chatId), eq(version.personaId, kept.personaId)))
          .orderBy(desc(version.n))
          .limit(1)
          .offset(KEPT_VERSIONS);
        query
          .delete(version)
          .where(
            and(
              eq(version.chatId, kept.chatId),
              eq(version.personaId, kept.personaId),
              sql`${version.n} <= (${oldest})`,
            ),
          )
          .run();
      }),
    dropVersion: (id) => write(() => void query.delete(version).where(eq(version.id, id)).run()),
    versions: ({ chatId, personaId, most }) =>
      read(() => {
        const whose = personaId === null ? sql`` : sql`and persona_id = ${personaId}`;
        return query
          .select()
          .from(version)
          .where(
            // SQLite compiles a statement anew whenever a bare parameter of its LIMIT is bound: hence the sum.
            sql`${version.n} in (
              select n from version where chat_id = ${chatId} ${whose} and undone = 0
              order by n desc limit ${most} + 0)`,
          )
          .orderBy(desc(version.n))
          .all()
          .map(({ n: _, undone: __, ...kept }) => kept);
      }),
    given: (room, personaId) =>
      read(
        () =>
          query
            .select({ memory: given.memory, dailyLog: given.dailyLog, recalled: given.recalled })
            .from(given)
            .where(and(eq(given.roomId, room), eq(given.personaId, personaId)))
            .get() ?? null,
      ),
  };
}

/** Notes what of memory an answer was given; to be called within its transaction. Mostly nothing has changed. */
export function giveNoterOf({
  query,
}: Connection): (room: RoomId, personaId: PersonaId, what: Given) => void {
  const note = query
    .insert(given)
    .values({
      roomId: slot('room'),
      personaId: slot('personaId'),
      memory: slot('memory'),
      dailyLog: slot('dailyLog'),
      recalled: slot('recalled'),
    })
    .onConflictDoUpdate({
      target: [given.roomId, given.personaId],
      set: {
        memory: sql`excluded.memory`,
        dailyLog: sql`excluded.daily_log`,
        recalled: sql`excluded.recalled`,
      },
      setWhere: sql`${given.memory} <> excluded.memory or ${given.dailyLog} <> excluded.daily_log
        or ${given.recalled} <> excluded.recalled`,
    })
    .prepare();
  return (room, personaId, what) => {
    note.run({ room, personaId, ...what });
  };
}
