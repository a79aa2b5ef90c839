/** Recall with the real process: beyond the window, never beyond the chat, and whatever becomes of the vectors. */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type FakeEmbeddings, startFakeEmbeddings } from '../fakes/embeddings.js';
import { type RedisServer, startRedis } from '../fakes/redis.js';
import { ANNA, type Person } from '../fakes/telegram-chats.js';
import { eventually, run } from '../harness/gateway.js';
import { describeWithRedis } from '../harness/redis.js';
import { type Stage, stage } from '../harness/telegram.js';

const BEN: Person = { id: 100002, first_name: 'Ben' };
/** Windows so short that what was said is soon behind them. */
const SHORT = {
  conversation: { compact_after_messages: 6, keep_recent_messages: 2 },
  access: { owners: [`telegram_${ANNA.id}`] },
};

let on: Stage;
const others: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await on.close();
  for (const close of others.splice(0).reverse()) await close();
});

const lastUser = () => on.model.requests.at(-1)?.body.messages.at(-1)?.content ?? '';
const isAside = (content: string) =>
  /^Memory flush\.|Conversation summary: write the new one\.$/.test(content);

/** Turns are echoed, flushes and summaries answered shortly. */
function quietly() {
  on.model.reply((body) => {
    const last = body.messages.at(-1)?.content ?? '';
    return isAside(last) ? 'done' : 'I see.';
  });
}

async function say(text: string, from: Person = ANNA): Promise<void> {
  const before = on.sentTo(from.id).length;
  on.telegram.say({ text, from });
  await on.replies(from.id, before + 1);
}

/**
 * Talks of other things until an answer was made without what was said at first, and everything is indexed. A summary in
 * a flush or in the next summary does not count: until a turn has searched, indexing may wait for minutes.
 */
async function moveOn(): Promise<void> {
  const hasMoved = () =>
    on.model.requests.some(
      ({ body }) =>
        !isAside(body.messages.at(-1)?.content ?? '') &&
        body.messages.some(({ role, content }) => role === 'user' && content?.includes('<summary>')),
    );
  for (let n = 0; n < 100 && !hasMoved(); n++) await say(`Something else, number ${n}.`);
  expect(hasMoved()).toBe(true);
  await eventually(async () => {
    await say('/status');
    return on.sentTo(ANNA.id).at(-1)?.includes('pieces indexed, 0 waiting');
  }, 'everything is indexed');
}

/** The prompt of a question that is asked once: asked again and again, it would be found itself. */
async function promptOf(question: string): Promise<string> {
  await say(question);
  const asked = on.model.requests.findLast(({ body }) =>
    (body.messages.at(-1)?.content ?? '').includes(question),
  );
  return asked?.body.messages.at(-1)?.content ?? '';
}

describe('a persona', () => {
  it('recalls what left its window, with the day, and nothing of another chat', async () => {
    on = await stage({ config: SHORT });
    quietly();
    await on.start();
    const fact = 'My sister Clara plays the bassoon in Lisbon.';
    await say(fact);
    await say('My brother Tom breeds axolotls in Bergen.', BEN);
    await moveOn();
    const prompt = await promptOf('Which instrument does my sister play?');
    const recalled = /<recalled>\n- \d{4}-\d\d-\d\d \d\d:\d\d, Anna Berg: (.*)\n<\/recalled>/.exec(prompt);
    expect(recalled?.[1]).toBe(fact);
    expect(await promptOf('Who breeds axolotls in Bergen?')).not.toContain('Tom');
  });

  it('searches with its tool, whatever scope the model asks for', async () => {
    on = await stage({ config: SHORT });
    quietly();
    await on.start();
    await say('The canary of Anna is called CANARY-ANNA.');
    await say('The canary of Ben is called CANARY-BEN.', BEN);
    await moveOn();
    on.model.reply((body) => {
      const last = body.messages.at(-1);
      if (last?.role === 'tool') return 'I looked.';
      if (isAside(last?.content ?? '')) return 'done';
      const forged = { chat_id: `telegram_${BEN.id}`, persona_id: 'default', scope: 'all' };
      return { calls: [{ name: 'search_memory', arguments: { query: 'canary called', ...forged } }] };
    });
    await say('What is my canary called?');
    const answers = on.model.requests.flatMap(({ body }) =>
      body.messages.filter(({ role }) => role === 'tool'),
    );
    expect(answers.some(({ content }) => content?.includes('CANARY-ANNA'))).toBe(true);
    const all = on.model.requests
      .filter(({ body }) => JSON.stringify(body).includes(`telegram_${ANNA.id} and`))
      .map(({ body }) => JSON.stringify(body));
    expect(all.length).toBeGreaterThan(0);
    expect(all.some((body) => body.includes('CANARY-BEN'))).toBe(false);
  });

  it('does not recall what was reset, also when the index is made anew', async () => {
    on = await stage({ config: SHORT });
    quietly();
    const gateway = await on.start();
    await say('The combination of the shed is lavender fields.');
    await moveOn();
    expect(await promptOf('What is the combination of the shed?')).toContain('lavender fields');
    await say('/reset');
    await gateway.stop('SIGKILL');
    await rm(join(on.home.folder, 'data/recall.db'), { force: true });
    await rm(join(on.home.folder, 'data/recall.db-wal'), { force: true });
    await writeFile(join(on.home.folder, 'data/recall.db'), 'this is no database');
    await on.start();
    for (let n = 0; n < 3; n++) {
      await say('And what was the combination of the shed, please?');
      expect(lastUser()).not.toContain('<recalled>');
    }
  });
});

describeWithRedis('vectors through Redis and a worker', () => {
  let redis: RedisServer;
  let embeddings: FakeEmbeddings;

  it('are made up for when Redis and the worker come back, and nobody waits meanwhile', async () => {
    redis = await startRedis();
    embeddings = await startFakeEmbeddings();
    others.push(
      () => redis.close(),
      () => embeddings.close(),
    );
    const config = {
      backend: 'redis',
      ...{ base_url: embeddings.url, model: 'test-embed', redis_url: redis.url, timeout_seconds: 5 },
    };
    on = await stage({ config: { ...SHORT, embeddings: config } });
    quietly();
    await on.start();
    const worker = () => {
      const running = run(on.home, ['worker']);
      others.push(() => running.stop('SIGKILL'));
      return running;
    };
    const first = worker();
    const embedded = (text: string) =>
      embeddings.requests.some(({ body }) => JSON.stringify(body.input).includes(text));
    const fact = 'The first thing was a red bicycle.';
    await say(fact);
    await eventually(() => embedded('red bicycle'), 'the first message gets its vector');

    await first.stop('SIGKILL');
    await redis.stop();
    const slow: number[] = [];
    for (let n = 0; n < 6; n++) {
      const began = Date.now();
      await say(`While all is down, a green boat number ${n} went by.`);
      slow.push(Date.now() - began);
    }
    // The first question may find out that the path is down; nobody after it waits for that.
    expect(Math.max(...slow.slice(1))).toBeLessThan(4_000);
    await moveOn();
    expect(await promptOf('What was the very first thing?')).toContain(fact);
    expect(embedded('green boat number 3')).toBe(false);

    await redis.start();
    worker();
    await eventually(() => embedded('green boat number 3'), 'what was missed is made up for', 60_000);
  }, 120_000);
});
