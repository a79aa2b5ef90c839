/** The store's contract: replies that are shown while they are written. */
import { describe, expect, it } from 'vitest';
import type { NewDelivery } from '../../../src/core/store.js';
import type { StoreUnderTest } from '../store.js';
import { begun, CHAT, command, delivery, finish, message, NOW, receive } from './words.js';

export function shownContract(under: StoreUnderTest): void {
  const ORIGIN = 'turn:t1';
  const begin = async () => {
    await receive(under.store, [message('1', 'hi')]);
    return begun(under.store, 't1');
  };
  const open = (text: string, more: Partial<NewDelivery> = {}) =>
    under.store.open({ turnId: 't1', room: CHAT, delivery: delivery(ORIGIN, text, more), now: NOW });
  const opened = async (text: string, platformMessageId: string | null = '900', part = 0) => {
    const id = (await open(text, { part }))?.entry.id ?? 0;
    if (platformMessageId !== null) await under.store.stands(id, platformMessageId);
    return id;
  };
  const next = () => under.store.next(CHAT);
  const undelivered = async () => (await under.store.census()).undelivered;
  async function run(name: 'stop' | 'reset'): Promise<void> {
    const { commands } = await receive(under.store, [command('2', name)]);
    const id = commands[0]?.id ?? 0;
    const taken = await under.store.takeCommand(id);
    const effect =
      name === 'stop'
        ? ({ kind: 'stop', room: CHAT, turnId: 't1' } as const)
        : ({ kind: 'reset', room: CHAT, personaId: 'default', upTo: taken?.afterMessage ?? 0 } as const);
    await under.store.finishCommand({ id, now: NOW, deliveries: [], effects: [effect] });
  }

  describe('a reply that is shown while it is written', () => {
    it('is opened once, by a turn that runs, and is not sent by itself', async () => {
      expect(await open('too early')).toBeNull();
      const turn = await begin();
      const first = await open('He');
      expect(first).toMatchObject({ toBeSent: true, entry: { shown: { platformMessageId: null } } });
      expect(await open('Hel')).toMatchObject({ toBeSent: false, entry: { id: first?.entry.id } });
      expect(await next()).toBeNull();
      await finish(under.store, turn, 't1', { deliveries: [delivery(ORIGIN, 'Hello')] });
      expect(await open('Hello, too late')).toBeNull();
    });

    it('becomes the final delivery where it stands, and keeps its id on the platform', async () => {
      const turn = await begin();
      const id = await opened('He');
      expect(await under.store.grow(id, { text: 'Hell', marks: [] })).toBe(true);
      const deliveries = [delivery(ORIGIN, 'Hello'), delivery(ORIGIN, 'more', { part: 1 })];
      expect(await finish(under.store, turn, 't1', { deliveries })).toBe('finished');
      expect(await under.store.grow(id, { text: 'Hell no', marks: [] })).toBe(false);
      expect(await next()).toMatchObject({
        ...{ id, body: { text: 'Hello' }, shown: { platformMessageId: '900' }, attempts: 0 },
      });
      expect(await under.store.sending(id, NOW)).toBe(true);
      await under.store.sent(id, '900', NOW);
      const further = await next();
      expect(further).toMatchObject({ body: { text: 'more' }, part: 1 });
      expect(further?.shown).toBeUndefined();
    });

    it('of which nobody knows whether it arrived stays in doubt', async () => {
      const turn = await begin();
      const id = await opened('He', null);
      await under.store.retry(id, { notBefore: NOW + 9, uncertain: true, error: 'cut' });
      expect(await next()).toBeNull();
      await finish(under.store, turn, 't1', { deliveries: [delivery(ORIGIN, 'Hello')] });
      expect(await next()).toMatchObject({
        ...{ shown: { platformMessageId: null }, attempts: 1, uncertainCuts: 1, notBefore: 0 },
      });
      await under.store.sending(id, NOW);
      await under.store.stands(id, '901');
      expect(await next()).toMatchObject({ id, shown: { platformMessageId: '901' } });
    });

    it('that does not stand there any more is as if it had never been sent', async () => {
      const turn = await begin();
      const id = await opened('He');
      await opened('tail', '901', 1);
      await finish(under.store, turn, 't1', {
        deliveries: [delivery(ORIGIN, 'Hello'), delivery(ORIGIN, 'world', { part: 1 })],
      });
      const below = await under.store.shownBelow(delivery(ORIGIN, ''));
      expect(below.map(({ part, shown }) => [part, shown?.platformMessageId])).toEqual([[1, '901']]);
      await under.store.sending(id, NOW);
      await under.store.gone(id, NOW);
      const entry = await next();
      expect(entry).toMatchObject({ id, attempts: 0, body: { text: 'Hello' } });
      expect(entry?.shown).toBeUndefined();
    });

    it('takes back what the final reply has no use for, and drops what nobody saw', async () => {
      const turn = await begin();
      await opened('He');
      const second = await opened('second', '901', 1);
      const third = await opened('third', null, 2);
      await under.store.gone(third, NOW);
      await finish(under.store, turn, 't1', { deliveries: [delivery(ORIGIN, 'Hello')] });
      expect(await undelivered()).toBe(2);
      await under.store.sent((await next())?.id ?? 0, '900', NOW);
      expect(await next()).toMatchObject({ id: second, body: { text: '', marks: [] } });
      await under.store.give(second, 'dropped', 'taken back', NOW);
      expect(await undelivered()).toBe(0);
    });

    it.each(['stop', 'reset'] as const)('is completed as stopped by a %s', async (name) => {
      await begin();
      const id = await opened('whole part');
      await opened('half of', '901', 1);
      await run(name);
      expect(await under.store.grow(id, { text: 'more', marks: [] })).toBe(false);
      expect(await next()).toMatchObject({ id, body: { text: 'whole part' } });
      await under.store.sent(id, '900', NOW);
      expect(await next()).toMatchObject({
        ...{ part: 1, body: { text: 'half of …\n(stopped)' }, shown: { platformMessageId: '901' } },
      });
    });

    it.each(['stop', 'reset'] as const)('that nobody saw is dropped by a %s', async (name) => {
      await begin();
      const id = await opened('under way', null);
      await run(name);
      // Its first message was under way, and was not taken.
      await under.store.gone(id, NOW);
      expect(await undelivered()).toBe(0);
    });

    it('says that it was stopped in a message of its own where there is no room for it', async () => {
      await begin();
      const id = await opened('x'.repeat(1_990));
      await run('reset');
      expect(await next()).toMatchObject({ id, body: { text: 'x'.repeat(1_990) } });
      await under.store.sent(id, '900', NOW);
      expect(await next()).toMatchObject({ body: { text: '…\n(stopped)' }, replyTo: null });
    });

    it('is found by the next process, in doubt where it was just being sent', async () => {
      const turn = await begin();
      const first = await opened('one');
      const second = await opened('two', null, 1);
      await under.store.recover(['other'], NOW);
      expect(await under.store.delivery(second)).toMatchObject({ uncertainCrashes: 0 });
      await under.store.recover(['test'], NOW);
      expect(await next()).toBeNull();
      expect(await under.store.delivery(first)).toMatchObject({ uncertainCrashes: 0 });
      expect(await under.store.delivery(second)).toMatchObject({ uncertainCrashes: 1 });
      expect(turn.turn).toBeNull();
    });
  });
}
