/** What a persona sends is in the journal as soon as its reply is stored, whoever looks, dies or forgets afterwards. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { JournalEntry, MattTurn } from '../../src/core/journal.js';
import type { Store } from '../../src/core/store.js';
import { delivery, exchange, forget, journalOf, NOW, nextOf, recovered } from '../contract/store/words.js';
import { openMade, type Place } from './place.js';

let place: Place;
/** The one that replies, and one that only looks. */
let store: Store;
let other: Store;
beforeEach(async () => {
  place = await openMade();
  store = await place.open();
  other = await place.open();
});
afterEach(() => place.remove());

const reply = (text = 'words') => exchange(store, 't1', 'hi', { deliveries: [delivery('turn:t1', text)] });
const isSend = (entry: JournalEntry): entry is MattTurn =>
  entry.type === 'MattTurn' && entry.action.tool === 'send_message';
async function sendsSeenBy(reader: Store): Promise<MattTurn[]> {
  return (await journalOf(reader)).map(({ entry }) => entry).filter(isSend);
}
async function phasesSeenBy(reader: Store) {
  const all = await reader.journal({ after: 0, most: 100 });
  return all
    .map(({ entry }) => entry)
    .filter(isSend)
    .map(({ status }) => status);
}

it('is there for every process, at once', async () => {
  await reply();
  for (const reader of [store, other]) {
    expect(await sendsSeenBy(reader)).toMatchObject([{ status: 'pending', action: { text: 'words' } }]);
  }
});

it('is there when it has ended, in both phases', async () => {
  await reply();
  const { id = 0 } = (await nextOf(store)) ?? {};
  await store.settle(id, { kind: 'sent', platformMessageId: 'p7' }, NOW + 9);
  const [entry] = await sendsSeenBy(other);
  expect(entry).toMatchObject({ status: 'completed', results: { output: { message_id: 'p7' } } });
  expect(entry).toMatchObject({ timestamp_outcome: new Date(NOW + 9).toISOString() });
  expect(await phasesSeenBy(other)).toEqual(['pending', 'completed']);
});

it('of a process that died ends with whoever sends it', async () => {
  await reply();
  await recovered(other);
  const { id = 0 } = (await nextOf(other)) ?? {};
  await other.settle(id, { kind: 'refused', reason: 'it was refused' }, NOW + 9);
  expect(await sendsSeenBy(other)).toMatchObject([{ status: 'completed' }]);
  expect(await phasesSeenBy(store)).toEqual(['pending', 'completed']);
});

it('has words again if its outcome comes after they were forgotten, and none once they are forgotten again', async () => {
  await reply('a secret');
  await forget(store);
  const { id = 0 } = (await nextOf(store)) ?? {};
  await store.settle(id, { kind: 'refused', reason: 'another secret' }, NOW + 9);
  await forget(store);
  expect(JSON.stringify(await sendsSeenBy(store))).not.toContain('secret');
});

it('has no words once they were forgotten', async () => {
  await reply('a secret');
  await forget(store);
  expect(await sendsSeenBy(store)).toMatchObject([{ action: { tool: 'send_message' } }]);
  const everything = JSON.stringify(await journalOf(other));
  expect(everything).not.toContain('secret');
  expect(everything).toContain('turn-t1-send-');
});
