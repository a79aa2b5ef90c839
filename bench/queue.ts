/**
 * Texts per second through the embedding queue: a gateway's embedder, a real Redis, a worker and an embedding server
 * that answers immediately, each in its own process; compared with a worker that takes one text at a time.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { systemClock } from '../src/core/clock.js';
import type { Embedder } from '../src/core/recall.js';
import { createRedisEmbedder } from '../src/embedding/requester.js';
import { redisIsInstalled, startRedis } from '../test/fakes/redis.js';
import { readOptions } from './options.js';

const { quick } = readOptions();
const SECONDS = quick ? 1 : 4;
const WORDS = 'The kiln broke in March, and Luna drove the pots to her sister to have them fired there. ';
const children = new Set<ChildProcess>();

async function main(): Promise<void> {
  if (!redisIsInstalled()) {
    console.log('redis-server is not installed: the queue was not measured');
    return;
  }
  const redis = await startRedis();
  try {
    console.log('Texts a second through the queue, vectors of 768 numbers, a server that answers at once\n');
    console.log('| worker | asked for | texts/s | median wait | 95 % |\n|---|---|---|---|---|');
    for (const kind of ['coterie worker', 'one by one'] as const) {
      const queue = `queue:${randomUUID()}`;
      const worker = await startChild('queue-worker.js', [kind, redis.url, queue]);
      for (const inFlight of [1, 64, 512]) {
        await withEmbedder(redis.url, queue, async (embedder) => {
          const found = await singly(embedder, inFlight);
          console.log(row(kind, `one at a time by ${inFlight}`, found));
        });
      }
      await withEmbedder(redis.url, queue, async (embedder) => {
        console.log(row(kind, '512 documents at a time', await together(embedder, 512)));
      });
      worker.disconnect();
    }
  } finally {
    for (const child of children) child.kill('SIGKILL');
    await redis.close();
  }
}

interface Found {
  perSecond: number;
  waits: number[];
}

/** Concurrent callers, each asking for one text after another. */
async function singly(embedder: Embedder, callers: number): Promise<Found> {
  const waits: number[] = [];
  const begun = performance.now();
  const end = begun + SECONDS * 1000;
  const call = async (caller: number) => {
    for (let n = 0; performance.now() < end; n++) {
      const asked = performance.now();
      const [vector] = await embedder.embed([`${WORDS}${caller} ${n}`], {
        purpose: 'query',
        signal: new AbortController().signal,
      });
      if (!vector) throw new Error('a text got no vector');
      waits.push(performance.now() - asked);
    }
  };
  await Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)));
  return { perSecond: (waits.length / (performance.now() - begun)) * 1000, waits };
}

async function together(embedder: Embedder, count: number): Promise<Found> {
  const waits: number[] = [];
  const begun = performance.now();
  const end = begun + SECONDS * 1000;
  while (performance.now() < end) {
    const asked = performance.now();
    const texts = Array.from({ length: count }, (_, n) => `${WORDS}${n}`);
    const vectors = await embedder.embed(texts, {
      purpose: 'document',
      signal: new AbortController().signal,
    });
    if (vectors.includes(null)) throw new Error('a text got no vector');
    waits.push(performance.now() - asked);
  }
  return { perSecond: ((waits.length * count) / (performance.now() - begun)) * 1000, waits };
}

async function withEmbedder(redisUrl: string, queue: string, run: (embedder: Embedder) => Promise<void>) {
  const nothing = () => {};
  const embedder = createRedisEmbedder({
    redisUrl,
    queue,
    model: 'bench',
    timeoutSeconds: 30,
    newId: randomUUID,
    clock: systemClock,
    log: { debug: nothing, info: nothing, warn: console.warn, error: console.error },
    metrics: { count: nothing, observe: nothing },
  });
  // Warm-up: the first request waits for connections and compilation.
  for (let n = 0; n < 20; n++) {
    const texts = Array.from({ length: 32 }, () => WORDS);
    await embedder.embed(texts, { purpose: 'document', signal: new AbortController().signal });
  }
  try {
    await run(embedder);
  } finally {
    await embedder.close();
  }
}

/** Resolves when the child reports that it is ready. */
async function startChild(file: string, args: string[]): Promise<ChildProcess> {
  const child = fork(new URL(file, import.meta.url), args, { stdio: 'inherit' });
  children.add(child);
  await new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', (code) => reject(new Error(`${file} ended with ${code}`)));
  });
  return child;
}

function row(worker: string, asked: string, { perSecond, waits }: Found): string {
  const sorted = waits.sort((a, b) => a - b);
  const at = (part: number) => `${(sorted[Math.floor((sorted.length - 1) * part)] ?? 0).toFixed(1)} ms`;
  return `| ${worker} | ${asked} | ${perSecond.toFixed(0)} | ${at(0.5)} | ${at(0.95)} |`;
}

await main();
process.exit();
