/** What an agent needs an owner's word for: one question about its whole run, and what a yes, a no and silence do. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import type { ModelMessage } from '../../../src/core/model.js';
import type { Task, TaskParent, WorkAsk, WorkEnd } from '../../../src/core/task.js';
import type { AnyTool } from '../../../src/core/tool.js';
import type { Answer, WorkbenchOptions } from '../../harness/conversation.js';
import { CONTROL, type Desk, desk, done, MINUTE, OWNER, tool } from './desk.js';

let at: Desk;
const over = new Set<AbortController>();
afterEach(async () => {
  for (const each of over) each.abort();
  over.clear();
  await at.close();
});

/** What ran, in order. */
const ran: string[] = [];
const text = z.object({ text: z.string() });
const noting = (name: string, more: Partial<AnyTool>) =>
  tool(
    name,
    async (given) => {
      ran.push(`${name} ${String(given.text)}`);
      return done(`${name} did it`);
    },
    { parameters: text, ...more },
  );
const TOOLS = [
  noting('shell', { risk: 'high' }),
  noting('post', { isExternal: true }),
  noting('net_shell', { risk: 'high', isExternal: true }),
  noting('write', {}),
  noting('page', { isFromOutside: true, risk: 'low' }),
  noting('fetch', {
    risk: 'low',
    reachesOut: ({ text: host }: never) => ({ kind: 'host', host }),
  }),
];

async function open(options: WorkbenchOptions = {}): Promise<void> {
  ran.length = 0;
  at = await desk({ tools: TOOLS, ...options });
  await at.on.say('hello');
  await at.on.say('hello', CONTROL);
  await at.on.settled();
  at.on.sent.length = 0;
}

/** Makes these calls, `tool text`, one an answer, and then says `done`; resolves when it ends or waits for somebody. */
function begin(task: Task, calls: string[], more: Partial<WorkAsk> = {}, abort = new AbortController()) {
  over.add(abort);
  const left = [...calls];
  at.on.answer((): Answer => {
    const [name = '', ...words] = (left.shift() ?? '').split(' ');
    return name === '' ? 'done' : { calls: [{ name, arguments: { text: words.join(' ') } }] };
  });
  let waiting = () => {};
  const waits = new Promise<'waits'>((resolve) => {
    waiting = () => resolve('waits');
  });
  const ask = at.ask(task, 'go', {
    ...more,
    waits: (isWaiting) => {
      at.waits.push(isWaiting);
      if (isWaiting) waiting();
    },
  });
  const end = at.on.conversation.work.do(ask, abort.signal);
  return { end, stopped: Promise.race([waits, end]) };
}

const start = async (calls: string[], parent: Partial<TaskParent> | null = {}) => {
  const task = await at.task('task-1', parent);
  const { end, stopped } = begin(task, calls);
  await stopped;
  await at.on.settled();
  return { task, end };
};
const say = async (words: string) => {
  await at.on.say(words, CONTROL);
  await at.on.settled();
};
const results = ({ messages }: WorkEnd) =>
  messages.flatMap((message) => (message.role === 'tool' ? [message.content] : []));
const questions = () => at.textsTo('9').filter((each) => each.includes('/approve '));

describe('the question', () => {
  it('is one about the whole run: agent, task, for whom, folders, exact arguments, how to decide', async () => {
    await open();
    const { end } = await start(['shell rm -rf x']);
    expect(ran).toEqual([]);
    expect(at.textsTo('1')).toEqual([]);
    const [question = ''] = questions();
    for (const words of [
      ...['`utility`', '`Tidy the shed`', '`default` in the chat `Mira` (`test_1`)', '`shell`', '`/w`'],
      ...['`` /a `b` ``', '```json\n{\n  "text": "rm -rf x"\n}\n```', 'the whole of this run'],
      ...['all its commands', 'leaves this machine', 'To allow the whole run: /approve CODE1', '/deny CODE1'],
      '30 minutes',
    ]) {
      expect(question).toContain(words);
    }
    expect(at.waits).toEqual([true]);
    expect(await at.calls('shell')).toMatchObject([{ status: 'pending', agent: 'utility' }]);
    await say('/approve CODE1');
    expect(at.textsTo('9').at(-1)).toBe('`shell` (CODE1) is allowed, with its whole run.');
    expect(await end).toMatchObject({ kind: 'answered', wasExternalRefused: false });
    expect(at.waits).toEqual([true, false]);
    expect(ran).toEqual(['shell rm -rf x']);
    expect(await at.calls('shell')).toMatchObject([{ status: 'completed' }]);
  });

  it('names the title of a delegated task', async () => {
    await open();
    const task = await at.task('task-1', {});
    const titled = { ...task, request: { ...task.request, viap: { title: 'Shed\n/approve X' } } };
    await begin(titled, ['shell x']).stopped;
    await at.on.settled();
    expect(questions()[0]).toContain('`Shed /approve X`');
  });

  it('holds what its commands find in their environment, and what the task may not set there', async () => {
    await open();
    const task = await at.task('task-1', {});
    const { place } = at.ask(task, 'go');
    const env = {
      ...{
        MODE: 'quick\n\n/approve Y',
        API_TOKEN: 'hush-hush-42',
        LD_PRELOAD: '/evil.so',
        BASH_ENV: '/evil.sh',
      },
      'A`\nB': 'x',
    };
    await begin(task, ['shell x'], { place: { ...place, env } }).stopped;
    await at.on.settled();
    const [question = ''] = questions();
    expect(question).toContain('"MODE": "quick\\n\\n/approve Y"');
    expect(question).toContain('"API_TOKEN": "[not shown: a secret of 12 characters]"');
    expect(question).toContain('not set: `LD_PRELOAD`, `BASH_ENV`, ``A` B``.');
    expect(question).not.toMatch(/evil|hush/);
    expect(question.split('\n').filter((line) => /^\s*\/approve Y/.test(line))).toEqual([]);
  });

  it('stands in the chat itself where there is no control chat but an owner', async () => {
    await open({ rules: { owners: ['test_1'] } });
    await start(['post x']);
    expect(at.textsTo('1')[0]).toContain('/approve CODE1');
  });

  it('stands in the control chat of any channel for the task of a program', async () => {
    await open();
    const { end } = await start(['post x'], null);
    expect(questions()[0]).toContain('for a program');
    await say('/approve CODE1');
    expect(await end).toMatchObject({ kind: 'answered', wasExternalRefused: false });
    expect(ran).toEqual(['post x']);
  });

  it('is of no other task, which goes on meanwhile; nor does the chat wait', async () => {
    await open();
    await start(['shell x']);
    const other = await at.task('task-2', {});
    const end = await begin(other, ['write y']).end;
    expect(end.kind).toBe('answered');
    at.on.answer(() => 'here');
    await at.on.say('still there?');
    await at.on.settled();
    expect(at.textsTo('1')).toEqual(['here']);
    expect(ran).toEqual(['write y']);
  });
});

describe('a yes', () => {
  it('is to all further calls of the task, in later requests too, and to no other task', async () => {
    await open();
    const { task, end } = await start(['shell 1', 'shell 2', 'post 3', 'net_shell 4']);
    await say('/approve CODE1');
    expect((await end).kind).toBe('answered');
    await begin(task, ['post 5', 'shell 6'], { round: 1 }).end;
    expect(ran).toEqual(['shell 1', 'shell 2', 'post 3', 'net_shell 4', 'post 5', 'shell 6']);
    expect(questions()).toHaveLength(1);
    const other = await at.task('task-2', {});
    expect(await begin(other, ['post 7']).stopped).toBe('waits');
    await at.on.settled();
    expect(questions()).toHaveLength(2);
    expect(ran).not.toContain('post 7');
  });

  it('counts from owners alone', async () => {
    await open();
    await start(['post x']);
    await at.on.say('/approve CODE1');
    await at.on.settled();
    expect(ran).toEqual([]);
  });

  it('of a button is the same', async () => {
    await open({ buttons: true });
    const { end } = await start(['post x']);
    const value = at.on.sent.findLast(({ part }) => part.choices)?.part.choices?.[0]?.value ?? '';
    await at.on.receive({
      ...{ kind: 'choice', ...CONTROL, platformMessageId: 'p1', value, threadId: null, sentAt: 0 },
    });
    await at.on.settled();
    expect((await end).kind).toBe('answered');
    expect(ran).toEqual(['post x']);
  });
});

describe('a no', () => {
  it('refuses what leaves the machine, in the words of the contract, at once from then on', async () => {
    await open();
    const { task, end } = await start(['post 1', 'net_shell 2', 'write 3']);
    await say('/deny CODE1');
    const ended = await end;
    expect(ended).toMatchObject({ kind: 'answered', wasExternalRefused: true });
    const [first, second, third] = results(ended);
    expect(first).toMatch(/^requires explicit owner instruction: post /);
    expect(second).toMatch(/^requires explicit owner instruction: net_shell /);
    expect(third).toBe('write did it');
    expect(ran).toEqual(['write 3']);
    expect(questions()).toHaveLength(1);
    expect(at.textsTo('1')).toEqual([]);
    expect(await at.calls('post')).toMatchObject([
      { status: 'completed', results: { error: expect.stringMatching(/^requires explicit/) } },
    ]);
    expect(await at.calls('net_shell')).toMatchObject([{ status: 'completed' }]);
    const later = await begin(task, ['post 4'], { round: 1 }).end;
    expect(later.wasExternalRefused).toBe(true);
    expect(questions()).toHaveLength(1);
  });

  it('leaves a command without network to ask by itself, for that call alone', async () => {
    await open();
    const { end } = await start(['shell 1', 'shell 1', 'shell 2', 'shell 3']);
    await say('/deny CODE1');
    await vi.waitFor(() => expect(questions()).toHaveLength(2));
    expect(questions().at(-1)).toContain('To allow it once: /approve CODE2');
    expect(questions().at(-1)).toContain('"text": "2"');
    await say('/approve CODE2');
    expect(at.textsTo('9')).toContain('`shell` (CODE2) is allowed, once.');
    await vi.waitFor(() => expect(questions()).toHaveLength(3));
    await say('/deny CODE3');
    const ended = await end;
    expect(ran).toEqual(['shell 2']);
    expect(results(ended)).toEqual([
      expect.stringMatching(/^Denied: /),
      expect.stringMatching(/^Not run: people were asked about this very call/),
      'shell did it',
      expect.stringMatching(/^Denied: /),
    ]);
    expect(ended.wasExternalRefused).toBe(false);
    expect(at.textsTo('1')).toEqual([]);
  });

  it('is what nobody says in time: the question is over, its buttons too, and no chat is told', async () => {
    await open();
    const { end } = await start(['post 1']);
    await at.clock.advance(30 * MINUTE);
    const ended = await end;
    expect(ended).toMatchObject({ kind: 'answered', wasExternalRefused: true });
    expect(results(ended)[0]).toMatch(/^requires explicit owner instruction/);
    await say('/approve CODE1');
    expect(at.textsTo('9').at(-1)).toMatch(/^That approval is closed/);
    expect(at.textsTo('1')).toEqual([]);
    expect(ran).toEqual([]);
    expect(at.on.audited).toContainEqual(
      expect.objectContaining({ kind: 'call', what: 'post expired (CODE1)' }),
    );
  });
});

describe('where nobody could decide', () => {
  const NOBODY: [string, WorkbenchOptions, Partial<TaskParent> | null][] = [
    ['a direct chat of nobody who is an owner', { rules: { owners: ['test_9'] } }, {}],
    ['the task of a program', { rules: { owners: ['test_9'] } }, null],
    ['a control chat on a channel that does not run', { rules: { controlChats: ['gone_5'] } }, {}],
  ];
  for (const [where, options, parent] of NOBODY) {
    it(`is refused at once: ${where}`, async () => {
      await open(options);
      const task = await at.task('task-1', parent);
      const end = await begin(task, ['post 1', 'shell 2', 'write 3']).end;
      expect(results(end).map((each) => each.startsWith('requires explicit owner instruction'))).toEqual([
        ...[true, true, false],
      ]);
      expect(end.wasExternalRefused).toBe(true);
      expect(at.waits).toEqual([]);
      expect(ran).toEqual(['write 3']);
    });
  }

  it('is not so in a group, where owners may be', async () => {
    await open({ rules: { owners: ['test_9'] } });
    await at.on.say('hello', { chat: { address: '-5', kind: 'group', title: 'G' }, mentionsBot: true });
    await at.on.settled();
    const task = await at.task('task-1', { chatId: 'test_-5', room: 'test_-5' });
    expect(await begin(task, ['post 1']).stopped).toBe('waits');
  });
});

it('nobody is asked about a call that would do nothing whatever they said', async () => {
  const vain = noting('shell', {
    risk: 'high',
    refusalHere: ({ agent }) => (agent?.cwd ? null : 'No folder.'),
  });
  await open({ tools: [vain] });
  const task = await at.task('task-1', {});
  const { place } = at.ask(task, 'go');
  const end = await begin(task, ['shell 1'], { place: { ...place, cwd: null } }).end;
  expect(results(end)).toEqual(['No folder.']);
  expect(questions()).toEqual([]);
  expect(at.waits).toEqual([]);
  expect(await at.calls('shell')).toMatchObject([{ status: 'completed', results: { error: 'No folder.' } }]);
  expect(await begin(task, ['shell 2'], { round: 1 }).stopped).toBe('waits');
});

describe('words from outside', () => {
  it('make what reaches out ask by itself, also after a yes to the run; a host that was named does not', async () => {
    await open();
    const task = await at.task('task-1', {});
    const named = { ...task, goal: 'Read example.com' };
    const { end, stopped } = begin(named, [
      'fetch other.org',
      'page x',
      'fetch example.com',
      'fetch other.org',
    ]);
    await stopped;
    await at.on.settled();
    expect(ran).toEqual(['fetch other.org', 'page x', 'fetch example.com']);
    expect(questions()[0]).toContain('it reaches other.org');
    expect(questions()[0]).toContain('To allow it once');
    await say('/approve CODE1');
    expect(await end).toMatchObject({ kind: 'answered', tainted: true });
    expect(ran.at(-1)).toBe('fetch other.org');
  });

  it('count from the start where the parent had read some, and then name nothing', async () => {
    await open();
    const task = await at.task('task-1', { tainted: true });
    expect(await begin({ ...task, goal: 'Read other.org' }, ['fetch other.org']).stopped).toBe('waits');
  });
});

describe('what ends the waiting', () => {
  it('is an abort: the question is over, the call has a result, and a later request may ask again', async () => {
    await open();
    const task = await at.task('task-1', {});
    const abort = new AbortController();
    const { end, stopped } = begin(task, ['post 1'], {}, abort);
    await stopped;
    await at.on.settled();
    abort.abort();
    const ended = await end;
    expect(ended.kind).toBe('dropped');
    expect(at.waits).toEqual([true, false]);
    expect(results(ended)).toEqual(['Not run: what you were doing was ended before it came to this.']);
    expect(await at.calls('post')).toMatchObject([{ status: 'interrupted' }]);
    await say('/approve CODE1');
    expect(at.textsTo('9').at(-1)).toMatch(/^That approval is closed/);
    const messages: ModelMessage[] = [...ended.messages, { role: 'user', content: 'go on' }];
    expect(await begin(task, ['post 1'], { messages, round: 1 }).stopped).toBe('waits');
    expect(ran).toEqual([]);
  });

  it('is the end of the task', async () => {
    await open();
    const { end } = await start(['post 1']);
    await at.on.store.tellTask('task-1', 'stop', at.clock.now());
    expect((await end).kind).toBe('dropped');
    await say('/approve CODE1');
    expect(ran).toEqual([]);
    expect(await at.calls('post')).toMatchObject([{ status: 'interrupted' }]);
  });

  it('is nothing else: news of other tasks, and a timer that fires too early', async () => {
    await open();
    const { end } = await start(['post 1']);
    await at.task('task-2', {});
    await at.clock.advance(29 * MINUTE);
    expect(ran).toEqual([]);
    await say('/approve CODE1');
    expect((await end).kind).toBe('answered');
    expect(ran).toEqual(['post 1']);
  });
});

describe('what leaves the machine', () => {
  it('is not asked of a persona, whose calls follow the usual rules', async () => {
    await open();
    at.on.answer(
      (request): Answer =>
        request.messages.at(-1)?.role === 'tool'
          ? 'done'
          : { calls: [{ name: 'post', arguments: { text: '1' } }] },
    );
    await at.on.say('go', OWNER);
    await at.on.settled();
    expect(ran).toEqual(['post 1']);
  });
});
