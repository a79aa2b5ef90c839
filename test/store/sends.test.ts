/** What a persona sends is in the journal soon after its reply is stored, whoever looks, dies or forgets in between. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { JournalEntry, MattTurn } from '../../src/core/journal.js';
import type { Store } from '../../src/core/store.js';
import { delivery, exchange, forget, lease, NOW, nextOf, recovered } from '../contract/store/words.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { openMade, type Place } from './place.js';

let place: Place;
let clock: ManualClock;
/** The one that replies, and one that only looks. */
let store: Store;
let other: Store;
beforeEach(async () => {
  place = await openMade();
  clock = manualClock();
  store = await place.open({ clock });
  other = await place.open({ clock });
});
afterEach(() => place.remove());

const reply = (text = 'words') => exchange(store, 't1', 'hi', { deliveries: [delivery('turn:t1', text)] });
const isSend = (entry: JournalEntry): entry is MattTurn =>
  entry.type === 'MattTurn' && entry.action.tool === 'send_message';
async function sendsSeenBy(reader: Store): Promise<MattTurn[]> {
  return (await reader.journal({ after: 0, most: 100 })).map(({ entry }) => entry).filter(isSend);
}
async function phasesSeenBy(reader: Store) {
  const all = await reader.journalPhases({ after: 0, most: 100 });
  return all
    .map(({ entry }) => entry)
    .filter(isSend)
    .map(({ status }) => status);
}

it('is there for whoever reads it in the same process, at once', async () => {
  await reply();
  expect(await sendsSeenBy(other)).toEqual([]);
  expect(await sendsSeenBy(store)).toMatchObject([{ status: 'pending', action: { text: 'words' } }]);
});

it('is there for another process a tenth of a second later', async () => {
  await reply();
  await clock.advance(100);
  // What was written before this is written now.
  await store.claimDelivery(0, lease());
  expect(await sendsSeenBy(other)).toMatchObject([{ status: 'pending' }]);
});

it('is there when it has ended, in both phases', async () => {
  await reply();
  const { id = 0 } = (await nextOf(store)) ?? {};
  await store.markSent(id, 'p7', NOW + 9);
  const [entry] = await sendsSeenBy(other);
  expect(entry).toMatchObject({ status: 'completed', results: { output: { message_id: 'p7' } } });
  expect(entry).toMatchObject({ timestamp_outcome: new Date(NOW + 9).toISOString() });
  expect(await phasesSeenBy(other)).toEqual(['pending', 'completed']);
});

it('of a process that died is entered by the next, or by whoever sends it', async () => {
  await reply();
  await recovered(other);
  expect(await sendsSeenBy(other)).toMatchObject([{ status: 'pending', action: { text: 'words' } }]);
  const { id = 0 } = (await nextOf(other)) ?? {};
  await other.giveUp(id, 'refused', 'it was refused', NOW + 9);
  expect(await sendsSeenBy(other)).toMatchObject([{ status: 'completed' }]);
  expect(await phasesSeenBy(store)).toEqual(['pending', 'completed']);
});

it('is entered once, however many do', async () => {
  await reply();
  await Promise.all([sendsSeenBy(store), recovered(other), sendsSeenBy(store)]);
  await clock.advance(100);
  await store.close();
  expect(await sendsSeenBy(other)).toHaveLength(1);
});

it('is entered by a process that is stopped', async () => {
  await reply();
  await store.close();
  expect(await sendsSeenBy(other)).toMatchObject([{ status: 'pending' }]);
});

it('has no words once they were forgotten', async () => {
  await reply('a secret');
  await forget(store);
  expect(await sendsSeenBy(store)).toMatchObject([{ action: { tool: 'send_message' } }]);
  await clock.advance(100);
  const everything = JSON.stringify(await other.journal({ after: 0, most: 100 }));
  expect(everything).not.toContain('secret');
  expect(everything).toContain('turn-t1-send-');
});
