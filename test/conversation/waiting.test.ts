/** A turn that waits for something outside of it: it holds nothing meanwhile, and goes on when that has come. */
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { ModelRequest } from '../../src/core/model.js';
import type { AnyTool } from '../../src/core/tool.js';
import { manualClock } from '../fakes/clock.js';
import { type Answer, type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';

let on: Workbench;
const others: Workbench[] = [];
afterEach(async () => {
  for (const other of others.splice(0)) await other.end();
  await on.close();
});

const HOUR = 3_600_000;
const NEVER_CAME = 'Nothing came of this in time, so it is over.';

/** Waits for `approval-<chat>`, and the second time in a chat for `approval-<chat>-2`, and so on. */
function askTool(until: () => number | null): AnyTool {
  const times = new Map<string, number>();
  return {
    ...{ name: 'ask', description: 'Asks a person', risk: 'medium', parameters: z.object({}) },
    async execute(_given: never, { room }) {
      const time = (times.get(room) ?? 0) + 1;
      times.set(room, time);
      return { waitsFor: `approval-${room}${time > 1 ? `-${time}` : ''}`, until: until() };
    },
  };
}

const lastWords = ({ messages }: ModelRequest) =>
  [...(messages.at(-1)?.content ?? '').matchAll(/>([^<]*)<\/user_message>/g)].at(-1)?.[1] ?? '';

/** “delete it” asks first and then says what came of that; all else is answered at once. */
function script(request: ModelRequest): Answer {
  const results = request.messages.filter(({ role }) => role === 'tool');
  if (request.messages.at(-1)?.role === 'tool') return `asked: ${results.at(-1)?.content}`;
  return lastWords(request) === 'delete it' ? { calls: [{ name: 'ask', arguments: {} }] } : 'fine';
}

async function open({ until = null, ...more }: WorkbenchOptions & { until?: number | null } = {}) {
  const clock = more.clock ?? manualClock();
  const from = clock.now();
  on = await workbench({ clock, tools: [askTool(() => until && from + until)], ...more });
  on.answer(script);
  return { clock: clock as ReturnType<typeof manualClock> };
}

/** The same after an end of the process. */
async function die(): Promise<void> {
  on = await on.die();
  on.answer(script);
  await on.settled();
}

const resume = (content: string, waitsFor = 'approval-test_1', failed = false) =>
  on.conversation.resume({ waitsFor, content, failed });

describe('while it waits', () => {
  it('nothing runs, and what else is said in the chat is answered', async () => {
    await open();
    await on.say('delete it');
    await on.settled();
    expect(on.texts()).toEqual([]);
    await on.say('how are you?');
    await on.settled();
    expect(on.texts()).toEqual(['fine']);
    await resume('yes, do');
    await on.settled();
    expect(on.texts()).toEqual(['fine', 'asked: yes, do']);
    await on.say('thank you');
    await on.settled();
    expect(on.texts()).toEqual(['fine', 'asked: yes, do', 'fine']);
  });

  it('another gateway may answer in the same chat: it holds no lease', async () => {
    await open();
    await on.say('delete it');
    await on.settled();
    const other = await on.beside('other');
    others.push(other);
    await other.say('how are you?');
    await other.settled();
    expect(other.texts()).toEqual(['fine']);
  });

  it('it takes no place from others, however many wait', async () => {
    await open();
    const chats = Array.from({ length: 101 }, (_, n) => `${n + 1}`);
    const from = (address: string) => ({
      chat: { address, kind: 'direct' as const, title: address },
      sender: { address, name: address, administrator: false },
    });
    for (const chat of chats) await on.say('delete it', from(chat));
    await on.settled();
    expect(on.asked).toHaveLength(101);
    await on.say('how are you?', from('102'));
    await on.settled();
    expect(on.texts()).toEqual(['fine']);
  });

  it('the request that goes on holds its own words, call and result, and those said meanwhile', async () => {
    await open();
    await on.say('delete it');
    await on.settled();
    await on.say('take your time');
    await on.settled();
    await resume('approved by Mira');
    await on.settled();
    const request = on.asked.at(-1)?.messages ?? [];
    const call = request.find((message) => message.role === 'assistant' && message.calls.length > 0);
    const callId = call?.role === 'assistant' ? call.calls[0]?.id : undefined;
    expect(request.at(-1)).toEqual({ role: 'tool', callId, content: 'approved by Mira' });
    expect(JSON.stringify(request)).toContain('take your time');
    // What it answers stands there once.
    expect(JSON.stringify(request).split('>delete it<')).toHaveLength(2);
  });
});

describe('what brings it back', () => {
  it('holds its question once, and as answered later, however much was said meanwhile', async () => {
    await open();
    await on.say('delete it');
    await on.settled();
    for (let n = 0; n < 40; n++) {
      await on.say(`and ${n}?`);
      await on.settled();
    }
    await resume('yes');
    await on.settled();
    const whole = (request: ModelRequest | undefined) => JSON.stringify(request?.messages);
    expect(whole(on.asked.at(-1)).split('>delete it<')).toHaveLength(2);
    await on.say('thank you');
    await on.settled();
    expect(whole(on.asked.at(-1)).split('>delete it<')).toHaveLength(2);
    expect(whole(on.asked.at(-1))).not.toContain('I gave no answer');
  });

  it('does so once, though it comes twice, one after the other or at once', async () => {
    await open();
    await on.say('delete it');
    await on.settled();
    await Promise.all([resume('first'), resume('second')]);
    await on.settled();
    await resume('third');
    await on.settled();
    expect(on.texts()).toEqual(['asked: first']);
  });

  it('may come before the turn waits for it', async () => {
    await open();
    await resume('early');
    await on.say('delete it');
    await on.settled();
    expect(on.texts()).toEqual(['asked: early']);
  });

  it('is nothing where something else is waited for', async () => {
    await open();
    await on.say('delete it');
    await on.settled();
    await resume('for somebody else', 'approval-test_2');
    await on.settled();
    expect(on.texts()).toEqual([]);
    await resume('now');
    await on.settled();
    expect(on.texts()).toEqual(['asked: now']);
  });

  it('may come at another gateway than the one where it began', async () => {
    await open();
    await on.say('delete it');
    await on.settled();
    const other = await on.beside('other');
    others.push(other);
    other.answer(script);
    await other.conversation.resume({ waitsFor: 'approval-test_1', content: 'yes', failed: false });
    await other.settled();
    expect(other.texts()).toEqual(['asked: yes']);
    on.conversation.takeUp(
      await on.store.pending({ owner: 'test', channels: ['test'], now: Date.UTC(2026, 0, 1) }),
    );
    await on.settled();
    expect(on.texts()).toEqual([]);
  });

  it('may lead to another wait of the same turn', async () => {
    await open();
    on.answer((request) => {
      const results = request.messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
      return results.length < 2 ? { calls: [{ name: 'ask', arguments: {} }] } : results.join(' and ');
    });
    await on.say('delete both');
    await on.settled();
    await resume('one');
    await on.settled();
    expect(on.texts()).toEqual([]);
    await resume('two', 'approval-test_1-2');
    await on.settled();
    expect(on.texts()).toEqual(['one and two']);
  });

  it('comes after an end of the process as well', async () => {
    await open();
    await on.say('delete it');
    await on.settled();
    await die();
    expect(on.asked).toEqual([]);
    await on.say('how are you?');
    await on.settled();
    await resume('yes');
    await on.settled();
    expect(on.texts()).toEqual(['fine', 'asked: yes']);
  });

  it('is not lost when the process ends right behind it', async () => {
    await open();
    await on.say('delete it');
    await on.settled();
    on.answer(() => new Promise(() => {}));
    await resume('yes');
    await die();
    expect(on.texts()).toEqual(['asked: yes']);
    expect(on.asked.at(-1)?.messages.at(-1)).toMatchObject({ role: 'tool', content: 'yes' });
  });
});

describe('a turn that does not wait for ever', () => {
  it('goes on at its time with a result that says so', async () => {
    const { clock } = await open({ until: HOUR });
    await on.say('delete it');
    await on.settled();
    await clock.advance(HOUR - 1_000);
    await on.settled();
    expect(on.texts()).toEqual([]);
    await clock.advance(2_000);
    await expect.poll(() => on.texts()).toEqual([`asked: ${NEVER_CAME}`]);
    await resume('too late');
    await on.settled();
    expect(on.texts()).toHaveLength(1);
  });

  it('goes on before, where the result comes, and then no more', async () => {
    const { clock } = await open({ until: HOUR });
    await on.say('delete it');
    await on.settled();
    await resume('yes');
    await on.settled();
    await clock.advance(2 * HOUR);
    await on.settled();
    expect(on.texts()).toEqual(['asked: yes']);
  });

  it('is over with /stop: its time is no result for a later turn that waits for the same', async () => {
    const clock = manualClock();
    let until: number | null = clock.now() + HOUR;
    const tool: AnyTool = {
      ...{ name: 'ask', description: 'Asks a person', risk: 'medium', parameters: z.object({}) },
      execute: async () => ({ waitsFor: 'approval', until }),
    };
    await open({ clock, tools: [tool] });
    await on.say('delete it');
    await on.settled();
    await on.say('/stop');
    await on.settled();
    await clock.advance(2 * HOUR);
    await on.settled();
    const before = on.texts().length;
    until = null;
    await on.say('delete it');
    await on.settled();
    expect(on.texts().slice(before)).toEqual([]);
    await resume('yes', 'approval');
    await on.settled();
    expect(on.texts().slice(before)).toEqual(['asked: yes']);
  });

  it('goes on at its time after an end of the process', async () => {
    const { clock } = await open({ until: HOUR });
    await on.say('delete it');
    await on.settled();
    await die();
    await clock.advance(HOUR - 1_000);
    await on.settled();
    expect(on.texts()).toEqual([]);
    await clock.advance(2_000);
    await expect.poll(() => on.texts()).toEqual([`asked: ${NEVER_CAME}`]);
  });

  it('goes on at the next start where its time came in between', async () => {
    const clock = manualClock();
    const options = { clock, tools: [askTool(() => Date.UTC(2026, 0, 1) + HOUR)] };
    on = await workbench(options);
    on.answer(script);
    await on.say('delete it');
    await on.settled();
    const { folder } = on;
    await on.end();
    await clock.advance(3 * HOUR);
    on = await workbench({ ...options, folder });
    on.answer(script);
    await clock.advance(1);
    await expect.poll(() => on.texts()).toEqual([`asked: ${NEVER_CAME}`]);
  });
});

describe('somebody who does not want it any more', () => {
  it.each([
    ['/stop', /^Stopped\.$/],
    ['/reset', /^Conversation cleared\./],
  ])('%s ends it for good, also after an end of the process', async (command, answer) => {
    const { clock } = await open({ until: HOUR });
    await on.say('delete it');
    await on.settled();
    await on.say(command);
    await on.settled();
    expect(on.texts()).toEqual([expect.stringMatching(answer)]);
    await resume('yes');
    await on.settled();
    await clock.advance(2 * HOUR);
    await on.settled();
    await die();
    await resume('yes');
    await on.settled();
    expect(on.texts()).toEqual([]);
    expect(on.asked).toEqual([]);
    await on.say('how are you?');
    await on.settled();
    expect(on.texts()).toEqual(['fine']);
    if (command === '/reset') expect(JSON.stringify(on.asked)).not.toContain('delete it');
  });
});
