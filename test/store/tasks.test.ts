/** What is kept of tasks does not grow without end: rows that nobody can see any more are not in the file. */
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Store } from '../../src/core/store.js';
import { MOST_EVENTS, type TaskEvent } from '../../src/core/task.js';
import { added, claimedTask, ending } from '../contract/store/tasks.js';
import { DAY, NOW, pruned } from '../contract/store/words.js';
import { openMade, type Place } from './place.js';

let place: Place;
let store: Store;
beforeEach(async () => {
  place = await openMade();
  store = await place.open();
  await added(store, 'k1');
  await claimedTask(store);
  const event: TaskEvent = { at: NOW, kind: 'tool-call', callId: 'c', tool: 'shell', arguments: '{}' };
  await store.noteTask({ id: 'k1', owner: 'me' }, { events: Array.from({ length: 600 }, () => event) });
  await store.tellTask('k1', { mode: 'steer', text: 'x' }, NOW);
});
afterEach(() => place.remove());

function rowsIn(table: string): unknown {
  const db = new Database(place.file, { readonly: true });
  const rows = db.prepare(`select count(*) from ${table}`).pluck().get();
  db.close();
  return rows;
}

it('older events than the newest are removed', () => {
  expect(rowsIn('task_event')).toBe(MOST_EVENTS);
});

it('events and messages go with their task, in small steps', async () => {
  await store.finishTask(ending('k1', { status: 'error' }), 'me');
  const step = { before: NOW + DAY, now: NOW + DAY, most: 100 };
  expect((await store.prune(step)).rows).toBe(100);
  expect(await store.task('k1'), 'its course first').not.toBeNull();
  await pruned(store, NOW + DAY);
  expect(await store.task('k1')).toBeNull();
  expect([rowsIn('task'), rowsIn('task_event'), rowsIn('task_message')]).toEqual([0, 0, 0]);
});
