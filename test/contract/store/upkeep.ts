/** The store's contract: counts, calming, and news of other processes. */
import { describe, expect, it } from 'vitest';
import { phraseOf } from '../../../src/core/phrase.js';
import type { StoreUnderTest } from '../store.js';
import { added } from './tasks.js';
import {
  begun,
  CHAT,
  chatAt,
  command,
  DAY,
  delivery,
  exchange,
  finish,
  forget,
  lease,
  message,
  NOW,
  nextOf,
  overhear,
  pruned,
  receive,
  recovered,
  waitingTexts,
  windowTexts,
} from './words.js';

export function upkeepContract(under: StoreUnderTest): void {
  it('counts what stands where', async () => {
    expect(await under.store.counts()).toEqual({ waiting: 0, running: 0, undelivered: 0, parked: 0 });
    await exchange(under.store, 't1', 'hi', { deliveries: [delivery('turn:t1', 'a')] });
    await under.store.quieten();
    await exchange(under.store, 't2', 'ho', { deliveries: [delivery('turn:t2', 'b')] });
    await receive(under.store, [message('1', 'one')]);
    await begun(under.store, 't3');
    await receive(under.store, [message('2', 'two'), message('3', 'three')]);
    expect(await under.store.counts()).toEqual({ waiting: 2, running: 1, undelivered: 1, parked: 1 });
  });

  it('counts a parked turn as parked', async () => {
    await receive(under.store, [message('1', 'hi')]);
    const turn = await begun(under.store, 't1');
    await finish(under.store, turn, 't1', { outcome: 'parked', reply: null });
    expect(await under.store.counts()).toEqual({ waiting: 0, running: 0, undelivered: 0, parked: 1 });
  });

  it('is quiet after quieten: nothing is sent, answered or run', async () => {
    await exchange(under.store, 't1', 'hi', { deliveries: [delivery('turn:t1', 'a')] });
    await receive(under.store, [message('1', 'one'), command('2', 'help')]);
    const turn = await begun(under.store, 't2');
    await receive(under.store, [message('3', 'two', { chat: chatAt('test_2') })]);
    expect(await under.store.quieten()).toEqual({ deliveries: 1, messages: 2 });
    expect(await recovered(under.store)).toEqual({ rooms: [], commands: [], chats: [], alarms: [] });
    expect(await under.store.counts()).toEqual({ waiting: 0, running: 0, undelivered: 0, parked: 1 });
    expect(await finish(under.store, turn, 't2')).toBe('lost');
    await receive(under.store, [message('4', 'three')]);
    expect(await waitingTexts(under.store)).toEqual(['three']);
  });

  describe('what is kept too long', () => {
    const prune = (before: number, most = 1_000) => pruned(under.store, before, NOW + 3 * DAY, most);
    const step = (before: number, most: number) => under.store.prune({ before, now: NOW + 3 * DAY, most });
    const kept = async () => (await under.store.sizes()).rows;

    it('goes: what was delivered, answered and run, versions, requests; in steps', async () => {
      for (let n = 0; n < 5; n++) {
        await exchange(under.store, `t${n}`, `m${n}`, { deliveries: [delivery(`turn:t${n}`, 'x')] });
        await under.store.settle(
          (await nextOf(under.store))?.id ?? 0,
          { kind: 'sent', platformMessageId: `p${n}` },
          NOW,
        );
        const { commands } = await receive(under.store, [command(`c${n}`, 'help')]);
        await under.store.takeCommand(commands[0]?.id ?? 0, lease());
        const finished = { id: commands[0]?.id ?? 0, now: NOW, deliveries: [], effects: [] };
        await under.store.finishCommand(finished);
      }
      expect(await prune(NOW), 'nothing is old').toBe(0);
      expect(await step(NOW + 1, 3)).toEqual({ rows: 3, more: true });
      // Of the outbox, the commands and the journal the newest stays, so that no id is given twice.
      expect(3 + (await prune(NOW + 1, 3))).toBe(4 + 4 + 5 + 9);
      expect(await kept()).toMatchObject({ message: 10, outbox: 1, command: 1 });
      expect(await windowTexts(under.store), 'nothing of the conversation').toHaveLength(10);
      expect(await under.store.messages({ turnId: 't0' })).toEqual([]);
      await exchange(under.store, 't9', 'more', { deliveries: [delivery('turn:t9', 'y')] });
      expect((await nextOf(under.store))?.id).toBeGreaterThan(5);
    });

    it('goes: what people used on days that are over, never on a day that may still last somewhere', async () => {
      const usage = { inputTokens: 1, outputTokens: 1 };
      for (const now of [NOW, NOW + 4 * DAY])
        await under.store.spend({ room: CHAT, personaId: 'luna', personId: 'test_ann', usage, now });
      expect(await prune(NOW + 4 * DAY)).toBe(1);
      const on = async (now: number) =>
        (await under.store.usage({ chatId: CHAT, personId: 'test_ann', since: now, now })).person.tokens;
      expect([await on(NOW), await on(NOW + 4 * DAY)]).toEqual([0, 2]);
    });

    it('stays where it is not over: what waits, runs, is suspended or parked', async () => {
      await exchange(under.store, 't1', 'hi', { deliveries: [delivery('turn:t1', 'a')] });
      await under.store.quieten();
      await exchange(under.store, 't2', 'ho', { deliveries: [delivery('turn:t2', 'b')] });
      await receive(under.store, [message('3', 'suspended')]);
      const waits = await begun(under.store, 't3');
      await under.store.addStep(
        waits.claim,
        't3',
        { kind: 'waiting', callId: 'c', waitsFor: 'k', until: null },
        NOW,
      );
      await receive(under.store, [message('4', 'runs'), command('5', 'help')]);
      await begun(under.store, 't4');
      await receive(under.store, [message('6', 'waits')]);
      const before = await under.store.counts();
      await prune(NOW + DAY);
      expect(await under.store.counts()).toEqual(before);
      expect((await under.store.roomNow(CHAT)).suspended).toMatchObject({ turnId: 't3' });
      expect(
        (await receive(under.store, [{ kind: 'resume', waitsFor: 'k', content: '', failed: false }])).rooms,
      ).toEqual([CHAT]);
    });

    it('goes when a reset has forgotten it and nobody else may see it, whenever it was said', async () => {
      await exchange(under.store, 't1', 'for default');
      await exchange(under.store, 't2', 'for luna', { personaId: 'luna' });
      await overhear(under.store, ['for both'], { hearers: ['default', 'luna'] });
      await exchange(under.store, 't3', 'in a thread', { room: `${CHAT}/5` });
      await receive(under.store, [message('w', 'waited')]);
      await forget(under.store);
      await exchange(under.store, 't4', 'new');
      for (let more = true; more; ) {
        const { rows, more: isMore } = await step(0, 2);
        expect(rows).toBeLessThanOrEqual(2);
        more = isMore;
      }
      const texts = async (room: string, personaId: string) => windowTexts(under.store, { room, personaId });
      expect(await texts(CHAT, 'default')).toEqual(['new', 'reply of t4']);
      expect(await texts(CHAT, 'luna')).toEqual(['for luna', 'reply of t2', 'for both']);
      expect(await texts(`${CHAT}/5`, 'default')).toEqual(['in a thread', 'reply of t3']);
      for (const gone of ['for default', 'reply of t1', 'waited']) {
        expect(await under.store.findWords(CHAT, phraseOf(gone)), gone).toEqual({
          messages: 0,
          others: 0,
          files: [],
        });
      }
      expect((await under.store.findWords(CHAT, phraseOf('for both'))).messages).toBe(1);
      await forget(under.store, { personaId: 'luna' });
      await exchange(under.store, 't5', 'newer');
      await prune(0);
      expect((await under.store.findWords(CHAT, phraseOf('for both'))).messages).toBe(0);
      expect(await texts(CHAT, 'default')).toHaveLength(4);
    });

    it('is measured, and giving back its space comes to an end', async () => {
      const many = Array.from({ length: 200 }, (_, n) => message(`${n}`, 'x'.repeat(2_000)));
      await receive(under.store, many);
      const full = await under.store.sizes();
      expect(full.rows.message).toBe(200);
      await forget(under.store);
      await prune(0);
      const small = await under.store.sizes();
      expect(small.rows.message).toBe(1);
      expect(small.free).toBe(0);
      expect(small.bytes).toBeGreaterThan(0);
    });
  });

  describe('another process', () => {
    it('sees what this one wrote, and both agree on claims', async () => {
      const other = await under.another();
      await receive(under.store, [message('1', 'hi')]);
      expect(await other.pending({ owner: 'me', channels: ['test'], now: NOW })).toMatchObject({
        rooms: [CHAT],
      });
      const turn = await begun(other, 't1');
      expect(await under.store.readRoom(CHAT, 'a third', NOW)).toBeNull();
      expect(await finish(other, turn, 't1')).toBe('finished');
      expect(await under.store.pending({ owner: 'me', channels: ['test'], now: NOW })).toMatchObject({
        rooms: [],
      });
    });

    it.each(['journal', 'task'] as const)(
      'its watchers of the %s find there what it has written',
      async (what) => {
        const { store } = under;
        const found: number[] = [];
        const end = store.watch(() => {
          const entries = what === 'journal' ? store.journal({ after: 0, most: 9 }) : store.tasks(9);
          void entries.then(({ length }) => found.push(length));
        }, what);
        if (what === 'journal') await receive(store, [message('1', 'hi')]);
        else await added(store, 'k1');
        await expect.poll(() => found).toEqual([1]);
        end();
      },
    );

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
