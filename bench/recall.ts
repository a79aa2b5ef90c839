/**
 * `npm run bench:recall -- FILES…`: how well recall finds the evidence of questions about conversations that it is
 * given as chat history, compared with a plain FTS5 table with Porter stemming. `recall-data.ts` lists the data sets.
 * `--embeddings URL --model NAME` measures the fusion with vectors, too.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import Database from 'better-sqlite3';
import { systemClock } from '../src/core/clock.js';
import { createZone } from '../src/core/dates.js';
import type { Embedder } from '../src/core/recall.js';
import { createRecall } from '../src/recall/recall.js';
import { memoryFeed, memoryFiles } from '../test/recall/memory-feed.js';
import { realEmbedder } from './embedders.js';
import { type Asked, type History, readHistory, type Told } from './recall-data.js';

interface Figures {
  sums: Map<string, { sum: number; count: number }>;
}

const { values: options, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    embeddings: { type: 'string' },
    model: { type: 'string' },
    key: { type: 'string' },
    relevance: { type: 'boolean' },
  },
});
if (names.length === 0) throw new Error('name the files of conversations to measure with');

const folder = await mkdtemp(join(tmpdir(), 'coterie-recall-'));
const log = { debug() {}, info() {}, warn: console.error, error: console.error };
const histories = await Promise.all(names.map(readHistory));
const PERSONA = 'default';
/** The hits of a question that a turn would consider, with their relevance and whether they are evidence. */
interface Seen {
  own: boolean;
  hits: { relevance: number; right: boolean }[];
}
const seen: Seen[] = [];
const TURN_LINES = 8;

try {
  for (const set of new Set(histories.map((history) => history.set))) {
    const own = histories.filter((history) => history.set === set);
    console.log(await measured(set, 'keywords', own, null));
    const { embeddings, model } = options;
    if (embeddings !== undefined && model !== undefined) {
      console.log(await measured(set, 'both', own, realEmbedder(embeddings, model, options.key)));
    }
  }
  if (options.relevance) console.log(floors());
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function measured(
  set: string,
  by: string,
  conversations: History[],
  embedder: Embedder | null,
): Promise<string> {
  const feed = memoryFeed();
  const heard = new Map<number, Told>();
  for (const [n, { told }] of conversations.entries()) {
    for (const each of told) {
      const { author, byPersona, text, at } = each;
      const said = { room: `bench_${n}`, heardBy: [PERSONA], text, at };
      heard.set(feed.say({ ...said, ...(byPersona ? { by: PERSONA } : { author }) }), each);
    }
  }
  const zone = createZone('UTC');
  const file = join(folder, `${set} ${by}.db`);
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
    recall.status().indexed < heard.size ||
    recall.status().waiting > 0 ||
    recall.status().vectorsWaiting > 0
  ) {
    if (Date.now() - began > 600_000) throw new Error('indexing took more than ten minutes');
    await systemClock.sleep(100);
  }
  const figures: Figures = { sums: new Map() };
  const times: number[] = [];
  const lines: string[] = [];
  for (const [n, { name, told, asked }] of conversations.entries()) {
    const own: Figures = { sums: new Map() };
    const scope = { chatId: `bench_${n}`, personaId: PERSONA };
    const plain = plainSearch(told);
    for (const each of asked) {
      const from = performance.now();
      const { hits } = await recall.search(scope, { text: each.question, limit: 100, now: Date.now() });
      times.push(performance.now() - from);
      const found = hits.flatMap(({ source }) =>
        source.kind === 'message' ? (heard.get(source.messageId) ?? []) : [],
      );
      for (const into of [figures, own]) {
        score(into, '', found, each);
        score(into, 'FTS5 ', plain(each.question), each);
      }
      tell(true, hits, (n) => each.evidence.has(found[n]?.id ?? ''));
    }
    const isAsked = options.relevance && conversations.length > 1;
    const foreign = isAsked ? (conversations[(n + 1) % conversations.length]?.asked ?? []) : [];
    for (const { question } of foreign) {
      const { hits } = await recall.search(scope, { text: question, limit: TURN_LINES, now: Date.now() });
      tell(false, hits, () => false);
    }
    lines.push(row(name, own, ''));
  }
  await recall.stop();
  times.sort((a, b) => a - b);
  const at = (share: number) => (times[Math.floor(times.length * share)] ?? 0).toFixed(1);
  const kinds = [...new Set(conversations.flatMap(({ asked }) => asked.map(({ about }) => about)))].sort();
  return [
    `${set}, ${by}: ${times.length} questions, ${heard.size} messages; a search ${at(0.5)} ms, 95 % ${at(0.95)} ms`,
    ...lines,
    row('all', figures, ''),
    ...kinds.map((about) => row(about, figures, `${about} `)),
    '',
  ].join('\n');
}

/** SQLite's full-text index alone: any word of the question, with Porter stemming, by BM25. */
function plainSearch(told: Told[]): (question: string) => Told[] {
  const db = new Database(':memory:');
  db.exec("CREATE VIRTUAL TABLE said USING fts5(text, tokenize = 'porter unicode61')");
  const insert = db.prepare('INSERT INTO said (rowid, text) VALUES (?, ?)');
  for (const [n, { text }] of told.entries()) insert.run(n, text);
  const select = db.prepare('SELECT rowid FROM said WHERE said MATCH ? ORDER BY rank LIMIT 100').pluck();
  return (question) => {
    const words = question.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
    const rows = select.all(words.map((word) => `"${word}"`).join(' OR ')) as number[];
    return rows.flatMap((n) => told[n] ?? []);
  };
}

function score(
  { sums }: Figures,
  by: string,
  found: Told[],
  { evidence, sessions: right, about }: Asked,
): void {
  const add = (name: string, value: number) => {
    const { sum, count } = sums.get(name) ?? { sum: 0, count: 0 };
    sums.set(name, { sum: sum + value, count: count + 1 });
  };
  const isRight = ({ id }: Told) => evidence.has(id);
  for (const most of [5, 10, 20]) {
    const share = found.slice(0, most).filter(isRight).length / evidence.size;
    add(`${by}R@${most}`, share);
    add(`${about} ${by}R@${most}`, share);
  }
  const first = found.findIndex(isRight);
  add(`${by}MRR`, first < 0 ? 0 : 1 / (first + 1));
  const sessions = [...new Set(found.map(({ session }) => session))];
  for (const most of [1, 5, 10])
    add(`${by}session hit@${most}`, sessions.slice(0, most).some((one) => right.has(one)) ? 1 : 0);
}

function row(label: string, { sums }: Figures, about: string): string {
  const columns = ['R@5', 'R@10', 'R@20', 'FTS5 R@5', 'FTS5 R@10', 'FTS5 R@20', 'MRR'];
  if (about === '') columns.push('session hit@1', 'session hit@5', 'session hit@10');
  const cells = columns.flatMap((name) => {
    const { sum, count } = sums.get(about + name) ?? { sum: 0, count: 0 };
    return count === 0 ? [] : `${name} ${((100 * sum) / count).toFixed(1)}`;
  });
  return `${label.padEnd(24)} ${cells.join('  ')}`;
}

function tell(own: boolean, hits: { relevance: number }[], isRight: (n: number) => boolean): void {
  const lines = hits.slice(0, TURN_LINES).map(({ relevance }, n) => ({ relevance, right: isRight(n) }));
  seen.push({ own, hits: lines });
}

/** For each relevance floor: the evidence that a turn would find, and the unrelated hits it would let in. */
function floors(): string {
  const own = seen.filter((each) => each.own);
  const foreign = seen.filter((each) => !each.own);
  const share = (all: Seen[], is: (each: Seen) => boolean) =>
    ((100 * all.filter(is).length) / (all.length || 1)).toFixed(0).padStart(3);
  const lines = (all: Seen[], floor: number) =>
    (
      all.reduce((sum, { hits }) => sum + hits.filter(({ relevance }) => relevance >= floor).length, 0) /
      (all.length || 1)
    ).toFixed(1);
  return [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    .map((floor) => {
      const finds = ({ hits }: Seen) => hits.some((hit) => hit.right && hit.relevance >= floor);
      const any = ({ hits }: Seen) => hits.some(({ relevance }) => relevance >= floor);
      return (
        `floor ${floor.toFixed(1)}: evidence among ${TURN_LINES} lines for ${share(own, finds)} % of the questions; ` +
        `another conversation's questions get a line in ${share(foreign, any)} %, ${lines(foreign, floor)} lines each`
      );
    })
    .join('\n');
}
