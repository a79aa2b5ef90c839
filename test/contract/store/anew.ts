/** The store's contract: an answer said anew, its versions, and an exchange that is taken back. */
import { describe, expect, it } from 'vitest';
import type { Anew, NewestAnswer } from '../../../src/core/anew.js';
import type { CommandEffect, Store } from '../../../src/core/store.js';
import { BEGINNING, type Step } from '../../../src/core/transcript.js';
import type { StoreUnderTest } from '../store.js';
import {
  begun,
  CHAT,
  chatAt,
  claimed,
  command,
  delivery,
  END,
  exchange,
  finish,
  lease,
  looked,
  message,
  NOW,
  nextOf,
  overhear,
  receive,
  recovered,
  windowTexts,
} from './words.js';

const ROUNDS = 20;
const BY = { id: 'test_ann', name: 'Ann', administrator: false };

export function anewContract(under: StoreUnderTest): void {
  let lastOrder = 0;

  async function newest(store = under.store, room = CHAT): Promise<NewestAnswer> {
    const answer = await store.newestAnswer(room);
    expect(answer, `an answer in ${room}`).not.toBeNull();
    return answer as NewestAnswer;
  }
  const anewOf = ({ messageId, turnId, shown }: NewestAnswer, more: Partial<Anew> = {}): Anew => ({
    ...{ how: 'again', messageId, turnId, version: null, text: '', by: BY, held: shown.memory, memory: [] },
    ...more,
  });
  /** A command that is about to end with this effect. */
  async function ordering(store: Store, effect: CommandEffect & { room: string }) {
    const order = command(`order-${++lastOrder}`, 'again', '', { chat: chatAt(effect.room) });
    const { commands } = await receive(store, [order]);
    const id = commands[0]?.id ?? 0;
    await store.takeCommand(id, lease());
    const origin = `command:${id}`;
    const refused = [delivery(origin, 'not now', { personaId: null })];
    return () => store.finishCommand({ id, now: NOW, deliveries: [], effects: [effect], refused });
  }
  async function again(turnId: string, more: Partial<Anew> = {}, steps: Step[] = [], room = CHAT) {
    const anew = anewOf(await newest(under.store, room), more);
    return (await ordering(under.store, { kind: 'anew', room, turnId, anew, steps }))();
  }
  /** Sends all that waits. */
  async function deliver(): Promise<string[]> {
    const sent: string[] = [];
    for (let next = await nextOf(under.store); next; next = await nextOf(under.store)) {
      await under.store.claimDelivery(next.id, lease());
      const platformMessageId = next.shown?.platformMessageId ?? `p${next.id}`;
      const isRemoved = next.body.text === '';
      const outcome = isRemoved ? { kind: 'dropped' as const, reason: 'gone' } : { kind: 'sent' as const };
      await under.store.settle(next.id, { ...outcome, platformMessageId } as never, NOW);
      sent.push(`${platformMessageId} ${next.body.text}`.trim());
    }
    return sent;
  }
  /** A version of the newest answer. */
  async function version(turnId: string, text: string, more: Partial<Anew> = {}): Promise<string[]> {
    expect(await again(turnId, more)).toEqual({ abortedTurn: null });
    const deliveries = [delivery(`turn:${turnId}`, text)];
    expect(await finish(under.store, await claimed(under.store), turnId, { reply: text, deliveries })).toBe(
      'finished',
    );
    return deliver();
  }
  const heardTexts = async (personaId = 'default') => {
    const ask = { room: CHAT, personaId, addressed: true, after: BEGINNING, most: 100 };
    return (await under.store.heardSince(ask)).map(({ text }) => text);
  };

  describe('an answer that is said anew', () => {
    it('is one row on the page, in whose own chats it has its versions and no commands', async () => {
      for (const room of ['board_main', 'test_5']) {
        const own = room.startsWith('board_');
        const all = async () => (await under.store.log({ room, from: 'newest', most: 9 })).rows;
        const rows = async () =>
          (await all())
            .filter(({ text }) => text !== '/again')
            .map(({ text, state, versions }) => [text, state, ...(versions === null ? [] : [versions])]);
        const first = `${room}-t1`;
        await exchange(under.store, first, 'hi', { room });
        const before = [`reply of ${first}`, null, ...(own ? [{ shown: 1, all: [1] }] : [])];
        expect(await rows()).toEqual([['hi', null], before]);

        // It stands in the place of the other from its beginning.
        const turnId = `${room}-t2`;
        await again(turnId, {}, [], room);
        expect(await rows()).toEqual([
          ['hi', null],
          ['', 'writing'],
        ]);
        await finish(under.store, await claimed(under.store, room), turnId, { reply: 'two' });
        const after = ['two', null, ...(own ? [{ shown: 2, all: [1, 2] }] : [])];
        expect(await rows()).toEqual([['hi', null], after]);
        expect((await all()).some(({ text }) => text === '/again')).toBe(!own);

        // What is continued stays until more is there.
        await again(`${room}-t3`, { how: 'more' }, [], room);
        expect((await rows()).at(-1)).toEqual(['two', 'writing']);
        await finish(under.store, await claimed(under.store, room), `${room}-t3`, { reply: null });
        expect((await rows()).at(-1)).toEqual(after);
      }
    });

    it('begins as a turn over the same messages, with the steps that it is given and what is shown', async () => {
      const step: Step = { kind: 'answer', text: '', calls: [{ id: 'c1', name: 'ring', arguments: '{}' }] };
      const result: Step = { kind: 'result', callId: 'c1', content: 'rung', failed: false };
      await exchange(under.store, 't1', 'hi', { deliveries: [delivery('turn:t1', 'one')] });
      const [first = ''] = await deliver();
      await again('t2', { text: 'shorter' }, [step, result]);
      const { turn, batch } = await claimed(under.store);
      expect(turn).toMatchObject({ id: 't2', personaId: 'default', steps: [step, result], crashes: 0 });
      expect(turn?.anew).toMatchObject({ turnId: 't1', text: 'shorter' });
      expect(turn?.shown.map((part) => `${part.platformMessageId} ${part.body.text}`)).toEqual([first]);
      expect(batch.map(({ text }) => text)).toEqual(['hi']);
    });

    it('is one for window, recall and spans; its delivery edits the first one', async () => {
      await exchange(under.store, 't1', 'hi', { deliveries: [delivery('turn:t1', 'one')] });
      const [first = ''] = await deliver();
      const before = await newest();
      expect(await version('t2', 'two')).toEqual([first.replace('one', 'two')]);
      expect(await windowTexts(under.store)).toEqual(['hi', 'two']);
      expect(await heardTexts()).toEqual(['hi', 'two']);
      const scope = { chatId: CHAT, personaId: 'default' };
      const after = await newest();
      const visible = await under.store.visible(scope, [before.messageId, after.messageId]);
      expect(visible.map(({ text }) => text)).toEqual(['two']);
      const span = { room: CHAT, personaId: 'default', after: BEGINNING, upTo: END };
      const { messages } = await under.store.span({ ...span, limit: 9, overheard: 9 });
      expect(messages.map(({ text }) => text)).toEqual(['hi', 'two']);
      const { said } = await under.store.saidIn({
        chatId: CHAT,
        after: 0,
        since: null,
        until: null,
        by: '',
      } as never);
      expect(said).toHaveLength(2);
      expect(
        after.batch.map(({ turnId }) => turnId),
        'answered by the new one',
      ).toEqual(['t2']);
    });

    it('keeps its versions in order, of which one is shown, until somebody says something new', async () => {
      await exchange(under.store, 't1', 'hi');
      await version('t2', 'two');
      await version('t3', 'three', { how: 'edit' });
      const numbers = async () => (await newest()).versions.map(({ number, text }) => `${number} ${text}`);
      expect(await numbers()).toEqual(['1 reply of t1', '2 two', '3 three']);
      await version('t4', 'two', { how: 'version', version: 2, memory: ['t2'] });
      expect((await newest()).shown).toMatchObject({ number: 2, text: 'two', memory: ['t4', 't2'] });
      expect(await numbers()).toEqual(['1 reply of t1', '2 two', '3 three']);
      await receive(under.store, [
        message('r', '(reacts with 👍)', { reaction: true } as never),
        message('new', 'something new'),
      ]);
      expect(await finish(under.store, await begun(under.store, 't5'), 't5')).toBe('finished');
      expect(await windowTexts(under.store)).toContain('two');
      expect(await numbers()).toEqual(['1 reply of t5']);
    });

    it('keeps twenty beside the shown one', async () => {
      await exchange(under.store, 't1', 'hi');
      for (let n = 2; n <= 24; n++) await version(`t${n}`, `text ${n}`);
      const { versions } = await newest();
      expect(versions.map(({ number }) => number)).toEqual(Array.from({ length: 21 }, (_, n) => n + 4));
    });

    it('goes on in the same version if it is continued', async () => {
      await exchange(under.store, 't1', 'hi');
      await version('t2', 'reply of t1, and more', { how: 'more', memory: ['t1'] });
      expect((await newest()).versions).toMatchObject([{ number: 1, text: 'reply of t1, and more' }]);
      await version('t3', 'three');
      await version('t4', 'three, and more', { how: 'more' });
      expect((await newest()).versions.map(({ text }) => text)).toEqual([
        'reply of t1, and more',
        'three, and more',
      ]);
    });

    it('stays as it was if the turn fails or is stopped, and what was shown of another goes back', async () => {
      await exchange(under.store, 't1', 'hi', { deliveries: [delivery('turn:t1', 'one')] });
      const [first = ''] = await deliver();
      const [id = ''] = first.split(' ');
      const part = { speaker: 'Default', key: 'k', platformMessageId: id, sentAt: NOW };
      const showHalf = (turnId: string) =>
        under.store.show(turnId, [{ ...part, body: { text: 'half of it', marks: [] } }]);
      await again('t2');
      await showHalf('t2');
      const failed = { outcome: 'failed' as const, reply: null };
      const deliveries = [delivery('notice:t2', 'no model')];
      await finish(under.store, await claimed(under.store), 't2', { ...failed, deliveries });
      expect(await deliver()).toEqual([`${id} one`, expect.stringContaining('no model')]);
      await again('t3');
      await showHalf('t3');
      await (await ordering(under.store, { kind: 'stop', room: CHAT, turnId: 't3' }))();
      expect(await deliver()).toEqual([`${id} one`]);
      expect(await windowTexts(under.store)).toEqual(['hi', 'reply of t1']);
      expect((await newest()).versions).toHaveLength(1);
      expect((await newest()).busy).toBeNull();
    });

    it('is gone on with after a crash, as the turn that it is', async () => {
      await exchange(under.store, 't1', 'hi');
      await again('t2');
      await claimed(under.store);
      expect((await recovered(under.store)).rooms).toEqual([CHAT]);
      const { turn } = await claimed(under.store);
      expect(turn).toMatchObject({ id: 't2', anew: { turnId: 't1' } });
    });

    it('is refused while somebody is answered, messages wait, or the answer is another one', async () => {
      await exchange(under.store, 't1', 'hi');
      const anew = anewOf(await newest());
      const effect = (turnId: string) => ({ kind: 'anew' as const, room: CHAT, turnId, anew, steps: [] });
      await receive(under.store, [message('2', 'more')]);
      expect((await newest()).busy).toBe('waiting');
      expect(await (await ordering(under.store, effect('a')))()).toMatchObject({ isRefused: true });
      const turn = await begun(under.store, 't2');
      expect((await newest()).busy).toBe('answering');
      expect(await (await ordering(under.store, effect('b')))()).toMatchObject({ isRefused: true });
      await finish(under.store, turn, 't2');
      expect(await (await ordering(under.store, effect('c')))()).toMatchObject({ isRefused: true });
      expect(await deliver()).toHaveLength(3);
      expect(await under.store.readRoom(CHAT, 'me', NOW)).toBeNull();
    });

    it('is busy while parts of it are not sent', async () => {
      await exchange(under.store, 't1', 'hi', { deliveries: [delivery('turn:t1', 'one')] });
      expect((await newest()).busy).toBe('sending');
    });

    it('is forgotten by a reset, also while it is said anew', async () => {
      await exchange(under.store, 't1', 'hi');
      await again('t2');
      const upTo = Number.MAX_SAFE_INTEGER;
      await (await ordering(under.store, { kind: 'reset', room: CHAT, personaId: 'default', upTo }))();
      expect(await under.store.newestAnswer(CHAT)).toBeNull();
      expect(await under.store.readRoom(CHAT, 'me', NOW)).toBeNull();
    });
  });

  describe('an exchange that is taken back', () => {
    const undo = async () => {
      const { messageId } = await newest();
      return (await ordering(under.store, { kind: 'unsay', room: CHAT, messageId }))();
    };

    it('leaves history, and what is shown of it is removed; what others said stays', async () => {
      await exchange(under.store, 't1', 'first');
      await overhear(under.store, ['aside']);
      await exchange(under.store, 't2', 'second', { deliveries: [delivery('turn:t2', 'two')] });
      const [shown = ''] = await deliver();
      expect(await undo()).toEqual({ abortedTurn: null });
      expect(await deliver()).toEqual([shown.split(' ')[0]]);
      expect(await windowTexts(under.store)).toEqual(['first', 'reply of t1', 'aside']);
      expect(await heardTexts()).toEqual(['first', 'reply of t1']);
      await undo();
      expect(await windowTexts(under.store)).toEqual(['aside']);
      expect(await under.store.newestAnswer(CHAT)).toBeNull();
    });

    it('goes with all its versions', async () => {
      await exchange(under.store, 't1', 'hi');
      await version('t2', 'two');
      await undo();
      expect(await under.store.newestAnswer(CHAT)).toBeNull();
      expect(await windowTexts(under.store)).toEqual([]);
    });
  });

  describe('of several processes at the same moment', () => {
    it('one says an answer anew', async () => {
      const other = await under.another();
      for (let n = 1; n <= ROUNDS; n++) {
        const room = `test_${n}`;
        await exchange(under.store, `t${n}`, 'hi', { room });
        const anew = anewOf(await newest(under.store, room));
        const ends = [];
        for (const [at, store] of [under.store, other].entries()) {
          ends.push(await ordering(store, { kind: 'anew', room, turnId: `a${at}-${n}`, anew, steps: [] }));
        }
        const outcomes = await Promise.all(ends.map((end) => end()));
        expect(
          outcomes.filter(({ isRefused }) => isRefused),
          `round ${n}`,
        ).toHaveLength(1);
      }
    });

    it('an answer is said anew or new messages are answered, not both', async () => {
      const other = await under.another();
      for (let n = 1; n <= ROUNDS; n++) {
        const room = `test_${n}`;
        await exchange(under.store, `t${n}`, 'hi', { room });
        const anew = anewOf(await newest(under.store, room));
        const end = await ordering(under.store, { kind: 'anew', room, turnId: `a${n}`, anew, steps: [] });
        await Promise.all([end(), receive(other, [message(`new-${n}`, 'new', { chat: chatAt(room) })])]);
        const seen = await looked(other, room);
        const { isRefused } = { isRefused: seen.unfinished === null };
        expect(seen.unfinished?.turnId ?? 'none').toBe(isRefused ? 'none' : `a${n}`);
        expect(isRefused ? seen.waiting : [1], `round ${n}`).toHaveLength(1);
      }
    });
  });
}
