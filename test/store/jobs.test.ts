/** A slot is claimed in the transaction of its event, or not at all: what fails in between takes back the claim. */
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Job } from '../../src/core/jobs.js';
import type { Store } from '../../src/core/store.js';
import { CHAT, exchange, MINUTE, NOW } from '../contract/store/words.js';
import { openMade, type Place } from './place.js';

let place: Place;
let store: Store;
beforeEach(async () => {
  place = await openMade();
  store = await place.open();
  await exchange(store, 't1', 'hello');
});
afterEach(() => place.remove());

async function set(tainted = false): Promise<Job> {
  const job = await store.addJob(
    {
      ...{
        id: 'j',
        chatId: CHAT,
        room: CHAT,
        personaId: 'default',
        prompt: 'x',
        kind: 'once',
        value: 'soon',
      },
      ...{ timezone: 'UTC', followUp: false, senderId: '', tainted, guarded: false, turnId: 't1' },
      ...{ nextAt: NOW + MINUTE, now: NOW },
    },
    { open: 9, followUps: 9, followUpsADay: 9 },
  );
  return job as Job;
}

it.each([
  ['the event', 'message'],
  ['the journal', 'journal'],
  ['the run', 'job_run'],
])('is not claimed where %s cannot be written', async (_what, table) => {
  const job = (await store.addJob(
    {
      ...{
        id: 'j',
        chatId: CHAT,
        room: CHAT,
        personaId: 'default',
        prompt: 'x',
        kind: 'once',
        value: 'soon',
      },
      ...{ timezone: 'UTC', followUp: false, senderId: '', tainted: false, guarded: false, turnId: 't1' },
      ...{ nextAt: NOW + MINUTE, now: NOW },
    },
    { open: 9, followUps: 9, followUpsADay: 9 },
  )) as Job;
  const raw = new Database(place.file);
  raw.exec(`create trigger fault before insert on ${table} begin select raise(abort, 'as told'); end`);
  const firing = {
    ...{ seen: job, slot: NOW + MINUTE, attempt: 0, head: 'now', now: NOW + MINUTE },
    becomes: { state: 'done' as const, nextAt: null },
  };
  await expect(store.fireJob(firing)).rejects.toThrow();
  expect(await store.jobs({ id: 'j' })).toEqual([job]);
  expect(await store.runsOf('j')).toEqual([]);
  expect(await store.readRoom(CHAT, 'me', NOW)).toBeNull();
  raw.exec('drop trigger fault');
  raw.close();
  expect(await store.fireJob(firing)).toBe('fired');
});

it.each([true, false])('is an event that words from outside may have led to: %s', async (tainted) => {
  const firing = { seen: await set(tainted), slot: NOW, attempt: 0, head: 'now', becomes: {}, now: NOW };
  await store.fireJob(firing);
  const raw = new Database(place.file, { readonly: true });
  const marks = raw.prepare(`select tainted from message where author_kind = 'gateway'`).pluck().all();
  raw.close();
  expect(marks).toEqual([Number(tainted)]);
});

it('keeps no more runs than are shown, also of slots that are passed over', async () => {
  let job = await set();
  for (let n = 0; n < 30; n++) {
    const slot = NOW + n * MINUTE;
    const becomes = { nextAt: slot + MINUTE };
    await store.fireJob({ seen: job, slot, attempt: 0, head: n === 0 ? 'now' : null, becomes, now: slot });
    job = { ...job, ...becomes };
  }
  const raw = new Database(place.file, { readonly: true });
  const kept = raw.prepare('select outcome, count(*) as runs from job_run group by outcome').all();
  raw.close();
  // The one that is under way is not forgotten.
  expect(kept).toEqual([
    { outcome: 'running', runs: 1 },
    { outcome: 'skipped', runs: 20 },
  ]);
});
