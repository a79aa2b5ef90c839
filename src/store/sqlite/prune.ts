/** Upkeep: deletes what has exceeded its retention, in steps of milliseconds. */
import type { UpkeepStore } from '../../core/store.js';
import type { Connection } from './connection.js';
import { endedJobs } from './jobs.js';
import type { Journal } from './journal.js';
import { NEWEST_CHANGE } from './journal-changes.js';
import { forgottenWalks } from './prune-forgotten.js';
import { endedTasks } from './prune-tasks.js';
import { type Path, type Walk, walkOf } from './strides.js';

/** A table whose rows expire. */
interface Ageing {
  path: Path;
  /** The columns that identify a row; left out: the key of the path. */
  row?: string;
  isOld: string;
  /** If rows are in the order of this time, nothing behind the first younger one is looked at. */
  time?: string;
}

/** The newest row is kept, so that no id is reused. */
const notNewest = (table: string, key: string) => `${key} < (select max(${key}) from ${table})`;

function growing(table: string, time: string, isOld: string, key = 'id'): Ageing {
  return { path: { table, key, first: 0 }, isOld: `${isOld} and ${notNewest(table, key)}`, time };
}

/** The steps of a turn that used tools are needed while its reply is in a window. */
const IS_OVER = `turn.state in ('answered', 'failed', 'aborted') and turn.finished_at < @before
  and (turn.used_tools = 0 or exists (
    select 1 from view cross join message on message.id = view.window_message
    where view.room_id = turn.room_id and view.persona_id = turn.persona_id
      and message.received_at > turn.finished_at))`;

const DAY_MS = 86_400_000;

const AGEING: Ageing[] = [
  growing(
    'outbox',
    'created_at',
    `state in ('sent', 'refused', 'unconfirmed', 'dropped') and finished_at < @before`,
  ),
  growing('command', 'received_at', 'finished_at < @before'),
  growing('version', 'at', 'at < @before', 'n'),
  growing('journal', 'at', `at < @before and status is not 'pending' and changed < ${NEWEST_CHANGE}`, 'n'),
  {
    path: { table: 'step', key: 'turn_id', first: '' },
    row: 'turn_id, n',
    isOld: `exists (select 1 from turn where turn.id = turn_id and ${IS_OVER})`,
  },
  { path: { table: 'turn', key: 'id', first: '' }, isOld: IS_OVER },
  // In whatever zone: a day is over two days after its first millisecond in UTC.
  {
    path: { table: 'spent', key: 'day', first: 0 },
    row: 'day, person_id',
    isOld: `day < @before - ${2 * DAY_MS}`,
  },
];

type Ask = Parameters<UpkeepStore['prune']>[0];

export function pruneStore(connection: Connection, journal: Journal): UpkeepStore {
  const { raw, memory, patiently, read, write } = connection;

  function ageing({ path, isOld, time, row = path.key }: Ageing): Walk<Ask> {
    const { table, key } = path;
    const remove = raw.prepare<[object]>(`
      delete from ${table} where (${row}) in (
        select ${row} from ${table} where ${key} > @after and ${key} <= @upTo and ${isOld} limit @most + 0)`);
    const isYoung =
      time === undefined
        ? null
        : raw.prepare<[object]>(`select 1 from ${table} where ${key} = @after and ${time} >= @before`);
    return walkOf(connection, path, {
      work: (ask) => remove.run(ask).changes,
      isDone: (ask) => isYoung?.get(ask) !== undefined,
      single: 'single',
    });
  }

  /** A short table. */
  function expired(table: string, key: string, isOld: string): Walk<Ask> {
    const remove = raw.prepare<[object]>(`
      delete from ${table} where ${key} in (select ${key} from ${table} where ${isOld} limit @most + 0)`);
    return (ask) => write(() => remove.run(ask).changes, 'single');
  }

  const autoVacuum = raw.prepare<[], number>('PRAGMA auto_vacuum').pluck();
  const freePages = raw.prepare<[], number>('PRAGMA freelist_count').pluck();
  const allPages = raw.prepare<[], number>('PRAGMA page_count').pluck();
  const pageSize = raw.prepare<[], number>('PRAGMA page_size').pluck();
  const counted = ['message', 'outbox', 'command', 'version', 'task'].map((table) => {
    const key = table === 'version' || table === 'task' ? 'n' : 'id';
    // Estimated from the ids: counting would read all rows.
    const span = `select coalesce(max(${key}) - (select min(${key}) from ${table}) + 1, 0) from ${table}`;
    return { table, rows: raw.prepare<[], number>(span).pluck() };
  });

  const walks: Walk<Ask>[] = [
    ...AGEING.map(ageing),
    expired('pairing', 'id', 'coalesce(expires_at, 0) < @before and requested_at < @before'),
    expired('question', 'id', 'until < @before'),
    expired('offer', 'key', 'until < @now'),
    expired('early_result', 'waits_for', 'at < @before'),
    endedJobs(connection),
    endedTasks(connection),
    expired('asked_call', 'id', 'until < @before'),
    ...forgottenWalks(connection, journal),
  ];
  /** Where the next call continues. */
  let current = 0;

  return {
    async prune(ask) {
      let gone = 0;
      for (let walk = walks[current]; walk !== undefined; walk = walks[current]) {
        const removed = await walk({ ...ask, most: ask.most - gone });
        if (removed > 0) journal.changed();
        gone += removed;
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
