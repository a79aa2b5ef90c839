/** `BoardFeed`: the log of a room, a page at a time, with all that people saw there. */
import { describe, expect, it } from 'vitest';
import { type AskedCall, waitsForCall } from '../../../src/core/access.js';
import type { LoggedRow, LogPage, LogPlace } from '../../../src/core/board.js';
import type { NewDelivery } from '../../../src/core/channel.js';
import { phraseOf } from '../../../src/core/phrase.js';
import type { Step } from '../../../src/core/transcript.js';
import type { StoreUnderTest } from '../store.js';
import {
  ANN,
  begun,
  CHAT,
  chatAt,
  claimed,
  command,
  delivery,
  edit,
  exchange,
  finish,
  forget,
  HOUR,
  lease,
  MINUTE,
  message,
  NOW,
  nextOf,
  receive,
} from './words.js';

const CALL: Step = {
  kind: 'answer',
  text: '',
  calls: [{ id: 'c1', name: 'write', arguments: '{"tier":1}' }],
};

export function boardContract(under: StoreUnderTest): void {
  const log = (from: LogPlace = 'newest', most = 100, room = CHAT): Promise<LogPage> =>
    under.store.log({ room, from, most });
  const rows = async (from: LogPlace = 'newest', most = 100, room = CHAT) =>
    (await log(from, most, room)).rows;
  const texts = async (from: LogPlace = 'newest', most = 100) =>
    (await rows(from, most)).map(({ text }) => text);
  const newest = async () => (await rows()).at(-1) as LoggedRow;
  const { id: chatId, address, kind } = chatAt(CHAT);
  const post = (said: NewDelivery, now = NOW) =>
    under.store.post({ chatId, channel: 'test', address, kind, threadId: null, now, delivery: said });
  const notice = (n: number, text: string, now = NOW) =>
    post(delivery(`notice:${n}`, text, { personaId: null, speaker: 'coterie' }), now);

  /** A command with its answer. */
  async function commanded(id: string, name: string, argument: string, answer: NewDelivery[], now = NOW) {
    const { commands } = await receive(under.store, [command(id, name, argument)], { now });
    const taken = await under.store.takeCommand(commands[0]?.id ?? 0, lease());
    const deliveries = answer.map((said) => ({ ...said, origin: `command:${taken?.id}` }));
    await under.store.finishCommand({ id: taken?.id ?? 0, now, deliveries, effects: [] });
    return taken?.id ?? 0;
  }

  /** All rows, read from one end by pages of that size. */
  async function walked(way: 'before' | 'after', most: number): Promise<string[]> {
    const found: string[] = [];
    let page = await log(way === 'before' ? 'newest' : 'first', most);
    for (let n = 0; n < 200; n++) {
      const keys = page.rows.map(({ key }) => key);
      if (way === 'before') found.unshift(...keys);
      else found.push(...keys);
      const next = way === 'before' ? page.before : page.isEnd ? null : page.after;
      if (next === null) return found;
      page = await log(way === 'before' ? { before: next } : { after: next }, most);
    }
    throw new Error('the pages have no end');
  }

  describe('the log of a room', () => {
    it('is what was said in it, in order, and nowhere else', async () => {
      const { store } = under;
      await exchange(store, 't1', 'hello', { deliveries: [delivery('turn:t1', 'reply of t1')] });
      await receive(store, [
        message('50', 'in a thread', { threadId: '7' }),
        message('51', 'elsewhere', { chat: chatAt('test_2') }),
      ]);
      expect(await rows()).toEqual([
        expect.objectContaining({
          key: expect.stringMatching(/^m\d+$/),
          author: { kind: 'person', id: ANN.id, name: 'Ann' },
          ...{ at: NOW, text: 'hello', state: null, turn: 't1', replyTo: null, files: [] },
        }),
        expect.objectContaining({
          ...{ key: 'tt1', author: { kind: 'persona', id: 'default', name: null } },
          ...{ at: NOW, text: 'reply of t1', turn: 't1', state: null, calls: [], remembered: [] },
        }),
      ]);
      expect((await rows('newest', 100, `${CHAT}/7`)).map(({ text }) => text)).toEqual(['in a thread']);
      expect(await log('newest', 100, 'test_none')).toMatchObject({ rows: [], before: null, isEnd: true });
    });

    it('says of a message that no turn has taken it, and of a turn that it writes', async () => {
      const { store } = under;
      await receive(store, [message('1', 'hi')]);
      expect(await newest()).toMatchObject({ text: 'hi', state: 'waiting', turn: null });
      const taken = await begun(store, 't1', { now: NOW + 5 });
      expect(await rows()).toMatchObject([
        { text: 'hi', state: null, turn: 't1' },
        {
          key: 'tt1',
          text: '',
          plain: true,
          state: 'writing',
          at: NOW + 5,
          author: { kind: 'persona', id: 'default' },
        },
      ]);
      const part = {
        body: { text: 'Hel', marks: [] },
        speaker: 'L',
        key: 'k',
        platformMessageId: '9',
        sentAt: NOW,
      };
      await store.show('t1', [part]);
      expect(await newest()).toMatchObject({ key: 'tt1', text: 'Hel', state: 'writing' });
      await finish(store, taken, 't1', { deliveries: [delivery('turn:t1', 'reply of t1')] });
      expect(await newest()).toMatchObject({ key: 'tt1', text: 'reply of t1', plain: false, state: null });
      expect(await rows()).toHaveLength(2);
    });

    it('shows commands, their answers and other words beside the transcript in between', async () => {
      const { store } = under;
      await receive(store, [message('1', 'one')], { now: NOW });
      const greeting = delivery('', 'I am Luna', { personaId: 'luna', part: 0 });
      const answer = delivery('', 'Created', { personaId: null, speaker: 'coterie' });
      const id = await commanded('2', 'persona', 'new Luna', [answer, greeting], NOW + 1);
      await receive(store, [message('3', 'two')], { now: NOW + 2 });
      await notice(1, 'a notice', NOW + 3);
      await post(delivery('tool:t9:send', 'on my own', { personaId: 'luna' }), NOW + 4);
      await post(delivery('greeting:x', 'a greeting is a message'), NOW + 5);
      await post(delivery('tool:t9:made', 'belongs to the answer'), NOW + 6);
      expect((await rows()).map(({ key, text, author }) => [key[0], text, author.kind])).toEqual([
        ['m', 'one', 'person'],
        ['c', '/persona', 'person'],
        ['o', 'Created', 'gateway'],
        ['m', 'two', 'person'],
        ['o', 'a notice', 'gateway'],
        ['o', 'on my own', 'persona'],
      ]);
      expect((await rows())[1]).toMatchObject({ key: `c${id}`, author: { id: ANN.id, name: 'Ann' } });
      await receive(store, [command('9', 'help', 'me')], { now: NOW + 9 });
      expect(await newest()).toMatchObject({ text: '/help me' });
    });

    it('shows an edit as it is now, also one of a message that was being answered', async () => {
      const { store } = under;
      await receive(store, [message('1', 'frist')]);
      await receive(store, [edit('1', 'first')]);
      expect(await texts()).toEqual(['first']);
      await begun(store, 't1');
      await receive(store, [edit('1', 'the first')]);
      expect(await texts()).toEqual(['', 'the first'].sort().reverse());
    });

    it('shows the sentence of a turn that failed, and what a stopped one had said', async () => {
      const { store } = under;
      await receive(store, [message('1', 'hi')]);
      const sentence = delivery('turn:t1', 'The model is away.');
      await finish(store, await begun(store, 't1'), 't1', {
        ...{ outcome: 'failed', reply: null, deliveries: [sentence], now: NOW + 1 },
      });
      expect(await newest()).toMatchObject({ key: 'tt1', text: 'The model is away.', state: 'failed' });
      await receive(store, [message('2', 'again')], { now: NOW + 2 });
      await begun(store, 't2', { now: NOW + 3 });
      const part = {
        body: { text: 'Once', marks: [] },
        speaker: 'L',
        key: 'k',
        platformMessageId: '9',
        sentAt: NOW,
      };
      await store.show('t2', [part]);
      const { commands } = await receive(store, [command('3', 'stop')], { now: NOW + 4 });
      const id = commands[0]?.id ?? 0;
      await store.takeCommand(id, lease());
      const effect = { kind: 'stop' as const, room: CHAT, turnId: 't2' };
      await store.finishCommand({ id, now: NOW + 5, deliveries: [], effects: [effect] });
      expect((await rows()).map(({ key, state }) => [key[0], state])).toEqual([
        ['m', null],
        ['t', 'failed'],
        ['m', null],
        ['c', null],
        ['t', null],
      ]);
      expect((await newest()).text).toMatch(/^Once …\n\(stopped\)$/);
    });

    it('has no row for a turn that ended without a word', async () => {
      const { store } = under;
      await receive(store, [message('1', 'hi')]);
      await finish(store, await begun(store, 't1'), 't1', { outcome: 'failed', reply: null });
      expect(await texts()).toEqual(['hi']);
    });

    it('has the calls of a turn, their results, and what was remembered', async () => {
      const { store } = under;
      await receive(store, [message('1', 'my name is Ann')]);
      const taken = await begun(store, 't1');
      await store.addStep(taken.claim, 't1', CALL, NOW);
      const call = { id: 'c1', tool: 'write', arguments: '{"tier":1}', result: null, failed: false };
      expect((await newest()).calls).toEqual([call]);
      const long: Step = { kind: 'result', callId: 'c1', content: 'x'.repeat(9_000), failed: false };
      await store.addStep(taken.claim, 't1', long, NOW);
      const version = { ...{ id: 'v1', chatId: CHAT, personaId: 'luna', file: 'luna/MEMORY.md', at: NOW } };
      await store.keepVersion({
        ...{ ...version, tier: 1, before: '- tea\n', after: '- tea\n- Ann\n' },
        cause: { kind: 'turn', personaId: 'luna', turnId: 't1' },
      });
      await store.keepVersion({
        ...{ ...version, id: 'v2', tier: 1, before: '', after: 'other' },
        cause: { kind: 'turn', personaId: 'luna', turnId: 't2' },
      });
      await finish(store, await claimed(store), 't1', { deliveries: [delivery('turn:t1', 'Noted.')] });
      const row = await newest();
      expect(row.calls).toEqual([{ ...call, result: 'x'.repeat(4_000) }]);
      expect(row.remembered).toEqual([
        {
          ...{ version: 'v1', chatId: CHAT, personaId: 'luna', file: 'luna/MEMORY.md' },
          ...{ tier: 1, line: '- Ann' },
        },
      ]);
      const { commands } = await receive(store, [command('2', 'memory', 'undo')]);
      const id = commands[0]?.id ?? 0;
      await store.takeCommand(id, lease());
      const effects = [{ kind: 'undone' as const, versionId: 'v1' }];
      await store.finishCommand({ id, now: NOW, deliveries: [], effects });
      expect((await rows()).find(({ key }) => key === 'tt1')?.remembered).toEqual([]);
    });

    it('has files: those that came, and those that a reply made', async () => {
      const { store } = under;
      const file = {
        kind: 'image' as const,
        source: 's',
        name: 'a.png',
        mimeType: 'image/png',
        bytes: 7,
        seconds: null,
      };
      await receive(store, [message('1', 'look [picture a.png]', { attachments: [file], words: 'look' })]);
      const came = { name: 'a.png', type: 'image/png', bytes: 7 };
      expect(await newest()).toMatchObject({ text: 'look', files: [{ ...came, place: null }] });
      const seen = await claimed(store);
      const kept = {
        ...file,
        outcome: { kind: 'kept' as const, file: 'test_1/x.png', mimeType: 'image/png' },
      };
      const [first] = seen.waiting;
      await store.keepFiles(seen.claim, { id: first?.id ?? 0, text: 'look …', attachments: [kept] });
      expect((await newest()).files).toEqual([{ ...came, place: { media: 'test_1/x.png' } }]);
      const body = { text: '', marks: [], file: { path: '/data/b.md', name: 'b.md' } };
      await store.hold(seen.claim, null);
      await finish(store, await begun(store, 't1'), 't1', {
        deliveries: [delivery('turn:t1', 'reply of t1'), delivery('tool:t1:made', '', { body })],
      });
      const made = { name: 'b.md', type: 'text/markdown', bytes: null, place: { path: '/data/b.md' } };
      expect(await newest()).toMatchObject({ key: 'tt1', files: [made] });
    });

    it('says what has not reached the platform', async () => {
      const { store } = under;
      await exchange(store, 't1', 'hello', { deliveries: [delivery('turn:t1', 'reply')] });
      const next = await nextOf(store);
      expect((await newest()).state).toBeNull();
      const retry = { kind: 'retry', notBefore: NOW + HOUR, uncertain: false, reason: 'away' } as const;
      await store.settle(next?.id ?? 0, retry, NOW);
      expect((await newest()).state).toBe('unsent');
      await store.settle(next?.id ?? 0, { kind: 'sent', platformMessageId: '7' }, NOW);
      expect((await newest()).state).toBeNull();
      await notice(1, 'news');
      await store.settle((await nextOf(store))?.id ?? 0, { kind: 'refused', reason: 'blocked' }, NOW);
      expect(await newest()).toMatchObject({ text: 'news', state: 'unsent' });
    });

    it('shows a call that waits for a yes where it was made, and in a chat of owners', async () => {
      const { store } = under;
      await receive(store, [message('1', 'run it')]);
      const { claim } = await begun(store, 't1');
      await store.addStep(claim, 't1', CALL, NOW);
      const what = { id: 'CODE1', arguments: '{"tier":1}' };
      const call: AskedCall = {
        ...{
          ...what,
          chatId: CHAT,
          room: CHAT,
          personaId: 'default',
          turnId: 't1',
          callId: 'c1',
          tool: 'write',
        },
        ...{ why: 'because', waitsFor: waitsForCall(what), askedAt: NOW, until: NOW + MINUTE },
      };
      const choices = [{ label: 'Allow', value: 'k.0' }];
      const asking = (chat: string) => {
        const { id, address: there } = chatAt(chat);
        const said = delivery(`asked:CODE1:${id}`, 'may it?', {
          ...{ personaId: null, speaker: 'coterie', body: { text: 'may it?', marks: [], choices } },
        });
        const to = { chatId: id, channel: 'test', address: there, kind: 'direct' as const, threadId: null };
        return { ...to, now: NOW, delivery: said };
      };
      const question = { call, posts: [asking(CHAT), asking('test_9')], offers: [] };
      const step = { kind: 'waiting', callId: 'c1', waitsFor: call.waitsFor, until: call.until } as const;
      await store.addStep(claim, 't1', step, NOW, { question });
      const approval = { ...what, tool: 'write', why: 'because', until: NOW + MINUTE, decision: null };
      expect((await rows()).map(({ key, approvals }) => [key[0], approvals])).toEqual([
        ['m', []],
        ['t', [approval]],
      ]);
      expect(await newest()).toMatchObject({ state: null });
      const elsewhere = await rows('newest', 100, 'test_9');
      expect(elsewhere).toMatchObject([{ text: 'may it?', approvals: [approval], choices: [] }]);
      const { commands } = await receive(store, [command('2', 'deny', 'CODE1')]);
      const refusal = { content: 'no', told: null };
      const decided = { id: 'CODE1', now: NOW, by: ANN.id, commandId: commands[0]?.id ?? 0, refusal };
      expect(await store.decide(decided)).toBe(CHAT);
      const after = { ...approval, why: '', decision: 'denied' };
      expect((await rows()).find(({ key }) => key === 'tt1')?.approvals).toEqual([after]);
      expect((await rows('newest', 100, 'test_9'))[0]?.approvals).toMatchObject([{ decision: 'denied' }]);
    });

    it('has buttons while they are offered', async () => {
      const { store } = under;
      const { commands } = await receive(store, [command('1', 'persona')]);
      const id = commands[0]?.id ?? 0;
      await store.takeCommand(id, lease());
      const choices = [{ label: 'Luna', value: 'k.0' }];
      const said = { personaId: null, body: { text: 'Which?', marks: [], choices } };
      const options = [{ label: 'Luna', command: { name: 'persona', argument: 'switch luna' } }];
      const offer = {
        kind: 'offer' as const,
        key: 'k',
        room: CHAT,
        senderId: ANN.id,
        options,
        until: NOW + HOUR,
      };
      await store.finishCommand({
        ...{ id, now: NOW, deliveries: [delivery(`command:${id}`, '', said)], effects: [offer] },
      });
      expect(await newest()).toMatchObject({ text: 'Which?', choices });
      const there = { chat: { id: CHAT, address }, sender: ANN };
      const press = { kind: 'choice' as const, ...there, platformMessageId: 'p1', value: 'k.0' };
      await receive(store, [press], { now: NOW + 1 });
      expect((await rows()).map(({ text, choices: left }) => [text, left])).toEqual([
        ['/persona', []],
        ['Which?', []],
        ['/persona switch luna', []],
      ]);
    });

    it('forgets what is forgotten: what somebody still heard stays, what nobody may see is in no page', async () => {
      const { store } = under;
      await receive(store, [message('1', 'secret')], { now: NOW - 3 });
      await notice(1, 'about the secret', NOW - 2);
      const deliveries = [delivery('turn:t1', 'reply of t1')];
      const heard = { hearers: ['luna'], now: NOW - 1 };
      await finish(store, await begun(store, 't1', heard), 't1', { ...heard, deliveries });
      await forget(store);
      expect(await texts()).toEqual(['secret', 'reply of t1', '/reset']);
      await forget(store, { personaId: 'luna' });
      expect(await texts()).toEqual(['/reset', '/reset']);
      expect(await texts('first')).toEqual(['/reset', '/reset']);
      await receive(store, [message('30', 'new')], { now: NOW + 3 });
      expect(await texts()).toEqual(['/reset', '/reset', 'new']);
      await store.eraseWords(CHAT, phraseOf('new'), '…');
      expect((await texts()).join()).not.toContain('new');
    });
  });

  describe('the pages of a log', () => {
    /** Messages and other rows whose times do not grow with their ids. */
    async function muddled(): Promise<void> {
      for (let n = 0; n < 12; n++) {
        const now = NOW + (n % 5) * 7 - n;
        await receive(under.store, [message(`m${n}`, `message ${n}`)], { now });
        if (n % 2 === 0) await notice(n, `notice ${n}`, NOW + ((n * 7) % 11));
        if (n % 3 === 0) await receive(under.store, [command(`c${n}`, 'help', `${n}`)], { now: NOW + n });
      }
    }

    it('lose and repeat nothing, whichever way they are read and whatever their size', async () => {
      await muddled();
      const all = (await rows()).map(({ key }) => key);
      expect(new Set(all).size).toBe(22);
      for (const most of [1, 2, 3, 5, 21, 22, 23]) {
        for (const way of ['before', 'after'] as const) {
          const found = await walked(way, most);
          expect(found, `${way}, ${most} a page`).toHaveLength(22);
          expect(new Set(found), `${way}, ${most} a page`).toEqual(new Set(all));
          const messages = (keys: string[]) => keys.filter((key) => key.startsWith('m'));
          expect(messages(found)).toEqual(messages(all));
        }
      }
    });

    it('go on where the newest ended', async () => {
      const { store } = under;
      await muddled();
      const { after, before } = await log('newest', 5);
      expect(before).not.toBeNull();
      expect(await log({ after })).toMatchObject({ rows: [], isEnd: true });
      await receive(store, [message('x', 'later')], { now: NOW - HOUR });
      await notice(99, 'later still', NOW - 2 * HOUR);
      await receive(store, [command('y', 'help')], { now: NOW - 3 * HOUR });
      const next = await log({ after });
      expect(next.rows.map(({ text }) => text).sort()).toEqual(['/help', 'later', 'later still']);
      expect((await log({ after: next.after })).rows).toEqual([]);
      const taken = await begun(store, 't1');
      await finish(store, taken, 't1', {
        outcome: 'failed',
        reply: null,
        deliveries: [delivery('turn:t1', 'No.')],
      });
      expect((await log({ after: next.after })).rows.map(({ text }) => text)).toEqual(['No.']);
    });

    it('surround any row', async () => {
      const { store } = under;
      await muddled();
      await exchange(store, 't1', 'asked');
      await receive(store, [message('last', 'last')]);
      await finish(store, await begun(store, 't2', { now: NOW + HOUR }), 't2', {
        ...{ outcome: 'failed', reply: null, deliveries: [delivery('turn:t2', 'No.')], now: NOW + HOUR },
      });
      for (const { key } of await rows()) {
        const page = await log({ around: key }, 6);
        expect(
          page.rows.map((row) => row.key),
          key,
        ).toContain(key);
        expect(page.rows.length).toBeLessThanOrEqual(6);
        const older = page.before === null ? [] : (await log({ before: page.before })).rows;
        const newer = (await log({ after: page.after })).rows;
        const found = [...older, ...page.rows, ...newer].map((row) => row.key);
        expect(new Set(found).size, key).toBe(found.length);
        expect(found, key).toHaveLength((await rows()).length);
      }
      expect(await log({ around: 'm999999' })).toMatchObject({ isEnd: true });
      for (const from of [{ around: 'x' }, { around: '' }, { before: 'x' }, { after: "1.1'.0.0." }]) {
        expect(Array.isArray((await log(from)).rows)).toBe(true);
      }
    });
  });

  describe('what tells the page that it is to look again', () => {
    it('moves with what is said and remembered, and with the personas of its chats', async () => {
      const { store } = under;
      const first = await store.boardMarks();
      await exchange(store, 't1', 'hello');
      const second = await store.boardMarks();
      expect(second).toEqual({
        ...first,
        conversations: expect.not.stringMatching(`^${first.conversations}$`),
      });
      await store.keepVersion({
        ...{
          id: 'v',
          chatId: CHAT,
          personaId: 'luna',
          file: 'luna/MEMORY.md',
          tier: 1,
          before: '',
          after: 'x',
        },
        ...{ at: NOW, cause: { kind: 'turn', personaId: 'luna', turnId: 't1' } },
      });
      const third = await store.boardMarks();
      expect(third).toEqual({ ...second, memory: expect.not.stringMatching(`^${second.memory}$`) });
      await store.receive({
        ...{ channel: 'board', account: 'board', now: NOW },
        receipts: [message('1', 'hi', { chat: chatAt('board_main', { kind: 'direct' }) })],
      });
      const fourth = await store.boardMarks();
      expect(fourth.personas).not.toBe(third.personas);
      expect(await store.boardChats()).toEqual([{ chatId: 'board_main', at: NOW }]);
    });

    it('names the chats in which something was done since', async () => {
      const { store } = under;
      await exchange(store, 't1', 'hello');
      const { chats, at } = await store.boardChanges(null);
      expect(chats).toEqual([]);
      expect(await store.boardChanges(at)).toEqual({ chats: [], at });
      await exchange(store, 't2', 'more');
      const after = await store.boardChanges(at);
      expect(after).toEqual({ chats: [CHAT], at: expect.any(Number) });
      expect(after.at).toBeGreaterThan(at);
      expect(await store.boardChanges(null)).toEqual({ chats: [], at: after.at });
    });
  });
}
