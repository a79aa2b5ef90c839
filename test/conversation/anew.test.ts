/** An answer said anew, continued, edited, and taken back: what is shown, what is history, and what memory holds. */

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Channel, Part } from '../../src/core/channel.js';
import type { InboundMessage } from '../../src/core/message.js';
import type { AnyTool } from '../../src/core/tool.js';
import { chatAt } from '../contract/store/words.js';
import { type Answer, type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';

interface Shown {
  id: string;
  text: string;
  buttons: string[];
  values: string[];
}

let bench: Workbench;
let shown: Shown[];
let refusesEdits: boolean;
let keepsMessages: boolean;
afterEach(() => bench.close());

let lastId = 0;

function screen(): Pick<Channel, 'send' | 'edit' | 'remove'> {
  const looksOf = ({ text, choices = [] }: Part) => ({
    text,
    buttons: choices.map(({ label }) => label),
    values: choices.map(({ value }) => value),
  });
  return {
    async send(_to, part) {
      const id = `s${++lastId}`;
      shown.push({ id, ...looksOf(part) });
      return { kind: 'sent', platformMessageId: id };
    },
    async edit(_to, id, part) {
      const there = shown.find((each) => each.id === id);
      if (!there || refusesEdits) return { kind: 'refused', reason: 'as scripted' };
      Object.assign(there, looksOf(part));
      return { kind: 'sent', platformMessageId: id };
    },
    async remove(_to, id) {
      if (keepsMessages) return false;
      const at = shown.findIndex((each) => each.id === id);
      if (at >= 0) shown.splice(at, 1);
      return at >= 0;
    },
  };
}

async function start(options: WorkbenchOptions = {}, can: WorkbenchOptions['can'] = screen()) {
  shown = [];
  refusesEdits = false;
  keepsMessages = false;
  bench = await workbench({ buttons: true, ...options, can });
}

async function say(text: string, more: Partial<InboundMessage> = {}): Promise<void> {
  await bench.say(text, more);
  await bench.settled();
}

/** Each request gets the next of these. */
function answers(...texts: string[]): void {
  bench.answer(() => texts.shift() ?? 'nothing more');
}

const texts = () => shown.map(({ text }) => text);
/** An answer that comes when it is let go. */
function held(): { promise: Promise<string>; resolve(text: string): void } {
  let resolve: (text: string) => void = () => {};
  const promise = new Promise<string>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

const lastAsked = () => JSON.stringify(bench.asked.at(-1)?.messages.slice(1));
const inGroup = (id: string, more: Partial<InboundMessage> = {}): Partial<InboundMessage> => ({
  chat: chatAt('9', { kind: 'group' }),
  sender: { address: id, name: id, administrator: false },
  mentionsBot: true,
  ...more,
});

describe('/again', () => {
  it('puts another answer where the first one was, and only that is history', async () => {
    await start();
    answers('one', 'two', 'three');
    await say('hi');
    await say('/again');
    expect(texts()).toEqual(['two']);
    expect(lastAsked()).toContain('hi');
    expect(lastAsked()).not.toContain('one');
    await say('and now?');
    expect(lastAsked()).toContain('two');
    expect(lastAsked()).not.toContain('one');
    expect(texts()).toEqual(['two', 'three']);
  });

  it('with a wish tells it in that request alone', async () => {
    await start();
    answers('one', 'two', 'three', 'four');
    await say('hi');
    await say('/again make it rhyme');
    expect(lastAsked()).toContain('make it rhyme');
    await say('/again');
    expect(lastAsked()).not.toContain('make it rhyme');
    await say('next');
    expect(lastAsked()).not.toContain('make it rhyme');
  });

  it('with a number shows that version, which is the history then', async () => {
    await start();
    answers('one', 'two', 'three');
    await say('hi');
    await say('/again');
    await say('/again 1');
    expect(texts()).toEqual(['one']);
    expect(bench.asked).toHaveLength(2);
    await say('/again 2');
    expect(texts()).toEqual(['two']);
    await say('/again 1');
    await say('next');
    expect(lastAsked()).toContain('one');
    expect(lastAsked()).not.toContain('two');
    await say('/again 2');
    expect(texts().at(-1)).toContain('only one version');
  });

  it('that says the same is asked once more, and then says so', async () => {
    await start();
    answers('one', 'one', 'other', 'other', ' other ');
    await say('hi');
    await say('/again');
    expect(texts()).toEqual(['other']);
    expect(bench.asked).toHaveLength(3);
    await say('/again');
    expect(bench.asked).toHaveLength(5);
    expect(texts()).toEqual(['other', expect.stringContaining('the same answer again')]);
  });

  it('that fails leaves the answer where it is', async () => {
    await start();
    let isDown = false;
    bench.answer(() => (isDown ? { fault: 'model_refused' as const } : 'one'));
    await say('hi');
    isDown = true;
    await say('/again');
    expect(texts()[0]).toBe('one');
    expect(texts()).toHaveLength(2);
    isDown = false;
    await say('next');
    expect(lastAsked()).toContain('one');
  });

  it('sends the new one and removes the old one where edits are refused', async () => {
    await start();
    answers('one', 'two');
    await say('hi');
    refusesEdits = true;
    await say('/again');
    expect(texts()).toEqual(['two']);
    expect(shown[0]?.id).not.toBe('s1');
  });

  it('is a new message where a platform neither edits nor removes', async () => {
    const { send } = screen();
    await start({}, { send });
    answers('one', 'two');
    await say('hi');
    await say('/again');
    expect(texts()).toEqual(['one', 'two']);
  });

  it('has nothing to say where nothing was said, or after a greeting', async () => {
    await start();
    await say('/again');
    expect(texts()).toEqual([expect.stringContaining('no answer here')]);
  });

  it('takes back what the first try changed in memory, and a version brings its own again', async () => {
    await start({ memoryTools: true });
    const write = (content: string) => ({
      calls: [{ name: 'write_tiered_memory', arguments: { tier: 3, content } }],
    });
    const script = [write('likes roses'), 'one', write('likes tulips'), 'two'];
    bench.answer(() => script.shift() ?? 'nothing more');
    const tier = () => bench.memory.readTier({ chatId: 'test_1', personaId: 'default' }, 3);
    await say('hi');
    expect(await tier()).toContain('roses');
    await say('/again');
    expect(await tier()).toContain('tulips');
    expect(await tier()).not.toContain('roses');
    expect(JSON.stringify(bench.asked[2]?.messages)).not.toContain('roses');
    await say('/again 1');
    expect(await tier()).toContain('roses');
    expect(await tier()).not.toContain('tulips');
    await say('/undo');
    expect(await tier()).toBe('');
  });

  it('leaves memory that somebody changed since, and says so; each try is counted', async () => {
    await start({ memoryTools: true });
    const usage = { inputTokens: 100, outputTokens: 10 };
    const script: Answer[] = [
      { calls: [{ name: 'write_tiered_memory', arguments: { tier: 3, content: 'likes roses' } }], usage },
      { text: 'Vienna', usage },
      { text: 'Zagreb', usage },
    ];
    bench.answer(() => script.shift() ?? 'nothing more');
    await say('hi');
    const file = join(bench.folder, 'groups/test_1/default/MEMORY.md');
    await writeFile(file, (await readFile(file, 'utf8')).replace('roses', 'roses and dill'));
    await say('/again');
    expect(texts()).toEqual([expect.stringMatching(/^Zagreb\n\n.*MEMORY\.md.* was changed since/)]);
    expect(await readFile(file, 'utf8')).toContain('roses and dill');
    const { all } = await bench.store.usage({ chatId: 'test_1', personId: null, since: 0, now: Date.now() });
    expect(all.tokens).toBe(330);
    await say('next');
    expect(lastAsked()).not.toContain('so what it says there stays');
  });

  it('leaves the beginning of requests as it is', async () => {
    await start({ memoryTools: true });
    const write = { name: 'write_tiered_memory', arguments: { tier: 3, content: 'likes roses' } };
    const script: Answer[] = ['Vienna', { calls: [write] }, 'Zagreb', 'Oslo', 'Rome', 'Bern'];
    bench.answer(() => script.shift() ?? 'nothing more');
    await say('hi');
    await say('remember it');
    await say('/again');
    await say('/again 1');
    await say('next');
    const systems = bench.asked.map(({ messages }) => messages[0]?.content);
    expect(new Set(systems).size).toBe(1);
    expect(lastAsked()).toContain('likes roses');
  });

  it('does not repeat what was done: its result stands in the new request', async () => {
    let done = 0;
    const act = {
      ...{ name: 'ring', description: 'Rings.', risk: 'medium', parameters: { type: 'object' } },
      execute: async () => ({ content: `rung ${++done}`, failed: false }),
    } as unknown as AnyTool;
    await start({ tools: [act] });
    const script = [{ calls: [{ name: 'ring', arguments: {} }] }, 'one', 'two'];
    bench.answer(() => script.shift() ?? 'nothing more');
    await say('ring, please');
    await say('/again');
    expect(done).toBe(1);
    expect(lastAsked()).toContain('rung 1');
    expect(texts()).toEqual(['two']);
  });

  it('asks what people wrote as it reads now', async () => {
    await start();
    answers('one', 'two');
    await bench.say('hi there', { platformMessageId: 'p1' });
    await bench.settled();
    await bench.receive({
      ...{ kind: 'edit', chat: { address: '1' }, sender: { address: '1' }, platformMessageId: 'p1' },
      ...{ text: 'bye there', editedAt: 5, mentionsBot: false },
    } as never);
    await say('/again');
    expect(lastAsked()).toContain('bye there');
    expect(lastAsked()).not.toContain('hi there');
  });

  it('goes on after a crash, and shows one version', async () => {
    await start();
    answers('one');
    await say('hi');
    const stuck = held();
    bench.answer(() => stuck.promise);
    await bench.say('/again');
    await expect.poll(() => bench.asked.length).toBe(2);
    bench = await bench.die();
    answers('two');
    await bench.settled();
    expect(texts()).toEqual(['two']);
    await say('next');
    expect(lastAsked()).toContain('two');
    stuck.resolve('late');
  });
});

describe('while something else is under way', () => {
  it('one sentence is all', async () => {
    await start();
    answers('one');
    await say('hi');
    const slow = held();
    bench.answer(() => slow.promise);
    await bench.say('more');
    await expect.poll(() => bench.asked.length).toBe(2);
    await bench.say('/again');
    await expect.poll(texts).toEqual(['one', expect.stringContaining('is being written')]);
    slow.resolve('two');
    await bench.settled();
    expect(texts().at(-1)).toBe('two');
  });

  it('/stop ends it, and the answer before stays', async () => {
    await start();
    answers('one');
    await say('hi');
    const slow = held();
    bench.answer(() => slow.promise);
    await bench.say('/again');
    await expect.poll(() => bench.asked.length).toBe(2);
    await bench.say('/stop');
    await bench.settled();
    expect(texts()).toEqual(['one', 'Stopped.']);
    answers('two');
    await say('next');
    expect(lastAsked()).toContain('one');
    slow.resolve('');
  });
});

describe('/continue, /edit and /undo', () => {
  it('/continue goes on in the same message', async () => {
    await start();
    answers('Once upon', 'a time.', 'fine');
    await say('a story');
    await say('/continue');
    expect(texts()).toEqual(['Once upon a time.']);
    expect(lastAsked()).toContain('Once upon');
    await say('and then?');
    expect(lastAsked()).toContain('Once upon a time.');
  });

  it('/edit is the next version, without a model', async () => {
    await start();
    answers('one', 'two');
    await say('hi');
    await say('/edit my own words');
    expect(texts()).toEqual(['my own words']);
    expect(bench.asked).toHaveLength(1);
    await say('/again 1');
    expect(texts()).toEqual(['one']);
    await say('/edit');
    expect(texts().at(-1)).toContain('/edit TEXT');
  });

  it('/edit changes a greeting, which /again cannot', async () => {
    await start();
    answers('Vienna');
    await mkdir(join(bench.folder, 'groups/test_1/default'), { recursive: true });
    const file = join(bench.folder, 'groups/test_1/default/PERSONA.md');
    await writeFile(file, '---\nname: Luna\ngreeting: Hello there.\n---\nWarm.\n');
    await say('/start');
    await say('/again');
    expect(texts().at(-1)).toContain('is a greeting');
    await say('/edit Good evening.');
    await say('hi');
    expect(lastAsked()).toContain('Good evening.');
    expect(lastAsked()).not.toContain('Hello there.');
  });

  it('/undo takes back the exchange, then the one before', async () => {
    await start();
    answers('Vienna', 'Zagreb', 'Oslo');
    await say('firstly');
    await say('secondly');
    await say('/undo');
    expect(texts()).toEqual(['Vienna', 'Taken back.']);
    await say('/undo');
    expect(texts()).toEqual(['Taken back.', 'Taken back.']);
    await say('third');
    expect(lastAsked()).not.toMatch(/firstly|secondly|Vienna|Zagreb/);
    await say('/undo');
    await say('/undo');
    expect(texts().at(-1)).toContain('no answer here');
  });

  it('/undo leaves a dash where a message cannot be deleted', async () => {
    await start();
    answers('one');
    await say('hi');
    keepsMessages = true;
    await say('/undo');
    expect(texts()).toEqual(['–', 'Taken back.']);
  });
});

describe('who may', () => {
  it('is whoever was answered, and administrators', async () => {
    await start({ isAdministrator: async (_chat, who) => who === 'Boss' });
    answers('one', 'two', 'three');
    await say('hi', inGroup('Ann'));
    await say('/again', inGroup('Bob'));
    expect(texts().at(-1)).toContain('Only the person who was answered');
    await say('/again', inGroup('Ann'));
    expect(shown[0]?.text).toBe('two');
    await say('/again', inGroup('Boss'));
    expect(shown[0]?.text).toBe('three');
  });
});

describe('🔁 as a reaction', () => {
  const react = async (sign: string, id: string, address = '1', chat = '1') => {
    await bench.receive({
      ...{ kind: 'reaction', chat: { address: chat }, sender: { address, name: 'Ann' } },
      ...{ platformMessageIds: [id], sign, sentAt: 5 },
    } as never);
    await bench.settled();
  };

  it('to the newest answer is /again, each version once', async () => {
    await start();
    answers('Vienna', 'Zagreb', 'Oslo', 'Rome');
    await say('hi');
    const id = shown[0]?.id ?? '';
    await react('🔁', id);
    expect(texts()).toEqual(['Zagreb']);
    await react('🔁', id);
    expect(texts()).toEqual(['Oslo']);
    await react('👍', id);
    await say('next');
    await react('🔁', id);
    expect(texts()).toEqual(['Oslo', 'Rome']);
  });

  it('of somebody else is a reaction like any other', async () => {
    await start();
    answers('Vienna', 'Zagreb');
    await say('hi', inGroup('Ann'));
    await react('🔁', shown[0]?.id ?? '', 'Bob', '9');
    expect(texts()).toEqual(['Vienna']);
    await react('🔁', shown[0]?.id ?? '', 'Ann', '9');
    expect(texts()).toEqual(['Zagreb']);
  });
});

describe('buttons', () => {
  const press = async (label: string) => {
    const at = shown.find(({ buttons }) => buttons.includes(label));
    const value = at?.values[at.buttons.indexOf(label)] ?? '';
    await bench.receive({
      ...{ kind: 'choice', chat: { address: '1', kind: 'direct', title: 'Ann' }, threadId: null },
      ...{
        platformMessageId: `press ${++lastId}`,
        value,
        sender: { address: '1', name: 'Ann', administrator: false },
      },
    } as never);
    await bench.settled();
  };

  it('stand below an answer with versions, show the others, and go when somebody speaks', async () => {
    await start();
    answers('one', 'two', 'three', 'four');
    await say('hi');
    expect(shown[0]?.buttons).toEqual([]);
    await say('/again');
    expect(shown[0]?.buttons).toEqual(['◀', '▶', '🔁']);
    await press('◀');
    expect(texts()).toEqual(['one']);
    await press('▶');
    expect(texts()).toEqual(['two']);
    await press('▶');
    expect(texts()).toEqual(['three']);
    await say('next');
    expect(shown.map(({ buttons }) => buttons)).toEqual([[], []]);
  });

  it('are not for somebody who was not answered', async () => {
    await start();
    answers('Vienna', 'Zagreb');
    await say('hi', inGroup('Ann'));
    await say('/again', inGroup('Ann'));
    const [{ values } = { values: [] }] = shown;
    const { choices } = await bench.receive({
      ...{ kind: 'choice', chat: { address: '9', kind: 'group', title: 'Group' }, threadId: null },
      ...{ platformMessageId: 'press', value: values[0] ?? '', sentAt: 5 },
      sender: { address: 'Bob', name: 'Bob', administrator: false },
    } as never);
    await bench.settled();
    expect([...(choices ?? [])]).toEqual([['press', 'not yours']]);
    expect(texts()).toEqual(['Zagreb']);
  });

  it('always stand there if they are to, and never if not', async () => {
    await start({ settings: { versionButtons: 'always' } });
    answers('one', 'two', 'three');
    await say('hi');
    expect(shown[0]?.buttons).toEqual(['🔁']);
    await press('🔁');
    expect(shown).toMatchObject([{ text: 'two', buttons: ['◀', '▶', '🔁'] }]);
    await say('next');
    expect(shown.map(({ buttons }) => buttons)).toEqual([[], ['🔁']]);
  });
});
