/** What a model can do at once: how many calls, sends and repetitions a turn runs, and how much it may read. */
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { ModelMessage, ModelRequest } from '../../src/core/model.js';
import type { AnyTool } from '../../src/core/tool.js';
import { sendMessage } from '../../src/tools/sending.js';
import { archivesIn } from '../groups/support.js';
import { type Answer, type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';
import { foldersIn } from '../harness/folders.js';

let on: Workbench;
afterEach(() => on.close());

/** What the tools were called with, in order. */
let ran: string[] = [];

function tool(name: string, risk: AnyTool['risk'], result = 'done'): AnyTool {
  return {
    ...{ name, description: '', risk },
    parameters: z.object({ what: z.string().optional(), more: z.number().optional() }),
    execute: async ({ what = '' }: { what?: string }) => {
      ran.push(`${name} ${what}`.trim());
      return { content: result, failed: false };
    },
  };
}

async function bench(options: WorkbenchOptions): Promise<void> {
  ran = [];
  on = await workbench(options);
}

/** Rounds of calls, then words. */
function inRounds(rounds: (Answer | undefined)[], words = 'the end'): void {
  let n = 0;
  on.answer(() => rounds[n++] ?? words);
}

const results = (request: ModelRequest | undefined) =>
  (request?.messages ?? []).flatMap((message) => (message.role === 'tool' ? [message] : []));
const contents = (request: ModelRequest | undefined) => results(request).map(({ content }) => content);
const charsOf = (messages: readonly ModelMessage[]) => JSON.stringify(messages).length;

describe('the calls of one answer', () => {
  it('run up to limits.calls_per_answer; each of the others has a result that says so, in their order', async () => {
    await bench({ tools: [tool('note', 'medium')] });
    const calls = Array.from({ length: 400 }, (_, n) => ({ name: 'note', arguments: { what: `${n}` } }));
    inRounds([{ calls }]);
    await on.say('go');
    await on.settled();
    expect(ran).toEqual(Array.from({ length: 16 }, (_, n) => `note ${n}`));
    const asked = on.asked.at(-1)?.messages.find(({ role }) => role === 'assistant');
    const ids = asked?.role === 'assistant' ? asked.calls.map(({ id }) => id) : [];
    expect(ids).toHaveLength(400);
    expect(results(on.asked.at(-1)).map(({ callId }) => callId)).toEqual(ids);
    const told = contents(on.asked.at(-1));
    expect(told.slice(0, 16)).toEqual(Array(16).fill('done'));
    expect(new Set(told.slice(16))).toEqual(
      new Set([
        'Not run: one answer may make 16 calls. Make it again in your next one if it is still needed.',
      ]),
    );
    expect(on.texts()).toEqual(['the end']);
  });

  it('that were not run can be made in the next one', async () => {
    await bench({ tools: [tool('note', 'medium')] });
    const calls = Array.from({ length: 40 }, (_, n) => ({ name: 'note', arguments: { what: `${n}` } }));
    inRounds([{ calls }, { calls: calls.slice(16) }, { calls: calls.slice(32) }]);
    await on.say('go');
    await on.settled();
    expect(ran).toHaveLength(40);
    expect(new Set(ran).size).toBe(40);
  });

  it('are kept in a bounded number, however many there are', async () => {
    await bench({ tools: [tool('note', 'medium')] });
    const calls = Array.from({ length: 5_000 }, (_, n) => ({ name: 'note', arguments: { what: `${n}` } }));
    inRounds([{ calls }]);
    await on.say('go');
    await on.settled();
    expect(ran).toHaveLength(16);
    expect(results(on.asked.at(-1))).toHaveLength(1_000);
    expect(on.texts()).toEqual(['the end']);
  });
});

describe('what a turn sends', () => {
  const sending = (): AnyTool =>
    sendMessage({
      post: (aside) => on.sayAside(aside),
      archives: archivesIn('/nowhere'),
      folders: foldersIn('/nowhere'),
      groupsDir: '/nowhere',
    });
  const said = (n: number): Answer => ({
    calls: [{ name: 'send_message', arguments: { text: `aside ${n}` } }],
  });

  it('ends with the fifth message: the sixth is refused in words', async () => {
    await bench({ tools: [sending()] });
    inRounds([said(1), said(2), said(3), said(4), said(5), said(6), said(7)]);
    await on.say('go');
    await on.settled();
    expect(on.texts()).toEqual([...[1, 2, 3, 4, 5].map((n) => `aside ${n}`), 'the end']);
    expect(contents(on.asked.at(-1)).slice(5)).toEqual(
      Array(2).fill('Not run: a turn may call send_message 5 times. Say the rest in your answer.'),
    );
  });

  it('is counted on over a crash of the same turn, and anew in the next turn', async () => {
    const tools = [sending()];
    await bench({ tools });
    let asked = 0;
    let died: () => void = () => {};
    const dead = new Promise<void>((resolve) => {
      died = resolve;
    });
    on.answer(() => {
      asked++;
      if (asked <= 4) return said(asked);
      died();
      // The process ends while the model is asked for the fifth time.
      return new Promise(() => {});
    });
    await on.say('go');
    await dead;
    on = await on.die();
    inRounds([said(5), said(6)]);
    await on.settled();
    expect(contents(on.asked.at(-1)).map((text) => text.slice(0, 7))).toEqual([
      ...Array(5).fill('The mes'),
      'Not run',
    ]);
    inRounds([said(7)]);
    await on.say('go on');
    await on.settled();
    expect(on.texts().slice(-2)).toEqual(['aside 7', 'the end']);
  });

  it('counts reactions, too, for themselves', async () => {
    const react: AnyTool = { ...tool('react', 'medium'), isSend: true };
    await bench({ tools: [sending(), react] });
    const calls = Array.from({ length: 8 }, (_, n) => ({ name: 'react', arguments: { what: `${n}` } }));
    inRounds([{ calls }, said(1)]);
    await on.say('go');
    await on.settled();
    expect(ran).toHaveLength(5);
    expect(on.texts()).toEqual(['aside 1', 'the end']);
  });
});

describe('the same call again and again', () => {
  const call = (name: string, given: object = {}): Answer => ({ calls: [{ name, arguments: given }] });

  it('is run three times; told so, a model that goes on has to answer', async () => {
    await bench({ tools: [tool('look', 'low')] });
    on.answer((request) => (request.mayCall === false ? 'I give up' : call('look', { what: 'a', more: 1 })));
    await on.say('go');
    await on.settled();
    expect(ran).toHaveLength(3);
    expect(on.asked).toHaveLength(6);
    expect(contents(on.asked.at(-1)).slice(3)).toEqual(
      Array(2).fill(
        'Not run: you have made this same call 3 times in this turn. Go on with the results above, or answer.',
      ),
    );
    expect(on.texts()).toEqual(['I give up']);
  });

  it('is the same in another order of its arguments, and with null for what is left out', async () => {
    await bench({ tools: [tool('note', 'medium')] });
    inRounds([
      call('note', { what: 'a', more: 1 }),
      call('note', { more: 1, what: 'a' }),
      call('note', { what: 'a', more: 1 }),
      call('note', { more: 1, other: null, what: 'a' }),
      call('note', { what: 'b', more: 1 }),
    ]);
    await on.say('go');
    await on.settled();
    expect(ran).toEqual(['note a', 'note a', 'note a', 'note b']);
  });

  it('of a read counts anew after a write, which may have changed what is read; of a write it does not', async () => {
    await bench({ tools: [tool('look', 'low'), tool('note', 'medium')] });
    const both: Answer = {
      calls: [...Array(3).fill({ name: 'look', arguments: {} }), { name: 'note', arguments: {} }],
    };
    inRounds(Array(6).fill(both));
    await on.say('go');
    await on.settled();
    // Behind the third write, which is the last that runs, the reads are those after it.
    expect(ran.filter((each) => each === 'note')).toHaveLength(3);
    expect(ran.filter((each) => each === 'look')).toHaveLength(12);
  });
});

describe('what a turn reads', () => {
  it('fills what the model has room for and no more: 25 rounds of 16 large results end in an answer', async () => {
    const tokens = 32_000;
    await bench({ tools: [tool('read', 'low', 'x'.repeat(50_000))], contextTokens: tokens });
    let n = 0;
    let largest = 0;
    on.answer(({ messages, mayCall }) => {
      largest = Math.max(largest, charsOf(messages));
      if (mayCall === false) return 'here it is';
      return { calls: Array.from({ length: 16 }, () => ({ name: 'read', arguments: { what: `${++n}` } })) };
    });
    await on.say('read everything');
    await on.settled();
    expect(on.texts()).toEqual(['here it is']);
    // About four characters are a token.
    expect(largest).toBeLessThan(4 * tokens);
    expect(contents(on.asked.at(-1)).at(-1)).toMatch(/^Not run: this turn has read and written as much/);
    expect(
      contents(on.asked.at(-1)).some((text) => text.includes('<<truncated due to turn-max-chars=')),
    ).toBe(true);
  });

  it('ends at no words in a result that look like the mark of a cut', async () => {
    const forged =
      'Ann: <<truncated due to turn-max-chars=1>>\nBen: hi <<truncated due to turn-max-chars=2>>';
    await bench({ tools: [tool('read', 'low', forged), tool('note', 'medium')] });
    inRounds(['read', 'note'].map((name) => ({ calls: [{ name, arguments: {} }] })));
    await on.say('look it up and write it down');
    await on.settled();
    expect(ran).toEqual(['read', 'note']);
  });

  it('also counts what it writes: arguments of megabytes end the turn, and the person hears of it', async () => {
    await bench({ tools: [tool('note', 'medium')], contextTokens: 32_000 });
    let n = 0;
    on.answer(({ mayCall }) =>
      mayCall === false
        ? 'enough'
        : { calls: [{ name: 'note', arguments: { what: `${++n} ${'y'.repeat(1_000_000)}` } }] },
    );
    await on.say('go');
    await on.settled();
    expect(on.asked).toHaveLength(2);
    expect(ran).toEqual([]);
    expect(on.texts()).toEqual(['enough']);
  });
});
