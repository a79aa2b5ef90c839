/**
 * A restore: the archive is unpacked beside the data folder and `groups/`, on the disk of each; the database in it is
 * opened and made quiet (nothing old is sent or answered). Then the old folders are put aside by one rename each
 * (`data.before-<time>`), and the new ones take their place. A plan of these renames is on the disk before the first one:
 * after a crash the next command goes on with it (`finishRestore`). The caller holds the data folder for itself.
 */
import { closeSync, createReadStream, mkdirSync, openSync, writeFileSync } from 'node:fs';
import * as fs from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { Parser, type ReadEntry } from 'tar';
import { describe, Fault } from '../core/errors.js';
import type { Store } from '../core/store.js';
import { syncFolder, writeWhole } from '../core/write-whole.js';
import { ARCHIVE, FOLDERS, INSIDE, type Manifest } from './backup.js';
import { decrypted, isEncrypted } from './encryption.js';
import {
  carryOut,
  type DataFolders,
  exists,
  LOCK,
  PLAN,
  type Rename,
  type RestorePlan,
  realPath,
  stagesOf,
} from './restore-plan.js';

export interface RestoreSummary {
  madeAt: string;
  madeBy: string;
  /** The logins of platforms were put back. */
  logins: boolean;
  /** Where the old folders are. */
  kept: string[];
  /** Parked deliveries and messages that count as answered. */
  deliveries: number;
  messages: number;
}

interface Host {
  /** Asked for where the backup is encrypted. */
  passphrase(): Promise<string>;
  /** Opens and migrates a database; refuses a foreign one, or one of a newer version. */
  openStore(file: string): Promise<Pick<Store, 'quieten' | 'close'>>;
  /** Bytes that may be written to the disk of a folder. */
  freeBytes(folder: string): Promise<number>;
  now: number;
  /** For tests of a restore that is broken off. */
  rename?: Rename;
}

/** A folder that is replaced. */
interface Target {
  at: string;
  /** Holds what is unpacked until it is in place. */
  stage: string;
  /** In it, the new folder. */
  fresh: string;
  /** Where the old folder goes. */
  before: string;
  /** It cannot be renamed (a mount, a parent folder that is not ours): then what is in it is. */
  isFixed: boolean;
}

export async function restore(archive: string, folders: DataFolders, host: Host): Promise<RestoreSummary> {
  const file = resolve(archive);
  if (!(await fs.stat(file).catch(() => null))?.isFile()) throw refusal(file, 'there is no such file');
  const passphrase = (await isEncrypted(file)) ? await host.passphrase() : null;
  const data = await realPath(folders.dataDir);
  const groups = await realPath(folders.groupsDir);
  if (!relative(groups, data).startsWith('..')) {
    const what = `data_dir lies in groups_dir (${groups}), which a restore replaces as a whole; set another data_dir`;
    throw new Fault('configuration', what);
  }
  const groupsInData = relative(data, groups).startsWith('..') ? null : relative(data, groups);
  const targets: Target[] = [];
  try {
    const stamp = await unusedStamp([data, groups], host.now);
    const ofData = await makeStage(data, stamp);
    targets.push(ofData);
    const ofGroups = groupsInData === null ? await makeStage(groups, stamp) : null;
    if (ofGroups !== null) targets.push(ofGroups);
    const freshGroups = ofGroups?.fresh ?? join(ofData.fresh, groupsInData ?? 'groups');
    const spaces = await spacesOf(targets, host);
    const { manifest, folders: unpacked } = await unpack(
      file,
      passphrase === null ? createReadStream(file) : decrypted(file, passphrase),
      ([first = '', ...rest]) => {
        const isGroups = first === 'groups';
        const at = isGroups ? join(freshGroups, ...rest) : join(ofData.fresh, first, ...rest);
        return { at, space: isGroups && ofGroups !== null ? spaces[1] : spaces[0] };
      },
    );
    await fs.mkdir(freshGroups, { recursive: true, mode: 0o700 });
    const store = await host.openStore(join(ofData.fresh, ARCHIVE.database));
    const keepLogins = manifest.logins === true;
    const quiet = await store.quieten({ keepLogins }).finally(() => store.close());
    const replaced = [...unpacked, ...(groupsInData === null ? [] : [groupsInData.split('/')[0] ?? ''])];
    const plan = await planOf(targets, replaced);
    for (const { stage } of targets) await syncTree(stage);
    await writeWhole(join(ofData.stage, PLAN), `${JSON.stringify(plan, null, 2)}\n`);
    await carryOut(plan, host.rename);
    return {
      madeAt: manifest.madeAt,
      madeBy: manifest.madeBy,
      logins: keepLogins,
      kept: plan.kept,
      ...quiet,
    };
  } catch (error) {
    const isPlanned = targets[0] !== undefined && (await exists(join(targets[0].stage, PLAN)));
    if (isPlanned) throw error;
    for (const { stage } of targets) await fs.rm(stage, { recursive: true, force: true });
    if (error instanceof Fault) throw error;
    const what = `The backup ${file} could not be restored; nothing was changed`;
    throw new Fault('store_unavailable', what, error);
  }
}

async function planOf([ofData, ofGroups]: Target[], replaced: string[]): Promise<RestorePlan> {
  const plan: RestorePlan = { aside: [], place: [], kept: [], stages: [] };
  for (const target of [ofGroups, ofData]) {
    if (target === undefined) continue;
    const { at, stage, fresh, before, isFixed } = target;
    plan.stages.unshift(stage);
    const names = (await namesOf(at)).filter((name) => !LOCK.test(name) && name !== basename(stage));
    const isReplaced = (name: string) =>
      target === ofGroups || name.startsWith(ARCHIVE.database) || replaced.includes(name);
    const old = names.filter((name) => !name.startsWith(INSIDE) && isReplaced(name));
    const stays = names.filter((name) => !old.includes(name));
    for (const name of isFixed ? old : stays) await refuseMount(join(at, name), stage);
    if (isFixed) {
      if (old.length > 0) await fs.mkdir(before, { recursive: true, mode: 0o700 });
      plan.aside.push(...old.map((name) => ({ from: join(at, name), to: join(before, name) })));
      const fresher = await namesOf(fresh);
      plan.place.push(...fresher.map((name) => ({ from: join(fresh, name), to: join(at, name) })));
    } else {
      plan.aside.push(...stays.map((name) => ({ from: join(at, name), to: join(fresh, name) })));
      if (names.length > 0) plan.aside.push({ from: at, to: before });
      plan.place.push({ from: fresh, to: at });
    }
    if (isFixed ? old.length > 0 : names.length > 0) plan.kept.push(before);
  }
  return plan;
}

async function namesOf(folder: string): Promise<string[]> {
  return fs.readdir(folder).catch(() => []);
}

async function makeStage(at: string, stamp: string): Promise<Target> {
  const [beside, inside] = stagesOf(at);
  await Promise.all([beside, inside].map((stage) => fs.rm(stage, { recursive: true, force: true })));
  const target = (stage: string, before: string, isFixed: boolean) => {
    return { at, stage, fresh: join(stage, 'new'), before, isFixed };
  };
  const kept = `${basename(at)}.before-${stamp}`;
  try {
    await fs.mkdir(join(beside, 'new'), { recursive: true, mode: 0o700 });
    if (!(await exists(at)) || (await canBeRenamed(at, beside))) {
      return target(beside, join(dirname(at), kept), false);
    }
  } catch (error) {
    if (!(await exists(at))) throw error;
  }
  await fs.rm(beside, { recursive: true, force: true });
  await fs.mkdir(join(inside, 'new'), { recursive: true, mode: 0o700 });
  return target(inside, join(at, `${INSIDE}${kept}`), true);
}

/** Asks the system by a rename that it refuses, because the other folder is not empty: it names that reason last. */
async function canBeRenamed(folder: string, filled: string): Promise<boolean> {
  const code = await fs.rename(folder, filled).then(
    () => 'done',
    (error: NodeJS.ErrnoException) => error.code,
  );
  return code === 'ENOTEMPTY' || code === 'EEXIST';
}

async function refuseMount(path: string, stage: string): Promise<void> {
  if (!(await fs.lstat(path)).isDirectory() || (await canBeRenamed(path, stage))) return;
  const what = `${path} cannot be renamed, as a mount cannot; nothing was changed. Unmount it, and restore again`;
  throw new Fault('configuration', what);
}

/** For the names of the old folders. */
async function unusedStamp(folders: string[], now: number): Promise<string> {
  const time = new Date(now).toISOString().replace(/[-:]|\.\d+/g, '');
  for (let n = 1; ; n++) {
    const stamp = n === 1 ? time : `${time}-${n}`;
    const taken = await Promise.all(
      folders.flatMap((at) => [
        exists(`${at}.before-${stamp}`),
        exists(join(at, `${INSIDE}${basename(at)}.before-${stamp}`)),
      ]),
    );
    if (!taken.includes(true)) return stamp;
  }
}

/** Folders on one disk share its space. */
async function spacesOf(targets: Target[], host: Host): Promise<DiskSpace[]> {
  const spaces = new Map<number, DiskSpace>();
  const found: DiskSpace[] = [];
  for (const { stage } of targets) {
    const { dev } = await fs.stat(stage);
    const space = spaces.get(dev) ?? { folder: dirname(stage), left: await host.freeBytes(stage) };
    spaces.set(dev, space);
    found.push(space);
  }
  return found;
}

async function syncTree(folder: string): Promise<void> {
  for (const entry of await fs.readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await syncTree(path);
    if (!entry.isFile()) continue;
    const handle = await fs.open(path, 'r+');
    await handle.sync().finally(() => handle.close());
  }
  await syncFolder(folder);
}

/** A million files are more than anybody has here, and still end within minutes. */
const MOST_ENTRIES = 1_000_000;
const MANIFEST_BYTES = 64_000;
/** Headers and padding of an archive beside what is in it: in all, and for each entry. */
const OVERHEAD_BYTES = 16_000_000;
const OVERHEAD_PER_ENTRY = 4096;
/** A file takes whole blocks. */
const BLOCK = 4096;

/** Of one disk. */
export interface DiskSpace {
  folder: string;
  left: number;
}

type Folder = (typeof FOLDERS)[number];

export function refusal(file: string, why: string): Fault {
  return new Fault('configuration', `${file} cannot be restored: ${why}`);
}

/** `bytes`: decrypted. `placeOf`: where the parts of a path go. `folders`: those of which there is something in it. */
export async function unpack(
  archive: string,
  bytes: AsyncIterable<Uint8Array>,
  placeOf: (path: string[]) => { at: string; space: DiskSpace | undefined },
  mostEntries = MOST_ENTRIES,
): Promise<{ manifest: Manifest; folders: ReadonlySet<string> }> {
  let manifest: Manifest | null = null;
  let hasDatabase = false;
  const folders = new Set<Folder>();
  let entries = 0;
  let declared = 0;
  let trouble: unknown = null;
  const parser = new Parser({ strict: true, onReadEntry: (entry) => void attempt(() => take(entry)) });
  parser.on('error', (error) => {
    trouble ??= noArchive(archive, error);
  });
  // Of a name that is too long for any file.
  parser.on('ignoredEntry', () => {
    trouble ??= refusal(archive, 'it holds a name that is too long');
  });

  /** Nothing may be thrown through the parser: it would go on in a state of its own. */
  function attempt(work: () => void): void {
    if (trouble !== null) return;
    try {
      work();
    } catch (error) {
      trouble = error;
    }
  }

  function take(entry: ReadEntry): void {
    const path = entry.path.replace(/\/$/, '');
    const isFolder = entry.type === 'Directory';
    const isPlain = isFolder || entry.type === 'File' || entry.type === 'OldFile';
    if (!isPlain || !isOurs(path, isFolder)) {
      throw refusal(archive, `it holds what no backup of ours does: ${shown(path)}`);
    }
    entries++;
    if (entries > mostEntries) throw refusal(archive, `it holds more than ${mostEntries} files`);
    if (!Number.isSafeInteger(entry.size) || entry.size < 0) throw noArchive(archive, 'a size that is none');
    declared += entry.size;
    if (path === ARCHIVE.manifest) takeManifest(entry);
    else takeFile(entry, path, isFolder);
  }

  function takeManifest(entry: ReadEntry): void {
    if (entry.size > MANIFEST_BYTES || manifest !== null) {
      throw refusal(archive, 'it is no backup made by coterie');
    }
    const pieces: Uint8Array[] = [];
    entry.on('data', (piece) => pieces.push(piece));
    entry.on('end', () =>
      attempt(() => {
        manifest = readManifest(archive, Buffer.concat(pieces).toString());
      }),
    );
  }

  function takeFile(entry: ReadEntry, path: string, isFolder: boolean): void {
    const parts = path.split('/');
    const { at, space } = placeOf(parts);
    hasDatabase ||= path === ARCHIVE.database;
    const folder = folderOf(parts[0]);
    if (folder !== null) folders.add(folder);
    const needed = Math.ceil(entry.size / BLOCK) * BLOCK + BLOCK;
    if (space !== undefined) {
      if (needed > space.left) {
        const what = `unpacked it needs more room than there is on the disk of ${space.folder}; make room there first`;
        throw refusal(archive, what);
      }
      space.left -= needed;
    }
    const file = make(archive, path, at, isFolder);
    if (file === null) {
      entry.resume();
      return;
    }
    entry.on('data', (piece) => attempt(() => writeFileSync(file, piece)));
    entry.on('end', () => closeSync(file));
  }

  try {
    await pipeline(Readable.from(bytes), createGunzip(), async (plain: AsyncIterable<Buffer>) => {
      let read = 0;
      for await (const piece of plain) {
        read += piece.length;
        parser.write(piece);
        const most = declared + OVERHEAD_BYTES + entries * OVERHEAD_PER_ENTRY;
        if (read > most) trouble = noArchive(archive, 'it unpacks to far more than the files in it');
        if (trouble !== null) throw trouble;
      }
      parser.end();
      if (trouble !== null) throw trouble;
    });
  } catch (error) {
    // What was refused here comes back as the abortion of what was being read.
    const why = trouble ?? error;
    throw isOfArchive(why) ? noArchive(archive, why) : why;
  }
  if (manifest === null || !hasDatabase) throw refusal(archive, 'it is no backup made by coterie');
  return { manifest, folders };
}

function noArchive(archive: string, why: unknown): Fault {
  return refusal(archive, `it is no whole .tar.gz archive (${describe(why)})`);
}

/** What zlib says of bytes that are none of its own. */
function isOfArchive(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^Z_/.test(String(error.code));
}

/** A name that somebody else chose, for one line of text. */
function shown(path: string): string {
  return JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
}

function isOurs(path: string, isFolder: boolean): boolean {
  const [first, ...rest] = path.split('/');
  const leadsElsewhere = rest.some(
    (part) => part === '' || part === '.' || part === '..' || /[\\\0]/.test(part) || part.startsWith(INSIDE),
  );
  if (leadsElsewhere) return false;
  if (folderOf(first) !== null) return isFolder || rest.length > 0;
  return (first === ARCHIVE.manifest || first === ARCHIVE.database) && rest.length === 0 && !isFolder;
}

function folderOf(name: string | undefined): Folder | null {
  return FOLDERS.find((folder) => folder === name) ?? null;
}

/** A new file, to be written to and closed; null for a folder. Private, and never one that is there already. */
function make(archive: string, path: string, at: string, isFolder: boolean): number | null {
  try {
    mkdirSync(isFolder ? at : dirname(at), { recursive: true, mode: 0o700 });
    return isFolder ? null : openSync(at, 'wx', 0o600);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code !== 'EEXIST' && code !== 'ENOTDIR') throw error;
    throw refusal(archive, `it holds ${shown(path)} twice, or a name that is the same on this disk`);
  }
}

function readManifest(archive: string, text: string): Manifest {
  const manifest = parsed(text);
  if (manifest?.format !== ARCHIVE.format || typeof manifest.version !== 'number') {
    throw refusal(archive, 'it is no backup made by coterie');
  }
  const { format, version, madeBy, madeAt, logins = false } = manifest;
  if (version > ARCHIVE.version) {
    throw new Fault(
      'store_newer',
      `${archive} was made by a newer coterie (${madeBy}); update this one first`,
    );
  }
  return { format, version, madeBy: String(madeBy), madeAt: String(madeAt), logins: logins === true };
}

function parsed(text: string): Partial<Manifest> | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
