/** `working.log` and its archive, from a real store, whatever state they are in. */
import { chmod, mkdir, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { JournalWrite, MattTurn } from '../../src/core/journal.js';
import { FORGOTTEN, phraseOf } from '../../src/core/phrase.js';
import type { Store } from '../../src/core/store.js';
import { createJournal, type Journal, type JournalOptions } from '../../src/journal/journal.js';
import { CHAT, forget, message, receive } from '../contract/store/words.js';
import { manualClock } from '../fakes/clock.js';
import { eventually } from '../harness/gateway.js';
import { journalBelow, linesOf } from '../harness/journal-shapes.js';
import { openMade, type Place, silentLog } from '../store/place.js';

let place: Place;
let store: Store;
let folder: string;
const running: Journal[] = [];
const warnings: string[] = [];

beforeEach(async () => {
  place = await openMade();
  store = await place.open();
  folder = join(place.folder, 'data');
  await mkdir(folder, { recursive: true });
  warnings.length = 0;
});
afterEach(async () => {
  for (const journal of running.splice(0)) await journal.stop();
  await place.remove();
});

const AT = Date.parse('2026-01-02T10:00:00Z');
const placed = { chatId: CHAT, room: CHAT, personaId: 'default', turnId: null };

function intent(id: string, at = AT, command = 'ls'): JournalWrite {
  const entry: MattTurn = {
    ...{ id: `turn-${id}`, type: 'MattTurn', agent: 'default', parent_event_id: null },
    ...{ timestamp_intent: new Date(at).toISOString(), status: 'pending', reasoning: '' },
    ...{ action: { tool: 'shell', command }, results: null },
  };
  return { kind: 'intent', entry, ...placed };
}
const outcome = (id: string, output = 'ok'): JournalWrite => ({
  ...{ kind: 'outcome', id: `turn-${id}`, status: 'completed', results: { output }, at: AT + 1 },
});
const enter = (...writes: JournalWrite[]) => store.append(writes, 'gateway');

async function start(parts: Partial<JournalOptions> = {}): Promise<Journal> {
  const journal = createJournal({
    ...{ store, folder, days: 'never', stream: null, redact: (text: string) => text, clock: systemClock },
    take: async () => ({ release() {} }),
    log: { ...silentLog, warn: (_: object, text: string) => void warnings.push(text) },
    ...parts,
  });
  running.push(journal);
  await journal.start();
  return journal;
}

const log = () => linesOf(join(folder, 'working.log'));
const ids = async () => (await log()).map(({ id }) => id);
const archive = (day: string) => linesOf(join(folder, 'archive', `${day}.jsonl`));

it('shows an intent before its outcome is there, and patches the same line', async () => {
  await start();
  await enter(intent('a'), intent('b'));
  await eventually(async () => (await ids()).length === 2, 'the intents');
  expect(await log()).toMatchObject([{ status: 'pending', results: null }, { status: 'pending' }]);
  await enter(outcome('a'));
  await eventually(async () => JSON.stringify(await log()).includes('ok'), 'the outcome');
  expect(await log()).toMatchObject([
    { id: 'turn-a', status: 'completed', results: { output: 'ok' } },
    { id: 'turn-b', status: 'pending' },
  ]);
  expect((await stat(join(folder, 'working.log'))).mode & 0o777).toBe(0o600);
});

it('follows a first entry at once, and others once a second', async () => {
  const clock = manualClock();
  await start({ clock });
  // What is there already when it starts.
  await clock.asleep(200);
  await clock.advance(200);
  await clock.asleep(800);
  await clock.advance(800);
  await enter(intent('a'));
  await clock.asleep(200);
  await clock.advance(200);
  await clock.asleep(800);
  expect(await ids()).toEqual(['turn-a']);
  await enter(intent('b'), intent('c'));
  await clock.advance(799);
  expect(clock.sleeping()).toContain(800);
  expect(await ids()).toEqual(['turn-a']);
  await clock.advance(1);
  await clock.asleep(200);
  await clock.advance(200);
  await clock.asleep(800);
  expect(await ids()).toEqual(['turn-a', 'turn-b', 'turn-c']);
});

it('holds the newest 200 and every pending one; the others are in the archive of their day, once', async () => {
  await enter(intent('old', AT - 86_400_000), intent('pending'), outcome('old'));
  for (let n = 0; n < 450; n++) await enter(intent(`${n}`), outcome(`${n}`));
  const journal = await start();
  const shown = await ids();
  expect(shown).toHaveLength(201);
  expect(shown.slice(0, 2)).toEqual(['turn-pending', 'turn-250']);
  expect(await archive('2026-01-01')).toMatchObject([{ id: 'turn-old', status: 'completed' }]);
  expect(await archive('2026-01-02')).toHaveLength(250);
  await enter(outcome('pending'), intent('450'), outcome('450'));
  await journal.caughtUp();
  expect(await ids()).toHaveLength(200);
  expect((await archive('2026-01-02')).slice(-2).map(({ id }) => id)).toEqual(['turn-pending', 'turn-250']);
  expect((await stat(join(folder, 'archive'))).mode & 0o777).toBe(0o700);
});

describe('at the start it is made from the store', () => {
  const states: Record<string, (file: string) => Promise<unknown>> = {
    missing: (file) => rm(file),
    'with a torn last line': async (file) => writeFile(file, (await readFile(file, 'utf8')).slice(0, -30)),
    garbage: (file) => writeFile(file, Buffer.from([0, 255, 10, 123, 10, 0])),
    empty: (file) => writeFile(file, ''),
    older: async (file) => writeFile(file, `${(await readFile(file, 'utf8')).split('\n')[0]}\n`),
    newer: async (file) =>
      writeFile(file, `${await readFile(file, 'utf8')}{"id":"turn-later","type":"MattTurn"}\n`),
    edited: async (file) => writeFile(file, (await readFile(file, 'utf8')).replaceAll('ls', 'rm -rf')),
    'not writable': (file) => chmod(file, 0o400),
    'a link to another file': async (file) => {
      await rm(file);
      await symlink(join(folder, 'elsewhere'), file);
    },
    'beside half of a new one': async (file) => {
      const half = join(dirname(file), '.working.log.1-1.tmp');
      await writeFile(half, '{"id');
      await utimes(half, 1, 1);
    },
  };
  it.each(Object.keys(states))('%s', async (state) => {
    await enter(intent('a'), outcome('a'), intent('b'));
    await (await start()).stop();
    running.pop();
    const file = join(folder, 'working.log');
    const right = await readFile(file, 'utf8');
    await states[state]?.(file);
    await start();
    expect(await readFile(file, 'utf8')).toBe(right);
    expect(await readdir(folder)).toEqual(['working.log']);
  });
});

it('a working.log that cannot be written is a warning, and made up for; nothing else waits', async () => {
  await mkdir(join(folder, 'working.log/x'), { recursive: true });
  for (let n = 0; n < 210; n++) await enter(intent(`${n}`), outcome(`${n}`));
  await start();
  await enter(intent('b'));
  expect(warnings).toEqual(['working.log cannot be written; retrying']);
  await rm(join(folder, 'working.log'), { recursive: true });
  await eventually(async () => (await ids()).includes('turn-b'), 'the log');
  expect(await archive('2026-01-02'), 'tried twice, and there once').toHaveLength(11);
});

it('of two processes one writes; the other takes over when it ends', async () => {
  let isFree = true;
  const take = async () => {
    if (!isFree) return null;
    isFree = false;
    const release = () => {
      isFree = true;
    };
    return { release };
  };
  const first = await start({ take });
  const elsewhere = join(folder, 'elsewhere');
  await mkdir(elsewhere);
  const second = await start({ take, folder: elsewhere });
  await enter(intent('a'));
  await first.caughtUp();
  await second.caughtUp();
  expect(await readdir(elsewhere)).toEqual([]);
  await first.stop();
  await second.caughtUp();
  expect(await linesOf(join(elsewhere, 'working.log'))).toHaveLength(1);
});

describe('after a crash', () => {
  it('between the archive and the store no line is there twice, and a torn one is gone', async () => {
    for (let n = 0; n < 203; n++) await enter(intent(`${n}`), outcome(`${n}`));
    const before = await store.unfiled(null);
    await (await start()).stop();
    running.pop();
    // The store does not know of it, and a further line is torn.
    await store.append([], 'gateway');
    const file = join(folder, 'archive/2026-01-02.jsonl');
    await writeFile(file, `${await readFile(file, 'utf8')}{"id":"turn-3","ty`);
    expect(before.length - (await store.unfiled(null)).length).toBe(3);
    await enter(intent('x'), outcome('x'));
    await start();
    expect((await archive('2026-01-02')).map(({ id }) => id)).toEqual([
      'turn-0',
      'turn-1',
      'turn-2',
      'turn-3',
    ]);
  });

  it('with more to archive than at once, no line is there twice though older entries have ended since', async () => {
    await enter(intent('old'));
    await enter(...Array.from({ length: 750 }, (_, n) => [intent(`${n}`), outcome(`${n}`)]).flat());
    const filed = () => Promise.reject(new Error('the process ends'));
    await (await start({ store: { ...store, filed } })).stop();
    running.pop();
    expect(await archive('2026-01-02'), 'of 550, and the store knows of none').toHaveLength(500);
    await enter(outcome('old'));
    await start();
    const all = ['turn-old', ...Array.from({ length: 550 }, (_, n) => `turn-${n}`)];
    expect((await archive('2026-01-02')).map(({ id }) => id)).toEqual(all);
  });

  it('an archived line of an entry that is among the newest again is not there twice later', async () => {
    for (let n = 0; n < 203; n++) await enter(intent(`${n}`), outcome(`${n}`));
    // A power cut took the newest entries from the store, but not what was archived because of them.
    await mkdir(join(folder, 'archive'));
    const [, , , , lost] = await store.journal({ at: (await store.unfiled(null)).map(({ n }) => n) });
    await writeFile(join(folder, 'archive/2026-01-02.jsonl'), `${JSON.stringify(lost?.entry)}\n`);
    const journal = await start();
    expect(await archive('2026-01-02')).toHaveLength(3);
    for (const id of ['x', 'y']) {
      await enter(intent(id), outcome(id));
      await journal.caughtUp();
    }
    expect((await archive('2026-01-02')).map(({ id }) => id)).toEqual(
      Array.from({ length: 5 }, (_, n) => `turn-${n}`),
    );
  });

  it('half of a rewritten archive is removed', async () => {
    for (let n = 0; n < 201; n++) await enter(intent(`${n}`), outcome(`${n}`));
    const half = join(folder, 'archive/.2026-01-02.jsonl.1-1.tmp');
    await mkdir(dirname(half));
    await writeFile(half, '{"id');
    await utimes(half, 1, 1);
    await start();
    expect(await readdir(dirname(half))).toEqual(['2026-01-02.jsonl']);
  });
});

it('after a day whose archive cannot be written, no line of another day is there twice', async () => {
  const yesterday = AT - 86_400_000;
  await enter(intent('old', yesterday), outcome('old'));
  for (let n = 0; n < 201; n++) await enter(intent(`${n}`), outcome(`${n}`));
  const blocked = join(folder, 'archive/2026-01-02.jsonl');
  await mkdir(join(blocked, 'x'), { recursive: true });
  const journal = await start();
  expect(warnings).toEqual(['working.log cannot be written; retrying']);
  await rm(blocked, { recursive: true });
  await journal.caughtUp();
  expect(await archive('2026-01-01')).toHaveLength(1);
  expect(await archive('2026-01-02')).toHaveLength(1);
});

describe('what was forgotten', () => {
  const SECRET = 'the combination is 4711';
  const everything = async () => {
    const names = await readdir(folder, { recursive: true, withFileTypes: true });
    const files = names.filter((each) => each.isFile()).map((each) => join(each.parentPath, each.name));
    return (await Promise.all(files.map((file) => readFile(file, 'utf8')))).join('\n');
  };

  it('by its words, is in no file', async () => {
    await receive(store, [message('1', SECRET)]);
    await enter(intent('a', AT, `echo "${SECRET}"`), outcome('a', `{"said":"${SECRET}"}`));
    for (let n = 0; n < 201; n++) await enter(intent(`${n}`), outcome(`${n}`));
    await enter(intent('b', AT, SECRET));
    const journal = await start();
    expect((await everything()).split('4711')).toHaveLength(5);
    expect(await store.findWords(CHAT, phraseOf('4711'))).toMatchObject({ messages: 1 });
    await store.eraseWords(CHAT, phraseOf('4711'), FORGOTTEN);
    await journal.caughtUp();
    expect(await everything()).not.toContain('4711');
    expect(await everything()).toContain(FORGOTTEN);
    expect((await journalBelow(folder)).length, 'no entry is gone').toBe(204);
  });

  it('while it is being archived, is in no file', async () => {
    await receive(store, [message('1', SECRET)]);
    for (let n = 0; n < 200; n++) await enter(intent(`${n}`), outcome(`${n}`));
    const filed: Store['filed'] = async (entries) => {
      await store.eraseWords(CHAT, phraseOf('4711'), FORGOTTEN);
      await store.filed(entries);
    };
    const journal = await start({ store: { ...store, filed } });
    await journal.caughtUp();
    expect(await everything()).not.toContain('4711');
    expect((await journalBelow(folder)).length).toBe(201);
  });

  it('is found where only the journal still has it', async () => {
    await receive(store, [message('1', 'hi')]);
    await enter(intent('a', AT, SECRET));
    expect(await store.findWords(CHAT, phraseOf('4711'))).toEqual({ messages: 0, others: 1, files: [] });
  });

  it('by a reset, is in no file; that it happened stays, and so does what is not of this conversation', async () => {
    await receive(store, [message('1', SECRET), message('2', 'elsewhere', { threadId: '5' })]);
    await enter(intent('a', AT, SECRET), outcome('a', SECRET));
    for (let n = 0; n < 200; n++)
      await enter({ ...intent(`${n}`), room: null } as JournalWrite, outcome(`${n}`));
    const journal = await start();
    expect((await journalBelow(folder)).length).toBe(203);
    await forget(store);
    await journal.caughtUp();
    const all = await everything();
    expect(all).not.toContain('4711');
    expect(all).toContain('elsewhere');
    const lines = await journalBelow(folder);
    expect(lines).toHaveLength(203);
    expect(lines.find(({ id }) => id === 'turn-a')).toMatchObject({
      status: 'completed',
      action: { tool: 'shell' },
      results: { output: '' },
    });
  });
});

it('the archive loses what is older than it is kept', async () => {
  await mkdir(join(folder, 'archive'));
  const now = Date.parse('2026-03-10T12:00:00Z');
  for (const name of ['2026-03-07', '2026-03-08', 'notes'])
    await writeFile(join(folder, 'archive', `${name}.jsonl`), '');
  await start({ days: 2, clock: { ...systemClock, now: () => now } });
  expect((await readdir(join(folder, 'archive'))).sort()).toEqual(['2026-03-08.jsonl', 'notes.jsonl']);
});
