/**
 * Messages as they were read lately: the personas of a room see one transcript, each in a view of its own, and its rows
 * are brought over from SQLite once. What changes or goes is forgotten here by a trigger, whoever changed it; a change by
 * another process clears it all.
 */
import type { StoredMessage } from '../../core/transcript.js';
import type { Connection } from './connection.js';
import { SAID_COLUMNS, type SaidRow, toSaid } from './heard-rows.js';

export interface Lately {
  /** Gives the messages of these ids, as they stand. To be called, and used up, within a transaction. */
  of(ids: readonly number[]): (id: number) => StoredMessage | undefined;
}

/** So many are kept: some ten megabytes at most. */
const MOST = 5_000;
/** A long one is not kept: it is read quickly for its size. */
const LONGEST = 1_000;

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

  /** Reads what is not there. Long ones stay only with whoever asks. */
  function fetch(ids: number[], aside: Map<number, StoredMessage>): void {
    for (const row of read.all(JSON.stringify(ids))) {
      const message = toSaid(row);
      const place = message.text.length > LONGEST ? aside : kept;
      place.set(message.id, message);
    }
  }

  return {
    of(ids) {
      const now = versionOfOthers.get();
      // All at once: whoever talks is back with the next turn.
      if (now !== version || kept.size > MOST) kept.clear();
      version = now;
      const aside = new Map<number, StoredMessage>();
      const missing = ids.filter((id) => !kept.has(id));
      if (missing.length > 0) fetch(missing, aside);
      return (id) => kept.get(id) ?? aside.get(id);
    },
  };
}
