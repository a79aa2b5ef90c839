/** The store's contract: claims, and the turns they carry. */
import { describe, expect, it } from 'vitest';
import type { Receipt } from '../../../src/core/receipt.js';
import type { Step } from '../../../src/core/transcript.js';
import type { StoreUnderTest } from '../store.js';
import {
  BEN,
  begin,
  begun,
  CHAT,
  chatAt,
  claimed,
  delivery,
  edit,
  finish,
  looked,
  MINUTE,
  message,
  NOW,
  nextOf,
  note,
  receive,
  take,
  waitingTexts,
  windowTexts,
} from './words.js';

const CALL: Step = { kind: 'answer', text: '', calls: [{ id: 'c1', name: 'look', arguments: '{}' }] };

export function turnContract(under: StoreUnderTest): void {
  const claim = (owner: string, now = NOW, room = CHAT) => take(under.store, room, owner, now);

  describe('claims', () => {
    it('are not given where nothing waits', async () => {
      expect(await claim('me', NOW, 'test_unknown')).toBeNull();
      await receive(under.store, [message('1', 'hi')]);
      const turn = await begun(under.store, 't1');
      await finish(under.store, turn, 't1');
      expect(await claim('me')).toBeNull();
    });

    it('keep others out until they are given back or expire', async () => {
      await receive(under.store, [message('1', 'hi')]);
      const mine = await claimed(under.store);
      expect(await claim('other')).toBeNull();
      await under.store.hold(mine.claim, null);
      const theirs = await claim('other');
      expect(theirs).not.toBeNull();
      expect(await claim('me', NOW + MINUTE - 1)).toBeNull();
      expect(await claim('me', NOW + MINUTE)).not.toBeNull();
      expect(theirs && (await under.store.hold(theirs.claim, NOW + MINUTE))).toBe(false);
    });

    it('may be taken again by their owner, and the older one is lost', async () => {
      await receive(under.store, [message('1', 'hi')]);
      const older = await claimed(under.store);
      const newer = await claimed(under.store);
      expect(await under.store.hold(older.claim, NOW + MINUTE)).toBe(false);
      await under.store.hold(older.claim, null);
      expect(await claim('other'), 'a lost claim gives nothing back').toBeNull();
      expect(await under.store.hold(newer.claim, NOW + MINUTE)).toBe(true);
    });

    it('can be prolonged', async () => {
      await receive(under.store, [message('1', 'hi')]);
      const mine = await claimed(under.store);
      expect(await under.store.hold(mine.claim, NOW + MINUTE + MINUTE)).toBe(true);
      expect(await claim('other', NOW + MINUTE)).toBeNull();
      await under.store.hold(mine.claim, null);
      expect(await under.store.hold(mine.claim, NOW + MINUTE)).toBe(false);
    });

    it('hold one room, not the others', async () => {
      await receive(under.store, [
        message('1', 'hi'),
        message('2', 'hi', { threadId: '5' }),
        message('1', 'hi', { chat: chatAt('test_2') }),
      ]);
      expect(await claim('me')).not.toBeNull();
      expect(await claim('other', NOW, `${CHAT}/5`)).not.toBeNull();
      expect(await claim('other', NOW, 'test_2')).not.toBeNull();
    });

    it('bring at most 500 messages, oldest first', async () => {
      const many = Array.from({ length: 520 }, (_, n) => message(`${n}`, `n${n}`));
      await receive(under.store, many);
      const turn = await begun(under.store, 't1');
      expect(turn.waiting).toHaveLength(500);
      expect(turn.waiting[0]?.text).toBe('n0');
      expect(turn.more).toBe(true);
      await finish(under.store, turn, 't1');
      expect((await waitingTexts(under.store))[0]).toBe('n500');
      expect(await waitingTexts(under.store)).toHaveLength(20);
    });

    it('say whether more waits than they bring', async () => {
      const many = (count: number) => Array.from({ length: count }, (_, n) => message(`${n}`, `n${n}`));
      await receive(under.store, many(500));
      expect(await claimed(under.store)).toMatchObject({ more: false });
      await receive(under.store, many(501));
      const turn = await begun(under.store, 't1');
      expect(turn.waiting).toHaveLength(500);
      expect(turn.more).toBe(true);
      await finish(under.store, turn, 't1');
      expect(await claimed(under.store)).toMatchObject({ waiting: [{ text: 'n500' }], more: false });
    });
  });

  describe('turns', () => {
    it('may end in a reaction, which all who are there hear, and which is told from words', async () => {
      await receive(under.store, [message('1', 'good news')]);
      const turn = await begun(under.store, 't1', { hearers: ['luna'] });
      const hearers = ['default', 'luna'];
      await finish(under.store, turn, 't1', { reply: '(reacts with 👍)', wordless: true, hearers });
      for (const personaId of hearers) {
        const ask = { room: CHAT, personaId, limit: 9, overheard: 9, except: [] };
        const { messages } = await under.store.window(ask);
        expect(messages.at(-1)).toMatchObject({
          ...{ text: '(reacts with 👍)', reaction: true, turnId: 't1' },
          author: { kind: 'persona', id: 'default' },
        });
      }
    });

    it('take their batch; what is noted is done; the rest waits', async () => {
      await receive(under.store, [message('1', 'for you'), message('2', 'aside'), message('3', 'later')]);
      const seen = await looked(under.store);
      const [first = 0, second = 0] = seen.waiting.map(({ id }) => id);
      const hearers = ['default', 'luna'];
      await begin(under.store, seen, 't1', { batch: [first], noted: [second], hearers });
      const taken = await claimed(under.store);
      expect(taken.batch).toMatchObject([{ id: first, text: 'for you', turnId: 't1' }]);
      const end = await finish(under.store, taken, 't1', { reply: 'yes', hearers, now: NOW + 5 });
      expect(end).toBe('finished');
      expect(await waitingTexts(under.store)).toEqual(['later']);
      expect(await windowTexts(under.store)).toEqual(['for you', 'aside', 'yes']);
      expect(await windowTexts(under.store, { limit: 0 }), 'what luna overheard').toEqual(['aside']);
      expect(await windowTexts(under.store, { personaId: 'luna' })).toEqual(['for you', 'aside', 'yes']);
      expect(await windowTexts(under.store, { personaId: 'luna', overheard: 0 })).toEqual([]);
      expect((await under.store.roomNow(CHAT)).lastReply).toEqual({ personaId: 'default', at: NOW + 5 });
    });

    it('begin with what was seen and no other: an edit of what waits, or its deletion, takes the room away', async () => {
      await receive(under.store, [message('1', 'coffee'), message('2', 'please'), message('3', 'oops')]);
      const changes: Receipt[] = [
        edit('1', 'tea', { mentionsBot: true }),
        { kind: 'deleted', chatId: CHAT, platformMessageIds: ['3'] },
      ];
      for (const change of changes) {
        const [seen, preparing] = [await looked(under.store), await claimed(under.store)];
        await receive(under.store, [change]);
        expect(await begin(under.store, seen, 't1')).toBeNull();
        expect(await begin(under.store, preparing, 't1')).toBeNull();
        expect(await under.store.hold(preparing.claim, NOW + MINUTE)).toBe(false);
        expect(await note(under.store, preparing)).toBe(false);
      }
      const now = await looked(under.store, CHAT, 'other');
      const [first = 0, second = 0] = now.waiting.map(({ id }) => id);
      expect(await begin(under.store, now, 't1', { owner: 'other' })).not.toBeNull();
      const { batch } = await claimed(under.store, CHAT, 'other');
      expect(batch).toMatchObject([
        { id: first, text: 'tea', mentionsBot: true, edited: false, turnId: 't1' },
        { id: second, text: 'please', mentionsBot: false, edited: false, turnId: 't1' },
      ]);
      await finish(under.store, await claimed(under.store, CHAT, 'other'), 't1');
      expect(await waitingTexts(under.store), 'the edit asks for nothing more').toEqual([]);
    });

    it('begin though more was said meanwhile, and leave the room to a turn that runs whatever is edited', async () => {
      await receive(under.store, [message('1', 'hi')]);
      const seen = await looked(under.store);
      await receive(under.store, [message('2', 'and this')]);
      const turn = await begin(under.store, seen, 't1');
      await receive(under.store, [edit('2', 'and that')]);
      expect(turn && (await finish(under.store, turn, 't1'))).toBe('finished');
      expect(await waitingTexts(under.store)).toEqual(['and that']);
    });

    it('may be prepared under a claim, which they take over', async () => {
      await receive(under.store, [message('1', 'hi')]);
      const preparing = await claimed(under.store);
      expect(await claim('other')).toBeNull();
      const turn = await begin(under.store, preparing, 't1');
      expect(await under.store.hold(preparing.claim, NOW + MINUTE), 'the fence has moved on').toBe(false);
      expect(turn && (await finish(under.store, turn, 't1'))).toBe('finished');
    });

    it('need not begin: what is noted is done, and the room is given back', async () => {
      await receive(under.store, [message('1', 'aside')]);
      const seen = await looked(under.store);
      const preparing = await claimed(under.store);
      expect(await note(under.store, seen), 'another looked first').toBe(false);
      expect(await note(under.store, preparing)).toBe(true);
      expect(await under.store.hold(preparing.claim, NOW + MINUTE)).toBe(false);
      expect(await waitingTexts(under.store)).toEqual([]);
      expect(await windowTexts(under.store)).toEqual(['aside']);
      expect((await under.store.roomNow(CHAT)).lastReply).toBeNull();
      await receive(under.store, [message('2', 'more')]);
      expect(await claim('other')).not.toBeNull();
    });

    it('store their steps and are taken up where they were left', async () => {
      await receive(under.store, [message('1', 'hi'), message('2', 'there')]);
      const first = await begun(under.store, 't1');
      const steps: Step[] = [
        CALL,
        { kind: 'call', callId: 'c1' },
        { kind: 'result', callId: 'c1', content: 'seen', failed: false },
      ];
      for (const step of steps) expect(await under.store.addStep(first.claim, 't1', step, NOW)).toBe(true);
      await receive(under.store, [message('3', 'more')]);
      await under.store.hold(first.claim, null);

      const second = await claimed(under.store, CHAT, 'other');
      expect(second.turn).toEqual({
        id: 't1',
        personaId: 'default',
        startedAt: NOW,
        attempts: 0,
        crashes: 0,
        steps,
        shown: [],
      });
      expect(second.batch.map((said) => [said.text, said.turnId])).toEqual([
        ['hi', 't1'],
        ['there', 't1'],
      ]);
      expect(second.waiting).toEqual([]);
      expect(await finish(under.store, second, 't1')).toBe('finished');
      expect(await waitingTexts(under.store)).toEqual(['more']);
    });

    it('end in one piece: answered, said, in the outbox, the room free', async () => {
      await receive(under.store, [message('1', 'hi', { threadId: '5' })]);
      const turn = await begun(under.store, 't1', { room: `${CHAT}/5` });
      const deliveries = [
        delivery('turn:t1', 'one', { replyTo: '1' }),
        delivery('turn:t1', 'two', { part: 1 }),
      ];
      await finish(under.store, turn, 't1', { deliveries });
      expect(await nextOf(under.store)).toEqual({
        ...deliveries[0],
        id: expect.any(Number),
        chatId: CHAT,
        channel: 'test',
        address: '1',
        threadId: '5',
        kind: 'group',
        createdAt: NOW,
        attempts: 0,
        uncertainCuts: 0,
        uncertainCrashes: 0,
        notBefore: 0,
      });
      const { messages } = await under.store.window({
        room: `${CHAT}/5`,
        personaId: 'default',
        limit: 9,
        overheard: 9,
        except: [],
      });
      expect(messages.at(-1)).toMatchObject({
        author: { kind: 'persona', id: 'default' },
        text: 'reply of t1',
        platformMessageId: null,
        turnId: 't1',
      });
      await receive(under.store, [message('2', 'again', { threadId: '5' })]);
      expect(await claim('other', NOW, `${CHAT}/5`)).not.toBeNull();
    });

    it('that failed say nothing in the transcript and are over', async () => {
      await receive(under.store, [message('1', 'hi')]);
      const turn = await begun(under.store, 't1');
      const sorry = delivery('turn:t1', 'sorry');
      await finish(under.store, turn, 't1', { outcome: 'failed', reply: null, deliveries: [sorry] });
      expect(await windowTexts(under.store)).toEqual(['hi']);
      expect(await waitingTexts(under.store)).toEqual([]);
      expect((await nextOf(under.store))?.body.text).toBe('sorry');
    });

    it('count faults of our own and give the room back', async () => {
      await receive(under.store, [message('1', 'hi')]);
      const turn = await begun(under.store, 't1');
      expect(await under.store.fail(turn.claim, 't1')).toBe(1);
      const again = await claimed(under.store, CHAT, 'other');
      expect(again.turn).toMatchObject({ id: 't1', attempts: 1, crashes: 0 });
      expect(await under.store.fail(again.claim, 't1')).toBe(2);
      expect(await under.store.fail(turn.claim, 't1'), 'of a lost claim nothing counts').toBe(2);
    });

    it('are known while they run, with who asked', async () => {
      await receive(under.store, [
        message('1', 'a'),
        message('2', 'b', { sender: BEN }),
        message('3', 'c', { sender: BEN }),
      ]);
      expect((await under.store.roomNow(CHAT)).running).toBeNull();
      const turn = await begun(under.store, 't1');
      const running = (await under.store.roomNow(CHAT)).running;
      expect(running?.turnId).toBe('t1');
      expect(running?.askers.sort()).toEqual(['test_ann', 'test_ben']);
      expect((await under.store.roomNow(`${CHAT}/5`)).running, 'elsewhere none runs').toBeNull();
      await finish(under.store, turn, 't1');
      expect((await under.store.roomNow(CHAT)).running).toBeNull();
    });

    it('change nothing when what they begin with does not wait', async () => {
      await receive(under.store, [message('1', 'hi')]);
      const seen = await looked(under.store);
      const ids = seen.waiting.map(({ id }) => id);
      for (const batch of [[...ids, 999_999], []]) {
        await expect(begin(under.store, seen, 't1', { batch })).rejects.toMatchObject({ code: 'internal' });
      }
      expect(await waitingTexts(under.store)).toEqual(['hi']);
      expect(await windowTexts(under.store)).toEqual([]);
    });
  });

  describe('a lost claim', () => {
    it('changes nothing, whatever it tries', async () => {
      await receive(under.store, [message('1', 'hi')]);
      const lost = await begun(under.store, 't1');
      const holder = await claimed(under.store, CHAT, 'other', NOW + MINUTE);
      expect(await under.store.hold(lost.claim, NOW + MINUTE)).toBe(false);
      expect(await under.store.addStep(lost.claim, 't1', CALL, NOW)).toBe(false);
      expect(await finish(under.store, lost, 't1', { deliveries: [delivery('turn:t1', 'x')] })).toBe('lost');
      expect(await under.store.fail(lost.claim, 't1')).toBe(0);
      await receive(under.store, [message('2', 'more')]);
      expect(await note(under.store, lost)).toBe(false);
      expect(await begin(under.store, lost, 't2')).toBeNull();
      await under.store.hold(lost.claim, null);
      expect(await nextOf(under.store)).toBeNull();
      expect(await under.store.addStep(holder.claim, 't1', CALL, NOW)).toBe(true);
      expect(await under.store.addStep(holder.claim, 'another turn', CALL, NOW)).toBe(false);
      expect(await finish(under.store, holder, 't1')).toBe('finished');
      expect(await finish(under.store, holder, 't1'), 'a turn ends once').toBe('lost');
      expect(await waitingTexts(under.store)).toEqual(['more']);
    });
  });
}
