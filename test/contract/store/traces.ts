/** The store's contract: for every message it can be said where it went. */
import { describe, expect, it } from 'vitest';
import { phraseOf } from '../../../src/core/phrase.js';
import { BEGINNING } from '../../../src/core/transcript.js';
import type { StoreUnderTest } from '../store.js';
import { oneView } from './one-view.js';
import {
  ANN,
  begun,
  CHAT,
  chatAt,
  claimed,
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
  receive,
} from './words.js';

export function traceContract(under: StoreUnderTest): void {
  const byWords = (text: string, personaId = 'default', most = 10, chatId = CHAT) =>
    under.store.trace({ chatId, wanted: { phrase: phraseOf(text), personaId }, most });
  const byId = (platformMessageId: string, most = 10, chatId = CHAT) =>
    under.store.trace({ chatId, wanted: { platformMessageId }, most });
  const fateOf = async (text: string, personaId = 'default') =>
    (await byWords(text, personaId)).map(({ fate }) => fate);

  describe('who spoke since a time', () => {
    it('is told of each persona in a chat, with its last room', async () => {
      expect(await under.store.spokeSince(0)).toEqual([]);
      await exchange(under.store, 't1', 'q1');
      await exchange(under.store, 't2', 'q2', { personaId: 'luna', room: `${CHAT}/5` });
      await exchange(under.store, 't3', 'q3', { room: 'test_2' });
      await receive(under.store, [message('w', 'waits')]);
      const spoke = await under.store.spokeSince(NOW);
      const who = spoke.map(({ room, personaId }) => `${room} ${personaId}`).sort();
      expect(who).toEqual([`${CHAT} default`, `${CHAT}/5 luna`, 'test_2 default'].sort());
      expect(await under.store.spokeSince(NOW + DAY)).toEqual([]);
    });
  });

  describe('the turn of a note on what was saved', () => {
    it('is found by any part of that reply, and by nothing else', async () => {
      await exchange(under.store, 't1', 'q1', { deliveries: [delivery('turn:t1', 'plain')] });
      const noted = { text: 'noted\n\nsaved', marks: [], note: 7 };
      await exchange(under.store, 't2', 'q2', {
        deliveries: [delivery('turn:t2', 'first part'), delivery('turn:t2', '', { part: 1, body: noted })],
      });
      for (let next = await nextOf(under.store); next; next = await nextOf(under.store)) {
        await under.store.claimDelivery(next.id, lease());
        await under.store.settle(
          next.id,
          { kind: 'sent', platformMessageId: `${next.origin}-${next.part}` },
          NOW,
        );
      }
      expect(await under.store.notedTurn(CHAT, 'turn:t2-0')).toBe('t2');
      expect(await under.store.notedTurn(CHAT, 'turn:t2-1')).toBe('t2');
      expect(await under.store.notedTurn(CHAT, 'turn:t1-0')).toBeNull();
      expect(await under.store.notedTurn('test_2', 'turn:t2-1')).toBeNull();
      expect(await under.store.notedTurn(CHAT, 'unknown')).toBeNull();
    });
  });

  describe('a trace', () => {
    it('tells where each message went', async () => {
      for (const n of [1, 2, 3, 4]) await exchange(under.store, `t${n}`, `q${n}`);
      await overhear(under.store, ['aside']);
      await receive(under.store, [message('w', 'waits')]);
      const { flush, move, archive, place } = oneView(under.store);
      await flush(await place('q1'));
      await move(await place('q1'));
      const archived = await place('q2');
      await archive(BEGINNING, await place('q4'), 'half.md');
      await archive(await place('q1'), archived, 'kept.md');
      await move(archived, { archive: 'kept.md' });
      const luna = oneView(under.store, CHAT, 'luna');
      await luna.archive(BEGINNING, archived, 'by luna.md');
      await luna.move(archived, { archive: 'by luna.md' });
      expect(await fateOf('q1')).toEqual([{ kind: 'flushed' }]);
      expect(await fateOf('reply of t1')).toEqual([{ kind: 'archived', file: 'kept.md' }]);
      expect(await fateOf('q2')).toEqual([{ kind: 'archived', file: 'kept.md' }]);
      expect(await fateOf('reply of t2')).toEqual([{ kind: 'window', flushed: false }]);
      expect(await fateOf('aside')).toEqual([{ kind: 'overheard' }]);
      expect(await fateOf('waits')).toEqual([{ kind: 'waiting' }]);
      await flush(await place('q3'));
      expect(await fateOf('q2'), 'the flush that was owed').toEqual([{ kind: 'flushed' }]);
      expect(await fateOf('q3')).toEqual([{ kind: 'window', flushed: true }]);
      expect(await fateOf('q4')).toEqual([{ kind: 'window', flushed: false }]);
      await forget(under.store);
      for (const text of ['q1', 'q2', 'q4', 'aside', 'waits']) {
        expect(await fateOf(text)).toEqual([{ kind: 'reset' }]);
      }
    });

    it('tells of a message that was answered without being shown to anybody', async () => {
      await receive(under.store, [message('1', 'quick')]);
      await under.store.quieten();
      expect(await fateOf('quick')).toEqual([{ kind: 'reset' }]);
    });

    it('tells of a message in a turn that runs', async () => {
      await receive(under.store, [message('1', 'now')]);
      await begun(under.store, 't1');
      expect(await fateOf('now')).toEqual([{ kind: 'window', flushed: false }]);
    });

    it('tells of one that waits again after a reset', async () => {
      await exchange(under.store, 't1', 'first');
      await receive(under.store, [message('1', 'again'), message('2', 'and again')]);
      const turn = await begun(under.store, 't2', { hearers: ['luna'] });
      await forget(under.store, { upTo: (turn.waiting[0]?.id ?? 0) - 1 });
      for (const persona of ['default', 'luna']) {
        expect(await fateOf('and again', persona)).toEqual([{ kind: 'waiting' }]);
      }
    });

    it('is by words of one persona, newest first, at most so many', async () => {
      for (const n of [1, 2, 3]) await exchange(under.store, `t${n}`, `The  Fox ${n}`);
      await exchange(under.store, 't4', 'the fox', { room: 'test_2' });
      await exchange(under.store, 't5', 'the fox', { room: `${CHAT}/5` });
      const found = await byWords('the fox', 'default', 3);
      expect(found.map((each) => each.message.text)).toEqual(['the fox', 'The  Fox 3', 'The  Fox 2']);
      expect(found.map((each) => each.message.room)).toEqual([`${CHAT}/5`, CHAT, CHAT]);
      expect(found.every(({ personaId }) => personaId === 'default')).toBe(true);
      expect(await byWords('the fox', 'default', 9, 'test_3')).toEqual([]);
    });

    it('by the platform’s id tells of everybody who heard it', async () => {
      await receive(under.store, [
        message('1', 'luna, do you hear?'),
        message('1', 'no', { chat: chatAt('test_2') }),
      ]);
      const turn = await begun(under.store, 't1', { personaId: 'luna', hearers: ['default'] });
      await finish(under.store, turn, 't1', { hearers: ['default'] });
      const traces = await byId('1');
      expect(traces.map(({ message: { text } }) => text)).toEqual(Array(2).fill('luna, do you hear?'));
      const fates = new Map(traces.map(({ personaId, fate }) => [personaId, fate]));
      expect(fates).toEqual(
        new Map<string, unknown>([
          ['luna', { kind: 'window', flushed: false }],
          ['default', { kind: 'overheard' }],
        ]),
      );
      expect(await byId('unknown')).toEqual([]);
    });

    it('by the platform’s id finds the new text of a message, too, and what a persona said', async () => {
      await receive(under.store, [message('1', 'old words')]);
      const turn = await begun(under.store, 't1');
      const edited = {
        kind: 'edit' as const,
        chatId: CHAT,
        senderId: ANN.id,
        platformMessageId: '1',
        mentionsBot: false,
      };
      await receive(under.store, [{ ...edited, text: 'new words', editedAt: NOW }]);
      await finish(under.store, turn, 't1', { deliveries: [delivery('turn:t1', 'part', { part: 0 })] });
      const sent = await nextOf(under.store);
      await under.store.settle(sent?.id ?? 0, { kind: 'sent', platformMessageId: 'p1' }, NOW);
      const texts = async (id: string) => (await byId(id)).map(({ message: { text } }) => text);
      expect(await texts('1')).toEqual(['new words', 'old words']);
      expect(await texts('p1')).toEqual(['reply of t1']);
      const notice = { chatId: CHAT, channel: 'test', address: '1', threadId: null, kind: 'group' } as const;
      await under.store.post({ ...notice, delivery: delivery('notice:1', 'x'), now: NOW });
      await under.store.settle(
        (await nextOf(under.store))?.id ?? 0,
        { kind: 'sent', platformMessageId: 'p2' },
        NOW,
      );
      expect(await texts('p2'), 'no part of any conversation').toEqual([]);
    });

    it('looks beyond the newest thousands', async () => {
      await exchange(under.store, 't0', 'the oldest');
      for (let n = 0; n < 6_000; n += 1_000) {
        const chat = chatAt('test_2');
        const many = Array.from({ length: 1_000 }, (_, i) => message(`${n + i}`, 'noise', { chat }));
        await receive(under.store, many);
      }
      expect((await byWords('the oldest'))[0]?.message.text).toBe('the oldest');
    });
  });

  describe('whereabouts', () => {
    it('count what was said to personas, over all rooms or one, all personas or one', async () => {
      await exchange(under.store, 't1', 'q1');
      await exchange(under.store, 't2', 'q2');
      await exchange(under.store, 't3', 'in a thread', { room: `${CHAT}/5` });
      await exchange(under.store, 't4', 'for luna', { personaId: 'luna' });
      await exchange(under.store, 't5', 'elsewhere', { room: 'test_2' });
      await overhear(under.store, ['aside'], { hearers: ['default', 'luna'] });
      const { flush, move, archive, place } = oneView(under.store);
      await flush(await place('q1'));
      await archive(BEGINNING, await place('q2'));
      await move(await place('q2'), { archive: '2026-01-15T12-00-00-default.md' });
      const { whereabouts } = under.store;
      expect(await whereabouts(CHAT, 'default')).toEqual({ window: 1, flushed: 1, archived: 2 });
      expect(await whereabouts(CHAT, null)).toEqual({ window: 3, flushed: 1, archived: 2 });
      expect(await whereabouts(null, 'luna')).toEqual({ window: 2, flushed: 0, archived: 0 });
      expect(await whereabouts(null, null)).toEqual({ window: 7, flushed: 1, archived: 2 });
      await forget(under.store);
      expect(await whereabouts(CHAT, null)).toEqual({ window: 2, flushed: 0, archived: 0 });
    });

    it('know of none in an empty store, and not of what only waits', async () => {
      expect(await under.store.whereabouts(null, null)).toEqual({ window: 0, flushed: 0, archived: 0 });
      await receive(under.store, [message('1', 'hi')]);
      await under.store.hold((await claimed(under.store)).claim, null);
      expect(await under.store.whereabouts(null, null)).toEqual({ window: 0, flushed: 0, archived: 0 });
    });
  });
}
