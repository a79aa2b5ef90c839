/** The store's contract: versions of memory, what was given of it, and how words are found and forgotten. */
import { describe, expect, it } from 'vitest';
import { createZone } from '../../../src/core/dates.js';
import type { PromptMemory, Version } from '../../../src/core/memory.js';
import { FORGOTTEN, phraseOf } from '../../../src/core/phrase.js';
import { BEGINNING, type Position, type Step } from '../../../src/core/transcript.js';
import { fileChunks } from '../../../src/recall/chunks.js';
import type { StoreUnderTest } from '../store.js';
import { oneView } from './one-view.js';
import {
  ANN,
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
  windowTexts,
} from './words.js';

export function keepingContract(under: StoreUnderTest): void {
  const versionOf = (id: string, more: Partial<Version> = {}): Version => ({
    id,
    chatId: CHAT,
    personaId: 'default',
    file: 'default/MEMORY.md',
    tier: 1,
    before: `before ${id}`,
    after: `after ${id}`,
    at: NOW,
    cause: { kind: 'turn', personaId: 'default', turnId: 't1' },
    ...more,
  });
  const kept = async (most = 1_000, personaId = 'default', chatId = CHAT) =>
    (await under.store.versions({ chatId, personaId, most })).map(({ id }) => id);

  async function apply(effect: { kind: 'undone'; versionId: string }): Promise<void> {
    const [pending] = (await receive(under.store, [command(`c-${effect.versionId}`, 'memory', 'undo')]))
      .commands;
    const { id = 0 } = pending ?? {};
    await under.store.takeCommand(id, lease());
    await under.store.finishCommand({ id, now: NOW, deliveries: [], effects: [effect] });
  }

  describe('where lines of files come from', () => {
    const origin = (file: string, text: string) => under.store.originIn(file, () => text);

    it('is kept line by line, as long as one stands there', async () => {
      await under.store.markOutside('a.md', ['- send it all', '', '---']);
      expect(await origin('a.md', '# Notes\n\n- a rose\n  send it all')).toBe('outside');
      for (const text of ['', '- a rose\n---\n', 'send it'])
        expect(await origin('a.md', text)).toBe('inside');
      expect(await origin('b.md', '- send it all')).toBe('inside');
      expect(await origin('a.md', 'a rose\n\n<<truncated due to memory-max-chars=1>>')).toBe('outside');
      const unasked = () => expect.unreachable();
      expect(await under.store.originIn('b.md', unasked)).toBe('inside');
    });

    it('is outside for a history that was imported, by the name of its file', async () => {
      const file = 'groups/test_1/archive/2021-03-01T10-00-00-luna.imported-3f2ac91b.md';
      expect(await origin(file, 'a rose')).toBe('outside');
      expect(await origin('groups/test_1/archive/2021-03-01T10-00-00-luna.md', 'a rose')).toBe('inside');
    });

    it('may be of a whole file, and is of what was written into memory under words from outside', async () => {
      await under.store.markOutside('c.md', null);
      expect(await origin('c.md', 'whatever')).toBe('outside');
      await under.store.keepVersion(versionOf('a', { before: 'a rose', after: 'a rose\na lily' }));
      const tainted = { kind: 'turn', personaId: 'default', turnId: 't1', tainted: true } as const;
      await under.store.keepVersion(
        versionOf('b', { before: 'a rose', after: 'a rose\nan iris', cause: tainted }),
      );
      const file = `groups/${CHAT}/default/MEMORY.md`;
      expect(await origin(file, 'a rose\na lily')).toBe('inside');
      expect(await origin(file, 'an iris')).toBe('outside');
    });

    it('is that of each piece in which a long line is found', async () => {
      const line = `- ${'it is sunny and warm '.repeat(150)}send it all`;
      await under.store.markOutside('memory/2026-01-15.md', [line]);
      const pieces = [...fileChunks('memory/2026-01-15.md', `- a rose\n${line}\n`, createZone('UTC'))];
      expect(pieces).toHaveLength(4);
      const origins = await Promise.all(pieces.map(({ text }) => origin('memory/2026-01-15.md', text)));
      expect(origins).toEqual(['inside', 'outside', 'outside', 'outside']);
      // Whatever stands before its words.
      const behind = `${'-'.repeat(1_495)} send it all`;
      await under.store.markOutside('f.md', [behind]);
      expect(await origin('f.md', behind)).toBe('outside');
    });

    it('is forgotten of no line, however many come after it: then it is that of the whole file', async () => {
      const origins = [];
      for (let n = 0; n < 21; n++) {
        await under.store.markOutside(
          'd.md',
          Array.from({ length: 1_000 }, (_, m) => `line ${n} ${m}`),
        );
        origins.push(await origin('d.md', 'line 0 1'));
      }
      expect(new Set(origins)).toEqual(new Set(['outside']));
      expect(await origin('e.md', 'a rose')).toBe('inside');
      expect(await origin('d.md', 'a rose')).toBe('outside');
    });
  });

  describe('versions of memory', () => {
    it('are given as they were kept, newest first', async () => {
      const log = versionOf('b', {
        file: 'memory/2026-01-15.md',
        tier: null,
        before: '',
        at: NOW - 1,
        cause: { kind: 'flush', personaId: 'default', turnId: null },
      });
      await under.store.keepVersion(versionOf('a'));
      await under.store.keepVersion(log);
      const ask = { chatId: CHAT, personaId: 'default', most: 9 };
      expect(await under.store.versions(ask)).toEqual([log, versionOf('a')]);
      expect(await kept(1)).toEqual(['b']);
    });

    it('are of one persona in one chat', async () => {
      await under.store.keepVersion(versionOf('a'));
      await under.store.keepVersion(versionOf('b', { personaId: 'luna' }));
      await under.store.keepVersion(versionOf('c', { chatId: 'test_2' }));
      expect(await kept()).toEqual(['a']);
      expect(await kept(9, 'luna')).toEqual(['b']);
      expect(await kept(9, 'default', 'test_2')).toEqual(['c']);
      expect(await kept(9, 'luna', 'test_2')).toEqual([]);
    });

    it('are of one turn, whichever persona’s', async () => {
      const by = (turnId: string | null, kind: 'turn' | 'night' | 'flush' = 'turn') => ({
        cause: { kind, personaId: 'default', turnId },
      });
      await under.store.keepVersion(versionOf('a', by('t1')));
      await under.store.keepVersion(versionOf('b', by('t2')));
      await under.store.keepVersion(versionOf('c', by(null, 'flush')));
      await under.store.keepVersion(versionOf('d', { ...by('t1'), personaId: 'luna' }));
      await under.store.keepVersion(versionOf('e', by('n', 'night')));
      const of = async (turnId: string, personaId: string | null = null) =>
        (await under.store.versions({ chatId: CHAT, personaId, most: 9, turnId })).map(({ id }) => id);
      expect(await of('t1')).toEqual(['d', 'a']);
      expect(await of('t1', 'default')).toEqual(['a']);
      expect(await of('n')).toEqual(['e']);
      await apply({ kind: 'undone', versionId: 'd' });
      expect(await of('t1')).toEqual(['a']);
    });

    it('are left out once they were taken back, or never came to be', async () => {
      for (const id of ['a', 'b', 'c']) await under.store.keepVersion(versionOf(id));
      await apply({ kind: 'undone', versionId: 'c' });
      expect(await kept()).toEqual(['b', 'a']);
      expect(await kept(1)).toEqual(['b']);
      await under.store.dropVersion('b');
      await under.store.dropVersion('unknown');
      await apply({ kind: 'undone', versionId: 'unknown' });
      expect(await kept()).toEqual(['a']);
    });

    const by = (kind: 'turn' | 'night' | 'owner', turnId: string) => ({
      cause: { kind, personaId: 'default', turnId },
    });

    it('of an owner are left out where people undo', async () => {
      await under.store.keepVersion(versionOf('a'));
      await under.store.keepVersion(versionOf('b', by('owner', 'e1')));
      const ask = { chatId: CHAT, personaId: 'default', most: 9 };
      expect((await under.store.versions({ ...ask, ofPersonas: true })).map(({ id }) => id)).toEqual(['a']);
      expect(await kept()).toEqual(['b', 'a']);
    });

    it('are read for the page a part at a time, with those taken back and the daily log of all personas', async () => {
      const day = { file: 'memory/2026-01-15.md', tier: null, before: '' };
      await under.store.keepVersion(versionOf('a'));
      await under.store.keepVersion(versionOf('b', { personaId: 'luna' }));
      await under.store.keepVersion(versionOf('c', { ...day, personaId: 'luna' }));
      await under.store.keepVersion(versionOf('d', { ...day, chatId: 'test_2' }));
      await under.store.keepVersion(versionOf('e'));
      await under.store.markUndone(['a', 'unknown']);
      const ask = { chatId: CHAT, personaId: 'default', most: 2 };
      const first = await under.store.history({ ...ask, before: null });
      expect(first).toMatchObject([
        { ...versionOf('e'), isUndone: false },
        { id: 'c', isUndone: false },
      ]);
      const rest = await under.store.history({ ...ask, before: first[1]?.n ?? 0 });
      expect(rest).toMatchObject([{ ...versionOf('a'), isUndone: true }]);
    });

    it('of one night or one edit are one change', async () => {
      await under.store.keepVersion(versionOf('a', by('night', 'n1')));
      await under.store.keepVersion(versionOf('b', { ...by('night', 'n1'), tier: 2 }));
      await under.store.keepVersion(versionOf('c', by('turn', 't1')));
      await under.store.keepVersion(versionOf('d', by('turn', 't1')));
      await under.store.keepVersion(versionOf('e', by('owner', 'e1')));
      const change = async (id: string) => (await under.store.changeWith(id)).map((each) => each.id);
      expect(await change('a')).toEqual(['b', 'a']);
      expect(await change('c')).toEqual(['c']);
      expect(await change('e')).toEqual(['e']);
      expect(await change('unknown')).toEqual([]);
    });

    it('stand beside the titles of chats', async () => {
      await receive(under.store, [message('1', 'hi')]);
      expect(await under.store.titles()).toEqual([{ id: CHAT, title: `Title of ${CHAT}` }]);
    });

    it('go, beyond the newest 200 of a persona in a chat', async () => {
      await under.store.keepVersion(versionOf('of luna', { personaId: 'luna' }));
      await under.store.keepVersion(versionOf('elsewhere', { chatId: 'test_2' }));
      for (let n = 1; n <= 203; n++) await under.store.keepVersion(versionOf(`v${n}`));
      const ids = await kept();
      expect(ids).toHaveLength(200);
      expect([ids[0], ids.at(-1)]).toEqual(['v203', 'v4']);
      expect(await kept(9, 'luna')).toEqual(['of luna']);
      expect(await kept(9, 'default', 'test_2')).toEqual(['elsewhere']);
    });
  });

  describe('what was given of memory', () => {
    async function answer(turnId: string, given: PromptMemory | null, more = {}) {
      await receive(under.store, [message(turnId, 'hi')]);
      const turn = await begun(under.store, turnId, more);
      await finish(under.store, turn, turnId, { given });
    }

    it('is that of the last answer that was given any', async () => {
      expect(await under.store.promptMemory(CHAT, 'default')).toBeNull();
      await answer('t1', { memory: 'one', dailyLog: 'log', recalled: 'r', summary: 's' });
      await answer('t2', { memory: 'two', dailyLog: 'log', recalled: 'r', summary: 's', lore: '{}' });
      expect(await under.store.promptMemory(CHAT, 'default')).toEqual({
        memory: 'two',
        dailyLog: 'log',
        recalled: 'r',
        summary: 's',
        lore: '{}',
      });
      await answer('t3', { memory: 'two', dailyLog: '', recalled: 'r', summary: 's2' });
      await answer('t4', null);
      expect(await under.store.promptMemory(CHAT, 'default')).toEqual({
        memory: 'two',
        dailyLog: '',
        recalled: 'r',
        summary: 's2',
        lore: '',
      });
    });

    it('is of one persona in one room', async () => {
      await answer('t1', { memory: 'one', dailyLog: '', recalled: '', summary: '' });
      await answer('t2', { memory: 'two', dailyLog: '', recalled: '', summary: '' }, { personaId: 'luna' });
      expect((await under.store.promptMemory(CHAT, 'default'))?.memory).toBe('one');
      expect((await under.store.promptMemory(CHAT, 'luna'))?.memory).toBe('two');
      expect(await under.store.promptMemory(`${CHAT}/5`, 'default')).toBeNull();
    });
  });

  it('the messages of a turn are those it answers', async () => {
    await receive(under.store, [message('1', 'one'), message('2', 'two'), message('3', 'aside')]);
    const [first = 0, second = 0, third = 0] = (await looked(under.store)).waiting.map(({ id }) => id);
    const batch = [second, first];
    const turn = await begun(under.store, 't1', { batch, noted: [third], hearers: ['luna'] });
    const texts = async (id: string) => (await under.store.messages({ turnId: id })).map(({ text }) => text);
    expect(await texts('t1'), 'while it runs').toEqual(['one', 'two']);
    await finish(under.store, turn, 't1');
    expect(await texts('t1')).toEqual(['one', 'two']);
    expect(await texts('unknown')).toEqual([]);
    const ids = [third, 9_999, first];
    expect(
      (await under.store.messages(ids)).map(({ text }) => text),
      'and others by their ids',
    ).toEqual(['one', 'aside']);
  });

  describe('words', () => {
    const WORDS = 'the blue house';
    const phrase = phraseOf(WORDS);
    const count = async (chatId = CHAT, of = phrase) => {
      const { files: _, ...counts } = await under.store.findWords(chatId, of);
      return counts;
    };
    const erase = async (of = phrase, by = '…') => {
      await under.store.eraseWords(CHAT, of, by);
      await under.store.endErasing(CHAT, of, by);
    };

    /** A turn with steps, in a room. */
    async function turnWith(id: string, steps: Step[], room = CHAT): Promise<void> {
      const [chatId = CHAT, threadId = null] = room.split('/');
      await receive(under.store, [message(id, 'ask', { chat: chatAt(chatId), threadId })]);
      const turn = await begun(under.store, id, { room });
      for (const step of steps) await under.store.addStep(turn.claim, id, step, NOW);
      await finish(under.store, turn, id);
    }
    const called = (args: string): Step => ({
      kind: 'answer',
      text: '',
      calls: [{ id: 'c', name: 'write_memory', arguments: args }],
    });
    async function steps(room = CHAT): Promise<Step[]> {
      const ask = { room, personaId: 'default', limit: 1_000, overheard: 0, except: [] };
      return [...(await under.store.window(ask)).steps.values()].flat();
    }
    const argumentsNow = async () =>
      (await steps())
        .flatMap((step) => (step.kind === 'answer' ? step.calls : []))
        .map((call) => call.arguments);

    it('are found in no chat that does not hold them', async () => {
      expect(await count('test_unknown')).toEqual({ messages: 0, others: 0 });
      await exchange(under.store, 't1', 'the blue horse');
      await exchange(under.store, 't2', WORDS, { room: 'test_2' });
      expect(await count()).toEqual({ messages: 0, others: 0 });
      expect(await count('test_2')).toEqual({ messages: 1, others: 0 });
    });

    it('go from the transcript, in any letter case and with any white space, threads and replies too', async () => {
      await exchange(under.store, 't1', `I live in The BLUE\n  house, ${WORDS}!`);
      await exchange(under.store, 't2', `a thread on ${WORDS}`, { room: `${CHAT}/5` });
      await receive(under.store, [message('1', 'say it')]);
      const turn = await begun(under.store, 't3');
      await finish(under.store, turn, 't3', { reply: `It is ${WORDS}.` });
      expect(await count()).toEqual({ messages: 3, others: 0 });
      await erase();
      expect(await windowTexts(under.store)).toEqual([
        'I live in …, …!',
        'reply of t1',
        'say it',
        'It is ….',
      ]);
      expect((await windowTexts(under.store, { room: `${CHAT}/5` }))[0]).toBe('a thread on …');
      expect(await count()).toEqual({ messages: 0, others: 0 });
    });

    it('go from what is still to be spoken', async () => {
      const speech = { text: `I live in ${WORDS}.`, voice: 'alloy' };
      await receive(under.store, [message('1', 'say it')]);
      const turn = await begun(under.store, 't1');
      const body = { text: '', marks: [], speech };
      const origin = 'tool:t1:voice';
      await finish(under.store, turn, 't1', { deliveries: [delivery(origin, '', { body })] });
      await erase();
      expect((await nextOf(under.store))?.body.speech).toEqual({ text: 'I live in ….', voice: 'alloy' });
    });

    it('go from quotations in replies, which name their author still', async () => {
      const replyTo = { platformMessageId: '7', senderName: 'Ann', text: `in ${WORDS}`, ours: false };
      await receive(under.store, [message('1', 'really?', { replyTo })]);
      expect(await count()).toEqual({ messages: 1, others: 0 });
      await erase();
      const turn = await begun(under.store, 't1');
      expect(turn.waiting[0]?.replyTo).toEqual({
        senderName: 'Ann',
        text: 'in …',
        ours: false,
        personaId: null,
      });
    });

    it('go from what waits to be sent, with the marks whose places are others now', async () => {
      const bold = { kind: 'bold' as const, offset: 0, length: 3 };
      const link = { kind: 'link' as const, offset: 0, length: 3, url: `https://x.test/?q=${WORDS}` };
      const bodies = [
        {
          text: `now ${WORDS} is bold`,
          marks: [bold],
          source: `**now** ${WORDS.replace(' ', ' **')}** is bold`,
        },
        { text: 'a link', marks: [link] },
        { text: 'another', marks: [bold], file: { path: '/tmp/a.md', name: 'a.md' } },
      ];
      const deliveries = bodies.map((body, part) => delivery('turn:t1', '', { body, part }));
      await exchange(under.store, 't1', 'hi', { deliveries });
      await erase();
      const left = [];
      for (let next = await nextOf(under.store); next; next = await nextOf(under.store)) {
        left.push(next.body);
        await under.store.settle(next.id, { kind: 'sent', platformMessageId: `s${next.part}` }, NOW);
      }
      expect(left).toEqual([{ text: 'now … is bold', marks: [] }, { text: 'a link', marks: [] }, bodies[2]]);
    });

    it('go from commands, which do not count as a place where they stand', async () => {
      const [pending] = (await receive(under.store, [command('1', 'memory', `forget ${WORDS}`)])).commands;
      await under.store.takeCommand(pending?.id ?? 0, lease());
      expect(await count(), 'or asking for them would find them').toEqual({ messages: 0, others: 0 });
      await erase();
      expect((await under.store.takeCommand(pending?.id ?? 0, lease()))?.argument).toBe('forget …');
    });

    it('go from summaries and from what was given of memory, of every persona and room', async () => {
      for (const [room, personaId] of [
        [CHAT, 'default'],
        [`${CHAT}/5`, 'luna'],
      ] as const) {
        const [, threadId = null] = room.split('/');
        await receive(under.store, [message(`in ${room}`, 'hi', { threadId })]);
        const turn = await begun(under.store, `t ${room}`, { room, personaId });
        const given = {
          ...{ memory: `m ${WORDS}`, dailyLog: `d ${WORDS}` },
          ...{ recalled: `r ${WORDS}`, summary: `s ${WORDS}` },
        };
        await finish(under.store, turn, `t ${room}`, { given });
        const { flush, move, place } = oneView(under.store, room, personaId);
        const to: Position = await place('hi');
        await flush(to);
        await move(to, { summary: `They live in ${WORDS}.` });
      }
      expect(await count()).toEqual({ messages: 0, others: 4 });
      await erase();
      expect(await count()).toEqual({ messages: 0, others: 0 });
      expect((await under.store.view(`${CHAT}/5`, 'luna')).summary).toBe('They live in ….');
      expect(await under.store.promptMemory(CHAT, 'default')).toEqual({
        memory: 'm …',
        dailyLog: 'd …',
        recalled: 'r …',
        summary: 's …',
        lore: '',
      });
    });

    it('take the versions in which they stand with them', async () => {
      await under.store.keepVersion(versionOf('a', { before: `x ${WORDS}` }));
      await under.store.keepVersion(versionOf('b'));
      await under.store.keepVersion(versionOf('c', { after: WORDS, personaId: 'luna' }));
      await under.store.keepVersion(versionOf('d', { after: WORDS, chatId: 'test_2' }));
      await under.store.keepVersion(versionOf('e', { after: WORDS }));
      await apply({ kind: 'undone', versionId: 'e' });
      expect(await count()).toEqual({ messages: 0, others: 3 });
      await erase();
      expect(await count()).toEqual({ messages: 0, others: 0 });
      expect(await kept()).toEqual(['b']);
      expect(await kept(9, 'luna')).toEqual([]);
      expect(await kept(9, 'default', 'test_2')).toEqual(['d']);
      const shown = await under.store.history({ chatId: CHAT, personaId: 'default', before: null, most: 9 });
      expect(shown.map(({ id }) => id)).toEqual(['b']);
    });

    it('go from what was said and done with tools, however it is written there', async () => {
      const content = `She lives in\nthe "blue" house\\attic`;
      await turnWith('t1', [
        { kind: 'answer', text: 'the "blue" house it is', calls: [] },
        called(JSON.stringify({ tier: 1, content, 'about the "blue" house': [{ deep: content }] })),
        { kind: 'call', callId: 'c' },
        { kind: 'result', callId: 'c', content: `kept: ${JSON.stringify({ content })}`, failed: false },
        called(`{"content":"cut in the \\"blue\\"\\nhouse`),
        called(JSON.stringify({ inner: JSON.stringify({ inner: JSON.stringify({ content }) }) })),
      ]);
      const quoted = phraseOf('the "blue" house');
      expect(await count(CHAT, quoted)).toEqual({ messages: 0, others: 5 });
      await erase(quoted);
      expect(await count(CHAT, quoted)).toEqual({ messages: 0, others: 0 });
      const left = 'She lives in\n…\\attic';
      const [tool, broken, nested] = await argumentsNow();
      expect(JSON.parse(tool ?? '')).toEqual({ tier: 1, content: left, 'about …': [{ deep: left }] });
      expect(broken, 'what cannot be taken apart goes whole').toBe('…');
      expect(JSON.parse(JSON.parse(JSON.parse(nested ?? '').inner).inner)).toEqual({ content: left });
      expect((await steps())[0]).toEqual({ kind: 'answer', text: '… it is', calls: [] });
    });

    it('are numbers and truths, too, in what was said to tools, which stays JSON', async () => {
      await turnWith('t1', [
        called('{"pin": 442211, "open":true, "long":98765432109876543210, "a":[null,7]}'),
      ]);
      await erase(phraseOf('442211'));
      expect(JSON.parse((await argumentsNow())[0] ?? '')).toMatchObject({ pin: '…', open: true });
      await erase(phraseOf('true'));
      expect(JSON.parse((await argumentsNow())[0] ?? '')).toMatchObject({ open: '…', a: [null, 7] });
      await turnWith('t2', [called('{"long":98765432109876543210}')]);
      await erase(phraseOf('98765432109876543210'));
      expect((await argumentsNow())[1]).not.toContain('987654321');
    });

    it('leave alone what is no word: kinds, ids, names of tools and people', async () => {
      const before: Step[] = [
        called('{"kind":"note"}'),
        { kind: 'call', callId: 'c' },
        { kind: 'result', callId: 'c', content: 'done', failed: false },
      ];
      const replyTo = { platformMessageId: '1', senderName: 'Default', text: 'x', ours: true };
      await turnWith('t1', before);
      await receive(under.store, [message('2', 'hm', { replyTo })]);
      for (const word of ['answer', 'call', 'result', 'write_memory', 'default', 'Ann', 'turn']) {
        await erase(phraseOf(word));
      }
      expect(await steps()).toEqual(before);
      const turn = await begun(under.store, 't2');
      expect(turn.waiting[0]).toMatchObject({ author: { name: 'Ann' }, replyTo: { senderName: 'Default' } });
    });

    it('take with them what servers sent along, because part of that is sealed', async () => {
      const echoing = (message: object): Step => ({
        ...{ kind: 'answer', text: 'I look.', calls: [{ id: 'c', name: 'look', arguments: '{}' }] },
        echo: { server: 'https://models.example/v1', model: 'm', message: { ...message } },
      });
      const readable = echoing({ reasoning_content: `They asked for ${WORDS}` });
      const sealed = echoing({ thinking_blocks: [{ type: 'redacted_thinking', data: 'c2VhbGVk' }] });
      await turnWith('t1', [readable, sealed]);
      await turnWith('t2', [sealed], 'test_2');
      expect(await steps()).toEqual([readable, sealed]);
      expect(await count()).toEqual({ messages: 0, others: 1 });
      await erase();
      const { echo: _, ...plain } = sealed as Step & { echo: object };
      expect(await steps()).toEqual([plain, plain]);
      expect(await steps('test_2')).toEqual([sealed]);
    });

    it('go from steps of turns that used no tools, and of those that were aborted', async () => {
      const answer: Step = { kind: 'answer', text: `It is ${WORDS}`, calls: [] };
      await turnWith('t1', [answer]);
      await turnWith('t2', [answer], 'test_2');
      await receive(under.store, [message('1', 'hi', { threadId: '5' })]);
      const turn = await begun(under.store, 't3', { room: `${CHAT}/5` });
      await under.store.addStep(turn.claim, 't3', answer, NOW);
      expect(await count()).toEqual({ messages: 0, others: 2 });
      await erase();
      expect(await count()).toEqual({ messages: 0, others: 0 });
      expect(await count('test_2')).toEqual({ messages: 0, others: 1 });
      const again = await claimed(under.store, `${CHAT}/5`);
      expect(again.turn?.steps).toEqual([{ ...answer, text: 'It is …' }]);
    });

    it('stay in every other chat, in each of these places', async () => {
      const chat = chatAt('test_2');
      const replyTo = { platformMessageId: '7', senderName: 'Ann', text: WORDS, ours: false };
      await receive(under.store, [
        message('1', WORDS, { chat, replyTo }),
        command('2', 'memory', WORDS, { chat }),
      ]);
      const turn = await begun(under.store, 't1', { room: 'test_2' });
      await under.store.addStep(turn.claim, 't1', called(JSON.stringify({ content: WORDS })), NOW);
      await finish(under.store, turn, 't1', {
        reply: WORDS,
        given: { memory: WORDS, dailyLog: '', recalled: '', summary: '' },
        deliveries: [delivery('turn:t1', WORDS)],
      });
      const { flush, move } = oneView(under.store, 'test_2');
      const to = { heardAfter: 1, messageId: 1 };
      await flush(to);
      await move(to, { summary: WORDS });
      const ask = { room: 'test_2', personaId: 'default', after: BEGINNING, limit: 9, overheard: 9 };
      const everything = async () => ({
        span: await under.store.span({ ...ask, upTo: { heardAfter: 99, messageId: 0 } }),
        view: await under.store.view('test_2', 'default'),
        given: await under.store.promptMemory('test_2', 'default'),
        next: await nextOf(under.store, 'test_2'),
        command: (await under.store.takeCommand(1, lease()))?.argument,
        found: await count('test_2'),
      });
      const before = await everything();
      expect(before.found).toEqual({ messages: 2, others: 3 });
      await erase();
      expect(await everything()).toEqual(before);
    });

    it('go again and again, also where what is left around them makes them up anew', async () => {
      const texts = ['xyz xyzz', 'forgotten', `${'a'.repeat(40)}${'b'.repeat(40)}`];
      await receive(
        under.store,
        texts.map((text, n) => message(`${n}`, text)),
      );
      await erase(phraseOf('xyz'), FORGOTTEN);
      for (let n = 0; n < 3; n++) await erase(phraseOf('forgotten'), FORGOTTEN);
      for (let n = 0; n < 2; n++) await erase(phraseOf('ab'), '');
      for (let n = 0; n < 2; n++) await erase(phraseOf('…'), '…');
      expect((await begun(under.store, 't1')).waiting.map(({ text }) => text)).toEqual([
        ...['[forgotten] [forgotten]z', '[forgotten]', ''],
      ]);
    });

    it('go from thousands of lines, while others are answered', async () => {
      for (let n = 0; n < 2_500; n += 500) {
        const lines = Array.from({ length: 500 }, (_, i) =>
          message(`m${n + i}`, (n + i) % 5 === 0 ? `line ${n + i} on ${WORDS}` : `line ${n + i}`),
        );
        await receive(under.store, lines);
        await receive(under.store, [message(`o${n}`, WORDS, { chat: chatAt('test_2') })]);
      }
      expect(await count()).toEqual({ messages: 500, others: 0 });
      const erasing = erase();
      await receive(under.store, [message('meanwhile', 'hello', { chat: chatAt('test_3') })]);
      await erasing;
      expect(await count()).toEqual({ messages: 0, others: 0 });
      expect(await count('test_2')).toEqual({ messages: 5, others: 0 });
      const turn = await begun(under.store, 't1');
      expect(turn.waiting.slice(0, 6).map(({ text }) => text)).toEqual([
        ...['line 0 on …', 'line 1', 'line 2', 'line 3', 'line 4', 'line 5 on …'],
      ]);
    });

    it('take no edit back that comes meanwhile', async () => {
      await receive(under.store, [message('1', `in ${WORDS}`)]);
      const edit = {
        kind: 'edit' as const,
        chatId: CHAT,
        senderId: ANN.id,
        platformMessageId: '1',
        mentionsBot: false,
        text: `no, beside ${WORDS}`,
        editedAt: NOW,
      };
      const [, { rooms }] = await Promise.all([erase(), receive(under.store, [edit])]);
      expect(rooms).toEqual([CHAT]);
      await erase();
      expect((await begun(under.store, 't1')).waiting[0]?.text).toBe('no, beside …');
    });
  });
}
