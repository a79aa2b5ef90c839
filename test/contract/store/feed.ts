/** The store's contract: what recall reads of it, and the last word on what a persona may still see. */
import { describe, expect, it } from 'vitest';
import { BEGINNING } from '../../../src/core/transcript.js';
import type { StoreUnderTest } from '../store.js';
import { begun, CHAT, exchange, finish, forget, message, overhear, receive } from './words.js';

export function feedContract(under: StoreUnderTest): void {
  const heard = async (addressed: boolean, more: { personaId?: string } = {}) =>
    (
      await under.store.heardSince({
        room: CHAT,
        personaId: 'default',
        ...more,
        addressed,
        after: BEGINNING,
        most: 100,
      })
    ).map(({ text }) => text);
  describe('what recall reads', () => {
    it('is every view, a page at a time', async () => {
      await exchange(under.store, 't1', 'one');
      await exchange(under.store, 't2', 'two', { personaId: 'luna' });
      await exchange(under.store, 't3', 'three', { room: `${CHAT}/5` });
      const first = await under.store.heardViews(null, 2);
      expect(first).toEqual([
        { room: CHAT, personaId: 'default', resetAt: 0 },
        { room: CHAT, personaId: 'luna', resetAt: 0 },
      ]);
      const last = first.at(-1);
      expect(await under.store.heardViews(last ?? null, 2)).toEqual([
        { room: `${CHAT}/5`, personaId: 'default', resetAt: 0 },
      ]);
    });

    it('is what was heard, of each kind in its order, behind a place', async () => {
      await exchange(under.store, 't1', 'q1');
      await overhear(under.store, ['aside']);
      await exchange(under.store, 't2', 'q2');
      expect(await heard(true)).toEqual(['q1', 'reply of t1', 'q2', 'reply of t2']);
      expect(await heard(false)).toEqual(['aside']);
      const [, second] = await under.store.heardSince({
        room: CHAT,
        personaId: 'default',
        addressed: true,
        after: BEGINNING,
        most: 2,
      });
      const rest = await under.store.heardSince({
        room: CHAT,
        personaId: 'default',
        addressed: true,
        most: 100,
        after: second?.position ?? BEGINNING,
      });
      expect(rest.map(({ text }) => text)).toEqual(['q2', 'reply of t2']);
    });

    it('stops before what a turn is about, so that a cursor passes over nothing', async () => {
      await exchange(under.store, 't1', 'q1');
      await receive(under.store, [message('2', 'q2')]);
      const running = await begun(under.store, 't2');
      expect(await heard(true)).toEqual(['q1', 'reply of t1']);
      await finish(under.store, running, 't2');
      expect(await heard(true)).toEqual(['q1', 'reply of t1', 'q2', 'reply of t2']);
    });

    it('ends with a reset', async () => {
      await exchange(under.store, 't1', 'q1');
      const [said] = await under.store.heardSince({
        room: CHAT,
        personaId: 'default',
        addressed: true,
        after: BEGINNING,
        most: 2,
      });
      await forget(under.store);
      expect(await heard(true)).toEqual([]);
      expect(await under.store.visible({ chatId: CHAT, personaId: 'default' }, [said?.id ?? 0])).toEqual([]);
    });
  });

  describe('the last word', () => {
    it('is about one chat and one persona, in all its rooms, whatever ids are asked for', async () => {
      await exchange(under.store, 't1', 'for default');
      await exchange(under.store, 't2', 'for luna', { personaId: 'luna' });
      await exchange(under.store, 't3', 'in a thread', { room: `${CHAT}/5` });
      await exchange(under.store, 't4', 'elsewhere', { room: 'test_2' });
      const ids = Array.from({ length: 20 }, (_, n) => n);
      const texts = async (chatId: string, personaId: string) =>
        (await under.store.visible({ chatId, personaId }, ids)).map(({ text }) => text);
      expect(await texts(CHAT, 'default')).toEqual([
        'for default',
        'reply of t1',
        'in a thread',
        'reply of t3',
      ]);
      expect(await texts(CHAT, 'luna')).toEqual(['for luna', 'reply of t2']);
      expect(await texts('test_2', 'default')).toEqual(['elsewhere', 'reply of t4']);
      expect(await texts('test_3', 'default')).toEqual([]);
    });
  });
}
