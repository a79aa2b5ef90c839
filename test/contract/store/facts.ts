/** The store's contract: usage, aliases, settings. */
import { describe, expect, it } from 'vitest';
import type { StoreUnderTest } from '../store.js';
import { begun, CHAT, chatAt, DAY, finish, message, NOW, receive } from './words.js';

export function factContract(under: StoreUnderTest): void {
  describe('usage', () => {
    it('counts what was spent outside of turns', async () => {
      const usage = { inputTokens: 30, outputTokens: 4 };
      for (let n = 0; n < 2; n++)
        await under.store.spend({ room: `${CHAT}/5`, personaId: 'luna', usage, now: NOW });
      expect(await under.store.usage(CHAT, 0)).toEqual([
        { personaId: 'luna', turns: 0, usage: { inputTokens: 60, outputTokens: 8 } },
      ]);
    });

    it('is summed by persona, since a day', async () => {
      let n = 0;
      async function spend(now: number, personaId: string, tokens: number | null, chatId = CHAT) {
        const id = `t${n++}`;
        await receive(under.store, [message(id, 'hi', { chat: chatAt(chatId) })]);
        const turn = await begun(under.store, id, { room: chatId, personaId });
        const cached = tokens === 1000 ? { cachedTokens: 900 } : {};
        const usage = tokens === null ? null : { inputTokens: tokens, outputTokens: 1, ...cached };
        await finish(under.store, turn, id, { usage, now });
      }
      await spend(NOW - 2 * DAY, 'default', 100);
      await spend(NOW, 'default', 10);
      await spend(NOW, 'default', null);
      await spend(NOW + DAY, 'luna', 7);
      await spend(NOW, 'default', 1000, 'test_2');
      expect(await under.store.usage(CHAT, NOW)).toEqual([
        { personaId: 'default', turns: 2, usage: { inputTokens: 10, outputTokens: 1 } },
        { personaId: 'luna', turns: 1, usage: { inputTokens: 7, outputTokens: 1 } },
      ]);
      expect((await under.store.usage(CHAT, 0))[0]).toEqual({
        personaId: 'default',
        turns: 3,
        usage: { inputTokens: 110, outputTokens: 2 },
      });
      await spend(NOW, 'default', 1000, 'test_2');
      expect((await under.store.usage('test_2', 0))[0]).toEqual({
        personaId: 'default',
        turns: 2,
        usage: { inputTokens: 2000, outputTokens: 2, cachedTokens: 1800 },
      });
      expect(await under.store.usage('test_3', 0)).toEqual([]);
    });
  });

  it('remembers aliases of chats', async () => {
    expect(await under.store.aliasOf('test_lid')).toBeNull();
    await under.store.addAlias('test_lid', CHAT);
    await under.store.addAlias('test_lid', 'test_2');
    expect(await under.store.aliasOf('test_lid')).toBe('test_2');
  });

  it('remembers settings', async () => {
    expect(await under.store.setting('commands')).toBeNull();
    await under.store.setSetting('commands', 'a');
    await under.store.setSetting('commands', 'b');
    expect(await under.store.setting('commands')).toBe('b');
  });
}
