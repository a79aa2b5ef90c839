/**
 * Messages as they were read lately: the personas of a room see one transcript, each in a view of its own, and its rows
 * are brought over from SQLite once. What changes or goes is forgotten here by a trigger, whoever changed it; a change by
 * another process clears it all.
 */
import type { StoredMessage } from '../../core/transcript.js';
import type { Connection } from './connection.js';
import { SAID_COLUMNS, type SaidRow, toSaid } from './heard-rows.js';

export interface Lately {
  /** The messages of these ids, as they stand. To be called within a transaction. */
  get(ids: readonly number[]): Map<number, StoredMessage>;
}

/** So many are kept, those that were asked for last: some ten megabytes at most. */
const MOST = 10_000;
/** A long one is not kept: it is read quickly for its size. */
const LONGEST = 4_000;

export function latelyOf({ raw }: Pick<Connection, 'raw'>): Lately {
  const kept = new Map<number, StoredMessage>();
  const read = raw
    .prepare<[string], SaidRow>(
      `select ${SAID_COLUMNS} from message where id in (select value from json_each(?))`,
    )
    .raw();
  const versionOfOthers = raw.prepare<[], number>('pragma data_version').pluck();
  let version = versionOfOthers.get();

  raw.function('message_changed', { directOnly: false }, (id) => void kept.delete(Number(id)));
  for (const change of ['update', 'delete']) {
    raw.exec(
      `create temp trigger forget_after_${change} after ${change} on main.message begin select message_changed(old.id); end`,
    );
  }

  function keep(message: StoredMessage): void {
    if (message.text.length > LONGEST) return;
    kept.set(message.id, message);
    if (kept.size <= MOST) return;
    const [oldest] = kept.keys();
    if (oldest !== undefined) kept.delete(oldest);
  }

  return {
    get(ids) {
      const now = versionOfOthers.get();
      if (now !== version) kept.clear();
      version = now;
      const found = new Map<number, StoredMessage>();
      const missing: number[] = [];
      for (const id of ids) {
        const message = kept.get(id);
        if (message === undefined) {
          missing.push(id);
          continue;
        }
        found.set(id, message);
        // Asked for last.
        kept.delete(id);
        kept.set(id, message);
      }
      if (missing.length === 0) return found;
      for (const row of read.all(JSON.stringify(missing))) {
        const message = toSaid(row);
        found.set(message.id, message);
        keep(message);
      }
      return found;
    },
  };
}
