/**
 * `npm run bench:recall -- FILES…`: how well recall finds the evidence of LoCoMo's questions, with its turns told to
 * recall as chat history. `--embeddings URL --model NAME` measures the fusion beside keywords alone.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../src/core/clock.js';
import { createZone } from '../src/core/dates.js';
import type { Embedder } from '../src/core/embedder.js';
import { createRecall } from '../src/recall/recall.js';
import { memoryFeed, memoryFiles } from '../test/recall/memory-feed.js';
import { realEmbedder } from './embedders.js';

interface Turn {
  speaker: string;
  dia_id: string;
  text: string;
  blip_caption?: string;
}
interface Conversation {
  conversation: Record<string, string | Turn[]>;
  qa: { question: string; evidence?: string[]; category: number }[];
}
interface Figures {
  sums: Map<string, { sum: number; count: number }>;
}

const CATEGORIES: [number, string][] = [
  [4, 'single-hop'],
  [1, 'multi-hop'],
  [2, 'temporal'],
  [3, 'open-domain'],
  [5, 'adversarial'],
];
const { values: options, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    embeddings: { type: 'string' },
    model: { type: 'string' },
    key: { type: 'string' },
    relevance: { type: 'boolean' },
  },
});
if (names.length === 0) throw new Error('name the files of LoCoMo conversations to measure with');

const folder = await mkdtemp(join(tmpdir(), 'coterie-recall-'));
const log = { debug() {}, info() {}, warn: console.error, error: console.error };
const conversations = await Promise.all(
  names.map(async (name) => ({
    name: basename(name, '.json'),
    ...(JSON.parse(await readFile(name, 'utf8')) as Conversation),
  })),
);
/** For each question, what a turn would look at: by relevance, and whether it was evidence. */
interface Told {
  own: boolean;
  hits: { relevance: number; right: boolean }[];
}
const told: Told[] = [];
/** As many lines as a turn recalls. */
const TURN_LINES = 8;

try {
  console.log(await measured('keywords', null));
  const { embeddings, model } = options;
  if (embeddings !== undefined && model !== undefined) {
    console.log(await measured('both', realEmbedder(embeddings, model, options.key)));
  }
  if (options.relevance) console.log(floors());
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function measured(what: string, embedder: Embedder | null): Promise<string> {
  const feed = memoryFeed();
  const turnOf = new Map<number, string>();
  const known = new Map<string, Set<string>>();
  for (const [n, conversation] of conversations.entries())
    known.set(conversation.name, say(feed, conversation, n, turnOf));
  const zone = createZone('UTC');
  const file = join(folder, `${what}.db`);
  const recall = createRecall({
    laterMs: 0,
    file,
    feed,
    files: memoryFiles(),
    embedder,
    clock: systemClock,
    zone,
    log,
  });
  recall.start();
  const began = Date.now();
  while (
    recall.status().indexed < turnOf.size ||
    recall.status().waiting > 0 ||
    recall.status().vectorsWaiting > 0
  ) {
    if (Date.now() - began > 600_000) throw new Error('indexing took more than ten minutes');
    await systemClock.sleep(100);
  }
  const figures: Figures = { sums: new Map() };
  const times: number[] = [];
  const lines: string[] = [];
  for (const [n, { name, qa }] of conversations.entries()) {
    const own: Figures = { sums: new Map() };
    const scope = { chatId: `bench_${n}`, personaId: 'default' };
    for (const { question, evidence = [], category } of qa) {
      const wanted = new Set(cleaned(evidence).filter((turn) => known.get(name)?.has(turn)));
      if (wanted.size === 0) continue;
      const from = performance.now();
      const { hits } = await recall.search(scope, { text: question, limit: 100, now: Date.now() });
      times.push(performance.now() - from);
      const turns = hits.map(({ source }) =>
        source.kind === 'message' ? (turnOf.get(source.messageId) ?? '') : '',
      );
      for (const into of [figures, own]) score(into, turns, wanted, category);
      tell(true, hits, (n) => wanted.has(turns[n] ?? ''));
    }
    const isAsked = options.relevance && conversations.length > 1;
    const foreign = isAsked ? (conversations[(n + 1) % conversations.length]?.qa ?? []) : [];
    for (const { question } of foreign) {
      const { hits } = await recall.search(scope, { text: question, limit: TURN_LINES, now: Date.now() });
      tell(false, hits, () => false);
    }
    lines.push(`${name.padEnd(12)} ${row(own)}`);
  }
  await recall.stop();
  times.sort((a, b) => a - b);
  const at = (share: number) => (times[Math.floor(times.length * share)] ?? 0).toFixed(1);
  const categories = CATEGORIES.map(
    ([category, label]) =>
      `${label.padEnd(12)} R@5 ${mean(figures, `${category} R@5`)}  R@10 ${mean(figures, `${category} R@10`)}  R@20 ${mean(figures, `${category} R@20`)}`,
  );
  return [
    `${what}: ${times.length} questions, ${turnOf.size} turns; a search ${at(0.5)} ms, 95 % ${at(0.95)} ms`,
    ...lines,
    `${'all'.padEnd(12)} ${row(figures)}`,
    ...categories,
    '',
  ].join('\n');
}

/** Its turns as messages, one a minute from the time of their session; what a picture shows stands with the text. */
function say(
  feed: ReturnType<typeof memoryFeed>,
  { conversation }: Conversation,
  n: number,
  turnOf: Map<number, string>,
): Set<string> {
  const turns = new Set<string>();
  for (let session = 1; ; session++) {
    const said = conversation[`session_${session}`];
    if (!Array.isArray(said)) {
      if (conversation[`session_${session}_date_time`] === undefined) return turns;
      continue;
    }
    const from = sessionTime(String(conversation[`session_${session}_date_time`]));
    for (const [minute, turn] of said.entries()) {
      const caption = turn.blip_caption === undefined ? '' : ` [image: ${turn.blip_caption}]`;
      const id = feed.say({
        room: `bench_${n}`,
        heardBy: ['default'],
        author: turn.speaker,
        text: turn.text + caption,
        at: from + minute * 60_000,
      });
      turnOf.set(id, turn.dia_id);
      turns.add(turn.dia_id);
    }
  }
}

function sessionTime(text: string): number {
  const [, time, half, day, month, year] = /^(\d+:\d+) (am|pm) on (\d+) (\w+), (\d+)$/.exec(text) ?? [];
  return Date.parse(`${month} ${day}, ${year} ${time} ${half} UTC`);
}

/** 'D8:6; D9:17' and 'D30:05' are turns too. */
function cleaned(evidence: string[]): string[] {
  return evidence.flatMap((text) =>
    Array.from(text.matchAll(/D:?(\d+):0*(\d+)/g), ([, a, b]) => `D${a}:${b}`),
  );
}

function score({ sums }: Figures, turns: string[], wanted: Set<string>, category: number): void {
  const add = (name: string, value: number) => {
    const { sum, count } = sums.get(name) ?? { sum: 0, count: 0 };
    sums.set(name, { sum: sum + value, count: count + 1 });
  };
  for (const most of [5, 10, 20]) {
    const share = turns.slice(0, most).filter((turn) => wanted.has(turn)).length / wanted.size;
    add(`R@${most}`, share);
    add(`${category} R@${most}`, share);
  }
  const first = turns.findIndex((turn) => wanted.has(turn));
  add('MRR', first < 0 ? 0 : 1 / (first + 1));
  const session = (turn: string) => turn.split(':')[0] ?? '';
  const sessions = [...new Set(turns.map(session))];
  const right = new Set([...wanted].map(session));
  for (const most of [1, 5, 10])
    add(`session hit@${most}`, sessions.slice(0, most).some((one) => right.has(one)) ? 1 : 0);
}

function mean({ sums }: Figures, name: string): string {
  const { sum, count } = sums.get(name) ?? { sum: 0, count: 0 };
  return count === 0 ? '-' : ((100 * sum) / count).toFixed(1);
}

function row(figures: Figures): string {
  const columns = ['R@5', 'R@10', 'R@20', 'MRR', 'session hit@1', 'session hit@5', 'session hit@10'];
  return columns.map((name) => `${name} ${mean(figures, name)}`).join('  ');
}

function tell(own: boolean, hits: { relevance: number }[], isRight: (n: number) => boolean): void {
  const seen = hits.slice(0, TURN_LINES).map(({ relevance }, n) => ({ relevance, right: isRight(n) }));
  told.push({ own, hits: seen });
}

/** What each floor would find for a turn, and what it would let in of what has nothing to do with the question. */
function floors(): string {
  const own = told.filter((each) => each.own);
  const foreign = told.filter((each) => !each.own);
  const share = (all: Told[], is: (each: Told) => boolean) =>
    ((100 * all.filter(is).length) / (all.length || 1)).toFixed(0).padStart(3);
  const lines = (all: Told[], floor: number) =>
    (
      all.reduce((sum, { hits }) => sum + hits.filter(({ relevance }) => relevance >= floor).length, 0) /
      (all.length || 1)
    ).toFixed(1);
  return [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    .map((floor) => {
      const finds = ({ hits }: Told) => hits.some((hit) => hit.right && hit.relevance >= floor);
      const any = ({ hits }: Told) => hits.some(({ relevance }) => relevance >= floor);
      return (
        `floor ${floor.toFixed(1)}: evidence among ${TURN_LINES} lines for ${share(own, finds)} % of the questions; ` +
        `another conversation's questions get a line in ${share(foreign, any)} %, ${lines(foreign, floor)} lines each`
      );
    })
    .join('\n');
}
