/** The versions of memory files, and the memory that a persona was last given. */
import type { MemoryHistoryStore, PromptMemory } from '../../core/memory-history.js';
import { addedLines, memoryPath } from '../../core/origin.js';
import { bound, columns, insertInto, type Row } from './columns.js';
import type { Connection } from './connection.js';
import type { MarkLines } from './origins.js';
import type { version } from './schema.js';

/** How many changes of one persona's memory in a chat are kept and can be undone. */
const KEPT_VERSIONS = 200;

export type Versions = Pick<MemoryHistoryStore, 'keepVersion' | 'dropVersion' | 'versions' | 'promptMemory'>;

/** Of what a persona was given for its last answer in a room. */
export const GIVEN = 'memory dailyLog recalled summary';
const VERSION = 'id chatId personaId file tier before after at cause';
type VersionRow = Omit<Row<typeof version>, 'n' | 'undone' | 'tier'> &
  Pick<typeof version.$inferSelect, 'tier'>;

export function versionStore({ raw, read, write }: Connection, markLines: MarkLines): Versions {
  const keep = raw.prepare<[object]>(insertInto('version', VERSION));
  const dropOldest = raw.prepare<[object]>(`
    delete from version where chat_id = @chatId and persona_id = @personaId and n <= (
      select n from version where chat_id = @chatId and persona_id = @personaId
      order by n desc limit 1 offset ${KEPT_VERSIONS})`);
  const drop = raw.prepare<[string]>('delete from version where id = ?');
  // SQLite recompiles a statement whenever a bare LIMIT parameter is bound, but not for an expression: hence the sum.
  const newest = (which: string) =>
    raw.prepare<[object], VersionRow>(`
      select ${columns(VERSION)} from version where n in (
        select n from version where chat_id = @chatId ${which} and undone = 0 order by n desc limit @most + 0)
      order by n desc`);
  const given = raw.prepare<[string, string], PromptMemory>(`
    select ${columns(GIVEN)} from given where room_id = ? and persona_id = ?`);

  return {
    keepVersion: (kept) =>
      write(() => {
        keep.run(bound(kept));
        const { cause, chatId, file, before, after } = kept;
        // Where the write then fails, marks of lines that stand nowhere do no harm.
        if (cause.tainted) markLines(memoryPath(chatId, file), addedLines(before, after));
        dropOldest.run({ chatId: kept.chatId, personaId: kept.personaId });
      }),
    dropVersion: (id) => write(() => void drop.run(id), 'single'),
    versions: ({ chatId, personaId, most, turnId = null }) =>
      read(() => {
        const whose = personaId === null ? '' : 'and persona_id = @personaId';
        const by = turnId === null ? '' : `and cause->>'turnId' = @turnId`;
        return newest(`${whose} ${by}`)
          .all({ chatId, personaId, most, turnId })
          .map((row) => ({ ...row, cause: JSON.parse(row.cause) }));
      }),
    promptMemory: (room, personaId) => read(() => given.get(room, personaId) ?? null),
  };
}
