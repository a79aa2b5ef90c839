/**
 * A backup: one .tar.gz with a manifest, a consistent copy of the database, `groups/`, and the data folder's
 * clipboards, workspace, agents, artifacts and skills. Made while the gateway runs. Platform logins and people's files
 * only on request. Written beside its target and renamed, so it appears there whole or not at all.
 */
import { createReadStream, createWriteStream } from 'node:fs';
import * as fs from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { create } from 'tar';
import * as z from 'zod';
import { entriesBelow, openFile, within } from '../core/beneath.js';
import { describe, Fault } from '../core/errors.js';
import type { Store } from '../core/store.js';
import { INSIDE } from './restore-plan.js';

/** Names in the archive, and the version of its layout. */
export const ARCHIVE = {
  format: 'coterie-backup',
  /** 2 added files that people sent, 3 files of personas or clipboards, 4 the other folders of `IN_DATA`. */
  version: 4,
  manifest: 'manifest.json',
  database: 'coterie.db',
};

/** Parts of the data folder that are always in a backup, and those on request. */
const IN_DATA = ['clipboard', 'workspace', 'agents', 'artifacts', 'skills'];
const ON_REQUEST = ['media', 'work'];
export const FOLDERS: readonly string[] = ['groups', ...ON_REQUEST, ...IN_DATA];
/** Folders that only people fill: symbolic links in them are followed. */
const OF_PEOPLE = ['groups', 'media', 'clipboard', 'skills'];

const manifestForm = z.object({
  format: z.literal(ARCHIVE.format),
  version: z.number(),
  /** The version of coterie. */
  madeBy: z.string().catch('unknown'),
  /** ISO 8601. */
  madeAt: z.string().catch('unknown'),
  logins: z.boolean().catch(false),
});

export type Manifest = z.infer<typeof manifestForm>;

/** null if it is not that of a backup. */
export function manifestIn(text: string): Manifest | null {
  try {
    return manifestForm.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

interface BackupSummary {
  file: string;
  bytes: number;
  groupFiles: number;
  mediaFiles: number;
  /** Files in the working folders of personas. */
  workFiles: number;
  /** Unreadable files, with the reason. */
  skipped: string[];
}

export async function backup(
  target: string,
  { store, dataDir, groupsDir }: { store: { copyTo: Store['copyTo'] }; dataDir: string; groupsDir: string },
  {
    withMedia = false,
    logins = false,
    secret = null,
  }: { withMedia?: boolean; logins?: boolean; secret?: Secret | null },
  madeAt: number,
  madeBy: string,
): Promise<BackupSummary> {
  const file = resolve(target);
  await refuseTarget(file, groupsDir);
  const data = await fs.realpath(dataDir);
  if (data === (await fs.realpath(groupsDir).catch(() => null))) {
    const what = `data_dir and groups_dir are one folder (${data}); set another data_dir`;
    throw new Fault('configuration', what);
  }
  // Readable by its owner only, from the start: it holds conversations.
  const staging = await fs.mkdtemp(join(dirname(file), `.${basename(file)}-`));
  try {
    await store.copyTo(join(staging, ARCHIVE.database), { logins });
    const files = new Map<string, number>();
    const skipped: string[] = [];
    for (const name of FOLDERS) {
      if (!withMedia && ON_REQUEST.includes(name)) continue;
      const from = name === 'groups' ? groupsDir : join(dataDir, name);
      const copied: Copied = { files: 0, skipped };
      // A data_dir inside groups_dir is not one of the groups.
      if (OF_PEOPLE.includes(name)) await copyTree(from, join(staging, name), [data], copied);
      else await copyPlain(from, join(staging, name), copied);
      if (copied.files > 0 || name === 'groups') files.set(name, copied.files);
    }
    const has = (names: readonly string[]) => names.some((name) => files.has(name));
    // The lowest version that covers the content, so that an older coterie accepts it if it can.
    const version = has(IN_DATA.slice(1)) ? 4 : has(['work', 'clipboard']) ? 3 : withMedia ? 2 : 1;
    const { format } = ARCHIVE;
    const manifest: Manifest = { format, version, madeBy, madeAt: new Date(madeAt).toISOString(), logins };
    await fs.writeFile(join(staging, ARCHIVE.manifest), `${JSON.stringify(manifest, null, 2)}\n`);
    const archive = join(staging, 'archive.tar.gz');
    const entries = [ARCHIVE.manifest, ARCHIVE.database, ...files.keys()];
    await create({ gzip: true, portable: true, cwd: staging, file: archive, strict: true }, entries);
    const whole = secret === null ? archive : join(staging, 'archive.age');
    if (secret !== null) await encrypt(archive, whole, secret);
    await fs.chmod(whole, 0o600);
    const bytes = await syncedSize(whole);
    await fs.rename(whole, file);
    return {
      file,
      bytes,
      groupFiles: files.get('groups') ?? 0,
      mediaFiles: files.get('media') ?? 0,
      workFiles: files.get('work') ?? 0,
      skipped: skipped.map((reason) => reason.replace(`${groupsDir}/`, '')),
    };
  } catch (error) {
    if (error instanceof Fault) throw error;
    throw new Fault('store_unavailable', `The backup ${file} could not be written`, error);
  } finally {
    await fs.rm(staging, { recursive: true, force: true });
  }
}

async function refuseTarget(file: string, groupsDir: string): Promise<void> {
  const refuse = (why: string) => new Fault('configuration', `A backup cannot be written to ${file}: ${why}`);
  const folder = await fs.stat(dirname(file)).catch(() => null);
  if (!folder?.isDirectory()) throw refuse(`there is no folder ${dirname(file)}`);
  if ((await fs.stat(file).catch(() => null))?.isDirectory()) throw refuse('that is a folder');
  const groups = await fs.realpath(groupsDir).catch(() => resolve(groupsDir));
  const inside = relative(groups, await fs.realpath(dirname(file)));
  if (inside === '' || !inside.startsWith('..')) {
    throw refuse('it would become part of itself inside groups_dir');
  }
}

interface Copied {
  files: number;
  skipped: string[];
}

/** Follows symbolic links, so that a backup is self-contained. `above`: real paths of folders to leave out. */
async function copyTree(from: string, to: string, above: string[], copied: Copied): Promise<void> {
  await fs.mkdir(to, { recursive: true });
  let names: string[];
  let folder: string;
  try {
    folder = await fs.realpath(from);
    // Ends a cycle of links.
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

/** Follows no symbolic links: those of personas and agents may lead anywhere. */
async function copyPlain(from: string, to: string, copied: Copied): Promise<void> {
  // The folder itself may be a link of the operator's.
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

/** A vanished file is not an error; a full disk ends the backup. */
function skip(path: string, error: unknown, copied: Copied): void {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'ENOENT') return;
  if (!['EACCES', 'EPERM', 'ELOOP', 'EIO'].includes(code)) throw error;
  copied.skipped.push(`${path}: ${describe(error)}`);
}

/** Flushes to disk before the file gets its name. */
async function syncedSize(file: string): Promise<number> {
  const handle = await fs.open(file, 'r+');
  try {
    await handle.sync();
    return (await handle.stat()).size;
  } finally {
    await handle.close();
  }
}

/** `workFactor` is for tests. */
export interface Secret {
  passphrase: string;
  workFactor?: number;
}

const BEGINNING = 'age-encryption.org/';

/** The scrypt work factor, log2, as in age: about a second and 256 MB per attempt at a passphrase. */
const WORK_FACTOR = 18;

/** Streams, in the format of age (age-encryption.org/v1), which `age -d` reads. */
async function encrypt(
  from: string,
  to: string,
  { passphrase, workFactor = WORK_FACTOR }: Secret,
): Promise<void> {
  const { Encrypter } = await import('age-encryption');
  const encrypter = new Encrypter();
  encrypter.setScryptWorkFactor(workFactor);
  encrypter.setPassphrase(passphrase);
  const bytes = await encrypter.encrypt(bytesOf(from));
  await pipeline(bytes, createWriteStream(to, { mode: 0o600 }));
}

/** Streams the plaintext. Throws Fault, possibly half-way, if the passphrase is wrong or the file damaged. */
export async function* decrypted(file: string, passphrase: string): AsyncGenerator<Uint8Array> {
  const { Decrypter } = await import('age-encryption');
  const decrypter = new Decrypter();
  decrypter.addPassphrase(passphrase);
  try {
    yield* await decrypter.decrypt(bytesOf(file));
  } catch (error) {
    throw new Fault(
      'configuration',
      `${file} cannot be decrypted: wrong passphrase, or a damaged file`,
      error,
    );
  }
}

export async function isEncrypted(file: string): Promise<boolean> {
  const handle = await fs.open(file);
  try {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(BEGINNING.length), 0, BEGINNING.length, 0);
    return buffer.toString('latin1', 0, bytesRead) === BEGINNING;
  } finally {
    await handle.close();
  }
}

function bytesOf(file: string): ReadableStream<Uint8Array> {
  return Readable.toWeb(createReadStream(file)) as ReadableStream<Uint8Array>;
}
