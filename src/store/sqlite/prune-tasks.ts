/**
 * Upkeep: deletes tasks that have been over for long, and at any age those that were given by what a persona has forgotten,
 * with what is kept of their course. A key stays as long as it lives.
 */
import type { UpkeepStore } from '../../core/store.js';
import type { Connection } from './connection.js';
import { type Walk, walkOf } from './strides.js';
import { KEY_LIVES_MS } from './tasks.js';
import { beganBefore } from './views.js';

type Ask = Parameters<UpkeepStore['prune']>[0];

export function endedTasks(connection: Connection): Walk<Ask> {
  const { raw } = connection;
  const ended = raw
    .prepare<[object], number>(`
      select n from task
      where n > @after and n <= @upTo and completed_at is not null
        and (idempotency_key is null or created_at < @now - ${KEY_LIVES_MS})
        and (completed_at < @before or exists (
          select 1 from turn join view on view.room_id = turn.room_id and view.persona_id = turn.persona_id
          where turn.id = task.turn_id and ${beganBefore('view.reset_at')}))`)
    .pluck();
  const removeOf = (table: 'task_event' | 'task_message') =>
    raw.prepare<[object]>(`
      delete from ${table} where (task, n) in (
        select task, n from json_each(@tasks) cross join ${table} on task = json_each.value limit @most + 0)`);
  // Last, so that one whose course is not yet gone is found again.
  const remove = raw.prepare<[object]>(
    'delete from task where n in (select value from json_each(@tasks) limit @most + 0)',
  );
  const removals = [removeOf('task_event'), removeOf('task_message'), remove];
  return walkOf<Ask>(
    connection,
    { table: 'task', key: 'n', first: 0 },
    {
      work({ most, ...ask }) {
        const tasks = JSON.stringify(ended.all(ask));
        return removals.reduce(
          (sum, statement) => sum + statement.run({ tasks, most: most - sum }).changes,
          0,
        );
      },
    },
  );
}
