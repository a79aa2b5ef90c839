/** The requester's end of the queue, on a real Redis: odd replies, a Redis that fails, and somebody else's worker. */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { SERVER_FAILS, writeReply } from '../../src/embedding/redis.js';
import { expectUnavailable, expectVector } from '../contract/embedder.js';
import { manualClock } from '../fakes/clock.js';
import { startFakeEmbeddings, vectorFor } from '../fakes/embeddings.js';
import { type RedisServer, startRedis } from '../fakes/redis.js';
import { type PeerWorker, startPeerWorker } from '../fakes/redis-peers.js';
import { describeWithRedis } from '../harness/redis.js';
import { openRedis, openRedisEmbedder, startWorker } from './support.js';

const REPLIER = { worker: 'by hand', model: 'test-embed' };
type Opened = ReturnType<typeof openRedisEmbedder>;

describeWithRedis('a requester', () => {
  let redisServer: RedisServer;
  let redis: Redis;
  let queue: string;
  let replyTo: string;
  let peers: PeerWorker[];
  let opened: Opened[];

  let closeRedis: () => Promise<void>;

  beforeAll(async () => {
    ({ server: redisServer, client: redis, close: closeRedis } = await openRedis());
  });
  afterAll(() => closeRedis());
  beforeEach(() => {
    queue = `queue:${randomUUID()}`;
    replyTo = `temp:req:${randomUUID()}`;
    peers = [];
    opened = [];
  });
  afterEach(async () => {
    await Promise.all(opened.map(({ embedder }) => embedder.close()));
    await Promise.all(peers.map((peer) => peer.close()));
    expect(await redis.keys(`${replyTo}*`)).toEqual([]);
  });

  const open = (options: Partial<Parameters<typeof openRedisEmbedder>[0]> = {}) => {
    const one = openRedisEmbedder({
      redisUrl: redisServer.url,
      queue,
      replyTo,
      timeoutSeconds: 5,
      ...options,
    });
    opened.push(one);
    return one;
  };
  const peer = (options: Partial<Parameters<typeof startPeerWorker>[0]> = {}) => {
    const one = startPeerWorker({ url: redisServer.url, queue, ...options });
    peers.push(one);
    return one;
  };
  const asking = (purpose: 'query' | 'document', signal = new AbortController().signal) => ({
    purpose,
    signal,
  });
  const thrownBy = (promise: Promise<unknown>) =>
    promise.then(
      () => 'nothing',
      (error: unknown) => error,
    );
  const text = (job: object) => JSON.stringify(job);

  it('pushes exactly what the protocol says', async () => {
    const { embedder } = open({ newId: () => 'id-1', timeoutSeconds: 0.5 });
    const asked = thrownBy(embedder.embed(['The text'], asking('query')));
    await expect.poll(() => redis.llen(queue)).toBe(1);
    expect(await redis.lrange(queue, 0, -1)).toEqual([
      `{"task_id":"id-1","type":"embed","content":"The text","reply_to":"${replyTo}"}`,
    ]);
    await asked;
  });

  it('works with a worker that takes one job at a time', async () => {
    const worker = peer();
    const { embedder } = open();
    const texts = Array.from({ length: 200 }, (_, n) => `text ${n}`);
    const vectors = await embedder.embed(texts, asking('document'));
    for (const [n, each] of texts.entries()) expectVector(vectors[n], each);
    expect(worker.taken.map((job) => job.content)).toEqual(texts);
    expect(await redis.exists(replyTo, queue)).toBe(0);
  });

  it('shares the queue with other gateways, each with its replies', async () => {
    peer();
    peer();
    const all = [0, 1, 2].map((n) => open({ replyTo: `${replyTo}-${n}` }));
    const found = await Promise.all(
      all.map(({ embedder }, n) => embedder.embed([`mine ${n}`], asking('query'))),
    );
    for (const [n, [vector]] of found.entries()) expectVector(vector, `mine ${n}`);
  });

  describe('drops', () => {
    it('replies of other tasks, malformed ones, and doubles', async () => {
      peer({
        answer: (job, usual) => [
          '{"task_id"',
          '[]',
          text({ type: 'GUPPIEvent', status: 'success', content: { vector: [1] } }),
          text({ task_id: 'somebody-else', status: 'success', content: { vector: vectorFor('x', 8) } }),
          usual,
          usual,
          usual.replace(String(job.task_id), 'nobody'),
        ],
      });
      const { embedder, counts } = open();
      const [one, two] = await embedder.embed(['one', 'two'], asking('document'));
      expectVector(one, 'one');
      expectVector(two, 'two');
      await expect.poll(() => [counts.of('malformed'), counts.of('late')]).toEqual([6, 6]);
      expect(counts.of('vector')).toBe(2);
      await expect.poll(() => redis.exists(replyTo)).toBe(0);
    });

    it('a reply that comes too late, and takes it out of Redis', async () => {
      const { embedder, counts } = open({ timeoutSeconds: 0.3 });
      const error = await thrownBy(embedder.embed(['one'], asking('query')));
      expectUnavailable(error);
      expect(String(error)).toMatch(/No worker answered.*0\.3 s.*coterie worker/);
      await redis.rpush(replyTo, text({ task_id: 'late', status: 'success', content: { vector: [1] } }));
      await expect.poll(() => counts.of('late')).toBe(1);
      expect(await redis.exists(replyTo)).toBe(0);
    });

    it('what a gateway of the same name left behind', async () => {
      await redis.rpush(replyTo, text({ task_id: 'old', status: 'success', content: { vector: [1] } }));
      peer();
      const { embedder } = open();
      expectVector((await embedder.embed(['one'], asking('query')))[0], 'one');
    });
  });

  describe('leaves out', () => {
    it('a text that the worker refuses again while it does others', async () => {
      const worker = peer({
        answer: (job, usual) =>
          job.content === 'poison'
            ? [text({ task_id: job.task_id, status: 'error', content: { error: 'generation failed' } })]
            : [usual],
      });
      const { embedder } = open();
      const [one, bad, two] = await embedder.embed(['one', 'poison', 'two'], asking('document'));
      expectVector(one, 'one');
      expect(bad).toBeNull();
      expectVector(two, 'two');
      expect(worker.taken.filter((job) => job.content === 'poison').length).toBe(2);
    });

    it('none that was refused only once', async () => {
      let failures = 0;
      peer({
        answer: (job, usual) =>
          failures++ === 0
            ? [text({ task_id: job.task_id, status: 'error', content: { error: 'busy' } })]
            : [usual],
      });
      expectVector((await open().embedder.embed(['one'], asking('query')))[0], 'one');
    });

    it('one whose vector holds NaN, as Python writes it', async () => {
      peer({
        answer: (job, usual) =>
          job.content === 'odd'
            ? [usual.replace(/"vector":\[[^\]]*\]/, '"vector":[NaN,-Infinity,1.0]')]
            : [usual],
      });
      const [odd, one] = await open().embedder.embed(['odd', 'one'], asking('document'));
      expect(odd).toBeNull();
      expectVector(one, 'one');
    });
  });

  it('fails when the worker answers everything with an error', async () => {
    peer({
      answer: (job) => [
        text({ task_id: job.task_id, status: 'error', content: { error: 'backend is down' } }),
      ],
    });
    const error = await thrownBy(open().embedder.embed(['one', 'two'], asking('document')));
    expectUnavailable(error);
    expect(String(error)).toContain('backend is down');
  });

  it('takes it for no fault of the text that the server of one worker fails, as after a time-out', async () => {
    const worker = peer({
      answer: (job, usual) =>
        job.content === 'one'
          ? [text({ task_id: job.task_id, status: 'error', content: { error: `${SERVER_FAILS}: 401` } })]
          : [usual],
    });
    const { embedder } = open();
    const error = await thrownBy(embedder.embed(['one', 'two'], asking('document')));
    expectUnavailable(error);
    expect(String(error)).toMatch(
      /A worker behind queue:.* answers with an error: Not embedded just now: 401/,
    );
    expect(worker.taken.filter(({ content }) => content === 'one')).toHaveLength(1);
    expectVector((await embedder.embed(['two'], asking('document')))[0], 'two');
  });

  it('does not mix the vectors of two models', async () => {
    peer({ model: 'first-model' });
    const { embedder, log } = open();
    await embedder.embed(['one'], asking('query'));
    expect(log.lines.filter((line) => line.includes('name another model')).length).toBe(1);
    await Promise.all(peers.splice(0).map((each) => each.close()));
    peer({ model: 'second-model' });
    const error = await thrownBy(embedder.embed(['two'], asking('query')));
    expectUnavailable(error);
    expect(String(error)).toMatch(/second-model.*first-model.*embeddings\.model/);
  });

  it('keeps few documents in the queue, so that a query is soon its turn', async () => {
    const { embedder } = open({ timeoutSeconds: 2 });
    const documents = Array.from({ length: 1000 }, (_, n) => `document ${n}`);
    const indexing = embedder.embed(documents, asking('document'));
    await expect.poll(() => redis.llen(queue)).toBe(64);
    const question = embedder.embed(['question'], asking('query'));
    await expect.poll(() => redis.llen(queue)).toBe(65);
    const worker = peer();
    expectVector((await question)[0], 'question');
    expect(worker.taken.findIndex((job) => job.content === 'question')).toBe(64);
    expect((await indexing).every((vector) => vector !== null)).toBe(true);
  });

  it('keeps more documents in the queue when they come back quickly, and fewer when slowly', async () => {
    const clock = manualClock();
    const { embedder } = open({ clock });
    const documents = Array.from({ length: 1000 }, (_, n) => `document ${n}`);
    const caller = new AbortController();
    const abandoned = thrownBy(embedder.embed(documents, asking('document', caller.signal)));
    await expect.poll(() => redis.llen(queue)).toBe(64);
    caller.abort();
    expectUnavailable(await abandoned);
    await expect.poll(() => redis.llen(queue)).toBe(0);
    const indexing = embedder.embed(documents, asking('document'));
    const answerAll = async (count: number) => {
      await expect.poll(() => redis.llen(queue), { interval: 5 }).toBe(count);
      for (const taken of (await redis.lpop(queue, count)) ?? []) {
        const { task_id: taskId, content } = JSON.parse(taken);
        await redis.rpush(replyTo, writeReply(taskId, { vector: vectorFor(content, 8) }, REPLIER));
      }
    };
    await answerAll(64);
    await answerAll(128);
    await expect.poll(() => redis.llen(queue)).toBe(256);
    await clock.advance(1_100);
    await answerAll(256);
    await answerAll(128);
    peer({ model: REPLIER.model });
    expect((await indexing).every((vector) => vector !== null)).toBe(true);
  });

  it('takes out of the queue what nobody waits for any more', async () => {
    const { embedder } = open();
    const caller = new AbortController();
    await redis.rpush(queue, 'of somebody else');
    const documents = Array.from({ length: 100 }, (_, n) => `document ${n}`);
    const indexing = thrownBy(embedder.embed(documents, asking('document', caller.signal)));
    await expect.poll(() => redis.llen(queue)).toBe(65);
    caller.abort();
    expectUnavailable(await indexing);
    await expect.poll(() => redis.lrange(queue, 0, -1)).toEqual(['of somebody else']);
    const timed = open({ timeoutSeconds: 0.2, replyTo: `${replyTo}-2` });
    await thrownBy(timed.embedder.embed(documents, asking('document')));
    await expect.poll(() => redis.lrange(queue, 0, -1)).toEqual(['of somebody else']);
  });

  it('pushes nothing behind a queue that is too long, and says why', async () => {
    await redis.rpush(queue, ...Array.from({ length: 51 }, (_, n) => `job ${n}`));
    const { embedder } = open({ mostQueued: 50 });
    const error = await thrownBy(embedder.embed(['one'], asking('query')));
    expectUnavailable(error);
    expect(String(error)).toMatch(/51 jobs wait/);
    expect(await redis.llen(queue)).toBe(51);
    await redis.del(queue);
    peer();
    expectVector((await embedder.embed(['one'], asking('query')))[0], 'one');
  });

  describe('whose Redis', () => {
    let own: RedisServer;
    let ownRedis: Redis;
    beforeEach(async () => {
      own = await startRedis();
      ownRedis = new Redis(own.url, { maxRetriesPerRequest: null });
      ownRedis.on('error', () => {});
    });
    afterEach(async () => {
      ownRedis.disconnect();
      await Promise.all(opened.map(({ embedder }) => embedder.close()));
      await Promise.all(peers.map((each) => each.close()));
      await own.close();
    });

    it('is away fails at once, and works by itself when it is back', async () => {
      await own.stop();
      const { embedder } = open({ redisUrl: own.url });
      for (let n = 0; n < 3; n++) {
        const begun = performance.now();
        const error = await thrownBy(embedder.embed(['one'], asking('query')));
        expectUnavailable(error);
        expect(performance.now() - begun).toBeLessThan(1000);
      }
      expect(embedder.state()).toMatchObject({
        kind: 'failing',
        reason: expect.stringContaining('Redis at'),
      });
      await own.start();
      peer({ url: own.url });
      await expect.poll(() => embedder.state().kind, { timeout: 20_000 }).toBe('ok');
      expectVector((await embedder.embed(['one'], asking('query')))[0], 'one');
    });

    it('goes away while somebody waits lets them know at once', async () => {
      const { embedder } = open({ redisUrl: own.url, timeoutSeconds: 600 });
      const asked = thrownBy(embedder.embed(['one'], asking('query')));
      await expect.poll(() => ownRedis.llen(queue)).toBe(1);
      await own.stop();
      expectUnavailable(await asked);
      await own.start();
      peer({ url: own.url });
      await expect
        .poll(async () => thrownBy(embedder.embed(['one'], asking('query'))), { timeout: 20_000 })
        .toBe('nothing');
    });

    it('is full says so, and works by itself when it is not', async () => {
      peer({ url: own.url });
      await ownRedis.config('SET', 'maxmemory', '1');
      const { embedder } = open({ redisUrl: own.url });
      expect(String(await thrownBy(embedder.embed(['one'], asking('query'))))).toMatch(/OOM.*maxmemory/);
      await thrownBy(embedder.embed(['one'], asking('query')));
      expect(embedder.state().kind).toBe('failing');
      await ownRedis.config('SET', 'maxmemory', '0');
      await expect.poll(() => embedder.state().kind, { timeout: 20_000 }).toBe('ok');
    });

    it('and worker stop and come back: everything works again within a minute, unasked', async () => {
      const server = await startFakeEmbeddings();
      const worker = { redisUrl: own.url, queue, baseUrl: server.url };
      const first = startWorker(worker);
      const { embedder } = open({ redisUrl: own.url, timeoutSeconds: 1 });
      expectVector((await embedder.embed(['one'], asking('query')))[0], 'one');
      await first.stop();
      await own.stop();
      await thrownBy(embedder.embed(['two'], asking('query')));
      await thrownBy(embedder.embed(['two'], asking('query')));
      expect(embedder.state().kind).toBe('failing');
      await own.start();
      const second = startWorker(worker);
      await expect.poll(() => embedder.state().kind, { timeout: 40_000 }).toBe('ok');
      expectVector((await embedder.embed(['two'], asking('query')))[0], 'two');
      await second.stop();
      await server.close();
    });
  });

  it('says no password', async () => {
    const { embedder, log } = open({ redisUrl: 'redis://someone:hidden-word@127.0.0.1:1/0' });
    const error = await thrownBy(embedder.embed(['one'], asking('query')));
    expectUnavailable(error);
    await thrownBy(embedder.embed(['one'], asking('query')));
    expect(`${error} ${log.lines.join('\n')}`).not.toContain('hidden-word');
  });
});
