/** The store's contract: what a persona sees of a room. */
import { describe, expect, it } from 'vitest';
import type { Step } from '../../../src/core/transcript.js';
import type { StoreUnderTest } from '../store.js';
import { begun, CHAT, exchange, finish, message, overhear, receive, windowTexts } from './words.js';

export function transcriptContract(under: StoreUnderTest): void {
  const overheard = (...texts: string[]) => overhear(under.store, texts);

  describe('a window', () => {
    it('holds the newest of both kinds, oldest first', async () => {
      await exchange(under.store, 't1', 'q1');
      await overheard('o1', 'o2', 'o3');
      await exchange(under.store, 't2', 'q2');
      expect(await windowTexts(under.store)).toEqual([
        'q1',
        'reply of t1',
        'o1',
        'o2',
        'o3',
        'q2',
        'reply of t2',
      ]);
      expect(await windowTexts(under.store, { overheard: 2 })).toEqual([
        'q1',
        'reply of t1',
        'o2',
        'o3',
        'q2',
        'reply of t2',
      ]);
      expect(await windowTexts(under.store, { overheard: 0, limit: 3 })).toEqual([
        'reply of t1',
        'q2',
        'reply of t2',
      ]);
    });

    it('has no holes: what was overheard before the oldest line is cut with it', async () => {
      await overheard('o1');
      await exchange(under.store, 't1', 'q1');
      await overheard('o2');
      await exchange(under.store, 't2', 'q2');
      expect(await windowTexts(under.store, { limit: 2 })).toEqual(['q2', 'reply of t2']);
      expect(await windowTexts(under.store, { limit: 3 })).toEqual([
        'reply of t1',
        'o2',
        'q2',
        'reply of t2',
      ]);
    });

    it('leaves out what is being answered, whoever heard it', async () => {
      await exchange(under.store, 't1', 'q1');
      await receive(under.store, [message('2', 'q2')]);
      const { waiting } = await begun(under.store, 't2', { hearers: ['luna'] });
      const except = waiting.map(({ id }) => id);
      expect(await windowTexts(under.store, { except, limit: 1 })).toEqual(['reply of t1']);
      expect(await windowTexts(under.store, { personaId: 'luna', except })).toEqual([]);
    });

    it('is of one room and one persona', async () => {
      await exchange(under.store, 't1', 'here');
      await exchange(under.store, 't2', 'in the thread', { room: `${CHAT}/5` });
      await exchange(under.store, 't3', 'for luna', { personaId: 'luna' });
      expect(await windowTexts(under.store)).toEqual(['here', 'reply of t1']);
      expect(await windowTexts(under.store, { room: `${CHAT}/5` })).toEqual(['in the thread', 'reply of t2']);
      expect(await windowTexts(under.store, { personaId: 'luna' })).toEqual(['for luna', 'reply of t3']);
      expect((await under.store.roomNow(CHAT)).lastReply).toMatchObject({ personaId: 'luna' });
    });

    it('brings the steps of turns that used tools, only its own', async () => {
      await exchange(under.store, 't1', 'plain');
      await receive(under.store, [message('2', 'with a tool')]);
      const turn = await begun(under.store, 't2', { hearers: ['luna'] });
      const steps: Step[] = [
        { kind: 'answer', text: 'let me see', calls: [{ id: 'c', name: 'look', arguments: '{' }] },
        { kind: 'call', callId: 'c' },
        { kind: 'result', callId: 'c', content: '…', failed: true },
        { kind: 'answer', text: 'done', calls: [] },
      ];
      for (const step of steps) await under.store.addStep(turn.claim, 't2', step, 0);
      await finish(under.store, turn, 't2', { hearers: ['luna'] });
      await receive(under.store, [message('3', 'plain again')]);
      const plain = await begun(under.store, 't3');
      await under.store.addStep(plain.claim, 't3', { kind: 'answer', text: 'hm', calls: [] }, 0);
      await finish(under.store, plain, 't3');
      const ask = { room: CHAT, limit: 100, overheard: 100, except: [] };
      expect((await under.store.window({ ...ask, personaId: 'default' })).steps).toEqual(
        new Map([['t2', steps]]),
      );
      expect((await under.store.window({ ...ask, personaId: 'luna' })).steps.size).toBe(0);
      expect((await under.store.window({ ...ask, personaId: 'default', limit: 1 })).steps.size).toBe(0);
    });
  });
}
