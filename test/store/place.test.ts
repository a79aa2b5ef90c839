/** Somebody removes, replaces or moves the database under the store: nothing more is acknowledged, and no other file is damaged. */
import { chmod, mkdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, it } from 'vitest';
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

it.each(WAYS)(
  'a database that was %s acknowledges nothing more, and every verb fails from then on',
  async (_, happen) => {
    await happen();
    await receive(store, [message('2', 'too late to be acknowledged')]);
    await expect(store.durable()).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(told.map(({ message }) => message)).toEqual([expect.stringContaining(place.file)]);
    await expect(receive(store, [message('3', 'never')])).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    await expect(store.durable()).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(store.chat('test_1')).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(told).toHaveLength(1);
    await rm(`${place.folder}-moved`, { recursive: true, force: true });
    await mkdir(place.folder, { recursive: true });
  },
);

it('a database that was moved without its log has all that was in it', async () => {
  const moved = join(place.folder, 'moved.db');
  await rename(place.file, moved);
  await rename(await another(), place.file);
  await expect.poll(() => told, { timeout: 10_000 }).toHaveLength(1);
  expect(textsIn(moved)).toEqual(['acknowledged']);
  expect(textsIn(place.file)).toEqual(['of the other']);
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
  expect(told).toHaveLength(1);
});

it('is noticed where nothing is received, too', async () => {
  await rm(place.file);
  await expect.poll(() => told, { timeout: 10_000 }).toHaveLength(1);
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
