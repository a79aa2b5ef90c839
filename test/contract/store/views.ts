/** The store's contract: what a persona has of a room, and the stretches of it that can be read. */
import { describe, expect, it } from 'vitest';
import type { Store } from '../../../src/core/store.js';
import { BEGINNING, type ViewRecord } from '../../../src/core/transcript.js';
import type { StoreUnderTest } from '../store.js';
import { oneView } from './one-view.js';
import {
  begun,
  CHAT,
  END,
  exchange,
  finish,
  forget,
  message,
  overhear,
  placeOf,
  receive,
  windowTexts,
} from './words.js';

const NEW_VIEW: ViewRecord = {
  room: CHAT,
  personaId: 'default',
  resetAt: 0,
  windowAfter: BEGINNING,
  flushedTo: BEGINNING,
  summary: null,
  measured: null,
  tainted: false,
};

export function viewContract(under: StoreUnderTest): void {
  const onView = (room?: string, personaId?: string) => oneView(under.store, room, personaId);
  const span = (more: Partial<Parameters<Store['span']>[0]>) =>
    under.store.span({
      room: CHAT,
      personaId: 'default',
      after: BEGINNING,
      upTo: END,
      limit: 100,
      overheard: 100,
      ...more,
    });
  const spanTexts = async (more: Parameters<typeof span>[0]) =>
    (await span(more)).messages.map(({ text }) => text);

  async function threeExchanges(personaId = 'default'): Promise<void> {
    for (const n of [1, 2, 3]) await exchange(under.store, `${personaId}${n}`, `q${n}`, { personaId });
  }

  describe('whether all heard', () => {
    it('is so where each of them heard each message, addressed, overheard or its own', async () => {
      await receive(under.store, [message('1', 'to luna')]);
      const turn = await begun(under.store, 't1', { personaId: 'luna', hearers: ['default', 'luna'] });
      await finish(under.store, turn, 't1', { hearers: ['default', 'luna'] });
      await exchange(under.store, 't2', 'to default alone');
      const ids = (await span({ personaId: 'default' })).messages.map(({ id }) => id);
      const heard = (personaIds: string[], of: number[]) => under.store.allHeard(CHAT, personaIds, of);
      expect(ids).toHaveLength(4);
      expect(await heard(['default', 'luna'], ids.slice(0, 2))).toBe(true);
      expect(await heard(['default'], ids)).toBe(true);
      expect(await heard(['default', 'luna'], ids)).toBe(false);
      expect(await heard(['max'], ids.slice(0, 1))).toBe(false);
      expect(await heard([], ids)).toBe(true);
    });
  });

  describe('a view', () => {
    it('is new where nothing has happened', async () => {
      expect(await under.store.view(CHAT, 'default')).toEqual({ ...NEW_VIEW, revision: 0 });
    });

    it('knows the size of the last request that was measured', async () => {
      await receive(under.store, [message('1', 'hi')]);
      await finish(under.store, await begun(under.store, 't1'), 't1', {
        measured: { counted: 900, estimated: 700 },
      });
      await exchange(under.store, 't2', 'nothing was counted here');
      expect((await onView().view()).measured).toEqual({ counted: 900, estimated: 700 });
      expect((await onView(CHAT, 'luna').view()).measured).toBeNull();
      expect((await onView(`${CHAT}/5`).view()).measured).toBeNull();
    });

    it('is listed by room for everybody who has heard anything there', async () => {
      await exchange(under.store, 't1', 'here');
      await exchange(under.store, 't2', 'in a thread', { room: `${CHAT}/5`, personaId: 'luna' });
      await overhear(under.store, ['aside'], { room: `${CHAT}/6`, hearers: ['luna'] });
      await exchange(under.store, 't3', 'elsewhere', { room: 'test_2', personaId: 'luna' });
      expect((await under.store.roomsHeard(CHAT, 'luna')).sort()).toEqual([`${CHAT}/5`, `${CHAT}/6`]);
      expect(await under.store.roomsHeard(CHAT, 'default')).toEqual([CHAT]);
      expect(await under.store.roomsHeard(CHAT, 'nobody')).toEqual([]);
    });
  });

  describe('a window', () => {
    it('begins behind its mark, and comes with its view', async () => {
      await threeExchanges();
      const { flush, move, place, view } = onView();
      const mark = await place('reply of default1');
      await flush(mark);
      await move(mark);
      const ask = { room: CHAT, personaId: 'default', limit: 100, overheard: 100, except: [] };
      const window = await under.store.window(ask);
      expect(window.messages.map(({ text }) => text)).toEqual([
        'q2',
        'reply of default2',
        'q3',
        'reply of default3',
      ]);
      // The move has made copies of the room's windows void.
      expect(await view()).toEqual({ ...window.view, revision: 1 });
      expect(window.view).toEqual({ ...NEW_VIEW, windowAfter: mark, flushedTo: mark, summary: 'what was' });
    });

    it('says whether there is more than was asked for, of what was said to the persona', async () => {
      await overhear(under.store, ['o1', 'o2', 'o3']);
      await threeExchanges();
      const ask = { room: CHAT, personaId: 'default', overheard: 1, except: [] };
      expect((await under.store.window({ ...ask, limit: 6 })).more).toBe(false);
      expect((await under.store.window({ ...ask, limit: 5 })).more).toBe(true);
      const { flush, move, place } = onView();
      await flush(await place('q1'));
      await move(await place('q1'));
      expect((await under.store.window({ ...ask, limit: 5 })).more).toBe(false);
      expect((await under.store.window({ ...ask, limit: 4 })).more).toBe(true);
      const newest = (await under.store.window({ ...ask, limit: 5 })).messages.at(-1)?.id ?? 0;
      expect((await under.store.window({ ...ask, limit: 4, except: [newest] })).more).toBe(false);
    });

    it('ends its view at the reset mark as well as at its own, whichever is later', async () => {
      await threeExchanges();
      const { flush, move, place } = onView();
      const third = await place('reply of default3');
      await forget(under.store);
      await exchange(under.store, 't4', 'q4');
      await exchange(under.store, 't5', 'q5');
      expect(await windowTexts(under.store)).toEqual(['q4', 'reply of t4', 'q5', 'reply of t5']);
      await flush(third);
      await move(third);
      expect(await windowTexts(under.store)).toEqual(['q4', 'reply of t4', 'q5', 'reply of t5']);
      const fourth = await place('reply of t4');
      await flush(fourth);
      await move(fourth);
      expect(await windowTexts(under.store)).toEqual(['q5', 'reply of t5']);
      await forget(under.store);
      expect(await windowTexts(under.store)).toEqual([]);
    });

    it('cuts what was overheard with its mark, and shows the newest of the rest', async () => {
      await exchange(under.store, 't1', 'q1');
      await overhear(under.store, ['o1', 'o2']);
      const { flush, move, place } = onView();
      await flush(await place('o1'));
      await move(await place('o1'));
      expect(await windowTexts(under.store)).toEqual(['o2']);
      await overhear(under.store, ['o3']);
      expect(await windowTexts(under.store, { overheard: 1 })).toEqual(['o3']);
      expect(await windowTexts(under.store)).toEqual(['o2', 'o3']);
    });

    it('is in the order in which it was heard, not in that of receipt, and says where each line is', async () => {
      await receive(under.store, [message('1', 'asked')]);
      const turn = await begun(under.store, 't1');
      await receive(under.store, [message('2', 'said while it wrote')]);
      await finish(under.store, turn, 't1', { reply: 'answered' });
      await finish(under.store, await begun(under.store, 't2'), 't2', { reply: null });
      const ask = { room: CHAT, personaId: 'default', limit: 9, overheard: 9, except: [] };
      const { messages } = await under.store.window(ask);
      expect(messages.map(({ text }) => text)).toEqual(['asked', 'answered', 'said while it wrote']);
      expect(messages.map(({ position }) => position)).toEqual([
        { heardAfter: 1, messageId: 1 },
        { heardAfter: 2, messageId: 3 },
        { heardAfter: 3, messageId: 2 },
      ]);
      await overhear(under.store, ['aside']);
      const { messages: all } = await under.store.window(ask);
      expect(all.map(({ addressed }) => addressed)).toEqual([true, true, true, false]);
    });

    it('shows a message once that waited again and was heard again', async () => {
      await receive(under.store, [message('1', 'before')]);
      await begun(under.store, 't1', { hearers: ['luna'] });
      const upTo = (await placeOf(under.store, 'before')).messageId;
      await receive(under.store, [message('2', 'a word from aside')]);
      expect((await forget(under.store, { upTo })).abortedTurn).toBe('t1');
      await receive(under.store, [message('3', 'after')]);
      await begun(under.store, 't2', { hearers: ['luna'] });
      expect((await forget(under.store, { upTo })).abortedTurn).toBe('t2');
      expect(await windowTexts(under.store), 'it waits').toEqual([]);
      expect(await windowTexts(under.store, { personaId: 'luna' })).toEqual(['before']);
      await begun(under.store, 't3', { personaId: 'luna', hearers: ['default'] });
      expect(await windowTexts(under.store)).toEqual(['a word from aside', 'after']);
      expect(await under.store.whereabouts(CHAT, 'default')).toEqual({ window: 0, flushed: 0, archived: 0 });
      expect(await under.store.whereabouts(CHAT, 'luna')).toEqual({ window: 2, flushed: 0, archived: 0 });
    });
  });

  describe('a span', () => {
    it('begins behind one place and ends with the other, whatever the window is', async () => {
      await threeExchanges();
      const { flush, move, place } = onView();
      const [after, upTo] = [await place('q1'), await place('q3')];
      const last = await place('reply of default3');
      await flush(last);
      await move(last);
      expect(await spanTexts({ after, upTo })).toEqual([
        'reply of default1',
        'q2',
        'reply of default2',
        'q3',
      ]);
      expect(await spanTexts({ after, upTo: after })).toEqual([]);
      expect(await spanTexts({ after: upTo, upTo: after })).toEqual([]);
    });

    it('is the oldest part of what lies there, and says whether there is more', async () => {
      await threeExchanges();
      const upTo = await onView().place('q3');
      const part = await span({ upTo, limit: 2 });
      expect(part.messages.map(({ text }) => text)).toEqual(['q1', 'reply of default1']);
      expect(part.more).toBe(true);
      const after = part.messages.at(-1)?.position ?? BEGINNING;
      const rest = await span({ after, upTo, limit: 3 });
      expect(rest.messages.map(({ text }) => text)).toEqual(['q2', 'reply of default2', 'q3']);
      expect(rest.more).toBe(false);
    });

    it('has of what was overheard only the newest, none of it beyond its last line', async () => {
      await overhear(under.store, ['o1', 'o2', 'o3']);
      await exchange(under.store, 't1', 'q1');
      await overhear(under.store, ['o4']);
      await exchange(under.store, 't2', 'q2');
      await overhear(under.store, ['o5']);
      expect(await spanTexts({ overheard: 2 })).toEqual([
        'q1',
        'reply of t1',
        'o4',
        'q2',
        'reply of t2',
        'o5',
      ]);
      expect(await spanTexts({ overheard: 2, limit: 2 })).toEqual(['o2', 'o3', 'q1', 'reply of t1']);
      expect(await spanTexts({ overheard: 0 })).toEqual(['q1', 'reply of t1', 'q2', 'reply of t2']);
      expect(await spanTexts({ upTo: await onView().place('o2') })).toEqual(['o1', 'o2']);
    });

    it('never goes back behind a reset', async () => {
      await threeExchanges();
      const upTo = (await onView().place('q2')).messageId;
      await forget(under.store, { upTo });
      expect(await spanTexts({})).toEqual(['q3', 'reply of default3']);
    });

    it('is of one view, and brings the steps of its tools', async () => {
      await receive(under.store, [message('1', 'look it up')]);
      const turn = await begun(under.store, 't1', { hearers: ['luna'] });
      await under.store.addStep(turn.claim, 't1', { kind: 'call', callId: 'c' }, 0);
      await finish(under.store, turn, 't1', { hearers: ['luna'] });
      await exchange(under.store, 't2', 'in a thread', { room: `${CHAT}/5` });
      const whole = await span({});
      expect(whole.messages.map(({ text }) => text)).toEqual(['look it up', 'reply of t1']);
      expect(whole.steps).toEqual(new Map([['t1', [{ kind: 'call', callId: 'c' }]]]));
      const luna = await span({ personaId: 'luna' });
      expect(luna.messages.map(({ addressed }) => addressed)).toEqual([false, false]);
      expect(luna.steps.size).toBe(0);
    });
  });
}
