/** The database locked, the disk full, the file broken: waited for, or told, and nothing half written. */
import { open, readFile, writeFile } from 'node:fs/promises';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { connect } from '../../src/store/sqlite/connection.js';
import { cursorOf, lease, message, receive, waitingTexts } from '../contract/store/words.js';
import { manualClock } from '../fakes/clock.js';
import { openHere, type Place } from './place.js';

let place: Place;
beforeEach(async () => {
  place = await openHere();
});
afterEach(() => place.remove());

describe('a database that another process holds', () => {
  let holder: Database.Database;
  beforeEach(async () => {
    await (await place.open()).close();
    holder = new Database(place.file);
  });
  afterEach(() => holder.close());

  it('is waited for while the event loop goes on', async () => {
    const store = await place.open();
    holder.exec('BEGIN IMMEDIATE');
    let turns = 0;
    const ticking = setInterval(() => turns++, 5);
    const received = receive(store, [message('1', 'patience')]);
    const claim = store.claim({ room: 'test_1', fence: 0 }, lease());
    await new Promise((resolve) => setTimeout(resolve, 300));
    holder.exec('COMMIT');
    expect((await received).rooms).toEqual(['test_1']);
    await claim;
    clearInterval(ticking);
    expect(turns).toBeGreaterThan(3);
  });

  it('can still be read', async () => {
    const store = await place.open();
    holder.exec('BEGIN IMMEDIATE');
    expect(await store.chat('test_1')).toBeNull();
  });

  it('is told of when it lasts, and works again afterwards', async () => {
    const clock = manualClock();
    const store = await place.open({ clock, busyTimeoutMs: 5_000 });
    holder.exec('BEGIN IMMEDIATE');
    const received = receive(store, [message('1', 'patience')]);
    const outcome = expect(received).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('another process'),
    });
    await clock.asleep(2);
    await clock.advance(4_900);
    expect(clock.sleeping()).toHaveLength(1);
    await clock.advance(200);
    await outcome;
    holder.exec('COMMIT');
    await receive(store, [message('1', 'patience')]);
    expect(await waitingTexts(store)).toEqual(['patience']);
  });

  it('is waited for when opening, too', async () => {
    holder.pragma('locking_mode = EXCLUSIVE');
    holder.exec('BEGIN EXCLUSIVE; COMMIT');
    const clock = manualClock();
    const opening = expect(place.open({ clock, busyTimeoutMs: 1_000 })).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    await clock.asleep(2);
    await clock.advance(1_200);
    await opening;
    const patient = place.open({ clock });
    await clock.asleep(2);
    holder.close();
    await clock.advance(10);
    expect(await waitingTexts(await patient)).toEqual([]);
  });

  it('gives up at once when the store is closed meanwhile', async () => {
    const clock = manualClock();
    const store = await place.open({ clock });
    holder.exec('BEGIN IMMEDIATE');
    const outcome = expect(receive(store, [message('1', 'late')])).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    await store.close();
    await clock.advance(10);
    await outcome;
  });
});

it('a migration waits for the disk; the rest need not', async () => {
  const connection = await connect({ file: place.file, clock: systemClock, busyTimeoutMs: 0 });
  const synchronous = () => connection.raw.pragma('synchronous', { simple: true });
  expect(await connection.writeDurably(synchronous), 'FULL').toBe(2);
  expect(synchronous(), 'NORMAL').toBe(1);
  await expect(
    connection.writeDurably(() => {
      throw new Error('not this time');
    }),
  ).rejects.toThrow('not this time');
  expect(synchronous(), 'NORMAL again').toBe(1);
  await connection.close();
});

it('a full disk: nothing is half written, and what is accepted stays; it works again with space', async () => {
  const store = await place.open({ maxPages: 130 });
  let accepted = 0;
  const batch = (n: number) =>
    [0, 1, 2].map((part) => message(`${n}.${part}`, `${n}.${part} ${'x'.repeat(3_000)}`));
  const filling = async () => {
    for (;;) {
      await receive(store, batch(accepted), { cursor: `${accepted}` });
      accepted++;
    }
  };
  await expect(filling()).rejects.toMatchObject({
    code: 'store_unavailable',
    message: expect.stringContaining('disk is full'),
  });
  expect(accepted).toBeGreaterThan(2);
  expect(await waitingTexts(store)).toHaveLength(accepted * 3);
  expect(await cursorOf(store, 'bot')).toBe(`${accepted - 1}`);

  const withSpace = await place.open();
  await receive(withSpace, batch(accepted), { cursor: `${accepted}` });
  expect(await waitingTexts(store)).toHaveLength(accepted * 3 + 3);
});

it('a damaged file is told of as such', async () => {
  const store = await place.open();
  for (let n = 0; n < 50; n++) await receive(store, [message(`${n}`, 'x'.repeat(2_000))]);
  await store.close();
  const file = await open(place.file, 'r+');
  const { size } = await file.stat();
  await file.write(Buffer.alloc(size - 4096, 0xff), 0, size - 4096, 4096);
  await file.close();
  const damaged = async () => waitingTexts(await place.open());
  await expect(damaged()).rejects.toMatchObject({
    code: 'store_unavailable',
    message: expect.stringContaining('restore a backup'),
  });
});

describe('a copy', () => {
  it('is consistent while others write, and opens as a store', async () => {
    const store = await place.open();
    const many = (n: number) => Array.from({ length: 200 }, (_, i) => message(`${n}.${i}`, 'x'.repeat(500)));
    for (let n = 0; n < 10; n++) await receive(store, many(n), { cursor: `${n}` });
    const file = `${place.file}.copy`;
    const copying = store.copyTo(file, { logins: true });
    for (let n = 10; n < 14; n++) await receive(store, many(n), { cursor: `${n}` });
    await copying;
    const copy = await place.open({ file });
    const { waiting } = await copy.counts();
    expect(waiting).toBe((Number(await cursorOf(copy, 'bot')) + 1) * 200);
    expect(waiting).toBeGreaterThanOrEqual(2_000);
    expect(await copy.quieten()).toEqual({ deliveries: 0, messages: waiting });
    expect((await store.counts()).waiting, 'the original goes on').toBe(2_800);
  });

  it('holds no trace of logins unless they are asked for', async () => {
    const store = await place.open();
    await store.setValues({ stateOf: 'whatsapp' }, new Map([['creds', 'the-device-key-'.repeat(400)]]));
    const [without, along] = [`${place.file}.without`, `${place.file}.along`];
    await store.copyTo(without, { logins: false });
    await store.copyTo(along, { logins: true });
    expect((await readFile(without)).includes('the-device-key')).toBe(false);
    expect((await readFile(along)).includes('the-device-key')).toBe(true);
    const copy = await place.open({ file: along });
    await copy.quieten({ keepLogins: true });
    expect((await copy.values({ stateOf: 'whatsapp' }, ['creds'])).size).toBe(1);
    await copy.quieten();
    expect((await copy.values({ stateOf: 'whatsapp' }, ['creds'])).size).toBe(0);
  });

  it('that cannot be written is told of, and leaves nothing behind', async () => {
    const store = await place.open();
    const file = `${place.folder}/missing/copy.db`;
    await expect(store.copyTo(file, { logins: true })).rejects.toThrow();
    await writeFile(`${place.file}.copy.partial`, 'left by an earlier try');
    await store.copyTo(`${place.file}.copy`, { logins: true });
    expect(await waitingTexts(await place.open({ file: `${place.file}.copy` }))).toEqual([]);
  });
});
