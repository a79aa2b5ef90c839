/** What is kept too long leaves the disk, in steps of milliseconds. */
import { setImmediate as nextPass } from 'node:timers/promises';
import type { PersonaId, RoomId } from '../../core/ids.js';
import type { UpkeepStore } from '../../core/store.js';
import type { Connection } from './connection.js';

/** So many messages are looked through before others may go on. */
const STRIDE = 2_000;
/** A message is heard soon after it came in: not more than so many others of its room come between. */
const NEARBY = 500;

/** Rows that grow old: gone through in strides along a key that grows. */
interface Ageing {
  table: string;
  /** The columns that name a row. */
  row: string;
  isOld: string;
  /** The key of this table, or of the one that its rows belong to. */
  along: { table: string; key: string; first: number | string };
  /** Where rows stand in the order of this time, no younger ones are looked at. */
  time: string | null;
}

/** The newest row stays, so that no id is given twice. */
const notNewest = (table: string, key: string) => `${key} < (select max(${key}) from ${table})`;

function growing(table: string, time: string, isOld: string, key = 'id'): Ageing {
  const along = { table, key, first: 0 };
  return { table, row: key, isOld: `${isOld} and ${notNewest(table, key)}`, along, time };
}

const IS_OVER = `turn.state in ('answered', 'failed', 'aborted') and turn.finished_at < @before`;
const ALONG_TURNS = { table: 'turn', key: 'id', first: '' };

const AGEING: Ageing[] = [
  growing(
    'outbox',
    'created_at',
    `state in ('sent', 'refused', 'unconfirmed', 'dropped') and finished_at < @before`,
  ),
  growing('command', 'received_at', 'finished_at < @before'),
  growing('version', 'at', 'at < @before', 'n'),
  {
    table: 'step',
    row: 'turn_id, n',
    isOld: `exists (select 1 from turn where turn.id = turn_id and ${IS_OVER})`,
    along: { ...ALONG_TURNS, key: 'turn_id', table: 'step' },
    time: null,
  },
  { table: 'turn', row: 'id', isOld: IS_OVER, along: ALONG_TURNS, time: null },
];

export function pruneStore({ raw, memory, patiently, read, write }: Connection): UpkeepStore {
  const ageing = AGEING.map(({ table, row, isOld, along: { key, first }, time }) => ({
    first,
    /** Up to here rows were looked at in this round. */
    lookedTo: first,
    next: raw.prepare<[object], { upTo: number | string | null }>(`
      select max(${key}) as upTo from (
        select ${key} from ${table} where ${key} > @after order by ${key} limit ${STRIDE})`),
    remove: raw.prepare<[object]>(`
      delete from ${table} where (${row}) in (
        select ${row} from ${table} where ${key} > @after and ${key} <= @upTo and ${isOld} limit @most + 0)`),
    isYoung:
      time === null
        ? null
        : raw.prepare<[object]>(`select 1 from ${table} where ${key} = @upTo and ${time} >= @before`),
  }));
  const expired = [
    raw.prepare<[object]>(`
      delete from pairing where id in (
        select id from pairing where kind = 'sender' and expires_at < @before limit @most + 0)`),
    raw.prepare<[object]>(`
      delete from question where id in (select id from question where until < @before limit @most + 0)`),
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

  /** Removes what is old in one table. */
  async function pruneTable(table: (typeof ageing)[number], before: number, most: number): Promise<number> {
    let gone = 0;
    while (gone < most) {
      const after = table.lookedTo;
      const upTo = (await patiently(() => table.next.get({ after })))?.upTo ?? null;
      if (upTo === null) {
        table.lookedTo = table.first;
        break;
      }
      const left = most - gone;
      const removed = await write(
        () => table.remove.run({ after, upTo, before, most: left }).changes,
        'single',
      );
      gone += removed;
      if (removed === left) break;
      const isLast = table.isYoung?.get({ upTo, before }) !== undefined;
      table.lookedTo = isLast ? table.first : upTo;
      if (isLast) break;
      await nextPass();
    }
    return gone;
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
      const left = most - gone;
      const removed = await write(() => {
        const forgotten = maybeForgotten.all({ after, upTo }).filter(({ id, room }) => !isHeard(id, room));
        const ids = forgotten.slice(0, left).map(({ id }) => id);
        return removeMessages.run(JSON.stringify(ids)).changes;
      });
      gone += removed;
      if (removed === left) break;
      lookedTo = upTo;
      await nextPass();
    }
    return gone;
  }

  return {
    async prune({ before, most }) {
      let gone = 0;
      for (const table of ageing) gone += await pruneTable(table, before, most - gone);
      for (const statement of [...expired, forgottenHearings]) {
        const left = most - gone;
        gone += await write(() => statement.run({ before, most: left }).changes, 'single');
      }
      memory.clear();
      return gone + (await pruneMessages(most - gone));
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
