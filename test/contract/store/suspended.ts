/** The store's contract: turns that wait for something outside of them, and what comes from inside. */
import { describe, expect, it } from 'vitest';
import type { Receipt } from '../../../src/core/receipt.js';
import type { CommandEffect } from '../../../src/core/store.js';
import type { Step } from '../../../src/core/transcript.js';
import type { StoreUnderTest } from '../store.js';
import {
  begin,
  begun,
  CHAT,
  claimed,
  command,
  exchange,
  finish,
  lease,
  looked,
  MINUTE,
  message,
  NOW,
  nextOf,
  receive,
  recovered,
  waitingTexts,
  windowTexts,
} from './words.js';

export function suspendedContract(under: StoreUnderTest): void {
  const CALL: Step = { kind: 'answer', text: '', calls: [{ id: 'c1', name: 'ask', arguments: '{}' }] };
  const waitingFor = (waitsFor: string, until: number | null = null) => ({
    kind: 'waiting' as const,
    callId: 'c1',
    waitsFor,
    until,
  });
  const resume = (waitsFor: string, content = 'yes'): Receipt => ({
    kind: 'resume',
    waitsFor,
    content,
    failed: false,
  });
  const event = (id: string, more: Partial<Extract<Receipt, { kind: 'event' }>> = {}): Receipt => ({
    kind: 'event',
    id,
    room: CHAT,
    about: 'schedule',
    text: 'water the plants',
    personaId: null,
    at: NOW,
    ...more,
  });
  const pending = () => under.store.pending({ owner: 'me', channels: ['test'], now: NOW });
  async function run(...effects: CommandEffect[]) {
    const { commands } = await receive(under.store, [command(`c ${effects[0]?.kind}`, 'do')]);
    const id = commands[0]?.id ?? 0;
    await under.store.takeCommand(id, lease());
    return under.store.finishCommand({ id, now: NOW, deliveries: [], effects });
  }

  /** A turn that waits, over one message. */
  async function suspended(turnId: string, waitsFor: string, until: number | null = null): Promise<void> {
    await receive(under.store, [message(`in-${turnId}`, `for ${turnId}`)]);
    const turn = await begun(under.store, turnId);
    await under.store.addStep(turn.claim, turnId, CALL, NOW);
    expect(await under.store.addStep(turn.claim, turnId, waitingFor(waitsFor, until), NOW)).toBe(true);
    expect(await finish(under.store, turn, turnId), 'it holds the room no more').toBe('lost');
  }

  describe('a turn that waits', () => {
    it('holds no room: the chat goes on meanwhile, and what it is about counts as heard', async () => {
      await suspended('t1', 'k1');
      expect(await under.store.readRoom(CHAT, 'me', NOW), 'nothing is to be done').toBeNull();
      expect((await under.store.roomNow(CHAT)).running).toBeNull();
      expect((await under.store.roomNow(CHAT)).suspended).toEqual({
        turnId: 't1',
        personaId: 'default',
        askers: ['test_ann'],
      });
      await exchange(under.store, 't2', 'meanwhile');
      expect(await windowTexts(under.store)).toEqual(['for t1', 'meanwhile', 'reply of t2']);
      expect((await pending()).rooms).toEqual([]);
    });

    it('goes on when what it waited for comes, with that as the result of its call', async () => {
      await suspended('t1', 'k1');
      expect(await receive(under.store, [resume('k1')])).toMatchObject({ rooms: [CHAT], messages: 0 });
      expect((await pending()).rooms).toEqual([CHAT]);
      const seen = await looked(under.store);
      expect(seen).toMatchObject({ unfinished: { turnId: 't1', crashes: 0 }, waiting: [] });
      const again = await claimed(under.store);
      expect(again.turn?.steps).toEqual([
        CALL,
        waitingFor('k1'),
        { kind: 'result', callId: 'c1', content: 'yes', failed: false },
      ]);
      expect(again.batch.map(({ text }) => text)).toEqual(['for t1']);
      expect((await under.store.roomNow(CHAT)).running).toMatchObject({ turnId: 't1' });
      expect(await finish(under.store, again, 't1')).toBe('finished');
      expect((await under.store.roomNow(CHAT)).suspended).toBeNull();
      expect(await waitingTexts(under.store)).toEqual([]);
    });

    it('goes on once: a second word, and one of which nobody knows, are nothing', async () => {
      await suspended('t1', 'k1');
      await receive(under.store, [resume('k1')]);
      expect((await receive(under.store, [resume('k1', 'again'), resume('unknown')])).rooms).toEqual([]);
      const { turn } = await claimed(under.store);
      expect(turn?.steps.filter(({ kind }) => kind === 'result')).toHaveLength(1);
      expect((await receive(under.store, [resume('k1', 'late')])).rooms).toEqual([]);
    });

    it('goes on at once where what it waits for came before it was suspended, once', async () => {
      await receive(under.store, [resume('approval', 'early'), resume('approval', 'later')]);
      await suspended('t1', 'approval');
      const { unfinished } = (await looked(under.store)) ?? {};
      expect(unfinished?.turnId).toBe('t1');
      const turn = (await claimed(under.store)).turn;
      const results = turn?.steps.filter(({ kind }) => kind === 'result');
      expect(results).toEqual([{ kind: 'result', callId: 'c1', content: 'early', failed: false }]);
    });

    it('lets the turn that runs end first, then comes before what waits', async () => {
      await suspended('t1', 'k1');
      await receive(under.store, [message('2', 'more')]);
      const other = await begun(under.store, 't2');
      await receive(under.store, [resume('k1'), message('3', 'and more')]);
      expect((await looked(under.store)).unfinished?.turnId).toBe('t2');
      await finish(under.store, other, 't2');
      expect((await looked(under.store)).unfinished?.turnId).toBe('t1');
      await finish(under.store, await claimed(under.store), 't1');
      expect(await waitingTexts(under.store)).toEqual(['and more']);
    });

    it('is still there after an end of the process, and one that was ready goes on', async () => {
      await suspended('t1', 'k1', NOW + MINUTE);
      await suspended('t2', 'k2');
      await receive(under.store, [resume('k2')]);
      const left = await recovered(under.store);
      expect(left).toMatchObject({ rooms: [CHAT], alarms: [{ waitsFor: 'k1', at: NOW + MINUTE }] });
      const again = await claimed(under.store);
      expect(again.turn).toMatchObject({ id: 't2', crashes: 0 });
      await finish(under.store, again, 't2');
      await receive(under.store, [resume('k1', 'in time')]);
      expect((await pending()).alarms).toEqual([]);
      expect((await claimed(under.store)).turn?.id).toBe('t1');
    });

    it('waits again, for something else, when it likes', async () => {
      await suspended('t1', 'k1');
      await receive(under.store, [resume('k1')]);
      const again = await claimed(under.store);
      await under.store.addStep(again.claim, 't1', waitingFor('k2'), NOW);
      expect((await receive(under.store, [resume('k1')])).rooms).toEqual([]);
      expect((await receive(under.store, [resume('k2')])).rooms).toEqual([CHAT]);
    });

    it.each(['stop', 'reset'] as const)(
      'is aborted by a %s, and what is shown of it completed',
      async (kind) => {
        await suspended('t1', 'k1');
        await receive(under.store, [resume('k1')]);
        const shown = { body: { text: 'so far', marks: [] }, speaker: 'Default', key: 'k', sentAt: NOW };
        const again = await claimed(under.store);
        await under.store.show('t1', [{ ...shown, platformMessageId: '900' }]);
        await under.store.addStep(again.claim, 't1', waitingFor('k2'), NOW);
        const { abortedTurn } = await run(
          kind === 'stop'
            ? { kind, room: CHAT, turnId: 't1' }
            : { kind, room: CHAT, personaId: 'default', upTo: 1_000 },
        );
        if (kind === 'stop') expect(abortedTurn).toBe('t1');
        expect((await receive(under.store, [resume('k2')])).rooms).toEqual([]);
        expect((await under.store.roomNow(CHAT)).suspended).toBeNull();
        expect(await nextOf(under.store)).toMatchObject({ body: { text: 'so far …\n(stopped)' } });
        expect(await under.store.readRoom(CHAT, 'me', NOW), 'nothing of it waits again').toBeNull();
      },
    );

    it('keeps what is known of it as shown, also where that becomes known while it waits', async () => {
      await suspended('t1', 'k1');
      const part = { body: { text: 'so far', marks: [] }, speaker: 'Default', key: 'k', sentAt: NOW };
      const shown = [{ ...part, platformMessageId: '900' }];
      expect(await under.store.show('t1', shown), 'nothing more may be shown').toBe(false);
      await run({ kind: 'stop', room: CHAT, turnId: 't1' });
      expect(await nextOf(under.store)).toMatchObject({
        body: { text: 'so far …\n(stopped)' },
        shown: { key: 'k', platformMessageId: '900' },
      });
    });

    it('is stopped without touching the turn that runs beside it', async () => {
      await suspended('t1', 'k1');
      await receive(under.store, [message('2', 'more')]);
      const other = await begun(under.store, 't2');
      expect((await run({ kind: 'stop', room: CHAT, turnId: 't1' })).abortedTurn).toBe('t1');
      expect(await finish(under.store, other, 't2')).toBe('finished');
    });

    it('is lost to whoever looked before it was stopped', async () => {
      await suspended('t1', 'k1');
      await receive(under.store, [resume('k1')]);
      const seen = await looked(under.store);
      await run({ kind: 'stop', room: CHAT, turnId: 't1' });
      expect(await under.store.claim(seen, lease())).toBeNull();
    });

    it('of which a message is edited asks for no new answer: it counts as heard', async () => {
      await suspended('t1', 'k1');
      const change: Receipt = {
        kind: 'edit',
        chatId: CHAT,
        senderId: 'test_ann',
        platformMessageId: 'in-t1',
        text: 'changed',
        mentionsBot: false,
        editedAt: NOW,
      };
      expect((await receive(under.store, [change])).rooms).toEqual([]);
      expect(await windowTexts(under.store)).toEqual(['changed']);
    });
  });

  describe('an event from inside', () => {
    it('is a message of the room, by nobody who could be answered on a platform', async () => {
      await exchange(under.store, 't1', 'hi');
      const { rooms, messages } = await receive(under.store, [event('e1')]);
      expect({ rooms, messages }).toEqual({ rooms: [CHAT], messages: 1 });
      const seen = await looked(under.store);
      expect(seen.waiting).toMatchObject([
        {
          author: { kind: 'gateway', about: 'schedule' },
          text: 'water the plants',
          mentionsBot: true,
          sentAt: NOW,
          platformMessageId: 'event:e1',
        },
      ]);
      expect(seen.waiting[0]).not.toHaveProperty('addresses');
      const turn = await begin(under.store, seen, 't2');
      expect(turn && (await finish(under.store, turn, 't2'))).toBe('finished');
      expect(await windowTexts(under.store)).toContain('water the plants');
    });

    it('is one for each id, also after the chat has moved', async () => {
      await exchange(under.store, 't1', 'hi');
      await receive(under.store, [event('e1'), event('e1')]);
      await receive(under.store, [{ kind: 'moved', chatId: CHAT, address: 'new' }]);
      expect(await receive(under.store, [event('e1')])).toMatchObject({ rooms: [], duplicates: 1 });
      expect(await waitingTexts(under.store)).toHaveLength(1);
    });

    it('is for whom it is for, and nothing where the chat is unknown', async () => {
      await exchange(under.store, 't1', 'hi');
      const before = await under.store.newest('test');
      await receive(under.store, [event('e1', { personaId: 'luna', room: `${CHAT}/7` })]);
      expect((await looked(under.store, `${CHAT}/7`)).waiting[0]?.addresses).toEqual(['luna']);
      expect(await receive(under.store, [event('e2', { room: 'test_unknown' })])).toMatchObject({
        rooms: [],
        messages: 0,
        duplicates: 0,
      });
      expect(await under.store.newest('test'), 'it is no word of a platform').toEqual(before);
    });
  });

  describe('a question', () => {
    const ask = (more: Partial<Extract<CommandEffect, { kind: 'ask' }>> = {}): CommandEffect => ({
      kind: 'ask',
      room: CHAT,
      senderId: 'test_ann',
      askedBy: 'm1',
      ifYes: { name: 'memory', argument: 'forget it' },
      until: NOW + MINUTE,
      ...more,
    });
    const asked = (now = NOW, room = CHAT, senderId = 'test_ann') =>
      under.store.question({ room, senderId, now });

    it('is there for whom it was asked, in that room, until it expires', async () => {
      expect(await asked()).toBeNull();
      await run(ask());
      expect(await asked()).toEqual({
        id: expect.any(Number),
        askedBy: 'm1',
        ifYes: { name: 'memory', argument: 'forget it' },
      });
      expect(await asked(NOW + MINUTE)).toBeNull();
      expect(await asked(NOW, `${CHAT}/5`)).toBeNull();
      expect(await asked(NOW, CHAT, 'test_ben')).toBeNull();
    });

    it('replaces the one before it', async () => {
      await run(ask());
      const first = await asked();
      await run({ kind: 'undone', versionId: 'none' }, ask({ askedBy: 'm2' }));
      expect(await asked()).toMatchObject({ askedBy: 'm2' });
      expect((await asked())?.id).not.toBe(first?.id);
    });

    it.each(['message', 'command'] as const)('ends with the %s that answers it, once', async (kind) => {
      await run(ask());
      const { id = 0 } = (await asked()) ?? {};
      const ends = { endsQuestion: id };
      const said = kind === 'message' ? message('9', 'no', ends) : command('9', 'memory', '', ends);
      await receive(under.store, [said]);
      expect(await asked()).toBeNull();
      await run({ kind: 'undone', versionId: 'none' }, ask({ askedBy: 'm2' }));
      await receive(under.store, [said]);
      expect(await asked(), 'what came twice ends nothing').toMatchObject({ askedBy: 'm2' });
    });

    it('is gone after a restored backup', async () => {
      await run(ask());
      await under.store.quieten();
      expect(await asked()).toBeNull();
    });
  });
}
