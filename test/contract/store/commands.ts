/** The store's contract: the control lane and what its commands do. */
import { describe, expect, it } from 'vitest';
import type { CommandEffect } from '../../../src/core/store.js';
import type { StoreUnderTest } from '../store.js';
import {
  begin,
  begun,
  CHAT,
  chatAt,
  claimed,
  command,
  delivery,
  exchange,
  finish,
  lease,
  looked,
  message,
  NOW,
  nextOf,
  receive,
  waitingTexts,
  windowTexts,
} from './words.js';

export function commandContract(under: StoreUnderTest): void {
  let given = 0;
  /** Receives a command and takes it. */
  async function taken(room = CHAT) {
    const [chatId = CHAT, threadId = null] = room.split('/');
    const said = command(`c${given++}`, 'do', '', { chat: chatAt(chatId), threadId });
    const [pending] = (await receive(under.store, [said])).commands;
    const stored = await under.store.takeCommand(pending?.id ?? 0, lease());
    if (!stored) throw new Error('the command is not there');
    return stored;
  }
  const end = (id: number, effects: CommandEffect[]) =>
    under.store.finishCommand({ id, now: NOW, deliveries: [], effects });

  const hush = (id: number, upTo: number) => end(id, [{ kind: 'suppress', room: CHAT, upTo }]);
  const stop = (id: number, turnId: string) => end(id, [{ kind: 'stop', room: CHAT, turnId }]);

  async function reset(room = CHAT, personaId = 'default') {
    const stored = await taken(room);
    return end(stored.id, [{ kind: 'reset', room, personaId, upTo: stored.afterMessage }]);
  }

  describe('commands', () => {
    it('are taken until they are done, and say how often they were', async () => {
      const first = await taken();
      expect(first.tries).toBe(1);
      expect((await under.store.takeCommand(first.id, lease()))?.tries).toBe(2);
      expect((await under.store.takeCommand(first.id, lease()))?.tries).toBe(3);
      await end(first.id, []);
      expect(await under.store.takeCommand(first.id, lease())).toBeNull();
      expect(await under.store.takeCommand(999, lease())).toBeNull();
    });

    it('set whether replies in a chat are spoken, for all its threads, and no other chat’s', async () => {
      await receive(under.store, [message('1', 'hi', { chat: chatAt('test_2') })]);
      const voice = async (chatId = CHAT) => (await under.store.chat(chatId))?.voice;
      const first = await taken(`${CHAT}/9`);
      expect(await voice()).toBeUndefined();
      await end(first.id, [{ kind: 'voice', chatId: CHAT, voice: 'on' }]);
      expect(await voice()).toBe('on');
      await end((await taken()).id, [{ kind: 'voice', chatId: CHAT, voice: 'off' }]);
      expect(await voice()).toBe('off');
      await receive(under.store, [message('2', 'hi')]);
      expect((await looked(under.store)).chat.voice).toBe('off');
      expect(await (await under.another()).chat(CHAT)).toMatchObject({ voice: 'off' });
      expect(await voice('test_2')).toBeUndefined();
    });

    it('may say something in a persona’s name, in a room where nobody has written yet', async () => {
      const stored = await taken(`${CHAT}/9`);
      const greet = { room: `${CHAT}/9`, personaId: 'luna', text: 'Hey.', hearers: ['luna'] };
      await end(stored.id, [{ kind: 'greet', ...greet }]);
      const room = `${CHAT}/9`;
      expect(await windowTexts(under.store, { room, personaId: 'luna' })).toEqual(['Hey.']);
      expect(await windowTexts(under.store, { room })).toEqual([]);
      // What comes after it knows that it was said before.
      expect((await taken(room)).afterMessage).toBeGreaterThan(0);
    });

    it('answer and act in one piece, once', async () => {
      const stored = await taken(`${CHAT}/5`);
      const finishing = {
        id: stored.id,
        now: NOW,
        deliveries: [delivery(`command:${stored.id}`, 'switched', { personaId: null })],
        effects: [{ kind: 'activate', chatId: CHAT, personaId: 'luna' } as const],
      };
      expect(await under.store.finishCommand(finishing)).toEqual({ abortedTurn: null });
      expect((await under.store.chat(CHAT))?.activePersona).toBe('luna');
      const sent = await nextOf(under.store);
      expect(sent).toMatchObject({
        body: { text: 'switched' },
        personaId: null,
        threadId: '5',
        address: '1',
      });
      await under.store.settle(sent?.id ?? 0, { kind: 'sent', platformMessageId: '1' }, NOW);
      expect(await under.store.finishCommand(finishing)).toEqual({ abortedTurn: null });
      expect(await nextOf(under.store)).toBeNull();
      await receive(under.store, [message('1', 'hi')]);
      expect((await claimed(under.store)).chat.activePersona).toBe('luna');
    });
  });

  describe('an entry that is to be there once', () => {
    it('is added with the first answer that has it, and is no fault of the next', async () => {
      const face = { ...delivery(`face:${CHAT}`, 'a face', { personaId: 'luna' }), once: true as const };
      for (const text of ['one', 'two']) {
        const { id } = await taken();
        const said = delivery(`command:${id}`, text, { personaId: null });
        await under.store.finishCommand({ id, now: NOW, deliveries: [face, said], effects: [] });
      }
      const texts: string[] = [];
      for (let sent = await nextOf(under.store); sent; sent = await nextOf(under.store)) {
        texts.push(sent.body.text);
        await under.store.settle(sent.id, { kind: 'sent', platformMessageId: `${sent.id}` }, NOW);
      }
      expect(texts).toEqual(['a face', 'one', 'two']);
    });

    it('is not taken for the greeting behind it, which is said anew without it', async () => {
      const { id } = await taken();
      const greeting = { room: CHAT, personaId: 'luna', text: 'Hey.', hearers: ['luna'] };
      const face = { ...delivery(`face:${CHAT}`, 'a face', { personaId: 'luna' }), once: true as const };
      const deliveries = [face, delivery(`command:${id}`, 'Hey.', { personaId: 'luna' })];
      const effects: CommandEffect[] = [{ kind: 'greet', ...greeting }];
      await under.store.finishCommand({ id, now: NOW, deliveries, effects });
      for (const platformMessageId of ['1', '2']) {
        const sent = await nextOf(under.store);
        await under.store.settle(sent?.id ?? 0, { kind: 'sent', platformMessageId }, NOW);
      }
      const newest = await under.store.newestAnswer(CHAT);
      expect(newest).toMatchObject({ personaId: 'luna', batch: [], busy: null });
    });
  });

  describe('suppress', () => {
    it('lets what waits be heard and not answered, and takes the room from whoever is about to answer', async () => {
      expect((await under.store.roomNow(CHAT)).waits).toBeNull();
      await receive(under.store, [message('1', 'never mind')]);
      const claim = await claimed(under.store);
      const stored = await taken();
      await receive(under.store, [message('2', 'but this')]);
      expect((await under.store.roomNow(CHAT)).waits).toBe(stored.afterMessage);
      expect((await under.store.roomNow(`${CHAT}/5`)).waits).toBeNull();
      expect(await hush(stored.id, stored.afterMessage)).toEqual({ abortedTurn: null });
      expect((await under.store.roomNow(CHAT)).waits).toBe(stored.afterMessage + 1);
      expect(await under.store.hold(claim.claim, NOW + 1)).toBe(false);
      const { waiting } = await claimed(under.store);
      expect(waiting.map(({ text, quiet }) => [text, quiet])).toEqual([
        ['never mind', true],
        ['but this', undefined],
      ]);
    });

    it('aborts a turn over it that has begun meanwhile; what came later waits', async () => {
      await receive(under.store, [message('1', 'never mind')]);
      const stored = await taken();
      await receive(under.store, [message('2', 'but this')]);
      const turn = await begun(under.store, 't1');
      expect(await hush(stored.id, stored.afterMessage)).toEqual({ abortedTurn: 't1' });
      expect(await finish(under.store, turn, 't1')).toBe('lost');
      expect(await waitingTexts(under.store)).toEqual(['but this']);
    });

    it('leaves a turn over what came later alone', async () => {
      const stored = await taken();
      await receive(under.store, [message('2', 'but this')]);
      const turn = await begun(under.store, 't1');
      expect(await hush(stored.id, stored.afterMessage)).toEqual({ abortedTurn: null });
      expect(await finish(under.store, turn, 't1')).toBe('finished');
    });
  });

  describe('stop', () => {
    it('aborts the running turn: its messages are answered, its claim is lost, the room is free', async () => {
      await receive(under.store, [message('1', 'long task')]);
      const turn = await begun(under.store, 't1');
      await receive(under.store, [message('2', 'meanwhile')]);
      const stored = await taken();
      expect(await stop(stored.id, 't1')).toEqual({ abortedTurn: 't1' });
      expect(await finish(under.store, turn, 't1')).toBe('lost');
      expect(await waitingTexts(under.store)).toEqual(['meanwhile']);
      expect(await windowTexts(under.store), 'it is not forgotten').toEqual(['long task']);
    });

    it('does nothing where no turn runs', async () => {
      await receive(under.store, [message('1', 'hi')]);
      const claim = await claimed(under.store);
      const stored = await taken();
      expect(await stop(stored.id, 't1')).toEqual({ abortedTurn: null });
      expect(await under.store.hold(claim.claim, NOW + 1)).toBe(true);
    });

    it('does nothing to another turn than the one it means', async () => {
      await exchange(under.store, 't1', 'hi');
      const stored = await taken();
      await receive(under.store, [message('2', 'and then?'), message('3', 'hey', { threadId: '5' })]);
      const turn = await begun(under.store, 't2');
      const elsewhere = await begun(under.store, 't3', { room: `${CHAT}/5` });
      expect(await stop(stored.id, 't1'), 'that one is over').toEqual({ abortedTurn: null });
      expect(await stop((await taken()).id, 't3'), 'that one runs elsewhere').toEqual({ abortedTurn: null });
      expect(await finish(under.store, turn, 't2')).toBe('finished');
      expect(await finish(under.store, elsewhere, 't3')).toBe('finished');
      expect(await windowTexts(under.store)).toEqual(['hi', 'reply of t1', 'and then?', 'reply of t2']);
    });
  });

  describe('reset', () => {
    it('forgets for good what was said, to this persona in this room', async () => {
      await exchange(under.store, 't1', 'old');
      await exchange(under.store, 't2', 'in the thread', { room: `${CHAT}/5` });
      await exchange(under.store, 't3', 'for luna', { personaId: 'luna' });
      expect(await reset()).toEqual({ abortedTurn: null });
      expect(await windowTexts(under.store)).toEqual([]);
      await exchange(under.store, 't4', 'new');
      expect(await windowTexts(under.store)).toEqual(['new', 'reply of t4']);
      expect(await windowTexts(under.store, { personaId: 'luna' })).toEqual(['for luna', 'reply of t3']);
      expect(await windowTexts(under.store, { room: `${CHAT}/5` })).toHaveLength(2);
    });

    it('never moves back', async () => {
      await exchange(under.store, 't1', 'old');
      await reset();
      const stored = await taken();
      await end(stored.id, [{ kind: 'reset', room: CHAT, personaId: 'default', upTo: 0 }]);
      expect(await windowTexts(under.store)).toEqual([]);
    });

    it('lets what waits count as answered, up to the command, in its room', async () => {
      await receive(under.store, [message('1', 'before'), message('2', 'in the thread', { threadId: '5' })]);
      const stored = await taken();
      await receive(under.store, [message('3', 'after')]);
      const upTo = stored.afterMessage;
      await end(stored.id, [{ kind: 'reset', room: CHAT, personaId: 'default', upTo }]);
      expect(await waitingTexts(under.store)).toEqual(['after']);
      expect(await waitingTexts(under.store, `${CHAT}/5`)).toEqual(['in the thread']);
    });

    it('aborts the running turn; of its batch, what came after the command waits again', async () => {
      await receive(under.store, [message('1', 'before')]);
      const stored = await taken();
      await receive(under.store, [message('2', 'after')]);
      const turn = await begun(under.store, 't1');
      expect(turn.waiting).toHaveLength(2);
      const upTo = stored.afterMessage;
      const { abortedTurn } = await end(stored.id, [
        { kind: 'reset', room: CHAT, personaId: 'default', upTo },
      ]);
      expect(abortedTurn).toBe('t1');
      expect(await finish(under.store, turn, 't1')).toBe('lost');
      const again = await begun(under.store, 't2');
      expect(again.waiting).toMatchObject([{ text: 'after', turnId: null }]);
      expect(await finish(under.store, again, 't2')).toBe('finished');
      expect(await windowTexts(under.store)).toEqual(['after', 'reply of t2']);
    });

    it('leaves the running turn of another persona alone', async () => {
      await receive(under.store, [message('1', 'for luna')]);
      const turn = await begun(under.store, 't1', { personaId: 'luna' });
      expect(await reset()).toEqual({ abortedTurn: null });
      expect(await finish(under.store, turn, 't1')).toBe('finished');
    });

    it('takes the room from who was about to begin a turn', async () => {
      await receive(under.store, [message('1', 'before')]);
      const seen = await looked(under.store);
      const preparing = await claimed(under.store);
      await reset();
      expect(await begin(under.store, seen, 't1')).toBeNull();
      expect(await begin(under.store, preparing, 't1')).toBeNull();
      expect(await waitingTexts(under.store)).toEqual([]);
    });

    it('drops replies that were not delivered yet, of this persona in this room', async () => {
      await exchange(under.store, 't1', 'old', { deliveries: [delivery('turn:t1', 'old reply')] });
      await exchange(under.store, 't2', 'thread', {
        room: `${CHAT}/5`,
        deliveries: [delivery('turn:t2', 'in the thread')],
      });
      await exchange(under.store, 't3', 'luna', {
        personaId: 'luna',
        deliveries: [delivery('turn:t3', 'by luna', { personaId: 'luna' })],
      });
      const underWay = await nextOf(under.store);
      await under.store.claimDelivery(underWay?.id ?? 0, lease());
      const aside = { channel: 'test', address: '1', threadId: null, kind: 'group' as const, now: NOW };
      const said = delivery('tool:t1:key', 'said beside it');
      await under.store.post({ chatId: CHAT, ...aside, delivery: said });
      await reset();
      expect((await nextOf(under.store))?.body.text).toBe('in the thread');
      expect(await under.store.claimDelivery(underWay?.id ?? 0, lease()), 'it was dropped').toBe(false);
      await under.store.settle(
        underWay?.id ?? 0,
        { kind: 'retry', notBefore: 0, uncertain: true, reason: 'cut' },
        NOW,
      );
      expect((await nextOf(under.store))?.body.text, 'it does not come back').toBe('in the thread');
      expect((await under.store.counts()).undelivered).toBe(2);
    });

    it('forgets a reply that was finished between the command and its effect', async () => {
      await receive(under.store, [message('1', 'before')]);
      const turn = await begun(under.store, 't1');
      const stored = await taken();
      await finish(under.store, turn, 't1', { deliveries: [delivery('turn:t1', 'late')] });
      await exchange(under.store, 't2', 'after', { deliveries: [delivery('turn:t2', 'new')] });
      const upTo = stored.afterMessage;
      await end(stored.id, [{ kind: 'reset', room: CHAT, personaId: 'default', upTo }]);
      expect(await windowTexts(under.store)).toEqual(['after', 'reply of t2']);
      expect((await nextOf(under.store))?.body.text).toBe('new');
    });
  });
}
