/** The store's contract: the outbox. */
import { describe, expect, it } from 'vitest';
import type { StoreUnderTest } from '../store.js';
import {
  begun,
  CHAT,
  delivery,
  exchange,
  finish,
  finishWith,
  lease,
  message,
  NOW,
  nextOf,
  receive,
  recovered,
  windowTexts,
} from './words.js';

export function outboxContract(under: StoreUnderTest): void {
  const to = {
    chatId: CHAT,
    channel: 'test',
    address: '1',
    threadId: null,
    kind: 'direct',
    now: NOW,
  } as const;
  const post = (origin: string, text: string, chatId = CHAT) =>
    under.store.post({ ...to, chatId, delivery: delivery(origin, text, { personaId: null }) });
  const nextId = async () => (await nextOf(under.store))?.id ?? 0;
  const nextText = async () => (await nextOf(under.store))?.body.text;

  describe('the outbox', () => {
    it('gives what is to be delivered in order per chat, due or not', async () => {
      await post('notice:1', 'one');
      await post('notice:2', 'elsewhere', 'test_2');
      await post('notice:3', 'two');
      const first = await nextId();
      await under.store.settle(
        first,
        { kind: 'retry', notBefore: NOW + 99, uncertain: false, reason: 'later' },
        NOW,
      );
      expect(await nextOf(under.store)).toMatchObject({ body: { text: 'one' }, notBefore: NOW + 99 });
      await under.store.settle(first, { kind: 'sent', platformMessageId: '900' }, NOW);
      expect(await nextText()).toBe('two');
      expect((await nextOf(under.store, 'test_2'))?.body.text).toBe('elsewhere');
      expect(await nextOf(under.store, 'test_3')).toBeNull();
    });

    it('adds a greeting to the transcript once, with its first entry', async () => {
      await receive(under.store, [message('1', 'hello')]);
      const greeting = { room: CHAT, personaId: 'default', text: 'Hey.', hearers: ['default', 'luna'] };
      const said = { ...to, delivery: delivery(`greeting:${CHAT}`, 'Hey.'), greeting };
      expect(await under.store.post(said)).toBe(true);
      expect(await under.store.post(said)).toBe(false);
      expect(await windowTexts(under.store)).toEqual(['Hey.']);
      const heard = await under.store.window({
        ...{ room: CHAT, personaId: 'luna', limit: 9, overheard: 9, except: [] },
      });
      expect(heard.messages).toMatchObject([
        { text: 'Hey.', addressed: false, turnId: null, author: { kind: 'persona', id: 'default' } },
      ]);
      // A message that waited meanwhile is heard after it.
      await begun(under.store, 't1');
      expect(await windowTexts(under.store)).toEqual(['Hey.', 'hello']);
    });

    it('keeps marks, speaker and the rest of a delivery', async () => {
      const full = delivery('notice:1', 'bold', {
        body: { text: 'bold', marks: [{ kind: 'link', url: 'http://x', offset: 0, length: 4 }] },
        personaId: 'luna',
        speaker: 'Luna',
        part: 3,
        replyTo: '77',
      });
      await under.store.post({ ...to, threadId: '5', delivery: full });
      const { now, ...rest } = to;
      expect(await nextOf(under.store)).toMatchObject({ ...rest, ...full, threadId: '5', createdAt: now });
    });

    it('counts tries and doubts', async () => {
      await post('notice:1', 'one');
      const id = await nextId();
      expect(await under.store.claimDelivery(id, lease())).toBe(true);
      await under.store.settle(id, { kind: 'retry', notBefore: 1, uncertain: true, reason: 'cut' }, NOW);
      expect(await under.store.claimDelivery(id, lease())).toBe(true);
      await under.store.settle(id, { kind: 'retry', notBefore: 2, uncertain: false, reason: 'busy' }, NOW);
      expect(await nextOf(under.store)).toMatchObject({
        attempts: 2,
        uncertainCuts: 1,
        uncertainCrashes: 0,
        notBefore: 2,
      });
    });

    it('keeps the mark of an attempt until its outcome is known', async () => {
      await post('notice:1', 'one');
      const id = await nextId();
      expect(await nextOf(under.store)).not.toHaveProperty('mark');
      await under.store.claimDelivery(id, { ...lease(), mark: 'before the first' });
      expect((await nextOf(under.store))?.mark).toBe('before the first');
      await under.store.settle(id, { kind: 'retry', notBefore: 0, uncertain: true, reason: 'cut' }, NOW);
      expect((await nextOf(under.store))?.mark).toBe('before the first');
      // It was looked for, as far as that went.
      await under.store.settle(
        id,
        { kind: 'retry', notBefore: 0, uncertain: false, reason: 'busy', mark: 'further on' },
        NOW,
      );
      expect(await nextOf(under.store)).toMatchObject({ mark: 'further on', uncertainCuts: 1 });
      await under.store.claimDelivery(id, { ...lease(), mark: 'before the second' });
      expect((await nextOf(under.store))?.mark).toBe('before the second');
      await under.store.settle(
        id,
        { kind: 'retry', notBefore: 0, uncertain: false, reason: 'not taken' },
        NOW,
      );
      expect(await nextOf(under.store)).not.toHaveProperty('mark');
      await under.store.claimDelivery(id, lease());
      expect(await nextOf(under.store)).not.toHaveProperty('mark');
    });

    it('keeps the mark over an end of the process', async () => {
      await post('notice:1', 'one');
      await under.store.claimDelivery(await nextId(), { ...lease(), mark: 'before' });
      await recovered(under.store);
      expect(await nextOf(under.store)).toMatchObject({ mark: 'before', uncertainCrashes: 1 });
    });

    it('keeps the mark of what is handed over with the end of its turn', async () => {
      await receive(under.store, [message('1', 'hi')]);
      const deliveries = [delivery('turn:t1', 'one'), delivery('turn:t1', 'two', { part: 1 })];
      const send = { ...lease(), mark: 'before' };
      const ended = await finishWith(under.store, await begun(under.store, 't1'), 't1', { deliveries, send });
      expect(ended, 'there is nothing to be looked for yet').not.toHaveProperty('first.mark');
      expect(await nextOf(under.store)).toMatchObject({ body: { text: 'one' }, mark: 'before' });
      await under.store.settle(await nextId(), { kind: 'sent', platformMessageId: '900' }, NOW);
      expect(await nextOf(under.store)).not.toHaveProperty('mark');
    });

    it('begins an attempt only where none has begun since the entry was read', async () => {
      await post('notice:1', 'one');
      const id = await nextId();
      expect(await under.store.claimDelivery(id, { ...lease(), earlierTries: 0 })).toBe(true);
      expect(await under.store.claimDelivery(id, { ...lease(), earlierTries: 0 })).toBe(false);
      expect(await under.store.claimDelivery(id, { ...lease(), earlierTries: 1 })).toBe(true);
    });

    it('knows our messages in a chat, sent or shown, and what a channel sent last', async () => {
      await receive(under.store, [message('1', 'hi')]);
      const turn = await begun(under.store, 't1');
      const part = { body: { text: '', marks: [] }, speaker: 'Default', sentAt: NOW };
      await under.store.show('t1', [
        { ...part, key: 'a', platformMessageId: '7' },
        { ...part, key: 'b', platformMessageId: null },
      ]);
      await post('notice:1', 'one');
      await under.store.settle(await nextId(), { kind: 'sent', platformMessageId: '5' }, NOW);
      await post('notice:2', 'elsewhere', 'test_2');
      await under.store.settle(
        (await nextOf(under.store, 'test_2'))?.id ?? 0,
        { kind: 'sent', platformMessageId: '6' },
        NOW,
      );
      await post('notice:3', 'not yet');
      const known = async () => (await under.store.recordedIn(CHAT)).ids;
      // The first is a person's, which it cannot be either.
      expect(await known()).toEqual(new Set(['1', '5', '7']));
      const deliveries = [delivery('turn:t1', 'a'), delivery('turn:t1', 'b', { part: 1 })];
      await finish(under.store, turn, 't1', { deliveries });
      expect(await known()).toEqual(new Set(['1', '5', '7']));
      const { sent } = await under.store.newest('test');
      expect(sent.map(({ platformMessageId }) => platformMessageId).sort()).toEqual(['5', '6', '7']);
      expect((await under.store.newest('other')).sent).toEqual([]);
    });

    it('knows how many of our messages may stand in a chat under an unknown id', async () => {
      const uncertain = async () => (await under.store.recordedIn(CHAT)).uncertain;
      await post('notice:1', 'one');
      expect(await uncertain()).toBe(0);
      await under.store.claimDelivery(await nextId(), { ...lease(), mark: 'before' });
      expect(await uncertain()).toBe(1);
      await receive(under.store, [message('1', 'hi')]);
      await begun(under.store, 't1');
      const part = { body: { text: '', marks: [] }, speaker: 'Default', sentAt: NOW, key: 'a' };
      await under.store.show('t1', [{ ...part, platformMessageId: null }]);
      expect(await uncertain()).toBe(2);
      await under.store.show('t1', [{ ...part, platformMessageId: '7' }]);
      await under.store.settle(await nextId(), { kind: 'sent', platformMessageId: '8' }, NOW);
      expect(await uncertain()).toBe(0);
    });

    it('never gives again what was sent, refused, unconfirmed or parked', async () => {
      for (const [n, end] of (['sent', 'refused', 'unconfirmed', 'parked'] as const).entries()) {
        await post(`notice:${n}`, end);
        const id = await nextId();
        expect(await nextText()).toBe(end);
        expect(await under.store.claimDelivery(id, lease())).toBe(true);
        if (end === 'sent') await under.store.settle(id, { kind: 'sent', platformMessageId: '900' }, NOW);
        else if (end === 'parked') expect((await under.store.quieten()).deliveries).toBe(1);
        else await under.store.settle(id, { kind: end, reason: 'reason' }, NOW);
        expect(await under.store.claimDelivery(id, lease())).toBe(false);
        await under.store.settle(id, { kind: 'retry', notBefore: 0, uncertain: false, reason: '' }, NOW);
        await under.store.settle(id, { kind: 'refused', reason: '' }, NOW);
        expect(await nextOf(under.store)).toBeNull();
      }
      expect(await under.store.counts()).toMatchObject({ undelivered: 0, parked: 1 });
      expect((await under.store.quieten()).deliveries).toBe(0);
      expect((await under.store.pending({ owner: 'me', channels: ['test'], now: NOW })).chats).toEqual([]);
    });

    it('passes over what was posted already, by origin, persona and part', async () => {
      await post('notice:1', 'one');
      await post('notice:1', 'one again');
      await under.store.post({ ...to, delivery: delivery('notice:1', 'part', { personaId: null, part: 1 }) });
      await under.store.post({ ...to, delivery: delivery('notice:1', 'luna', { personaId: 'luna' }) });
      expect((await under.store.counts()).undelivered).toBe(3);
      await under.store.settle(await nextId(), { kind: 'sent', platformMessageId: '900' }, NOW);
      await post('notice:1', 'one at last');
      expect(await nextText()).toBe('part');
    });

    it('stores nothing of a turn whose deliveries are there already', async () => {
      await exchange(under.store, 't1', 'hi', { deliveries: [delivery('turn:t1', 'one')] });
      await receive(under.store, [message('2', 'again')]);
      const turn = await begun(under.store, 't2');
      await expect(
        finish(under.store, turn, 't2', { deliveries: [delivery('turn:t1', 'twice')] }),
      ).rejects.toThrow();
      expect(await finish(under.store, turn, 't2')).toBe('finished');
    });
  });
}
