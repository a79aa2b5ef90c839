/** What may be used in a day: nothing is asked of a model above it; it is said once; nothing is lost; the next day it goes on. */
import { afterEach, expect, it } from 'vitest';
import type { DailyLimitSettings } from '../../src/conversation/services.js';
import type { InboundMessage } from '../../src/core/message.js';
import type { ModelClient, ModelEvent, ModelRequest, Usage } from '../../src/core/model.js';
import type { AnyTool } from '../../src/core/tool.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { SETTINGS, type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';

const DAY = 86_400_000;
const HOUR = 3_600_000;
const NOON = Date.UTC(2026, 0, 1, 12);
const CHAT = 'Today’s limit for this chat is reached; I answer again tomorrow.';
const PERSON = 'Your limit for today is reached; I answer you again tomorrow.';
const PERSONA = 'Today’s limit for this persona is reached; it answers again tomorrow.';
const ALL = 'Today’s limit for all chats is reached; I answer again tomorrow.';

const open: Workbench[] = [];
afterEach(async () => {
  for (const on of open.splice(0).reverse()) await on.close();
});

async function bench(
  limits: Partial<DailyLimitSettings>,
  { settings, ...options }: WorkbenchOptions = {},
): Promise<{ on: Workbench; clock: ManualClock }> {
  const clock = (options.clock as ManualClock | undefined) ?? manualClock(NOON);
  const on = await workbench({
    ...options,
    clock,
    settings: { ...settings, limits: { ...SETTINGS.limits, ...limits } },
  });
  open.push(on);
  on.answer(() => ({ text: 'fine', usage: { inputTokens: 90, outputTokens: 10 } }));
  return { on, clock };
}

async function say(on: Workbench, text: string, more: Partial<InboundMessage> = {}): Promise<string[]> {
  const before = on.texts().length;
  await on.say(text, more);
  await on.settled();
  return on.texts().slice(before);
}

function tokensBy(
  personas: readonly { personaId: string; usage: Usage }[],
  persona: string,
): number | undefined {
  const usage = personas.find(({ personaId }) => personaId === persona)?.usage;
  return usage && usage.inputTokens + usage.outputTokens;
}

const person = (id: string, name = id) => ({ address: id, name, administrator: false });
const direct = (id: string): Partial<InboundMessage> => ({
  chat: { address: id, kind: 'direct', title: id },
  sender: person(id),
});
const inGroup = (id: string, address = '-5'): Partial<InboundMessage> => ({
  chat: { address, kind: 'group', title: 'Kitchen' },
  sender: person(id),
  mentionsBot: true,
});

it.each([
  ['tokensPerChat', 150, CHAT],
  ['tokensPerPersona', 150, PERSONA],
  ['tokensPerPerson', 150, PERSON],
  ['tokensPerDay', 150, ALL],
] as const)(
  '%s: one sentence, then silence, and no request, until the next day',
  async (limit, most, sentence) => {
    const { on, clock } = await bench({ [limit]: most });
    expect(await say(on, 'one')).toEqual(['fine']);
    expect(await say(on, 'two')).toEqual(['fine']);
    expect(await say(on, 'three')).toEqual([sentence]);
    const { length } = on.typed;
    expect(await say(on, 'four')).toEqual([]);
    expect(await say(on, 'five')).toEqual([]);
    expect(on.asked).toHaveLength(2);
    expect(on.typed, 'nobody is seen to write').toHaveLength(length);

    await clock.advance(11 * HOUR);
    expect(await say(on, 'six')).toEqual([]);
    await clock.advance(2 * HOUR);
    await on.settled();
    expect(on.asked, 'nothing is made up for').toHaveLength(2);
    expect(await say(on, 'seven')).toEqual(['fine']);
    const window =
      on.asked
        .at(-1)
        ?.messages.map(({ content }) => content)
        .join('\n') ?? '';
    for (const heard of ['three', 'four', 'five', 'six', 'seven']) expect(window).toContain(heard);
  },
);

it('a limit of 1 lets one answer through, and a limit of no money none', async () => {
  const { on } = await bench({ tokensPerChat: 1 });
  expect(await say(on, 'one')).toEqual(['fine']);
  expect(await say(on, 'two')).toEqual([CHAT]);
  const { on: other } = await bench({ moneyPerDay: 0 });
  expect(await say(other, 'one')).toEqual([ALL]);
  expect(other.asked).toEqual([]);
});

it('commands go on working, and events from inside are not answered, either', async () => {
  const { on } = await bench({ tokensPerChat: 1 });
  await say(on, 'one');
  await say(on, 'two');
  expect((await say(on, '/whoami')).join()).toContain('test_1');
  await on.conversation.tell({ id: 'e1', room: 'test_1', about: 'schedule', text: 'now', personaId: null });
  await on.settled();
  expect(on.asked).toHaveLength(1);
  expect((await say(on, '/reset')).join()).toContain('Conversation cleared');
});

it('is not said again after a restart, nor by another gateway, and its spending is seen there', async () => {
  const { on, clock } = await bench({ tokensPerChat: 150 });
  const limits = { ...SETTINGS.limits, tokensPerChat: 150 };
  await say(on, 'one');
  const other = await on.beside('other');
  open.push(other);
  other.answer(() => ({ text: 'fine', usage: { inputTokens: 90, outputTokens: 10 } }));
  await say(other, 'two');
  expect(await say(on, 'three'), 'the other one spent it').toEqual([CHAT]);
  expect(await say(other, 'four')).toEqual([]);
  expect(other.asked).toHaveLength(1);
  await open.pop()?.end();

  await on.end();
  open.splice(open.indexOf(on), 1);
  const again = await workbench({ folder: on.folder, clock, settings: { limits } });
  open.push(again);
  expect(await say(again, 'five')).toEqual([]);
  expect(again.asked).toEqual([]);
});

it('a limit below what was used today holds from the next start on', async () => {
  const { on, clock } = await bench({});
  await say(on, 'one');
  await on.end();
  open.splice(open.indexOf(on), 1);
  const again = await workbench({
    ...{ folder: on.folder, clock },
    settings: { limits: { ...SETTINGS.limits, tokensPerChat: 50 } },
  });
  open.push(again);
  expect(await say(again, 'two')).toEqual([CHAT]);
});

it('one person’s limit is that person’s, in every chat; in a group it is said in reply to them', async () => {
  const { on } = await bench({ tokensPerPerson: 150 });
  await say(on, 'one', inGroup('1'));
  await say(on, 'two', direct('1'));
  expect(await say(on, 'three', inGroup('1'))).toEqual([PERSON]);
  expect(on.sent.at(-1)?.options.replyTo).not.toBeNull();
  expect(await say(on, 'four', inGroup('1'))).toEqual([]);
  expect(await say(on, 'five', inGroup('2'))).toEqual(['fine']);
  expect(await say(on, 'six', direct('1')), 'once in each chat').toEqual([PERSON]);
});

it('what personas say to each other is laid to the person whose words set it off', async () => {
  const { on } = await bench({ tokensPerPerson: 10_000 });
  for (const text of ['/persona new Luna', '/persona new Max', '/persona invite Luna']) await say(on, text);
  const replies = ['@Luna, you?', '@Max, and you?', 'enough'];
  on.answer(() => ({ text: replies.shift() ?? 'no', usage: { inputTokens: 90, outputTokens: 10 } }));
  await say(on, 'Max, begin');
  expect(on.asked).toHaveLength(3);
  const { person, personas, all } = await on.store.usage({
    chatId: 'test_1',
    personId: 'test_1',
    since: 0,
    now: NOON,
  });
  expect(person.tokens).toBe(300);
  expect(all.tokens).toBe(300);
  expect(tokensBy(personas, 'max')).toBe(200);
  expect(tokensBy(personas, 'luna')).toBe(100);
});

it('a persona’s limit leaves the others of the chat their own', async () => {
  const { on } = await bench({ tokensPerPersona: 50 });
  for (const text of ['/persona new Luna', '/persona new Max']) await say(on, text);
  expect(await say(on, 'one')).toEqual(['fine']);
  expect(await say(on, 'two')).toEqual([PERSONA]);
  await say(on, '/persona switch Luna');
  expect(await say(on, 'three')).toEqual(['fine']);
});

const look: AnyTool = {
  ...{ name: 'look', description: 'Looks.', risk: 'low' as const },
  parameters: { type: 'object', properties: {} },
  execute: async () => ({ content: 'seen' }),
} as unknown as AnyTool;

it('reached in the middle of a turn: no further request, and what tools did stays', async () => {
  const { on } = await bench({ tokensPerChat: 150 }, { tools: [look] });
  on.answer(() => ({
    calls: [{ name: 'look', arguments: {} }],
    usage: { inputTokens: 90, outputTokens: 10 },
  }));
  expect(await say(on, 'go')).toEqual([CHAT]);
  expect(on.asked).toHaveLength(2);
  const { personas } = await on.store.usage({ chatId: 'test_1', personId: null, since: NOON, now: NOON });
  expect(tokensBy(personas, 'default')).toBe(200);
  expect(await say(on, 'more')).toEqual([]);
});

it('a server that does not count is estimated', async () => {
  for (const usage of [undefined, { inputTokens: 0, outputTokens: 0 }]) {
    const { on } = await bench({ tokensPerChat: 50 });
    on.answer(() => ({ text: 'x'.repeat(400), ...(usage && { usage }) }));
    expect(await say(on, 'one')).toHaveLength(1);
    expect(await say(on, 'two')).toEqual([CHAT]);
    const { all } = await on.store.usage({ chatId: 'test_1', personId: null, since: NOON, now: NOON });
    expect(all.tokens).toBeGreaterThan(100);
  }
});

it('an answer that was stopped, or never ended, is estimated as well', async () => {
  const { on } = await bench({ tokensPerChat: 50 });
  let begun: () => void = () => {};
  const asked = new Promise<void>((resolve) => {
    begun = resolve;
  });
  on.answer(async (_, signal) => {
    begun();
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    return { fault: 'model_unreachable' };
  });
  await on.say('one');
  await asked;
  await on.say('/stop');
  await on.settled();
  expect(await say(on, 'two')).toEqual([CHAT]);

  const { on: other } = await bench({ tokensPerChat: 50 });
  other.answer(() => ({ fault: 'model_endless' }));
  await say(other, 'one');
  expect(await say(other, 'two')).toEqual([CHAT]);
});

it('a server that cannot be reached costs nothing', async () => {
  const { on } = await bench({ tokensPerChat: 50 });
  on.answer(() => ({ fault: 'model_unreachable' }));
  await say(on, 'one');
  on.answer(() => 'fine');
  expect(await say(on, 'two')).toEqual(['fine']);
});

it('money is counted at the prices of whoever answered', async () => {
  const { on } = await bench({ moneyPerChat: 0.001 });
  const usage = { inputTokens: 100, outputTokens: 100, cachedTokens: 90 };
  on.answer(() => ({ text: 'dear', usage, prices: { input: 1, output: 4 } }));
  expect(await say(on, 'one')).toEqual(['dear']);
  on.answer(() => ({ text: 'cheap', usage, prices: { input: 1, output: 3.99 } }));
  expect(await say(on, 'two')).toEqual(['cheap']);
  on.answer(() => ({ text: 'free', usage }));
  expect(await say(on, 'three')).toEqual(['free']);
  on.answer(() => ({
    text: 'tiny',
    usage: { inputTokens: 1, outputTokens: 0 },
    prices: { input: 0.1, output: 0 },
  }));
  expect(await say(on, 'four')).toEqual(['tiny']);
  expect(await say(on, 'five'), '500 + 499 + 0 + 1 millionths').toEqual([CHAT]);
});

it('days begin in the configured zone, also where the clocks change, and a clock set back opens none twice', async () => {
  // 23 hours long in Berlin: 29 March 2026.
  const clock = manualClock(Date.UTC(2026, 2, 28, 23, 30));
  const { on } = await bench({ tokensPerChat: 50 }, { clock, timezone: 'Europe/Berlin' });
  expect(await say(on, 'one')).toEqual(['fine']);
  await clock.advance(22 * HOUR);
  expect(await say(on, 'two'), '21:30 in UTC, 23:30 in Berlin').toEqual([CHAT]);
  await clock.advance(HOUR);
  expect(await say(on, 'three'), 'the 30th').toEqual(['fine']);
  expect(await say(on, 'four')).toEqual([CHAT]);
  await clock.advance(-2 * HOUR);
  expect(await say(on, 'five'), 'the 29th again, whose limit is used up').toEqual([]);
  await clock.advance(2 * HOUR);
  expect(await say(on, 'six')).toEqual([]);
});

it('owners are told once a day for each limit, with the name in quotes on one line', async () => {
  const { on, clock } = await bench({ tokensPerChat: 50 }, { rules: { owners: ['test_9'] } });
  await say(on, 'hello', direct('9'));
  const chat = { address: '2', kind: 'direct' as const, title: 'Eve\n**free** `money`' };
  for (const text of ['one', 'two', 'three']) await say(on, text, { chat, sender: person('2') });
  for (const text of ['one', 'two']) await say(on, text, direct('3'));
  const told = () => on.sent.filter(({ to }) => to.address === '9').map(({ part }) => part.text);
  const news = told().filter((text) => text.includes('limits.'));
  expect(news).toEqual([
    'First today, the chat `` Eve **free** `money` `` (test_2) has reached `limits.tokens_per_chat` (50): no model is ' +
      'asked for more until midnight (UTC). To allow more, raise it in config.yaml and restart; `/usage` shows what was used.',
  ]);
  await clock.advance(DAY);
  for (const text of ['one', 'two']) await say(on, text, direct('3'));
  expect(told().filter((text) => text.includes('limits.'))).toHaveLength(2);
});

const isFlush = (request: ModelRequest) =>
  (request.messages.at(-1)?.content ?? '').startsWith('Memory flush.');
const isSummary = (request: ModelRequest) =>
  (request.messages[0]?.content ?? '').startsWith('You keep the summary');

it('above a limit windows are not compacted in the background; nothing is archived, and the next day it is made up for', async () => {
  const { on, clock } = await bench(
    { tokensPerChat: 1_000 },
    { settings: { compactAfterMessages: 6, keepRecentMessages: 2 } },
  );
  let counted = 100;
  on.answer(() => ({ text: 'done', usage: { inputTokens: counted, outputTokens: 0 } }));
  await say(on, 'one');
  await say(on, 'two');
  counted = 1_000;
  await say(on, 'three');
  await on.conversation.resting();
  expect(on.asked.filter(isFlush)).toHaveLength(0);
  expect(await on.store.openArchives({ channels: ['test'] })).toEqual([]);
  counted = 10;
  await clock.advance(DAY);
  await say(on, 'four');
  await on.conversation.resting();
  expect(on.asked.filter(isFlush).length).toBeGreaterThan(0);
  expect(on.asked.filter(isSummary)).toHaveLength(1);
  const { personas } = await on.store.usage({
    chatId: 'test_1',
    personId: null,
    since: clock.now(),
    now: clock.now(),
  });
  const requests = on.asked.length - 3;
  expect(tokensBy(personas, 'default'), 'flush and summary count').toBe(requests * 10);
});

it('plain requests do not look at the store for limits that nobody set', async () => {
  let looks = 0;
  const around: WorkbenchOptions['around'] = (store) => ({
    ...store,
    usage: (of) => {
      looks++;
      return store.usage(of);
    },
  });
  const { on } = await bench({}, { around });
  await say(on, 'one');
  expect(looks).toBe(0);
});

it('a window is compacted also where the model’s client is an object of a class', async () => {
  class Client implements ModelClient {
    async *stream(): AsyncGenerator<ModelEvent> {
      yield { kind: 'done', text: 'fine', calls: [], usage: null, model: 'm', truncated: false };
    }
    contextTokens() {
      return 100_000;
    }
    async check() {
      return { identity: 'test', warnings: [] };
    }
  }
  const settings = { compactAfterMessages: 6, keepRecentMessages: 2 };
  const { on } = await bench({}, { model: new Client(), memoryTools: true, settings });
  for (const text of ['one', 'two', 'three', 'four']) expect(await say(on, text)).toEqual(['fine']);
  await on.conversation.resting();
  expect((await on.store.whereabouts(null, null)).flushed).toBeGreaterThan(0);
});

it('what a model sends before it breaks off is counted', async () => {
  const model: ModelClient = {
    async *stream(_request, signal) {
      yield { kind: 'text', delta: 'x'.repeat(4_000) };
      await new Promise((resolve) => setImmediate(resolve));
      const { Fault } = await import('../../src/core/errors.js');
      yield { kind: 'failed', fault: new Fault(signal.aborted ? 'internal' : 'model_unreachable', 'cut') };
    },
    contextTokens: () => 100_000,
    check: async () => ({ identity: 'test', warnings: [] }),
  };
  const { on } = await bench({}, { model });
  await say(on, 'one');
  const { all } = await on.store.usage({ chatId: 'test_1', personId: null, since: NOON, now: NOON });
  expect(all.tokens).toBeGreaterThan(1_000);
});

it('/usage shows what was used by whom, and what is left of which limit', async () => {
  const limits = { tokensPerChat: 1_000, tokensPerPerson: 500, moneyPerPersona: 2, tokensPerDay: 1_000_000 };
  const { on } = await bench(limits, { rules: { owners: ['test_9'], requireMention: false } });
  on.answer(() => ({
    text: 'fine',
    usage: { inputTokens: 90, outputTokens: 10 },
    prices: { input: 100, output: 1_000 },
  }));
  expect(await say(on, '/usage')).toEqual([
    'This chat has used nothing in the last thirty days.\n\n' +
      'Left until midnight (UTC):\n- all chats: 100 % of the tokens\n- this chat: 1000 of 1000 tokens\n' +
      '- default: 2 of 2 in money\n- you: 500 of 500 tokens',
  ]);
  await say(on, 'one', inGroup('1'));
  await say(on, 'two', inGroup('2'));
  const table = 'default: 2 answers, 180 tokens read, 20 written, cost 0.038';
  expect(await say(on, '/usage', inGroup('2'))).toEqual([
    `Today (UTC):\n- ${table}\n\nLast thirty days:\n- ${table}\n\n` +
      'Left until midnight (UTC):\n- all chats: 99 % of the tokens\n- this chat: 800 of 1000 tokens\n' +
      '- default: 1.962 of 2 in money\n- you: 400 of 500 tokens',
  ]);
  const [forOwner = ''] = await say(on, '/usage', inGroup('9'));
  expect(forOwner, 'nothing of other chats where others read it').not.toContain('together');
  const [alone = ''] = await say(on, '/usage', direct('9'));
  expect(alone).toContain('All chats together today: 200 tokens, cost 0.038');
  expect(forOwner).toContain('- all chats: 999800 of 1000000 tokens');
});
