/**
 * `npm run bench:recall-scale`: the duration of a search among 10,000, 100,000 and 1,000,000 messages, in chats of some
 * 600 (all in one chat with `--one`), and how long indexing blocks the gateway's event loop.
 */
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { systemClock } from '../src/core/clock.js';
import { createZone } from '../src/core/dates.js';
import type { HeardView, RecallFeed } from '../src/core/recall.js';
import type { HeardMessage } from '../src/core/transcript.js';
import { createRecall } from '../src/recall/recall.js';
import { memoryFiles } from '../test/recall/memory-feed.js';

const { values: options } = parseArgs({
  options: {
    sizes: { type: 'string', default: '10000,100000,1000000' },
    one: { type: 'boolean', default: false },
  },
  // As part of `npm run bench` it gets other parts' options.
  strict: false,
});
const EACH = 588;
const SEARCHES = 300;
const WORDS = 40_000;
const START = Date.UTC(2020, 0, 1);

/** Word frequencies as in a language (Zipf): the n-th word is one n-th as frequent as the first. */
const sums = new Float64Array(WORDS);
for (let n = 0, sum = 0; n < WORDS; n++) sums[n] = sum += 1 / (n + 12);

function random(seed: number): () => number {
  let state = (seed * 2_654_435_761) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function word(next: () => number): string {
  const at = next() * (sums[WORDS - 1] ?? 1);
  let low = 0;
  for (let high = WORDS - 1; low < high; ) {
    const middle = (low + high) >>> 1;
    if ((sums[middle] ?? 0) < at) low = middle + 1;
    else high = middle;
  }
  return `${'bcdfghklmnprstv'[low % 15]}${'aeiou'[low % 5]}${low.toString(36).replace(/\d/g, (digit) => 'ghijklmnop'[Number(digit)] ?? '')}`;
}

function sentence(id: number, shortest: number, longest: number): string {
  const next = random(id);
  const count = shortest + Math.floor(next() * (longest - shortest));
  return Array.from({ length: count }, () => word(next)).join(' ');
}

/** Messages are generated on demand: message n of chat c has the ID n · chats + c + 1. */
function feedOf(messages: number, chats: number): RecallFeed {
  const room = (chat: number) => `bench_${String(chat).padStart(7, '0')}`;
  const message = (id: number): HeardMessage => ({
    id,
    room: room((id - 1) % chats),
    text: sentence(id, 3, 25),
    sentAt: START + id * 60_000 * 20,
    receivedAt: 0,
    author: { kind: 'person', id: 'bench_1', name: id % 2 ? 'Ann' : 'Bob', administrator: false },
    platformMessageId: null,
    mentionsBot: false,
    replyTo: null,
    edited: false,
    turnId: null,
    position: { heardAfter: id - 1, messageId: id },
    addressed: true,
  });
  return {
    originIn: async () => 'inside',
    async heardViews(after, most) {
      const from = after === null ? 0 : Number(after.room.slice(6)) + (after.personaId === '' ? 0 : 1);
      const count = Math.max(0, Math.min(most, chats - from));
      return Array.from(
        { length: count },
        (_, n): HeardView => ({ room: room(from + n), personaId: 'default', resetAt: 0 }),
      );
    },
    async heardSince({ room: asked, addressed, after, most }) {
      const chat = Number(asked.slice(6));
      const found: HeardMessage[] = [];
      let id = after.messageId === 0 ? chat + 1 : after.messageId + chats;
      for (; addressed && id <= messages && found.length < most; id += chats) found.push(message(id));
      return found;
    },
    visible: async (scope, ids) => ids.filter((id) => room((id - 1) % chats) === scope.chatId).map(message),
  };
}

const folder = await mkdtemp(join(tmpdir(), 'coterie-recall-scale-'));
const log = { debug() {}, info() {}, warn: console.error, error: console.error };
try {
  for (const size of String(options.sizes).split(',').map(Number)) {
    await measure(size, options.one ? 1 : Math.ceil(size / EACH));
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function measure(messages: number, chats: number): Promise<void> {
  const file = join(folder, `${messages}-${chats}.db`);
  const zone = createZone('UTC');
  const feed = feedOf(messages, chats);
  const recall = createRecall({
    laterMs: 0,
    file,
    feed,
    files: memoryFiles(),
    embedder: null,
    clock: systemClock,
    zone,
    log,
  });
  const delay = monitorEventLoopDelay({ resolution: 5 });
  const whileIndexing: number[] = [];
  const search = async (n: number, into: number[]) => {
    const chat = Math.floor(random(n * 31 + 7)() * chats);
    const text = `what about ${sentence(n * 17 + 3, 3, 8)} last?`;
    const scope = { chatId: `bench_${String(chat).padStart(7, '0')}`, personaId: 'default' };
    const from = performance.now();
    await recall.search(scope, { text, limit: 10, now: START });
    into.push(performance.now() - from);
  };
  delay.enable();
  const from = Date.now();
  recall.start();
  for (let n = 0; recall.status().indexed < messages; n++) {
    await systemClock.sleep(200);
    if (n % 2 === 0) await search(n, whileIndexing);
  }
  delay.disable();
  const seconds = (Date.now() - from) / 1000;
  const times: number[] = [];
  for (let n = 0; n < 20; n++) await search(n + 5_000, []);
  for (let n = 0; n < SEARCHES; n++) await search(n, times);
  const size = (await stat(file)).size / 1e6;
  await recall.stop();
  const part = (all: number[], share: number) =>
    [...all].sort((a, b) => a - b)[Math.floor(all.length * share)]?.toFixed(1) ?? '-';
  console.log(
    [
      `${messages.toLocaleString('en')} messages in ${chats.toLocaleString('en')} chats: a search ${part(times, 0.5)} ms, 95 % ${part(times, 0.95)} ms`,
      `while indexing ${part(whileIndexing, 0.5)} ms, 95 % ${part(whileIndexing, 0.95)} ms`,
      `indexed in ${seconds.toFixed(1)} s (${Math.round(messages / seconds).toLocaleString('en')}/s), ${size.toFixed(0)} MB`,
      `event loop delayed by ${(delay.percentile(50) / 1e6 - 5).toFixed(1)} ms, 95 % ${(delay.percentile(95) / 1e6 - 5).toFixed(1)} ms, at most ${(delay.max / 1e6 - 5).toFixed(1)} ms`,
    ].join('\n  '),
  );
}
