/**
 * What was said is kept: the route with the real client, against servers that end their answers with nothing, or at their
 * limit. Nothing is asked for more than once again, and nothing is written twice.
 */

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { ModelRequest } from '../../src/core/model.js';
import { createOpenAiModel } from '../../src/models/openai.js';
import { ServerWays } from '../../src/models/server-ways.js';
import { manualClock } from '../fakes/clock.js';
import { type ChatBody, type FakeModel, type ModelReply, startFakeModel } from '../fakes/model.js';
import { limited } from '../fakes/model-limits.js';
import { claude } from '../fakes/model-servers/claude.js';
import { type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';
import { quietLog } from '../harness/quiet.js';
import { straight } from '../harness/straight.js';
import { memoryStorage } from '../models/helpers.js';

let on: Workbench;
let fake: FakeModel | undefined;
afterEach(async () => {
  await on.close();
  await fake?.close();
  fake = undefined;
});

async function talkingTo(reply: ModelReply, options: WorkbenchOptions = {}): Promise<FakeModel> {
  fake = await startFakeModel({ reply, server: claude() });
  const clock = options.clock ?? manualClock();
  const model = createOpenAiModel({
    outward: straight,
    server: { baseUrl: fake.url, apiKey: null, name: 'claude' },
    maxOutputTokens: 25,
    timeoutSeconds: 60,
    ways: new ServerWays(memoryStorage(), quietLog),
    contextTokens: () => null,
    tellsWindow: async () => null,
    clock,
    log: quietLog,
  });
  on = await workbench({ memoryTools: true, model, ...options });
  return fake;
}

async function say(text: string): Promise<void> {
  await on.say(text);
  await on.settled();
}

const daily = async () => {
  const folder = join(on.folder, 'groups/test_1/memory');
  const files = await readdir(folder).catch(() => []);
  return (await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')))).join('');
};

const noting = (line: string, text?: string) => ({
  ...(text === undefined ? {} : { text }),
  calls: [{ name: 'write_memory', arguments: { scope: 'chat_daily', content: line } }],
});

const isFlush = (body: ChatBody) =>
  body.messages.some(({ content }) => content?.startsWith('Memory flush.') ?? false);

describe('a model that ends with nothing after a tool has answered', () => {
  it('has replied with the words beside its call', async () => {
    const { requests } = await talkingTo((_, n) => (n === 0 ? noting('- tea', 'Noted: tea.') : 'never'));
    await say('I like tea.');
    expect(on.texts()).toEqual(['Noted: tea.']);
    expect(requests.length).toBe(2);
    expect((await daily()).match(/- tea/g)).toHaveLength(1);
  });

  it('is asked once for words where it said none, by a new message', async () => {
    const { requests } = await talkingTo((_, n) => (n === 0 ? noting('- tea') : 'I wrote it down.'));
    await say('I like tea.');
    expect(on.texts()).toEqual(['I wrote it down.']);
    expect(requests.length).toBe(3);
    expect(requests[2]?.body.messages.at(-1)?.role).toBe('user');
    expect((await daily()).match(/- tea/g)).toHaveLength(1);
  });

  it('and says nothing even then: one plain sentence, and nothing written twice', async () => {
    const { requests } = await talkingTo((_, n) => (n === 0 ? noting('- tea') : ''));
    await say('I like tea.');
    expect(on.texts()).toEqual(['My language model gave no answer this time. Please try again.']);
    expect(requests.length).toBe(3);
    expect((await daily()).match(/- tea/g)).toHaveLength(1);
  });

  it('has ended a flush with it', async () => {
    const { requests } = await talkingTo(
      (body) =>
        isFlush(body) && body.messages.at(-1)?.role !== 'tool' ? noting('- talked about tea') : 'fine',
      { settings: { compactAfterMessages: 6, keepRecentMessages: 2 } },
    );
    for (let n = 1; n <= 4; n++) await say(`word-${n}`);
    await on.conversation.resting();
    expect(requests.filter(({ body }) => isFlush(body)).length).toBe(2);
    expect((await daily()).match(/- talked about tea/g)).toHaveLength(1);
    expect(await on.store.whereabouts(null, null)).toMatchObject({ archived: 0 });
  });
});

describe('a reply that is cut at its limit', () => {
  const long = (words: number) => Array.from({ length: words }, (_, n) => `word${n}`).join(' ');

  it('is carried on', async () => {
    await talkingTo(limited({ whole: long(25) }));
    await say('Tell me.');
    expect(on.texts()).toEqual([long(25)]);
  });

  it('that cannot be brought to its end is marked', async () => {
    const { requests } = await talkingTo(limited({ whole: long(100) }));
    await say('Tell me.');
    expect(on.texts()).toEqual([expect.stringMatching(/^word0 word1 .* …\n\n\(This is cut off: .*\)$/s)]);
    expect(requests.length).toBe(2);
  });
});

describe('a flush', () => {
  const isAFlush = (request: ModelRequest) =>
    request.messages.some(({ content }) => content.startsWith('Memory flush.'));
  const small = { settings: { compactAfterMessages: 10, keepRecentMessages: 4 }, memoryTools: true };

  async function converse(from: number, to: number): Promise<void> {
    for (let n = from; n <= to; n++) await say(`word-${n}`);
  }

  it('that breaks off after it has written goes on from there', async () => {
    on = await workbench(small);
    let broke = false;
    on.answer((request) => {
      if (!isAFlush(request)) return 'fine';
      const last = request.messages.at(-1);
      if (last?.role !== 'tool') return noting(`- entry ${on.asked.length}`);
      if (broke) return 'done';
      broke = true;
      return { fault: 'model_unreachable' };
    });
    await converse(1, 5);
    await on.conversation.resting();
    expect((await daily()).match(/- entry/g)).toHaveLength(1);
    expect(await on.store.whereabouts(null, null)).toMatchObject({ archived: 0 });
  });

  it('that is owed and always fails is tried ever more rarely, and a few times a day, however much is said', async () => {
    const clock = manualClock();
    on = await workbench({ ...small, clock });
    const tries: number[] = [];
    on.answer((request) => {
      if (!isAFlush(request)) return 'fine';
      if (request.messages.some(({ content }) => content.includes('word-1<'))) tries.push(clock.now());
      return { fault: 'model_empty' };
    });
    await converse(1, 5);
    await on.conversation.resting();
    const begun = tries.length;
    for (let minute = 0; minute < 23 * 60; minute += 10) {
      // In another chat, so that the window of this one stays as it is.
      await on.say(`at ${minute}`, { chat: { address: '2', kind: 'direct', title: 'Noa' } });
      await on.settled();
      // A try takes real time: the clock waits for it before the next one may be due.
      for (let n = 0; n < 10; n++) {
        await clock.advance(60_000);
        await on.conversation.resting();
      }
    }
    const madeUp = [...new Set(tries.slice(begun))];
    expect(madeUp.length).toBeGreaterThan(4);
    expect(madeUp.length).toBeLessThanOrEqual(12);
    const pauses = madeUp.slice(1).map((at, n) => at - (madeUp[n] ?? 0));
    expect(pauses).toEqual(pauses.toSorted((a, b) => a - b));
    expect(pauses.at(-1)).toBeGreaterThanOrEqual(15 * 60_000);
  });
});
