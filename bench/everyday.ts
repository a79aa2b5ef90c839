/**
 * `npm run bench:everyday`: do plain questions recall what was said, and does small talk recall nothing? The facts of
 * `everyday-data.ts` are told in chats of 40 to 20,000 similar messages, and queried as in a turn once they have left
 * the window: by keywords, with artificial and with random vectors; `--embeddings URL --model NAME [--language
 * English]` adds a real model, `--show` prints the failures.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { recollect } from '../src/conversation/context/recollection.js';
import type { Services } from '../src/conversation/services.js';
import { systemClock } from '../src/core/clock.js';
import { createZone } from '../src/core/dates.js';
import type { Embedder, Recall } from '../src/core/recall.js';
import type { HeardMessage } from '../src/core/transcript.js';
import { createRecall } from '../src/recall/recall.js';
import { memoryFeed, memoryFiles } from '../test/recall/memory-feed.js';
import { noiseEmbedder, realEmbedder, spellingEmbedder } from './embedders.js';
import { LANGUAGES, type Language } from './everyday-data.js';

const { values: options } = parseArgs({
  options: {
    embeddings: { type: 'string' },
    model: { type: 'string' },
    language: { type: 'string' },
    sizes: { type: 'string', default: '40,400,4000,20000' },
    show: { type: 'boolean' },
    quick: { type: 'boolean' },
  },
});
const SIZES = options.sizes.split(',').map(Number);
/** The newest messages are in the prompt anyway. */
const WINDOW = 10;
/** Messages per chat on the same topics as the facts: nobody talks about the dentist every day. */
const LIKE_FACTS = 150;
const PERSONA = 'luna';
const START = Date.UTC(2025, 0, 1, 8);
const STEP_MS = 23 * 60_000;
const zone = createZone('UTC');
const log = { debug() {}, info() {}, warn: console.error, error: console.error };

interface Chat {
  language: Language;
  size: number;
  room: string;
  /** The messages that a turn would find before its own. */
  end: { messageId: number; heardAfter: number };
  now: number;
}

type Row = 'questions' | 'follow-ups' | 'remarks' | 'small talk';

const languages = LANGUAGES.filter(({ name }) => options.language === undefined || name === options.language);
const folder = await mkdtemp(join(tmpdir(), 'coterie-everyday-'));
try {
  await measure('keywords', null);
  if (!options.quick) {
    await measure('vectors of a made-up model', spellingEmbedder());
    await measure('vectors that mean nothing', noiseEmbedder());
  }
  const { embeddings, model } = options;
  if (embeddings !== undefined && model !== undefined) await measure(model, realEmbedder(embeddings, model));
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function measure(what: string, embedder: Embedder | null): Promise<void> {
  const feed = memoryFeed(START);
  const chats: Chat[] = [];
  for (const language of languages) for (const size of SIZES) chats.push(tell(feed, language, size));
  const recall = createRecall({
    ...{ file: join(folder, `${what}.db`), feed, files: memoryFiles(), embedder },
    ...{ clock: systemClock, zone, log, laterMs: 0 },
  });
  recall.start();
  const all = chats.reduce((sum, { size }) => sum + size, 0);
  while (recall.status().indexed < all || recall.status().waiting > 0 || recall.status().vectorsWaiting > 0)
    await systemClock.sleep(100);
  const counts = new Map<string, { good: number; all: number }>();
  const lines: number[] = [];
  for (const chat of chats) {
    const note = (row: Row, n: number, good: boolean, told: string) => {
      for (const key of [
        `${row}|all`,
        `${row}|${chat.language.name}`,
        `${row}|${chat.size}`,
        `${row}|${half(n)}`,
      ]) {
        const count = counts.get(key) ?? { good: 0, all: 0 };
        counts.set(key, { good: count.good + (good ? 1 : 0), all: count.all + 1 });
      }
      if (good === (row === 'small talk') && options.show && half(n) === 'tuned on')
        console.log(`  ${chat.language.name} ${chat.size} ${row}: ${told}`);
    };
    for (const [n, [fact, ...questions]] of chat.language.facts.entries()) {
      for (const question of questions) {
        const found = await asked(recall, chat, question, []);
        lines.push(found.length);
        note(
          'questions',
          n,
          found.some((line) => line.includes(fact)),
          `${question} [${found.length} lines]`,
        );
      }
    }
    for (const [n, [fact, before, answer, question]] of chat.language.followUps.entries()) {
      const found = await asked(recall, chat, question, [before, answer]);
      note(
        'follow-ups',
        n,
        found.some((line) => line.includes(fact)),
        `${question} [${found.length} lines]`,
      );
    }
    for (const [n, [fact, remark]] of chat.language.remarks.entries()) {
      const found = await asked(recall, chat, remark, []);
      note(
        'remarks',
        n,
        found.some((line) => line.includes(fact)),
        `${remark} [${found.length} lines]`,
      );
    }
    for (const [n, text] of chat.language.smallTalk.entries()) {
      const found = await asked(recall, chat, text, []);
      note('small talk', n, found.length > 0, `${text} brought ${found[0]}`);
    }
  }
  await recall.stop();
  const columns = [
    'all',
    ...SIZES.map(String),
    ...languages.map(({ name }) => name),
    'tuned on',
    'kept back',
  ];
  console.log(`${what} (${(lines.reduce((a, b) => a + b, 0) / lines.length).toFixed(1)} lines a question)`);
  console.log(`${''.padEnd(12)}${columns.map((column) => column.padStart(10)).join('')}`);
  for (const row of ['questions', 'follow-ups', 'remarks', 'small talk'] as const) {
    const cells = columns.map((column) => {
      const { good, all: count } = counts.get(`${row}|${column}`) ?? { good: 0, all: 0 };
      return `${((100 * good) / (count || 1)).toFixed(0)} %`.padStart(10);
    });
    console.log(`${row.padEnd(12)}${cells.join('')}`);
  }
}

function half(n: number): string {
  return n % 2 === 0 ? 'tuned on' : 'kept back';
}

/** Spreads the facts evenly among the messages, each answered by the persona. */
function tell(feed: ReturnType<typeof memoryFeed>, language: Language, size: number): Chat {
  const room = `bench_${language.name}_${size}`;
  const facts = [...language.facts, ...language.followUps, ...language.remarks].map(([fact]) => fact);
  const every = Math.floor((size - WINDOW - 2) / facts.length);
  const random = mulberry(size + language.name.length);
  const pick = (from: string[]) => from[Math.floor(random() * from.length)] ?? '';
  const sentence = () =>
    pick(language.filler)
      .replace('{who}', () => pick(language.who))
      .replace('{what}', () => pick(random() < LIKE_FACTS / size ? language.what : language.other))
      .replace('{when}', () => pick(language.when));
  let at = START;
  let last = 0;
  for (let n = 0; n < size; n++) {
    const fact = n % every === 1 || every === 1 ? facts[Math.floor(n / every)] : undefined;
    at += STEP_MS * (n % 17 === 0 ? 20 : 1);
    const own = fact === undefined && n % 3 === 2;
    last = feed.say({
      room,
      heardBy: [PERSONA],
      text: fact ?? sentence(),
      at,
      ...(own ? { by: PERSONA } : {}),
    });
  }
  return { language, size, room, end: { messageId: last, heardAfter: last - 1 }, now: at + STEP_MS };
}

async function asked(
  recall: Recall,
  { room, end, now }: Chat,
  text: string,
  before: string[],
): Promise<string[]> {
  const message = (text: string, id: number): HeardMessage => ({
    ...{ id, room, text, sentAt: now, receivedAt: now, platformMessageId: null, mentionsBot: false },
    ...{ replyTo: null, edited: false, turnId: null, addressed: true },
    author: { kind: 'person', id: 'terminal_ann', name: 'Ann', administrator: false },
    position: { messageId: id, heardAfter: id - 1 },
  });
  const shownFrom = end.messageId - WINDOW;
  const { lines } = await recollect(
    { recall, zone, log } as unknown as Services,
    { chatId: room, personaId: PERSONA },
    [message(text, end.messageId + 9)],
    before.map((each, n) => message(each, end.messageId + 1 + n)),
    '',
    { now, except: { room, after: { messageId: shownFrom, heardAfter: shownFrom - 1 } } },
  );
  return lines;
}

/** Seeded: the same chat in every run. */
function mulberry(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
