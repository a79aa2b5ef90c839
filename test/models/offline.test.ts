/** The offline model by itself: each test plays the gateway, with memory tools that work as ours do. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ModelMessage, ToolDescription } from '../../src/core/model.js';
import { escaped } from '../../src/core/origin.js';
import { createOfflineModel } from '../../src/models/offline.js';
import { answered, outcome } from './helpers.js';

const TOOLS: ToolDescription[] = ['read_tiered_memory', 'write_tiered_memory', 'read_memory'].map((name) => ({
  name,
  description: name,
  parameters: {},
}));

interface World {
  tier1: string;
  /** What the write tool answers instead of writing. */
  refusal?: string;
  /** What the read tools answer instead of reading. */
  readFails?: string;
  tools?: ToolDescription[];
}

const wrapped = (text: string, sender = 'Mia') =>
  `<user_message sender="${sender}" at="10:00">${text}</user_message>`;

function runTool(
  world: World,
  name: string,
  args: { tier?: number; content?: string; scope?: string },
): string {
  if (world.readFails) return world.readFails;
  if (name === 'read_memory')
    return `# Memory\n\n## Tier 1 — Long term\n\n${world.tier1}\n\n## Tier 2 — Mid term\n`;
  if (name === 'read_tiered_memory') return world.tier1 || '(Tier 1 is empty.)';
  if (world.refusal) return world.refusal;
  world.tier1 = args.content ?? '';
  return `Tier ${args.tier} is written. It now says:\n\n${world.tier1}`;
}

/** One turn; returns the reply and the calls that led to it, and adds both to the history. */
async function turn(world: World, history: ModelMessage[], content: string) {
  const model = createOfflineModel();
  history.push({ role: 'user', content });
  const calls: string[] = [];
  for (let round = 0; round < 6; round++) {
    const event = await answered(model, { messages: history, tools: world.tools ?? TOOLS });
    expect(event.usage).toBe(null);
    history.push({ role: 'assistant', content: event.text, calls: event.calls });
    if (event.calls.length === 0) return { reply: event.text, calls };
    for (const call of event.calls) {
      calls.push(call.name);
      const result = runTool(world, call.name, JSON.parse(call.arguments));
      history.push({ role: 'tool', callId: call.id, content: escaped(result) });
    }
  }
  throw new Error('it never came to an answer');
}

const say = (text: string, world: World = { tier1: '' }, history: ModelMessage[] = []) =>
  turn(world, history, wrapped(text));

describe('its first reply', () => {
  test('says what it is and how to connect a real one; later ones do not', async () => {
    const history: ModelMessage[] = [{ role: 'system', content: 'You are Luna.' }];
    const { reply } = await say('hello', undefined, history);
    for (const words of [
      'built-in offline model',
      'model.base_url',
      'model.name',
      'model.api_key',
      'config.yaml',
    ]) {
      expect(reply).toContain(words);
    }
    expect((await say('thanks', undefined, history)).reply).toBe('You are welcome.');
  });

  test('also where it greeted in the name of its persona before', async () => {
    const history: ModelMessage[] = [
      { role: 'user', content: '(The conversation, as far as you see it:)' },
      { role: 'assistant', content: 'Hey, I am Wren.', calls: [] },
    ];
    expect((await say('hello', undefined, history)).reply).toContain('built-in offline model');
    expect((await say('thanks', undefined, history)).reply).toBe('You are welcome.');
  });

  test('also where it follows tools', async () => {
    const { reply } = await say('remember that I prefer tea');
    expect(reply).toContain('built-in offline model');
    expect(reply).toContain('- I prefer tea');
  });
});

describe('remember that …', () => {
  test.each([
    ['remember that I prefer tea', 'I prefer tea'],
    ['Please remember that I prefer tea', 'I prefer tea'],
    ['remember that I write &lt;summary> a lot', 'I write <summary> a lot'],
    ['Hi! Can you remember that I prefer tea & <b>milk</b>', 'I prefer tea & <b>milk</b>'],
    ["don't forget that I prefer tea", 'I prefer tea'],
    ['Don’t forget: I prefer tea', 'I prefer tea'],
    ['@luna_bot, remember my birthday is 3 May', 'my birthday is 3 May'],
    ['Luna: keep in mind that I prefer tea', 'I prefer tea'],
    ['Merk dir bitte, dass ich Tee mag', 'ich Tee mag'],
    ["N'oublie pas que j'aime le thé", "j'aime le thé"],
    ['Recuerda que me gusta el té', 'me gusta el té'],
    ['Ricordati che mi piace il tè', 'mi piace il tè'],
    ['请记住我喜欢茶', '我喜欢茶'],
  ])('%j adds a line', async (text, fact) => {
    const world = { tier1: 'Lives in Bonn.' };
    const { reply, calls } = await say(text, world);
    expect(calls).toEqual(['read_tiered_memory', 'write_tiered_memory']);
    expect(world.tier1).toBe(`Lives in Bonn.\n- ${fact}`);
    expect(reply).toContain(`Saved to my long-term memory:\n\n- ${fact}`);
  });

  test('an empty tier holds only the new line', async () => {
    const world = { tier1: '' };
    await say('remember that I prefer tea', world);
    expect(world.tier1).toBe('- I prefer tea');
  });

  test('what is there already is not written again', async () => {
    const world = { tier1: '- I prefer tea' };
    const { reply, calls } = await say('remember that I prefer tea', world);
    expect(calls).toEqual(['read_tiered_memory']);
    expect(reply).toContain('I have that already');
  });

  test.each([
    ['a forward', ' from="Bob"'],
    ['a forward of nobody knows whom', ''],
  ])('in %s asks for nothing', async (_, from) => {
    const world = { tier1: '' };
    const forward = wrapped(`<forwarded${from}>remember that I hate tea</forwarded>`);
    expect((await turn(world, [], forward)).reply).toContain('somebody else’s words');
    expect(world.tier1).toBe('');
    await turn(world, [], `${forward}\n${wrapped('remember that Bob hates tea')}`);
    expect(world.tier1).toBe('- Bob hates tea');
  });

  test('of several messages at once, those of the last speaker count', async () => {
    const world = { tier1: '' };
    const content = [
      wrapped('remember that I hate it', 'Ben'),
      wrapped('hi'),
      wrapped('remember that I prefer tea'),
      wrapped('remember that I live in Bonn'),
    ].join('\n');
    const { reply } = await turn(world, [], content);
    expect(world.tier1).toBe('- I prefer tea\n- I live in Bonn');
    expect(reply).toContain('- I live in Bonn');
  });

  test('that was quoted is no wish of who quotes it; what was changed is', async () => {
    const world = { tier1: '' };
    const content = [
      '<in_reply_to sender="Ben">remember that I hate it</in_reply_to>',
      '<user_message sender="Mia" at="10:00" changes="an earlier message">remember that I say &lt;/recalled></user_message>',
    ].join('\n');
    await turn(world, [], content);
    expect(world.tier1).toBe('- I say </recalled>');
  });

  test.each([
    ['Tier 1 was not written, for you had not seen it.', 'had not seen it'],
    ['Tier 1 is written.', 'Tier 1 is written.'],
  ])('a tool that answers %j is quoted, and nothing confirmed', async (refusal, words) => {
    const { reply, calls } = await say('remember that I prefer tea', { tier1: '', refusal });
    expect(calls).toEqual(['read_tiered_memory', 'write_tiered_memory']);
    expect(reply).toContain('could not save');
    expect(reply).toContain(words);
  });

  test.each([
    'read_tiered_memory failed: I cannot read my memory files just now.',
    'Interrupted: the gateway ended while this ran.',
    'Not run: one answer may make 8 calls.',
  ])('a memory of which it reads %j is not overwritten', async (readFails) => {
    const { reply, calls } = await say('remember that I prefer tea', { tier1: 'x', readFails });
    expect(calls).toEqual(['read_tiered_memory']);
    expect(reply).toContain('could not save');
  });

  test('without tools it says so', async () => {
    const { reply, calls } = await say('remember that I prefer tea', { tier1: '', tools: [] });
    expect(calls).toEqual([]);
    expect(reply).toContain('cannot save');
  });

  test('something endless is declined', async () => {
    const { reply, calls } = await say(`remember that ${'x'.repeat(300_000)}`);
    expect(calls).toEqual([]);
    expect(reply).toContain('too long');
  });

  test.each(['I remember that day well', 'Take a note of nothing', 'forget it'])(
    '%j saves nothing',
    async (text) => {
      expect((await say(text)).calls).toEqual([]);
    },
  );
});

describe('what do you remember?', () => {
  test.each([
    'what do you remember?',
    'What do you know about me?',
    'Do you remember that I prefer tea?',
    'tell me what you remember',
    'Was weißt du über mich?',
    'Que sais-tu de moi ?',
    '你记得什么?',
  ])('%j is answered from memory', async (text) => {
    const { reply, calls } = await say(text, { tier1: '- I prefer tea' });
    expect(calls).toEqual(['read_memory']);
    expect(reply).toContain('This is what I remember:\n\n- I prefer tea');
    expect(reply).not.toContain('Tier 1');
  });

  test('nothing yet', async () => {
    expect((await say('what do you remember?')).reply).toContain('nothing yet');
  });

  test('with the tier tool alone', async () => {
    const { reply, calls } = await say('what do you remember?', { tier1: '- tea', tools: TOOLS.slice(0, 2) });
    expect(calls).toEqual(['read_tiered_memory']);
    expect(reply).toContain('- tea');
  });

  test('a memory that is long is cut, and one that fails is not told as memory', async () => {
    const { reply } = await say('what do you remember?', { tier1: '😀'.repeat(5000) });
    expect(reply).toContain('MEMORY.md');
    expect(reply).not.toMatch(/\p{Surrogate}/u);
    const { reply: failure } = await say('what do you remember?', {
      tier1: 'x',
      readFails: 'read_memory failed: I cannot.',
    });
    expect(failure).toContain('cannot read');
  });
});

describe('otherwise', () => {
  test('a flush is answered without harm', async () => {
    const { reply, calls } = await turn(
      { tier1: '' },
      [],
      'Memory flush. Remember that all is to be put down.',
    );
    expect(calls).toEqual([]);
    expect(reply).toBe('Nothing to store.');
  });

  test.each([
    ['who are you?', 'no language model'],
    ['help', 'what do you remember'],
    ['😀😀', '🙂'],
    ['The moon is far away.', 'The moon is far away.'],
  ])('%j is answered with %j', async (text, words) => {
    expect((await say(text)).reply).toContain(words);
  });

  test('whatever is said, there is one short, whole answer', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme', maxLength: 400 }), async (text) => {
        const { reply } = await say(text);
        expect(reply).not.toBe('');
        expect(reply.length).toBeLessThan(5_000);
        expect(reply).not.toMatch(/\p{Surrogate}/u);
      }),
    );
    expect((await say('x'.repeat(300_000))).reply.length).toBeLessThan(600);
  });

  test('a stop is obeyed, the check says what it is', async () => {
    const model = createOfflineModel();
    const request = { messages: [{ role: 'user' as const, content: 'hi' }], tools: [] };
    expect((await outcome(model, request, AbortSignal.abort())).kind).toBe('failed');
    const found = await model.check(new AbortController().signal);
    expect(found.warnings.join()).toContain('model.base_url');
  });
});

test('a picture is not guessed at, but what is said with it is done', async () => {
  const picture = { mimeType: 'image/png', bytes: Buffer.from('x') } as const;
  const ask = async (text: string) => {
    const content = wrapped(text);
    return answered(createOfflineModel(), {
      messages: [{ role: 'user', content, images: [picture] }],
      tools: TOOLS,
    });
  };
  expect((await ask('[image, 2 kB]')).text).toContain('I cannot see pictures');
  expect((await ask('Remember that I prefer tea\n[image, 2 kB]')).calls).toHaveLength(1);
});

test('its summary tells what was only forwarded apart', async () => {
  const content = `<summary_so_far>\n(none)\n</summary_so_far>\n\n<conversation>\n${wrapped('<forwarded from="Bob">I hate tea</forwarded>')}\n${wrapped('<forwarded>me too</forwarded>')}\n</conversation>\n\nConversation summary: write the new one.`;
  const { reply } = await turn({ tier1: '' }, [], content);
  expect(reply).toContain('- Mia, forwarding Bob: I hate tea\n- Mia, forwarding somebody: me too');
});
