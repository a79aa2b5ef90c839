/** `ChatFeed`: a chat as people saw it, in order, without what was forgotten. */
import { describe, expect, test } from 'vitest';
import type { ExportAsk } from '../../../src/core/chat-record.js';
import type { Store } from '../../../src/core/store.js';
import type { StoreUnderTest } from '../store.js';
import { begun, CHAT, chatAt, edit, exchange, finish, forget, message, NOW, receive } from './words.js';

type Ask = Partial<Pick<ExportAsk, 'chatId' | 'by' | 'since' | 'until'>>;

/** The texts by room, in order. */
async function said(store: Store, ask: Ask = {}): Promise<string[]> {
  const found: string[] = [];
  const whole = { chatId: CHAT, by: null, since: null, until: null, ...ask };
  for (let after: number | null = 0; after !== null; ) {
    const page: Awaited<ReturnType<Store['saidIn']>> = await store.saidIn({ ...whole, after });
    for (const { text, room } of await store.messages(page.said.map(({ id }) => id))) {
      found.push(room === CHAT ? text : `${room}: ${text}`);
    }
    after = page.next;
  }
  return found;
}

export function exportContract(under: StoreUnderTest): void {
  describe('what is exported', () => {
    test('a chat is what was said in it and in its threads, and nowhere else', async () => {
      const { store } = under;
      await exchange(store, 't1', 'hello');
      await receive(store, [
        message('50', 'in a thread', { threadId: '7' }),
        message('51', 'elsewhere', { chat: chatAt('test_2') }),
      ]);
      expect((await said(store))[0]).toBe('hello');
      expect(await said(store)).toHaveLength(3);
      expect(await said(store)).toContain(`${CHAT}/7: in a thread`);
      expect(await said(store, { chatId: 'test_2' })).toEqual(['test_2: elsewhere']);
      expect(await said(store, { chatId: '../x' })).toEqual([]);
    });

    test('times are limits, both inclusive', async () => {
      const { store } = under;
      await receive(
        store,
        [1, 2, 3].map((n) => message(`${n}`, `${n}`, { sentAt: NOW + n })),
      );
      expect(await said(store, { since: NOW + 2 })).toEqual(['2', '3']);
      expect(await said(store, { until: NOW + 2 })).toEqual(['1', '2']);
      expect(await said(store, { since: NOW + 3, until: NOW + 1 })).toEqual([]);
    });

    test('an edit is what it is now, also one of a message that was being answered', async () => {
      const { store } = under;
      await receive(store, [message('1', 'frist')]);
      await receive(store, [edit('1', 'first')]);
      expect(await said(store)).toEqual(['first']);
      await begun(store, 't1');
      await receive(store, [edit('1', 'the first')]);
      expect(await said(store)).toEqual(['the first']);
    });

    test('what is forgotten is in none, but for somebody who still heard it', async () => {
      const { store } = under;
      await receive(store, [message('1', 'secret')]);
      await finish(store, await begun(store, 't1', { hearers: ['luna'] }), 't1', { hearers: ['luna'] });
      await forget(store);
      expect(await said(store)).toEqual(['secret', 'reply of t1']);
      expect(await said(store, { by: 'luna' })).toEqual(['secret', 'reply of t1']);
      expect(await said(store, { by: 'default' })).toEqual([]);
      await forget(store, { personaId: 'luna' });
      expect(await said(store)).toEqual([]);
      await receive(store, [message('30', 'new')]);
      expect(await said(store)).toEqual(['new']);
    });
  });
}
