/** Large tables are walked through in strides along an ascending key, so that other work runs in between. */
import { setImmediate as nextPass } from 'node:timers/promises';
import type { Statement } from 'better-sqlite3';
import type { Connection } from './connection.js';

/** The rows of a stride: after one key, up to another. */
export interface Bounds {
  after: number | string;
  upTo: number | string;
}

/** A table and its key; `first` comes before every key. */
export interface Path {
  table: string;
  key: string;
  first: number | string;
}

/** Reads the key with which the stride `@after` ends; null behind the last row. */
export function strideEnd(
  raw: Connection['raw'],
  { table, key }: Path,
  rows: number,
): Statement<[object], number | string | null> {
  return raw
    .prepare<[object], number | string | null>(`
      select max(${key}) from (select ${key} from ${table} where ${key} > @after order by ${key} limit ${rows})`)
    .pluck();
}

/** A walk removes or changes at most `most` rows; fewer when it has come to the end. */
export type Walk<Ask> = (ask: Ask & { most: number }) => Promise<number>;

/** The number of rows examined before other work may run. */
const STRIDE = 2_000;

/** Each call goes on where the one before stopped. `work` returns how many of at most `most` rows it has changed. */
export function walkOf<Ask extends object>(
  { raw, patiently, write }: Connection,
  path: Path,
  {
    work,
    isDone = () => false,
    single,
  }: {
    work(ask: Ask & Bounds & { most: number }): number;
    /** Nothing behind this key needs to be looked at. */
    isDone?(ask: Ask & Pick<Bounds, 'after'>): boolean;
    /** `work` is one statement. */
    single?: 'single';
  },
): Walk<Ask> {
  const next = strideEnd(raw, path, STRIDE);
  let after = path.first;
  return async (ask) => {
    let changed = 0;
    while (changed < ask.most) {
      const upTo = await patiently(() => (isDone({ ...ask, after }) ? null : (next.get({ after }) ?? null)));
      if (upTo === null) {
        after = path.first;
        break;
      }
      const most = ask.most - changed;
      const now = await write(() => work({ ...ask, after, upTo, most }), single);
      changed += now;
      // Otherwise there may be more in this stride.
      if (now < most) after = upTo;
      await nextPass();
    }
    return changed;
  };
}
