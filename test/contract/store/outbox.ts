/** The store's contract: the outbox. */
import { describe, expect, it } from 'vitest';
import type { StoreUnderTest } from '../store.js';
import {
  begun,
  CHAT,
  delivery,
  exchange,
  finish,
  lease,
  message,
  NOW,
  nextOf,
  receive,
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
      await under.store.retry(first, { notBefore: NOW + 99, uncertain: false, error: 'later' });
      expect(await nextOf(under.store)).toMatchObject({ body: { text: 'one' }, notBefore: NOW + 99 });
      await under.store.sent(first, '900', NOW);
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
      expect(await under.store.sending(id, lease())).toBe(true);
      await under.store.retry(id, { notBefore: 1, uncertain: true, error: 'cut' });
      expect(await under.store.sending(id, lease())).toBe(true);
      await under.store.retry(id, { notBefore: 2, uncertain: false, error: 'busy' });
      expect(await nextOf(under.store)).toMatchObject({
        attempts: 2,
        uncertainCuts: 1,
        uncertainCrashes: 0,
        notBefore: 2,
      });
    });

    it('never gives again what was sent, refused, unconfirmed or parked', async () => {
      for (const [n, end] of (['sent', 'refused', 'unconfirmed', 'parked'] as const).entries()) {
        await post(`notice:${n}`, end);
        const id = await nextId();
        expect(await nextText()).toBe(end);
        expect(await under.store.sending(id, lease())).toBe(true);
        if (end === 'sent') await under.store.sent(id, '900', NOW);
        else if (end === 'parked') expect((await under.store.quieten()).deliveries).toBe(1);
        else await under.store.giveUp(id, end, 'reason', NOW);
        expect(await under.store.sending(id, lease())).toBe(false);
        await under.store.retry(id, { notBefore: 0, uncertain: false, error: '' });
        await under.store.giveUp(id, 'refused', '', NOW);
        expect(await nextOf(under.store)).toBeNull();
      }
      expect(await under.store.census()).toMatchObject({ undelivered: 0, parked: 1 });
      expect((await under.store.quieten()).deliveries).toBe(0);
      expect((await under.store.pending({ owner: 'me', channels: ['test'], now: NOW })).chats).toEqual([]);
    });

    it('passes over what was posted already, by origin, persona and part', async () => {
      await post('notice:1', 'one');
      await post('notice:1', 'one again');
      await under.store.post({ ...to, delivery: delivery('notice:1', 'part', { personaId: null, part: 1 }) });
      await under.store.post({ ...to, delivery: delivery('notice:1', 'luna', { personaId: 'luna' }) });
      expect((await under.store.census()).undelivered).toBe(3);
      await under.store.sent(await nextId(), '900', NOW);
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
