/**
 * The store's contract: tasks that a persona gave. Their outcome is told in the transaction that ends them, in the room
 * that gave them, unless that has forgotten it; what they ask people is decided like a turn's question.
 */
import { describe, expect, it } from 'vitest';
import { type AskedCall, type NewQuestion, offerKeyOf, waitsForCall } from '../../../src/core/access.js';
import { callEntryId } from '../../../src/core/ids.js';
import type { GuppiEvent, JournalWrite } from '../../../src/core/journal.js';
import { phraseOf } from '../../../src/core/phrase.js';
import type { Receipt } from '../../../src/core/receipt.js';
import type { CommandEffect, Store } from '../../../src/core/store.js';
import { type NewTask, TASK_COMPLETED, type TaskParent, taskEventId } from '../../../src/core/task.js';
import type { StoreUnderTest } from '../store.js';
import { added, claimedTask, claimNext, ending, entryOf, FREE, intentOf, newTask } from './tasks.js';
import {
  ANN,
  askedCall,
  begun,
  CHAT,
  chatAt,
  command,
  DAY,
  exchange,
  finish,
  forget,
  journalOf,
  lease,
  looked,
  MINUTE,
  message,
  NOW,
  offerOf,
  pruned,
  receive,
  recovered,
  waitingTexts,
} from './words.js';

const parent = (more: Partial<TaskParent> = {}): TaskParent => ({
  ...{ chatId: CHAT, room: CHAT, personaId: 'default', turnId: 't1', callId: 'spawn', senderId: ANN.id },
  ...{ tainted: false, ...more },
});
const given = (id: string, more: Partial<TaskParent> = {}): NewTask => newTask(id, { parent: parent(more) });

type Told = Extract<Receipt, { kind: 'event' }>;

function told(id: string, more: Partial<Told> = {}): Told {
  return {
    ...{ kind: 'event', id: taskEventId(id), room: CHAT, about: TASK_COMPLETED, text: `${id} is done` },
    ...{ personaId: 'default', at: NOW + 9, content: { status: 'success' } },
    ...{ actionId: callEntryId('t1', 'spawn'), ...more },
  };
}

interface Spawning {
  room?: string;
  personaId?: string;
  ids?: string[];
}

/** A turn that begins a task, and goes on. */
async function spawning(
  store: Store,
  turnId = 't1',
  { room = CHAT, personaId = 'default', ids = ['k1'] }: Spawning = {},
) {
  const [chatId = CHAT, threadId = null] = room.split('/');
  await receive(store, [message(`in-${turnId}`, 'do it', { chat: chatAt(chatId), threadId })]);
  const turn = await begun(store, turnId, { room, personaId });
  const intent = intentOf(turnId, callEntryId(turnId, 'spawn'), { chatId, room, personaId });
  await store.addStep(
    turn.claim,
    turnId,
    {
      ...{ kind: 'answer', text: '', calls: [{ id: 'spawn', name: 'sessions_spawn', arguments: '{}' }] },
    },
    NOW,
  );
  await store.addStep(turn.claim, turnId, { kind: 'call', callId: 'spawn' }, NOW, { entries: [intent] });
  for (const id of ids) {
    expect(await store.addTask(given(id, { chatId, room, personaId, turnId }), FREE)).toEqual({
      kind: 'added',
    });
  }
  return turn;
}

/** The same, and the turn is over. */
async function spawned(store: Store, turnId = 't1', more: Spawning = {}) {
  const turn = await spawning(store, turnId, more);
  expect(await finish(store, turn, turnId)).toBe('finished');
}

async function run(store: Store, ...effects: CommandEffect[]) {
  const { commands } = await receive(store, [command(`c ${effects[0]?.kind}`, 'do')]);
  const id = commands[0]?.id ?? 0;
  await store.takeCommand(id, lease());
  await store.finishCommand({ id, now: NOW, deliveries: [], effects });
}

export function delegatedContract(under: StoreUnderTest): void {
  const me = { id: 'k1', owner: 'me' };
  const call = (turnId = 't1') => entryOf(under.store, callEntryId(turnId, 'spawn'));
  const outcome = (id = callEntryId('t1', 'spawn')): JournalWrite => ({
    ...{ kind: 'outcome', id, status: 'completed', results: { output: 'the report' }, at: NOW + 9 },
  });
  const completions = async () =>
    (await journalOf(under.store))
      .map(({ entry }) => entry)
      .filter((entry): entry is GuppiEvent => entry.type === 'GUPPIEvent')
      .filter((entry) => entry.event_type === 'TaskCompleted');

  describe('a delegated task', () => {
    it('knows where it comes from', async () => {
      await spawned(under.store);
      const from = parent({ tainted: true, senderId: '' });
      await under.store.addTask(newTask('k2', { parent: from }), FREE);
      expect(await under.store.task('k1')).toMatchObject({ parent: parent() });
      expect((await under.store.tasks(1))[0]?.parent).toEqual(from);
    });

    it('is one of a few of its room, and of all; programs’ tasks do not count', async () => {
      const { store } = under;
      const other = await under.another();
      await added(store, 'p1');
      const bounds = { waiting: 1, perRoom: 2, delegated: 3 };
      const give = (one: Store, id: string, room: string) => one.addTask(given(id, { room }), bounds);
      const answers = await Promise.all(
        Array.from({ length: 4 }, (_, n) => give(n % 2 ? store : other, `a${n}`, CHAT)),
      );
      expect(answers.filter(({ kind }) => kind === 'added')).toHaveLength(2);
      expect(answers).toContainEqual({ kind: 'full', bound: 'perRoom' });
      expect(await give(store, 'b1', `${CHAT}/7`)).toEqual({ kind: 'added' });
      expect(await give(store, 'b2', `${CHAT}/7`)).toEqual({ kind: 'full', bound: 'delegated' });
      await claimedTask(store);
      await claimedTask(store);
      expect(await give(store, 'b3', `${CHAT}/7`), 'those that run count').toMatchObject({ kind: 'full' });
      for (const { id, parent: from } of await store.tasks(9))
        if (from) await store.tellTask(id, 'stop', NOW);
      expect(await give(store, 'b4', CHAT)).toEqual({ kind: 'added' });
    });

    it('is claimed apart from programs’ tasks, where its channel is served', async () => {
      const { store } = under;
      await added(store, 'p1');
      await store.addTask(given('k1', { chatId: 'other_1', room: 'other_1' }), FREE);
      await store.addTask(given('k2'), FREE);
      await store.addTask(given('k3'), FREE);
      const claim = (channels: string[]) => store.claimTask({ ...lease(), of: { channels } });
      expect(await claim(['none'])).toBeNull();
      expect(await claim(['test', 'none'])).toMatchObject({ id: 'k2', parent: parent() });
      expect(await claim(['test', 'other'])).toMatchObject({ id: 'k1' });
      expect(await store.claimTask({ ...lease(), of: 'programs' })).toMatchObject({ id: 'p1' });
      expect(await store.claimTask({ ...lease(), of: 'programs' })).toBeNull();
      expect(await claim(['test'])).toMatchObject({ id: 'k3' });
    });

    it('is told in its room when it ends, with its call’s outcome, in one transaction', async () => {
      const { store } = under;
      await spawned(store);
      expect(await call(), 'it outlives its turn').toMatchObject({ status: 'pending' });
      await claimedTask(store);
      const end = ending('k1', { entries: [outcome()], tell: told('k1', { tainted: true }) });
      expect(await store.finishTask(end, 'me')).toBe('finished');
      const { waiting } = await looked(store);
      expect(waiting).toMatchObject([
        {
          ...{ author: { kind: 'gateway', about: TASK_COMPLETED }, text: 'k1 is done', tainted: true },
          ...{ addresses: ['default'], platformMessageId: 'event:task:k1' },
        },
      ]);
      expect(await call()).toMatchObject({ status: 'completed', results: { output: 'the report' } });
      expect(await completions()).toEqual([
        {
          ...{ id: `evt-${waiting[0]?.id}`, type: 'GUPPIEvent', agent: 'default', source: 'GUPPI' },
          ...{ timestamp_event: new Date(NOW + 9).toISOString(), event_type: 'TaskCompleted' },
          ...{ content: { status: 'success' }, action_id: callEntryId('t1', 'spawn') },
        },
      ]);
      // Who comes late tells nothing.
      expect(await store.finishTask({ ...end, tell: told('k1', { id: 'other' }) }, 'me')).toBe('lost');
      expect(await waitingTexts(store)).toEqual(['k1 is done']);
    });

    it('ends its call also where whoever ends it does not', async () => {
      const { store } = under;
      await spawned(store);
      await claimedTask(store);
      const end = { status: 'error', result: null, error: 'It took too long.' } as const;
      await store.finishTask(ending('k1', end), 'me');
      expect(await call()).toMatchObject({ status: 'completed', results: { error: 'It took too long.' } });
    });

    it('comes back in the order in which they end', async () => {
      const { store } = under;
      await spawned(store, 't1', { ids: ['k1', 'k2'] });
      await claimedTask(store);
      await claimedTask(store);
      for (const id of ['k2', 'k1']) {
        expect(await store.finishTask(ending(id, { tell: told(id) }), 'me')).toBe('finished');
      }
      expect(await waitingTexts(store)).toEqual(['k2 is done', 'k1 is done']);
    });

    it('is not told where the chat is unknown, and ends all the same', async () => {
      const { store } = under;
      await store.addTask(given('k1', { chatId: 'test_9', room: 'test_9', turnId: 'none' }), FREE);
      await claimedTask(store);
      const end = ending('k1', { tell: told('k1', { room: 'test_9' }) });
      expect(await store.finishTask(end, 'me')).toBe('finished');
      expect(await store.task('k1')).toMatchObject({ status: 'completed' });
    });
  });

  describe('the call that began a task', () => {
    it('stays pending through a restart, as long as the task is not over', async () => {
      const { store } = under;
      await spawning(store);
      await recovered(store, 'me', NOW);
      expect(await call()).toMatchObject({ status: 'pending' });
      await claimedTask(store);
      await recovered(store, 'me', NOW);
      expect(await call()).toMatchObject({ status: 'pending' });
      const end = { status: 'interrupted', result: null, error: 'The gateway ended.' } as const;
      await store.finishTask(ending('k1', { ...end, tell: told('k1') }), 'me');
      expect(await call()).toMatchObject({ status: 'interrupted', results: { error: 'The gateway ended.' } });
    });

    it('ends at a restart like any other, where nothing came of it', async () => {
      const { store } = under;
      await spawning(store, 't1', { ids: [] });
      await store.addTask(given('k2', { callId: 'another' }), FREE);
      await recovered(store, 'me', NOW);
      expect(await call()).toMatchObject({ status: 'interrupted' });
    });

    it('stays pending when its turn is stopped, and so does the task', async () => {
      const { store } = under;
      await spawning(store);
      await run(store, { kind: 'stop', room: CHAT, turnId: 't1' });
      expect(await call()).toMatchObject({ status: 'pending' });
      await claimedTask(store);
      await store.finishTask(ending('k1', { tell: told('k1') }), 'me');
      expect(await waitingTexts(store)).toEqual(['k1 is done']);
    });
  });

  describe('a reset', () => {
    it('stops the room’s tasks and what they wait for; nothing is told', async () => {
      const { store } = under;
      await spawned(store, 't1', { ids: ['k1', 'k2'] });
      await spawned(store, 't2', { room: `${CHAT}/7`, ids: ['k3'] });
      await added(store, 'k4');
      await claimedTask(store);
      await store.noteTask(me, { entries: [intentOf('k1', undefined, { chatId: CHAT, room: CHAT })] });
      await store.noteTask(me, { question: question('CODE1', 'k1') });
      await forget(store);
      for (const id of ['k1', 'k2']) expect(await store.task(id)).toMatchObject({ status: 'stopped' });
      for (const id of ['k3', 'k4']) expect(await store.task(id)).toMatchObject({ status: 'pending' });
      expect(await call()).toMatchObject({ status: 'interrupted' });
      expect(await call('t2')).toMatchObject({ status: 'pending' });
      expect(await entryOf(store, 'turn-k1-c1')).toMatchObject({ status: 'interrupted' });
      expect(await askedCall(store, 'CODE1')).toMatchObject({ decision: 'ended' });
      const late = { by: 'test_9', commandId: 1, now: NOW + 1, refusal: null };
      expect(await store.decide({ id: 'CODE1', ...late })).toBeNull();
      expect(await store.finishTask(ending('k1', { tell: told('k1') }), 'me')).toBe('lost');
      expect(await store.readRoom(CHAT, 'me', NOW)).toBeNull();
      expect(await completions()).toEqual([]);
    });

    it('reaches a task that its turn gives when it is already forgotten', async () => {
      const { store } = under;
      await spawning(store, 't1', { ids: [] });
      await forget(store);
      expect(await store.addTask(given('k1'), FREE)).toEqual({ kind: 'added' });
      expect(await store.task('k1')).toMatchObject({ status: 'stopped' });
      expect(await claimNext(store)).toBeNull();
    });

    it('does not keep a result away that the next conversation asked for', async () => {
      const { store } = under;
      await spawned(store);
      await forget(store);
      await spawned(store, 't2', { ids: ['k2'] });
      await claimedTask(store);
      await store.finishTask(ending('k2', { tell: told('k2') }), 'me');
      expect(await waitingTexts(store)).toEqual(['k2 is done']);
    });

    it('has the words of its tasks go with the next upkeep, and no others', async () => {
      const { store } = under;
      await spawned(store);
      await claimedTask(store);
      await store.finishTask(ending('k1'), 'me');
      await forget(store);
      await spawned(store, 't2', { ids: ['k2'] });
      await claimedTask(store);
      await store.finishTask(ending('k2'), 'me');
      await pruned(store, NOW - DAY, NOW);
      expect(await store.task('k1')).toBeNull();
      expect(await store.task('k2')).not.toBeNull();
    });

    it('of a room that turned out to be another chat’s stops its tasks', async () => {
      const { store } = under;
      await exchange(store, 't0', 'hello');
      await spawned(store, 't1', { room: `${CHAT}/7`, personaId: 'luna' });
      await receive(store, [{ kind: 'apart', room: `${CHAT}/7` }]);
      expect(await store.task('k1')).toMatchObject({ status: 'stopped' });
    });
  });

  const question = (id: string, taskId: string): NewQuestion => {
    const what = { id, arguments: '{"command":"ls"}' };
    const asked: AskedCall = {
      ...{ ...what, chatId: CHAT, room: CHAT, personaId: 'default', turnId: taskId, callId: 'c1' },
      ...{ tool: 'run', why: 'because', waitsFor: waitsForCall(what), askedAt: NOW, until: NOW + MINUTE },
    };
    const { id: chatId, address, kind } = chatAt(CHAT);
    const said = { personaId: null, speaker: 'coterie', part: 0, replyTo: null };
    const delivery = { ...said, origin: `asked:${id}`, body: { text: 'may it?', marks: [] } };
    const post = { chatId, channel: 'test', address, kind, threadId: null, now: NOW, delivery };
    const offer = {
      ...{ key: `${offerKeyOf(id)}0`, room: CHAT, senderId: null, until: asked.until },
      options: [{ label: 'Allow', command: { name: 'approve', argument: id } }],
    };
    return { call: asked, posts: [post], offers: [offer] };
  };
  const yes = (id: string, more: object = {}) => ({
    ...{ id, by: 'test_9', commandId: 1, now: NOW + 1, refusal: null },
    ...more,
  });
  const no = { refusal: { content: 'denied', told: null } };

  describe('what a task asks people', () => {
    async function asked(): Promise<void> {
      await spawned(under.store);
      await claimedTask(under.store);
      const entries = [intentOf('k1', undefined, { chatId: CHAT, room: CHAT })];
      expect(await under.store.noteTask(me, { question: question('CODE1', 'k1'), entries })).toBe(true);
    }

    it('stands in the chat and is open while the task runs', async () => {
      const { store } = under;
      await asked();
      expect(await askedCall(store, 'code1', NOW)).toEqual({
        ...question('CODE1', 'k1').call,
        isOpen: true,
        decision: null,
      });
      expect(await store.askedCalls('open', NOW)).toHaveLength(1);
      expect((await store.nextDelivery(CHAT, 'me', NOW))?.body.text).toBe('may it?');
      expect(await offerOf(store, `${offerKeyOf('CODE1')}0`)).not.toBeNull();
      expect(await entryOf(store, 'turn-k1-c1')).toMatchObject({ status: 'pending' });
      expect(await askedCall(store, 'CODE1')).toMatchObject({ decision: null });
      expect(await askedCall(store, 'CODE1', NOW + MINUTE)).toMatchObject({ isOpen: false });
      await store.finishTask(ending('k1'), 'me');
      expect(await store.askedCalls('open', NOW)).toEqual([]);
      expect(await askedCall(store, 'CODE1')).toMatchObject({ decision: 'ended' });
      expect(await offerOf(store, `${offerKeyOf('CODE1')}0`)).toBeNull();
      expect(await store.decide(yes('CODE1'))).toBeNull();
    });

    it('is not asked for a task that is over', async () => {
      const { store } = under;
      await spawned(store);
      expect(await store.noteTask(me, { question: question('CODE1', 'k1') })).toBe(false);
      await claimedTask(store);
      await store.tellTask('k1', 'stop', NOW);
      expect(await store.noteTask(me, { question: question('CODE1', 'k1') })).toBe(false);
      expect(await askedCall(store, 'CODE1', NOW)).toBeNull();
      expect(await store.nextDelivery(CHAT, 'me', NOW)).toBeNull();
    });

    it('is heard of by whoever runs the task when it is decided', async () => {
      const { store } = under;
      await asked();
      let heard = 0;
      const end = store.watch(() => heard++, 'task');
      await store.decide(yes('CODE1'));
      await expect.poll(() => heard, { timeout: 5_000 }).toBeGreaterThan(0);
      end();
    });

    it('is decided once, also by two processes', async () => {
      const { store } = under;
      await asked();
      const other = await under.another();
      const all = await Promise.all([
        other.decide(yes('CODE1')),
        store.decide(yes('CODE1', { commandId: 2, ...no })),
      ]);
      expect(all.filter((room) => room !== null)).toEqual([CHAT]);
      expect(await askedCall(store, 'CODE1')).toMatchObject({
        decision: all[0] === CHAT ? 'approved' : 'denied',
      });
      expect(await entryOf(store, 'turn-k1-c1'), 'it will run').toMatchObject({ status: 'pending' });
      expect(await askedCall(store, 'CODE1', NOW)).toMatchObject({ isOpen: false, arguments: '' });
    });

    it('gets a no, with a word in the chat; the same command gets the same answer again', async () => {
      const { store } = under;
      await asked();
      const [post] = question('CODE2', 'k1').posts;
      const refusal = { content: 'denied', told: post ?? null };
      for (let tries = 0; tries < 2; tries++) {
        expect(await store.decide(yes('CODE1', { refusal }))).toBe(CHAT);
      }
      expect(await store.decide(yes('CODE1', { commandId: 7 }))).toBeNull();
      expect(await askedCall(store, 'CODE1')).toMatchObject({ decision: 'denied' });
      const { undelivered } = await store.counts();
      expect(undelivered, 'the question and the word').toBe(2);
    });

    it('expires, once', async () => {
      const { store } = under;
      await asked();
      const late = { id: 'CODE1', by: null, now: NOW + MINUTE, refusal: { content: 'expired', told: null } };
      expect(await store.decide(yes('CODE1', { now: NOW + MINUTE }))).toBeNull();
      expect(await store.decide(late)).toBe(CHAT);
      expect(await store.decide(late)).toBeNull();
      expect(await askedCall(store, 'CODE1')).toMatchObject({ decision: 'expired' });
    });

    it('is unknown where it was never asked', async () => {
      expect(await askedCall(under.store, 'CODE9')).toBeNull();
    });
  });

  it('words are erased from what tasks were asked, did and answered, in their chat alone', async () => {
    const { store } = under;
    await spawned(store);
    const request = {
      messages: [{ role: 'user' as const, content: 'buy swordfish and bread' }],
      ...{ plan: { goal: 'swordfish', steps: [{ id: 's1', title: 'swordfish first', status: 'pending' }] } },
      ...{ artifacts: [{ id: 'a1', title: 'my swordfish' }], memory: ['likes swordfish'] },
      viap: { task_id: 'x', context: { notes: ['swordfish', { swordfish: 1 }] } },
    };
    await store.addTask({ ...newTask('k2', { parent: parent(), goal: 'swordfish' }), request }, FREE);
    await added(store, 'k3', { goal: 'swordfish of a program' });
    await claimedTask(store);
    await claimedTask(store);
    const k2 = { id: 'k2', owner: 'me' };
    for (const text of ['more swordfish', 'less']) await store.tellTask('k1', { mode: 'steer', text }, NOW);
    await store.noteTask(k2, {
      events: [
        { at: 1, kind: 'tool-call', callId: 'c', tool: 'shell', arguments: '{"swordfish":"swordfish"}' },
        { at: 2, kind: 'tool-result', callId: 'c', tool: 'shell', failed: false, content: 'swordfish' },
      ],
    });
    const phrase = phraseOf('swordfish');
    expect((await store.findWords(CHAT, phrase)).others).toBe(4);
    const result = {
      text: 'a swordfish',
      summary: 'swordfish',
      artifactRefs: [{ id: 'a1', title: 'swordfish' }],
    };
    await store.finishTask(ending('k2', { status: 'error', result, error: 'no swordfish' }), 'me');
    await store.eraseWords(CHAT, phrase, ANN.id);
    const rest = JSON.stringify([...[await store.task('k2'), await store.taskEvents('k2')]]);
    expect(rest).not.toContain('swordfish');
    const told = await store.takeTaskMessages(me, ['steer']);
    expect(told).toEqual([expect.stringMatching(/^more (?!swordfish)/), 'less']);
    const { request: erased } = (await store.task('k2')) ?? {};
    expect(erased).toMatchObject({
      messages: [{ role: 'user', content: expect.stringContaining('and bread') }],
      plan: { steps: [{ id: 's1', status: 'pending' }] },
      artifacts: [{ id: 'a1' }],
      viap: { task_id: 'x' },
    });
    expect(await store.taskEvents('k2')).toHaveLength(5);
    expect(await store.task('k1')).toMatchObject({ goal: 'water the roses', request: newTask('k1').request });
    expect(await store.task('k3')).toMatchObject({ goal: 'swordfish of a program' });
  });
}
