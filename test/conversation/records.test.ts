/** What turns saw, recorded for `coterie replay`: all of it, and nothing that somebody had forgotten. */
import { mkdtemp, readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, expect, it } from 'vitest';
import { createExports } from '../../src/chat-export/export.js';
import type { ChatExports } from '../../src/core/chat-record.js';
import { systemClock } from '../../src/core/clock.js';
import { createZone } from '../../src/core/dates.js';
import type { TurnInStore } from '../../src/core/journal.js';
import type { Store } from '../../src/core/store.js';
import { recordsOf } from '../../src/replay/files.js';
import { Records } from '../../src/replay/records.js';
import { shownTurn } from '../../src/replay/shown.js';
import { withReads } from '../../src/store/inspect.js';
import { exportChat } from '../../src/tools/sending.js';
import { type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';
import { quietLog } from '../harness/quiet.js';
import { placeIn } from '../harness/store-in.js';

const CHAT = 'test_1';

let on: Workbench;
let folder: string;
let records: Records;
afterEach(async () => {
  await on.close();
});

async function open(options: WorkbenchOptions = {}) {
  folder = await mkdtemp(join(tmpdir(), 'coterie-bench-'));
  records = new Records({
    ...{ folder: join(folder, 'data/replay'), bytes: 10_000_000, days: 30, clean: (text) => text },
    ...{ clock: systemClock, log: quietLog },
  });
  on = await workbench({ folder, records, memoryTools: true, ...options });
}

function exportsOf(feed: Store): ChatExports {
  const personas = { list: async () => [] };
  const zone = createZone('UTC');
  return createExports({ folder: join(folder, 'data/exports'), feed, personas, zone, clock: systemClock });
}

async function say(...texts: string[]) {
  for (const text of texts) {
    await on.say(text);
    await on.settled();
  }
  await records.idle();
}

/** Everything that stands in the files of records. */
async function written(): Promise<string> {
  const root = join(folder, 'data/replay');
  const names = await readdir(root, { recursive: true }).catch(() => []);
  const texts = names
    .filter((name) => name.endsWith('.gz'))
    .map(async (name) => gunzipSync(await readFile(join(root, name))).toString());
  return (await Promise.all(texts)).join('');
}

const behind = async (id: string) =>
  withReads(await placeIn(folder), systemClock, (store) => store.turnBehind(id));

async function turnOf(id: string): Promise<TurnInStore> {
  const found = await behind(id);
  if (found?.kind !== 'turn') throw new Error(`${id} leads to ${found?.kind}`);
  return found.turn;
}

it('holds the requests as they were sent, and what the store adds to them', async () => {
  await open();
  on.answer(({ messages }) => {
    if (messages.at(-1)?.role === 'tool' || !JSON.stringify(messages.at(-1)).includes('remember'))
      return { text: 'Done, dear.', usage: { inputTokens: 70, outputTokens: 3 } };
    const call = { name: 'write_tiered_memory', arguments: { tier: 2, content: 'likes tea' } };
    return { text: 'One moment.', calls: [call] };
  });
  await say('hello', 'remember that I like tea\u001b[2J');
  const turn = await turnOf('evt-3');
  expect(turn).toMatchObject({ room: CHAT, personaId: 'default', state: 'answered', attempts: 0 });
  expect(turn.batch.map(({ text }) => text)).toEqual(['remember that I like tea\u001b[2J']);
  expect(turn.reply?.text).toBe('Done, dear.');
  expect(turn.sends).toMatchObject([{ by: 'answer', part: 0, text: 'Done, dear.', state: 'sent' }]);
  // By its own id, and by what it said.
  expect((await turnOf(turn.id)).id).toBe(turn.id);
  expect((await turnOf(`evt-${turn.reply?.id}`)).id).toBe(turn.id);

  const kept = await recordsOf(join(folder, 'data/replay'), {
    chatId: CHAT,
    personaId: 'default',
    turnId: turn.id,
  });
  const requests = kept.records.flatMap((record) => record.requests);
  expect(requests.map(({ messages, tools }) => ({ messages, tools }))).toEqual(
    on.asked.slice(1).map(({ messages, tools }) => ({ messages, tools })),
  );
  expect(requests.map(({ end }) => end)).toMatchObject([
    { text: 'One moment.', calls: [{ name: 'write_tiered_memory' }] },
    { text: 'Done, dear.', usage: { inputTokens: 70, outputTokens: 3 } },
  ]);
  const text = shownTurn({ turn, entries: [], ...kept }, createZone('UTC'));
  for (const part of [
    'remember that I like tea\\u{1b}[2J',
    'The window: 4 messages, from the beginning',
    'Request 2 of 2',
    '=== answer of m, 70 tokens in, 3 out',
    'calls write_tiered_memory',
    '"content":"likes tea"',
    'to test_1: sent',
  ])
    expect(text).toContain(part);
  expect(text).not.toContain('\u001b');
});

it('says so where there is no record, and shows what the store has', async () => {
  await open();
  await say('hello');
  await records.forget(CHAT, null);
  const turn = await turnOf('evt-1');
  const text = shownTurn({ turn, entries: [], records: [], torn: 1 }, createZone('UTC'));
  expect(text).toContain('There is no record of what the model was sent (1 files of records could not');
  expect(text).toContain('hello');
  expect(text).toContain('fine');
});

it('goes with /reset, and the turn is not shown any more', async () => {
  await open();
  await say('the word is heliotrope');
  expect(await written()).toContain('heliotrope');
  const { id } = await turnOf('evt-1');
  await say('/reset');
  expect(await written()).toBe('');
  expect(await behind(id)).toEqual({ kind: 'forgotten' });
  expect(await behind('evt-1')).toEqual({ kind: 'forgotten' });
  await say('and now?');
  expect(await written()).toContain('and now?');
  expect(await written()).not.toContain('heliotrope');
});

it('does not come back with a turn that was under way when it was reset', async () => {
  await open();
  let go = () => {};
  const isAsked = new Promise<void>((asked) => {
    on.answer(async () => {
      asked();
      await new Promise<void>((resolve) => {
        go = resolve;
      });
      return 'late';
    });
  });
  await on.say('the word is heliotrope');
  await isAsked;
  await on.say('/reset');
  await on.conversation.idle('none');
  go();
  await on.settled();
  await records.idle();
  expect(await written()).not.toContain('heliotrope');
});

it('goes with /memory forget, for all personas of the chat', async () => {
  await open();
  await say('the word is heliotrope', 'and what else?');
  await say('/memory forget heliotrope', 'yes');
  expect(on.texts().at(-1)).toContain('Forgotten:');
  expect(await written()).toBe('');
  const turn = await turnOf('evt-1');
  expect(turn.batch[0]?.text).toBe('the word is [forgotten]');
});

it('is not made of a turn that was stopped', async () => {
  await open();
  let asked = () => {};
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve;
  });
  on.answer(async (_, signal) => {
    asked();
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    return { fault: 'model_unreachable' };
  });
  await on.say('go on for ever');
  await isAsked;
  await on.say('/stop');
  await on.settled();
  await records.idle();
  expect(await written()).toBe('');
  expect((await turnOf('evt-1')).state).toBe('aborted');
});

it('knows nothing of ids that lead nowhere', async () => {
  await open();
  await say('hello');
  for (const id of [
    '',
    'evt-99',
    'evt-',
    'evt-x',
    '../../etc',
    "' or 1=1 --",
    `turn-${'x'.repeat(5_000)}`,
    '\0',
  ])
    expect(await behind(id)).toBe(null);
});

it('a persona sends its chat as a file, when it is asked for it', async () => {
  const tool = exportChat({
    exports: { make: (ask) => exportsOf(on.store).make(ask) } as ChatExports,
    post: (aside) => on.sayAside(aside),
    zone: createZone('UTC'),
  });
  await open({ tools: [tool] });
  on.answer(({ messages }) => {
    const last = messages.at(-1);
    if (last?.role === 'user' && last.content.includes('everything'))
      return { calls: [{ name: 'export_chat', arguments: { format: 'json' } }] };
    return 'fine';
  });
  await say('hello', 'give me everything');
  const [file] = on.sent.flatMap(({ part }) => (part.file ? [part.file] : []));
  const chat = JSON.parse(await readFile(file?.path ?? '', 'utf8'));
  expect(chat.rooms[0].messages.map((each: { text: string }) => each.text)).toEqual([
    ...['hello', 'fine', 'give me everything'],
  ]);
  const turn = await turnOf('evt-3');
  expect(turn.sends).toMatchObject([
    { by: 'tool', file: file?.name, state: 'sent' },
    { by: 'answer', text: 'fine', state: 'sent' },
  ]);
});

it('exports that wait to be sent go with what is forgotten', async () => {
  await open({ exports: exportsOf });
  const exports = exportsOf(on.store);
  const ask = {
    chatId: CHAT,
    by: 'default',
    format: 'markdown',
    since: null,
    until: null,
    key: 'k',
  } as const;
  const make = () => exports.make({ ...ask, signal: new AbortController().signal });
  await say('the word is heliotrope');
  const made = await make();
  expect(await readFile(made?.file.path ?? '', 'utf8')).toContain('heliotrope');
  await say('/reset');
  await expect(readFile(made?.file.path ?? '')).rejects.toThrow('ENOENT');
  await say('and now?');
  const text = await readFile((await make())?.file.path ?? '', 'utf8');
  expect(text).toContain('and now?');
  expect(text).not.toContain('heliotrope');
});
