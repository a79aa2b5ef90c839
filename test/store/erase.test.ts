/**
 * What was forgotten is in no byte of the database: not in the file, not in the log beside it, not in the unused
 * parts of pages from which SQLite once moved a row elsewhere.
 */
import { readFile } from 'node:fs/promises';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FORGOTTEN, phraseOf } from '../../src/core/phrase.js';
import type { Store } from '../../src/core/store.js';
import { oneView } from '../contract/store/one-view.js';
import {
  begun,
  CHAT,
  chatAt,
  command,
  DAY,
  delivery,
  edit,
  finish,
  forget,
  lease,
  message,
  NOW,
  nextOf,
  pruned,
  receive,
} from '../contract/store/words.js';
import { openMade, type Place } from './place.js';

const SECRET = 'zébra "quartz" 42';
const phrase = phraseOf(SECRET);

let place: Place;
let store: Store;
beforeEach(async () => {
  place = await openMade();
  store = await place.open();
});
afterEach(() => place.remove());

/** How often words stand in the database's files, as they are or as JSON within JSON writes them. */
async function timesIn(words: string): Promise<number> {
  const texts = await Promise.all(
    ['', '-wal'].map((end) => readFile(`${place.file}${end}`, 'utf8').catch(() => '')),
  );
  const escaped = (text: string) => JSON.stringify(text).slice(1, -1);
  const forms = [words, escaped(words), escaped(escaped(words))];
  return forms.reduce((sum, form) => sum + texts.join('\n').split(form).length - 1, 0);
}

const erase = async () => {
  await store.eraseWords(CHAT, phrase, FORGOTTEN);
  await store.endErasing(CHAT, phrase, FORGOTTEN);
};

/** Node 24 aborts when the garbage collector takes a statement, so those made here stay. */
const kept: unknown[] = [];
function keep<Native>(native: Native): Native {
  kept.push(native);
  return native;
}

/** The same numbers in every run. */
function numbersFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return Math.floor((state / 0x80000000) * below);
  };
}

/** Puts the words wherever words can be, between others of any length. */
async function fill(seed: number, turns: number): Promise<void> {
  const number = numbersFrom(seed);
  const filler = (most: number) => 'lorem ipsum '.repeat(number(number(10) === 0 ? most * 15 : most));
  const maybe = () => `${filler(40)}${number(3) === 0 ? SECRET : ''}${filler(3)}`;
  for (let n = 0; n < turns; n++) {
    const id = `${number(1e9).toString(36)}-${n}`;
    const texts = Array.from({ length: 1 + number(3) }, maybe);
    const replyTo = { platformMessageId: '1', senderName: 'Ann', text: maybe(), ours: false };
    await receive(store, [
      ...texts.map((text, k) => message(`${n}.${k}`, text, number(2) === 0 ? { replyTo } : {})),
      message(`${n}`, filler(20), { chat: chatAt('test_2') }),
    ]);
    const turn = await begun(store, id, { hearers: ['luna'] });
    const args = JSON.stringify({ content: maybe(), list: [maybe()] });
    const calls = number(2) === 0 ? [{ id: 'c', name: 'write', arguments: args }] : [];
    await store.addStep(turn.claim, id, { kind: 'answer', text: maybe(), calls }, NOW);
    await store.addStep(turn.claim, id, { kind: 'result', callId: 'c', content: args, failed: false }, NOW);
    await finish(store, turn, id, {
      reply: maybe(),
      given: { memory: maybe(), dailyLog: maybe(), recalled: maybe(), summary: maybe() },
      deliveries: [delivery(`turn:${id}`, maybe())],
    });
    const sent = await nextOf(store);
    await store.claimDelivery(sent?.id ?? 0, lease());
    await store.settle(sent?.id ?? 0, { kind: 'sent', platformMessageId: `p${n}` }, NOW);
    const told = [edit(`${number(n + 1)}.0`, maybe()), command(`c${n}`, 'memory', maybe())];
    const { commands } = await receive(store, told);
    await store.takeCommand(commands[0]?.id ?? 0, lease());
    await store.finishCommand({ id: commands[0]?.id ?? 0, now: NOW, deliveries: [], effects: [] });
    await store.keepVersion({
      id,
      chatId: CHAT,
      personaId: 'default',
      file: 'default/MEMORY.md',
      tier: 1,
      at: NOW,
      before: maybe(),
      after: maybe(),
      cause: { kind: 'turn', personaId: 'default', turnId: id },
    });
    const { flush, move } = oneView(store);
    const to = { heardAfter: n + 1, messageId: 1 };
    await flush(to);
    await move(to, { summary: maybe() });
  }
}

describe('what was forgotten', () => {
  it('stands in no byte of the database, whatever was written before and however rows were moved', async () => {
    // In each of these, rows that were moved to other pages have left copies of themselves behind.
    for (const seed of [5, 8, 11]) {
      await fill(seed * 7_919, 150);
      expect(await timesIn(SECRET)).toBeGreaterThan(500);
      await erase();
      expect(await timesIn(SECRET), `seed ${seed}`).toBe(0);
      await place.remove();
      place = await openMade();
      store = await place.open();
    }
  });

  it('nor what no row holds any more: changed, deleted or pushed out before it was asked for', async () => {
    await fill(5, 60);
    const [long, short] = [`${SECRET} ${'x'.repeat(9_000)}`, `${SECRET} ${'x'.repeat(200)}`];
    for (let n = 0; n < 60; n++) {
      const version = { chatId: CHAT, personaId: 'luna', file: 'luna/MEMORY.md', tier: 1 as const, at: NOW };
      const cause = { kind: 'flush' as const, personaId: 'luna', turnId: null };
      await store.keepVersion({ ...version, cause, id: `dropped ${n}`, before: long, after: short });
      await receive(store, [message(`long ${n}`, n % 2 === 0 ? long : short)]);
    }
    for (let n = 0; n < 60; n++) {
      await store.dropVersion(`dropped ${n}`);
      await receive(store, [edit(`long ${n}`, 'y'.repeat((n * 97) % 3_000))]);
    }
    await erase();
    expect(await store.findWords(CHAT, phrase)).toEqual({ messages: 0, others: 0, files: [] });
    expect(await timesIn(SECRET)).toBe(0);
  });

  it('in a database of the first version, which did not overwrite what it deleted', async () => {
    await store.close();
    const older = new Database(place.file);
    older.exec('PRAGMA secure_delete = OFF');
    const add = keep(older.prepare(`insert into setting (key, value) values (?, ?)`));
    for (let n = 0; n < 50; n++) add.run(`s${n}`, `${SECRET} ${'x'.repeat(n * 200)}`);
    older.exec(`delete from setting`);
    older.close();
    expect(await timesIn(SECRET)).toBeGreaterThan(0);
    store = await place.open();
    await erase();
    expect(await timesIn(SECRET)).toBe(0);
  });

  it('is overwritten while the command that asks for it still runs, and after it', async () => {
    const { commands } = await receive(store, [command('1', 'memory', `forget ${SECRET}`)]);
    const { id = 0 } = commands[0] ?? {};
    await store.takeCommand(id, lease());
    await erase();
    expect(await timesIn(SECRET)).toBe(0);
    await store.finishCommand({ id, now: NOW, deliveries: [], effects: [] });
    expect(await timesIn(SECRET)).toBe(0);
  });

  it('stays in another chat, as often as it was', async () => {
    await receive(store, [message('1', SECRET), message('2', SECRET, { chat: chatAt('test_2') })]);
    await erase();
    // In the message, and in its event in the journal.
    expect(await timesIn(SECRET)).toBe(2);
  });

  it('does no harm to a copy that is being made meanwhile', async () => {
    await fill(8, 150);
    const copy = `${place.file}.copy`;
    await Promise.all([store.copyTo(copy, { logins: true }), erase()]);
    expect(await timesIn(SECRET)).toBe(0);
    const copied = new Database(copy, { readonly: true });
    expect(keep(copied.prepare('PRAGMA integrity_check')).pluck().get()).toBe('ok');
    copied.close();
  });

  it('is waited for while another process reads the database, and then done', async () => {
    await receive(store, [message('1', SECRET)]);
    const reader = new Database(place.file);
    reader.exec('begin');
    keep(reader.prepare('select count(*) from message')).get();
    const impatient = await place.open({ busyTimeoutMs: 0 });
    const failing = impatient.eraseWords(CHAT, phrase, FORGOTTEN);
    await expect(failing).rejects.toMatchObject({ code: 'store_unavailable' });
    const erasing = erase();
    reader.exec('commit');
    await erasing;
    reader.close();
    expect(await timesIn(SECRET)).toBe(0);
    expect((await begun(store, 't1')).waiting[0]?.text).toBe(FORGOTTEN);
  });
});

describe('the command that asks for it', () => {
  const taken = async () => {
    const { commands } = await receive(store, [
      message('1', SECRET),
      command('c1', 'memory', `yes ${SECRET}`),
    ]);
    return commands[0]?.id ?? 0;
  };

  it('keeps the words until all else is gone, so that it can be run again', async () => {
    const id = await taken();
    await store.eraseWords(CHAT, phrase, FORGOTTEN);
    expect(await timesIn(SECRET)).toBe(1);
    expect((await store.takeCommand(id, lease()))?.argument).toBe(`yes ${SECRET}`);
    await store.endErasing(CHAT, phrase, FORGOTTEN);
    expect(await timesIn(SECRET)).toBe(0);
    expect((await store.takeCommand(id, lease()))?.argument).toBe(`yes ${FORGOTTEN}`);
  });

  it('leaves nothing in the log, though the process ended before the log was emptied', async () => {
    const id = await taken();
    await store.eraseWords(CHAT, phrase, FORGOTTEN);
    // Another reader keeps the log from being emptied, as an end of the process at that moment does.
    const reader = new Database(place.file);
    reader.exec('begin');
    keep(reader.prepare('select count(*) from message')).get();
    const impatient = await place.open({ busyTimeoutMs: 0 });
    await expect(impatient.endErasing(CHAT, phrase, FORGOTTEN)).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    reader.exec('commit');
    reader.close();
    expect((await store.takeCommand(id, lease()))?.argument).toBe(`yes ${FORGOTTEN}`);
    expect(await timesIn(SECRET)).toBeGreaterThan(0);
    await store.endErasing(CHAT, null, FORGOTTEN);
    expect(await timesIn(SECRET)).toBe(0);
  });
});

describe('a command that is done', () => {
  it('does not keep what it was asked: `/memory forget TEXT` is none of its own traces', async () => {
    const { commands } = await receive(store, [command('c1', 'memory', `forget ${SECRET}`)]);
    const id = commands[0]?.id ?? 0;
    expect((await store.takeCommand(id, lease()))?.argument).toBe(`forget ${SECRET}`);
    await store.finishCommand({ id, now: NOW, deliveries: [], effects: [] });
    await store.close();
    expect(await timesIn(SECRET)).toBe(0);
  });
});

it('pages that were freed go back to the disk, some at a time', async () => {
  const many = Array.from({ length: 200 }, (_, n) => message(`${n}`, 'x'.repeat(2_000)));
  await receive(store, many);
  const full = await store.sizes();
  await forget(store);
  const step = () => store.prune({ before: 0, now: NOW + 3 * DAY, most: 50 });
  for (let { rows, more } = await step(); more && rows > 0; ) ({ rows, more } = await step());
  expect((await store.sizes()).free).toBeGreaterThan(full.free);
  await pruned(store, 0, NOW + 3 * DAY);
  const small = await store.sizes();
  // Of the journal, too, the words are gone, but the entries stay until they are old.
  expect(small.bytes).toBeLessThan(full.bytes * 0.65);
  expect(small.free).toBe(0);
});
