/**
 * A restore: the archive is unpacked into stages, each on the disk where its part will be; the database in it is
 * opened and made quiet (nothing old is sent or answered); and only then everything changes places with what was
 * there, which is kept. The caller holds the data folder for itself, and has settled what an earlier one left behind.
 */
import { createReadStream } from 'node:fs';
import * as fs from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { Fault } from '../core/errors.js';
import type { Store } from '../core/store.js';
import { ARCHIVE, IN_DATA, INSIDE } from './backup.js';
import { decrypted, isEncrypted } from './encryption.js';
import { announceExchange, announceStages, type Exchange, exists, type Rename, settle } from './exchange.js';
import { syncTree } from './sync.js';
import { FOLDERS, type Folder, type Room, refusal, type Stages, unpack } from './unpack.js';

export interface RestoreSummary {
  /** When the backup was made, ISO 8601, and by which version. */
  madeAt: string;
  madeBy: string;
  /** Whether the logins of platforms were put back. */
  logins: boolean;
  /** Where that which was there before stands now. */
  kept: string[];
  /** Parked deliveries and messages that count as answered. */
  deliveries: number;
  messages: number;
}

export interface RestoreOrder {
  file: string;
  dataDir: string;
  groupsDir: string;
  mediaDir: string;
  workDir: string;
  /** Asked for where the backup is encrypted. */
  passphrase(): Promise<string>;
  /** Opens a database at any path, migrating it; refuses one that is not ours, or from a newer version. */
  openStore(file: string): Promise<Pick<Store, 'quieten' | 'close'>>;
  /** How much may be written to the disk that has this folder, bytes. */
  roomOf(folder: string): Promise<number>;
  now: number;
  /** Only tests have one that fails. */
  rename?: Rename;
}

/** What SQLite keeps beside a database is named after it, also once it is set aside. */
const TAILS = ['', '-wal', '-shm', '-journal'];

export async function restore(order: RestoreOrder): Promise<RestoreSummary> {
  const given = resolve(order.file);
  if (!(await fs.stat(given).catch(() => null))?.isFile()) throw refusal(given, 'there is no such file');
  const passphrase = (await isEncrypted(given)) ? await order.passphrase() : null;
  const places = await placesOf(order);
  const stages = [places.database.stage, ...FOLDERS.flatMap((folder) => places.folders[folder].stages)];
  try {
    await fs.mkdir(order.dataDir, { recursive: true, mode: 0o700 });
    await announceStages(order.dataDir, stages);
  } catch (error) {
    throw new Fault(
      'store_unavailable',
      `Nothing can be written to ${order.dataDir}; nothing was changed`,
      error,
    );
  }
  try {
    const made = await ofEach(FOLDERS, (folder) => makeStage(places.folders[folder]));
    await fs.mkdir(places.database.stage, { mode: 0o700 });
    const database = join(places.database.stage, ARCHIVE.database);
    const bytes = passphrase === null ? createReadStream(given) : decrypted(given, passphrase);
    const parts: [keyof Stages, string][] = [
      ['database', database],
      ...FOLDERS.map((folder): [Folder, string] => [folder, made[folder].fresh]),
    ];
    const unpacked = await unpack(given, bytes, await stagesOf(order, parts));
    const { manifest } = unpacked;

    const store = await order.openStore(database);
    const keepLogins = manifest.logins === true;
    const quiet = await store.quieten({ keepLogins }).finally(() => store.close());

    const plans = [await planDatabase(places.database, database)];
    for (const folder of FOLDERS) {
      // Where none of it is in the backup, what is there stays; groups are in each, also where there are none.
      if (folder !== 'groups' && !unpacked.folders.has(folder)) continue;
      plans.push(await planFolder(places.folders[folder], made[folder]));
    }
    const exchange = joined(plans);
    const unpackedTo = FOLDERS.map((folder) => made[folder].stage);
    for (const stage of new Set([places.database.stage, ...unpackedTo])) await syncTree(stage);
    await announceExchange(order.dataDir, stages, exchange);
    const settled = await settle(order.dataDir, order.rename);
    if (settled?.outcome !== 'finished') throw settled?.why;
    const { madeAt, madeBy } = manifest;
    return { madeAt, madeBy, logins: keepLogins, kept: settled.kept, ...quiet };
  } catch (error) {
    const after = await settle(order.dataDir, order.rename);
    if (after?.outcome === 'finished') {
      throw new Fault(
        'store_unavailable',
        `The backup ${given} was restored, but the disk had trouble`,
        error,
      );
    }
    if (error instanceof Fault) throw error;
    throw new Fault(
      'store_unavailable',
      `The backup ${given} could not be restored; nothing was changed`,
      error,
    );
  }
}

interface Place {
  /** What is exchanged, links followed. */
  at: string;
  /** Ends the names of this restore; nothing has such a name yet. */
  stamp: string;
}

interface FolderPlace extends Place {
  /** Where its stage may be: beside it, or inside where the folder itself cannot be renamed. */
  stages: [beside: string, inside: string];
}

async function placesOf({ dataDir, groupsDir, mediaDir, workDir, now }: RestoreOrder) {
  const database = await real(join(dataDir, ARCHIVE.database));
  const at: Record<Folder, string> = {
    ...{ groups: await real(groupsDir), media: await real(mediaDir), work: await real(workDir) },
    ...(await ofEach(IN_DATA, (name) => real(join(dataDir, name)))),
  };
  const { groups } = at;
  if (!relative(groups, await real(dataDir)).startsWith('..')) {
    throw new Fault(
      'configuration',
      `data_dir lies in groups_dir (${groups}), which a restore replaces as a whole; give data_dir another place`,
    );
  }
  const time = new Date(now).toISOString().replace(/[-:]|\.\d+/g, '');
  for (let n = 1; ; n++) {
    const stamp = n === 1 ? time : `${time}-${n}`;
    const databasePlace = { at: database, stamp, stage: join(dirname(database), `.restore-${stamp}`) };
    const folders = await ofEach(FOLDERS, (folder): FolderPlace => {
      const beside = join(dirname(at[folder]), `.${basename(at[folder])}.restore-${stamp}`);
      return { at: at[folder], stamp, stages: [beside, join(at[folder], `${INSIDE}restore-${stamp}`)] };
    });
    const names = [
      databasePlace.stage,
      ...TAILS.map((tail) => `${asideOf(databasePlace)}${tail}`),
      ...Object.values(folders).flatMap((place) => [...place.stages, asideOf(place), keptInside(place)]),
    ];
    const taken = await Promise.all(names.map(exists));
    if (!taken.includes(true)) return { database: databasePlace, folders };
  }
}

/** One after the other: what each comes to, by its name. */
async function ofEach<Name extends string, Value>(
  names: readonly Name[],
  make: (name: Name) => Value | Promise<Value>,
): Promise<Record<Name, Value>> {
  const made: Partial<Record<Name, Value>> = {};
  for (const name of names) made[name] = await make(name);
  return made as Record<Name, Value>;
}

function asideOf({ at, stamp }: Place): string {
  return `${at}.before-restore-${stamp}`;
}

function keptInside(place: Place): string {
  return join(place.at, `${INSIDE}${basename(asideOf(place))}`);
}

interface FolderStage {
  stage: string;
  /** In it, what will be the folder, or what will be in it. */
  fresh: string;
  inside: boolean;
}

async function makeStage({ at, stages: [beside, inside] }: FolderPlace): Promise<FolderStage> {
  try {
    await fs.mkdir(join(beside, 'new'), { recursive: true, mode: 0o700 });
    if (!(await exists(at)) || (await canBeRenamed(at, beside))) {
      return { stage: beside, fresh: join(beside, 'new'), inside: false };
    }
  } catch (error) {
    // Where nothing can be written beside it, there may be room inside.
    if (!(await exists(at))) throw error;
  }
  await fs.rm(beside, { recursive: true, force: true });
  await fs.mkdir(join(inside, 'new'), { recursive: true, mode: 0o700 });
  return { stage: inside, fresh: join(inside, 'new'), inside: true };
}

/**
 * Asks the system, by a rename that it refuses in any case, since the other folder is not empty: it names that reason
 * last. A mount (also of the same disk) and a parent folder that is not ours cannot be found out otherwise.
 */
async function canBeRenamed(folder: string, filled: string): Promise<boolean> {
  const code = await fs.rename(folder, filled).then(
    () => 'done',
    (error: NodeJS.ErrnoException) => error.code,
  );
  return code === 'ENOTEMPTY' || code === 'EEXIST';
}

/** Parts that go to one disk share its room. */
async function stagesOf({ roomOf }: RestoreOrder, parts: [keyof Stages, string][]): Promise<Stages> {
  const rooms = new Map<number, Room>();
  const stages: Partial<Stages> = {};
  for (const [part, at] of parts) {
    const { dev } = await fs.stat(dirname(at));
    const room = rooms.get(dev) ?? { left: await roomOf(dirname(at)) };
    rooms.set(dev, room);
    stages[part] = { at, room };
  }
  return stages as Stages;
}

async function planDatabase(place: Place, staged: string): Promise<Exchange> {
  const aside = TAILS.map((tail) => ({ from: `${place.at}${tail}`, to: `${asideOf(place)}${tail}` }));
  const fresh = TAILS.map((tail) => ({ from: `${staged}${tail}`, to: `${place.at}${tail}` }));
  const old = await thoseThere(aside);
  return { aside: old, place: await thoseThere(fresh), kept: old.map(({ to }) => to) };
}

async function planFolder(place: FolderPlace, { stage, fresh, inside }: FolderStage): Promise<Exchange> {
  const { at } = place;
  if (!inside) {
    const aside = await thoseThere([{ from: at, to: asideOf(place) }]);
    return { aside, place: [{ from: fresh, to: at }], kept: aside.map(({ to }) => to) };
  }
  const kept = keptInside(place);
  const names = (await fs.readdir(at)).filter((name) => !name.startsWith(INSIDE) && name !== basename(stage));
  return {
    aside: names.map((name) => ({ from: join(at, name), to: join(kept, name) })),
    place: (await fs.readdir(fresh)).map((name) => ({ from: join(fresh, name), to: join(at, name) })),
    kept: names.length === 0 ? [] : [kept],
  };
}

async function thoseThere<M extends { from: string }>(moves: M[]): Promise<M[]> {
  const there = await Promise.all(moves.map(({ from }) => exists(from)));
  return moves.filter((_, index) => there[index]);
}

function joined(parts: Exchange[]): Exchange {
  return {
    aside: parts.flatMap(({ aside }) => aside),
    place: parts.flatMap(({ place }) => place),
    kept: parts.flatMap(({ kept }) => kept),
  };
}

/** Where links lead; a path that nothing stands at, as it is, below the real folder around it. */
async function real(path: string): Promise<string> {
  const whole = resolve(path);
  const found = await fs.realpath(whole).catch(() => null);
  if (found !== null) return found;
  const above = dirname(whole);
  return above === whole ? whole : join(await real(above), basename(whole));
}
