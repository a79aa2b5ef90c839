/** For operators: making a restored copy safe to start, and counts. */
import type { Clock } from '../../core/clock.js';
import type { Store } from '../../core/store.js';
import type { Connection } from './connection.js';
import { NEWEST_CHANGE } from './journal-changes.js';

type Upkeep = Pick<Store, 'quieten' | 'census'>;

/** What a restored copy must not do again, `@now`. */
const QUIETEN = [
  `update turn set state = 'aborted', finished_at = @now, waits_for = null, waits_until = null
    where state = 'running'`,
  `update turn set state = 'aborted', finished_at = @now, waits_for = null, waits_until = null
    where state in ('suspended', 'ready')`,
  `insert into task_event (task, n, body)
    select n, (select coalesce(max(n), 0) + 1 from task_event where task_event.task = task.n),
      json_object('at', @now, 'kind', 'status', 'status', 'interrupted')
    from task where status in ('pending', 'running')`,
  `update task set status = 'interrupted', completed_at = @now, error = 'restored from a backup', lease_owner = null,
    lease_until = null where status in ('pending', 'running')`,
  'delete from shown',
  'delete from question',
  'delete from offer',
  `update command set state = 'done', finished_at = @now where finished_at is null`,
  'update room set lease_owner = null where lease_owner is not null',
  `update journal set status = 'interrupted', results = json_object('error', 'restored from a backup'), finished_at = @now,
    changed = ${NEWEST_CHANGE} + chosen.place
    from (select n, row_number() over (order by n) as place from journal where status = 'pending') as chosen
    where journal.n = chosen.n`,
  // The files may be another machine's, or another time's: they are made anew.
  `update journal set filed = 'log' where filed <> 'log'`,
];

/** A login from another time or machine would be rejected, or conflict with the current one. */
export const FORGET_LOGINS = 'delete from channel_state';

export function upkeepOf({ raw, memory, read, write }: Connection, clock: Clock): Upkeep {
  const park = raw.prepare<[object]>(`
    update outbox set state = 'parked', finished_at = @now, error = 'restored from a backup'
    where finished_at is null`);
  const answer = raw.prepare(`update message set state = 'done' where state = 'waiting'`);
  const inRunningTurns = raw
    .prepare<[], number>(`
      select count(*) from turn cross join json_each(turn.batch)
        cross join message on message.id = json_each.value and message.turn_id = turn.id
      where turn.state = 'running'`)
    .pluck();
  const forgetLogins = raw.prepare(FORGET_LOGINS);
  const quieten = QUIETEN.map((sql) => raw.prepare<[object]>(sql));
  const counted = (rows: string) => raw.prepare<[], number>(`select count(*) from ${rows}`).pluck();
  const waiting = counted(`message where state = 'waiting'`);
  const running = counted(`turn where state = 'running'`);
  const undelivered = counted('outbox where finished_at is null');
  const parkedEntries = counted(`outbox where state = 'parked'`);
  const parkedTurns = counted(`turn where state = 'parked'`);

  return {
    quieten: ({ keepLogins } = { keepLogins: false }) =>
      write(() => {
        const now = clock.now();
        const deliveries = park.run({ now }).changes;
        const messages = answer.run().changes + (inRunningTurns.get() ?? 0);
        for (const statement of quieten) statement.run({ now });
        if (!keepLogins) forgetLogins.run();
        memory.clear();
        return { deliveries, messages };
      }),

    census: () =>
      read(() => ({
        waiting: waiting.get() ?? 0,
        running: running.get() ?? 0,
        undelivered: undelivered.get() ?? 0,
        parked: (parkedEntries.get() ?? 0) + (parkedTurns.get() ?? 0),
      })),
  };
}
