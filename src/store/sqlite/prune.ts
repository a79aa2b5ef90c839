/** What is kept too long leaves the disk, in steps of milliseconds. */
import { setImmediate as nextPass } from 'node:timers/promises';
import type { PersonaId, RoomId } from '../../core/ids.js';
import type { UpkeepStore } from '../../core/store.js';
import type { Connection } from './connection.js';

/** So many messages are looked through before others may go on. */
const STRIDE = 2_000;
/** A message is heard soon after it came in: not more than so many others of its room come between. */
const NEARBY = 500;

/** The newest row stays, so that no id is given twice. */
const notNewest = (table: string, key: string) => `${key} < (select max(${key}) from ${table})`;

export function pruneStore({ raw, memory, patiently, read, write }: Connection): UpkeepStore {
  const remove = (from: string, key: string, where: string) =>
    raw.prepare<[object]>(`
      delete from ${from} where ${key} in (select ${key} from ${from} where ${where} limit @most + 0)`);
  const isOver = `state in ('answered', 'failed', 'aborted') and finished_at < @before`;
  const old = [
    remove(
      'outbox',
      'id',
      `state in ('sent', 'refused', 'unconfirmed', 'dropped') and finished_at < @before and ${notNewest('outbox', 'id')}`,
    ),
    remove('step', 'turn_id', `turn_id in (select id from turn where ${isOver})`),
    remove('turn', 'id', isOver),
    remove('command', 'id', `finished_at < @before and ${notNewest('command', 'id')}`),
    remove('pairing', 'id', `kind = 'sender' and expires_at < @before`),
    remove('version', 'n', `at < @before and ${notNewest('version', 'n')}`),
    remove('question', 'id', `until < @before`),
  ];
  const forgottenHearings = raw.prepare<[object]>(`
    delete from heard where (room_id, persona_id, addressed, heard_after, message_id) in (
      select heard.room_id, heard.persona_id, addressed, heard_after, message_id
      from view cross join heard on heard.room_id = view.room_id and heard.persona_id = view.persona_id
        and addressed in (0, 1) and heard_after < view.reset_at
      where view.reset_at > 0 limit @most + 0)`);
  const nextMessage = raw
    .prepare<[object], number | null>(`
      select max(id) from (select id from message where id > @after order by id limit ${STRIDE})`)
    .pluck();
  const maybeForgotten = raw.prepare<[object], { id: number; room: RoomId }>(`
    select id, room_id as room from message
    where id > @after and id <= @upTo and state = 'done' and ${notNewest('message', 'id')}
      and id <= (select max(reset_at) from view where view.room_id = message.room_id)`);
  const resetsOf = raw.prepare<[RoomId], { personaId: PersonaId; resetAt: number }>(
    'select persona_id as personaId, reset_at as resetAt from view where room_id = ?',
  );
  const nextHearer = raw
    .prepare<[RoomId, PersonaId], PersonaId>(
      'select persona_id from heard where room_id = ? and persona_id > ? order by persona_id limit 1',
    )
    .pluck();
  const hears = raw.prepare<[object]>(`
    select 1 from (
      select message_id from heard
      where room_id = @room and persona_id = @personaId and addressed = @addressed and heard_after >= @id - 1
      order by heard_after, message_id limit ${NEARBY}) as nearby
    where nearby.message_id = @id`);
  const removeMessages = raw.prepare<[string]>(
    'delete from message where id in (select value from json_each(?))',
  );
  const autoVacuum = raw.prepare<[], number>('PRAGMA auto_vacuum').pluck();
  const freePages = raw.prepare<[], number>('PRAGMA freelist_count').pluck();
  const allPages = raw.prepare<[], number>('PRAGMA page_count').pluck();
  const pageSize = raw.prepare<[], number>('PRAGMA page_size').pluck();
  const counted = ['message', 'outbox', 'command', 'version'].map((table) => {
    const key = table === 'version' ? 'n' : 'id';
    // By their ids: to count them, SQLite would read them all.
    const span = `select coalesce(max(${key}) - (select min(${key}) from ${table}) + 1, 0) from ${table}`;
    return { table, rows: raw.prepare<[], number>(span).pluck() };
  });

  /** Up to here messages were looked through in this round. */
  let lookedTo = 0;

  /** Whether somebody heard it whom no reset has made forget it. */
  function isHeard(id: number, room: RoomId): boolean {
    const resets = new Map(resetsOf.all(room).map(({ personaId, resetAt }) => [personaId, resetAt]));
    let personaId = nextHearer.get(room, '');
    for (; personaId !== undefined; personaId = nextHearer.get(room, personaId)) {
      if (id <= (resets.get(personaId) ?? 0)) continue;
      for (const addressed of [1, 0]) if (hears.get({ room, personaId, addressed, id })) return true;
    }
    return false;
  }

  /** Of what a reset has made a persona forget, what nobody else may still see. */
  async function pruneMessages(most: number): Promise<number> {
    let gone = 0;
    while (gone < most) {
      const after = lookedTo;
      const upTo = await read(() => nextMessage.get({ after }));
      if (upTo === null || upTo === undefined) {
        lookedTo = 0;
        break;
      }
      gone += await write(() => {
        const forgotten = maybeForgotten.all({ after, upTo }).filter(({ id, room }) => !isHeard(id, room));
        return removeMessages.run(JSON.stringify(forgotten.map(({ id }) => id))).changes;
      });
      lookedTo = upTo;
      await nextPass();
    }
    return gone;
  }

  return {
    async prune({ before, most }) {
      let gone = 0;
      for (const statement of [...old, forgottenHearings]) {
        if (gone >= most) return gone;
        gone += await write(() => statement.run({ before, most: most - gone }).changes, 'single');
      }
      memory.clear();
      return gone < most ? gone + (await pruneMessages(most - gone)) : gone;
    },

    async shrink(pages) {
      if (autoVacuum.get() !== INCREMENTAL) return false;
      await write(() => void raw.exec(`PRAGMA incremental_vacuum(${Math.trunc(pages)})`), 'single');
      return patiently(() => (freePages.get() ?? 0) > 0);
    },

    sizes: () =>
      read(() => {
        const bytes = pageSize.get() ?? 0;
        return {
          bytes: (allPages.get() ?? 0) * bytes,
          free: (freePages.get() ?? 0) * bytes,
          rows: Object.fromEntries(counted.map(({ table, rows }) => [table, rows.get() ?? 0])),
        };
      }),
  };
}

const INCREMENTAL = 2;
