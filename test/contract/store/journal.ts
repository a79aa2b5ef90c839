/** The store's contract: the journal. Entries come with what they tell of, in one transaction, and are ended once. */
import { describe, expect, it } from 'vitest';
import { callEntryId } from '../../../src/core/ids.js';
import type { JournalEntry, JournalWrite, MattTurn, Results } from '../../../src/core/journal.js';
import type { CommandEffect } from '../../../src/core/store.js';
import type { Step } from '../../../src/core/transcript.js';
import { ENTRY } from '../../harness/journal-shapes.js';
import type { StoreUnderTest } from '../store.js';
import {
  begun,
  CHAT,
  command,
  delivery,
  edit,
  exchange,
  finish,
  forget,
  HOUR,
  journalOf,
  lease,
  MINUTE,
  message,
  NOW,
  nextOf,
  pruned,
  receive,
  recovered,
} from './words.js';

export function journalContract(under: StoreUnderTest): void {
  const placed = { chatId: CHAT, room: CHAT, personaId: 'default', turnId: null };
  function intent(id: string, turnId: string | null = null, more: Partial<MattTurn> = {}): JournalWrite {
    const entry: MattTurn = {
      ...{ id, type: 'MattTurn', agent: 'default', parent_event_id: null },
      ...{ timestamp_intent: new Date(NOW).toISOString(), status: 'pending', reasoning: 'I do.' },
      ...{ action: { tool: 'shell', command: 'date' }, results: null },
      ...more,
    };
    return { kind: 'intent', entry, ...placed, turnId };
  }
  const outcome = (id: string, results: Results = { output: 'done' }): JournalWrite => ({
    ...{ kind: 'outcome', id, status: 'completed', results, at: NOW + 5 },
  });
  const CALL: Step = { kind: 'call', callId: 'c1', name: 'shell' } as Step;
  const RESULT: Step = { kind: 'result', callId: 'c1', content: 'done', failed: false };
  const waiting = { kind: 'waiting', callId: 'c1', waitsFor: 'k', until: null } as const;
  const C1 = callEntryId('t1', 'c1');

  async function entries(): Promise<JournalEntry[]> {
    const all = await journalOf(under.store);
    for (const { entry } of all) expect(ENTRY.safeParse(entry).error, JSON.stringify(entry)).toBeUndefined();
    return all.map(({ entry }) => entry);
  }
  async function entry(id: string): Promise<JournalEntry | undefined> {
    return (await entries()).find((one) => one.id === id);
  }
  async function events() {
    return (await entries()).filter((one) => one.type === 'GUPPIEvent');
  }
  async function sends() {
    return (await entries()).filter((one) => one.type === 'MattTurn' && one.action.tool === 'send_message');
  }
  async function run(...effects: CommandEffect[]) {
    const { commands } = await receive(under.store, [command(`c ${JSON.stringify(effects)}`, 'do')]);
    const id = commands[0]?.id ?? 0;
    await under.store.takeCommand(id, lease());
    return under.store.finishCommand({ id, now: NOW, deliveries: [], effects });
  }
  /** A turn that has begun a call. */
  async function calling(turnId = 't1', owner = 'me') {
    await receive(under.store, [message(`in-${turnId}`, 'do it')]);
    const turn = await begun(under.store, turnId, { owner });
    const id = callEntryId(turnId, 'c1');
    expect(await under.store.addStep(turn.claim, turnId, CALL, NOW, { entries: [intent(id, turnId)] })).toBe(
      true,
    );
    return turn;
  }

  describe('the journal', () => {
    it('holds an event for each message that comes in, once', async () => {
      const said = message('1', 'hi');
      await receive(under.store, [said, message('2', 'you', { addresses: ['luna'] })]);
      await receive(under.store, [said]);
      expect(await events()).toEqual([
        {
          ...{ id: 'evt-1', type: 'GUPPIEvent', agent: 'default', event_type: 'NewInboxMessage' },
          ...{ source: 'test:1', content: 'hi', from: 'test_ann' },
          timestamp_event: new Date(NOW).toISOString(),
        },
        expect.objectContaining({ id: 'evt-2', agent: 'luna', content: 'you' }),
      ]);
    });

    it('holds one for an edit that is a message of its own', async () => {
      await receive(under.store, [message('1', 'hi')]);
      await begun(under.store, 't1');
      await receive(under.store, [edit('1', 'hello')]);
      expect((await events()).map(({ content }) => content)).toEqual(['hi', 'hello']);
    });

    it('holds an alarm for what a schedule tells, and a digest with what it says; commands are none', async () => {
      await exchange(under.store, 't1', 'hi');
      const told = { kind: 'event', room: CHAT, personaId: 'luna', at: NOW } as const;
      const content = { start_ts: 1, end_ts: 2, msg_count: 1, participants: ['Ann'], summary: 'Hi.' };
      await receive(under.store, [
        { ...told, id: 'a', about: 'schedule', text: 'tea' },
        { ...told, id: 'b', about: 'digest', text: 'Hi.', content },
        command('c', 'help'),
      ]);
      expect((await events()).slice(1)).toMatchObject([
        { event_type: 'AlarmClock', agent: 'luna', source: 'schedule', content: 'tea' },
        { event_type: 'SocialDigest', source: 'volition:social_digests', content },
      ]);
    });

    it('holds each message that a turn sends: pending, then how its delivery ended', async () => {
      await exchange(under.store, 't1', 'hi', {
        deliveries: [0, 1, 2].map((part) => delivery('turn:t1', `part ${part}`, { part })),
      });
      const intended = {
        ...{ agent: 'default', parent_event_id: 'evt-1', status: 'pending', results: null, reasoning: '' },
        timestamp_intent: new Date(NOW).toISOString(),
      };
      const action = (text: string) => ({ tool: 'send_message', chat_id: CHAT, text });
      expect(await sends()).toMatchObject(
        [0, 1, 2].map((n) => ({ ...intended, action: action(`part ${n}`) })),
      );
      for (const end of ['sent', 'refused', 'dropped'] as const) {
        const { id = 0 } = (await nextOf(under.store)) ?? {};
        await under.store.claimDelivery(id, lease());
        if (end === 'sent') await under.store.settle(id, { kind: 'sent', platformMessageId: 'p7' }, NOW + 9);
        else await under.store.settle(id, { kind: end, reason: `it was ${end}` }, NOW + 9);
      }
      const ended = { status: 'completed', timestamp_outcome: new Date(NOW + 9).toISOString() };
      expect(await sends()).toMatchObject([
        { ...ended, results: { output: { message_id: 'p7' } }, action: action('part 0') },
        { ...ended, results: { error: 'it was refused' } },
        { ...ended, results: { error: 'it was dropped' } },
      ]);
    });

    it('holds what a tool sends beside the answer, but no command’s answer and no notice', async () => {
      await exchange(under.store, 't1', 'hi');
      const to = {
        chatId: CHAT,
        channel: 'test',
        address: '1',
        threadId: null,
        kind: 'group',
        now: NOW,
      } as const;
      for (const origin of ['tool:t1:c1', 'notice:t1', 'pairing:1', 'tool:t1:c1'])
        await under.store.post({ ...to, delivery: delivery(origin, origin) });
      await under.store.post({ ...to, delivery: delivery('turn:t1', 'a word', { personaId: null }) });
      expect(await sends()).toMatchObject([{ action: { text: 'tool:t1:c1' }, parent_event_id: 'evt-1' }]);
    });

    it('holds a call before it runs, and its outcome with its result; a second one changes nothing', async () => {
      const turn = await calling();
      expect(await entry(C1)).toMatchObject({ status: 'pending', results: null });
      expect(await entry(C1)).not.toHaveProperty('timestamp_outcome');
      const ended: JournalWrite[] = [outcome(C1, { stdout: 'x', stderr: '', code: 0 })];
      await under.store.addStep(turn.claim, 't1', RESULT, NOW, { entries: ended });
      await under.store.addStep(turn.claim, 't1', RESULT, NOW, {
        entries: [outcome(C1, { error: 'later' })],
      });
      expect(await entry(C1)).toMatchObject({
        ...{ status: 'completed', results: { stdout: 'x', stderr: '', code: 0 } },
        timestamp_outcome: new Date(NOW + 5).toISOString(),
      });
    });

    it('ignores an outcome of what it does not have, and an intent that it has', async () => {
      await under.store.append([outcome('turn-unknown'), intent('turn-a')], 'me');
      await under.store.append([intent('turn-a', null, { reasoning: 'other' })], 'me');
      expect(await entries()).toMatchObject([{ id: 'turn-a', reasoning: 'I do.' }]);
    });

    it('holds nothing of a claim that was lost', async () => {
      const turn = await calling();
      await run({ kind: 'stop', room: CHAT, turnId: 't1' });
      const more = [intent('turn-t1-c2', 't1'), outcome(C1)];
      expect(await under.store.addStep(turn.claim, 't1', RESULT, NOW, { entries: more })).toBe(false);
      expect(await entry('turn-t1-c2')).toBeUndefined();
      expect(await entry(C1)).toMatchObject({
        status: 'interrupted',
        results: { error: expect.any(String) },
      });
    });

    it('ends what a turn leaves behind that is given up, and what it answers is ended by itself', async () => {
      const turn = await calling();
      await finish(under.store, turn, 't1', {
        outcome: 'failed',
        deliveries: [delivery('turn:t1', 'sorry')],
      });
      expect(await entry(C1)).toMatchObject({ status: 'interrupted' });
      expect(await sends()).toMatchObject([{ status: 'pending' }]);
    });

    it('interrupts what a dead process left, but not what waits for a person, is sent, or belongs to others', async () => {
      await calling('t1');
      const other = await begunElsewhere();
      await under.store.append([intent('turn-flush')], 'me');
      await under.store.append([intent('turn-others')], 'living');
      await recovered(under.store);
      expect(await entry(C1)).toMatchObject({
        status: 'interrupted',
        results: { error: expect.stringContaining('not done again') },
      });
      expect(await entry('turn-flush')).toMatchObject({ status: 'interrupted' });
      expect(await entry('turn-others')).toMatchObject({ status: 'pending' });
      expect(await entry(callEntryId('t2', 'c1')), 'it waits').toMatchObject({ status: 'pending' });
      expect(await sends()).toMatchObject([{ status: 'pending' }]);
      const before = await entries();
      await recovered(under.store);
      expect(await entries(), 'once').toEqual(before);
      expect(other).toBe(true);
    });

    /** A suspended turn in one thread, and in another a reply that is not sent. */
    async function begunElsewhere(): Promise<boolean> {
      await receive(under.store, [message('s', 'wait', { threadId: '7' })]);
      const turn = await begun(under.store, 't2', { room: `${CHAT}/7` });
      const entries = [intent(callEntryId('t2', 'c1'), 't2')];
      await exchange(under.store, 't3', 'hi', {
        room: `${CHAT}/8`,
        deliveries: [delivery('turn:t3', 'to be sent')],
      });
      return under.store.addStep(turn.claim, 't2', waiting, NOW, { entries });
    }

    it('interrupts the turn of a process whose lease has expired', async () => {
      await calling('t1', 'another');
      await recovered(under.store, 'me', NOW + 30_000);
      expect(await entry(C1)).toMatchObject({ status: 'pending' });
      await recovered(under.store, 'me', NOW + 10 * MINUTE);
      expect(await entry(C1)).toMatchObject({ status: 'interrupted' });
    });

    it('holds the result that a turn waited for, and the event that wakes it, once; also if it came early', async () => {
      const turn = await calling();
      const resume = { kind: 'resume', waitsFor: 'k', content: 'yes', failed: false } as const;
      await under.store.addStep(turn.claim, 't1', waiting, NOW);
      await receive(under.store, [resume, resume]);
      expect(await entry(C1)).toMatchObject({ status: 'completed', results: { output: 'yes' } });
      expect((await events()).slice(1)).toMatchObject([
        { event_type: 'TaskCompleted', action_id: C1, content: { status: 'success', output: 'yes' } },
      ]);
    });

    it('tells all phases in the order in which they came, from any mark on', async () => {
      await under.store.append([intent('turn-a'), intent('turn-b')], 'me');
      await under.store.append([outcome('turn-b')], 'me');
      await under.store.append([intent('turn-c'), outcome('turn-a')], 'me');
      const told: string[] = [];
      let after = 0;
      for (;;) {
        const [phase] = await under.store.journal({ after, most: 1 });
        if (!phase) break;
        after = phase.mark;
        told.push(`${phase.entry.id} ${'status' in phase.entry ? phase.entry.status : ''}`);
        expect(ENTRY.safeParse(phase.entry).error).toBeUndefined();
      }
      const all = ['a pending', 'b pending', 'b completed', 'c pending', 'a completed'];
      expect(told).toEqual(all.map((each) => `turn-${each}`));
      const marks = (await under.store.journal({ after: 2, most: 9 })).map(({ mark }) => mark);
      expect(marks).toEqual([3, 4, 5]);
    });

    it('says what the files do not have, and what they have to write anew', async () => {
      await under.store.append([intent('turn-a'), intent('turn-b')], 'me');
      const [a, b] = await under.store.unfiled(0);
      expect([a, b]).toMatchObject([{ isPending: true, entry: { id: 'turn-a' } }, { isStale: false }]);
      expect(await under.store.unfiled(a?.changed ?? 0)).toMatchObject([{ entry: null }, { n: b?.n }]);
      await under.store.append([outcome('turn-b')], 'me');
      await under.store.filed([a, b].filter((one) => one !== undefined));
      // The outcome came after it was read, so the archive has an older form.
      expect(await under.store.unfiled(null)).toMatchObject([
        { n: b?.n, id: 'turn-b', isPending: false, isStale: true, entry: null },
      ]);
      await forget(under.store);
      expect(await under.store.unfiled(0)).toMatchObject([
        { n: a?.n, isStale: true, entry: { action: { tool: 'shell' } } },
        { n: b?.n, isStale: true },
      ]);
    });

    it('tells whoever watches, also of what was sent', async () => {
      let told = 0;
      const unwatch = under.store.watch(() => told++, 'journal');
      await exchange(under.store, 't1', 'hi', { deliveries: [delivery('turn:t1', 'x')] });
      await expect.poll(() => told).toBeGreaterThan(0);
      const before = told;
      await under.store.settle(
        (await nextOf(under.store))?.id ?? 0,
        { kind: 'sent', platformMessageId: 'p' },
        NOW,
      );
      await expect.poll(() => told).toBeGreaterThan(before);
      unwatch();
      const after = told;
      await under.store.append([intent('turn-a')], 'me');
      await new Promise((resolve) => setTimeout(resolve, 20));
      expect(told).toBe(after);
    });

    it('loses what it says when that is forgotten, of that persona, room and time', async () => {
      await exchange(under.store, 't1', 'secret', { deliveries: [delivery('turn:t1', 'secret reply')] });
      await under.store.append([intent('turn-flush', null, { reasoning: 'secret' })], 'me');
      await exchange(under.store, 't2', 'elsewhere', { room: `${CHAT}/7` });
      await exchange(under.store, 't3', 'to luna', { personaId: 'luna' });
      await receive(under.store, [message('l', 'for luna', { addresses: ['luna'] })]);
      await forget(under.store);
      await exchange(under.store, 't4', 'afterwards');
      const text = JSON.stringify(await entries());
      expect(text).not.toContain('secret');
      for (const kept of ['elsewhere', 'for luna', 'afterwards']) expect(text).toContain(kept);
      expect(await sends()).toMatchObject([{ action: { tool: 'send_message' } }]);
      await under.store.settle(
        (await nextOf(under.store))?.id ?? 0,
        { kind: 'sent', platformMessageId: 'p' },
        NOW,
      );
    });

    it('keeps what is not old, and everything pending', async () => {
      await under.store.append([intent('turn-a'), intent('turn-b'), outcome('turn-b')], 'me');
      await under.store.append([intent('turn-c'), outcome('turn-c'), intent('turn-d')], 'me');
      await pruned(under.store, NOW + HOUR, NOW + HOUR, 1);
      // The newest change stays, so that no number is given twice.
      const left = (await entries()).map(({ id }) => id);
      expect(left.sort()).toEqual(['turn-a', 'turn-d']);
    });

    it('of a restored copy has nothing under way, and its files are made anew', async () => {
      await exchange(under.store, 't1', 'hi', { deliveries: [delivery('turn:t1', 'x')] });
      await under.store.append([intent('turn-a')], 'me');
      await under.store.filed(await under.store.unfiled(null));
      await under.store.quieten();
      const turns = (await entries()).filter((one) => one.type === 'MattTurn');
      expect(turns.map(({ status, results }) => [status, results])).toEqual([
        ['interrupted', { error: 'restored from a backup' }],
        ['interrupted', { error: 'restored from a backup' }],
      ]);
      expect(await under.store.unfiled(null)).toHaveLength(3);
    });
  });
}
