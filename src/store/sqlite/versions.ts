/** The versions of memory files, and the memory that a persona was last given. */
import { and, desc, eq, sql } from 'drizzle-orm';
import type { MemoryHistoryStore } from '../../core/memory-history.js';
import type { Connection } from './connection.js';
import { given, version } from './schema.js';

/** How many changes of one persona's memory in a chat are kept and can be undone. */
const KEPT_VERSIONS = 200;

export type Versions = Pick<MemoryHistoryStore, 'keepVersion' | 'dropVersion' | 'versions' | 'promptMemory'>;

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
    versions: ({ chatId, personaId, most, turnId }) =>
      read(() => {
        const whose = personaId === null ? sql`` : sql`and persona_id = ${personaId}`;
        const by = turnId === undefined ? sql`` : sql`and cause->>'turnId' = ${turnId}`;
        return query
          .select()
          .from(version)
          .where(
            // SQLite recompiles a statement whenever a bare LIMIT parameter is bound, but not for an expression: hence
            // the sum.
            sql`${version.n} in (
              select n from version where chat_id = ${chatId} ${whose} ${by} and undone = 0
              order by n desc limit ${most} + 0)`,
          )
          .orderBy(desc(version.n))
          .all()
          .map(({ n: _, undone: __, ...kept }) => kept);
      }),
    promptMemory: (room, personaId) =>
      read(
        () =>
          query
            .select({
              memory: given.memory,
              dailyLog: given.dailyLog,
              recalled: given.recalled,
              summary: given.summary,
            })
            .from(given)
            .where(and(eq(given.roomId, room), eq(given.personaId, personaId)))
            .get() ?? null,
      ),
  };
}
