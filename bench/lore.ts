/**
 * Part of `npm run bench`: the time that lorebooks add to a turn: their files are looked at, the messages scanned, the
 * entries chosen. For three books of 1,000 entries, for a book of 5,000 most of which are constant, and for patterns that
 * explode, during which other chats must go on.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { constantLore, joinedLore } from '../src/conversation/context/lore.js';
import { createPatterns } from '../src/conversation/lore/patterns.js';
import { createScanner } from '../src/conversation/lore/scan.js';
import { lastingMacros } from '../src/conversation/macros.js';
import type { Services } from '../src/conversation/services.js';
import type { ChatRecord } from '../src/core/chat-record.js';
import { systemClock } from '../src/core/clock.js';
import { createZone } from '../src/core/dates.js';
import { NO_PARTS, type Persona } from '../src/core/persona.js';
import type { StoredMessage } from '../src/core/transcript.js';
import { NO_NOTES } from '../src/groups/chat-notes.js';
import { createLorebooks } from '../src/groups/lorebooks.js';
import { quietLog } from '../test/harness/quiet.js';
import { median, quantile, type Row } from './figures.js';
import { readOptions } from './options.js';
import { resultsOf } from './results.js';

const { table } = resultsOf('lore');
const { quick } = readOptions();
const TURNS = quick ? 100 : 500;
/** In the first turns the files are read and made ready. */
const WARM = 20;
const AIM_MS = 5;
/** A turn waits a tenth of a second for patterns, and the next one for a new thread. */
const EXPLODING_AIM_MS = 250;
const STALL_AIM_MS = 50;
const WORDS =
  'the old harbour by the lighthouse where the keeper counts ships and nobody asks about the moon';

const groups = await mkdtemp(join(tmpdir(), 'coterie-bench-lore-'));
const worker = new URL('../../dist/pattern-worker.js', import.meta.url);
const services = {
  ...{ lorebooks: createLorebooks(groups, quietLog), channels: new Map(), zone: createZone('UTC') },
  scanner: createScanner(createPatterns(systemClock, quietLog, worker), Math.random),
  settings: { lore: { scanDepth: 2, budgetTokens: null } },
  model: { contextTokens: () => 32_768 },
  clock: systemClock,
} as unknown as Services;
const persona: Persona = {
  ...{ id: 'luna', name: 'Luna', model: null, temperature: null, avatar: null, voice: null, aliases: [] },
  ...{ tools: null, from: null, character: 'x', greeting: null },
  ...{
    parts: NO_PARTS,
    card: null,
    trusted: false,
    guard: null,
    greetings: [],
    groupGreetings: [],
    talkativeness: null,
    portrait: null,
  },
};

async function chatWith(name: string, books: object[][]): Promise<ChatRecord> {
  const folder = join(groups, `test_${name}/lorebooks`);
  await mkdir(folder, { recursive: true });
  for (const [n, entries] of books.entries()) {
    await writeFile(join(folder, `${n}.json`), JSON.stringify({ recursive_scanning: true, entries }));
  }
  return { id: `test_${name}`, channel: 'test', kind: 'direct', title: 'Ann' } as ChatRecord;
}

function said(id: number, text: string): StoredMessage {
  const author = { kind: 'person' as const, id: 'test_1', name: 'Ann', administrator: false };
  return { id, author, text, sentAt: id, turnId: null } as StoredMessage;
}

/** The time that lore takes of a turn, and the number of entries that joined. */
async function turn(chat: ChatRecord, text: string): Promise<{ ms: number; entries: number }> {
  const began = performance.now();
  const drawn = { at: 0, seed: 'window' };
  const values = lastingMacros(services, { chat, persona }, 'Ann', drawn);
  const lore = await constantLore(services, { chat, persona }, NO_NOTES, values);
  const asked = [said(2, text)];
  const heard = [said(1, WORDS), ...asked];
  const nameOf = () => 'Ann';
  const { seen } = await joinedLore(services, {
    ...{ chat, persona, lore, heard, asked, nameOf },
    ...{ notes: NO_NOTES, hasMoved: false },
  });
  return { ms: performance.now() - began, entries: seen?.entries.length ?? 0 };
}

async function timesOf(chat: ChatRecord, turns: number, text: (n: number) => string): Promise<number[]> {
  const times: number[] = [];
  for (let n = 0; n < turns + WARM; n++) {
    const { ms, entries } = await turn(chat, text(n));
    if (entries === 0) throw new Error('nothing joined');
    if (n >= WARM) times.push(ms);
  }
  return times;
}

function entry(n: number, more: object = {}) {
  const keys = [`place ${n}`, `person${n}`, `${WORDS.split(' ')[n % 16]} of ${n}`];
  return { keys, content: `Entry ${n} tells of place ${n + 1}: ${WORDS.slice(0, 80)}.`, ...more };
}

const many = (count: number, more: object = {}) => Array.from({ length: count }, (_, n) => entry(n, more));
const three = await chatWith('3', [many(1_000), many(1_000), many(1_000)]);
// As long as the largest book that was seen: 213,000 characters.
const large = await chatWith('5', [many(5_000, { content: 'x'.repeat(43), constant: true, keys: [] })]);
const bad = Array.from({ length: 10 }, (_, n) => ({ keys: [`/(a+)+$${n}/`], content: 'x' }));
const explosive = await chatWith('9', [[{ keys: ['a'], content: 'plain' }, ...bad]]);

const words = (n: number) => `turn ${n}: place ${n % 1_000}, ${WORDS}`;
const ofThree = await timesOf(three, TURNS, words);
const ofLong = await timesOf(three, quick ? 20 : 50, (n) => words(n).repeat(400));
const ofLarge = await timesOf(large, TURNS, words);

let stall = 0;
let last = performance.now();
const watch = setInterval(() => {
  stall = Math.max(stall, performance.now() - last - 5);
  last = performance.now();
}, 5);
const ofExplosive = await timesOf(explosive, quick ? 3 : 10, () => `${'a'.repeat(40)}!`);
clearInterval(watch);
await rm(groups, { recursive: true, force: true });

const row = (what: string, times: number[], atMost?: number): Row => ({
  ...{ what, values: [median(times), quantile(times, 0.95)], unit: 'ms' },
  ...(atMost !== undefined && { aim: { atMost } }),
});
const rows: Row[] = [
  row('three books of 1,000 entries', ofThree, AIM_MS),
  row('the same, for a message of 50,000 characters', ofLong),
  row('5,000 constant entries, 213,000 characters', ofLarge),
  row('ten patterns that explode', ofExplosive, EXPLODING_AIM_MS),
  {
    ...{ what: 'longest time in which no other chat went on', values: [stall, null] },
    ...{ unit: 'ms', aim: { atMost: STALL_AIM_MS } },
  },
];
console.log(`\n## Lorebooks: what they add to a turn\n\n${table(['median', '95 %'], rows)}`);
process.exit(0);
