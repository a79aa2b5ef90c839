/** The store's contract: replies that are shown while they are written. */
import { describe, expect, it } from 'vitest';
import type { ShownPart } from '../../../src/core/channel.js';
import type { StoreUnderTest } from '../store.js';
import {
  begun,
  CHAT,
  claimed,
  command,
  delivery,
  finish,
  finishWith,
  lease,
  message,
  NOW,
  nextOf,
  receive,
  recovered,
} from './words.js';

export function shownContract(under: StoreUnderTest): void {
  const ORIGIN = 'turn:t1';
  const start = async () => {
    await receive(under.store, [message('1', 'hi')]);
    return begun(under.store, 't1');
  };
  const part = (text: string, platformMessageId: string | null = '900', key = `key ${text}`): ShownPart => ({
    body: { text, marks: [] },
    speaker: 'Default',
    key,
    platformMessageId,
    sentAt: NOW - 5,
  });
  const show = (...parts: ShownPart[]) => under.store.show('t1', parts);
  const next = () => nextOf(under.store);
  const undelivered = async () => (await under.store.counts()).undelivered;
  async function run(name: 'stop' | 'reset'): Promise<void> {
    const { commands } = await receive(under.store, [command('2', name)]);
    const id = commands[0]?.id ?? 0;
    const taken = await under.store.takeCommand(id, lease());
    const effect =
      name === 'stop'
        ? ({ kind: 'stop', room: CHAT, turnId: 't1' } as const)
        : ({ kind: 'reset', room: CHAT, personaId: 'default', upTo: taken?.afterMessage ?? 0 } as const);
    await under.store.finishCommand({ id, now: NOW, deliveries: [], effects: [effect] });
  }

  describe('a reply that is shown while it is written', () => {
    it('is noted of a turn that runs, and is not sent by itself', async () => {
      expect(await show(part('too early')), 'there is no turn yet').toBe(false);
      const turn = await start();
      expect(await show(part('He', null))).toBe(true);
      expect(await show(part('Hel'))).toBe(true);
      expect(await next()).toBeNull();
      expect((await claimed(under.store)).turn?.shown, 'whoever goes on with it knows').toEqual([
        part('Hel'),
      ]);
      await finish(under.store, await claimed(under.store), 't1', {
        deliveries: [delivery(ORIGIN, 'Hello')],
      });
      expect(await show(part('Hello, too late'))).toBe(false);
      expect(await finish(under.store, turn, 't1')).toBe('lost');
    });

    it('becomes the final delivery where it stands, and keeps its id on the platform', async () => {
      const turn = await start();
      await show(part('He', '900', 'k'));
      const deliveries = [delivery(ORIGIN, 'Hello'), delivery(ORIGIN, 'more', { part: 1 })];
      expect(await finish(under.store, turn, 't1', { deliveries })).toBe('finished');
      const entry = await next();
      expect(entry).toMatchObject({
        body: { text: 'Hello' },
        shown: { platformMessageId: '900', key: 'k', sentAt: NOW - 5 },
        attempts: 0,
        createdAt: NOW,
      });
      expect(await under.store.claimDelivery(entry?.id ?? 0, lease())).toBe(true);
      await under.store.settle(entry?.id ?? 0, { kind: 'sent', platformMessageId: '900' }, NOW);
      expect(await under.store.delivery('k')).toMatchObject({ id: entry?.id, shown: { sentAt: NOW - 5 } });
      const further = await next();
      expect(further).toMatchObject({ body: { text: 'more' }, part: 1 });
      expect(further?.shown).toBeUndefined();
    });

    it('of which nobody knows whether it arrived stays in doubt, until that is known', async () => {
      const turn = await start();
      await show(part('He', null, 'k'));
      await finish(under.store, turn, 't1', { deliveries: [delivery(ORIGIN, 'Hello')] });
      const entry = await next();
      expect(entry).toMatchObject({
        shown: { platformMessageId: null, key: 'k' },
        attempts: 1,
        uncertainCrashes: 0,
        notBefore: 0,
        createdAt: NOW - 5,
      });
      await under.store.settle(
        entry?.id ?? 0,
        { kind: 'retry', notBefore: NOW + 9, uncertain: true, reason: 'cut' },
        NOW,
      );
      expect(await next()).toMatchObject({ uncertainCuts: 1, notBefore: NOW + 9 });
      await under.store.claimDelivery(entry?.id ?? 0, lease());
      expect(await show(part('He', '901', 'k')), 'nothing more may be shown').toBe(false);
      expect(await next()).toMatchObject({ id: entry?.id, shown: { platformMessageId: '901' } });
    });

    it('of which nobody knows whether it arrived is looked for by the mark of its first send', async () => {
      const turn = await start();
      await show({ ...part('He', null, 'k'), mark: 'before He' });
      const ended = await finishWith(under.store, turn, 't1', {
        deliveries: [delivery(ORIGIN, 'Hello')],
        send: { ...lease(), mark: 'before Hello' },
      });
      expect(ended).toMatchObject({ first: { mark: 'before He', shown: { platformMessageId: null } } });
      const id = (await next())?.id ?? 0;
      expect((await next())?.mark).toBe('before He');
      await under.store.settle(id, { kind: 'found', platformMessageId: '901' }, NOW);
      expect(await next()).toMatchObject({ id, shown: { platformMessageId: '901', key: 'k' } });
      expect(await next()).not.toHaveProperty('mark');
      await under.store.settle(id, { kind: 'found', platformMessageId: '902' }, NOW);
      expect((await next())?.shown?.platformMessageId, 'it is known').toBe('901');
    });

    it('of which nothing arrived has no mark any more', async () => {
      const turn = await start();
      await show({ ...part('He', null, 'k'), mark: 'before He' });
      await finish(under.store, turn, 't1', { deliveries: [delivery(ORIGIN, 'Hello')] });
      await under.store.settle([(await next())?.id ?? 0], { kind: 'unsent' }, NOW);
      expect(await next()).not.toHaveProperty('mark');
      expect(await next()).not.toHaveProperty('shown');
      expect(await under.store.delivery('k')).toBeNull();
    });

    it('that does not stand there any more is as if it had never been sent', async () => {
      const turn = await start();
      await show(part('He'), part('tail', '901'), part('more', null));
      await finish(under.store, turn, 't1', {
        deliveries: [
          delivery(ORIGIN, 'Hello'),
          delivery(ORIGIN, 'world', { part: 1 }),
          delivery(ORIGIN, 'again', { part: 2 }),
          delivery(ORIGIN, 'never shown', { part: 3 }),
        ],
      });
      const after = await under.store.shownAfter(delivery(ORIGIN, ''));
      expect(after.map(({ part, shown }) => [part, shown?.platformMessageId])).toEqual([
        [1, '901'],
        [2, null],
      ]);
      const first = (await next())?.id ?? 0;
      await under.store.claimDelivery(first, lease());
      await under.store.settle([first, ...after.map(({ id }) => id)], { kind: 'unsent' }, NOW + 1);
      const entry = await next();
      expect(entry).toMatchObject({ id: first, attempts: 0, body: { text: 'Hello' }, createdAt: NOW + 1 });
      expect(entry?.shown).toBeUndefined();
      expect(await under.store.shownAfter(delivery(ORIGIN, ''))).toEqual([]);
    });

    it('takes back what the final reply has no use for', async () => {
      const turn = await start();
      await show(part('He'), part('second', '901'));
      await finish(under.store, turn, 't1', { deliveries: [delivery(ORIGIN, 'Hello')] });
      expect(await undelivered()).toBe(2);
      await under.store.settle((await next())?.id ?? 0, { kind: 'sent', platformMessageId: '900' }, NOW);
      const second = await next();
      expect(second).toMatchObject({ body: { text: '', marks: [] }, shown: { platformMessageId: '901' } });
      await under.store.settle(second?.id ?? 0, { kind: 'dropped', reason: 'taken back' }, NOW);
      expect(await undelivered()).toBe(0);
    });

    it('of which nothing was sent leaves nothing behind', async () => {
      const turn = await start();
      await show(part('He', null));
      await show();
      await finish(under.store, turn, 't1', { deliveries: [delivery(ORIGIN, 'Hello')] });
      expect((await next())?.shown).toBeUndefined();
      expect(await undelivered()).toBe(1);
    });

    it('is edited at once where the first delivery is handed over with the end of the turn', async () => {
      const turn = await start();
      await show(part('He', '900', 'k'));
      const ended = await finishWith(under.store, turn, 't1', {
        deliveries: [delivery(ORIGIN, 'Hello')],
        send: lease(),
      });
      expect(ended).toMatchObject({ first: { shown: { platformMessageId: '900', key: 'k' }, attempts: 0 } });
    });

    it.each(['stop', 'reset'] as const)('is completed as stopped by a %s', async (name) => {
      await start();
      await show(part('whole part'), part('half of', '901'));
      await run(name);
      expect(await show(part('whole part'), part('half of more', '901'))).toBe(false);
      const first = await next();
      expect(first).toMatchObject({ body: { text: 'whole part' }, speaker: 'Default' });
      await under.store.settle(first?.id ?? 0, { kind: 'sent', platformMessageId: '900' }, NOW);
      expect(await next()).toMatchObject({
        part: 1,
        body: { text: 'half of …\n(stopped)' },
        shown: { platformMessageId: '901' },
      });
    });

    it.each(['stop', 'reset'] as const)('that nobody saw is dropped by a %s', async (name) => {
      await start();
      await show(part('under way', null));
      await run(name);
      // Its first message was under way, and was not taken.
      expect(await show()).toBe(false);
      expect(await undelivered()).toBe(0);
    });

    it('that nobody saw is sent in whole where the turn ended meanwhile', async () => {
      const turn = await start();
      await show(part('under way', null));
      await finish(under.store, turn, 't1', { deliveries: [delivery(ORIGIN, 'Hello')] });
      expect(await show()).toBe(false);
      const entry = await next();
      expect(entry).toMatchObject({ body: { text: 'Hello' }, attempts: 0 });
      expect(entry?.shown).toBeUndefined();
    });

    it('says that it was stopped in a message of its own where there is no room for it', async () => {
      await start();
      await show(part('x'.repeat(1_990)));
      await run('reset');
      const first = await next();
      expect(first).toMatchObject({ body: { text: 'x'.repeat(1_990) } });
      await under.store.settle(first?.id ?? 0, { kind: 'sent', platformMessageId: '900' }, NOW);
      expect(await next()).toMatchObject({ body: { text: '…\n(stopped)' }, replyTo: null });
    });

    it('is found by the next process, in doubt where it was just being sent', async () => {
      await start();
      await show(part('one'), part('two', null));
      await recovered(under.store, 'other');
      await recovered(under.store);
      expect(await next()).toBeNull();
      const again = await claimed(under.store);
      expect(again.turn?.shown.map(({ platformMessageId }) => platformMessageId)).toEqual(['900', null]);
      await finish(under.store, again, 't1', {
        deliveries: [delivery(ORIGIN, 'one'), delivery(ORIGIN, 'two', { part: 1 })],
      });
      const first = await next();
      expect(first).toMatchObject({ uncertainCrashes: 0, attempts: 0 });
      await under.store.settle(first?.id ?? 0, { kind: 'sent', platformMessageId: '900' }, NOW);
      expect(await next()).toMatchObject({ uncertainCrashes: 1, attempts: 1 });
    });
  });
}
