/** The store's contract: what a process finds when it takes over from one that died. */
import { describe, expect, it } from 'vitest';
import type { StoreUnderTest } from '../store.js';
import {
  begun,
  CHAT,
  chatAt,
  claimed,
  command,
  delivery,
  exchange,
  finish,
  lease,
  MINUTE,
  message,
  NOW,
  nextOf,
  receive,
  recovered,
} from './words.js';

const NOTHING = { rooms: [], commands: [], chats: [], alarms: [] };

export function recoveryContract(under: StoreUnderTest): void {
  describe('recovering', () => {
    it('finds nothing where nothing waits', async () => {
      await exchange(under.store, 't1', 'hi');
      expect(await recovered(under.store)).toEqual(NOTHING);
      expect(await recovered(under.store, 'me', NOW, [])).toEqual(NOTHING);
    });

    it('finds rooms, commands and chats, of its own channels only', async () => {
      const other = chatAt('other_1');
      const { commands } = await receive(under.store, [
        command('1', 'help'),
        message('2', 'hi'),
        message('3', 'ho', { threadId: '5' }),
        message('1', 'hi', { chat: other }),
        command('2', 'help', '', { chat: other }),
      ]);
      const posted = { channel: 'test', address: '9', threadId: null, kind: 'direct', now: NOW } as const;
      await under.store.post({ ...posted, chatId: 'test_9', delivery: delivery('notice:1', 'hey') });
      const found = { rooms: [CHAT, `${CHAT}/5`], commands: [commands[0]], chats: ['test_9'], alarms: [] };
      expect(await under.store.pending({ owner: 'me', channels: ['test'], now: NOW })).toEqual(found);
      expect(await recovered(under.store)).toEqual(found);
      expect(await under.store.pending({ owner: 'me', channels: ['other'], now: NOW })).toEqual({
        rooms: ['other_1'],
        commands: [commands[1]],
        chats: [],
        alarms: [],
      });
      expect(
        (await under.store.pending({ owner: 'me', channels: ['test', 'other'], now: NOW })).rooms,
      ).toHaveLength(3);
    });

    it('counts a crash for a turn that was being worked on, and frees its room', async () => {
      await receive(under.store, [message('1', 'hi')]);
      const lost = await begun(under.store, 't1');
      expect((await recovered(under.store, 'other')).rooms).toEqual([]);
      expect(await under.store.hold(lost.claim, NOW + MINUTE), 'it lives').toBe(true);
      expect((await recovered(under.store)).rooms).toEqual([CHAT]);
      expect(await finish(under.store, lost, 't1')).toBe('lost');
      const again = await claimed(under.store, CHAT, 'successor');
      expect(again.turn).toMatchObject({ id: 't1', crashes: 1, attempts: 0 });
    });

    it('counts every crash of a process that answered nobody', async () => {
      await receive(under.store, [message('1', 'deadly')]);
      await begun(under.store, 't1');
      const seen: (number | undefined)[] = [];
      for (let end = 0; end < 5; end++) {
        await recovered(under.store, 'me', NOW + end * 10);
        seen.push((await claimed(under.store, CHAT, 'me', NOW + end * 10)).turn?.crashes);
      }
      expect(seen).toEqual([1, 2, 3, 4, 5]);
    });

    it('forgives a crash of a process that answered somebody, ten times at most', async () => {
      await receive(under.store, [message('1', 'deadly')]);
      await begun(under.store, 't1');
      const seen: (number | undefined)[] = [];
      for (let end = 0; end < 13; end++) {
        await recovered(under.store, 'me', NOW + end * 10);
        seen.push((await claimed(under.store, CHAT, 'me', NOW + end * 10)).turn?.crashes);
        await receive(under.store, [message(`other ${end}`, 'hi', { threadId: '7' })]);
        const other = await begun(under.store, `other ${end}`, { room: `${CHAT}/7` });
        await finish(under.store, other, `other ${end}`, { now: NOW + end * 10 + 5 });
      }
      expect(seen).toEqual([...Array(11).fill(1), 2, 3]);
    });

    it('counts none for a turn that only waited to be tried again', async () => {
      await receive(under.store, [message('1', 'hi')]);
      const turn = await begun(under.store, 't1');
      await under.store.fail(turn.claim, 't1');
      expect((await recovered(under.store)).rooms).toEqual([CHAT]);
      expect((await claimed(under.store)).turn).toMatchObject({ crashes: 0, attempts: 1 });
    });

    it('frees a room that was held without a turn', async () => {
      await receive(under.store, [message('1', 'hi')]);
      await claimed(under.store);
      expect((await recovered(under.store)).rooms).toEqual([CHAT]);
      expect((await claimed(under.store, CHAT, 'successor')).waiting).toHaveLength(1);
    });

    it('gives commands again that were running, and counts their tries', async () => {
      const { commands } = await receive(under.store, [command('1', 'help')]);
      const id = commands[0]?.id ?? 0;
      await under.store.takeCommand(id, lease());
      const pendingFor = async (owner: string) =>
        (await under.store.pending({ owner, channels: ['test'], now: NOW })).commands;
      expect(await pendingFor('other'), 'it runs elsewhere').toEqual([]);
      expect(await pendingFor('me'), 'it may have been left').toEqual(commands);
      expect((await recovered(under.store)).commands).toEqual(commands);
      expect((await under.store.takeCommand(id, lease()))?.tries).toBe(2);
    });

    it('makes deliveries that were under way uncertain, by one crash', async () => {
      const deliveries = [delivery('turn:t1', 'one'), delivery('turn:t1', 'two', { part: 1 })];
      await exchange(under.store, 't1', 'hi', { deliveries });
      const first = await nextOf(under.store);
      await under.store.claimDelivery(first?.id ?? 0, lease());
      await recovered(under.store, 'other');
      expect((await nextOf(under.store))?.uncertainCrashes).toBe(0);
      expect((await recovered(under.store)).chats).toEqual([CHAT]);
      const expected = { body: { text: 'one' }, uncertainCrashes: 1, uncertainCuts: 0, attempts: 1 };
      expect(await nextOf(under.store)).toMatchObject(expected);
      await recovered(under.store);
      expect(await nextOf(under.store), 'it was not under way this time').toMatchObject(expected);
    });
  });
}
