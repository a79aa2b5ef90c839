/** A window is never shown as it was before somebody changed it. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FORGOTTEN, phraseOf } from '../../src/core/phrase.js';
import type { Store } from '../../src/core/store.js';
import { begun, CHAT, edit, exchange, finish, message, receive } from '../contract/store/words.js';
import { openMade, type Place } from './place.js';

let place: Place;
let store: Store;
beforeEach(async () => {
  place = await openMade();
  store = await place.open();
});
afterEach(() => place.remove());

async function shown(personaId = 'default'): Promise<string[]> {
  const ask = { room: CHAT, personaId, limit: 50, overheard: 50, except: [] };
  return (await store.window(ask)).messages.map(({ text }) => text);
}

it('an edit', async () => {
  await exchange(store, 't1', 'before');
  expect(await shown()).toEqual(['before', 'reply of t1']);
  await receive(store, [edit('in-t1', 'after')]);
  expect(await shown()).toEqual(['after', 'reply of t1']);
});

it('words that were forgotten', async () => {
  await exchange(store, 't1', 'a secret of mine');
  expect(await shown()).toEqual(['a secret of mine', 'reply of t1']);
  await store.eraseWords(CHAT, phraseOf('secret'), FORGOTTEN);
  expect((await shown()).join()).not.toContain('secret');
});

it('a turn that was aborted and taken again', async () => {
  await receive(store, [message('1', 'hello')]);
  const claim = await begun(store, 't1');
  expect(await shown()).toEqual(['hello']);
  await finish(store, claim, 't1');
  const ask = { room: CHAT, personaId: 'default', limit: 50, overheard: 50, except: [] };
  expect((await store.window(ask)).messages.map(({ turnId }) => turnId)).toEqual(['t1', 't1']);
});

it('a change by another process', async () => {
  await exchange(store, 't1', 'before');
  expect(await shown()).toEqual(['before', 'reply of t1']);
  const other = await place.open();
  await receive(other, [edit('in-t1', 'after')]);
  expect(await shown()).toEqual(['after', 'reply of t1']);
});

it('by whoever else hears it, in a view of their own', async () => {
  await receive(store, [message('1', 'hello')]);
  const claim = await begun(store, 't1', { hearers: ['luna'] });
  await finish(store, claim, 't1', { hearers: ['luna'] });
  await shown();
  const ask = { room: CHAT, limit: 50, overheard: 50, except: [] };
  const { messages } = await store.window({ ...ask, personaId: 'luna' });
  expect(messages.map(({ addressed }) => addressed)).toEqual([false, false]);
  const { messages: own } = await store.window({ ...ask, personaId: 'default' });
  expect(own.map(({ addressed }) => addressed)).toEqual([true, true]);
});
