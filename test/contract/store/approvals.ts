/** The store's contract: calls that wait for a person, and entries of the journal that end with their turn. */
import { describe, expect, it } from 'vitest';
import { type AskedCall, offerKeyOf, waitsForCall } from '../../../src/core/access.js';
import { callEntryId } from '../../../src/core/ids.js';
import type { JournalWrite, MattTurn } from '../../../src/core/journal.js';
import type { CommandEffect, Store } from '../../../src/core/store.js';
import type { Step } from '../../../src/core/transcript.js';
import type { StoreUnderTest } from '../store.js';
import {
  askedCall,
  begun,
  CHAT,
  chatAt,
  command,
  delivery,
  finish,
  journalOf,
  lease,
  looked,
  MINUTE,
  message,
  NOW,
  offerOf,
  pruned,
  receive,
} from './words.js';

export function approvalContract(under: StoreUnderTest): void {
  const ANSWER: Step = {
    kind: 'answer',
    text: '',
    calls: [{ id: 'c1', name: 'run', arguments: '{"command":"ls"}' }],
  };
  const place = { chatId: CHAT, room: CHAT, personaId: 'default' };
  const intent = (turnId: string): JournalWrite => ({
    ...{ kind: 'intent', ...place, turnId },
    entry: {
      ...{ id: callEntryId(turnId, 'c1'), type: 'MattTurn', agent: 'default', parent_event_id: null },
      ...{ timestamp_intent: new Date(NOW).toISOString(), status: 'pending', reasoning: '' },
      ...{ action: { tool: 'run', command: 'ls' }, results: null },
    },
  });
  const asking = (id: string, turnId: string): AskedCall => {
    const what = { id, arguments: '{"command":"ls"}' };
    return {
      ...{ ...what, ...place, turnId, callId: 'c1', tool: 'run', why: 'because' },
      ...{ waitsFor: waitsForCall(what), askedAt: NOW, until: NOW + MINUTE },
    };
  };

  /** A turn that waits for a person's yes. */
  async function asked(id = 'CODE1', turnId = 't1'): Promise<AskedCall> {
    await receive(under.store, [message(`in-${turnId}`, 'run it')]);
    const { claim } = await begun(under.store, turnId);
    await under.store.addStep(claim, turnId, ANSWER, NOW);
    const call = asking(id, turnId);
    const { id: chatId, address, kind } = chatAt(CHAT);
    const said = {
      personaId: null,
      speaker: 'coterie',
      part: 0,
      body: { text: 'may it?', marks: [] },
      replyTo: null,
    };
    const post = {
      ...{ chatId, channel: 'test', address, kind, threadId: null, now: NOW },
      delivery: { origin: `asked:${id}`, ...said },
    };
    const offer = {
      ...{ key: `${offerKeyOf(id)}0`, room: CHAT, senderId: null, until: call.until },
      options: [{ label: 'Allow', command: { name: 'approve', argument: id } }],
    };
    const step = { kind: 'waiting', callId: 'c1', waitsFor: call.waitsFor, until: call.until } as const;
    const question = { call, posts: [post], offers: [offer] };
    expect(await under.store.addStep(claim, turnId, step, NOW, { entries: [intent(turnId)], question })).toBe(
      true,
    );
    return call;
  }

  const yes = (id: string, more: object = {}) => ({
    ...{ id, by: 'test_9', commandId: 1, now: NOW + 1, refusal: null },
    ...more,
  });
  const no = { refusal: { content: 'denied', told: null } };
  async function stepsOf(store: Store): Promise<Step[]> {
    const seen = await looked(store);
    const claimed = await store.claim(seen, lease());
    return claimed?.turn?.steps ?? [];
  }
  const entry = async (turnId = 't1') =>
    (await journalOf(under.store))
      .map((each) => each.entry)
      .find((each): each is MattTurn => each.id === callEntryId(turnId, 'c1'));
  async function run(...effects: CommandEffect[]) {
    const { commands } = await receive(under.store, [command(`c ${effects[0]?.kind}`, 'do')]);
    const id = commands[0]?.id ?? 0;
    await under.store.takeCommand(id, lease());
    await under.store.finishCommand({ id, now: NOW, deliveries: [], effects });
  }

  describe('a call that waits for a person', () => {
    it('is stored with its turn’s step, its question and its intent, and is open until its time', async () => {
      const call = await asked();
      expect(await askedCall(under.store, 'code1', NOW)).toEqual({ ...call, isOpen: true, decision: null });
      expect(await under.store.askedCalls('open', NOW)).toEqual([{ ...call, isOpen: true, decision: null }]);
      expect((await under.store.nextDelivery(CHAT, 'me', NOW))?.body.text).toBe('may it?');
      expect(await offerOf(under.store, `${offerKeyOf('CODE1')}0`)).not.toBeNull();
      expect(await entry()).toMatchObject({ status: 'pending' });
      expect(await askedCall(under.store, 'CODE1', call.until)).toMatchObject({ isOpen: false });
      expect(await under.store.askedCalls('open', call.until)).toEqual([]);
      expect(await askedCall(under.store, 'CODE2', NOW)).toBeNull();
    });

    it('goes on with a yes: its turn is ready, with exactly these arguments, and waits for no result', async () => {
      await asked();
      expect(await under.store.decide(yes('code1'))).toBe(CHAT);
      const { alarms, rooms } = await under.store.pending({ owner: 'me', channels: ['test'], now: NOW });
      expect({ alarms, rooms }).toEqual({ alarms: [], rooms: [CHAT] });
      expect((await stepsOf(under.store)).at(-1)).toEqual({
        ...{ kind: 'approved', callId: 'c1', arguments: '{"command":"ls"}', by: 'test_9' },
      });
      expect(await entry()).toMatchObject({ status: 'pending' });
      // Its buttons are over, and what was asked is not kept.
      expect(await offerOf(under.store, `${offerKeyOf('CODE1')}0`)).toBeNull();
      expect(await askedCall(under.store, 'CODE1', NOW)).toMatchObject({
        isOpen: false,
        arguments: '',
        why: '',
      });
    });

    it('is decided once, also by two gateways at once; whoever asks again gets the same answer', async () => {
      await asked();
      const other = await under.another();
      const all = await Promise.all([
        under.store.decide(yes('CODE1')),
        other.decide(yes('CODE1', { commandId: 2, ...no })),
      ]);
      expect(all.filter((room) => room !== null)).toEqual([CHAT]);
      const first = all[0] === CHAT ? { commandId: 1 } : { commandId: 2, ...no };
      expect(await under.store.decide(yes('CODE1', first))).toBe(CHAT);
      expect(await under.store.decide(yes('CODE1', { commandId: 3 }))).toBeNull();
      expect((await stepsOf(under.store)).filter(({ kind }) => kind === 'approved')).toHaveLength(1);
    });

    it('gets a result by a no, which ends its entry; a yes is too late then', async () => {
      await asked();
      expect(await under.store.decide(yes('CODE1', no))).toBe(CHAT);
      expect(await under.store.decide(yes('CODE1', { commandId: 2 }))).toBeNull();
      expect((await stepsOf(under.store)).at(-1)).toEqual({
        ...{ kind: 'result', callId: 'c1', content: 'denied', failed: true },
      });
      expect(await entry()).toMatchObject({ status: 'completed', results: { error: 'denied' } });
    });

    it('ends at its time, once; a yes is too late then, even before that is noticed', async () => {
      const { until } = await asked();
      expect(await under.store.decide(yes('CODE1', { now: until }))).toBeNull();
      const late = { id: 'CODE1', by: null, now: until, refusal: { content: 'expired', told: null } };
      expect(await under.store.decide(late)).toBe(CHAT);
      expect(await under.store.decide(late)).toBeNull();
      expect((await stepsOf(under.store)).at(-1)).toMatchObject({ kind: 'result', content: 'expired' });
    });

    it.each<[string, (upTo: number) => CommandEffect]>([
      ['a reset', (upTo) => ({ kind: 'reset', room: CHAT, personaId: 'default', upTo })],
      ['a stop', () => ({ kind: 'stop', room: CHAT, turnId: 't1' })],
    ])('is void after %s, and its entry is interrupted', async (_what, effect) => {
      const { until } = await asked();
      await run(effect(99));
      expect(await under.store.decide(yes('CODE1'))).toBeNull();
      expect(await under.store.askedCalls('open', NOW)).toEqual([]);
      const late = { id: 'CODE1', by: null, now: until, refusal: { content: 'expired', told: null } };
      expect(await under.store.decide(late)).toBeNull();
      expect(await askedCall(under.store, 'CODE1', NOW)).toMatchObject({ isOpen: false, arguments: '' });
      expect(await entry()).toMatchObject({ status: 'interrupted', results: { error: expect.any(String) } });
    });

    it('is unknown under another id', async () => {
      await asked();
      expect(await under.store.decide(yes('CODE2'))).toBeNull();
      expect(await askedCall(under.store, 'CODE1', NOW)).toMatchObject({ isOpen: true });
    });

    it('goes with its retention', async () => {
      const { until } = await asked();
      await under.store.decide(yes('CODE1', no));
      await pruned(under.store, until + MINUTE);
      expect(await askedCall(under.store, 'CODE1', NOW)).toBeNull();
    });
  });

  describe('the entry of a call', () => {
    it('ends with its turn where that is given up, and with nothing else', async () => {
      await receive(under.store, [message('1', 'go')]);
      const turn = await begun(under.store, 't1');
      await under.store.addStep(turn.claim, 't1', ANSWER, NOW);
      await under.store.addStep(turn.claim, 't1', { kind: 'call', callId: 'c1' }, NOW, {
        entries: [intent('t1')],
      });
      // The message of a turn that is being sent is delivery’s.
      const to = {
        chatId: CHAT,
        channel: 'test',
        address: '1',
        threadId: null,
        kind: 'group',
        now: NOW,
      } as const;
      await under.store.post({ ...to, delivery: delivery('tool:t1:aside', 'wait') });
      await finish(under.store, turn, 't1', { outcome: 'parked', reply: null });
      expect(await entry()).toMatchObject({ status: 'interrupted' });
      const all = (await journalOf(under.store)).map((each) => each.entry);
      expect(all.find(({ id }) => id.includes('-send-'))).toMatchObject({ status: 'pending' });
    });

    it('is not there without the claim under which it would be done', async () => {
      await receive(under.store, [message('1', 'go')]);
      const { claim } = await begun(under.store, 't1');
      await under.store.hold(claim, null);
      expect(
        await under.store.addStep(claim, 't1', { kind: 'call', callId: 'c1' }, NOW, {
          entries: [intent('t1')],
        }),
      ).toBe(false);
      expect(await entry()).toBeUndefined();
    });
  });
}
