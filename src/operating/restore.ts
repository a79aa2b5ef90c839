/**
 * A restore: the archive is unpacked beside the data folder and `groups/`, on the disk of each, and its database made
 * quiet: nothing old is sent or answered. Then, by a plan that is on disk first, each old folder is renamed
 * (`data.before-<time>`) and the new one takes its place (restore-plan.ts). The caller holds the data folder's lock.
 */
import { closeSync, createReadStream, mkdirSync, openSync, writeFileSync } from 'node:fs';
import * as fs from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { Parser, type ReadEntry } from 'tar';
import { describe, Fault } from '../core/errors.js';
import { realAsFarAsThere } from '../core/file-access.js';
import type { Store } from '../core/store.js';
import { syncFolder, writeWhole } from '../core/write-whole.js';
import { ARCHIVE, decrypted, FOLDERS, isEncrypted, type Manifest, manifestIn } from './backup.js';
import {
  carryOut,
  type DataFolders,
  exists,
  INSIDE,
  LOCK,
  PLAN,
  type Rename,
  type RestorePlan,
  stagesOf,
  unusedStamp,
} from './restore-plan.js';

interface RestoreSummary {
  madeAt: string;
  madeBy: string;
  logins: boolean;
  /** Paths of the old folders. */
  kept: string[];
  /** Parked deliveries, and messages that are treated as answered. */
  deliveries: number;
  messages: number;
}

interface Host {
  /** Called if the backup is encrypted. */
  passphrase(): Promise<string>;
  /** Opens and migrates a database; rejects a foreign or newer one. */
  openStore(file: string): Promise<{ quieten: Store['quieten']; close: Store['close'] }>;
  /** Puts the database where it belongs if that is not the data folder; called last, when all else is ready. */
  takeDatabase?(file: string): Promise<void>;
  /** Free bytes on the disk of a folder. */
  freeBytes(folder: string): Promise<number>;
  now: number;
  /** For tests of interrupted restores. */
  rename?: Rename;
}

/** A folder to replace. */
interface Target {
  at: string;
  /** Holds the unpacked files until they are in place. */
  stage: string;
  /** The new folder, inside `stage`. */
  fresh: string;
  /** The old folder's new path. */
  before: string;
  /** It cannot be renamed (a mount, or a parent folder that is not ours): its entries are renamed instead. */
  isFixed: boolean;
}

export async function restore(archive: string, folders: DataFolders, host: Host): Promise<RestoreSummary> {
  const file = resolve(archive);
  if (!(await fs.stat(file).catch(() => null))?.isFile()) throw refusal(file, 'there is no such file');
  const passphrase = (await isEncrypted(file)) ? await host.passphrase() : null;
  const data = await realAsFarAsThere(resolve(folders.dataDir));
  const groups = await realAsFarAsThere(resolve(folders.groupsDir));
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
    const database = join(host.takeDatabase ? ofData.stage : ofData.fresh, ARCHIVE.database);
    if (host.takeDatabase) await fs.rename(join(ofData.fresh, ARCHIVE.database), database);
    const store = await host.openStore(database);
    const { madeAt, madeBy, logins } = manifest;
    const quiet = await store.quieten({ keepLogins: logins }).finally(() => store.close());
    const replaced = [...unpacked, ...(groupsInData === null ? [] : [groupsInData.split('/')[0] ?? ''])];
    const plan = await planOf(targets, replaced);
    for (const { stage } of targets) await syncTree(stage);
    await host.takeDatabase?.(database);
    await writeWhole(join(ofData.stage, PLAN), `${JSON.stringify(plan, null, 2)}\n`);
    await carryOut(plan, host.rename);
    return { madeAt, madeBy, logins, kept: plan.kept, ...quiet };
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

/** Tries a rename onto a non-empty folder, which always fails; ENOTEMPTY or EEXIST: nothing else forbids it. */
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

/** Folders on the same disk share one object. */
async function spacesOf(targets: Target[], host: Host): Promise<DiskSpace[]> {
  const spaces = new Map<number, DiskSpace>();
  const disks: number[] = [];
  for (const { stage } of targets) {
    const { dev } = await fs.stat(stage);
    if (!spaces.has(dev)) spaces.set(dev, { folder: dirname(stage), left: await host.freeBytes(stage) });
    disks.push(dev);
  }
  return disks.flatMap((dev) => spaces.get(dev) ?? []);
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

/** More files than any installation has, yet processed within minutes. */
const MOST_ENTRIES = 1_000_000;
const MANIFEST_BYTES = 64_000;
/** Bytes of headers and padding in an archive: in all, and per entry. */
const OVERHEAD_BYTES = 16_000_000;
const OVERHEAD_PER_ENTRY = 4096;
/** Bytes of a disk block; files occupy whole blocks. */
const BLOCK = 4096;

interface DiskSpace {
  folder: string;
  left: number;
}

type PlaceOf = (path: string[]) => { at: string; space: DiskSpace | undefined };

export function refusal(file: string, why: string): Fault {
  return new Fault('configuration', `${file} cannot be restored: ${why}`);
}

/** `bytes`: the decrypted archive. `placeOf`: the target of a path. `folders`: those with entries in the archive. */
export async function unpack(
  archive: string,
  bytes: AsyncIterable<Uint8Array>,
  placeOf: PlaceOf,
  mostEntries = MOST_ENTRIES,
): Promise<{ manifest: Manifest; folders: ReadonlySet<string> }> {
  const unpacking = new Unpacking(archive, placeOf, mostEntries);
  try {
    await pipeline(Readable.from(bytes), createGunzip(), (plain: AsyncIterable<Buffer>) =>
      unpacking.read(plain),
    );
  } catch (error) {
    // A refusal resurfaces as an aborted read.
    const why = unpacking.trouble ?? error;
    // zlib's errors for data that is not gzip.
    const isOfArchive = why instanceof Error && 'code' in why && /^Z_/.test(String(why.code));
    throw isOfArchive ? noArchive(archive, why) : why;
  }
  const { manifest, folders, hasDatabase } = unpacking;
  if (manifest === null || !hasDatabase) throw notOurs(archive);
  return { manifest, folders };
}

class Unpacking {
  manifest: Manifest | null = null;
  hasDatabase = false;
  readonly folders = new Set<string>();
  trouble: unknown = null;
  private entries = 0;
  private declared = 0;
  private readonly parser = new Parser({
    strict: true,
    onReadEntry: (entry) => this.attempt(() => this.take(entry)),
  });

  constructor(
    private readonly archive: string,
    private readonly placeOf: PlaceOf,
    private readonly mostEntries: number,
  ) {
    this.parser.on('error', (error) => {
      this.trouble ??= noArchive(archive, error);
    });
    // Emitted for a name that is too long for any file.
    this.parser.on('ignoredEntry', () => {
      this.trouble ??= refusal(archive, 'it holds a name that is too long');
    });
  }

  async read(plain: AsyncIterable<Buffer>): Promise<void> {
    let read = 0;
    for await (const piece of plain) {
      read += piece.length;
      this.parser.write(piece);
      const most = this.declared + OVERHEAD_BYTES + this.entries * OVERHEAD_PER_ENTRY;
      if (read > most) this.trouble = noArchive(this.archive, 'it unpacks to far more than the files in it');
      if (this.trouble !== null) throw this.trouble;
    }
    this.parser.end();
    if (this.trouble !== null) throw this.trouble;
  }

  /** Catches everything: after an exception the parser would continue in an undefined state. */
  private attempt(work: () => void): void {
    if (this.trouble !== null) return;
    try {
      work();
    } catch (error) {
      this.trouble = error;
    }
  }

  private take(entry: ReadEntry): void {
    const { archive, mostEntries } = this;
    const path = entry.path.replace(/\/$/, '');
    const isFolder = entry.type === 'Directory';
    const isPlain = isFolder || entry.type === 'File' || entry.type === 'OldFile';
    if (!isPlain || !isOurs(path, isFolder)) {
      throw refusal(archive, `it holds what no backup of ours does: ${shown(path)}`);
    }
    this.entries++;
    if (this.entries > mostEntries) throw refusal(archive, `it holds more than ${mostEntries} files`);
    if (!Number.isSafeInteger(entry.size) || entry.size < 0) throw noArchive(archive, 'a size that is none');
    this.declared += entry.size;
    if (path === ARCHIVE.manifest) this.takeManifest(entry);
    else this.takeFile(entry, path, isFolder);
  }

  private takeManifest(entry: ReadEntry): void {
    if (entry.size > MANIFEST_BYTES || this.manifest !== null) throw notOurs(this.archive);
    const pieces: Uint8Array[] = [];
    entry.on('data', (piece) => pieces.push(piece));
    entry.on('end', () =>
      this.attempt(() => {
        this.manifest = readManifest(this.archive, Buffer.concat(pieces).toString());
      }),
    );
  }

  private takeFile(entry: ReadEntry, path: string, isFolder: boolean): void {
    const parts = path.split('/');
    const [first = ''] = parts;
    const { at, space } = this.placeOf(parts);
    if (path === ARCHIVE.database) this.hasDatabase = true;
    else this.folders.add(first);
    const needed = Math.ceil(entry.size / BLOCK) * BLOCK + BLOCK;
    if (space !== undefined) {
      if (needed > space.left) {
        const what = `unpacked it needs more room than there is on the disk of ${space.folder}; make room there first`;
        throw refusal(this.archive, what);
      }
      space.left -= needed;
    }
    const file = make(this.archive, path, at, isFolder);
    if (file === null) {
      entry.resume();
      return;
    }
    entry.on('data', (piece) => this.attempt(() => writeFileSync(file, piece)));
    entry.on('end', () => closeSync(file));
  }
}

function noArchive(archive: string, why: unknown): Fault {
  return refusal(archive, `it is no whole .tar.gz archive (${describe(why)})`);
}

function notOurs(archive: string): Fault {
  return refusal(archive, 'it is no backup made by coterie');
}

/** A name from the archive, safe in one line of text. */
function shown(path: string): string {
  return JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
}

function isOurs(path: string, isFolder: boolean): boolean {
  const [first = '', ...rest] = path.split('/');
  const leadsElsewhere = rest.some(
    (part) => part === '' || part === '.' || part === '..' || /[\\\0]/.test(part) || part.startsWith(INSIDE),
  );
  if (leadsElsewhere) return false;
  if (FOLDERS.includes(first)) return isFolder || rest.length > 0;
  return (first === ARCHIVE.manifest || first === ARCHIVE.database) && rest.length === 0 && !isFolder;
}

/** Creates a new private file and returns its descriptor; null for a folder. Never opens an existing file. */
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
  const manifest = manifestIn(text);
  if (manifest === null) throw notOurs(archive);
  if (manifest.version > ARCHIVE.version) {
    const what = `${archive} was made by a newer coterie (${manifest.madeBy}); update this one first`;
    throw new Fault('store_newer', what);
  }
  return manifest;
}
