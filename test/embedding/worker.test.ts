/** The worker's end of the queue, on a real Redis: the exact replies, and that no job is lost whatever dies. */
import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { digest } from '../../src/embedding/worker-jobs.js';
import { type FakeEmbeddings, startFakeEmbeddings, vectorFor } from '../fakes/embeddings.js';
import { type RedisServer, startRedis } from '../fakes/redis.js';
import { startOldRedis } from '../fakes/redis-old.js';
import { askAsPeer } from '../fakes/redis-peers.js';
import { describeWithRedis } from '../harness/redis.js';
import { openRedis, type RunningWorker, startWorker } from './support.js';

type Reply = {
  task_id: unknown;
  status: string;
  content: { vector?: number[]; error?: string };
  meta: object;
};

describeWithRedis('a worker', () => {
  let redisServer: RedisServer;
  let redis: Redis;
  let server: FakeEmbeddings;
  let queue: string;
  let replies: string;
  let workers: RunningWorker[];

  let closeRedis: () => Promise<void>;

  beforeAll(async () => {
    ({ server: redisServer, client: redis, close: closeRedis } = await openRedis());
  });
  afterAll(() => closeRedis());
  beforeEach(async () => {
    queue = `queue:${randomUUID()}`;
    replies = `temp:req:${randomUUID()}`;
    workers = [];
    server = await startFakeEmbeddings();
  });
  afterEach(async () => {
    await Promise.all(workers.map((worker) => worker.stop()));
    await server.close();
  });

  const start = (options: Partial<Parameters<typeof startWorker>[0]> = {}) => {
    const worker = startWorker({ redisUrl: redisServer.url, queue, baseUrl: server.url, ...options });
    workers.push(worker);
    return worker;
  };
  const job = (taskId: string, content: unknown = `text of ${taskId}`, more: object = {}) =>
    JSON.stringify({ task_id: taskId, type: 'embed', content, reply_to: replies, ...more });
  const jobs = (count: number) => Array.from({ length: count }, (_, n) => job(`t${n}`));
  const push = (...texts: string[]) => redis.rpush(queue, ...texts);
  const collect = async (count: number): Promise<Reply[]> => {
    await expect.poll(() => redis.llen(replies), { timeout: 30_000 }).toBeGreaterThanOrEqual(count);
    return (await redis.lrange(replies, 0, -1)).map((text) => JSON.parse(text));
  };
  /** Of this queue, beside what says which workers live. */
  const leftOver = async () => {
    const keys = await redis.keys(`${queue}*`);
    return keys.filter((key) => !/:(alive:.*|workers)$/.test(key)).sort();
  };

  describe('answers', () => {
    it('a job with its vector, as the protocol says', async () => {
      start();
      await push(job('req-1', 'The text'));
      const [text] = (await redis.blpop(replies, 10))?.slice(1) ?? [];
      expect(JSON.parse(text ?? '')).toEqual({
        type: 'GUPPIEvent',
        event: 'ScribeResult',
        task_id: 'req-1',
        status: 'success',
        content: { vector: vectorFor('The text', 8) },
        meta: { worker: expect.any(String), model: 'test-embed' },
      });
      await expect.poll(leftOver).toEqual([]);
    });

    it('in a list that expires', async () => {
      start();
      await push(job('req-1'));
      await collect(1);
      const seconds = await redis.ttl(replies);
      expect(seconds).toBeGreaterThan(290);
      expect(seconds).toBeLessThanOrEqual(300);
    });

    it.each([
      ['blank content', { content: '  \n' }, 'No valid content provided for embed'],
      ['content that is no text', { content: { text: 'x' } }, 'No valid content provided for embed'],
      ['no content', { content: undefined }, 'No valid content provided for embed'],
      ['another type', { type: 'summarize' }, 'Unknown task type: summarize'],
    ])('%s with an error', async (_, odd, error) => {
      start();
      await push(job('req-1', 'x', odd));
      const [reply] = await collect(1);
      expect(reply).toMatchObject({ task_id: 'req-1', status: 'error', content: { error } });
      expect(await redis.ttl(replies)).toBeGreaterThan(290);
      expect(server.requests).toEqual([]);
    });

    it('a job without task_id as unknown, and a number as it is', async () => {
      start();
      await push(JSON.stringify({ type: 'embed', content: 'x', reply_to: replies }));
      await push(JSON.stringify({ task_id: 7, type: 'embed', content: 'y', reply_to: replies, more: [1] }));
      expect((await collect(2)).map((reply) => [reply.task_id, reply.status])).toEqual([
        ['unknown', 'success'],
        [7, 'success'],
      ]);
    });

    it('the refused text with an error, and its neighbours with vectors', async () => {
      server.reply((body) => (body.input.includes('poison') ? { status: 400 } : {}));
      await push(job('before'), job('bad', 'poison'), job('after'));
      start();
      const found = await collect(3);
      expect(found.map((reply) => [reply.task_id, reply.status])).toEqual([
        ['before', 'success'],
        ['bad', 'error'],
        ['after', 'success'],
      ]);
      expect(found[1]?.content.error).toMatch(/refused this text: 400/);
    });

    it('a text on which the server hangs for ever', async () => {
      server.reply((body) => (body.input.includes('poison') ? { stall: 'hang' } : {}));
      await push(...jobs(3), job('bad', 'poison'), job('after'));
      const worker = start({ timeoutSeconds: 0.1 });
      const found = await collect(5);
      const errors = found.filter((reply) => reply.status === 'error');
      expect(errors.map((reply) => reply.task_id)).toEqual(['bad']);
      expect(errors[0]?.content.error).toContain('did not answer for 0.1 s');
      await expect.poll(() => worker.counts.of('done')).toBe(4);
    });

    it('in a list whose name begins with that of the queue', async () => {
      start();
      const list = `${queue}:replies:1`;
      await push(job('req-1', 'x', { reply_to: list }));
      expect(await redis.blpop(list, 10)).not.toBeNull();
    });

    it('a requester that speaks the protocol in its own way', async () => {
      start();
      const reply = await askAsPeer(redisServer.url, queue, { taskId: 'uuid-9', content: 'hello' });
      expect(reply).toMatchObject({ status: 'success', content: { vector: vectorFor('hello', 8) } });
    });
  });

  it('drops what is malformed or has no address, counts it, and goes on', async () => {
    await redis.set(`text:${queue}`, 'not a list');
    await push('{"task_id":', '42', 'null', '"x"', '[]', '', JSON.stringify({ task_id: 'a', content: 'x' }));
    await push(job('own', 'x', { reply_to: queue }), job('own2', 'x', { reply_to: `${queue}:workers` }));
    await push(job('own3', 'x', { reply_to: `${queue}:proc:w` }));
    await push(job('no list', 'x', { reply_to: `text:${queue}` }), job('good'));
    const worker = start();
    expect(await collect(1)).toMatchObject([{ task_id: 'good' }]);
    expect(worker.counts.of('malformed')).toBe(6);
    expect(worker.counts.of('unaddressed')).toBe(4);
    expect(worker.log.lines.filter((line) => line.includes('no JSON')).length).toBe(6);
    const unaddressed = worker.log.lines.filter((line) => line.includes('named no list'));
    expect(unaddressed.map((line) => /"task_id":"(\w+)"/.exec(line)?.[1])).toEqual([
      'a',
      'own',
      'own2',
      'own3',
    ]);
    expect(worker.log.lines.filter((line) => line.includes('pushing a reply')).length).toBe(1);
    await expect.poll(leftOver).toEqual([]);
  });

  it('takes what waits in the order it was pushed, in batches', async () => {
    await push(...jobs(150));
    start({ batchSize: 50 });
    expect((await collect(150)).map((reply) => reply.task_id)).toEqual(jobs(150).map((_, n) => `t${n}`));
    const sent = server.requests.flatMap(({ body }) => body.input);
    expect(sent).toEqual(jobs(150).map((_, n) => `text of t${n}`));
    expect(server.requests.map(({ body }) => body.input.length)).toEqual([50, 50, 50]);
  });

  it('waits a moment for a batch to fill', async () => {
    start({ batchSize: 3, batchWindowMs: 20_000 });
    await push(job('a'));
    await push(job('b'));
    await expect.poll(() => redis.llen(queue)).toBe(0);
    await push(job('c'));
    // The window is far longer than this test may take: it went because it was full, or not at all.
    await expect.poll(() => redis.llen(queue)).toBe(1);
  });

  it('sends no more text in one request than a server takes, nor a longer one', async () => {
    await push(...Array.from({ length: 5 }, (_, n) => job(`t${n}`, 'word '.repeat(20_000))));
    start();
    await collect(5);
    expect(server.requests.map(({ body }) => body.input.length)).toEqual([2, 2, 1]);
    expect(server.requests[0]?.body.input[0]?.length).toBe(32_000);
  });

  it('learns how many texts the server takes', async () => {
    await server.close();
    server = await startFakeEmbeddings({ mostTexts: 32 });
    await push(...jobs(256));
    start();
    await collect(256);
    const sizes = server.requests.map(({ body }) => body.input.length);
    // Two batches are under way before the first refusal is heard.
    expect(sizes.filter((size) => size > 32).length).toBeLessThanOrEqual(2);
  });

  it('shares the jobs with others, each done once', async () => {
    server.reply({ delayMs: 5 });
    for (let n = 0; n < 3; n++) start({ batchSize: 8 });
    await push(...jobs(400));
    const found = await collect(400);
    expect(new Set(found.map((reply) => reply.task_id)).size).toBe(400);
    expect(found.length).toBe(400);
    expect(workers.filter((worker) => worker.counts.of('done') > 0).length).toBeGreaterThan(1);
    await expect.poll(leftOver).toEqual([]);
  });

  describe('whose server fails', () => {
    it.each([500, 400, 503])('with %i to everything tries for its time, and says why', async (status) => {
      server.reply({ status });
      start({ timeoutSeconds: 1 });
      const begun = performance.now();
      await push(job('a'), job('b'));
      const found = await collect(2);
      expect(performance.now() - begun).toBeGreaterThan(1_000);
      expect(found.map((reply) => [reply.task_id, reply.status])).toEqual([
        ['a', 'error'],
        ['b', 'error'],
      ]);
      expect(found[0]?.content.error).toMatch(
        new RegExp(
          `^Not embedded just now: The embedding server at http://.*\\(model "test-embed"\\).*${status}`,
        ),
      );
      expect(await redis.ttl(replies)).toBeGreaterThan(290);
      await expect.poll(leftOver).toEqual([]);
    });

    it.each([401, 403, 404])('with %i says so at once, for trying again would not help', async (status) => {
      server.reply({ status, body: { error: 'not like this' } });
      const worker = start({ timeoutSeconds: 600 });
      await push(job('a'), job('b'));
      const [reply] = await collect(2);
      expect(reply?.content.error).toContain(
        `answered with ${status}: not like this. Check embeddings.base_url`,
      );
      expect(server.requests.length).toBe(1);
      expect(worker.counts.of('failed')).toBe(2);
      server.reply({});
      await push(job('c'));
      expect((await collect(3))[2]).toMatchObject({ task_id: 'c', status: 'success' });
    });

    it('leaves jobs to others meanwhile', async () => {
      server.reply({ status: 401 });
      start({ batchSize: 1, timeoutSeconds: 600 });
      const begun = performance.now();
      await push(...jobs(3));
      await collect(3);
      expect(performance.now() - begun).toBeGreaterThan(500);
    });
  });

  it('keeps the jobs while its server is down, says so once, and does them after', async () => {
    server.reply({ status: 500 });
    const worker = start({ timeoutSeconds: 60 });
    await push(...jobs(10));
    await server.received(12);
    expect(await redis.llen(replies)).toBe(0);
    server.reply({});
    expect((await collect(10)).every((reply) => reply.status === 'success')).toBe(true);
    expect(worker.log.lines.filter((line) => line.includes('embedding server failed')).length).toBe(1);
    expect(worker.log.lines.filter((line) => line.includes('server works again')).length).toBe(1);
  });

  describe('that dies', () => {
    let folder: string;
    let program: string;
    let children: ChildProcess[];

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'coterie-worker-'));
      program = join(folder, 'worker.mjs');
      const banner = `import { createRequire as __r } from 'node:module'; const require = __r(import.meta.url);`;
      await build({
        entryPoints: [join(import.meta.dirname, 'worker-process.ts')],
        outfile: program,
        bundle: true,
        platform: 'node',
        format: 'esm',
        target: 'node20',
        logLevel: 'warning',
        banner: { js: banner },
      });
    });
    afterAll(() => rm(folder, { recursive: true, force: true }));
    beforeEach(() => {
      children = [];
    });
    afterEach(() => {
      for (const child of children) child.kill('SIGKILL');
    });

    const startProcess = () => {
      const child = fork(program, [redisServer.url, queue, server.url], { stdio: 'ignore' });
      children.push(child);
      return child;
    };
    const ended = (child: ChildProcess) =>
      new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal)));

    it('by kill -9 with jobs in hand: another does them within 15 s, in their order', async () => {
      // To every request: the child may ask for `next` before it is killed, and must not be answered.
      server.reply({ stall: 'hang' });
      const child = startProcess();
      await push(...jobs(5));
      await server.received(1);
      await push(job('next'));
      await expect.poll(() => redis.llen(queue)).toBe(0);
      const death = ended(child);
      child.kill('SIGKILL');
      await death;
      server.reply({});
      // Not before: a process that is about to die may still take it.
      await push(job('last'));
      const died = performance.now();
      const other = start();
      const found = await collect(7);
      expect(performance.now() - died).toBeLessThan(15_000);
      expect(found.every((reply) => reply.status === 'success')).toBe(true);
      const redone = found.map((reply) => reply.task_id).filter((id) => id !== 'last');
      expect(redone).toEqual(['t0', 't1', 't2', 't3', 't4', 'next']);
      expect(other.counts.of('taken_back')).toBe(6);
      await expect.poll(async () => (await leftOver()).filter((key) => !key.endsWith(':deaths'))).toEqual([]);
    });

    it('again and again of one job: that one is given up, its neighbours are done', async () => {
      const [bad, good] = [job('bad'), job('good')];
      // As two dead workers left it.
      await redis.rpush(`${queue}:proc:gone`, bad, good);
      await redis.sadd(`${queue}:workers`, 'gone');
      const first = start();
      await collect(2);
      await first.stop();
      await redis.del(replies);
      // `bad` was answered, so its deaths are forgotten; from here on it is never answered.
      await redis.rpush(`${queue}:proc:gone`, bad);
      await redis.sadd(`${queue}:workers`, 'gone');
      await redis.hset(`${queue}:deaths`, digest(bad), 2);
      for (let deaths = 0; deaths < 2; deaths++) {
        server.reply({ stall: 'hang' });
        const child = startProcess();
        const requests = server.requests.length;
        await server.received(requests + 1);
        const death = ended(child);
        child.kill('SIGKILL');
        await death;
        const left = await redis.keys(`${queue}:alive:*`);
        if (left.length > 0) await redis.del(...left);
      }
      server.reply({});
      const last = start();
      const found = await collect(1);
      expect(found[0]).toMatchObject({ task_id: 'bad', status: 'error' });
      expect(found[0]?.content.error).toMatch(/workers that took this job died/);
      await expect.poll(() => last.counts.of('given_up')).toBe(1);
      expect(await redis.lrange(`${queue}:dead`, 0, -1)).toEqual([bad]);
      await push(job('next'));
      await expect.poll(() => last.counts.of('done')).toBe(1);
    });

    it('by SIGTERM: it ends with 0, and what it has not done goes back', async () => {
      server.reply({ stall: 'hang' });
      const child = startProcess();
      await push(...jobs(5));
      await server.received(1);
      const death = ended(child);
      child.kill('SIGTERM');
      expect(await death).toBe(0);
      expect(await redis.lrange(queue, 0, -1)).toEqual(jobs(5));
      expect(await redis.keys(`${queue}:*`)).toEqual([]);
    });
  });

  it('finishes the batch in hand when it is stopped', async () => {
    server.reply({ delayMs: 200 });
    const worker = start({ shutdownSeconds: 20 });
    await push(...jobs(5));
    await server.received(1);
    await worker.stop();
    expect(await redis.llen(replies)).toBe(5);
    expect(await redis.keys(`${queue}*`)).toEqual([]);
  });

  it('does not start on a Redis that is too old, and says so', async () => {
    const old = await startOldRedis('5.0.7');
    const worker = startWorker({ redisUrl: old.url, queue, baseUrl: server.url });
    const failure = (async () => {
      await expect.poll(() => worker.stopped(), { timeout: 10_000 }).toBe(true);
      return worker.stop();
    })();
    await expect(failure).rejects.toMatchObject({ code: 'configuration' });
    await expect(worker.stop()).rejects.toThrow(/5\.0\.7.*6\.2 or newer/);
    await old.close();
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
      await Promise.all(workers.map((worker) => worker.stop()));
      workers = [];
      ownRedis.disconnect();
      await own.close();
    });

    it('is not there yet waits for it', async () => {
      await own.stop();
      const worker = start({ redisUrl: own.url });
      await own.start();
      await ownRedis.rpush(queue, job('a'));
      expect(await ownRedis.blpop(replies, 10)).not.toBeNull();
      await expect.poll(() => worker.counts.of('done')).toBe(1);
    });

    it('is restarted goes on by itself, and says each once', async () => {
      const worker = start({ redisUrl: own.url });
      await ownRedis.rpush(queue, job('a'));
      expect(await ownRedis.blpop(replies, 10)).not.toBeNull();
      await own.stop();
      await expect
        .poll(() => worker.log.lines.filter((line) => line.includes('Redis fails')).length, {
          timeout: 10_000,
        })
        .toBe(2);
      await own.start();
      await ownRedis.rpush(queue, job('b'));
      expect(await ownRedis.blpop(replies, 10)).not.toBeNull();
      await expect
        .poll(() => worker.log.lines.filter((line) => line.includes('works again')).length, {
          timeout: 10_000,
        })
        .toBe(2);
    });

    it('is lost while a batch is at the server answers when it is back', async () => {
      server.reply({ delayMs: 300 });
      start({ redisUrl: own.url });
      await ownRedis.rpush(queue, job('a'));
      await server.received(1);
      await own.stop();
      await own.start();
      expect(await ownRedis.blpop(replies, 20)).not.toBeNull();
    });

    it('is full waits, and loses nothing', async () => {
      server.reply({ delayMs: 200 });
      const worker = start({ redisUrl: own.url });
      await ownRedis.rpush(queue, ...jobs(5));
      await server.received(1);
      await ownRedis.config('SET', 'maxmemory', '1');
      await expect
        .poll(() => worker.log.lines.join('\n'), { timeout: 10_000 })
        .toMatch(/answering embedding jobs in Redis failed/);
      await ownRedis.config('SET', 'maxmemory', '0');
      await expect.poll(() => ownRedis.llen(replies), { timeout: 30_000 }).toBe(5);
    });

    it('cuts the connection finds the jobs whose taking was cut off', async () => {
      const worker = start({ redisUrl: own.url });
      await expect.poll(() => ownRedis.scard(`${queue}:workers`)).toBe(1);
      const [name] = await ownRedis.smembers(`${queue}:workers`);
      // Moved to the worker's list, without its ever hearing of it.
      await ownRedis.rpush(`${queue}:proc:${name}`, job('orphan'));
      await ownRedis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      expect(await ownRedis.blpop(replies, 20)).not.toBeNull();
      await expect.poll(() => worker.counts.of('done')).toBe(1);
    });
  });
});
