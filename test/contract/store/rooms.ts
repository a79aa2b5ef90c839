/** Several personas in one room: who is there, who hears what, what goes on between them; and several faces of one account. */
import { describe, expect, it } from 'vitest';
import type { CommandEffect } from '../../../src/core/store.js';
import type { GroupRound } from '../../../src/core/transcript.js';
import type { StoreUnderTest } from '../store.js';
import {
  begun,
  CHAT,
  chatAt,
  claimed,
  command,
  cursorOf,
  delivery,
  finish,
  lease,
  looked,
  MINUTE,
  message,
  NOW,
  nextOf,
  note,
  receive,
  recovered,
} from './words.js';

export function roomContract(under: StoreUnderTest): void {
  const apply = async (id: string, ...effects: CommandEffect[]) => {
    const { commands } = await receive(under.store, [command(id, 'persona')]);
    const taken = commands[0]?.id ?? 0;
    await under.store.takeCommand(taken, lease());
    await under.store.finishCommand({ id: taken, now: NOW, deliveries: [], effects });
  };
  const goingOn = (more: Partial<GroupRound> = {}): GroupRound => ({
    said: [{ id: 1, by: null }],
    due: ['max'],
    next: [],
    round: 1,
    replies: 0,
    party: ['luna', 'max'],
    ...more,
  });
  const heardBy = async (personaId: string) => {
    const ask = { room: CHAT, personaId, limit: 100, overheard: 100, except: [] };
    const { messages } = await under.store.window(ask);
    return messages.map(({ text, addressed }) => `${text}${addressed ? '' : ' (overheard)'}`);
  };

  describe('who is in a chat', () => {
    it('is whoever was invited, once and in that order, until sent away', async () => {
      const id = { chatId: CHAT };
      await apply(
        '1',
        { kind: 'invite', ...id, personaId: 'luna' },
        { kind: 'invite', ...id, personaId: 'max' },
      );
      await apply('2', { kind: 'invite', ...id, personaId: 'luna' });
      expect(await under.store.chat(CHAT)).toMatchObject({ invited: ['max', 'luna'] });
      await apply('3', { kind: 'leave', ...id, personaId: 'luna' });
      const left = await under.store.chat(CHAT);
      expect(left).toMatchObject({ invited: ['max'], away: ['luna'] });
      await apply('4', { kind: 'activate', ...id, personaId: 'luna' });
      expect(await under.store.chat(CHAT)).not.toHaveProperty('away');
      await apply(
        '5',
        { kind: 'leave', ...id, personaId: 'max' },
        { kind: 'invite', ...id, personaId: 'max' },
      );
      const back = await under.store.chat(CHAT);
      expect(back?.invited).toEqual(['max']);
      expect(back?.away).toBeUndefined();
    });
  });

  describe('a message for several', () => {
    it('is heard as said to each of them, and by the others as overheard; so is the reply', async () => {
      await receive(under.store, [message('1', 'Luna and Max?')]);
      const hearers = ['luna', 'nova'];
      const turn = await begun(under.store, 't1', { personaId: 'luna', addressed: ['luna', 'max'], hearers });
      await finish(under.store, turn, 't1', { hearers: ['luna', 'max', 'nova'], addressed: ['max'] });
      expect(await heardBy('luna')).toEqual(['Luna and Max?', 'reply of t1']);
      expect(await heardBy('max')).toEqual(['Luna and Max?', 'reply of t1']);
      expect(await heardBy('nova')).toEqual(['Luna and Max? (overheard)', 'reply of t1 (overheard)']);
      expect(await heardBy('ada')).toEqual([]);
    });
  });

  describe('what goes on between personas', () => {
    async function opened(): Promise<number> {
      await receive(under.store, [message('1', 'Luna and Max?')]);
      const seen = await looked(under.store);
      const id = seen.waiting[0]?.id ?? 0;
      const exchange = goingOn({ said: [{ id, by: null }] });
      const more = { personaId: 'luna', addressed: ['luna', 'max'], exchange };
      const turn = await begun(under.store, 't1', more);
      expect(await finish(under.store, turn, 't1', { exchange })).toBe('finished');
      return id;
    }

    it('is there with the next look, though nothing waits, and holds what was said', async () => {
      const id = await opened();
      const next = await looked(under.store);
      expect(next.waiting).toEqual([]);
      expect(next.exchange?.due).toEqual(['max']);
      const reply = next.exchange?.said[1];
      expect(next.exchange?.said).toEqual([
        { id, by: null },
        { id: reply?.id, by: 'luna' },
      ]);
      const batch = [id, reply?.id ?? 0];
      await begun(under.store, 't2', { personaId: 'max', batch, taken: [] });
      const again = await claimed(under.store);
      expect(again.batch.map(({ text }) => text)).toEqual(['Luna and Max?', 'reply of t1']);
      await finish(under.store, again, 't2');
      expect(await under.store.readRoom(CHAT, 'me', NOW)).toBeNull();
    });

    it('is taken up after an end of the process', async () => {
      await opened();
      expect((await recovered(under.store)).rooms).toEqual([CHAT]);
      expect((await under.store.pending({ owner: 'me', channels: ['test'], now: NOW })).rooms).toEqual([
        CHAT,
      ]);
    });

    it('survives an end of the process in the middle of a turn', async () => {
      const id = await opened();
      const exchange = goingOn({ due: ['nova'] });
      await begun(under.store, 't2', { personaId: 'max', batch: [id], taken: [], exchange });
      await recovered(under.store);
      const again = await claimed(under.store, CHAT, 'another');
      expect(again.turn?.id).toBe('t2');
      expect(again.batch.map((one) => one.id)).toEqual([id]);
      expect(again.exchange?.due).toEqual(['nova']);
    });

    it.each(['stop', 'reset'] as const)('is ended by a %s, which aborts the turn', async (kind) => {
      const id = await opened();
      const exchange = goingOn({ due: ['nova'] });
      await begun(under.store, 't2', { personaId: 'max', batch: [id], taken: [], exchange });
      const effect: CommandEffect =
        kind === 'stop'
          ? { kind, room: CHAT, turnId: 't2' }
          : { kind, room: CHAT, personaId: 'max', upTo: Number.MAX_SAFE_INTEGER };
      await apply('2', effect);
      expect(await under.store.readRoom(CHAT, 'me', NOW + MINUTE)).toBeNull();
    });

    it('may be stopped by whoever began it, also while personas answer each other', async () => {
      await opened();
      const { exchange } = await looked(under.store);
      const reply = exchange?.said[1]?.id ?? 0;
      await begun(under.store, 't2', { personaId: 'max', batch: [reply], taken: [], exchange });
      const running = (await under.store.roomNow(CHAT)).running;
      expect(running).toMatchObject({ turnId: 't2', personaId: 'max' });
      expect(running?.askers).toContain('test_ann');
    });
  });

  describe('turns that answer programs', () => {
    it('are counted until a person says something', async () => {
      const bot = { id: 'test_bot', name: 'Bot', administrator: false, bot: true as const };
      for (let n = 1; n <= 3; n++) {
        await receive(under.store, [message(`b${n}`, 'beep', { sender: bot })]);
        const turn = await begun(under.store, `t${n}`, { forBots: true });
        expect(turn.turnsForBots).toBe(n - 1);
        expect(turn.waiting[0]?.author).toMatchObject({ kind: 'person', bot: true });
        await finish(under.store, turn, `t${n}`);
      }
      await receive(under.store, [message('p', 'hello')]);
      await note(under.store, await looked(under.store), { hearers: [], forBots: false });
      await receive(under.store, [message('b9', 'beep', { sender: bot })]);
      expect((await claimed(under.store)).turnsForBots).toBe(0);
    });
  });

  describe('a reply to what a persona has said in company', () => {
    it('is without the name that stood before it', async () => {
      await receive(under.store, [message('1', 'Luna?')]);
      const claim = await begun(under.store, 't1');
      const appearance = { personaId: 'luna', name: 'Luna', avatar: null };
      const deliveries = [delivery('turn:t1', 'good morning', { personaId: 'luna', appearance })];
      await finish(under.store, claim, 't1', { deliveries });
      const next = await nextOf(under.store);
      expect(next?.appearance).toEqual(appearance);
      await under.store.claimDelivery(next?.id ?? 0, lease());
      await under.store.settle(next?.id ?? 0, { kind: 'sent', platformMessageId: '77' }, NOW);
      const replyTo = { platformMessageId: '77', senderName: 'bot', text: 'Luna\ngood morning', ours: true };
      await receive(under.store, [message('2', 'you too', { replyTo })]);
      const [waiting] = (await claimed(under.store)).waiting;
      expect(waiting?.replyTo).toMatchObject({ text: 'good morning', personaId: 'luna' });
    });
  });

  describe('several faces of one account', () => {
    it('have a message once, though each has it under an id of its own', async () => {
      const copy = { dedupeKey: 'abc' };
      const first = await receive(under.store, [
        message('5', 'hello', copy),
        command('6', 'help', '', { dedupeKey: 'c' }),
      ]);
      expect(first).toMatchObject({ duplicates: 0, commands: [{}] });
      const second = await receive(under.store, [
        message('77:9', 'hello', copy),
        command('77:10', 'help', '', { dedupeKey: 'c' }),
        message('77:11', 'hello', { dedupeKey: 'def' }),
        message('7', 'hello', { chat: chatAt('test_2'), ...copy }),
      ]);
      expect(second).toMatchObject({ duplicates: 2, commands: [], rooms: [CHAT, 'test_2'] });
      expect((await claimed(under.store)).waiting.map(({ platformMessageId }) => platformMessageId)).toEqual([
        '5',
        '77:11',
      ]);
    });

    it('have a cursor each', async () => {
      const batch = { channel: 'test', account: 'bot', now: NOW, receipts: [] };
      await under.store.receive({ ...batch, cursor: '10' });
      await under.store.receive({ ...batch, cursor: '20', cursorFor: 'second' });
      expect(await cursorOf(under.store, 'bot')).toBe('10');
      expect(await cursorOf(under.store, 'second')).toBe('20');
    });

    it('tell whom a message names, and whose words are replied to', async () => {
      const replyTo = {
        platformMessageId: '1',
        senderName: 'Luna',
        text: 'hi',
        ours: true,
        personaId: 'luna',
      };
      await receive(under.store, [message('5', 'hello', { addresses: ['max'], replyTo })]);
      const [waiting] = (await claimed(under.store)).waiting;
      expect(waiting).toMatchObject({ addresses: ['max'], replyTo: { personaId: 'luna' } });
    });
  });
}
