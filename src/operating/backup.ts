/**
 * A backup: one .tar.gz with a manifest, a consistent copy of the database, the files of `groups/` and what people and
 * agents keep in the data folder (clipboards, workspace, agents, artifacts, skills), made while the gateway runs. Logins (a WhatsApp device, Discord's session) and people's files are in it only where they are
 * asked for. It is put together beside its target and appears there whole, or not at all.
 */
import { createWriteStream } from 'node:fs';
import * as fs from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { create } from 'tar';
import { entriesBelow, openFile, within } from '../core/beneath.js';
import type { Clock } from '../core/clock.js';
import { describe, Fault } from '../core/errors.js';
import type { Store } from '../core/store.js';
import { encrypt, type Secret } from './encryption.js';

/** The names in the archive, and the version of their arrangement. */
export const ARCHIVE = {
  format: 'coterie-backup',
  /** 2 has files that people sent, 3 also those of personas, or clipboards, 4 the other folders of `IN_DATA`. */
  version: 4,
  manifest: 'manifest.json',
  database: 'coterie.db',
  groups: 'groups',
  media: 'media',
  work: 'work',
};

/** Folders that have the same name in the data folder, and are in every backup. */
export const IN_DATA = ['clipboard', 'workspace', 'agents', 'artifacts', 'skills'] as const;
/** Those of them that only people fill: what their links lead to is in the backup. */
const OF_PEOPLE: readonly string[] = ['clipboard', 'skills'];

/** Folders that a restore had to set aside inside `groups/` begin so; they are no part of a backup. */
export const INSIDE = '.kept-';

export interface Manifest {
  format: string;
  version: number;
  /** The coterie that made it. */
  madeBy: string;
  /** ISO 8601. */
  madeAt: string;
  /** The logins of platforms are in it; left out: as before this was said, they were never put back. */
  logins?: boolean;
}

export interface BackupSummary {
  file: string;
  bytes: number;
  /** Files under `groups/`. */
  groupFiles: number;
  mediaFiles: number;
  /** In working folders of personas. */
  workFiles: number;
  /** What could not be read, with the reason; everything else is in the backup. */
  skipped: string[];
}

export async function backup(order: {
  file: string;
  store: Pick<Store, 'copyTo'>;
  dataDir: string;
  groupsDir: string;
  /** The folder of the files that people sent; null: without them. */
  mediaDir: string | null;
  /** The folder of the working folders of personas; null: without them. */
  workDir: string | null;
  logins: boolean;
  /** null: not encrypted. */
  secret: Secret | null;
  clock: Pick<Clock, 'now'>;
  version: string;
}): Promise<BackupSummary> {
  const file = resolve(order.file);
  await refuseTarget(file, order.groupsDir);
  const data = await fs.realpath(order.dataDir);
  if (data === (await fs.realpath(order.groupsDir).catch(() => null))) {
    throw new Fault(
      'configuration',
      `data_dir and groups_dir are one folder (${data}); give data_dir another place`,
    );
  }
  // Private from its first byte: conversations stand in it.
  const staging = await fs.mkdtemp(join(dirname(file), `.${basename(file)}-`));
  try {
    await order.store.copyTo(join(staging, ARCHIVE.database), { logins: order.logins });
    const copied: Copied = { files: 0, skipped: [] };
    // Where data_dir lies in it, the logins there are none of groups.
    await copyTree(order.groupsDir, join(staging, ARCHIVE.groups), [data], copied);
    const media: Copied = { files: 0, skipped: copied.skipped };
    if (order.mediaDir !== null) await copyTree(order.mediaDir, join(staging, ARCHIVE.media), [], media);
    const work: Copied = { files: 0, skipped: copied.skipped };
    if (order.workDir !== null) await copyWork(order.workDir, join(staging, ARCHIVE.work), work);
    const inData: string[] = [];
    for (const name of IN_DATA) {
      const found: Copied = { files: 0, skipped: copied.skipped };
      const [from, to] = [join(order.dataDir, name), join(staging, name)];
      await (OF_PEOPLE.includes(name) ? copyTree(from, to, [], found) : copyWork(from, to, found));
      if (found.files > 0) inData.push(name);
    }
    const manifest: Manifest = {
      format: ARCHIVE.format,
      // An older coterie takes what it knows all of.
      version: versionOf({ media: order.mediaDir !== null, work: work.files > 0, inData }),
      madeBy: order.version,
      madeAt: new Date(order.clock.now()).toISOString(),
      logins: order.logins,
    };
    await fs.writeFile(join(staging, ARCHIVE.manifest), `${JSON.stringify(manifest, null, 2)}\n`);

    const archive = join(staging, 'archive.tar.gz');
    const entries = [ARCHIVE.manifest, ARCHIVE.database, ARCHIVE.groups];
    if (order.mediaDir !== null) entries.push(ARCHIVE.media);
    if (work.files > 0) entries.push(ARCHIVE.work);
    entries.push(...inData);
    await create({ gzip: true, portable: true, cwd: staging, file: archive, strict: true }, entries);
    const whole = order.secret === null ? archive : join(staging, 'archive.age');
    if (order.secret !== null) await encrypt(archive, whole, order.secret);
    await fs.chmod(whole, 0o600);
    const bytes = await syncedSize(whole);
    await fs.rename(whole, file);
    return {
      file,
      bytes,
      groupFiles: copied.files,
      mediaFiles: media.files,
      workFiles: work.files,
      skipped: copied.skipped.map((reason) => reason.replace(`${order.groupsDir}/`, '')),
    };
  } catch (error) {
    if (error instanceof Fault) throw error;
    throw new Fault('store_unavailable', `The backup ${file} could not be written`, error);
  } finally {
    await fs.rm(staging, { recursive: true, force: true });
  }
}

function versionOf(holds: { media: boolean; work: boolean; inData: string[] }): number {
  if (holds.inData.some((name) => name !== 'clipboard')) return ARCHIVE.version;
  if (holds.work || holds.inData.length > 0) return 3;
  return holds.media ? 2 : 1;
}

async function refuseTarget(file: string, groupsDir: string): Promise<void> {
  const refuse = (why: string) => new Fault('configuration', `A backup cannot be written to ${file}: ${why}`);
  const folder = await fs.stat(dirname(file)).catch(() => null);
  if (!folder?.isDirectory()) throw refuse(`there is no folder ${dirname(file)}`);
  if ((await fs.stat(file).catch(() => null))?.isDirectory()) throw refuse('that is a folder');
  const groups = await fs.realpath(groupsDir).catch(() => resolve(groupsDir));
  const inside = relative(groups, await fs.realpath(dirname(file)));
  if (inside === '' || !inside.startsWith('..'))
    throw refuse('it would become part of itself inside groups_dir');
}

interface Copied {
  files: number;
  skipped: string[];
}

/**
 * Copies what can be read, links as what they lead to: a backup is to be whole without its surroundings.
 * What vanishes meanwhile is no error; `above` are real folders that are left out: those around, so that a link circle
 * ends.
 */
async function copyTree(from: string, to: string, above: string[], copied: Copied): Promise<void> {
  await fs.mkdir(to, { recursive: true });
  let names: string[];
  let folder: string;
  try {
    folder = await fs.realpath(from);
    if (above.includes(folder)) return;
    names = await fs.readdir(from);
  } catch (error) {
    return skip(from, error, copied);
  }
  for (const name of names.sort()) {
    if (name.startsWith(INSIDE)) continue;
    const source = join(from, name);
    try {
      const kind = await fs.stat(source);
      if (kind.isDirectory()) await copyTree(source, join(to, name), [...above, folder], copied);
      if (!kind.isFile()) continue;
      await fs.copyFile(source, join(to, name));
      copied.files++;
    } catch (error) {
      skip(source, error, copied);
    }
  }
}

/** Of what personas and agents made, files alone: a link of theirs may lead anywhere, and be put there while this looks. */
async function copyWork(from: string, to: string, copied: Copied): Promise<void> {
  // The folder itself may be an operator's link.
  const root = await fs.realpath(from).catch(() => null);
  if (root === null) return;
  await within(root, [], async (folder) => {
    for await (const entry of entriesBelow(folder)) {
      const source = join(from, entry.path);
      if (entry.isClosed) copied.skipped.push(`${source}: it cannot be read, or lies too deep`);
      if (entry.kind !== 'file') continue;
      if (/[\\]/.test(entry.path) || `/${entry.path}`.includes(`/${INSIDE}`)) {
        copied.skipped.push(`${source}: no backup holds a file of that name`);
        continue;
      }
      try {
        const file = await openFile(entry.folder, entry.name);
        if (file === null) continue;
        await fs.mkdir(dirname(join(to, entry.path)), { recursive: true });
        await pipeline(file.createReadStream(), createWriteStream(join(to, entry.path), { mode: 0o600 }));
        copied.files++;
      } catch (error) {
        skip(source, error, copied);
      }
    }
  });
}

/** Only what concerns the one file: a full disk ends the backup. */
function skip(path: string, error: unknown, copied: Copied): void {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOENT') return;
  if (code !== 'EACCES' && code !== 'EPERM' && code !== 'ELOOP' && code !== 'EIO') throw error;
  copied.skipped.push(`${path}: ${describe(error)}`);
}

/** On the disk before it gets its name. */
async function syncedSize(file: string): Promise<number> {
  const handle = await fs.open(file, 'r+');
  try {
    await handle.sync();
    return (await handle.stat()).size;
  } finally {
    await handle.close();
  }
}
