/** Somebody removes, replaces or moves the database under the store: nothing is acknowledged, and nothing is lost. */
import { chmod, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { Fault } from '../../src/core/errors.js';
import type { Store } from '../../src/core/store.js';
import { openSqliteStore } from '../../src/store/open.js';
import { message, receive } from '../contract/store/words.js';
import { MIGRATIONS, openHere, type Place, silentLog } from './place.js';

let place: Place;
let store: Store;
let told: Fault[];
beforeEach(async () => {
  place = await openHere();
  told = [];
  store = await place.open({ onLost: (fault) => told.push(fault) });
  await receive(store, [message('1', 'acknowledged')]);
  await store.durable();
});
afterEach(() => place.remove());

const beside = async () => (await readdir(place.folder)).filter((name) => name.includes('rescued'));

function textsIn(file: string): unknown[] {
  const database = new Database(file, { readonly: true });
  const texts = database.prepare('select text from message order by id').pluck().all();
  database.close();
  return texts;
}

/** Another database, as a backup or a copy would put it there. */
async function another(): Promise<string> {
  const file = join(place.folder, 'other.db');
  const other = await openSqliteStore({
    ...{ file, migrationsFolder: MIGRATIONS, clock: systemClock, log: silentLog },
  });
  await receive(other, [message('9', 'of the other')]);
  await other.durable();
  await other.close();
  return file;
}

const WAYS: [string, () => Promise<unknown>][] = [
  ['removed', () => rm(place.file)],
  ['removed with its log', async () => Promise.all([rm(place.file), rm(`${place.file}-wal`)])],
  ['replaced by another', async () => rename(await another(), place.file)],
  ['moved in its folder', () => rename(place.file, join(place.folder, 'moved.db'))],
  [
    'moved, and a link to another put there',
    async () => {
      await rename(place.file, join(place.folder, 'moved.db'));
      await symlink(await another(), place.file);
    },
  ],
  [
    'moved with its folder, which was made again',
    async () => {
      await rename(place.folder, `${place.folder}-moved`);
      await mkdir(place.folder);
    },
  ],
  ['removed with its folder', () => rm(place.folder, { recursive: true })],
];

describe.each(WAYS)('a database that was %s', (_, happen) => {
  it('acknowledges nothing more, and what it had is in a file of its own that only its owner reads', async () => {
    await happen();
    await receive(store, [message('2', 'too late to be acknowledged')]);
    await expect(store.durable()).rejects.toMatchObject({ code: 'store_unavailable' });
    const [copy = ''] = await beside();
    expect(textsIn(join(place.folder, copy))).toEqual(['acknowledged', 'too late to be acknowledged']);
    expect((await stat(join(place.folder, copy))).mode & 0o777).toBe(0o600);
    expect(told.map(({ message }) => message)).toEqual([expect.stringContaining(copy)]);
    await expect(receive(store, [message('3', 'never')])).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    await expect(store.durable()).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(store.chat('test_1')).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(await beside()).toHaveLength(1);
    expect(told).toHaveLength(1);
    await rm(`${place.folder}-moved`, { recursive: true, force: true });
  });
});

it('a database in the place of another is opened as it was put there, without what the old log held', async () => {
  await rename(await another(), place.file);
  await expect.poll(() => told, { timeout: 10_000 }).toHaveLength(1);
  await store.close();
  const next = await place.open();
  await receive(next, [message('10', 'goes on')]);
  await next.durable();
  await next.close();
  expect(textsIn(place.file)).toEqual(['of the other', 'goes on']);
  const checked = new Database(place.file);
  expect(checked.pragma('integrity_check', { simple: true })).toBe('ok');
  checked.close();
});

it('a log that was removed alone is brought into its database, which is whole at the next start', async () => {
  await rm(`${place.file}-wal`);
  await receive(store, [message('2', 'not acknowledged, and kept all the same')]);
  await expect(store.durable()).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(await beside()).toEqual([]);
  expect(told.map(({ message }) => message)).toEqual([expect.stringContaining('log')]);
  await store.close();
  await (await place.open()).close();
  expect(textsIn(place.file)).toEqual(['acknowledged', 'not acknowledged, and kept all the same']);
});

it('a log in the place of another is noticed', async () => {
  const log = await readFile(`${place.file}-wal`);
  await rm(`${place.file}-wal`);
  await writeFile(`${place.file}-wal`, log);
  await receive(store, [message('2', 'not acknowledged')]);
  await expect(store.durable()).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(await beside()).toHaveLength(1);
});

it('is noticed where nothing is received, too', async () => {
  await rm(place.file);
  await expect.poll(() => told, { timeout: 10_000 }).toHaveLength(1);
  expect(await beside()).toHaveLength(1);
});

it('what cannot be saved is tried again, and nothing is acknowledged meanwhile', async () => {
  // No folder can be made where a file stands.
  await rename(place.folder, `${place.folder}-moved`);
  await writeFile(place.folder, 'in the way');
  await receive(store, [message('2', 'not acknowledged')]);
  for (let n = 0; n < 2; n++) {
    await expect(store.durable()).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('cannot be saved'),
    });
  }
  expect(told).toEqual([]);
  await rm(place.folder);
  await expect(store.durable()).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(await beside()).toHaveLength(1);
  await rm(`${place.folder}-moved`, { recursive: true });
});

it('a link to the database elsewhere is its place', async () => {
  await store.close();
  const elsewhere = join(place.folder, 'elsewhere');
  await mkdir(elsewhere);
  await rename(place.file, join(elsewhere, 'real.db'));
  await symlink(join(elsewhere, 'real.db'), place.file);
  store = await place.open({ onLost: (fault) => told.push(fault) });
  await receive(store, [message('2', 'through the link')]);
  await store.durable();
  await chmod(place.file, 0o600);
  await rm(join(elsewhere, 'real.db'));
  await receive(store, [message('3', 'not acknowledged')]);
  await expect(store.durable()).rejects.toMatchObject({ code: 'store_unavailable' });
});
