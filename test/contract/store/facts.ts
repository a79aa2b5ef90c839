/** The store's contract: usage, aliases, settings. */

import { describe, expect, it } from 'vitest';
import { putSetting, settingOf } from '../../../src/core/store.js';
import type { StoreUnderTest } from '../store.js';
import { begun, CHAT, chatAt, DAY, finish, message, NOW, receive, usedIn } from './words.js';

export function factContract(under: StoreUnderTest): void {
  describe('usage', () => {
    it('counts what was spent outside of turns', async () => {
      const usage = { inputTokens: 30, outputTokens: 4 };
      for (let n = 0; n < 2; n++)
        await under.store.spend({ room: `${CHAT}/5`, personaId: 'luna', usage, now: NOW });
      expect(await usedIn(under.store, CHAT, 0)).toEqual([
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
      expect(await usedIn(under.store, CHAT, NOW)).toEqual([
        { personaId: 'default', turns: 2, usage: { inputTokens: 10, outputTokens: 1 } },
        { personaId: 'luna', turns: 1, usage: { inputTokens: 7, outputTokens: 1 } },
      ]);
      expect((await usedIn(under.store, CHAT, 0))[0]).toEqual({
        personaId: 'default',
        turns: 3,
        usage: { inputTokens: 110, outputTokens: 2 },
      });
      await spend(NOW, 'default', 1000, 'test_2');
      expect((await usedIn(under.store, 'test_2', 0))[0]).toEqual({
        personaId: 'default',
        turns: 2,
        usage: { inputTokens: 2000, outputTokens: 2, cachedTokens: 1800 },
      });
      expect(await usedIn(under.store, 'test_3', 0)).toEqual([]);
    });
  });

  describe('what was used on a day', () => {
    const usage = { inputTokens: 30, outputTokens: 4, cost: 7 };

    const on = (day: number) => ({ since: day, now: day });
    const ask = { chatId: CHAT, personId: 'test_ann', ...on(NOW) };
    const once = { tokens: 34, cost: 7 };
    const NOTHING = { tokens: 0, cost: 0 };

    it('is told of each persona of a chat, of a person in all chats, and of all', async () => {
      const { store } = under;
      expect(await store.usage(ask)).toEqual({ personas: [], person: NOTHING, all: NOTHING });
      await store.spend({ room: `${CHAT}/5`, personaId: 'luna', personId: 'test_ann', usage, now: NOW });
      await store.spend({ room: 'test_2', personaId: 'luna', personId: 'test_ann', usage, now: NOW });
      await store.spend({ room: CHAT, personaId: 'default', usage, now: NOW });
      await store.spend({ room: CHAT, personaId: 'default', usage, now: NOW + DAY });
      expect(await store.usage(ask)).toEqual({
        personas: [
          { personaId: 'default', turns: 0, usage },
          { personaId: 'luna', turns: 0, usage },
        ],
        person: { tokens: 68, cost: 14 },
        all: { tokens: 102, cost: 21 },
      });
      expect((await store.usage({ ...ask, personId: null, ...on(NOW + DAY) })).person).toEqual(NOTHING);
      expect((await store.usage({ ...ask, ...on(NOW + DAY) })).all).toEqual(once);
      expect((await usedIn(store, CHAT, 0))[1]?.usage).toEqual(usage);
    });

    it('is charged to the person of a turn, and is the same in every process, whoever adds to it', async () => {
      const { store } = under;
      const other = await under.another();
      let n = 0;
      for (const one of [store, other, store, other, other]) {
        const id = `t${n++}`;
        await receive(one, [message(id, 'hi')]);
        const spent = { personaId: 'default', usage };
        const turn = await begun(one, id, { spent });
        await finish(one, turn, id, { usage, personId: 'test_ann' });
        for (const each of [store, other]) {
          const { personas, person, all } = await each.usage(ask);
          expect(person, `after ${n}`).toEqual({ tokens: 34 * n, cost: 7 * n });
          expect(all).toEqual({ tokens: 68 * n, cost: 14 * n });
          expect(personas.map((one) => one.usage.cost)).toEqual([all.cost]);
        }
      }
    });

    it('is not added by a turn that was lost', async () => {
      await receive(under.store, [message('t0', 'hi')]);
      const turn = await begun(under.store, 't0');
      await under.store.usage(ask);
      const lost = { claim: { ...turn.claim, fence: turn.claim.fence - 1 } };
      expect(await finish(under.store, lost, 't0', { usage })).toBe('lost');
      expect((await under.store.usage(ask)).all).toEqual(NOTHING);
    });
  });

  it('remembers aliases of chats', async () => {
    expect(await under.store.aliasOf('test_lid')).toBeNull();
    await under.store.addAlias('test_lid', CHAT);
    await under.store.addAlias('test_lid', 'test_2');
    expect(await under.store.aliasOf('test_lid')).toBe('test_2');
    expect(await under.store.chatOf('test_lid')).toBe('test_2');
    expect(await under.store.chatOf(CHAT)).toBeNull();
    await receive(under.store, [message('t1', 'hi')]);
    expect(await under.store.chatOf(CHAT)).toBe(CHAT);
  });

  it('remembers settings', async () => {
    expect(await settingOf(under.store, 'commands')).toBeNull();
    await putSetting(under.store, 'commands', 'a');
    await putSetting(under.store, 'commands', 'b');
    expect(await settingOf(under.store, 'commands')).toBe('b');
    await putSetting(under.store, 'commands', null);
    expect(await settingOf(under.store, 'commands')).toBeNull();
  });
}
