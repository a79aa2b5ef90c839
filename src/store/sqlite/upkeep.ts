/**
 * For operators: copies, making a restored copy safe, counts; and the notification that another process has written.
 */
import { sql } from 'drizzle-orm';
import type { Clock } from '../../core/clock.js';
import type { Store } from '../../core/store.js';
import type { Connection } from './connection.js';
import { copyDatabase } from './copy.js';
import { message, room } from './schema.js';
import { channelState, command, outbox, question, shown, turn } from './schema-work.js';

const WATCH_EVERY_MS = 1_000;

type Upkeep = Pick<Store, 'watch' | 'copyTo' | 'quieten' | 'census' | 'close'>;

export function upkeepOf(connection: Connection, clock: Clock): Upkeep {
  const { query, raw, memory, read, write, count } = connection;
  const dataVersion = raw.prepare('PRAGMA data_version').pluck();
  const inRunningTurns = raw
    .prepare<[], number>(`
      select count(*) from turn cross join json_each(turn.batch)
        cross join message on message.id = json_each.value and message.turn_id = turn.id
      where turn.state = 'running'`)
    .pluck();
  const watches = new Set<NodeJS.Timeout>();

  /** Changes when another connection has written; null if it cannot be read at the moment. */
  function version(): unknown {
    try {
      return dataVersion.get();
    } catch {
      // Busy, or a passing fault of the disk: verbs that fail on it say so. A timer has nobody to tell.
      return null;
    }
  }

  return {
    watch(changed) {
      let seen = version();
      const timer = setInterval(() => {
        const current = version();
        if (current === null || current === seen) return;
        seen = current;
        changed();
      }, WATCH_EVERY_MS).unref();
      watches.add(timer);
      return () => {
        clearInterval(timer);
        watches.delete(timer);
      };
    },

    copyTo: (file) => copyDatabase(connection, file),

    quieten: () =>
      write(() => {
        const finishedAt = clock.now();
        const deliveries = query
          .update(outbox)
          .set({ state: 'parked', finishedAt, error: 'restored from a backup' })
          .where(sql`${outbox.finishedAt} is null`)
          .run().changes;
        const waiting = query
          .update(message)
          .set({ state: 'done' })
          .where(sql`${message.state} = 'waiting'`)
          .run().changes;
        const answering = inRunningTurns.get() ?? 0;
        for (const open of [sql`${turn.state} = 'running'`, sql`${turn.state} in ('suspended', 'ready')`]) {
          const aborted = { state: 'aborted' as const, finishedAt, waitsFor: null, waitsUntil: null };
          query.update(turn).set(aborted).where(open).run();
        }
        query.delete(shown).run();
        query.delete(question).run();
        memory.clear();
        query
          .update(command)
          .set({ state: 'done', finishedAt })
          .where(sql`${command.finishedAt} is null`)
          .run();
        // A login from another time or machine would be rejected, or conflict with the current one.
        query.delete(channelState).run();
        query.update(room).set({ leaseOwner: null }).where(sql`${room.leaseOwner} is not null`).run();
        return { deliveries, messages: waiting + answering };
      }),

    census: () =>
      read(() => ({
        waiting: count(message, sql`${message.state} = 'waiting'`),
        running: count(turn, sql`${turn.state} = 'running'`),
        undelivered: count(outbox, sql`${outbox.finishedAt} is null`),
        parked: count(outbox, sql`${outbox.state} = 'parked'`) + count(turn, sql`${turn.state} = 'parked'`),
      })),

    async close() {
      for (const timer of watches) clearInterval(timer);
      watches.clear();
      await connection.close();
    },
  };
}
