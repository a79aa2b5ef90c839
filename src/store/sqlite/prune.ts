/** Upkeep: deletes what has exceeded its retention, in steps of milliseconds. */
import { setImmediate as nextPass } from 'node:timers/promises';
import type { UpkeepStore } from '../../core/store.js';
import type { Connection } from './connection.js';
import { forgottenParts, type PrunePart, STRIDE } from './prune-forgotten.js';

/** A table whose rows expire: examined in strides along an ascending key. */
interface Ageing {
  table: string;
  /** The columns that identify a row. */
  row: string;
  isOld: string;
  /** The key of this table, or of the one to which its rows belong. */
  along: { table: string; key: string; first: number | string };
  /** If rows are in the order of this time, the examination stops at the first younger one. */
  time: string | null;
}

/** The newest row is kept, so that no id is reused. */
const notNewest = (table: string, key: string) => `${key} < (select max(${key}) from ${table})`;

function growing(table: string, time: string, isOld: string, key = 'id'): Ageing {
  const along = { table, key, first: 0 };
  return { table, row: key, isOld: `${isOld} and ${notNewest(table, key)}`, along, time };
}

/** The steps of a turn that used tools are needed while its reply is in a window. */
const IS_OVER = `turn.state in ('answered', 'failed', 'aborted') and turn.finished_at < @before
  and (turn.used_tools = 0 or exists (
    select 1 from view cross join message on message.id = view.window_message
    where view.room_id = turn.room_id and view.persona_id = turn.persona_id
      and message.received_at > turn.finished_at))`;
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

export function pruneStore(connection: Connection): UpkeepStore {
  const { raw, memory, patiently, read, write } = connection;
  const ageing = AGEING.map(({ table, row, isOld, along: { key, first }, time }) => ({
    first,
    /** Rows up to here were examined in this round. */
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
        select id from pairing
        where kind = 'sender' and expires_at < @before and requested_at < @before limit @most + 0)`),
    raw.prepare<[object]>(`
      delete from question where id in (select id from question where until < @before limit @most + 0)`),
    raw.prepare<[object]>(`
      delete from early_result where waits_for in (
        select waits_for from early_result where at < @before limit @most + 0)`),
  ];
  const autoVacuum = raw.prepare<[], number>('PRAGMA auto_vacuum').pluck();
  const freePages = raw.prepare<[], number>('PRAGMA freelist_count').pluck();
  const allPages = raw.prepare<[], number>('PRAGMA page_count').pluck();
  const pageSize = raw.prepare<[], number>('PRAGMA page_size').pluck();
  const counted = ['message', 'outbox', 'command', 'version'].map((table) => {
    const key = table === 'version' ? 'n' : 'id';
    // Estimated from the ids: counting would read all rows.
    const span = `select coalesce(max(${key}) - (select min(${key}) from ${table}) + 1, 0) from ${table}`;
    return { table, rows: raw.prepare<[], number>(span).pluck() };
  });

  /** Removes expired rows of one table. */
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
      const isLast = (await patiently(() => table.isYoung?.get({ upTo, before }))) !== undefined;
      table.lookedTo = isLast ? table.first : upTo;
      if (isLast) break;
      await nextPass();
    }
    return gone;
  }

  const parts: PrunePart[] = [
    ...ageing.map(
      (table): PrunePart =>
        ({ before, most }) =>
          pruneTable(table, before, most),
    ),
    ...expired.map(
      (statement): PrunePart =>
        ({ before, most }) =>
          write(() => statement.run({ before, most }).changes, 'single'),
    ),
    ...forgottenParts(connection),
  ];
  /** Where the next call continues. */
  let current = 0;

  return {
    async prune(ask) {
      let gone = 0;
      for (let part = parts[current]; part !== undefined; part = parts[current]) {
        gone += await part({ ...ask, most: ask.most - gone });
        memory.clear();
        if (gone >= ask.most) return gone;
        current++;
      }
      current = 0;
      return gone;
    },

    async shrink(pages) {
      if ((await patiently(() => autoVacuum.get())) === INCREMENTAL) {
        await write(() => void raw.exec(`PRAGMA incremental_vacuum(${Math.trunc(pages)})`), 'single');
        if (await patiently(() => (freePages.get() ?? 0) > 0)) return true;
      }
      // The write-ahead log still contains old versions of pages.
      await patiently(() => void raw.exec('PRAGMA wal_checkpoint(TRUNCATE)'));
      return false;
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
