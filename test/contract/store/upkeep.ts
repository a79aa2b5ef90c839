/** The store's contract: counts, calming, and news of other processes. */
import { describe, expect, it } from 'vitest';
import type { StoreUnderTest } from '../store.js';
import {
  begun,
  CHAT,
  chatAt,
  command,
  delivery,
  exchange,
  finish,
  message,
  NOW,
  receive,
  recovered,
  waitingTexts,
} from './words.js';

export function upkeepContract(under: StoreUnderTest): void {
  it('counts what stands where', async () => {
    expect(await under.store.census()).toEqual({ waiting: 0, running: 0, undelivered: 0, parked: 0 });
    await exchange(under.store, 't1', 'hi', { deliveries: [delivery('turn:t1', 'a')] });
    await under.store.quieten();
    await exchange(under.store, 't2', 'ho', { deliveries: [delivery('turn:t2', 'b')] });
    await receive(under.store, [message('1', 'one')]);
    await begun(under.store, 't3');
    await receive(under.store, [message('2', 'two'), message('3', 'three')]);
    expect(await under.store.census()).toEqual({ waiting: 2, running: 1, undelivered: 1, parked: 1 });
  });

  it('counts a parked turn as parked', async () => {
    await receive(under.store, [message('1', 'hi')]);
    const turn = await begun(under.store, 't1');
    await finish(under.store, turn, 't1', { outcome: 'parked', reply: null });
    expect(await under.store.census()).toEqual({ waiting: 0, running: 0, undelivered: 0, parked: 1 });
  });

  it('is quiet after quieten: nothing is sent, answered or run', async () => {
    await exchange(under.store, 't1', 'hi', { deliveries: [delivery('turn:t1', 'a')] });
    await receive(under.store, [message('1', 'one'), command('2', 'help')]);
    const turn = await begun(under.store, 't2');
    await receive(under.store, [message('3', 'two', { chat: chatAt('test_2') })]);
    expect(await under.store.quieten()).toEqual({ deliveries: 1, messages: 2 });
    expect(await recovered(under.store)).toEqual({ rooms: [], commands: [], chats: [], alarms: [] });
    expect(await under.store.census()).toEqual({ waiting: 0, running: 0, undelivered: 0, parked: 1 });
    expect(await finish(under.store, turn, 't2')).toBe('lost');
    await receive(under.store, [message('4', 'three')]);
    expect(await waitingTexts(under.store)).toEqual(['three']);
  });

  describe('another process', () => {
    it('sees what this one wrote, and both agree on claims', async () => {
      const other = await under.another();
      await receive(under.store, [message('1', 'hi')]);
      expect(await other.pending({ owner: 'me', channels: ['test'], now: NOW })).toMatchObject({
        rooms: [CHAT],
      });
      const turn = await begun(other, 't1');
      expect(await under.store.look(CHAT, 'a third', NOW)).toBeNull();
      expect(await finish(other, turn, 't1')).toBe('finished');
      expect(await under.store.pending({ owner: 'me', channels: ['test'], now: NOW })).toMatchObject({
        rooms: [],
      });
    });

    it('is noticed when it writes, and not after watching ended', async () => {
      const other = await under.another();
      let calls = 0;
      const changed = new Promise<void>((resolve) => {
        const stop = under.store.watch(() => {
          calls++;
          stop();
          resolve();
        });
      });
      await receive(other, [message('1', 'hi')]);
      await changed;
      expect(calls).toBe(1);
    });
  });
}
