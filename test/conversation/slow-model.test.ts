/** A model that takes its time, or reads only a part: what leaves a window is saved and summed up all the same. */

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { ModelRequest } from '../../src/core/model.js';
import { createOpenAiModel } from '../../src/models/openai.js';
import { ServerWays } from '../../src/models/server-ways.js';
import { manualClock } from '../fakes/clock.js';
import { type ChatBody, type FakeModel, startFakeModel } from '../fakes/model.js';
import { llamacpp } from '../fakes/model-servers/llamacpp.js';
import { lmstudio } from '../fakes/model-servers/lmstudio.js';
import { ollama4k } from '../fakes/model-servers/ollama.js';
import type { ModelServer } from '../fakes/model-servers/server.js';
import { vllm } from '../fakes/model-servers/vllm.js';
import { zai } from '../fakes/model-servers/zai.js';
import { type Answer, type Workbench, workbench } from '../harness/conversation.js';
import { eventually } from '../harness/gateway.js';
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

type Said = Pick<ModelRequest, 'messages'> | ChatBody;
const isFlush = ({ messages }: Said) =>
  messages.some(({ content }) => content?.startsWith('Memory flush.') === true);
const isSummary = ({ messages }: Said) =>
  messages.at(-1)?.content?.endsWith('Conversation summary: write the new one.') === true;
const wordsOf = ({ messages }: Said) => messages.map(({ content }) => content).join('\n');
const archives = async () => (await readdir(join(on.folder, 'groups/test_1/archive')).catch(() => [])).sort();
const archived = (file: string) => readFile(join(on.folder, 'groups/test_1/archive', file), 'utf8');

function script(told: {
  flush: (request: ModelRequest, signal: AbortSignal) => Answer | Promise<Answer>;
  summary?: (request: ModelRequest, signal: AbortSignal) => Answer | Promise<Answer>;
}) {
  on.answer((request, signal) => {
    if (isFlush(request)) return told.flush(request, signal);
    if (isSummary(request)) return told.summary?.(request, signal) ?? '## Facts\n- SUMMED UP';
    return 'yes';
  });
}

async function say(text: string): Promise<void> {
  await on.say(text);
  await on.settled();
}

const long = (n: number) => `word-${n} ${'and so it goes on '.repeat(80)}`;
/** Ends only with the signal, also one that was aborted before. */
const never = (_: ModelRequest, signal: AbortSignal) =>
  new Promise<Answer>((resolve) => {
    const end = () => resolve({ fault: 'model_unreachable' });
    if (signal.aborted) end();
    signal.addEventListener('abort', end);
  });

describe('where nobody waits', () => {
  it('a flush may take as long as the model does', async () => {
    const clock = manualClock();
    on = await workbench({
      ...{ clock, memoryTools: true },
      settings: { compactAfterMessages: 10, keepRecentMessages: 4 },
    });
    let isDone = false;
    script({
      async flush() {
        await clock.sleep(20 * 60_000);
        isDone = true;
        return 'done';
      },
    });
    for (let n = 1; n <= 5; n++) await say(`word-${n}`);
    await clock.asleep(20 * 60_000);
    await clock.advance(10 * 60_000);
    await say('still there?');
    expect([on.texts().length, isDone]).toEqual([6, false]);
    await clock.advance(10 * 60_000);
    await on.conversation.resting();
    expect(await archives()).toEqual([]);
    expect(await on.store.whereabouts(null, null)).toEqual({ window: 6, flushed: 6, archived: 0 });
  });

  it('a flush and a summary that time out are asked for with half of the text', async () => {
    const clock = manualClock();
    on = await workbench({ clock, memoryTools: true, contextTokens: 24_000 });
    const asked = { flush: [] as number[], summary: [] as number[] };
    /** As the client of a server that reads so slowly that longer prompts run into its patience. */
    const slow = (kind: 'flush' | 'summary', most: number, words: string) => (request: ModelRequest) => {
      const { length } = wordsOf(request);
      asked[kind].push(length);
      return length > most ? ({ fault: 'model_silent' } as const) : words;
    };
    script({ flush: slow('flush', 40_000, 'done'), summary: slow('summary', 20_000, '## Facts\n- SUM') });
    for (let n = 1; asked.summary.length === 0 && n < 80; n++) {
      await say(long(n));
      await on.conversation.resting();
    }
    const [first = 0, second = 0] = asked.flush;
    expect(first).toBeGreaterThan(40_000);
    expect(second).toBeLessThan(first * 0.75);
    expect(asked.summary[0]).toBeGreaterThan(20_000);
    expect(asked.summary.at(-1)).toBeLessThan(20_000);
    const { flushed, archived: owed } = await on.store.whereabouts(null, null);
    expect(flushed).toBeGreaterThan(0);
    expect(owed).toBe(0);
    expect(await archives()).toEqual([]);
  });

  it('there is a summary though the flush failed; the messages stand in an archive until it is made up for', async () => {
    const clock = manualClock();
    on = await workbench({
      ...{ clock, memoryTools: true },
      settings: { compactAfterMessages: 10, keepRecentMessages: 4 },
    });
    script({ flush: () => ({ fault: 'model_refused' }) });
    for (let n = 1; n <= 5; n++) await say(`word-${n}`);
    await on.conversation.resting();
    await say('and now?');
    expect(wordsOf(on.asked.findLast((request) => !isFlush(request)) as ModelRequest)).toContain(
      '- SUMMED UP',
    );
    const [file = ''] = await archives();
    expect(await archived(file)).toContain('flushed: false');
    expect(await on.store.whereabouts(null, null)).toMatchObject({ flushed: 0, archived: 6 });
  });
});

/** How long a turn waits for what runs already. */
const HALF_MS = 30_000;

describe('a chat that waits', () => {
  /** A flush hangs in the background when the window turns out to be full: what is the next message answered from? */
  async function waits(summary: typeof never | undefined): Promise<string> {
    const clock = manualClock();
    let contextTokens = 100_000;
    on = await workbench({
      ...{ clock, memoryTools: true, contextTokens: () => contextTokens },
      settings: { compactAfterMessages: 20, keepRecentMessages: 4, maxOutputTokens: 1_000 },
    });
    script({ flush: never, ...(summary && { summary }) });
    for (let n = 1; n <= 10; n++) await say(long(n));
    await eventually(() => on.asked.some(isFlush), 'the flush has begun');
    contextTokens = 4_500;
    await on.say('and now?');
    await eventually(() => clock.sleeping().includes(HALF_MS), 'the turn waits for the flush');
    await clock.advance(HALF_MS);
    // Its own compaction has the other half of the minute, of which the flush may take two thirds.
    await eventually(() => on.asked.filter(isFlush).length === 2, 'the flush is asked for again');
    await clock.advance(20_000);
    await eventually(() => on.asked.some(isSummary), 'the summary is asked for');
    if (summary === never) await clock.advance(10_000);
    // Once the person is answered, the owed flush is tried again in the background, and hangs.
    await eventually(() => on.texts().length === 11, 'the person is answered');
    return wordsOf(on.asked.findLast((request) => !isFlush(request) && !isSummary(request)) as ModelRequest);
  }

  it('is answered within the minute, and what left is summed up though no flush came to its end', async () => {
    expect((await waits(undefined)).includes('- SUMMED UP')).toBe(true);
    expect((await on.store.whereabouts(null, null)).archived).toBeGreaterThan(0);
  });

  it('is answered within the minute where the summary hangs, too', async () => {
    const prompt = await waits(never);
    expect(prompt.includes((await archives())[0] ?? 'an archive')).toBe(true);
  });

  it('for a server that does one thing at a time, behind a flush, is answered after a minute', async () => {
    const clock = manualClock();
    on = await workbench({
      ...{ clock, memoryTools: true },
      settings: { compactAfterMessages: 10, keepRecentMessages: 4 },
    });
    let slot: Promise<unknown> = Promise.resolve();
    const oneByOne = (answer: () => Answer | Promise<Answer>) => {
      const mine = slot.then(answer);
      slot = mine;
      return mine;
    };
    on.answer((request, signal) => oneByOne(() => (isFlush(request) ? never(request, signal) : 'yes')));
    for (let n = 1; n <= 5; n++) await say(`word-${n}`);
    await eventually(() => on.asked.some(isFlush), 'the flush has begun');
    await on.say('still there?');
    await eventually(
      () => on.asked.filter((request) => !isFlush(request)).length === 6,
      'the model is asked',
    );
    await clock.advance(59_000);
    expect(on.texts().length).toBe(5);
    await clock.advance(1_000);
    await on.settled();
    expect(on.texts().length).toBe(6);
    // Nothing has left the window, so nothing is owed; it is compacted when there is time.
    expect(await on.store.whereabouts(null, null)).toEqual({ window: 12, flushed: 0, archived: 0 });
  });
});

describe('a flush or a summary of which the server read only a part', () => {
  it('was not made: the cursor stays, and the text gets shorter', async () => {
    on = await workbench({ memoryTools: true, contextTokens: 24_000 });
    const sizes: number[] = [];
    script({
      flush(request) {
        sizes.push(wordsOf(request).length);
        return sizes.length === 1 ? { text: 'done', cut: true } : 'done';
      },
    });
    for (let n = 1; sizes.length === 0 && n < 80; n++) {
      await say(long(n));
      await on.conversation.resting();
    }
    expect(sizes[1]).toBeLessThan((sizes[0] ?? 0) * 0.75);
    expect(sizes.length).toBeGreaterThan(2);
    expect(await on.store.whereabouts(null, null)).toMatchObject({ archived: 0 });
  });

  it('and always in part: it stays owed, and the summary, too, is not believed', async () => {
    on = await workbench({
      ...{ clock: manualClock(), memoryTools: true },
      settings: { compactAfterMessages: 10, keepRecentMessages: 4 },
    });
    const cut = { text: 'CUT', cut: true } as const;
    script({ flush: () => cut, summary: () => cut });
    for (let n = 1; n <= 5; n++) await say(`word-${n}`);
    await on.conversation.resting();
    await say('and now?');
    expect(await on.store.whereabouts(null, null)).toMatchObject({ flushed: 0, archived: 6 });
    const last = on.asked.findLast((request) => !isFlush(request) && !isSummary(request)) as ModelRequest;
    expect(wordsOf(last)).not.toContain('CUT');
    expect(wordsOf(last).includes((await archives())[0] ?? 'an archive')).toBe(true);
  });

  it('calls nothing: what it would write could take the place of memory that the model has not seen', async () => {
    on = await workbench({ memoryTools: true });
    const write = (content: string) => ({
      calls: [{ name: 'write_tiered_memory', arguments: { tier: 1, content } }],
    });
    let asked = 0;
    on.answer((request) => {
      if (isFlush(request) || isSummary(request)) return 'done';
      asked++;
      if (asked === 1) return write('- the old, and the new');
      if (asked === 2) return 'noted';
      return asked === 3 ? { ...write('- nothing but this'), cut: true } : 'better so';
    });
    await say('remember the old and the new');
    await say('and this');
    await on.conversation.resting();
    expect(on.texts()).toEqual(['noted', 'better so']);
    const memory = await readFile(join(on.folder, 'groups/test_1/default/MEMORY.md'), 'utf8');
    expect(memory).toContain('- the old, and the new');
    expect(memory).not.toContain('nothing but this');
  });

  it('an answer made so is followed by a compaction, and its count is not believed', async () => {
    on = await workbench({ memoryTools: true, contextTokens: 12_000 });
    let n = 0;
    on.answer((request) => {
      if (isFlush(request)) return 'done';
      if (isSummary(request)) return '## Facts\n- SUMMED UP';
      n++;
      return n < 12 ? 'yes' : { text: 'yes', cut: true, usage: { inputTokens: 2_050, outputTokens: 1 } };
    });
    for (let m = 1; m <= 11; m++) await say(long(m));
    await on.conversation.resting();
    expect(on.asked.some(isFlush)).toBe(false);
    const { measured } = await on.store.view('test_1', 'default');
    await say(long(12));
    await on.conversation.resting();
    expect(on.asked.some(isFlush)).toBe(true);
    expect((await on.store.view('test_1', 'default')).measured).toEqual(measured);
  });
});

describe('the real client, whose server has less than it was thought to', () => {
  it.each([
    ['an Ollama that cuts', ollama4k({ numCtx: 8_192 })],
    ['an Ollama that refuses', ollama4k({ tooLong: 'refused', numCtx: 8_192 })],
    ['a llama.cpp', llamacpp({ nCtx: 8_192 })],
    ['a vLLM', vllm()],
    ['an LM Studio', lmstudio({ loaded: 8_192 }), true],
    ['a Z.ai', zai({ contextTokens: 8_192 })],
  ] as [string, ModelServer, boolean?][])(
    '%s: nothing leaves the window unsaved',
    async (_, server, isMute = false) => {
      const clock = manualClock();
      /** What its model sees of a request, and how it answers. */
      const reply = (body: ChatBody) =>
        isFlush(body) ? 'done' : isSummary(body) ? '## Facts\n- SUMMED UP' : 'yes';
      fake = await startFakeModel({ reply, server });
      const model = createOpenAiModel({
        outward: straight,
        server: { baseUrl: fake.url, apiKey: null, name: 'small' },
        maxOutputTokens: 4_096,
        timeoutSeconds: 60,
        ways: new ServerWays(memoryStorage(), quietLog),
        clock,
        log: quietLog,
        contextTokens: () => null,
        tellsWindow: async () => null,
      });
      on = await workbench({ clock, memoryTools: true, model });
      for (let n = 1; n <= 40; n++) {
        await say(long(n));
        await on.conversation.resting();
      }
      expect(on.texts()).toEqual(Array(40).fill('yes'));
      // An empty answer is no evidence of a size: LM Studio's makes room in this conversation alone.
      expect(model.contextTokens()).toBeLessThanOrEqual(isMute ? 128_000 : 8_192);
      const { window, flushed, archived: owed } = await on.store.whereabouts(null, null);
      expect(window + flushed).toBe(80);
      expect([flushed > 40, owed]).toEqual([true, 0]);
      // Once it is known, the system prompt reaches the model whole, in flushes, too.
      const late = fake.requests.slice(-10);
      for (const { body } of late)
        expect(server.cut?.(body).messages.length ?? body.messages.length).toBe(body.messages.length);
    },
  );
});
