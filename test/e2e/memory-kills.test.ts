/** kill -9 in the middle of a flush, of a file's write, of an archive, of a compaction: each a small story. */
import { type FSWatcher, watch } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { ChatBody } from '../fakes/model.js';
import type { ModelScript } from '../fakes/model-script.js';
import { ANNA } from '../fakes/telegram-chats.js';
import { eventually } from '../harness/gateway.js';
import { pause } from '../harness/random.js';
import { type Stage, stage } from '../harness/telegram.js';
import { createLedger, type Entry, flushAt, type Ledger } from './soak-ledger.js';

const CHAT = `telegram_${ANNA.id}`;
const REFUSAL: ModelScript = { status: 500, headers: { 'x-should-retry': 'false' } };
/** Eight messages said or answered, of which four stay. */
const SHORT = { compact_after_messages: 8, keep_recent_messages: 4 };

let on: Stage;
let folder: string;
let ledger: Ledger;
let said: number;
/** What flushes, summaries and turns are answered with; turns with their reply where it says nothing. */
let script: (entry: Entry) => ModelScript | null | Promise<ModelScript | null>;

beforeEach(async () => {
  on = await stage({ config: { log: { level: 'info', format: 'json' }, conversation: SHORT } });
  folder = join(on.home.folder, 'groups', CHAT);
  ledger = createLedger({ id: CHAT, folder, why: 'killed' });
  said = 0;
  script = () => null;
  on.model.reply(async (body) => {
    const request = on.model.requests.at(-1);
    const entry = request && ledger.open(body, request);
    if (!entry) return { text: 'yes' };
    const usual =
      entry.kind === 'turn' ? { text: ledger.replyTo(body) } : { text: `done ${ledger.entries.length}` };
    entry.answer = (await script(entry)) ?? usual;
    return entry.answer;
  });
});
afterEach(() => on.close());

const sent = () => on.sentTo(ANNA.id);

const isAnswered = (number: number) =>
  sent().some((text) => new RegExp(`^re[ m\\d]* m${number}\\b`).test(text));

async function say(text = 'well'): Promise<void> {
  said++;
  on.telegram.say({ text: ledger.say(said, text) });
  await eventually(() => isAnswered(said), `an answer to m${said}`);
}

/** One message after the other, until it happens; the last may be left unanswered. */
async function sayUntil(event: Promise<void>, text = 'well'): Promise<void> {
  let over = false;
  void event.then(() => {
    over = true;
  });
  while (!over) {
    said++;
    on.telegram.say({ text: ledger.say(said, text) });
    await eventually(() => over || isAnswered(said), `an answer to m${said}`);
  }
}

const rounds = ({ messages }: ChatBody) =>
  messages.slice(flushAt(messages) + 1).filter(({ role }) => role === 'assistant').length;

/** Resolves as soon as a file in the making whose name has this in it lies in a folder. */
async function inTheMaking(where: string, what: string): Promise<{ begun: Promise<void>; close(): void }> {
  await mkdir(where, { recursive: true });
  let watcher: FSWatcher | null = null;
  const begun = new Promise<void>((resolve) => {
    watcher = watch(where, (_, name) => {
      if (name?.includes(what) && name.endsWith('.tmp')) resolve();
    });
  });
  return { begun, close: () => watcher?.close() };
}

const unfinished = async (where: string) => (await readdir(where)).filter((name) => name.endsWith('.tmp'));

it('a flush that is killed between its calls is made again, and its line stands in the log once', async () => {
  let reached: () => void = () => {};
  let well = false;
  script = async ({ kind, body }) => {
    if (kind !== 'flush') return null;
    const round = rounds(body);
    if (round === 0) {
      reached();
      return {
        calls: [
          { name: 'write_memory', arguments: { scope: 'chat_daily', content: 'the shed was planned' } },
        ],
      };
    }
    if (round > 1) return null;
    if (!well) await pause(500);
    return { calls: [{ name: 'write_tiered_memory', arguments: { tier: 2, content: 'a shed' } }] };
  };
  // Before the line is written, while it is, and behind it.
  for (const after of [0, 4, 30, 300]) {
    const gateway = await on.start();
    const begun = new Promise<void>((resolve) => {
      reached = resolve;
    });
    for (let n = 0; n < 4; n++) await say();
    await begun;
    await pause(after);
    await gateway.stop('SIGKILL');
    await ledger.account(sent(), false);
  }
  well = true;
  await on.start();
  await say();
  await eventually(() => ledger.entries.some(({ kind }) => kind === 'summary'), 'the flush finishes');
  await say();
  await say();
  await ledger.account(sent(), true);
  const [day = ''] = (await readdir(join(folder, 'memory'))).filter((name) => name.endsWith('.md'));
  expect(await readFile(join(folder, 'memory', day), 'utf8')).toBe('the shed was planned\n');
  const told = ledger.entries.flatMap(({ body }) => body.messages.map(({ content }) => content ?? ''));
  expect(told.some((content) => content.startsWith('This very line stands in the daily log'))).toBe(true);
  expect(await readFile(join(folder, 'default/MEMORY.md'), 'utf8')).toContain(
    '## Tier 2 — Mid term\n\na shed\n',
  );
});

it('MEMORY.md is the old one or the new one, wherever its write is killed', async () => {
  const path = join(folder, 'default/MEMORY.md');
  const textOf = (version: number) =>
    Array.from({ length: 2_000 }, (_, n) => `- ${version} line ${n}`).join('\n');
  const fileOf = (version: number) =>
    `# Memory\n\n## Tier 1 — Long term\n\n- by hand\n\n## Tier 2 — Mid term\n\n## Tier 3 — Short term\n\n${textOf(version)}\n`;
  await mkdir(join(folder, 'default'), { recursive: true });
  await writeFile(path, fileOf(0));
  let version = 0;
  script = ({ kind, body }) => {
    const last = body.messages.at(-1);
    if (kind !== 'turn' || last?.content?.startsWith('Interrupted')) return null;
    if (last?.role === 'user') return { calls: [{ name: 'read_tiered_memory', arguments: { tier: 3 } }] };
    if (last?.content?.startsWith('Tier 3 is written')) return null;
    return { calls: [{ name: 'write_tiered_memory', arguments: { tier: 3, content: textOf(version) } }] };
  };
  let before = 0;
  for (const after of [0, 1, 3, 6]) {
    version++;
    const gateway = on.launch();
    const { begun, close } = await inTheMaking(join(folder, 'default'), 'MEMORY.md');
    said++;
    on.telegram.say({ text: ledger.say(said, 'write') });
    await begun;
    await pause(after);
    await gateway.stop('SIGKILL');
    close();
    const now = await readFile(path, 'utf8');
    expect([fileOf(before), fileOf(version)].includes(now), `after ${after} ms it is old or new`).toBe(true);
    if (now === fileOf(version)) before = version;
  }
  version++;
  await on.start();
  await say('write');
  expect(await readFile(path, 'utf8')).toBe(fileOf(version));
});

it('what a killed write left beside MEMORY.md and the daily log is cleared away by the next', async () => {
  const day = new Date().toLocaleDateString('sv-SE', { timeZone: 'Europe/Berlin' });
  const left = [
    join(folder, 'default/.MEMORY.md.99999-1.tmp'),
    join(folder, `memory/.${day}.md.99999-1.tmp`),
  ];
  for (const path of left) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, 'half a file');
  }
  script = ({ kind, body }) =>
    kind !== 'turn' || body.messages.at(-1)?.role === 'tool'
      ? null
      : {
          calls: [
            { name: 'write_memory', arguments: { scope: 'chat_daily', content: 'a line' } },
            { name: 'write_tiered_memory', arguments: { tier: 1, content: 'a fact' } },
          ],
        };
  await on.start();
  await say();
  for (const path of left) expect(await unfinished(dirname(path)), dirname(path)).toEqual([]);
});

it('an archive whose write is killed counts for nothing, and no message comes to stand in two', async () => {
  const archives = join(folder, 'archive');
  let refusing = true;
  script = ({ kind }) => (kind === 'flush' && refusing ? REFUSAL : null);
  let halves = 0;
  // On a busy machine four kills may all miss the write.
  for (let n = 0; n < 4 || (halves === 0 && n < 16); n += 1) {
    const after = [0, 2, 5, 12][n % 4] ?? 0;
    const gateway = on.launch();
    const { begun, close } = await inTheMaking(archives, 'default.md');
    await sayUntil(begun, ' and so on'.repeat(2_000));
    await pause(after);
    await gateway.stop('SIGKILL');
    close();
    halves += (await unfinished(archives)).length;
    // Every archive there is holds all that its head says.
    await ledger.account(sent(), false);
  }
  expect(halves, 'archives that were cut off').toBeGreaterThan(0);
  await on.start();
  for (let n = 0; n < 4; n++) await say();
  await eventually(async () => (await ledger.archives()).some(({ flushed }) => !flushed), 'an archive');
  refusing = false;
  await say();
  await eventually(
    async () => (await ledger.archives()).every(({ flushed }) => flushed),
    'all are flushed',
    40_000,
  );
  await say();
  await ledger.account(sent(), true);
  expect(await unfinished(archives)).toEqual([]);
}, 90_000);

it('a copy that is killed leaves nothing lying about for good', async () => {
  const archives = join(folder, 'archive');
  const first = await on.start();
  for (let n = 0; n < 3; n++) await say(' and so on'.repeat(6_500));
  const { begun, close } = await inTheMaking(archives, 'default.md');
  on.telegram.say({ text: '/archive' });
  await begun;
  await first.stop('SIGKILL');
  close();
  await on.start();
  await eventually(() => sent().some((text) => text.startsWith('Copied 6 messages')), 'the copy is made');
  expect(await unfinished(archives)).toEqual([]);
  expect(await ledger.archives()).toHaveLength(1);
});

it('a compaction that is killed around its end moves the window once', async () => {
  let summed: () => void = () => {};
  script = ({ kind }) => {
    if (kind === 'summary') summed();
    return null;
  };
  const compactions = () =>
    ledger.entries.filter(({ kind, request }) => kind === 'summary' && request.answeredAt !== null).length;
  for (const after of [0, 3, 6, 10]) {
    const gateway = await on.start();
    await sayUntil(
      new Promise<void>((resolve) => {
        summed = resolve;
      }),
    );
    await pause(after);
    await gateway.stop('SIGKILL');
    await ledger.account(sent(), false);
    expect(ledger.moves()).toBeLessThanOrEqual(compactions());
  }
  await on.start();
  await say();
  await ledger.account(sent(), true);
  expect(ledger.moves()).toBeGreaterThan(0);
  expect(ledger.moves()).toBeLessThanOrEqual(compactions());
  // What it was to keep is there, and what is new.
  const shown = ledger.entries.findLast(({ kind }) => kind === 'turn')?.shown.length;
  expect(shown).toBeGreaterThan(SHORT.keep_recent_messages);
});
